//! What a message body means: JSON in, one of five kinds out. Pure.
//!
//! Owns: telling a request from a notification from an answer, and wording the refusal of anything else. Whether a
//! method exists or its parameters fit is the service's business ([`super::dispatch`] asks it).

use serde_json::{Map, Value};
use tower_lsp::jsonrpc::{Error, ErrorCode, Id};

/// One message of the client.
#[derive(Debug, Clone, PartialEq)]
pub enum Incoming {
    /// Wants an answer.
    Request {
        /// Names the answer.
        id: Id,
        /// What is asked.
        method: String,
        /// Absent when the client sent `null`, which clients do and tower-lsp refuses.
        params: Option<Value>,
    },
    /// Wants no answer.
    Notification {
        /// What is told.
        method: String,
        /// As for a request.
        params: Option<Value>,
    },
    /// Answers a request of ours.
    Answer {
        /// The request it answers.
        id: Id,
        /// What the client says.
        result: Result<Value, Error>,
    },
    /// Cannot be served, and the client is told so.
    Refused {
        /// The request's id where one can be read, else null.
        id: Id,
        /// Why.
        error: Error,
    },
    /// An error without an id: the client could not read something of ours.
    Complaint(Error),
}

/// Reads one message body.
pub fn parse(body: &[u8]) -> Incoming {
    // serde_json refuses text nested deeper than 128, so neither this nor dropping the value can exhaust the stack.
    match serde_json::from_slice(body) {
        Ok(Value::Object(fields)) => read(fields),
        Ok(Value::Array(_)) => refused(Id::Null, "batches are not part of the language server protocol"),
        Ok(_) => refused(Id::Null, "a message is a JSON object"),
        Err(error) => Incoming::Refused {
            id: Id::Null,
            error: with_message(ErrorCode::ParseError, format!("the message is not JSON: {error}")),
        },
    }
}

/// An error with a message of its own.
pub fn with_message(code: ErrorCode, message: impl Into<String>) -> Error {
    Error { code, message: message.into().into(), data: None }
}

fn read(mut fields: Map<String, Value>) -> Incoming {
    let Some(method) = fields.remove("method") else { return read_answer(fields) };
    let id = match fields.remove("id") {
        None => None,
        Some(id) => match read_id(&id) {
            Some(id) => Some(id),
            None => return refused(Id::Null, "a request's id is an integer or a string"),
        },
    };
    let shown = || id.clone().unwrap_or(Id::Null);
    if !is_version_2(&fields) {
        return refused(shown(), "a message says \"jsonrpc\": \"2.0\"");
    }
    let Value::String(method) = method else { return refused(shown(), "a method is a string") };
    let params = match fields.remove("params") {
        None | Some(Value::Null) => None,
        Some(params @ (Value::Object(_) | Value::Array(_))) => Some(params),
        Some(_) => return refused(shown(), "params are an object or an array"),
    };
    match id {
        Some(id) => Incoming::Request { id, method, params },
        None => Incoming::Notification { method, params },
    }
}

/// A message without a method. Its refusal never carries its id: in that space the ids are ours, and the client would
/// take the refusal for the answer to a request of its own.
fn read_answer(mut fields: Map<String, Value>) -> Incoming {
    if !is_version_2(&fields) {
        return refused(Id::Null, "a message says \"jsonrpc\": \"2.0\"");
    }
    // Some clients send both members, one of them null.
    let error = fields.remove("error").filter(|error| !error.is_null());
    let id = fields.remove("id").unwrap_or(Value::Null);
    match (read_id(&id), error, fields.remove("result")) {
        (Some(id), Some(error), _) => Incoming::Answer { id, result: Err(read_error(error)) },
        (Some(id), None, Some(result)) => Incoming::Answer { id, result: Ok(result) },
        (None, Some(error), _) => Incoming::Complaint(read_error(error)),
        _ => refused(Id::Null, "a message has a method, or an id and a result or error"),
    }
}

fn read_id(id: &Value) -> Option<Id> {
    match id {
        Value::Number(number) => number.as_i64().map(Id::Number),
        Value::String(text) => Some(Id::String(text.clone())),
        _ => None,
    }
}

fn read_error(error: Value) -> Error {
    let text = |key: &str| error.get(key).and_then(Value::as_str).map(str::to_owned);
    let code = error.get("code").and_then(Value::as_i64).map_or(ErrorCode::InternalError, ErrorCode::from);
    let message = text("message").unwrap_or_else(|| format!("the client failed: {error}"));
    Error { code, message: message.into(), data: error.get("data").cloned() }
}

fn is_version_2(fields: &Map<String, Value>) -> bool {
    fields.get("jsonrpc").and_then(Value::as_str) == Some("2.0")
}

fn refused(id: Id, message: &str) -> Incoming {
    Incoming::Refused { id, error: with_message(ErrorCode::InvalidRequest, message) }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn parse_value(value: Value) -> Incoming {
        parse(value.to_string().as_bytes())
    }

    #[test]
    fn the_kinds_are_told_apart() {
        let request = |params| Incoming::Request { id: Id::Number(1), method: "m".into(), params };
        let cases = [
            (json!({"jsonrpc": "2.0", "id": 1, "method": "m"}), request(None)),
            (json!({"jsonrpc": "2.0", "id": 1, "method": "m", "params": null}), request(None)),
            (json!({"jsonrpc": "2.0", "id": 1, "method": "m", "params": {}}), request(Some(json!({})))),
            (
                json!({"jsonrpc": "2.0", "method": "m", "params": [1]}),
                Incoming::Notification { method: "m".into(), params: Some(json!([1])) },
            ),
            (
                json!({"jsonrpc": "2.0", "id": "a", "result": null, "error": null}),
                Incoming::Answer { id: Id::String("a".into()), result: Ok(Value::Null) },
            ),
            (
                json!({"jsonrpc": "2.0", "id": 7, "error": {"code": -32601, "message": "no", "extra": 1}}),
                Incoming::Answer { id: Id::Number(7), result: Err(with_message(ErrorCode::MethodNotFound, "no")) },
            ),
            (
                json!({"jsonrpc": "2.0", "id": 7, "error": "boo"}),
                Incoming::Answer {
                    id: Id::Number(7),
                    result: Err(with_message(ErrorCode::InternalError, "the client failed: \"boo\"")),
                },
            ),
            (
                json!({"jsonrpc": "2.0", "id": null, "error": {"code": -32700, "message": "what?"}}),
                Incoming::Complaint(with_message(ErrorCode::ParseError, "what?")),
            ),
        ];
        for (message, expected) in cases {
            assert_eq!(parse_value(message.clone()), expected, "{message}");
        }
    }

    #[test]
    fn a_wrong_shape_is_refused_under_the_id_it_can_have() {
        let cases = [
            (json!([]), Id::Null),
            (json!("text"), Id::Null),
            (json!({}), Id::Null),
            (json!({"jsonrpc": "2.0"}), Id::Null),
            (json!({"jsonrpc": "2.0", "id": 1}), Id::Null),
            (json!({"jsonrpc": "2.0", "id": null, "method": "m"}), Id::Null),
            (json!({"jsonrpc": "2.0", "id": 1.5, "method": "m"}), Id::Null),
            (json!({"jsonrpc": "2.0", "id": true, "method": "m"}), Id::Null),
            (json!({"jsonrpc": "1.0", "id": 3, "method": "m"}), Id::Number(3)),
            (json!({"id": 3, "method": "m"}), Id::Number(3)),
            (json!({"jsonrpc": "2.0", "id": 3, "method": 5}), Id::Number(3)),
            (json!({"jsonrpc": "2.0", "id": 3, "method": "m", "params": 5}), Id::Number(3)),
        ];
        for (message, expected) in cases {
            let Incoming::Refused { id, error } = parse_value(message.clone()) else { panic!("{message} accepted") };
            assert_eq!((id, error.code), (expected, ErrorCode::InvalidRequest), "{message}");
        }
    }

    #[test]
    fn what_is_not_json_is_a_parse_error() {
        let deep = [b"[".repeat(1 << 20), b"]".repeat(1 << 20)].concat();
        for body in [&b""[..], b"{", b"\"\xff\xfe\"", b"{\"a\":1}x", &deep] {
            let Incoming::Refused { id: Id::Null, error } = parse(body) else { panic!("accepted") };
            assert_eq!(error.code, ErrorCode::ParseError);
        }
    }
}
