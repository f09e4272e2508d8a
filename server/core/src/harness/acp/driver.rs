//! One job's conversation with an agent: initialize, a session, one prompt, its end.
//!
//! At most one request of ours is open at a time. The reply to the prompt is the last word: after it the agent's input
//! is closed, and what comes still is recorded. That an agent calls its turn complete is believed only if nothing
//! contradicts it. What the agent asks of us is answered in [`requests`]; what it tells is kept by [`Turn`].

mod missed;
mod requests;
mod undone;

use std::collections::VecDeque;
use std::time::Duration;

use serde_json::{Value, json};

use super::super::failure::{endless, other_model, refused, session_lost};
use super::super::notices::Notices;
use super::super::tail::Tail;
use super::super::{Conclusion, Driver, Evidence, FileAnswer, Request, Step};
use super::failure::{self, Stage};
use super::session::{self, Agent, Opened};
use super::turn::{Turn, Voice};
use super::wire::{self, Incoming, RpcError, text};
use super::{Dialect, Finding};
use crate::Failure;
use crate::display;
use crate::job::access::Access;
use crate::job::event::{ExitRecord, Known};
use crate::job::outcome::Verdict;
use missed::Missed;
use requests::Requests;

/// How long an agent may take to end its turn once it is asked to.
const PATIENCE: Duration = Duration::from_secs(2);

/// The longest line of standard error that is looked at.
const STDERR_MAX: usize = 16 * 1024;

/// Drives one agent process.
pub struct AcpDriver {
    dialect: Box<dyn Dialect>,
    plan: Plan,
    next_id: u64,
    open: Option<(u64, Stage)>,
    session: Option<String>,
    choices: VecDeque<(&'static str, Value)>,
    /// The one whose reply is waited for.
    choosing: Option<&'static str>,
    /// The model that it uses, as far as it says.
    actual_model: Option<String>,
    turn: Turn,
    requests: Requests,
    missed: Missed,
    end: End,
    is_cancelled: bool,
    contradiction: Option<Failure>,
    notices: Notices,
    stderr: Tail,
}

/// What the conversation is about.
#[derive(Debug)]
struct Plan {
    access: Access,
    brief: String,
    /// The tree's path, and the same with a slash at its end: what is cut off the paths that agents name.
    tree: String,
    below: String,
    model: Option<String>,
    resume: Option<String>,
    cost_before: Option<f64>,
}

/// How the turn ended.
#[derive(Debug, Default)]
enum End {
    #[default]
    Open,
    /// With this reason of the agent's.
    Stopped(String),
    Failed(Failure),
}

impl AcpDriver {
    /// The driver of one launch.
    pub fn new(dialect: Box<dyn Dialect>, request: &Request<'_>, access: Access) -> Self {
        let tree = request.places.tree.as_path().to_string_lossy().into_owned();
        let below = format!("{}/", tree.trim_end_matches('/'));
        let model = request.model.or(request.settings.model.as_deref()).map(str::to_owned);
        Self {
            requests: Requests::new(access, request.permissions, below.clone()),
            plan: Plan {
                access,
                brief: request.brief.as_str().to_owned(),
                tree,
                below,
                model,
                resume: request.resume.map(|resume| resume.session.to_owned()),
                cost_before: request.resume.and_then(|resume| resume.used.cost),
            },
            dialect,
            next_id: 1,
            open: None,
            session: None,
            choices: VecDeque::new(),
            choosing: None,
            actual_model: None,
            turn: Turn::default(),
            missed: Missed::default(),
            end: End::Open,
            is_cancelled: false,
            contradiction: None,
            notices: Notices::default(),
            stderr: Tail::default(),
        }
    }

    fn ask(&mut self, stage: Stage, method: &str, params: &Value) -> Vec<Step> {
        let id = self.next_id;
        self.next_id += 1;
        self.open = Some((id, stage));
        vec![Step::Send(wire::request(id, method, params))]
    }

    fn fail(&mut self, failure: Failure) -> Vec<Step> {
        if matches!(self.end, End::Open) {
            self.end = End::Failed(failure);
        }
        self.close()
    }

    /// Nothing more will be said to the agent.
    fn close(&mut self) -> Vec<Step> {
        self.open = None;
        let mut steps = self.flush();
        steps.extend(self.requests.give_up());
        steps.push(Step::CloseInput);
        steps
    }

    fn flush(&mut self) -> Vec<Step> {
        self.turn.flush().into_iter().map(Step::Record).collect()
    }

    fn reply(&mut self, id: u64, result: Result<Value, RpcError>) -> Vec<Step> {
        let Some((_, stage)) = self.open.take_if(|(open, _)| *open == id) else {
            let note = format!("{} answered what it was not asked", self.dialect.agent());
            return self.notices.once("acp-reply-unasked", &note);
        };
        let result = match result {
            Ok(result) => result,
            Err(error) => {
                let known = self.dialect.failure(stage, &error);
                let failure = known.unwrap_or_else(|| failure::of_error(self.dialect.speaker(), stage, &error));
                return self.fail(failure);
            }
        };
        match stage {
            Stage::Initialize => self.initialized(&result),
            Stage::Authenticate => self.open_session(),
            Stage::Open | Stage::Load => self.opened(stage, &result),
            Stage::Choose => self.chosen(&result),
            Stage::Prompt => self.stopped(&result),
        }
    }

    fn initialized(&mut self, result: &Value) -> Vec<Step> {
        let agent = match Agent::read(self.dialect.agent(), result) {
            Ok(agent) => agent,
            Err(failure) => return self.fail(failure),
        };
        self.requests.agent = agent;
        match self.dialect.login_method() {
            Some(method) => {
                let params = json!({"methodId": method});
                self.ask(Stage::Authenticate, "authenticate", &params)
            }
            None => self.open_session(),
        }
    }

    fn open_session(&mut self) -> Vec<Step> {
        let place = json!({"cwd": self.plan.tree, "mcpServers": []});
        let Some(session) = self.plan.resume.clone() else { return self.ask(Stage::Open, "session/new", &place) };
        let Some(method) = self.requests.agent.method_to_resume() else {
            let failure = session_lost(self.dialect.agent(), "it keeps none");
            return self.fail(failure);
        };
        let params = json!({"sessionId": session, "cwd": self.plan.tree, "mcpServers": []});
        self.ask(Stage::Load, method, &params)
    }

    fn opened(&mut self, stage: Stage, result: &Value) -> Vec<Step> {
        let asked = self.plan.resume.as_deref().filter(|_| stage == Stage::Load);
        let opened = match Opened::read(self.dialect.agent(), asked, result) {
            Ok(opened) => opened,
            Err(failure) => return self.fail(failure),
        };
        let session = opened.session.clone();
        self.session = Some(session.clone());
        self.requests.session.clone_from(&session);
        self.turn = Turn::default();
        if let Some(mode) = self.dialect.mode() {
            let params = json!({"sessionId": session, "modeId": mode});
            self.choices.push_back((session::SET_MODE, params));
        }
        let mut model = opened.model.clone();
        if let Some(wanted) = self.plan.model.as_deref().filter(|_| self.dialect.chooses_model()) {
            match opened.choose(self.dialect.agent(), wanted) {
                Ok(None) => {}
                Ok(Some(choice)) => {
                    // What it uses then, the reply says.
                    model = None;
                    self.choices.push_back(choice);
                }
                Err(failure) => return self.fail(failure),
            }
        }
        let mut steps = self.uses(model);
        steps.extend(self.go_on());
        steps
    }

    /// It says which model it uses, or does not.
    fn uses(&mut self, model: Option<String>) -> Vec<Step> {
        let Some(session) = self.session.clone() else { return Vec::new() };
        self.actual_model.clone_from(&model);
        let other = self.other_model().map(|(wanted, actual)| {
            let note = format!("{wanted} was asked for, and {} uses {actual}", self.dialect.agent());
            self.notices.once("model-differs", &note)
        });
        let mut steps = vec![Step::Record(Known::SessionStarted { session, model })];
        steps.extend(other.unwrap_or_default());
        steps
    }

    /// The model that was asked for, and the one that is used instead.
    fn other_model(&self) -> Option<(String, String)> {
        let both = self.plan.model.clone().zip(self.actual_model.clone());
        both.filter(|(wanted, actual)| !self.dialect.is_model(wanted, actual))
    }

    /// Chooses and asks on, unless it is to be another model that works.
    fn go_on(&mut self) -> Vec<Step> {
        match self.other_model() {
            Some((wanted, actual)) => {
                let failure = other_model(self.dialect.agent(), &wanted, &actual);
                self.fail(failure)
            }
            None => self.choose(),
        }
    }

    /// A choice of ours was taken; which model is used now, the reply may say.
    fn chosen(&mut self, result: &Value) -> Vec<Step> {
        let told = session::current_model(result);
        let model = match self.choosing.take() {
            // Its reply has nothing to say: a yes is a yes.
            Some(session::SET_MODEL) => told.or_else(|| self.plan.model.clone()),
            Some(session::SET_OPTION) => told,
            _ => return self.choose(),
        };
        let mut steps = self.uses(model);
        steps.extend(self.go_on());
        steps
    }

    /// An option of the session is another one: the model may be, which nobody asked for.
    fn option_changed(&mut self, update: &Value) -> Vec<Step> {
        let told = session::current_model(update).filter(|told| Some(told) != self.actual_model.as_ref());
        // Until all is chosen it may speak of what was before.
        let is_settled = matches!(self.open, Some((_, Stage::Prompt)));
        let Some(model) = told.filter(|_| is_settled) else { return Vec::new() };
        let before = self.actual_model.take().filter(|_| self.plan.model.is_none());
        let note = before.map(|before| format!("{} goes on with {model} instead of {before}", self.dialect.agent()));
        let mut steps = self.uses(Some(model));
        steps.extend(note.map(|note| self.notices.once("model-differs", &note)).unwrap_or_default());
        if let Some((wanted, actual)) = self.other_model() {
            let failure = other_model(self.dialect.agent(), &wanted, &actual);
            self.contradiction.get_or_insert(failure);
        }
        steps
    }

    /// What is left to be chosen, then the prompt.
    fn choose(&mut self) -> Vec<Step> {
        if let Some((method, params)) = self.choices.pop_front() {
            self.choosing = Some(method);
            return self.ask(Stage::Choose, method, &params);
        }
        if self.is_cancelled {
            return self.close();
        }
        let prompt = json!([{"type": "text", "text": self.plan.brief}]);
        let params = json!({"sessionId": self.session, "prompt": prompt});
        self.ask(Stage::Prompt, "session/prompt", &params)
    }

    fn stopped(&mut self, result: &Value) -> Vec<Step> {
        let reason = text(result, "stopReason").to_owned();
        let mut steps = self.flush();
        steps.extend(self.turn.tokens(result.get("usage")).map(Step::Record));
        steps.extend(self.about_work());
        self.end = End::Stopped(reason);
        steps.extend(self.close());
        steps
    }

    /// What the end of a turn hides: an agent calls it complete whatever became of the work.
    fn about_work(&mut self) -> Vec<Step> {
        let (work, agent) = (self.turn.work(), self.dialect.agent().to_owned());
        let mut steps = Vec::new();
        if work.succeeded == 0 && work.failed > 0 {
            let note = format!("every step of {agent} failed ({})", work.failed);
            steps.extend(self.notices.once("acp-all-failed", &note));
        }
        if self.turn.unfinished() > 0 && !self.is_cancelled {
            let note = format!("{agent} ended its turn with {} step(s) begun and not ended", self.turn.unfinished());
            steps.extend(self.notices.once("acp-unfinished", &note));
        }
        steps
    }

    fn request(&mut self, id: Value, method: &str, params: &Value) -> Vec<Step> {
        let mut steps = self.flush();
        let is_over = self.is_cancelled || !matches!(self.end, End::Open);
        let asked = (id, method, params);
        steps.extend(self.requests.answer(&*self.dialect, &self.turn, &mut self.notices, asked, is_over));
        steps
    }

    fn notification(&mut self, method: &str, params: &Value) -> Vec<Step> {
        if method != "session/update" {
            // `_name` and `$/name` are the agent's own affair.
            let shown = display::headline(display::head(method, 400), 60);
            let note = format!("{} told something that this pactify does not know: {shown:?}", self.dialect.agent());
            let is_private = method.starts_with(['_', '$']);
            return if is_private { Vec::new() } else { self.notices.once("acp-unknown-notification", &note) };
        }
        // What a session that is being loaded repeats was recorded when it happened.
        let Some(session) = self.session.as_deref() else { return Vec::new() };
        if text(params, "sessionId") != session {
            let note = format!("{} told of another session than the job's; that is left out", self.dialect.agent());
            return self.notices.once("acp-foreign-session", &note);
        }
        let update = params.get("update").unwrap_or(&Value::Null);
        let findings = self.dialect.on_update(update);
        let mut steps = self.findings(findings);
        steps.extend(self.update(update));
        for ended in self.turn.take_ended() {
            if ended.was_done {
                let findings = self.dialect.on_tool(&ended.name);
                steps.extend(self.findings(findings));
            }
            // In a read-only job a refusal is what the job is for.
            if self.plan.access == Access::Write && !self.requests.has_refused(&ended.id) {
                self.missed.note(&ended, self.dialect.refusals());
            }
        }
        if self.turn.is_stuck() && matches!(self.end, End::Open) {
            steps.extend(self.cancel_turn());
            let failure = endless(self.dialect.agent());
            steps.extend(self.fail(failure));
        }
        steps
    }

    fn update(&mut self, update: &Value) -> Vec<Step> {
        if matches!(self.end, End::Failed(_)) {
            return Vec::new();
        }
        if text(update, "sessionUpdate") == "config_option_update" {
            return self.option_changed(update);
        }
        let turn = &mut self.turn;
        let records = match text(update, "sessionUpdate") {
            "agent_message_chunk" => turn.chunk(Voice::Answer, update),
            "agent_thought_chunk" => turn.chunk(Voice::Thought, update),
            "tool_call" => turn.call(update, true, &self.plan.below),
            "tool_call_update" => turn.call(update, false, &self.plan.below),
            "plan" => turn.plan(update),
            "usage_update" => turn.cost(update, self.plan.cost_before).into_iter().collect(),
            "user_message_chunk" | "available_commands_update" | "current_mode_update" | "session_info_update" => {
                Vec::new()
            }
            other => {
                let shown = display::headline(display::head(other, 400), 60);
                let note = format!("{} told of a {shown:?}, which this pactify does not know", self.dialect.agent());
                return self.notices.once("acp-unknown-update", &note);
            }
        };
        records.into_iter().map(Step::Record).collect()
    }

    fn findings(&mut self, findings: Vec<Finding>) -> Vec<Step> {
        let mut steps = Vec::new();
        for finding in findings {
            match finding {
                Finding::Notice { id, text } => steps.extend(self.notices.once(id, &text)),
                Finding::Usage(usage) => steps.extend(self.turn.told(usage).map(Step::Record)),
                Finding::Contradiction(failure) => {
                    self.contradiction.get_or_insert(failure);
                }
                Finding::GiveUp(failure) => {
                    if matches!(self.end, End::Open) {
                        steps.extend(self.cancel_turn());
                        steps.extend(self.fail(failure));
                    }
                }
            }
        }
        steps
    }

    /// Asks the agent to end its turn.
    fn cancel_turn(&mut self) -> Vec<Step> {
        let mut steps = self.flush();
        steps.extend(self.requests.give_up());
        let params = json!({"sessionId": self.session});
        steps.push(Step::Send(wire::notification("session/cancel", &params)));
        steps
    }

    fn verdict(&mut self, exit: ExitRecord) -> Verdict {
        let agent = self.dialect.agent();
        let contradiction = self.contradiction.take();
        match (std::mem::take(&mut self.end), exit) {
            (End::Failed(failure), _) => Verdict::Failed(failure),
            (End::Stopped(reason), _) if reason != "end_turn" => {
                Verdict::Failed(contradiction.unwrap_or_else(|| failure::of_stop(agent, &reason)))
            }
            (End::Stopped(_), exit) => {
                let (granted, no) = (self.requests.granted(), self.requests.refused());
                let (succeeded, may_write) = (self.turn.work().succeeded, self.plan.access == Access::Write);
                let was_refused = no > 0 && succeeded == 0 && may_write;
                let is_stopped = may_write && self.requests.is_at_a_dead_end(succeeded);
                let failure = contradiction
                    .or_else(|| (!self.turn.has_answer()).then(|| failure::empty_answer(agent)))
                    .or_else(|| was_refused.then(|| failure::refused(agent, no, granted)))
                    .or_else(|| is_stopped.then(|| failure::stopped(agent)))
                    .or_else(|| self.requests.undone().map(|what| refused(agent, &what)))
                    .or_else(|| self.missed.told().map(|what| refused(agent, &what)))
                    .or_else(|| {
                        (!is_harmless(exit)).then(|| failure::of_exit(agent, exit, true, &self.stderr.quoted()))
                    });
                failure.map_or(Verdict::Completed, Verdict::Failed)
            }
            (End::Open, ExitRecord::Code(0)) if contradiction.is_none() => Verdict::Silent,
            (End::Open, exit) => Verdict::Failed(
                contradiction
                    .or_else(|| self.dialect.exit_failure(&self.stderr.text()))
                    .unwrap_or_else(|| failure::of_exit(agent, exit, false, &self.stderr.quoted())),
            ),
        }
    }
}

impl Driver for AcpDriver {
    fn on_start(&mut self) -> Vec<Step> {
        let files = self.dialect.offers_files();
        let params = json!({
            "protocolVersion": wire::VERSION,
            "clientCapabilities": {"fs": {"readTextFile": files, "writeTextFile": files}, "terminal": false},
            "clientInfo": {"name": "pactify", "version": env!("CARGO_PKG_VERSION")},
        });
        self.ask(Stage::Initialize, "initialize", &params)
    }

    fn on_raw(&mut self, line: &str) -> Option<Vec<Step>> {
        if !line.contains(requests::WRITE) {
            return None;
        }
        match wire::read(line) {
            Some(Incoming::Request { id, method, params }) if method == requests::WRITE => {
                Some(self.request(id, &method, &params))
            }
            _ => None,
        }
    }

    fn on_line(&mut self, line: &str) -> Vec<Step> {
        if line.trim().is_empty() {
            return Vec::new();
        }
        match wire::read(line) {
            Some(Incoming::Reply { id, result }) => self.reply(id, result),
            Some(Incoming::Notification { method, params }) => self.notification(&method, &params),
            Some(Incoming::Request { id, method, params }) => self.request(id, &method, &params),
            None => {
                let shown = display::headline(display::head(line, 400), 100);
                let note = format!("{} printed something that is no message: {shown}", self.dialect.agent());
                self.notices.once("acp-output-unreadable", &note)
            }
        }
    }

    fn is_in_pieces(&self, line: &str) -> bool {
        // Requests and replies are whole.
        !matches!(wire::read(line), Some(Incoming::Request { .. } | Incoming::Reply { .. }))
    }

    fn on_stderr(&mut self, line: &str) -> Vec<Step> {
        let line = display::head(line, STDERR_MAX);
        self.stderr.push(line);
        let findings = self.dialect.on_stderr(line);
        self.findings(findings)
    }

    fn on_cancel(&mut self) -> Vec<Step> {
        if self.is_cancelled {
            return Vec::new();
        }
        self.is_cancelled = true;
        match self.open {
            Some((_, Stage::Prompt)) => self.cancel_turn(),
            // Nothing was begun that it could end, or everything has ended.
            _ => self.close(),
        }
    }

    fn cancel_patience(&self) -> Duration {
        PATIENCE
    }

    fn on_answer(&mut self, request: &str, option: Option<&str>) -> Vec<Step> {
        self.requests.answered(request, option, self.turn.work().succeeded)
    }

    fn on_file(&mut self, request: u64, answer: FileAnswer) -> Vec<Step> {
        self.requests.file(&mut self.notices, request, answer)
    }

    fn evidence(&self) -> Vec<Evidence> {
        self.session.as_deref().map(|session| self.dialect.evidence(session)).unwrap_or_default()
    }

    fn on_evidence_line(&mut self, evidence: &Evidence, line: Option<&[u8]>) {
        self.dialect.on_evidence_line(evidence, line);
    }

    fn on_evidence(&mut self, evidence: &Evidence, contents: Option<&[u8]>) -> Vec<Step> {
        let findings = self.dialect.on_evidence(evidence, contents);
        self.findings(findings)
    }

    fn on_exit(&mut self, exit: ExitRecord) -> Conclusion {
        let final_message = self.turn.answer();
        Conclusion { verdict: self.verdict(exit), final_message }
    }
}

/// Whether an end that comes after the last word says nothing: the agent's own, or ours, as not every agent ends when
/// its input does.
fn is_harmless(exit: ExitRecord) -> bool {
    matches!(exit, ExitRecord::Code(0 | 130 | 137 | 143) | ExitRecord::Signal(2 | 9 | 15))
}
