//! The items of codex's event stream, read loosely: what is missing or of a wrong type counts as empty.

use serde_json::Value;

use super::{COMMAND_MAX, OUTPUT_TAIL, cut, text};
use crate::display;
use crate::job::event::Known;

/// The most paths of one edit, and the longest of them in bytes: the capture knows them all.
const PATHS_MAX: usize = 100;
const PATH_MAX: usize = 1024;
const NAME_MAX: usize = 80;

/// One item.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Item<'v> {
    Message(&'v str),
    Reasoning(&'v str),
    Command(Command<'v>),
    Files {
        changes: &'v [Value],
        failed: bool,
    },
    /// An MCP tool, a sub-agent, a web search, a to-do list.
    Tool {
        tool: String,
        failed: bool,
    },
    /// Called an error by codex, but no failure: configuration, models, deprecations.
    Warning(&'v str),
    Unknown(&'v str),
}

/// A command of the agent.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Command<'v> {
    item: &'v str,
    command: &'v str,
    output: &'v str,
    exit_code: Option<i64>,
    status: &'v str,
}

/// Reads one `item` object.
pub(super) fn read(item: &Value) -> Item<'_> {
    let failed = matches!(text(item, "status"), "failed" | "declined");
    let tool = |name: String| Item::Tool { tool: display::headline(&name, NAME_MAX), failed };
    match text(item, "type") {
        "agent_message" => Item::Message(text(item, "text")),
        "reasoning" => Item::Reasoning(text(item, "text")),
        "command_execution" => Item::Command(Command {
            item: text(item, "id"),
            command: text(item, "command"),
            output: text(item, "aggregated_output"),
            exit_code: item.get("exit_code").and_then(Value::as_i64),
            status: text(item, "status"),
        }),
        "file_change" => {
            let changes = item.get("changes").and_then(Value::as_array);
            Item::Files { changes: changes.map_or(&[], Vec::as_slice), failed }
        }
        "mcp_tool_call" => tool(format!("{}/{}", text(item, "server"), text(item, "tool"))),
        "collab_tool_call" => tool(text(item, "tool").to_owned()),
        name @ ("web_search" | "todo_list") => tool(name.to_owned()),
        "error" => Item::Warning(text(item, "message")),
        other => Item::Unknown(other),
    }
}

/// The paths of an edit: relative where they lie in the tree, as codex names them elsewhere.
pub(super) fn touched(changes: &[Value], tree: &str) -> Known {
    let paths = changes.iter().map(|change| text(change, "path")).filter(|path| !path.is_empty());
    let shown = paths.map(|path| cut(path.strip_prefix(tree).unwrap_or(path), PATH_MAX));
    Known::FilesTouched { paths: shown.take(PATHS_MAX).collect() }
}

impl Command<'_> {
    pub(super) fn started(&self) -> Known {
        Known::CommandStarted { item: self.id(), command: cut(self.command, COMMAND_MAX) }
    }

    pub(super) fn ended(&self) -> Known {
        let tail = display::tail(self.output, OUTPUT_TAIL).to_owned();
        Known::CommandEnded { item: self.id(), exit_code: self.exit_code, tail }
    }

    /// What tells it apart from another one.
    pub(super) fn signature(&self) -> (&str, &str) {
        (self.command, self.output)
    }

    pub(super) fn succeeded(&self) -> bool {
        self.status == "completed" && self.exit_code.is_none_or(|code| code == 0)
    }

    /// Whether the sandbox never started: then its own complaint is all the output there is.
    pub(super) fn sandbox_failed(&self) -> bool {
        !self.succeeded() && self.output.starts_with("bwrap: ")
    }

    /// Whether it was not run at all.
    pub(super) fn was_declined(&self) -> bool {
        self.status == "declined"
    }

    fn id(&self) -> String {
        cut(self.item, NAME_MAX)
    }
}
