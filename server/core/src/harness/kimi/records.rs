//! What kimi writes down about a turn, in its private home: `state.json` and the main agent's `wire.jsonl`.
//!
//! Over the protocol a turn that failed ends like one that did not, and says nothing. The records do: how the last turn
//! ended and why, what was offered to the model with each request, what was used. The job may have written to them, so
//! they are believed only where they take something back. Facts: kimi-code 2.1.0.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::job::event::Usage;

/// How the last turn ended, by `state.json`.
pub(super) fn last_turn(state: &[u8]) -> Option<String> {
    let state: Value = serde_json::from_slice(state).ok()?;
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

/// Reads the record of the main agent.
pub(super) fn read(wire: &[u8], allowed: &[&str]) -> Wire {
    let mut read = Wire::default();
    let mut snapshots: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for line in wire.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
        let Ok(entry) = serde_json::from_slice::<Value>(line) else {
            // A torn line may be one that names tools.
            read.offered = Offered::Untold;
            continue;
        };
        let text = |at: &str| entry.pointer(at).and_then(Value::as_str).unwrap_or_default();
        match text("/type") {
            "turn.prompt" => (read.error, read.is_cut, read.usage) = (None, false, None),
            "turn.ended" => {
                let told = text("/error/message");
                read.error = (text("/reason") == "failed").then(|| {
                    format!("{}: {}", text("/error/code"), if told.is_empty() { "no reason given" } else { told })
                });
            }
            "llm.tools_snapshot" => {
                snapshots.insert(text("/hash").to_owned(), names(&entry));
            }
            "llm.request" => note(&mut read.offered, snapshots.get(text("/toolsHash")), allowed),
            "usage.record" => read.usage = Some(usage(&entry).plus(read.usage.unwrap_or_default())),
            "context.append_loop_event" if text("/event/type") == "step.end" => {
                read.is_cut = is_cut(entry.get("event").unwrap_or(&Value::Null));
            }
            _ => {}
        }
    }
    read
}

fn names(snapshot: &Value) -> Vec<String> {
    let tools = snapshot.get("tools").and_then(Value::as_array).into_iter().flatten();
    tools.map(|tool| tool.get("name").and_then(Value::as_str).unwrap_or("?").to_owned()).collect()
}

fn note(offered: &mut Offered, tools: Option<&Vec<String>>, allowed: &[&str]) {
    let Some(tools) = tools else {
        *offered = Offered::Untold;
        return;
    };
    let others: Vec<String> = tools.iter().filter(|name| !allowed.contains(&name.as_str())).cloned().collect();
    match offered {
        Offered::Nothing if others.is_empty() => *offered = Offered::AllowedOnly,
        Offered::Nothing | Offered::AllowedOnly if !others.is_empty() => *offered = Offered::Others(others),
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

    const ALLOWED: [&str; 2] = ["Read", "Grep"];

    fn wire(lines: &[&str]) -> Wire {
        read(lines.join("\n").as_bytes(), &ALLOWED)
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
        ] {
            assert_eq!(wire(&lines).offered, expected, "{lines:?}");
        }
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
