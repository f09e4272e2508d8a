//! A step as the Chat Completions API streams it: `chat.completion.chunk`s, then `[DONE]`.
//!
//! Pure, and beside [`super::reply`], which speaks the Responses API and decides what both have in common. Here too ids
//! are made up and differ between any two answers of any two providers.

use serde_json::{Value, json};

use super::offer::Offer;
use super::reply::{Chunk, Then, halves};
use super::script::{Item, Step};

/// The chunks of one completion, in the making.
pub(super) struct Completion<'a> {
    step: &'a Step,
    offer: Offer,
    seed: &'a str,
    model: Value,
    calls: usize,
    chunks: Vec<Chunk>,
}

impl<'a> Completion<'a> {
    pub(super) fn new(step: &'a Step, request: &Value, seed: &'a str) -> Self {
        let (offer, model) = (Offer::of(request), request["model"].clone());
        let mut completion = Self { step, offer, seed, model, calls: 0, chunks: Vec::new() };
        completion.delta(json!({"role": "assistant", "content": ""}));
        completion
    }

    pub(super) fn play(mut self, items: &[Item], incomplete: Option<&str>) -> Then {
        for item in items {
            self.item(item);
        }
        let reason = match incomplete {
            Some("max_output_tokens") => "length",
            Some(other) => other,
            None if self.calls > 0 => "tool_calls",
            None => "stop",
        };
        let usage = self.usage();
        self.emit(json!([{"index": 0, "delta": {}, "finish_reason": reason}]), None);
        self.emit(json!([]), Some(usage));
        self.push("[DONE]");
        Then::stream(self.chunks)
    }

    /// An error in the middle of the stream, as gateways send it.
    pub(super) fn error(mut self, error: &Value) -> Then {
        self.push(&json!({"error": error}).to_string());
        Then::stream(self.chunks)
    }

    /// Half a message, silence, and the end of the stream.
    pub(super) fn break_off(mut self, silence: std::time::Duration) -> Then {
        self.delta(json!({"content": "Half a "}));
        self.chunks.push(Chunk::silence(silence));
        Then::stream(self.chunks)
    }

    fn item(&mut self, item: &Item) {
        match self.offer.adapt(item) {
            Item::Raw(chunk) => self.push(&chunk.to_string()),
            Item::Reasoning(text) => self.delta(json!({"reasoning_content": text})),
            Item::Message { text, .. } => {
                for part in halves(&text).into_iter().filter(|part| !part.is_empty()) {
                    self.delta(json!({"content": part}));
                }
            }
            Item::Call { name, arguments, .. } => {
                let text = arguments.as_str().map_or_else(|| arguments.to_string(), str::to_owned);
                self.call(&name, &text);
            }
            // This API has no freeform tools; clients that offer one wrap its input.
            Item::Custom { name, input } => self.call(&name, &json!({"input": input}).to_string()),
            Item::Edit { .. } | Item::Shell(_) => unreachable!("an offer adapts these"),
        }
    }

    fn call(&mut self, name: &str, arguments: &str) {
        let (index, id) = (self.calls, format!("call_{}_{}", self.seed, self.calls));
        self.calls += 1;
        let function = json!({"name": name, "arguments": ""});
        self.delta(json!({"tool_calls": [{"index": index, "id": id, "type": "function", "function": function}]}));
        for part in halves(arguments).into_iter().filter(|part| !part.is_empty()) {
            self.delta(json!({"tool_calls": [{"index": index, "function": {"arguments": part}}]}));
        }
    }

    /// A step's usage is written in the terms of the Responses API.
    fn usage(&self) -> Value {
        let told = self.step.usage.as_ref();
        let count = |key: &str, default: u64| told.and_then(|usage| usage[key].as_u64()).unwrap_or(default);
        let (input, output) = (count("input_tokens", 120), count("output_tokens", 30));
        let cached = told.map_or(20, |usage| usage["input_tokens_details"]["cached_tokens"].as_u64().unwrap_or(0));
        json!({"prompt_tokens": input, "completion_tokens": output, "total_tokens": input + output,
            "prompt_tokens_details": {"cached_tokens": cached}})
    }

    fn delta(&mut self, delta: Value) {
        self.emit(json!([{"index": 0, "delta": delta, "finish_reason": null}]), None);
    }

    fn emit(&mut self, choices: Value, usage: Option<Value>) {
        let mut chunk = json!({"id": format!("chatcmpl-{}", self.seed), "object": "chat.completion.chunk",
            "created": 0, "model": self.model, "choices": choices});
        if let Some(usage) = usage {
            chunk["usage"] = usage;
        }
        self.push(&chunk.to_string());
    }

    fn push(&mut self, data: &str) {
        let after = if self.chunks.is_empty() { std::time::Duration::ZERO } else { self.step.chunk_delay };
        self.chunks.push(Chunk { after, text: format!("data: {data}\n\n") });
    }
}

#[cfg(test)]
mod tests {
    use super::super::reply::{Reply, Wire};
    use super::super::script::Answer;
    use super::*;

    fn data(step: &Step, request: &Value) -> Vec<String> {
        let Then::Send { chunks, .. } = Reply::to(step, Wire::Chat, request, "1").then else { return Vec::new() };
        chunks.iter().filter_map(|chunk| Some(chunk.text.strip_prefix("data: ")?.trim_end().to_owned())).collect()
    }

    fn deltas(step: &Step, request: &Value) -> Vec<Value> {
        let parsed = data(step, request).into_iter().filter_map(|text| serde_json::from_str::<Value>(&text).ok());
        parsed.map(|chunk| chunk["choices"][0].clone()).collect()
    }

    #[test]
    fn a_message_ends_with_a_reason_its_usage_and_the_last_word() {
        let all = data(&Step::message("hi there"), &json!({"model": "m"}));
        assert_eq!(all.last().map(String::as_str), Some("[DONE]"));
        let usage: Value = serde_json::from_str(&all[all.len() - 2]).unwrap();
        assert_eq!((&usage["usage"]["total_tokens"], &usage["model"]), (&json!(150), &json!("m")));
        let deltas = deltas(&Step::message("hi there"), &json!({}));
        let said: String = deltas.iter().filter_map(|choice| choice["delta"]["content"].as_str()).collect();
        assert_eq!(said, "hi there");
        assert_eq!(deltas[deltas.len() - 2]["finish_reason"], "stop");
    }

    #[test]
    fn tools_are_called_by_the_names_and_arguments_that_the_request_offers() {
        let tool = |name: &str, key: &str| {
            json!({"type": "function", "function": {"name": name, "parameters":
            {"properties": {key: {"type": "string"}, "content": {"type": "string"}}, "required": [key]}}})
        };
        let request = json!({"tools": [tool("Bash", "command"), tool("Write", "path")]});
        let step =
            Step::items([Item::Shell("ls".to_owned()), Item::Edit { path: "a".to_owned(), content: "b".to_owned() }]);
        let deltas = deltas(&step, &request);
        let calls: Vec<&Value> = deltas.iter().map(|choice| &choice["delta"]["tool_calls"][0]).collect();
        let name = |index: usize| {
            calls.iter().find(|call| call["index"] == index && call["id"].is_string()).unwrap()["function"]["name"]
                .clone()
        };
        assert_eq!((name(0), name(1)), (json!("Bash"), json!("Write")));
        let arguments: String = calls
            .iter()
            .filter(|call| call["index"] == 1)
            .filter_map(|call| call["function"]["arguments"].as_str())
            .collect();
        assert_eq!(serde_json::from_str::<Value>(&arguments).unwrap(), json!({"path": "a", "content": "b"}));
        assert_eq!(deltas[deltas.len() - 2]["finish_reason"], "tool_calls");
    }

    #[test]
    fn broken_answers_have_no_last_word() {
        for answer in [Answer::Truncate, Answer::HangStream(std::time::Duration::from_secs(1))] {
            let all = data(&Step::of(answer), &json!({}));
            assert!(!all.contains(&"[DONE]".to_owned()) && all[1].contains("Half a "), "{all:?}");
        }
        let error = data(&Step::of(Answer::SseError(json!({"code": "x"}))), &json!({}));
        assert_eq!(error[1], r#"{"error":{"code":"x"}}"#);
        let cut = deltas(&Step::of(Answer::Incomplete(Vec::new(), "max_output_tokens".to_owned())), &json!({}));
        assert_eq!(cut[1]["finish_reason"], "length");
    }
}
