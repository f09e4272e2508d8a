//! Lines of JSON of the shapes that agent programs have in common.
//!
//! Read loosely, with nothing demanded: Claude Code and those that print like it (`assistant`, `result` with
//! `is_error`), Gemini CLI (`message` with `role` and `delta`, `result` with `status`), codex (`item.completed`,
//! `turn.failed`), opencode (`text` with a `part`), and plain chat messages (`role`, `content`). What says that a turn
//! failed is believed; what says that it went well is only ever an answer.

use serde_json::Value;

use crate::display;
use crate::job::event::Usage;
use crate::strict_json;

/// What a line says.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Event {
    /// The session has this name.
    Session {
        /// The program's own id of it.
        id: String,
        /// The model that it says it uses.
        model: Option<String>,
    },
    /// The agent said something.
    Words(Words),
    /// The agent summarised its reasoning.
    Reasoning(String),
    /// The agent used a tool.
    Tool {
        /// Its name.
        tool: String,
        /// Whether the program counts it as failed.
        failed: bool,
        /// What it was told to do, where that is told.
        input: Option<String>,
        /// What came of it, where that is told at once.
        output: Option<String>,
    },
    /// What came of a tool that was used before.
    Result(String),
    /// Something went wrong; whether that was the end, what follows shows.
    Error(String),
    /// The turn is over.
    Done {
        /// Why it failed, if it did.
        failure: Option<String>,
        /// The answer, where it is repeated.
        answer: Option<String>,
        /// Tokens used.
        usage: Option<Usage>,
    },
    /// Of a kind that is not known here.
    Unknown(String),
}

/// What an agent said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Words {
    /// A whole message.
    Whole(String),
    /// A piece of one.
    Piece(String),
}

/// Kinds that tell of progress, and nothing that a person has to know.
const SILENT: &[&str] = &[
    "system",
    "ping",
    "start",
    "status",
    "step_start",
    "step_finish",
    "turn.started",
    "item.started",
    "item.updated",
    "tool_call",
    "message_start",
    "message_stop",
    "content_block_start",
    "content_block_stop",
    "heartbeat",
    "progress",
];

/// The keys at which sessions are named.
const SESSION: &[&str] = &["session_id", "sessionId", "sessionID", "thread_id", "conversation_id"];

/// The events of a line; `None` when it is no JSON object that is clear.
pub(super) fn read(line: &str) -> Option<Vec<Event>> {
    let value = strict_json::object(line.trim())?;
    let mut events: Vec<_> = session(&value).into_iter().collect();
    let kind = text(&value, "type").or_else(|| text(&value, "event")).unwrap_or_default();
    events.extend(match kind {
        "result" | "done" | "final" | "turn.completed" | "turn_completed" => vec![done(&value)],
        "turn.failed" | "turn_failed" => vec![failed(&value)],
        "error" | "fatal" => vec![Event::Error(complaint(&value).unwrap_or_else(|| "an error".to_owned()))],
        "assistant" | "message" | "agent_message" | "assistant_message" | "agent_response" | "text" => said(&value),
        "item.completed" => item(&value),
        "reasoning" | "thinking" | "thought" => words(&value).map(Event::Reasoning).into_iter().collect(),
        "tool_use" | "tool" => vec![tool(&value)],
        "user" | "tool_result" => results(&value),
        "" if value.get("role").is_some() => said(&value),
        "" => words(&value).map(|words| Event::Words(Words::Whole(words))).into_iter().collect(),
        silent if SILENT.contains(&silent) || !events.is_empty() => Vec::new(),
        other => vec![Event::Unknown(display::head(other, 200).to_owned())],
    });
    if events.is_empty() && kind.is_empty() && value.get("role").is_none() {
        events.push(Event::Unknown("without a type".to_owned()));
    }
    Some(events)
}

fn session(value: &Value) -> Option<Event> {
    let id = SESSION.iter().find_map(|key| text(value, key)).filter(|id| !id.is_empty())?;
    let model = text(value, "model").map(|model| display::head(model, 200).to_owned());
    Some(Event::Session { id: display::head(id, 400).to_owned(), model })
}

/// A message of the agent, or of somebody else, which is nothing new.
fn said(value: &Value) -> Vec<Event> {
    let message = value.get("message").filter(|message| message.is_object()).unwrap_or(value);
    let is_agent = |role: &str| matches!(role, "assistant" | "agent" | "model");
    match text(message, "role") {
        Some("tool") => return words(message).map(Event::Result).into_iter().collect(),
        Some(role) if !is_agent(role) => return Vec::new(),
        _ => {}
    }
    let mut events = Vec::new();
    for block in message.get("content").and_then(Value::as_array).into_iter().flatten() {
        if text(block, "type") == Some("tool_use") {
            events.push(tool(block));
        }
    }
    let is_piece = value.get("delta").and_then(Value::as_bool) == Some(true);
    if let Some(words) = words(message) {
        events.insert(0, Event::Words(if is_piece { Words::Piece(words) } else { Words::Whole(words) }));
    }
    events
}

/// What came of tools, told apart from their use.
fn results(value: &Value) -> Vec<Event> {
    let message = value.get("message").filter(|message| message.is_object()).unwrap_or(value);
    let blocks = message.get("content").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    let of_tools = blocks.iter().filter(|block| text(block, "type") == Some("tool_result"));
    let of_line = (text(value, "type") == Some("tool_result")).then_some(value);
    of_tools.chain(of_line).map(|result| Event::Result(words(result).unwrap_or_else(|| result.to_string()))).collect()
}

/// codex's items.
fn item(value: &Value) -> Vec<Event> {
    let Some(item) = value.get("item") else { return Vec::new() };
    match text(item, "type").unwrap_or_default() {
        "agent_message" | "assistant_message" => {
            words(item).map(|words| Event::Words(Words::Whole(words))).into_iter().collect()
        }
        "reasoning" => words(item).map(Event::Reasoning).into_iter().collect(),
        "" => Vec::new(),
        other => vec![Event::Tool {
            tool: other.to_owned(),
            failed: text(item, "status") == Some("failed"),
            input: text(item, "command").map(str::to_owned),
            output: text(item, "aggregated_output").map(str::to_owned),
        }],
    }
}

fn tool(value: &Value) -> Event {
    let name = ["name", "tool_name", "tool"].into_iter().find_map(|key| text(value, key));
    let name = name.or_else(|| value.pointer("/part/tool").and_then(Value::as_str)).unwrap_or("a tool");
    let status = value.pointer("/part/state/status").and_then(Value::as_str).or_else(|| text(value, "status"));
    let told = |at: &[&str]| {
        let found = at.iter().find_map(|pointer| value.pointer(pointer)).filter(|found| !found.is_null())?;
        Some(found.as_str().map_or_else(|| found.to_string(), str::to_owned))
    };
    Event::Tool {
        tool: display::head(name, 200).to_owned(),
        failed: matches!(status, Some("error" | "failed")),
        input: told(&["/input", "/parameters", "/arguments", "/part/state/input"]),
        output: told(&["/output", "/part/state/output", "/part/state/error"]),
    }
}

/// The end of a turn. Anything but a plain success is a failure.
fn done(value: &Value) -> Event {
    let inner = value.get("result").filter(|inner| inner.is_object()).unwrap_or(value);
    let is_error = |value: &Value| value.get("is_error").and_then(Value::as_bool) == Some(true);
    let is_fine = |status: &str| {
        matches!(status.to_ascii_lowercase().as_str(), "" | "success" | "ok" | "completed" | "complete" | "done")
    };
    let status = ["subtype", "status"].into_iter().find_map(|key| text(inner, key)).unwrap_or_default();
    let has_error = inner.get("error").is_some_and(|error| !error.is_null() && error.as_str() != Some(""));
    let went_wrong = is_error(value) || is_error(inner) || has_error || !is_fine(status);
    let answer = ["result", "response", "output", "text", "content"]
        .into_iter()
        .find_map(|key| text(inner, key))
        .filter(|answer| !answer.trim().is_empty())
        .map(str::to_owned);
    let failure = went_wrong.then(|| complaint(inner).or_else(|| answer.clone()).unwrap_or_else(|| status.to_owned()));
    Event::Done { failure, answer, usage: usage(inner) }
}

fn failed(value: &Value) -> Event {
    let why = complaint(value).unwrap_or_else(|| "the turn failed".to_owned());
    Event::Done { failure: Some(why), answer: None, usage: usage(value) }
}

/// What went wrong, in the program's own words.
fn complaint(value: &Value) -> Option<String> {
    let at = ["/error/data/message", "/error/message", "/error", "/message", "/detail", "/text"];
    let found = at.into_iter().find_map(|pointer| value.pointer(pointer)?.as_str()).filter(|words| !words.is_empty());
    let or_whole = || value.get("error").filter(|error| error.is_object()).map(Value::to_string);
    found.map(str::to_owned).or_else(or_whole)
}

/// The text of a message, in whichever way it is given.
fn words(value: &Value) -> Option<String> {
    if let Some(blocks) = value.get("content").and_then(Value::as_array) {
        let texts: Vec<_> = blocks.iter().filter_map(|block| text(block, "text").or_else(|| block.as_str())).collect();
        return (!texts.is_empty()).then(|| texts.join("\n"));
    }
    let found = ["text", "content", "message", "response"].into_iter().find_map(|key| text(value, key));
    let found = found.or_else(|| value.pointer("/part/text").and_then(Value::as_str));
    found.filter(|words| !words.is_empty()).map(str::to_owned)
}

fn usage(value: &Value) -> Option<Usage> {
    let found = value.get("usage").or_else(|| value.get("stats"))?;
    let count = |keys: [&str; 3]| keys.into_iter().find_map(|key| found.get(key)?.as_u64());
    let input = count(["input_tokens", "prompt_tokens", "inputTokens"]);
    let output = count(["output_tokens", "completion_tokens", "outputTokens"]);
    if input.is_none() && output.is_none() {
        return None;
    }
    let cached = count(["cache_read_input_tokens", "cached_input_tokens", "cached"]);
    Some(Usage {
        input_tokens: input.unwrap_or_default(),
        cached_input_tokens: cached.unwrap_or_default(),
        output_tokens: output.unwrap_or_default(),
        cost: None,
    })
}

fn text<'v>(value: &'v Value, key: &str) -> Option<&'v str> {
    value.get(key)?.as_str()
}
