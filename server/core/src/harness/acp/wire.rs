//! JSON-RPC 2.0, one object on a line, as the Agent Client Protocol uses it.
//!
//! Read loosely, because agents are: a message is what its members make of it, and unknown ones are left alone; only a
//! line that names one twice is none ([`strict_json`]). Built by hand: what is sent is a handful of small objects,
//! which tests hold against the official schema. What a message means is decided in [`super::driver`].

use serde_json::{Value, json};

use crate::strict_json;

/// The protocol version that is spoken.
pub(super) const VERSION: u64 = 1;

/// The longest id of an agent's request that is answered, in bytes of JSON.
const ID_MAX: usize = 256;

/// What an agent sent.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Incoming {
    /// It wants an answer.
    Request { id: Value, method: String, params: Value },
    /// It tells something.
    Notification { method: String, params: Value },
    /// It answers the request of this number.
    Reply { id: u64, result: Result<Value, RpcError> },
}

/// A request that was refused.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RpcError {
    /// JSON-RPC's or the protocol's number: −32000 asks for a login.
    pub code: i64,
    /// The agent's sentence.
    pub message: String,
    /// Whatever it adds.
    pub data: Value,
}

/// Reads a line; `None` for anything that is no message.
pub(super) fn read(line: &str) -> Option<Incoming> {
    let Some(Value::Object(mut message)) = strict_json::object(line) else { return None };
    let id = message.remove("id").filter(|id| !id.is_null());
    match (message.remove("method"), id) {
        (Some(Value::String(method)), id) => {
            let params = message.remove("params").unwrap_or_default();
            match id {
                None => Some(Incoming::Notification { method, params }),
                Some(id) => is_id(&id).then_some(Incoming::Request { id, method, params }),
            }
        }
        (None, Some(id)) => {
            let id = id.as_u64().or_else(|| id.as_str()?.parse().ok())?;
            let result = match (message.remove("error").filter(|error| !error.is_null()), message.remove("result")) {
                (Some(error), _) => Err(RpcError::read(&error)),
                (None, Some(result)) => Ok(result),
                (None, None) => return None,
            };
            Some(Incoming::Reply { id, result })
        }
        _ => None,
    }
}

fn is_id(id: &Value) -> bool {
    (id.is_number() || id.is_string()) && id.to_string().len() <= ID_MAX
}

impl RpcError {
    fn read(error: &Value) -> Self {
        Self {
            code: error.get("code").and_then(Value::as_i64).unwrap_or_default(),
            message: text(error, "message").to_owned(),
            data: error.get("data").cloned().unwrap_or_default(),
        }
    }
}

/// A request of ours.
pub(super) fn request(id: u64, method: &str, params: &Value) -> String {
    json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}).to_string()
}

/// A notification of ours.
pub(super) fn notification(method: &str, params: &Value) -> String {
    json!({"jsonrpc": "2.0", "method": method, "params": params}).to_string()
}

/// The answer to an agent's request.
pub(super) fn answer(id: &Value, result: &Value) -> String {
    json!({"jsonrpc": "2.0", "id": id, "result": result}).to_string()
}

/// The refusal of an agent's request.
pub(super) fn refuse(id: &Value, refusal: Refusal, message: &str) -> String {
    json!({"jsonrpc": "2.0", "id": id, "error": {"code": refusal as i64, "message": message}}).to_string()
}

/// Why an agent's request is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Refusal {
    /// The id is one that waits for its answer.
    InvalidRequest = -32600,
    /// Nobody offered that.
    MethodNotFound = -32601,
    /// It asks for what is not allowed.
    InvalidParams = -32602,
    /// There is no such file.
    ResourceNotFound = -32002,
    /// It could not be done.
    Internal = -32603,
}

/// The text at `key`; empty when it is missing or no text.
pub(super) fn text<'v>(value: &'v Value, key: &str) -> &'v str {
    value.get(key).and_then(Value::as_str).unwrap_or_default()
}

/// The elements at `key`; none when it is missing or no list.
pub(super) fn list<'v>(value: &'v Value, key: &str) -> &'v [Value] {
    value.get(key).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_what_its_members_make_of_it() {
        let request = |id| Incoming::Request { id, method: "m".into(), params: Value::Null };
        let reply = |id, result| Incoming::Reply { id, result };
        for (line, expected) in [
            (r#"{"id":0,"method":"m"}"#, Some(request(json!(0)))),
            (r#"{"jsonrpc":"2.0","id":"a","method":"m"}"#, Some(request(json!("a")))),
            (
                r#"{"id":null,"method":"m","params":[1]}"#,
                Some(Incoming::Notification { method: "m".into(), params: json!([1]) }),
            ),
            (r#"{"id":3,"result":null}"#, Some(reply(3, Ok(Value::Null)))),
            (r#"{"id":"3","result":1,"error":null}"#, Some(reply(3, Ok(json!(1))))),
            (
                r#"{"id":3,"result":1,"error":{"code":-32000,"message":"no"}}"#,
                Some(reply(3, Err(RpcError { code: -32000, message: "no".into(), data: Value::Null }))),
            ),
            (r#"{"id":1,"id":2,"result":true}"#, None),
            (r#"{"id":2,"result":{"stopReason":"refusal","stopReason":"end_turn"}}"#, None),
            (r#"{"id":3}"#, None),
            (r#"{"id":{"a":1},"method":"m"}"#, None),
            (r#"{"id":-3,"result":1}"#, None),
            (r#"{"method":7}"#, None),
            (r#"[{"id":1,"method":"m"}]"#, None),
            (r#"{"id":1,"met"#, None),
            ("", None),
        ] {
            assert_eq!(read(line), expected, "{line}");
        }
        assert_eq!(read(&format!(r#"{{"id":"{}","method":"m"}}"#, "x".repeat(300))), None);
    }
}
