//! One tool call of an agent, put together from the pieces in which it is told.
//!
//! Agents tell of a call in their own order: kimi first sends a name, then the arguments as they grow, then the parsed
//! ones; opencode sends the working directory before the command; others send everything at once. What is recorded is
//! the same for all: a command that started and ended, files that were touched, or a tool that was used.

use serde_json::Value;

use super::super::notices::cut;
use super::detail::{Deed, command};
use super::wire::{list, text};
use crate::display::{self, headline};
use crate::job::event::Known;

/// How much of a command's output is kept, from its end.
const OUTPUT_TAIL: usize = 4 * 1024;
/// The longest command that is recorded, in bytes.
const COMMAND_MAX: usize = 4 * 1024;
/// The most paths of one edit, and the longest of them in bytes: the capture knows them all.
const PATHS_MAX: usize = 100;
const PATH_MAX: usize = 1024;
const NAME_MAX: usize = 80;
/// How much of the beginning of an output is kept: what refuses a call says so there.
const OPENING: usize = 512;

/// A call, as far as it was told.
#[derive(Clone, Debug, Default)]
pub(super) struct Call {
    /// The first title: a tool's name with most agents, where later ones describe what it does.
    name: String,
    title: String,
    kind: Kind,
    status: Status,
    command: Option<String>,
    input: String,
    output: String,
    opening: String,
    exit_code: Option<i64>,
    paths: Vec<String>,
    deed: Deed,
    started: bool,
    ended: bool,
}

/// What a call is, as far as it matters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Kind {
    Execute,
    Edit,
    #[default]
    Other,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Status {
    #[default]
    Pending,
    InProgress,
    Completed,
    Failed,
}

impl Call {
    /// Takes a `tool_call` or a `tool_call_update`: a member that is there replaces what was known.
    pub(super) fn merge(&mut self, update: &Value) {
        let title = text(update, "title");
        if !title.is_empty() {
            self.title = cut(title, COMMAND_MAX);
            if self.name.is_empty() {
                self.name = headline(display::head(title, 4 * NAME_MAX), NAME_MAX);
            }
        }
        self.kind = match text(update, "kind") {
            "" => self.kind,
            "execute" => Kind::Execute,
            "edit" | "delete" | "move" => Kind::Edit,
            _ => Kind::Other,
        };
        self.status = match text(update, "status") {
            "pending" => Status::Pending,
            "in_progress" => Status::InProgress,
            "completed" => Status::Completed,
            "failed" => Status::Failed,
            _ => self.status,
        };
        if let Some(input) = update.get("rawInput") {
            self.input = cut(&input.to_string(), COMMAND_MAX);
            self.command = command(input).map(|command| cut(&command, COMMAND_MAX)).or(self.command.take());
        }
        self.deed.merge(update);
        self.read_output(update);
        self.read_paths(update);
    }

    fn read_output(&mut self, update: &Value) {
        let texts = list(update, "content").iter().filter_map(|part| part.pointer("/content/text")?.as_str());
        let shown: Vec<&str> = texts.filter(|text| !text.is_empty()).collect();
        let raw = update.get("rawOutput");
        let told = |raw: &'_ Value, key: &str| raw.get(key)?.as_str().map(str::to_owned);
        let whole = raw.and_then(|raw| {
            raw.as_str().map(str::to_owned).or_else(|| told(raw, "output")).or_else(|| told(raw, "error"))
        });
        if let Some(output) = whole.or_else(|| (!shown.is_empty()).then(|| shown.join("\n"))) {
            display::head(&output, OPENING).clone_into(&mut self.opening);
            self.output = display::tail(&output, OUTPUT_TAIL).to_owned();
        }
        let codes = ["/metadata/exit", "/exit_code", "/exitCode", "/metadata/exitCode"];
        let code = raw.and_then(|raw| codes.iter().find_map(|at| raw.pointer(at)?.as_i64()));
        self.exit_code = code.or(self.exit_code);
    }

    fn read_paths(&mut self, update: &Value) {
        let diffs = list(update, "content").iter().filter(|part| text(part, "type") == "diff");
        for path in
            diffs.chain(list(update, "locations")).map(|part| text(part, "path")).filter(|path| !path.is_empty())
        {
            let path = cut(path, PATH_MAX);
            if self.paths.len() < PATHS_MAX && !self.paths.contains(&path) {
                self.paths.push(path);
            }
        }
    }

    /// What is to be recorded now; `is_first` for the piece that announces the call.
    pub(super) fn report(&mut self, id: &str, is_first: bool, tree: &str) -> Vec<Known> {
        let mut records = Vec::new();
        if self.ended {
            return records;
        }
        self.ended = self.is_over();
        if self.kind != Kind::Execute {
            if self.ended {
                records.push(self.used(tree));
            }
            return records;
        }
        let item = cut(id, NAME_MAX);
        // Some agents never send arguments: theirs is the title, from the beginning.
        let has_no_more = self.ended || (is_first && self.status == Status::InProgress);
        if !self.started && (self.command.is_some() || has_no_more) {
            self.started = true;
            records.push(Known::CommandStarted { item: item.clone(), command: self.shown_command() });
        }
        if self.ended {
            records.push(Known::CommandEnded { item, exit_code: self.exit_code, tail: self.output.clone() });
        }
        records
    }

    fn used(&self, tree: &str) -> Known {
        if self.kind == Kind::Edit && self.has_succeeded() && !self.paths.is_empty() {
            let below = |path: &String| path.strip_prefix(tree).unwrap_or(path).to_owned();
            return Known::FilesTouched { paths: self.paths.iter().map(below).collect() };
        }
        Known::ToolUsed { tool: self.name().to_owned(), failed: self.status == Status::Failed }
    }

    fn shown_command(&self) -> String {
        cut(self.command.as_deref().unwrap_or(&self.title), COMMAND_MAX)
    }

    /// The tool's name.
    pub(super) fn name(&self) -> &str {
        if self.name.is_empty() { "tool" } else { &self.name }
    }

    /// The command that it runs; empty when it runs none, or has not said so.
    pub(super) fn command(&self) -> &str {
        self.command.as_deref().unwrap_or_default()
    }

    /// What it is about to do.
    pub(super) fn deed(&self) -> &Deed {
        &self.deed
    }

    pub(super) fn kind(&self) -> Kind {
        self.kind
    }

    /// The beginning of what came of it.
    pub(super) fn opening(&self) -> &str {
        &self.opening
    }

    /// What tells this call apart from another one.
    pub(super) fn signature(&self) -> (String, &str) {
        (format!("{}\0{}\0{}", self.name, self.input, self.shown_command()), &self.output)
    }

    pub(super) fn is_over(&self) -> bool {
        matches!(self.status, Status::Completed | Status::Failed)
    }

    /// Whether the agent did it, whatever came of that.
    pub(super) fn was_done(&self) -> bool {
        self.status == Status::Completed
    }

    pub(super) fn has_succeeded(&self) -> bool {
        self.was_done() && self.exit_code.is_none_or(|code| code == 0)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn told(updates: &[Value]) -> Vec<Known> {
        let mut call = Call::default();
        let mut records = Vec::new();
        for (index, update) in updates.iter().enumerate() {
            call.merge(update);
            records.extend(call.report("c1", index == 0, "/tree/"));
        }
        records
    }

    #[test]
    fn a_call_is_recorded_alike_however_it_is_told() {
        let started = |command: &str| Known::CommandStarted { item: "c1".into(), command: command.into() };
        let ended = |exit_code, tail: &str| Known::CommandEnded { item: "c1".into(), exit_code, tail: tail.into() };
        let used = |tool: &str, failed| Known::ToolUsed { tool: tool.into(), failed };
        let said = |words: &str| json!([{"type": "content", "content": {"type": "text", "text": words}}]);
        for (updates, expected) in [
            (
                vec![
                    json!({"title": "Bash", "kind": "execute", "status": "pending", "content": said("")}),
                    json!({"status": "in_progress", "content": said("{\"comm")}),
                    json!({"title": "Running: ls", "status": "in_progress", "rawInput": {"command": "ls"}}),
                    json!({"status": "completed", "rawOutput": "a\n"}),
                    json!({"status": "completed", "rawOutput": "again"}),
                ],
                vec![started("ls"), ended(None, "a\n")],
            ),
            (
                vec![
                    json!({"title": "bash", "kind": "execute", "rawInput": {"cwd": "/tree"}}),
                    json!({"status": "in_progress", "rawInput": {"command": ["ls", "-l"]}}),
                    json!({"status": "completed", "rawOutput": {"output": "b", "metadata": {"exit": 2}}}),
                ],
                vec![started("ls -l"), ended(Some(2), "b")],
            ),
            (
                vec![
                    json!({"title": "ls [cwd]", "kind": "execute", "status": "in_progress"}),
                    json!({"status": "failed"}),
                ],
                vec![started("ls [cwd]"), ended(None, "")],
            ),
            (
                vec![json!({"title": "x", "kind": "execute", "status": "completed", "content": said("out")})],
                vec![started("x"), ended(None, "out")],
            ),
            (
                vec![
                    json!({"title": "edit", "kind": "edit", "locations": [{"path": "/tree/a"}, {"path": "/else"}]}),
                    json!({"status": "completed", "content": [{"type": "diff", "path": "/tree/a", "newText": "x"}]}),
                ],
                vec![Known::FilesTouched { paths: vec!["a".into(), "/else".into()] }],
            ),
            (
                vec![json!({"title": "edit", "kind": "edit", "status": "failed", "locations": [{"path": "/tree/a"}]})],
                vec![used("edit", true)],
            ),
            (
                vec![json!({"title": "Read\u{1b}[2K", "kind": "novel", "status": "completed"})],
                vec![used("Read\\u{1b}[2K", false)],
            ),
            (vec![json!({"status": "completed"})], vec![used("tool", false)]),
            (vec![json!({"title": "edit", "kind": "edit", "status": "sideways"})], vec![]),
        ] {
            assert_eq!(told(&updates), expected, "{updates:?}");
        }
    }
}
