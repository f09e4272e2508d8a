//! The understanding of agy's stream: `init`, `step_update` and one `result` for each turn, a JSON object a line.
//!
//! The task is the one line that we send; after the result its input is closed, which ends it. Everything is read
//! loosely and with bounds; what a turn came to is decided in [`super::verdict`].

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use serde_json::{Value, json};

use super::super::handed::is_plain;
use super::super::notices::{Notices, cut, one_line};
use super::super::repeats::Repeats;
use super::super::tail::Tail;
use super::super::{Conclusion, Driver, Evidence, Request, Step};
use super::guard;
use super::verdict::{self, TurnResult};
use crate::job::access::Access;
use crate::job::event::{ExitRecord, Known, Usage};
use crate::strict_json;

/// The longest message that is recorded, in bytes.
const MESSAGE_MAX: usize = 16 * 1024;
/// The longest final message: in a read-only job it is the result.
const FINAL_MAX: usize = 64 * 1024;
/// The longest command that is recorded, in bytes.
const COMMAND_MAX: usize = 4 * 1024;
/// The most steps that are open at once; more than one at a time is rare.
const STEPS_MAX: usize = 1_000;

/// Drives one agy process, for one turn.
#[derive(Debug)]
pub(super) struct StreamDriver {
    access: Access,
    task: String,
    tree: String,
    model: Option<String>,
    /// The model that it uses, where that is another one.
    other_model: Option<String>,
    asked: Option<String>,
    session: Option<String>,
    was_replaced: bool,
    began: bool,
    /// Steps that are not done: their words so far.
    open: BTreeMap<u64, String>,
    /// How often each tool was used.
    used: BTreeMap<String, u32>,
    result: Option<TurnResult>,
    results: u32,
    doubt: Option<String>,
    repeats: Repeats,
    confession: Option<String>,
    notices: Notices,
    stderr: Tail,
}

impl StreamDriver {
    pub(super) fn new(request: &Request<'_>, access: Access) -> Self {
        let brief = request.brief.as_str();
        // Only in plan mode can it not be told that there are no commands in a task.
        let is_command = access == Access::ReadOnly && brief.trim_start().starts_with('/');
        Self {
            access,
            task: if is_command { format!("The task:\n\n{brief}") } else { brief.to_owned() },
            tree: request.places.tree.as_path().to_string_lossy().trim_end_matches('/').to_owned(),
            model: request.model.or(request.settings.model.as_deref()).map(str::to_owned),
            other_model: None,
            asked: request.resume.map(|resume| resume.session.to_owned()),
            session: None,
            was_replaced: false,
            began: false,
            open: BTreeMap::new(),
            used: BTreeMap::new(),
            result: None,
            results: 0,
            doubt: None,
            repeats: Repeats::default(),
            confession: None,
            notices: Notices::default(),
            stderr: Tail::default(),
        }
    }

    fn event(&mut self, event: &Value) -> Vec<Step> {
        let kind = text(event, "event");
        let body = event.get(kind).unwrap_or(event);
        let named = [event, body].into_iter().map(|value| text(value, "conversation_id")).find(|id| !id.is_empty());
        let mut steps = named.map(|id| self.session(id, text(body, "model"))).unwrap_or_default();
        steps.extend(match kind {
            "init" => self.init(body),
            "step_update" => self.step(body),
            "result" => self.ended(body),
            other => {
                let note = format!(
                    "agy sent an event that this pactify does not know: {:?}",
                    crate::display::headline(other, 60)
                );
                self.notices.once("agy-unknown-event", &note)
            }
        });
        steps.extend(self.repeats.end());
        steps
    }

    fn session(&mut self, id: &str, model: &str) -> Vec<Step> {
        if self.session.as_deref() == Some(id) {
            return Vec::new();
        }
        if !is_plain(id) {
            return self.notices.once("agy-session-unusable", "agy named no conversation that could be resumed");
        }
        self.was_replaced |= self.asked.as_deref().is_some_and(|asked| asked != id);
        self.session = Some(id.to_owned());
        let model = Some(one_line(model)).filter(|model| !model.is_empty());
        vec![Step::Record(Known::SessionStarted { session: id.to_owned(), model })]
    }

    fn init(&mut self, init: &Value) -> Vec<Step> {
        self.began = true;
        let mut steps = Vec::new();
        let (actual, mode) = (text(init, "model"), text(init, "permission_mode").to_lowercase());
        let is_other = |asked: &&str| !actual.is_empty() && !is_same_model(asked, actual);
        if let Some(asked) = self.model.as_deref().filter(is_other) {
            self.other_model = Some(one_line(actual));
            let note = format!("{asked} was asked for, and agy uses {actual}");
            steps.extend(self.notices.once("model-differs", &note));
        }
        let cwd = text(init, "cwd").trim_end_matches('/');
        if !cwd.is_empty() && cwd != self.tree {
            steps.extend(self.notices.once("agy-works-elsewhere", &format!("agy says that it works in {cwd}")));
        }
        let allows = ["always", "proceed", "skip", "bypass", "accept"].iter().any(|word| mode.contains(word));
        if self.access == Access::ReadOnly && allows {
            self.doubt.get_or_insert(format!("agy says that its permissions are {:?}", one_line(&mode)));
        }
        steps
    }

    fn step(&mut self, step: &Value) -> Vec<Step> {
        let index = step.get("step_index").and_then(Value::as_u64).unwrap_or_default();
        let is_over = matches!(text(step, "state"), "DONE" | "ERROR");
        let mut steps: Vec<Step> = step.get("usage").and_then(usage).into_iter().collect();
        match text(step, "step_type") {
            "agent_response" => steps.extend(self.words(index, text(step, "text_delta"), is_over)),
            "user_input" => {}
            _ if step.get("tool_info").is_some() || step.get("tool_name").is_some() => {
                steps.extend(self.tool(index, step, is_over));
            }
            _ => {}
        }
        steps
    }

    fn words(&mut self, index: u64, piece: &str, is_over: bool) -> Vec<Step> {
        let is_room = self.open.len() < STEPS_MAX;
        let mut words = match self.open.entry(index) {
            Entry::Occupied(open) => open.remove(),
            Entry::Vacant(_) => String::new(),
        };
        let room = (FINAL_MAX + 1).saturating_sub(words.len());
        words.push_str(crate::display::head(piece, room));
        if !is_over {
            if is_room {
                self.open.insert(index, words);
            }
            return Vec::new();
        }
        if words.trim().is_empty() {
            Vec::new()
        } else {
            self.repeats.words(&words);
            vec![Step::Record(Known::Message { text: cut(&words, MESSAGE_MAX) })]
        }
    }

    fn tool(&mut self, index: u64, step: &Value, is_over: bool) -> Vec<Step> {
        let info = step.get("tool_info").unwrap_or(&Value::Null);
        let tool = [text(step, "tool_name"), text(info, "name")].into_iter().find(|name| !name.is_empty());
        let tool = one_line(tool.unwrap_or("a tool"));
        let command = info.pointer("/parameters/CommandLine").and_then(Value::as_str);
        let item = format!("step-{index}");
        if !is_over {
            let is_new = self.open.len() < STEPS_MAX && self.open.insert(index, String::new()).is_none();
            let started = command.filter(|_| is_new).map(|command| cut(command, COMMAND_MAX));
            return started.map(|command| Step::Record(Known::CommandStarted { item, command })).into_iter().collect();
        }
        let was_open = self.open.remove(&index).is_some();
        let has_failed = text(step, "state") == "ERROR" || info.get("error").is_some_and(|error| !error.is_null());
        let parameters = info.get("parameters").map(Value::to_string).unwrap_or_default();
        // What a step came to is not told: the same one may be a look at something that goes on.
        let failure = || info.get("error").map(Value::to_string).unwrap_or_default();
        let result = if has_failed { failure() } else { item.clone() };
        self.repeats.work(&format!("{tool}\0{parameters}"), &result);
        // A command may have done something before it failed.
        if !has_failed || command.is_some() {
            let count = self.used.entry(tool.clone()).or_default();
            *count = count.saturating_add(1);
        }
        if !has_failed && self.access == Access::ReadOnly && !guard::allows(&tool, command) {
            self.doubt.get_or_insert(format!("agy used {tool}, which the hook refuses"));
        }
        let Some(command) = command else { return vec![Step::Record(Known::ToolUsed { tool, failed: has_failed })] };
        let mut steps = Vec::new();
        if !was_open {
            steps.push(Step::Record(Known::CommandStarted { item: item.clone(), command: cut(command, COMMAND_MAX) }));
        }
        steps.push(Step::Record(Known::CommandEnded { item, exit_code: None, tail: one_line(text(info, "error")) }));
        steps
    }

    fn ended(&mut self, result: &Value) -> Vec<Step> {
        self.results = self.results.saturating_add(1);
        let denied = result.get("denied_actions").and_then(Value::as_array).map_or(0, Vec::len);
        let error = match result.get("error") {
            None | Some(Value::Null) => None,
            Some(Value::String(words)) => Some(words.clone()).filter(|words| !words.is_empty()),
            Some(other) => Some(other.to_string()),
        };
        let next = TurnResult {
            status: cut(text(result, "status"), 100),
            response: cut(text(result, "response"), FINAL_MAX),
            error: error.map(|words| cut(&words, MESSAGE_MAX)),
            denied,
        };
        // Of several the first that failed counts.
        if self.result.as_ref().is_none_or(|before| before.status == "SUCCESS") {
            self.result = Some(next);
        }
        let mut steps: Vec<Step> = result.get("usage").and_then(usage).into_iter().collect();
        if denied > 0 {
            let note = format!("agy refused its agent {denied} action(s) that would have needed a permission");
            steps.extend(self.notices.once("agy-actions-refused", &note));
        }
        steps.push(Step::CloseInput);
        steps
    }
}

impl Driver for StreamDriver {
    fn on_start(&mut self) -> Vec<Step> {
        let content = json!([{"type": "text", "text": self.task}]);
        let task = json!({"event": "user", "message": {"role": "user", "content": content}});
        let note = "agy is supported experimentally; it reads GEMINI.md and .agents/ of the repository, and nothing \
                    switches that off";
        let mut steps = self.notices.once("agy-experimental", note);
        steps.push(Step::Send(task.to_string()));
        steps
    }

    fn on_line(&mut self, line: &str) -> Vec<Step> {
        if line.trim().is_empty() {
            return Vec::new();
        }
        match strict_json::object(line) {
            Some(event) => self.event(&event),
            None => {
                let note = format!("agy printed something that is no event: {}", crate::display::headline(line, 100));
                self.notices.once("agy-output-unreadable", &note)
            }
        }
    }

    fn is_in_pieces(&self, line: &str) -> bool {
        let event = strict_json::object(line).unwrap_or_default();
        !matches!(text(&event, "event"), "init" | "result")
    }

    fn on_stderr(&mut self, line: &str) -> Vec<Step> {
        self.stderr.push(line);
        if verdict::confesses(line, self.access) {
            self.confession.get_or_insert_with(|| one_line(line));
            return self.notices.once("agy-warning", line);
        }
        Vec::new()
    }

    fn evidence(&self) -> Vec<Evidence> {
        if self.access == Access::ReadOnly { vec![guard::notes()] } else { Vec::new() }
    }

    fn on_evidence(&mut self, _evidence: &Evidence, contents: Option<&[u8]>) -> Vec<Step> {
        if let Some(doubt) = guard::doubt(contents, &self.used) {
            self.doubt.get_or_insert(doubt);
        }
        Vec::new()
    }

    fn on_exit(&mut self, exit: ExitRecord) -> Conclusion {
        // A turn that never began used no tool: why it did not begin is what people should read.
        let doubt = self.doubt.as_deref().filter(|_| self.began || self.result.is_some());
        let verdict = verdict::of(&verdict::Turn {
            access: self.access,
            exit,
            result: self.result.as_ref(),
            results: self.results,
            was_replaced: self.was_replaced,
            is_endless: self.repeats.is_endless(),
            other_model: self.model.as_deref().zip(self.other_model.as_deref()),
            doubt,
            worked: !self.used.is_empty(),
            stderr: &self.stderr,
            confession: self.confession.as_deref(),
        });
        let response = self.result.take().map(|result| result.response);
        Conclusion { verdict, final_message: response.filter(|words| !words.trim().is_empty()) }
    }
}

/// It is not known whether it names a model as it is asked for, or as people read it: `gemini-3-pro` and `Gemini 3
/// Pro`.
fn is_same_model(asked: &str, actual: &str) -> bool {
    let plain =
        |name: &str| name.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect::<String>();
    // People read how much it thinks, too: `Gemini 3 Pro (High)`.
    let name = actual.split_once(" (").map_or(actual, |(name, _)| name);
    [actual, name].into_iter().any(|actual| plain(asked) == plain(actual))
}

fn usage(found: &Value) -> Option<Step> {
    let count = |keys: [&str; 2]| keys.into_iter().find_map(|key| found.get(key)?.as_u64());
    let input = count(["input_tokens", "prompt_tokens"]);
    let output = count(["output_tokens", "completion_tokens"]);
    let total = count(["total_tokens", "total"]);
    let input = input.or_else(|| total.map(|total| total.saturating_sub(output.unwrap_or_default())))?;
    let usage = Usage {
        input_tokens: input,
        cached_input_tokens: count(["cached_tokens", "cached_input_tokens"]).unwrap_or_default(),
        output_tokens: output.unwrap_or_default(),
        cost: None,
    };
    Some(Step::Record(Known::Usage { usage }))
}

/// The text at `key`; empty when it is missing or no text.
fn text<'v>(value: &'v Value, key: &str) -> &'v str {
    value.get(key).and_then(Value::as_str).unwrap_or_default()
}
