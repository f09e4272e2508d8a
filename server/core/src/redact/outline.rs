//! A line of an agent's stream without its texts: what stays is what kind of event it is, of what, and how much was
//! said.
//!
//! An agent says its messages in pieces, and shows a command's output as it grows. A secret of which a line holds a
//! half has no shape, and is not the value that is known: nothing finds it there, and who reads all the lines has the
//! whole. So of such lines no text is kept at all, but the words by which the protocol itself steers.

use serde_json::{Map, Value};

use crate::strict_json;

/// Members whose texts are words of a protocol, and numbers of things: no model chooses them.
const WORDS: &[&str] = &[
    "conversation_id",
    "event",
    "id",
    "item_type",
    "jsonrpc",
    "kind",
    "messageId",
    "method",
    "role",
    "sessionId",
    "sessionUpdate",
    "session_id",
    "state",
    "status",
    "step_type",
    "stopReason",
    "subtype",
    "thread_id",
    "toolCallId",
    "type",
];

/// Members whose names and numbers are a model's as well.
const OPAQUE: &[&str] = &["args", "arguments", "input", "parameters", "rawInput", "rawOutput", "tool_info"];

/// The longest word or name that is kept, in bytes: those that were measured have 70 at most.
const WORD_MAX: usize = 100;

/// `line` with the length of each text in its place. What is no JSON but looks like it was torn, and may hold a piece
/// as well; anything else is no event, and stays.
pub fn outline(line: &str) -> String {
    match strict_json::value(line) {
        Some(value @ (Value::Object(_) | Value::Array(_))) => of(None, value).to_string(),
        Some(_) => measured(line),
        None if line.trim_start().starts_with(['{', '[', '"']) => measured(line),
        None => line.to_owned(),
    }
}

fn of(name: Option<&str>, value: Value) -> Value {
    match value {
        Value::String(text) if name.is_some_and(|name| WORDS.contains(&name)) && is_word(&text) => Value::String(text),
        Value::String(text) => Value::String(measured(&text)),
        Value::Array(values) => values.into_iter().map(|value| of(name, value)).collect(),
        Value::Object(members) => Value::Object(members.into_iter().map(member).collect::<Map<_, _>>()),
        other => other,
    }
}

fn member((name, value): (String, Value)) -> (String, Value) {
    if OPAQUE.contains(&name.as_str()) && !value.is_null() {
        let text = Value::String(measured(&value.to_string()));
        return (name, text);
    }
    let value = of(Some(&name), value);
    (if is_word(&name) { name } else { measured(&name) }, value)
}

fn is_word(text: &str) -> bool {
    text.len() <= WORD_MAX && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-.:/$".contains(&byte))
}

fn measured(text: &str) -> String {
    format!("[{} characters]", text.chars().count())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_of_a_line_is_what_the_protocol_steers_by() {
        for (line, expected) in [
            (
                r#"{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s-1","update":{"sessionUpdate":"agent_message_chunk","messageId":"m1","content":{"type":"text","text":"himbeer eis"}}}}"#,
                r#"{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s-1","update":{"sessionUpdate":"agent_message_chunk","messageId":"m1","content":{"type":"text","text":"[11 characters]"}}}}"#,
            ),
            (
                r#"{"toolCallId":"0:call_1","status":"in_progress","title":"Bash","rawInput":{"command":"ec"},"content":[{"type":"content","content":{"type":"text","text":"é"}}]}"#,
                r#"{"toolCallId":"0:call_1","status":"in_progress","title":"[4 characters]","rawInput":"[16 characters]","content":[{"type":"content","content":{"type":"text","text":"[1 characters]"}}]}"#,
            ),
            (
                r#"{"type":"not a word","delta":true,"n":[1,"x"]}"#,
                r#"{"type":"[10 characters]","delta":true,"n":[1,"[1 characters]"]}"#,
            ),
            (r#"{"rawOutput":1234,"a b":null}"#, r#"{"rawOutput":"[4 characters]","[3 characters]":null}"#),
            (r#"{"text":"himbeer e"#, "[18 characters]"),
            (r#"{"type":"a","type":"b"}"#, "[23 characters]"),
            (r#""himbeer""#, "[9 characters]"),
            ("Warning: no such file", "Warning: no such file"),
        ] {
            assert_eq!(outline(line), expected, "{line}");
        }
    }
}
