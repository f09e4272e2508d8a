//! What a person who is asked has to see: the whole command, the diff of an edit, or the arguments of another tool.
//!
//! A request says little of that: kimi's has the first 50 characters of a command, and opencode's title of an edit is a
//! path. So what the call told before counts as well. What does not fit is counted, and nothing is pushed out of sight
//! by blanks ([`display::without_padding`]).

use std::fmt::Write as _;

use serde_json::Value;

use super::wire::{list, text};
use crate::change::hunk::{self, Group};
use crate::display::{head, neutral, neutral_block, without_padding};
use crate::strict_json;

/// How much is kept of what is asked for, in bytes.
const DETAIL_MAX: usize = 16 * 1024;
/// How much is kept of what a call says of itself, in bytes: it may be arguments, which are longer as JSON.
const SAID_MAX: usize = 2 * DETAIL_MAX;
/// The most lines of a side that are compared: it costs time, about which no agent decides. Longer ones are shown as a
/// whole.
const COMPARED_MAX: usize = 1000;
/// Unchanged lines around changed ones.
const CONTEXT: usize = 3;

/// What a call is about to do, as far as it was told.
#[derive(Clone, Debug, Default)]
pub(super) struct Deed {
    arguments: Part,
    has_command: bool,
    diffs: Part,
    said: Part,
}

/// The beginning of a text, and how many bytes are missing.
#[derive(Clone, Debug, Default)]
struct Part {
    text: String,
    more: usize,
}

impl Part {
    fn of(text: String, max: usize) -> Self {
        let more = text.len() - head(&text, max).len();
        // A text that is cut would keep the room of all of it.
        let text = if more > 0 { head(&text, max).to_owned() } else { text };
        Self { text, more }
    }
}

impl Deed {
    /// Takes a piece in which a call is told, or a request about it: a member that is there replaces what was known.
    pub(super) fn merge(&mut self, told: &Value) {
        if let Some(arguments) = told.get("rawInput").filter(|arguments| !arguments.is_null()) {
            self.take_arguments(arguments);
        }
        let content = list(told, "content");
        let diffs: Vec<_> = content.iter().filter(|part| text(part, "type") == "diff").map(diff).collect();
        if !diffs.is_empty() {
            self.diffs = Part::of(diffs.join("\n"), DETAIL_MAX);
        }
        let said = content.iter().find_map(|part| part.pointer("/content/text")?.as_str());
        if let Some(said) = said.filter(|said| !said.is_empty()) {
            self.said = Part::of(said.to_owned(), SAID_MAX);
        }
    }

    /// What `request` asks for, which comes after the pieces that were told; nothing where its title says it all.
    pub(super) fn detail(mut self, request: &Value, title: &str) -> Option<String> {
        let before = std::mem::take(&mut self.said);
        let command = self.has_command.then(|| self.arguments.clone());
        self.merge(request);
        // A request may be about a part of what was told (a folder that a command works in): both are shown.
        let command = command.filter(|_| !self.has_command);
        if self.arguments.text.is_empty() && before.text.trim_start().starts_with('{') {
            // kimi tells the arguments as a text that grows.
            match strict_json::value(&before.text) {
                Some(arguments) => self.take_arguments(&arguments),
                None => self.arguments = Part { text: shown(&before.text), ..before },
            }
        }
        let Self { arguments, has_command, diffs, said } = self;
        let mut parts = match (arguments.text.is_empty(), diffs.text.is_empty()) {
            (true, true) => vec![Part { text: shown(&said.text), ..said }],
            (false, true) => vec![arguments],
            (false, false) if has_command => vec![arguments, diffs],
            (_, false) => vec![diffs],
        };
        parts.splice(0..0, command);
        let more: usize = parts.iter().map(|part| part.more).sum();
        let texts: Vec<_> = parts.into_iter().map(|part| part.text).collect();
        let whole = Part::of(texts.join("\n\n"), DETAIL_MAX);
        let detail = whole.text.trim_end();
        match whole.more + more {
            0 => (!title.contains(detail)).then(|| detail.to_owned()),
            more => Some(format!("{detail}\n[… {more} bytes cut]")),
        }
    }

    fn take_arguments(&mut self, arguments: &Value) {
        if arguments.as_object().is_some_and(serde_json::Map::is_empty) {
            return;
        }
        let command = command(arguments);
        self.has_command = command.is_some();
        let text = match (command, arguments) {
            (Some(command), Value::Object(members)) if members.len() == 1 => shown(&command),
            (_, Value::Object(members)) => members.iter().map(|(name, value)| member(name, value)).collect(),
            (_, other) => shown(&other.to_string()),
        };
        self.arguments = Part::of(text, DETAIL_MAX);
    }
}

/// The command among a call's arguments.
pub(super) fn command(arguments: &Value) -> Option<String> {
    let found = ["command", "cmd", "script"].iter().find_map(|key| arguments.get(key))?;
    let words = || Some(found.as_array()?.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(" "));
    let command = found.as_str().map(str::to_owned).or_else(words)?;
    (!command.is_empty()).then_some(command)
}

/// `name: value`; the lines of a value are indented, so that none of them looks like another member.
fn member(name: &str, value: &Value) -> String {
    let value = shown(value.as_str().map_or_else(|| value.to_string(), str::to_owned).trim_end());
    let value = if value.contains('\n') { format!("\n{value}").replace('\n', "\n  ") } else { format!(" {value}") };
    format!("{}:{value}\n", neutral(name))
}

fn shown(text: &str) -> String {
    neutral_block(&without_padding(text)).into_owned()
}

/// A change that is told as the texts before and after it, or as parts of them: so its lines have no numbers.
fn diff(part: &Value) -> String {
    let path = neutral(text(part, "path")).into_owned();
    let (old, new) = (hunk::lines(text(part, "oldText")), hunk::lines(text(part, "newText")));
    let groups = match old.len().max(new.len()) {
        0..=COMPARED_MAX => hunk::groups(&old, &new, None),
        _ => vec![Group { old: 0..old.len(), new: 0..new.len() }],
    };
    let before = if part.get("oldText").is_some_and(Value::is_string) { path.as_str() } else { "/dev/null" };
    let mut diff = format!("--- {before}\n+++ {path}\n");
    let mut add = |sign: char, lines: &[&str]| {
        for line in lines {
            let _ = writeln!(diff, "{sign}{}", shown(line.trim_end_matches('\n')));
        }
    };
    let mut told = 0;
    for (index, group) in groups.iter().enumerate() {
        let from = group.old.start.saturating_sub(CONTEXT).max(told);
        if from > told || index == 0 {
            add('@', &["@"]);
        }
        add(' ', &old[from..group.old.start]);
        add('-', &old[group.old.clone()]);
        add('+', &new[group.new.clone()]);
        let next = groups.get(index + 1).map_or(old.len(), |next| next.old.start);
        told = next.min(group.old.end + CONTEXT);
        add(' ', &old[group.old.end..told]);
    }
    diff
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn detail(told: &[Value], request: &Value, title: &str) -> Option<String> {
        let mut deed = Deed::default();
        told.iter().for_each(|piece| deed.merge(piece));
        deed.detail(request, title)
    }

    fn said(words: &str) -> Value {
        json!([{"type": "content", "content": {"type": "text", "text": words}}])
    }

    #[test]
    fn what_is_asked_for_is_shown_whole_however_it_is_told() {
        let long = format!("echo {} && rm -rf ~", "a".repeat(500));
        let words = json!({"content": said("Requesting approval to Running: echo aaa…")});
        let edit =
            json!({"type": "diff", "path": "/t/a", "oldText": "a\nb\nc\nd\ne\nf\n", "newText": "a\nb\nc\nd\ne\nF\n"});
        for (told, request, expected) in [
            // opencode.
            (vec![], json!({"rawInput": {"command": long}}), Some(long.as_str())),
            (
                vec![],
                json!({"rawInput": {"filepath": "/t/a", "diff": "x"}, "content": [edit]}),
                Some("--- /t/a\n+++ /t/a\n@@\n c\n d\n e\n-f\n+F"),
            ),
            // kimi: the arguments grow as a text before it asks.
            (
                vec![
                    json!({"content": said("{\"comm")}),
                    json!({"content": said(&json!({"command": long}).to_string())}),
                ],
                words.clone(),
                Some(long.as_str()),
            ),
            (
                vec![json!({"content": said(r#"{"path": "/o", "content": "a\npath: /safe\n"}"#)})],
                words.clone(),
                Some("path: /o\ncontent:\n  a\n  path: /safe"),
            ),
            (vec![json!({"content": said("{\"command\": \"a")})], words.clone(), Some("{\"command\": \"a")),
            (vec![json!({"content": said("\n {\"command\": \"a b\"}")})], words.clone(), Some("a b")),
            // What a request says no more of counts as it was told.
            (vec![json!({"rawInput": {"command": long}})], json!({"rawInput": {}}), Some(long.as_str())),
            (
                vec![json!({"rawInput": {"command": "a b"}})],
                json!({"rawInput": {"folder": "/t"}}),
                Some("a b\n\nfolder: /t"),
            ),
            // One of a sub-agent's: nothing of it was told before, and its title says all that it says.
            (vec![], words, None),
            (vec![json!({"rawInput": {"command": "ls"}})], json!({}), None),
            (
                vec![],
                json!({"rawInput": {"command": "x"}, "content": [{"type": "diff", "path": "n", "newText": "1\n"}]}),
                Some("x\n\n--- /dev/null\n+++ n\n@@\n+1"),
            ),
            (vec![], json!({"rawInput": ["a", "\u{1b}[2J"]}), Some(r#"["a","\u001b[2J"]"#)),
            (vec![], json!({"rawInput": {"url": "http://a\u{202e}b"}}), Some("url: http://a\\u{202e}b")),
        ] {
            let title = "Requesting approval to Running: echo aaa…; also ls";
            assert_eq!(detail(&told, &request, title).as_deref(), expected, "{told:?} {request}");
        }
    }

    #[test]
    fn far_changes_are_apart_and_a_file_that_is_too_long_to_compare_is_shown_as_it_is() {
        let old: String = (0..20).map(|n| format!("{n}\n")).collect();
        let new = old.replace("2\n3", "2\nx\n3").replace("\n17\n", "\n");
        let change = |old: &str, new: &str| {
            diff(&json!({"type": "diff", "path": "p", "oldText": old, "newText": new})).replace('\n', "|")
        };
        assert_eq!(change(&old, &new), "--- p|+++ p|@@| 0| 1| 2|+x| 3| 4| 5|@@| 14| 15| 16|-17| 18| 19|");
        let long = "a\n".repeat(COMPARED_MAX + 1);
        assert!(change(&long, "b\n").ends_with("|-a|-a|+b|"));
    }

    #[test]
    fn what_is_cut_is_counted_and_padding_hides_nothing() {
        let request = |command: &str| json!({"rawInput": {"command": command}});
        let shown = detail(&[], &request(&"é".repeat(DETAIL_MAX)), "").unwrap();
        assert!(
            shown.ends_with(&format!("\n[… {DETAIL_MAX} bytes cut]")) && shown.len() < DETAIL_MAX + 40,
            "{}",
            shown.len()
        );
        let padded = format!("echo hi{}; rm -rf ~{}", " ".repeat(100_000), "\n".repeat(100_000));
        assert_eq!(
            detail(&[], &request(&padded), "").unwrap(),
            "echo hi [… 100000 blanks] ; rm -rf ~\n[… 100000 line breaks]"
        );
        // As it grew, it was more than is kept.
        let grown = json!({"command": "b".repeat(3 * DETAIL_MAX)}).to_string();
        let cut = grown.len() - DETAIL_MAX;
        let shown = detail(&[json!({"content": said(&grown)})], &json!({}), "").unwrap();
        assert!(shown.ends_with(&format!("\n[… {cut} bytes cut]")), "{}", &shown[DETAIL_MAX - 10..]);
    }
}
