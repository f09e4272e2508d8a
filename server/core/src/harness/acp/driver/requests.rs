//! What the agent asks of us: permissions, files of the tree, and what nobody offered.
//!
//! A request is answered exactly once. A permission that the person decides is answered when they did, or when there is
//! no more turn to go on with; everything else at once.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use super::super::super::notices::Notices;
use super::super::super::{FileAction, FileAnswer, FileRequest, Step};
use super::super::Dialect;
use super::super::ask::{Answer, Ask, outcome};
use super::super::session::Agent;
use super::super::tool::Call;
use super::super::turn::{self, Turn};
use super::super::wire::{self, Refusal, text};
use super::undone::Undone;
use crate::RepoPath;
use crate::display;
use crate::job::access::Access;
use crate::job::event::Known;
use crate::path::rules::{Rule, WritablePath};
use crate::permission::{Policy, refusal};

/// The request whose content must reach the file as it is.
pub(super) const WRITE: &str = "fs/write_text_file";

/// The most permissions that wait for the person at once.
const WAITING_MAX: usize = 200;
/// The most permissions of one turn that are recorded.
const RECORDED_MAX: u32 = 2_000;

/// What is asked, and what waits for an answer.
#[derive(Debug)]
pub(super) struct Requests {
    /// What the agent said of itself.
    pub(super) agent: Agent,
    /// The job's session.
    pub(super) session: String,
    access: Access,
    policy: Policy,
    below: String,
    waiting: BTreeMap<String, Waiting>,
    files: BTreeMap<u64, OpenFile>,
    asked: u32,
    granted: u32,
    refused: u32,
    /// The calls that were not permitted, by their ids.
    refused_calls: BTreeSet<String>,
    /// Writes through us that were not made.
    undone: Undone,
    /// How many steps of the agent had succeeded when a permission was last refused that no person refused.
    stopped_at: Option<u32>,
    next_file: u64,
}

/// A permission that the person decides.
#[derive(Debug)]
struct Waiting {
    id: Value,
    /// The call that it is for, by its id.
    call: String,
    ask: Ask,
}

/// A file that the host looks for.
#[derive(Debug)]
struct OpenFile {
    id: Value,
    /// What is to be written, as the agent names it.
    written: Option<String>,
    line: Option<u64>,
    limit: Option<u64>,
}

impl Requests {
    pub(super) fn new(access: Access, policy: Policy, below: String) -> Self {
        Self {
            agent: Agent::default(),
            session: String::new(),
            access,
            policy,
            below,
            waiting: BTreeMap::new(),
            files: BTreeMap::new(),
            asked: 0,
            granted: 0,
            refused: 0,
            refused_calls: BTreeSet::new(),
            undone: Undone::default(),
            stopped_at: None,
            next_file: 1,
        }
    }

    /// How many permissions were granted.
    pub(super) fn granted(&self) -> u32 {
        self.granted
    }

    /// How many permissions were refused.
    pub(super) fn refused(&self) -> u32 {
        self.refused
    }

    /// Whether this call was not permitted, by the person or for them.
    pub(super) fn has_refused(&self, call: &str) -> bool {
        self.refused_calls.contains(call)
    }

    /// The writes through us that were refused and never made, as a part of a sentence.
    pub(super) fn undone(&self) -> Option<String> {
        self.undone.told()
    }

    /// Whether no person refused the last permission that was, and no step succeeded after it: `succeeded` did in all.
    pub(super) fn is_at_a_dead_end(&self, succeeded: u32) -> bool {
        self.stopped_at == Some(succeeded)
    }

    /// Answers a request; `is_over` when there is no turn that it could belong to any more.
    pub(super) fn answer(
        &mut self,
        dialect: &dyn Dialect,
        turn: &Turn,
        notices: &mut Notices,
        (id, method, params): (Value, &str, &Value),
        is_over: bool,
    ) -> Vec<Step> {
        let refuse = |refusal, why: &str| vec![Step::Send(wire::refuse(&id, refusal, why))];
        if self.waiting.values().any(|waiting| waiting.id == id) {
            // Nobody could say which of the two an answer is for.
            let mut steps = self.drop_waiting(&id);
            steps.extend(refuse(Refusal::InvalidRequest, "the id is that of a request which waits for its answer"));
            return steps;
        }
        let is_foreign = text(params, "sessionId") != self.session || self.session.is_empty();
        match method {
            "session/request_permission" if is_foreign || is_over => {
                vec![Step::Send(wire::answer(&id, &outcome(None)))]
            }
            "session/request_permission" => self.permission(dialect, turn, notices, id, params),
            "fs/read_text_file" | WRITE if !dialect.offers_files() => {
                refuse(Refusal::MethodNotFound, "files were not offered")
            }
            "fs/read_text_file" if is_foreign => refuse(Refusal::InvalidParams, "no such session"),
            WRITE if is_foreign => {
                self.undone.refused(text(params, "path"), "for another session");
                refuse(Refusal::InvalidParams, "no such session")
            }
            "fs/read_text_file" => self.read(id, params),
            WRITE => self.write(notices, id, params),
            other => {
                let shown = display::headline(display::head(other, 400), 60);
                let note = format!("{} asked for {shown:?}, which this pactify does not offer", dialect.agent());
                let mut steps = notices.once("acp-unknown-request", &note);
                steps.extend(refuse(Refusal::MethodNotFound, "method not found"));
                steps
            }
        }
    }

    fn permission(
        &mut self,
        dialect: &dyn Dialect,
        turn: &Turn,
        notices: &mut Notices,
        id: Value,
        params: &Value,
    ) -> Vec<Step> {
        let named = params.pointer("/toolCall/toolCallId").and_then(Value::as_str).unwrap_or_default();
        let call = turn.find(named);
        let ask = Ask::read(params, call.map_or("", Call::name), call.map_or("", Call::command));
        let is_question = dialect.is_question(&ask);
        let mut steps = Vec::new();
        if is_question {
            let note = format!("{} asked a question, which nobody answers in a job: {}", dialect.agent(), ask.title);
            steps.extend(notices.once("acp-question", &note));
        } else if self.access == Access::ReadOnly {
            let note = format!("{} asked for a permission and was refused, as this job is read-only", dialect.agent());
            steps.extend(notices.once("acp-refused-read-only", &note));
        }
        self.asked = self.asked.saturating_add(1);
        let answer = match ask.decide(is_question, self.access, self.policy) {
            // Nobody could see it, or look through them all.
            Answer::LeaveIt if self.waiting.len() >= WAITING_MAX || self.asked > RECORDED_MAX => {
                Answer::Refuse(refusal(&ask.options).map(|option| option.id.clone()))
            }
            answer => answer,
        };
        let (granted, option) = match answer {
            Answer::LeaveIt => {
                let request = format!("p{}", self.asked);
                let told = call.map(Call::deed).cloned().unwrap_or_default();
                let detail = told.detail(params.get("toolCall").unwrap_or(&Value::Null), &ask.title);
                let (title, options) = (ask.title.clone(), ask.options.clone());
                self.waiting.insert(request.clone(), Waiting { id, call: named.to_owned(), ask });
                steps.push(Step::Record(Known::PermissionRequested { request, title, detail, options }));
                return steps;
            }
            Answer::Grant(option) => {
                self.granted = self.granted.saturating_add(1);
                self.refused_calls.remove(turn::id(named));
                (true, Some(option))
            }
            Answer::Refuse(option) => {
                if !is_question {
                    self.refused = self.refused.saturating_add(1);
                    self.note_refused(named);
                    self.stopped_at = Some(turn.work().succeeded);
                }
                (false, option)
            }
        };
        let line = wire::answer(&id, &outcome(option.as_deref()));
        if !is_question && self.asked <= RECORDED_MAX {
            let title = ask.title;
            steps.push(Step::Record(Known::PermissionDecided { title, granted, option }));
        }
        steps.push(Step::Send(line));
        steps
    }

    /// The person answered, or nobody did in time; so many steps had succeeded by then.
    pub(super) fn answered(&mut self, request: &str, option: Option<&str>, succeeded: u32) -> Vec<Step> {
        let Some(Waiting { id, call, ask }) = self.waiting.remove(request) else { return Vec::new() };
        let chosen = option.filter(|chosen| ask.options.iter().any(|option| option.id == *chosen));
        let no = refusal(&ask.options).map(|option| option.id.as_str());
        let is_no = chosen.is_none() || chosen == no;
        if chosen.is_none() {
            self.stopped_at = Some(succeeded);
        }
        if is_no {
            self.note_refused(&call);
        } else {
            self.refused_calls.remove(turn::id(&call));
        }
        let counter = if is_no { &mut self.refused } else { &mut self.granted };
        *counter = counter.saturating_add(1);
        vec![Step::Send(wire::answer(&id, &outcome(chosen.or(no))))]
    }

    /// There is no more turn: what waits is answered with nobody's choice.
    pub(super) fn give_up(&mut self) -> Vec<Step> {
        let waiting = std::mem::take(&mut self.waiting);
        let end = |(request, Waiting { id, .. })| {
            let known = Known::PermissionAnswered { request, option: None };
            [Step::Record(known), Step::Send(wire::answer(&id, &outcome(None)))]
        };
        waiting.into_iter().flat_map(end).collect()
    }

    fn note_refused(&mut self, call: &str) {
        if self.refused_calls.len() < RECORDED_MAX as usize {
            self.refused_calls.insert(turn::id(call).to_owned());
        }
    }

    fn drop_waiting(&mut self, id: &Value) -> Vec<Step> {
        let named = self.waiting.iter().find(|(_, waiting)| waiting.id == *id).map(|(request, _)| request.clone());
        let Some(request) = named else { return Vec::new() };
        self.waiting.remove(&request);
        self.refused = self.refused.saturating_add(1);
        vec![Step::Record(Known::PermissionAnswered { request, option: None })]
    }

    fn read(&mut self, id: Value, params: &Value) -> Vec<Step> {
        let path = match self.inside(text(params, "path")) {
            Ok(path) => path,
            Err(why) => return vec![Step::Send(wire::refuse(&id, Refusal::InvalidParams, &why))],
        };
        let number = |key: &str| params.get(key).and_then(Value::as_u64);
        let open = OpenFile { id, written: None, line: number("line"), limit: number("limit") };
        self.look(open, path, FileAction::Read)
    }

    fn write(&mut self, notices: &mut Notices, id: Value, params: &Value) -> Vec<Step> {
        let refuse = |id: &Value, why: &str| vec![Step::Send(wire::refuse(id, Refusal::InvalidParams, why))];
        if self.access == Access::ReadOnly {
            // That is what such a job is for.
            let note = "the agent tried to change a file and was refused, as this job is read-only";
            let mut steps = notices.once("acp-write-refused", note);
            steps.extend(refuse(&id, "the job is read-only"));
            return steps;
        }
        let named = text(params, "path");
        let checked = self.inside(named).and_then(|path| {
            let path = WritablePath::check(path).map_err(|error| error.to_string())?;
            let content = params.get("content").and_then(Value::as_str).ok_or("no content")?;
            Ok((path.path().clone(), content.to_owned()))
        });
        match checked {
            Ok((path, content)) => {
                let open = OpenFile { id, written: Some(named.to_owned()), line: None, limit: None };
                self.look(open, path, FileAction::Write(content))
            }
            Err(why) => {
                let mut steps = self.not_written(notices, named, &why);
                steps.extend(refuse(&id, &why));
                steps
            }
        }
    }

    fn not_written(&mut self, notices: &mut Notices, path: &str, why: &str) -> Vec<Step> {
        self.undone.refused(path, why);
        let shown = display::headline(display::head(path, 800), 200);
        notices.once("acp-write-refused", &format!("the agent wanted {shown} written and was refused: {why}"))
    }

    fn look(&mut self, open: OpenFile, path: RepoPath, action: FileAction) -> Vec<Step> {
        let id = self.next_file;
        self.next_file += 1;
        self.files.insert(id, open);
        vec![Step::File(FileRequest { id, path, action })]
    }

    /// The path below the tree, unless it leads anywhere else.
    fn inside(&self, path: &str) -> Result<RepoPath, String> {
        let below = path.strip_prefix(&self.below).ok_or("the path is not inside the job's tree")?;
        let path = RepoPath::new(below).map_err(|error| error.to_string())?;
        match WritablePath::check(path.clone()) {
            Err(refusal) if refusal.rule == Rule::GitDirectory => Err(refusal.to_string()),
            _ => Ok(path),
        }
    }

    /// The host did what was asked, or could not.
    pub(super) fn file(&mut self, notices: &mut Notices, request: u64, answer: FileAnswer) -> Vec<Step> {
        let Some(OpenFile { id, written, line, limit }) = self.files.remove(&request) else { return Vec::new() };
        let mut steps = match (&written, &answer) {
            (Some(path), FileAnswer::Refused(why)) => self.not_written(notices, path, why),
            (Some(path), FileAnswer::Written) => {
                self.undone.done(path);
                Vec::new()
            }
            (Some(path), _) => self.not_written(notices, path, "it is not there"),
            (None, _) => Vec::new(),
        };
        steps.push(Step::Send(match answer {
            FileAnswer::Contents(contents) => wire::answer(&id, &json!({"content": lines(&contents, line, limit)})),
            FileAnswer::Written => wire::answer(&id, &json!({})),
            FileAnswer::Missing => wire::refuse(&id, Refusal::ResourceNotFound, "there is no such file"),
            FileAnswer::Refused(why) => wire::refuse(&id, Refusal::Internal, &why),
        }));
        steps
    }
}

/// `limit` lines of a text, from the one of number `line` on, counted from 1.
fn lines(text: &str, line: Option<u64>, limit: Option<u64>) -> String {
    let count = |number: u64| usize::try_from(number).unwrap_or(usize::MAX);
    let skipped = count(line.unwrap_or(1).saturating_sub(1));
    text.split_inclusive('\n').skip(skipped).take(limit.map_or(usize::MAX, count)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_of_a_file_is_its_lines() {
        for (line, limit, expected) in [
            (None, None, "a\nb\nc"),
            (Some(2), None, "b\nc"),
            (Some(0), Some(1), "a\n"),
            (Some(2), Some(1), "b\n"),
            (Some(9), Some(1), ""),
            (None, Some(0), ""),
        ] {
            assert_eq!(lines("a\nb\nc", line, limit), expected, "{line:?} {limit:?}");
        }
    }
}
