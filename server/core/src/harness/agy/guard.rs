//! What keeps a read-only job of agy from writing: a hook before each tool, and the proof that it ran.
//!
//! Plan mode does not gate shell commands (measured by others with 1.1.13), and hooks have failed to load without a
//! word. So the hook refuses every tool that is not known to read, and notes each call in a file of the job's home; a
//! job whose stream tells of a tool that the file does not, or whose file has nothing at all, fails. The tree's capture
//! is the last lock. The job could write the file itself: this is a guard against mistakes, no boundary.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::super::handed::utf8;
use super::super::{Evidence, PlannedFile, Reading};
use super::AGENT;
use super::settings::COMMANDS;
use crate::strict_json;
use crate::{AbsPath, Failure};

/// The tools that only read, by the names that are publicly known.
const READERS: &[&str] = &[
    "codebase_search",
    "find_by_name",
    "glob",
    "grep_search",
    "list_dir",
    "list_directory",
    "read_file",
    "search_in_file",
    "view_code_item",
    "view_content_chunk",
    "view_file",
    "view_file_outline",
];

/// The tool that runs commands.
const SHELL: &str = "run_command";

/// The folder of the hook in the job's home, its program, and its notes.
const FOLDER: &str = "guard";
const SCRIPT: &str = "hook.sh";
const NOTES: &str = "calls";

/// The longest notes that are read: a hook's input holds what the tool is to write.
const NOTES_MAX: u64 = 8 << 20;

/// The hook and its registration.
pub(super) fn files(home: &AbsPath, gemini: &AbsPath) -> Result<Vec<PlannedFile>, Failure> {
    let script = home.join(FOLDER).join(SCRIPT);
    let notes = home.join(FOLDER).join(NOTES);
    let (command, notes_path) = (quoted(utf8(AGENT, &script)?), quoted(utf8(AGENT, &notes)?));
    let hook = |event: &str| json!({"type": "command", "command": format!("/bin/sh {command} {event}"), "timeout": 30});
    let before_tools = json!([{"matcher": ".*", "hooks": [hook("tool")]}]);
    let before_models = json!([{"hooks": [hook("invocation")]}]);
    // Two shapes are described: events below the name of a hook, or below the word `hooks`. A hook of that name is
    // both.
    let registration = json!({"hooks": {"PreToolUse": before_tools, "PreInvocation": before_models}});
    Ok(vec![
        PlannedFile { path: script, contents: program(&notes_path) },
        // Of each turn its own: what an earlier one noted proves nothing.
        PlannedFile { path: notes, contents: String::new() },
        PlannedFile { path: gemini.join("config").join("hooks.json"), contents: registration.to_string() },
    ])
}

/// The hook's program. It knows no JSON: every `name` in the call must be one that reads, and every command line, if
/// the shell is called, one of those that are allowed. A quotation mark inside a text is escaped, so none can pose as a
/// name.
fn program(notes: &str) -> String {
    let readers = READERS.join("|");
    let commands: Vec<_> = COMMANDS.iter().map(|command| quoted(command)).collect();
    let commands = commands.join("|");
    format!(
        r#"#!/bin/sh
# Written by pactify for a read-only job.
PATH=/usr/bin:/bin
call=$(tr -d '\n')
printf '%s %s\n' "$1" "$call" >> {notes} || exit 2
refuse() {{
    printf '{{"decision":"deny","reason":"this job is read-only"}}\n'
    exit 0
}}
texts() {{
    printf '%s' "$call" | grep -o "\"$1\"[[:space:]]*:[[:space:]]*\"[^\"]*\"" | sed 's/^.*:[[:space:]]*"//; s/"$//'
}}
if test "$1" = tool; then
    names=$(texts name)
    test -n "$names" || refuse
    shell=
    while IFS= read -r name; do
        case $name in
        {readers}) ;;
        {SHELL}) shell=yes ;;
        *) refuse ;;
        esac
    done <<END
$names
END
    if test -n "$shell"; then
        lines=$(texts CommandLine)
        case $lines in
        {commands}) ;;
        *) refuse ;;
        esac
    fi
fi
printf '{{"decision":"allow"}}\n'
"#
    )
}

/// Whether the hook lets this tool pass, with this command line.
pub(super) fn allows(tool: &str, command: Option<&str>) -> bool {
    READERS.contains(&tool) || tool == SHELL && command.is_some_and(|command| COMMANDS.contains(&command))
}

/// Where the notes are.
pub(super) fn notes() -> Evidence {
    Evidence { path: vec![FOLDER.to_owned(), NOTES.to_owned()], limit: NOTES_MAX, reading: Reading::Whole }
}

/// What is wrong with the notes of a turn whose stream told of these tool calls; `None` where they prove that the hook
/// ran before each.
pub(super) fn doubt(notes: Option<&[u8]>, told: &BTreeMap<String, u32>) -> Option<String> {
    let Some(notes) = notes else { return Some("the notes of the hook are gone".to_owned()) };
    let mut noted: BTreeMap<String, u32> = BTreeMap::new();
    let mut any = false;
    for line in String::from_utf8_lossy(notes).lines() {
        let Some((event, call)) = line.split_once(' ') else { continue };
        any |= matches!(event, "tool" | "invocation");
        let call = strict_json::object(call);
        let name = call.as_ref().and_then(|call| call.pointer("/toolCall/name")).and_then(Value::as_str);
        if let (true, Some(name)) = (event == "tool", name) {
            *noted.entry(name.to_owned()).or_default() += 1;
        }
    }
    if !any {
        return Some("agy ran no hook at all".to_owned());
    }
    let missing = told.iter().find(|(tool, count)| noted.get(*tool).copied().unwrap_or_default() < **count);
    missing.map(|(tool, _)| format!("agy used {} without asking the hook", crate::display::headline(tool, 60)))
}

/// `text` as one word of a shell.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(tools: &[(&str, u32)]) -> BTreeMap<String, u32> {
        tools.iter().map(|(tool, count)| ((*tool).to_owned(), *count)).collect()
    }

    #[test]
    fn only_a_note_for_each_call_is_a_proof() {
        let notes = "invocation {}\ntool {\"toolCall\":{\"name\":\"view_file\",\"args\":{}}}\n";
        let check = |notes: Option<&str>, tools: &[(&str, u32)], doubt_names: Option<&str>| {
            let found = doubt(notes.map(str::as_bytes), &told(tools));
            assert_eq!(found.is_some(), doubt_names.is_some(), "{notes:?} {tools:?}: {found:?}");
            let names = doubt_names.unwrap_or_default();
            assert!(found.unwrap_or_default().contains(names), "{notes:?} {tools:?}");
        };
        check(Some(notes), &[("view_file", 1)], None);
        check(Some(notes), &[], None);
        check(Some("invocation {}\n"), &[], None);
        check(Some(notes), &[("view_file", 2)], Some("view_file"));
        check(Some(notes), &[("view_file", 1), ("run_command", 1)], Some("run_command"));
        check(Some("invocation {}\ntool torn"), &[("view_file", 1)], Some("view_file"));
        let twice = "tool {\"toolCall\":{\"name\":\"write_to_file\",\"name\":\"view_file\"}}\n";
        check(Some(twice), &[("view_file", 1)], Some("view_file"));
        check(Some(""), &[], Some("no hook at all"));
        check(Some("garbage\n"), &[], Some("no hook at all"));
        check(None, &[], Some("gone"));
    }

    #[test]
    fn a_path_is_one_word_of_the_shell() {
        assert_eq!(quoted("/a b/it's"), r"'/a b/it'\''s'");
    }
}
