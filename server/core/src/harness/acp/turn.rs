//! What an agent tells of its work: words put together, tool calls, plans, tokens.
//!
//! Words come in pieces of any size; a run of pieces is one message. Every text and every number of things is bounded:
//! an agent decides how much it says, and never how much is kept. What ends a turn is decided in [`super::driver`].

use std::collections::BTreeMap;

use serde_json::Value;

use super::super::notices::cut;
use super::super::repeats::Repeats;
use super::tool::{Call, Kind};
use super::wire::{list, text};
use crate::display::{self, headline};
use crate::job::event::{Known, PlanEntry, PlanStatus, Usage};

/// The longest message that is recorded, in bytes; a longer one is recorded in parts.
const MESSAGE_MAX: usize = 16 * 1024;
/// The longest final message: in a read-only job it is the result.
const FINAL_MAX: usize = 64 * 1024;
/// The most calls that are followed at once.
const CALLS_MAX: usize = 512;
/// The longest id of one, in bytes.
const ID_MAX: usize = 256;
/// The most entries of a plan, and the longest of them in characters.
const PLAN_MAX: usize = 50;
const ENTRY_MAX: usize = 200;

/// One turn, as far as it was told.
#[derive(Debug, Default)]
pub(super) struct Turn {
    run: Option<Run>,
    /// The last message, bounded.
    answer: String,
    /// Whether something was said since the last call was announced.
    has_answer: bool,
    calls: BTreeMap<String, Call>,
    work: Work,
    /// The calls that ended since they were asked for ([`Turn::take_ended`]).
    ended: Vec<Ended>,
    repeats: Repeats,
    plan: Vec<PlanEntry>,
    usage: Option<Usage>,
}

/// What became of the calls.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Work {
    pub(super) succeeded: u32,
    pub(super) failed: u32,
}

/// A call that ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Ended {
    pub(super) id: String,
    /// The tool's name.
    pub(super) name: String,
    pub(super) kind: Kind,
    /// Whether the agent did it, whatever came of that.
    pub(super) was_done: bool,
    pub(super) has_succeeded: bool,
    /// The beginning of what came of it.
    pub(super) opening: String,
}

/// Words that belong together.
#[derive(Debug)]
struct Run {
    voice: Voice,
    message: String,
    text: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Voice {
    Answer,
    Thought,
}

/// A call's id, as far as it is kept.
pub(super) fn id(told: &str) -> &str {
    display::head(told, ID_MAX)
}

impl Turn {
    /// A piece of a message or a thought.
    pub(super) fn chunk(&mut self, voice: Voice, update: &Value) -> Vec<Known> {
        let words = update.pointer("/content/text").and_then(Value::as_str).unwrap_or_default();
        if words.is_empty() {
            return Vec::new();
        }
        let message = text(update, "messageId");
        let goes_on = |run: &Run| run.voice == voice && run.message == display::head(message, ID_MAX);
        let mut records = if self.run.as_ref().is_some_and(goes_on) { Vec::new() } else { self.flush() };
        let run = self.run.get_or_insert_with(|| {
            if voice == Voice::Answer {
                self.answer.clear();
            }
            Run { voice, message: display::head(message, ID_MAX).to_owned(), text: String::new() }
        });
        run.text.push_str(words);
        if voice == Voice::Answer {
            self.has_answer |= !words.trim().is_empty();
            let room = (FINAL_MAX + 1).saturating_sub(self.answer.len());
            self.answer.push_str(display::head(words, room));
        }
        records.extend(run.split().into_iter().map(|part| voice.record(part)));
        records
    }

    /// Ends the words that are being said.
    pub(super) fn flush(&mut self) -> Vec<Known> {
        let Some(run) = self.run.take().filter(|run| !run.text.trim().is_empty()) else { return Vec::new() };
        self.repeats.words(&run.text);
        vec![run.voice.record(run.text)]
    }

    /// A `tool_call`, or an update of one.
    pub(super) fn call(&mut self, update: &Value, is_announced: bool, tree: &str) -> Vec<Known> {
        let mut records = self.flush();
        let id = self::id(text(update, "toolCallId")).to_owned();
        let known = self.calls.get(&id);
        let is_first = known.is_none() || (is_announced && known.is_some_and(Call::is_over));
        if is_first {
            self.has_answer = false;
            self.make_room();
            self.calls.insert(id.clone(), Call::default());
        }
        let Some(call) = self.calls.get_mut(&id) else { return records };
        let was_over = call.is_over();
        call.merge(update);
        records.extend(call.report(&id, is_first, tree));
        if call.is_over() && !was_over {
            let counter = if call.has_succeeded() { &mut self.work.succeeded } else { &mut self.work.failed };
            *counter = counter.saturating_add(1);
            self.ended.push(Ended {
                id,
                name: call.name().to_owned(),
                kind: call.kind(),
                was_done: call.was_done(),
                has_succeeded: call.has_succeeded(),
                opening: call.opening().to_owned(),
            });
            let (what, result) = call.signature();
            self.repeats.work(&what, result);
        }
        records
    }

    fn make_room(&mut self) {
        if self.calls.len() >= CALLS_MAX {
            let over = self.calls.iter().find(|(_, call)| call.is_over()).or(self.calls.iter().next());
            if let Some(id) = over.map(|(id, _)| id.clone()) {
                self.calls.remove(&id);
            }
        }
    }

    /// A `plan`.
    pub(super) fn plan(&mut self, update: &Value) -> Vec<Known> {
        let entries: Vec<_> = list(update, "entries").iter().take(PLAN_MAX).map(entry).collect();
        if entries == self.plan {
            return Vec::new();
        }
        self.plan.clone_from(&entries);
        let mut records = self.flush();
        records.push(Known::Plan { entries });
        records
    }

    /// The tokens of this attempt, by the prompt's reply.
    pub(super) fn tokens(&mut self, usage: Option<&Value>) -> Option<Known> {
        let usage = usage?;
        let count = |key: &str| usage.get(key).and_then(Value::as_u64);
        let (input, output) = (count("inputTokens"), count("outputTokens"));
        if input.is_none() && output.is_none() {
            return None;
        }
        let (input, output) = (input.unwrap_or_default(), output.unwrap_or_default());
        let or_zero = |key: &str| count(key).unwrap_or_default();
        let (read, written) = (or_zero("cachedReadTokens"), or_zero("cachedWriteTokens"));
        let thought = or_zero("thoughtTokens");
        // Agents differ in whether cached and thought tokens are part of the other two; the total tells.
        let total = count("totalTokens").unwrap_or(input.saturating_add(output));
        let apart = total > input.saturating_add(output);
        let has_thought_apart = apart && total >= input.saturating_add(output).saturating_add(thought);
        self.told(Usage {
            input_tokens: if apart { input.saturating_add(read).saturating_add(written) } else { input },
            cached_input_tokens: read,
            output_tokens: if has_thought_apart { output.saturating_add(thought) } else { output },
            cost: self.usage.and_then(|usage| usage.cost),
        })
    }

    /// The cost of the session so far, by a `usage_update`: this attempt's part of it.
    pub(super) fn cost(&mut self, update: &Value, before: Option<f64>) -> Option<Known> {
        let amount = update.pointer("/cost/amount")?.as_f64().filter(|amount| amount.is_finite() && *amount > 0.0)?;
        if update.pointer("/cost/currency")?.as_str()? != "USD" {
            return None;
        }
        let before = before.unwrap_or_default();
        let cost = Some(if amount >= before { amount - before } else { amount });
        self.told(Usage { cost, ..self.usage.unwrap_or_default() })
    }

    /// Usage from anywhere else.
    pub(super) fn told(&mut self, usage: Usage) -> Option<Known> {
        let is_new = self.usage != Some(usage);
        self.usage = Some(usage);
        is_new.then_some(Known::Usage { usage })
    }

    /// The calls that ended since this was asked.
    pub(super) fn take_ended(&mut self) -> Vec<Ended> {
        std::mem::take(&mut self.ended)
    }

    /// A call that was told of.
    pub(super) fn find(&self, id: &str) -> Option<&Call> {
        self.calls.get(self::id(id))
    }

    /// Whether the turn has an answer: the last thing told was said, not done.
    pub(super) fn has_answer(&self) -> bool {
        self.has_answer
    }

    /// The last message.
    pub(super) fn answer(&self) -> Option<String> {
        (!self.answer.trim().is_empty()).then(|| cut(&self.answer, FINAL_MAX))
    }

    /// Whether it brings nothing new any more.
    pub(super) fn is_stuck(&self) -> bool {
        self.repeats.is_endless()
    }

    /// What became of the calls.
    pub(super) fn work(&self) -> Work {
        self.work
    }

    /// How many calls were begun and never ended.
    pub(super) fn unfinished(&self) -> usize {
        self.calls.values().filter(|call| !call.is_over()).count()
    }
}

impl Run {
    /// The parts that are long enough to be recorded by themselves. Each ends with a line or a word where it can: half
    /// a secret is a secret that no pattern finds.
    fn split(&mut self) -> Vec<String> {
        let mut parts = Vec::new();
        let mut rest = self.text.as_str();
        while rest.len() > MESSAGE_MAX {
            let head = display::head(rest, MESSAGE_MAX);
            let at = head.rfind('\n').or_else(|| head.rfind(' ')).map_or(head.len(), |at| at + 1);
            let (part, after) = rest.split_at(at);
            parts.push(part.to_owned());
            rest = after;
        }
        if !parts.is_empty() {
            self.text = rest.to_owned();
        }
        parts
    }
}

impl Voice {
    fn record(self, text: String) -> Known {
        match self {
            Self::Answer => Known::Message { text },
            Self::Thought => Known::Reasoning { text },
        }
    }
}

fn entry(entry: &Value) -> PlanEntry {
    PlanEntry {
        text: headline(display::head(text(entry, "content"), 4 * ENTRY_MAX), ENTRY_MAX),
        status: match text(entry, "status") {
            "in_progress" => PlanStatus::InProgress,
            "completed" => PlanStatus::Completed,
            _ => PlanStatus::Pending,
        },
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn chunk(turn: &mut Turn, words: &str, message: &str) -> Vec<Known> {
        turn.chunk(Voice::Answer, &json!({"content": {"type": "text", "text": words}, "messageId": message}))
    }

    #[test]
    fn pieces_become_messages_and_the_last_one_is_the_answer() {
        let mut turn = Turn::default();
        let message = |text: &str| Known::Message { text: text.to_owned() };
        assert_eq!(chunk(&mut turn, "Hel", ""), []);
        assert_eq!(chunk(&mut turn, "lo", ""), []);
        assert_eq!(chunk(&mut turn, "", ""), []);
        assert_eq!(chunk(&mut turn, "Next", "2"), [message("Hello")]);
        assert!(turn.has_answer());
        let call = json!({"toolCallId": "c", "title": "t", "status": "completed"});
        assert_eq!(turn.call(&call, true, "/"), [message("Next"), Known::ToolUsed { tool: "t".into(), failed: false }]);
        assert!(!turn.has_answer(), "something was done after it was said");
        chunk(&mut turn, " \n", "");
        assert!(!turn.has_answer(), "nothing was said");
        chunk(&mut turn, "Done.", "3");
        assert_eq!(turn.flush(), [message("Done.")]);
        assert_eq!((turn.has_answer(), turn.answer().as_deref()), (true, Some("Done.")));
    }

    #[test]
    fn words_without_end_are_recorded_in_parts_and_kept_in_bounds() {
        let mut turn = Turn::default();
        let mut recorded = 0;
        for _ in 0..1000 {
            for known in chunk(&mut turn, &"word ".repeat(400), "") {
                let Known::Message { text } = known else { panic!("{known:?}") };
                assert!(text.len() <= MESSAGE_MAX && text.ends_with(' '));
                recorded += text.len();
            }
        }
        assert!(recorded >= 2_000_000 - MESSAGE_MAX);
        assert!(turn.answer().unwrap().len() <= FINAL_MAX + 40);
        for n in 0..10_000 {
            turn.call(&json!({"toolCallId": n.to_string(), "title": "t"}), true, "/");
        }
        assert!(turn.calls.len() <= CALLS_MAX);
    }

    #[test]
    fn tokens_are_counted_alike_whatever_the_agent_counts_in() {
        let usage = |input, cached, output| Usage {
            input_tokens: input,
            cached_input_tokens: cached,
            output_tokens: output,
            cost: None,
        };
        for (told, expected) in [
            // Measured with opencode: the total says that cached tokens come on top.
            (
                json!({"inputTokens": 90, "outputTokens": 20, "totalTokens": 120, "cachedReadTokens": 10}),
                usage(100, 10, 20),
            ),
            (
                json!({"inputTokens": 100, "outputTokens": 20, "totalTokens": 120, "cachedReadTokens": 10}),
                usage(100, 10, 20),
            ),
            (
                json!({"inputTokens": 100, "outputTokens": 20, "totalTokens": 125, "thoughtTokens": 5}),
                usage(100, 0, 25),
            ),
            (json!({"outputTokens": 7}), usage(0, 0, 7)),
        ] {
            assert_eq!(Turn::default().tokens(Some(&told)), Some(Known::Usage { usage: expected }), "{told}");
        }
        assert_eq!(Turn::default().tokens(Some(&json!({"totalTokens": 7}))), None);
        let mut turn = Turn::default();
        let cost = |amount: f64| json!({"used": 1, "size": 2, "cost": {"amount": amount, "currency": "USD"}});
        assert_eq!(turn.cost(&cost(0.0), None), None);
        let expected = Usage { cost: Some(0.5), ..Usage::default() };
        assert_eq!(turn.cost(&cost(0.75), Some(0.25)), Some(Known::Usage { usage: expected }), "of this attempt");
        assert_eq!(turn.cost(&cost(0.75), Some(0.25)), None, "told already");
    }
}
