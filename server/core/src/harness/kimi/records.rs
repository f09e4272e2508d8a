//! What kimi writes down about a turn, in its private home: `state.json` and the main agent's `wire.jsonl`.
//!
//! Over the protocol a turn that failed ends like one that did not, and says nothing. The records do: how the last turn
//! ended and why, what was offered to the model with each request, what was used. The job may have written to them, so
//! they are believed only where they take something back. Facts: kimi-code 2.1.0.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;

use crate::display;
use crate::job::event::Usage;
use crate::strict_json;

/// The most sets of tools that are kept, and the longest hash of one in bytes. A session that was measured has two.
const SNAPSHOTS_MAX: usize = 1_000;
const HASH_MAX: usize = 200;
/// The most tools of one that are named, and how much of each name in bytes.
const NAMED: usize = 20;
const NAME_MAX: usize = 100;

/// How the last turn ended, by `state.json`.
pub(super) fn last_turn(state: &[u8]) -> Option<String> {
    let state = whole(state)?;
    Some(state.get("lastTurnReason")?.as_str()?.to_owned())
}

/// What `wire.jsonl` tells.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Wire {
    /// The last turn's error.
    pub(super) error: Option<String>,
    /// Whether the last answer ended without its provider saying so.
    pub(super) is_cut: bool,
    /// Tools that the model was offered in any turn and that are not of the allowed ones; why it cannot be told.
    pub(super) offered: Offered,
    /// The models that were asked in the last turn, by their aliases.
    pub(super) models: Vec<String>,
    /// The tokens of the last turn.
    pub(super) usage: Option<Usage>,
}

/// What can be said of the tools that were offered.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) enum Offered {
    /// Nothing was asked of a model.
    #[default]
    Nothing,
    /// With every request, the allowed tools at most.
    AllowedOnly,
    /// With some request, these besides.
    Others(Vec<String>),
    /// Some request does not tell which.
    Untold,
}

/// Reads the record of the main agent, line by line. Of a line only what is needed is taken: prompts, answers and the
/// contents of files are most of it.
#[derive(Debug)]
pub(super) struct Reader {
    allowed: &'static [&'static str],
    /// Of each set of tools, those that are not allowed.
    snapshots: BTreeMap<String, Vec<String>>,
    read: Wire,
}

/// What a line is about.
#[derive(Deserialize)]
struct Kind<'l> {
    #[serde(rename = "type", borrow, default)]
    kind: Cow<'l, str>,
}

/// What an event of a turn is about.
#[derive(Deserialize)]
struct Happening<'l> {
    #[serde(borrow)]
    event: Kind<'l>,
}

impl Reader {
    /// A reader of a record in which tools of these names may be offered.
    pub(super) fn new(allowed: &'static [&'static str]) -> Self {
        Self { allowed, snapshots: BTreeMap::new(), read: Wire::default() }
    }

    /// Takes a line; `None` for one that was too long.
    pub(super) fn line(&mut self, line: Option<&[u8]>) {
        if line.is_some_and(<[u8]>::is_empty) {
            return;
        }
        if line.and_then(|line| self.entry(line)).is_none() {
            // A torn line may be one that names tools.
            self.read.offered = Offered::Untold;
        }
    }

    /// What a line tells; `None` where it is torn, or not clear.
    fn entry(&mut self, line: &[u8]) -> Option<()> {
        let Kind { kind } = serde_json::from_slice(line).ok()?;
        let read = &mut self.read;
        match &*kind {
            "turn.prompt" => {
                (read.error, read.is_cut, read.usage) = (None, false, None);
                read.models.clear();
            }
            "turn.ended" => read.error = error(&whole(line)?),
            "llm.tools_snapshot" => self.snapshot(&whole(line)?),
            "llm.request" => {
                let request = whole(line)?;
                let tools = self.snapshots.get(text(&request, "/toolsHash"));
                note(&mut read.offered, tools);
                let model = text(&request, "/modelAlias");
                let is_name = (1..=NAME_MAX).contains(&model.len());
                if is_name && read.models.len() < NAMED && read.models.iter().all(|known| known != model) {
                    read.models.push(model.to_owned());
                }
            }
            "usage.record" => read.usage = Some(usage(&whole(line)?).plus(read.usage.unwrap_or_default())),
            "context.append_loop_event" => {
                let is_end = serde_json::from_slice(line).is_ok_and(|Happening { event }| event.kind == "step.end");
                if is_end {
                    read.is_cut = is_cut(whole(line)?.get("event").unwrap_or(&Value::Null));
                }
            }
            _ => {}
        }
        Some(())
    }

    /// What it tells.
    pub(super) fn end(self) -> Wire {
        self.read
    }

    fn snapshot(&mut self, snapshot: &Value) {
        let names = snapshot.get("tools").and_then(Value::as_array).into_iter().flatten();
        let names = names.map(|tool| tool.get("name").and_then(Value::as_str).unwrap_or("?"));
        let others = names.filter(|name| !self.allowed.contains(name));
        let others = others.take(NAMED).map(|name| display::head(name, NAME_MAX).to_owned()).collect();
        // A request of one that is not kept does not tell what it offered.
        let hash = text(snapshot, "/hash");
        if hash.len() <= HASH_MAX && self.snapshots.len() < SNAPSHOTS_MAX {
            self.snapshots.insert(hash.to_owned(), others);
        }
    }
}

fn whole(line: &[u8]) -> Option<Value> {
    strict_json::object(std::str::from_utf8(line).ok()?)
}

fn text<'v>(entry: &'v Value, at: &str) -> &'v str {
    entry.pointer(at).and_then(Value::as_str).unwrap_or_default()
}

/// Why a turn that ended failed.
fn error(ended: &Value) -> Option<String> {
    let told = text(ended, "/error/message");
    (text(ended, "/reason") == "failed")
        .then(|| format!("{}: {}", text(ended, "/error/code"), if told.is_empty() { "no reason given" } else { told }))
}

fn note(offered: &mut Offered, others: Option<&Vec<String>>) {
    let Some(others) = others else {
        *offered = Offered::Untold;
        return;
    };
    match offered {
        Offered::Nothing if others.is_empty() => *offered = Offered::AllowedOnly,
        Offered::Nothing | Offered::AllowedOnly if !others.is_empty() => *offered = Offered::Others(others.clone()),
        _ => {}
    }
}

/// A stream that ends early has neither a reason to end nor a count.
fn is_cut(step: &Value) -> bool {
    let counted = step.get("usage").and_then(Value::as_object).into_iter().flatten();
    let total: u64 = counted.filter_map(|(_, count)| count.as_u64()).sum();
    step.get("finishReason").and_then(Value::as_str) == Some("end_turn")
        && step.get("rawFinishReason").is_none()
        && step.get("providerFinishReason").is_none()
        && total == 0
}

fn usage(entry: &Value) -> Usage {
    let count = |key: &str| entry.pointer(&format!("/usage/{key}")).and_then(Value::as_u64).unwrap_or(0);
    let cached = count("inputCacheRead");
    Usage {
        input_tokens: count("inputOther").saturating_add(cached).saturating_add(count("inputCacheCreation")),
        cached_input_tokens: cached,
        output_tokens: count("output"),
        cost: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALLOWED: &[&str] = &["Read", "Grep"];

    fn wire(lines: &[&str]) -> Wire {
        let mut reader = Reader::new(ALLOWED);
        lines.iter().for_each(|line| reader.line(Some(line.as_bytes())));
        reader.end()
    }

    fn snapshot(hash: &str, tools: &str) -> String {
        format!(r#"{{"type":"llm.tools_snapshot","hash":"{hash}","tools":[{tools}]}}"#)
    }

    #[test]
    fn what_was_offered_is_known_or_told_to_be_unknown() {
        let (reads, writes) =
            (snapshot("a", r#"{"name":"Read"}"#), snapshot("b", r#"{"name":"Read"},{"name":"Bash"}"#));
        let (of_a, of_b) = (r#"{"type":"llm.request","toolsHash":"a"}"#, r#"{"type":"llm.request","toolsHash":"b"}"#);
        let unnamed = snapshot("b", r#"{"description":"x"}"#);
        for (lines, expected) in [
            (vec![], Offered::Nothing),
            (vec![reads.as_str(), writes.as_str(), of_a], Offered::AllowedOnly),
            (vec![&reads, &writes, of_a, of_b, of_a], Offered::Others(vec!["Bash".to_owned()])),
            (vec![&reads, of_a, of_b], Offered::Untold),
            (vec![&writes, of_a, of_b], Offered::Untold),
            (vec![&reads, of_a, "{\"type\":\"llm.requ"], Offered::Untold),
            (vec![&unnamed, of_b], Offered::Others(vec!["?".to_owned()])),
            (vec![r#"{"type":"llm.request"}"#], Offered::Untold),
            (vec![&reads, of_a, r#"{"type":"llm.request","type":"x"}"#], Offered::Untold),
            (vec![&reads, &writes, r#"{"type":"llm.request","toolsHash":"b","toolsHash":"a"}"#], Offered::Untold),
            (vec![&reads, of_a, r#"{"n":1,"error":"x","tools":{},"event":7}"#, ""], Offered::AllowedOnly),
        ] {
            assert_eq!(wire(&lines).offered, expected, "{lines:?}");
        }
        let mut reader = Reader::new(ALLOWED);
        [Some(reads.as_bytes()), Some(of_a.as_bytes()), None].into_iter().for_each(|line| reader.line(line));
        assert_eq!(reader.end().offered, Offered::Untold, "a line that is too long may name tools");
    }

    #[test]
    fn what_is_kept_of_a_record_does_not_grow_with_it() {
        let mut reader = Reader::new(ALLOWED);
        for number in 0..2 * SNAPSHOTS_MAX {
            let tools = format!(r#"{{"name":"{}"}},"#, "x".repeat(1000)).repeat(2 * NAMED);
            let hash = if number % 2 == 0 { number.to_string() } else { "h".repeat(HASH_MAX + 1) };
            reader.line(Some(snapshot(&hash, tools.trim_end_matches(',')).as_bytes()));
        }
        let kept: usize = reader.snapshots.iter().map(|(hash, names)| hash.len() + names.concat().len()).sum();
        assert!(reader.snapshots.len() <= SNAPSHOTS_MAX && kept <= SNAPSHOTS_MAX * (HASH_MAX + NAMED * NAME_MAX));
        reader.line(Some(br#"{"type":"llm.request","toolsHash":"none"}"#));
        assert_eq!(reader.end().offered, Offered::Untold);
    }

    #[test]
    fn the_last_turn_counts() {
        let failed =
            r#"{"type":"turn.ended","reason":"failed","error":{"code":"provider.api_error","message":"500 no"}}"#;
        let (prompt, done) = (r#"{"type":"turn.prompt"}"#, r#"{"type":"turn.ended","reason":"completed"}"#);
        assert_eq!(wire(&[prompt, failed]).error.as_deref(), Some("provider.api_error: 500 no"));
        assert_eq!(wire(&[prompt, failed, prompt, done]).error, None);
        let used = r#"{"type":"usage.record","usage":{"inputOther":90,"output":20,"inputCacheRead":10,"inputCacheCreation":0}}"#;
        let usage = wire(&[prompt, used, used, prompt, used, used]).usage.unwrap();
        assert_eq!((usage.input_tokens, usage.cached_input_tokens, usage.output_tokens), (200, 20, 40));
        assert_eq!(last_turn(br#"{"lastTurnReason":"failed"}"#).as_deref(), Some("failed"));
        assert_eq!(last_turn(b"{"), None);
    }

    #[test]
    fn the_models_of_the_last_turn_are_named_once() {
        let asked = |model: &str| format!(r#"{{"type":"llm.request","toolsHash":"a","modelAlias":"{model}"}}"#);
        let (big, small, prompt) = (asked("big"), asked("small"), r#"{"type":"turn.prompt"}"#);
        assert_eq!(wire(&[prompt, &small, prompt, &big, &big, r#"{"type":"llm.request"}"#]).models, ["big"]);
        assert_eq!(wire(&[prompt, &big, &small]).models, ["big", "small"]);
        let many: Vec<String> = (0..1000).map(|n| asked(&format!("{n}{}", "x".repeat(1000)))).collect();
        let kept = wire(&many.iter().map(String::as_str).collect::<Vec<_>>()).models;
        assert!(kept.len() <= NAMED && kept.iter().all(|model| model.len() <= NAME_MAX));
    }

    #[test]
    fn an_answer_that_broke_off_is_known_by_what_it_lacks() {
        let step = |more: &str| {
            format!(
                r#"{{"type":"context.append_loop_event","event":{{"type":"step.end","finishReason":"end_turn"{more}}}}}"#
            )
        };
        assert!(wire(&[&step(r#","usage":{"inputOther":0,"output":0}"#)]).is_cut);
        assert!(!wire(&[&step(r#","usage":{"inputOther":9,"output":1}"#)]).is_cut);
        assert!(!wire(&[&step(r#","rawFinishReason":"stop""#)]).is_cut);
    }
}
