//! What a step becomes on the wire: a status and timed chunks of an event stream.
//!
//! Pure: a step and a request in, a [`Reply`] out; [`super::server`] sends it and keeps the time. The Chat Completions
//! API is spoken by [`super::chat`]; the events here are those that the Responses API streams and codex reads
//! (`response.created` … `response.output_item.done` … `response.completed`); times and ids are made up, ids differ
//! between any two answers of any two providers.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Map, Value, json};

use super::chat::Completion;
use super::offer::Offer;
use super::script::{Answer, Item, Step};

/// The API that a request came by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wire {
    Responses,
    Chat,
}

/// One answer, ready to be sent.
#[derive(Debug)]
pub(super) struct Reply {
    /// Silence before anything is sent.
    pub(super) pause: Duration,
    pub(super) then: Then,
}

#[derive(Debug)]
pub(super) enum Then {
    /// Close the connection unanswered.
    Close,
    /// Send this, then end the body.
    Send { status: u16, headers: BTreeMap<String, String>, chunks: Vec<Chunk> },
}

/// A piece of a body and the silence before it; an empty one is only silence.
#[derive(Debug)]
pub(super) struct Chunk {
    pub(super) after: Duration,
    pub(super) text: String,
}

impl Reply {
    /// A JSON document, at once.
    pub(super) fn json(status: u16, body: &Value) -> Self {
        Self { pause: Duration::ZERO, then: Then::json(status, body, BTreeMap::new()) }
    }

    /// An error in OpenAI's shape, said by the provider itself and not by a script.
    pub(super) fn refusal(status: u16, message: &str) -> Self {
        Self::json(status, &json!({"error": {"message": message, "type": "scripted_provider", "code": null}}))
    }

    /// The answer that `step` gives to `request`. `seed` makes its ids unique.
    pub(super) fn to(step: &Step, wire: Wire, request: &Value, seed: &str) -> Self {
        let stream = || Stream::new(step, request, seed);
        let completion = || Completion::new(step, request, seed);
        let play = |items: &[Item], incomplete: Option<&str>| match wire {
            Wire::Responses => stream().play(items, incomplete),
            Wire::Chat => completion().play(items, incomplete),
        };
        let error = |error: &Value| match wire {
            Wire::Responses => stream().error(error),
            Wire::Chat => completion().error(error),
        };
        let break_off = |silence| match wire {
            Wire::Responses => stream().break_off(silence),
            Wire::Chat => completion().break_off(silence),
        };
        let (pause, then) = match &step.answer {
            Answer::Items(items) => (step.delay, play(items, None)),
            Answer::Incomplete(items, reason) => (step.delay, play(items, Some(reason))),
            Answer::Status(status, body, headers) => {
                let default = || json!({"error": {"message": format!("scripted error {status}"), "code": null}});
                (step.delay, Then::json(*status, &body.clone().unwrap_or_else(default), headers.clone()))
            }
            Answer::Raw(text, kind) => (step.delay, Then::body(200, kind, vec![Chunk::now(text.clone())])),
            Answer::Failed(fault) if wire == Wire::Responses => (step.delay, stream().fail(fault)),
            Answer::Failed(fault) | Answer::SseError(fault) => (step.delay, error(fault)),
            Answer::Hang(silence) => (step.delay.saturating_add(*silence), Then::Close),
            Answer::HangHeaders(silence) => (step.delay, Then::stream(vec![Chunk::silence(*silence)])),
            Answer::HangStream(silence) => (step.delay, break_off(*silence)),
            Answer::Drop => (step.delay, Then::Close),
            Answer::Truncate => (step.delay, break_off(Duration::ZERO)),
        };
        Self { pause, then }
    }
}

impl Then {
    fn json(status: u16, body: &Value, mut headers: BTreeMap<String, String>) -> Self {
        headers.insert("content-type".to_owned(), "application/json".to_owned());
        Self::Send { status, headers, chunks: vec![Chunk::now(body.to_string())] }
    }

    pub(super) fn stream(chunks: Vec<Chunk>) -> Self {
        Self::body(200, "text/event-stream", chunks)
    }

    fn body(status: u16, content_type: &str, chunks: Vec<Chunk>) -> Self {
        // One request per connection, as a stream's end is its connection's end.
        let headers = [("content-type", content_type), ("cache-control", "no-cache"), ("connection", "close")];
        let headers = headers.map(|(name, value)| (name.to_owned(), value.to_owned()));
        Self::Send { status, headers: headers.into(), chunks }
    }
}

impl Chunk {
    fn now(text: String) -> Self {
        Self { after: Duration::ZERO, text }
    }

    pub(super) fn silence(after: Duration) -> Self {
        Self { after, text: String::new() }
    }
}

/// The events of one response, in the making.
struct Stream<'a> {
    step: &'a Step,
    offer: Offer,
    seed: &'a str,
    response: Map<String, Value>,
    chunks: Vec<Chunk>,
}

impl<'a> Stream<'a> {
    fn new(step: &'a Step, request: &Value, seed: &'a str) -> Self {
        let response = json!({
            "id": format!("resp_{seed}"), "object": "response", "created_at": 0, "model": request["model"],
            "status": "in_progress", "output": [], "error": null, "incomplete_details": null,
            "parallel_tool_calls": true, "tools": [],
        });
        let Value::Object(response) = response else { unreachable!("an object was written above") };
        let mut stream = Self { step, offer: Offer::of(request), seed, response, chunks: Vec::new() };
        stream.emit("response.created", json!({"response": stream.response}));
        stream.emit("response.in_progress", json!({"response": stream.response}));
        stream
    }

    fn play(mut self, items: &[Item], incomplete: Option<&str>) -> Then {
        let output: Vec<Value> = items.iter().enumerate().map(|(index, item)| self.item(index, item)).collect();
        let usage = self.step.usage.clone().unwrap_or_else(|| {
            json!({"input_tokens": 120, "input_tokens_details": {"cached_tokens": 20}, "output_tokens": 30,
                "output_tokens_details": {"reasoning_tokens": 5}, "total_tokens": 150})
        });
        self.response.insert("output".to_owned(), output.into());
        self.response.insert("usage".to_owned(), usage);
        match incomplete {
            None => self.finish("completed"),
            Some(reason) => {
                self.response.insert("incomplete_details".to_owned(), json!({"reason": reason}));
                self.finish("incomplete")
            }
        }
    }

    fn fail(mut self, error: &Value) -> Then {
        self.response.insert("error".to_owned(), error.clone());
        self.finish("failed")
    }

    fn error(mut self, error: &Value) -> Then {
        self.emit("error", error.clone());
        Then::stream(self.chunks)
    }

    /// Half a message, silence, and the end of the stream.
    fn break_off(mut self, silence: Duration) -> Then {
        let id = format!("msg_{}_0", self.seed);
        let item = json!({"id": id, "type": "message", "role": "assistant", "status": "in_progress", "content": []});
        self.emit("response.output_item.added", json!({"output_index": 0, "item": item}));
        self.emit(
            "response.output_text.delta",
            json!({"item_id": id, "output_index": 0, "content_index": 0, "delta": "Half a "}),
        );
        self.chunks.push(Chunk::silence(silence));
        Then::stream(self.chunks)
    }

    fn finish(mut self, status: &str) -> Then {
        self.response.insert("status".to_owned(), status.into());
        self.emit(&format!("response.{status}"), json!({"response": self.response}));
        Then::stream(self.chunks)
    }

    fn item(&mut self, index: usize, item: &Item) -> Value {
        let uid = format!("{}_{index}", self.seed);
        let done = match self.offer.adapt(item) {
            Item::Raw(item) => {
                self.emit("response.output_item.added", json!({"output_index": index, "item": item}));
                item
            }
            Item::Reasoning(text) => self.reasoning(index, format!("rs_{uid}"), &text),
            Item::Message { text, commentary } => self.message(index, format!("msg_{uid}"), &text, commentary),
            Item::Call { name, arguments, namespace } => {
                let arguments = arguments.as_str().map_or_else(|| arguments.to_string(), str::to_owned);
                let mut item = json!({"id": format!("fc_{uid}"), "type": "function_call",
                    "call_id": format!("call_{uid}"), "name": name, "status": "in_progress"});
                if let Some(namespace) = namespace {
                    item["namespace"] = namespace.into();
                }
                self.tool_call(index, item, "arguments", arguments)
            }
            Item::Custom { name, input } => {
                let item = json!({"id": format!("ctc_{uid}"), "type": "custom_tool_call",
                    "call_id": format!("call_{uid}"), "name": name, "status": "in_progress"});
                self.tool_call(index, item, "input", input)
            }
            Item::Edit { .. } | Item::Shell(_) => unreachable!("an offer adapts these"),
        };
        self.emit("response.output_item.done", json!({"output_index": index, "item": done}));
        done
    }

    fn reasoning(&mut self, index: usize, id: String, text: &str) -> Value {
        let item = json!({"id": id, "type": "reasoning", "summary": [], "encrypted_content": null});
        self.emit("response.output_item.added", json!({"output_index": index, "item": item}));
        let place = json!({"item_id": id, "output_index": index, "summary_index": 0});
        let summary = |kind: &str, text: &str| json!({"type": kind, "text": text});
        let part = merged(&place, json!({"part": summary("summary_text", "")}));
        self.emit("response.reasoning_summary_part.added", part);
        self.emit("response.reasoning_summary_text.delta", merged(&place, json!({"delta": text})));
        self.emit("response.reasoning_summary_text.done", merged(&place, json!({"text": text})));
        merged(&item, json!({"summary": [summary("summary_text", text)]}))
    }

    fn message(&mut self, index: usize, id: String, text: &str, commentary: bool) -> Value {
        let mut item =
            json!({"id": id, "type": "message", "role": "assistant", "status": "in_progress", "content": []});
        if commentary {
            item["phase"] = "commentary".into();
        }
        self.emit("response.output_item.added", json!({"output_index": index, "item": item}));
        let place = json!({"item_id": id, "output_index": index, "content_index": 0});
        let content = |text: &str| json!({"type": "output_text", "text": text, "annotations": []});
        self.emit("response.content_part.added", merged(&place, json!({"part": content("")})));
        for delta in halves(text).into_iter().filter(|delta| !delta.is_empty()) {
            self.emit("response.output_text.delta", merged(&place, json!({"delta": delta})));
        }
        self.emit("response.output_text.done", merged(&place, json!({"text": text})));
        merged(&item, json!({"status": "completed", "content": [content(text)]}))
    }

    fn tool_call(&mut self, index: usize, mut item: Value, field: &str, input: String) -> Value {
        item[field] = "".into();
        self.emit("response.output_item.added", json!({"output_index": index, "item": item}));
        let kind = if field == "input" { "custom_tool_call_input" } else { "function_call_arguments" };
        let place = json!({"item_id": item["id"], "output_index": index});
        self.emit(&format!("response.{kind}.delta"), merged(&place, json!({"delta": input})));
        self.emit(&format!("response.{kind}.done"), merged(&place, json!({field: input})));
        merged(&item, json!({field: input, "status": "completed"}))
    }

    fn emit(&mut self, kind: &str, fields: Value) {
        let head = json!({"type": kind, "sequence_number": self.chunks.len()});
        let text = format!("event: {kind}\ndata: {}\n\n", merged(&head, fields));
        let after = if self.chunks.is_empty() { Duration::ZERO } else { self.step.chunk_delay };
        self.chunks.push(Chunk { after, text });
    }
}

/// A text cut in two, as deltas come in pieces.
pub(super) fn halves(text: &str) -> [&str; 2] {
    let middle = (text.len() / 2..).find(|at| text.is_char_boundary(*at)).unwrap_or(text.len());
    [&text[..middle], &text[middle..]]
}

/// `base` with the fields of `more` added or replaced.
fn merged(base: &Value, more: Value) -> Value {
    let (mut fields, more) = match (base.clone(), more) {
        (Value::Object(base), Value::Object(more)) => (base, more),
        (_, more) => return more,
    };
    fields.extend(more);
    Value::Object(fields)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn events(step: &Step, request: &Value) -> Vec<Value> {
        let Then::Send { chunks, .. } = Reply::to(step, Wire::Responses, request, "1").then else { return Vec::new() };
        chunks
            .iter()
            .filter_map(|chunk| chunk.text.split_once("\ndata: "))
            .map(|(_, data)| serde_json::from_str(data.trim_end()).unwrap())
            .collect()
    }

    fn kinds(step: &Step) -> String {
        let kinds: Vec<String> = events(step, &json!({}))
            .iter()
            .map(|event| event["type"].as_str().unwrap().replace("response.", ""))
            .collect();
        kinds.join(" ")
    }

    #[test]
    fn each_answer_streams_the_events_of_the_responses_api() {
        const DONE: &str = "output_text.delta output_text.delta output_text.done output_item.done";
        for (answer, expect) in [
            (Step::message("hi"), format!("created in_progress output_item.added content_part.added {DONE} completed")),
            (
                Step::items([Item::Custom { name: "x".to_owned(), input: "y".to_owned() }]),
                "created in_progress output_item.added custom_tool_call_input.delta custom_tool_call_input.done \
                 output_item.done completed"
                    .to_owned(),
            ),
            (Step::of(Answer::Failed(json!({"code": "x"}))), "created in_progress failed".to_owned()),
            (Step::of(Answer::SseError(json!({"code": "x"}))), "created in_progress error".to_owned()),
            (Step::of(Answer::Truncate), "created in_progress output_item.added output_text.delta".to_owned()),
            (
                Step::of(Answer::Incomplete(Vec::new(), "max_output_tokens".to_owned())),
                "created in_progress incomplete".to_owned(),
            ),
            (Step::of(Answer::Drop), String::new()),
        ] {
            assert_eq!(kinds(&answer), expect, "{answer:?}");
        }
    }

    #[test]
    fn events_are_numbered_and_a_finished_response_repeats_its_items() {
        let events = events(&Step::message("héé"), &json!({"model": "m"}));
        let numbers: Vec<u64> = events.iter().map(|event| event["sequence_number"].as_u64().unwrap()).collect();
        assert_eq!(numbers, (0..events.len() as u64).collect::<Vec<_>>());
        let response = &events.last().unwrap()["response"];
        assert_eq!(response["output"][0]["content"][0]["text"], "héé");
        assert_eq!(response["model"], "m");
        assert_eq!(response["usage"]["total_tokens"], 150);
    }

    #[test]
    fn silences_stand_where_the_script_wants_them() {
        let second = Duration::from_secs(1);
        let reply = |answer| Reply::to(&Step::of(answer), Wire::Responses, &Value::Null, "1");
        assert_eq!(reply(Answer::Hang(second)).pause, second);
        for answer in [Answer::HangHeaders(second), Answer::HangStream(second)] {
            let Then::Send { chunks, .. } = reply(answer).then else { panic!() };
            assert_eq!(chunks.last().unwrap().after, second);
        }
    }
}
