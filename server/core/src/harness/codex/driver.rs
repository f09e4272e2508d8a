//! The understanding of `codex exec --json`: one event per line, a last word at the exit.
//!
//! Lines are parsed to loose JSON first (`web_search` items repeat a key, which a typed parse refuses) and read with
//! bounds; an event of an unknown kind is told once and otherwise ignored. A turn is complete when codex says so
//! *and* exits with 0 *and* answered *and* did not have its last edit or command refused; whether it did anything is
//! for the capture to see. Failures are named in [`super::failure`].

mod item;
mod notice;

use serde_json::Value;

use super::super::failure::endless;
use super::super::notices::cut;
use super::super::repeats::Repeats;
use super::super::tail::Tail;
use super::super::{Conclusion, Driver, Request, Step};
use super::AGENT;
use super::failure::{self, Context};
use super::stderr::Line;
use crate::display::{self, head};
use crate::job::access::Access;
use crate::job::event::{ExitRecord, Known, Usage};
use crate::job::outcome::Verdict;
use crate::strict_json;
use item::Item;
use notice::Notices;

/// The longest message that is recorded, in bytes.
const MESSAGE_MAX: usize = 16 * 1024;
/// The longest final message: in a read-only job it is the result.
const FINAL_MAX: usize = 64 * 1024;
/// How much of a command's output is kept, from its end.
const OUTPUT_TAIL: usize = 4 * 1024;
/// The longest command that is recorded, in bytes.
const COMMAND_MAX: usize = 4 * 1024;

/// Drives one `codex exec` process.
#[derive(Debug)]
pub(super) struct ExecDriver {
    context: Context,
    access: Access,
    /// Whether it went on with another session than the one it was asked for.
    was_replaced: bool,
    used_before: Usage,
    /// The tree with a slash at its end: what is cut off the paths that codex names.
    tree: String,
    turn: Turn,
    final_message: Option<String>,
    /// The last `error` event, until something shows whether it was the end.
    trouble: Option<Trouble>,
    work: Work,
    /// The last step of the agent that codex did not let it take, until another one succeeds.
    refusal: Option<Refusal>,
    repeats: Repeats,
    notices: Notices,
    stderr: Tail,
}

/// A step of the agent that was not taken. A command that ran and failed is none: that is for the agent to judge.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Refusal {
    /// The sandbox could not start it.
    Sandbox,
    /// It was refused, for this reason.
    Step(String),
}

/// Where the turn stands, by codex's own words.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
enum Turn {
    #[default]
    Open,
    Completed,
    Failed(String),
}

/// An `error` event, which may or may not be the end.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Trouble {
    /// codex tries again; people were told.
    Retrying(String),
    /// Nothing more was said.
    Untold(String),
}

/// What became of the commands and edits of the turn.
#[derive(Clone, Copy, Debug, Default)]
struct Work {
    succeeded: u32,
    failed: u32,
    /// Of the failed ones, those that the sandbox could not even start.
    unsandboxed: u32,
}

impl ExecDriver {
    pub(super) fn new(request: &Request<'_>, access: Access) -> Self {
        let tree = request.places.tree.as_path().to_string_lossy();
        Self {
            context: Context::of(request),
            access,
            was_replaced: false,
            used_before: request.resume.map(|resume| resume.used).unwrap_or_default(),
            tree: format!("{}/", tree.trim_end_matches('/')),
            turn: Turn::Open,
            final_message: None,
            trouble: None,
            work: Work::default(),
            refusal: None,
            repeats: Repeats::default(),
            notices: Notices::default(),
            stderr: Tail::default(),
        }
    }

    fn event(&mut self, event: &Value) -> Vec<Step> {
        let kind = text(event, "type");
        let mut steps = match kind {
            "turn.failed" | "error" => Vec::new(),
            // The run goes on after it: the error was no end, but people should know of it.
            _ => match self.trouble.take() {
                Some(Trouble::Untold(message)) => self.notices.warning(&message),
                _ => Vec::new(),
            },
        };
        match kind {
            "thread.started" => steps.extend(self.session(text(event, "thread_id"))),
            "turn.started" => self.turn = Turn::Open,
            "turn.completed" => {
                self.turn = Turn::Completed;
                steps.extend(self.usage(event.get("usage")));
                steps.extend(self.notices.about(self.work));
            }
            "turn.failed" => {
                let message = event.pointer("/error/message").and_then(Value::as_str);
                let message = message.or(self.trouble.as_ref().map(Trouble::message)).unwrap_or_default();
                self.turn = Turn::Failed(head(message, MESSAGE_MAX).to_owned());
            }
            "error" => steps.extend(self.error(text(event, "message"))),
            "item.started" | "item.updated" | "item.completed" => {
                if let Some(found) = event.get("item") {
                    steps.extend(self.item(kind, found));
                }
            }
            other => steps.extend(self.notices.unknown("event", other)),
        }
        steps.extend(self.repeats.end());
        steps
    }

    fn session(&mut self, id: &str) -> Vec<Step> {
        let plain = |b: u8| b.is_ascii_alphanumeric() || b == b'-' || b == b'_';
        if !(1..=128).contains(&id.len()) || id.starts_with('-') || !id.bytes().all(plain) {
            return self.notices.once("codex-session-unusable", "codex named no session that could be resumed");
        }
        if self.context.session.as_deref().is_some_and(|asked| asked != id) {
            self.was_replaced = true;
            // The count of the other session has nothing to do with this one's.
            self.used_before = Usage::default();
        }
        self.context.session = Some(id.to_owned());
        vec![Step::Record(Known::SessionStarted { session: id.to_owned(), model: None })]
    }

    /// codex counts over the whole thread; the record counts over the attempt.
    fn usage(&self, usage: Option<&Value>) -> Option<Step> {
        let usage = usage?;
        let count = |key: &str, before: u64| Some(usage.get(key)?.as_u64()?.saturating_sub(before));
        let input = count("input_tokens", self.used_before.input_tokens);
        let output = count("output_tokens", self.used_before.output_tokens);
        if input.is_none() && output.is_none() {
            return None;
        }
        let cached = count("cached_input_tokens", self.used_before.cached_input_tokens);
        let usage = Usage {
            input_tokens: input.unwrap_or_default(),
            cached_input_tokens: cached.unwrap_or_default(),
            output_tokens: output.unwrap_or_default(),
            cost: None,
        };
        Some(Step::Record(Known::Usage { usage }))
    }

    /// An `error` event is not the end: codex reports each of its retries as one.
    fn error(&mut self, message: &str) -> Vec<Step> {
        let message = head(message, MESSAGE_MAX);
        if let Some(attempt) = message.strip_prefix("Reconnecting... ") {
            self.trouble = Some(Trouble::Retrying(reason(attempt).to_owned()));
            return self.notices.retry(message);
        }
        self.trouble = Some(Trouble::Untold(message.to_owned()));
        Vec::new()
    }

    fn item(&mut self, kind: &str, found: &Value) -> Vec<Step> {
        let record = |known| vec![Step::Record(known)];
        match (kind, item::read(found)) {
            (_, Item::Unknown(name)) => self.notices.unknown("item", name),
            ("item.started", Item::Command(command)) => record(command.started()),
            ("item.completed", Item::Command(command)) => {
                self.work.count(command.succeeded(), command.sandbox_failed());
                if command.succeeded() {
                    self.refusal = None;
                } else if command.sandbox_failed() {
                    self.refusal = Some(Refusal::Sandbox);
                } else if command.was_declined() {
                    self.refuse("a command was declined");
                }
                let (what, result) = command.signature();
                self.repeats.work(what, result);
                record(command.ended())
            }
            ("item.completed", Item::Files { changes, failed }) => {
                self.work.count(!failed, false);
                match failed {
                    true => self.refuse("an edit could not be made"),
                    false => self.refusal = None,
                }
                record(if failed { failed_edit() } else { item::touched(changes, &self.tree) })
            }
            ("item.completed", Item::Tool { tool, failed }) => record(Known::ToolUsed { tool, failed }),
            ("item.completed", Item::Message(words)) => {
                self.final_message = Some(cut(words, FINAL_MAX));
                self.repeats.words(words);
                record(Known::Message { text: cut(words, MESSAGE_MAX) })
            }
            ("item.completed", Item::Reasoning(words)) => record(Known::Reasoning { text: cut(words, MESSAGE_MAX) }),
            ("item.completed", Item::Warning(words)) => self.notices.warning(words),
            _ => Vec::new(),
        }
    }

    /// In a read-only job a refusal is what the job is for.
    fn refuse(&mut self, reason: &str) {
        if self.access == Access::Write {
            self.refusal = Some(Refusal::Step(reason.to_owned()));
        }
    }

    fn has_answer(&self) -> bool {
        self.final_message.as_ref().is_some_and(|message| !message.trim().is_empty())
    }

    fn verdict(&self, exit: ExitRecord) -> Verdict {
        match (&self.turn, exit) {
            _ if self.repeats.is_endless() => Verdict::Failed(endless(AGENT)),
            (Turn::Failed(message), _) => Verdict::Failed(failure::of_turn(message, &self.context)),
            (Turn::Completed, ExitRecord::Code(0)) if self.was_replaced => Verdict::Failed(failure::session_replaced()),
            (Turn::Completed, ExitRecord::Code(0)) if self.work.never_had_a_sandbox() => {
                Verdict::Failed(failure::no_sandbox())
            }
            (Turn::Completed, ExitRecord::Code(0)) if !self.has_answer() => Verdict::Silent,
            (Turn::Completed, ExitRecord::Code(0)) => match &self.refusal {
                None => Verdict::Completed,
                Some(Refusal::Sandbox) => Verdict::Failed(failure::no_sandbox()),
                Some(Refusal::Step(reason)) => Verdict::Failed(failure::refused(reason)),
            },
            (Turn::Open, ExitRecord::Code(0)) => Verdict::Silent,
            (Turn::Completed, _) => Verdict::Failed(failure::of_late_exit(exit, &self.stderr.text())),
            (Turn::Open, _) => Verdict::Failed(match &self.trouble {
                Some(trouble) => failure::of_turn(trouble.message(), &self.context),
                None => failure::of_exit(exit, &self.stderr.text(), &self.context),
            }),
        }
    }
}

impl Driver for ExecDriver {
    fn on_line(&mut self, line: &str) -> Vec<Step> {
        if line.trim().is_empty() {
            return Vec::new();
        }
        match strict_json::object(line) {
            Some(event) => self.event(&event),
            None => self.notices.once(
                "codex-output-unreadable",
                &format!("codex printed something that is no event: {}", display::headline(head(line, 400), 100)),
            ),
        }
    }

    fn is_in_pieces(&self, line: &str) -> bool {
        let event = strict_json::object(line).unwrap_or_default();
        let whole = [
            "thread.started",
            "turn.started",
            "turn.completed",
            "turn.failed",
            "item.started",
            "item.completed",
            "error",
        ];
        !event.get("type").and_then(Value::as_str).is_some_and(|kind| whole.contains(&kind))
    }

    fn on_stderr(&mut self, line: &str) -> Vec<Step> {
        match Line::of(head(line, MESSAGE_MAX)) {
            Line::Noise => Vec::new(),
            Line::ToolRefused(reason) => {
                self.stderr.push(reason);
                if is_about_work(reason) {
                    self.refuse(reason);
                }
                self.notices.refused(reason)
            }
            Line::LoginNotRefreshed(reason) => {
                self.stderr.push(reason);
                self.notices.login(reason)
            }
            Line::NoSandboxHelpers(line) => {
                self.stderr.push(line);
                let note = "codex could not make its sandbox's helpers: its home is below a temporary directory, or \
                            not writable";
                self.notices.once("codex-sandbox-helpers", note)
            }
            Line::Other(line) => {
                self.stderr.push(line);
                Vec::new()
            }
        }
    }

    fn on_exit(&mut self, exit: ExitRecord) -> Conclusion {
        Conclusion { verdict: self.verdict(exit), final_message: self.final_message.take() }
    }
}

impl Trouble {
    fn message(&self) -> &str {
        match self {
            Self::Retrying(message) | Self::Untold(message) => message,
        }
    }
}

impl Work {
    fn count(&mut self, succeeded: bool, unsandboxed: bool) {
        let counter = if succeeded { &mut self.succeeded } else { &mut self.failed };
        *counter = counter.saturating_add(1);
        self.unsandboxed = self.unsandboxed.saturating_add(u32::from(!succeeded && unsandboxed));
    }

    /// Nothing could run, and codex itself said that the sandbox was why: its completed turn means nothing.
    fn never_had_a_sandbox(self) -> bool {
        self.succeeded == 0 && self.unsandboxed > 0 && self.unsandboxed == self.failed
    }
}

/// Whether the call that was refused would have edited or run something. What remains are tools that the agent made up,
/// or arguments that it got wrong: it goes on in another way.
fn is_about_work(reason: &str) -> bool {
    ["patch rejected", "apply_patch", "exec_command failed", "shell failed"]
        .iter()
        .any(|start| reason.starts_with(start))
}

fn failed_edit() -> Known {
    Known::ToolUsed { tool: "apply_patch".to_owned(), failed: true }
}

/// Why a retry happens: `2/5 (unexpected status …)` → `unexpected status …`.
fn reason(attempt: &str) -> &str {
    let inner = attempt.split_once('(').map_or(attempt, |(_, inner)| inner);
    inner.strip_suffix(')').unwrap_or(inner)
}

/// The text at `key`; empty when it is missing or no text.
fn text<'v>(value: &'v Value, key: &str) -> &'v str {
    value.get(key).and_then(Value::as_str).unwrap_or_default()
}
