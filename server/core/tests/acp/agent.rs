//! An agent made of what a test says: the driver, what it sent, what it recorded.

use pactify_core::brief::Brief;
use pactify_core::harness::acp::{AcpDriver, Plain};
use pactify_core::harness::{
    Conclusion, Driver, FileAction, FileAnswer, FileRequest, Harness, Places, Request, Resume, Step,
};
use pactify_core::job::access::Access;
use pactify_core::job::event::{ExitRecord, Known, Usage};
use pactify_core::permission::Policy;
use serde_json::{Value, json};

use crate::asked::{Asked, path};

/// What a conversation starts from.
pub(crate) struct Start {
    pub(crate) access: Access,
    pub(crate) permissions: Policy,
    pub(crate) tree: String,
    pub(crate) brief: String,
    pub(crate) model: Option<String>,
    pub(crate) resume: Option<String>,
    pub(crate) dialect: Plain,
    /// One that pactify knows, instead.
    pub(crate) harness: Option<&'static dyn Harness>,
}

impl Default for Start {
    fn default() -> Self {
        Self {
            access: Access::Write,
            permissions: Policy::Allow,
            tree: "/tree".to_owned(),
            brief: "Fix it.".to_owned(),
            model: None,
            resume: None,
            dialect: Plain::named("agent"),
            harness: None,
        }
    }
}

/// A conversation.
pub(crate) struct Agent {
    driver: Box<dyn Driver>,
    /// What was recorded.
    pub(crate) known: Vec<Known>,
    /// What the agent was sent.
    pub(crate) sent: Vec<Value>,
    /// Every line of it as it was sent, and everything else that was to be done.
    pub(crate) steps: Vec<Step>,
    pub(crate) files: Vec<FileRequest>,
    pub(crate) is_closed: bool,
    /// What a file's look comes to.
    pub(crate) file: FileAnswer,
}

impl Agent {
    pub(crate) fn new(start: Start) -> Self {
        let asked = Asked { brief: Brief::new(start.brief).unwrap(), ..Asked::of("codex", "") };
        let places = Places { tree: path(&start.tree), ..asked.places.clone() };
        let request = Request {
            model: start.model.as_deref(),
            permissions: start.permissions,
            places: &places,
            resume: start.resume.as_deref().map(|session| Resume { session, used: Usage::default() }),
            ..asked.request()
        };
        let mut agent = Self {
            driver: match start.harness {
                Some(harness) => harness.driver(&request, start.access),
                None => Box::new(AcpDriver::new(Box::new(start.dialect), &request, start.access)),
            },
            known: Vec::new(),
            sent: Vec::new(),
            steps: Vec::new(),
            files: Vec::new(),
            is_closed: false,
            file: FileAnswer::Contents("alpha\nbeta\ngamma\n".to_owned()),
        };
        let steps = agent.driver.on_start();
        agent.take(steps);
        agent
    }

    /// With a session `s` that works on its prompt.
    pub(crate) fn prompted(start: Start) -> Self {
        let mut agent = Self::new(start);
        agent.reply(&json!({"protocolVersion": 1, "agentCapabilities": {"loadSession": true}}));
        agent.reply(&json!({"sessionId": "s"}));
        assert_eq!(agent.last_method(), "session/prompt");
        agent
    }

    fn take(&mut self, steps: Vec<Step>) {
        for step in steps {
            self.steps.push(step.clone());
            match step {
                Step::Record(known) => self.known.push(known),
                Step::Send(line) => {
                    assert!(!line.contains('\n'), "one message is one line: {line}");
                    self.sent.push(serde_json::from_str(&line).unwrap());
                }
                Step::CloseInput => self.is_closed = true,
                Step::File(request) => {
                    let answer = match (&request.action, &self.file) {
                        (FileAction::Write(_), FileAnswer::Contents(_)) => FileAnswer::Written,
                        (_, answer) => answer.clone(),
                    };
                    let id = request.id;
                    self.files.push(request);
                    let steps = self.driver.on_file(id, answer);
                    self.take(steps);
                }
            }
        }
    }

    /// The agent prints a line.
    pub(crate) fn line(&mut self, line: &str) {
        let steps = self.driver.on_raw(line).unwrap_or_else(|| self.driver.on_line(line));
        self.take(steps);
    }

    pub(crate) fn says(&mut self, message: &Value) {
        self.line(&message.to_string());
    }

    pub(crate) fn stderr(&mut self, line: &str) {
        let steps = self.driver.on_stderr(line);
        self.take(steps);
    }

    /// The agent answers the last request.
    pub(crate) fn reply(&mut self, result: &Value) {
        let id = self.asked();
        self.says(&json!({"jsonrpc": "2.0", "id": id, "result": result}));
    }

    /// The agent refuses the last request.
    pub(crate) fn refuse(&mut self, code: i64, message: &str) {
        let id = self.asked();
        self.says(&json!({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": message}}));
    }

    fn asked(&self) -> Value {
        let asked =
            self.sent.iter().rev().find(|message| message.get("method").is_some() && message.get("id").is_some());
        asked.map(|message| message["id"].clone()).unwrap()
    }

    pub(crate) fn last_method(&self) -> &str {
        let methods = self.sent.iter().rev().find_map(|message| message["method"].as_str());
        methods.unwrap_or_default()
    }

    /// The agent tells something of the session `s`.
    pub(crate) fn update(&mut self, update: &Value) {
        self.says(
            &json!({"jsonrpc": "2.0", "method": "session/update", "params": {"sessionId": "s", "update": update}}),
        );
    }

    pub(crate) fn message(&mut self, words: &str) {
        self.update(&json!({"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": words}}));
    }

    /// The agent wants something; the answer, if it was given at once.
    pub(crate) fn asks(&mut self, id: &Value, method: &str, params: &Value) -> Option<Value> {
        let mut params = params.clone();
        params.as_object_mut().unwrap().entry("sessionId").or_insert("s".into());
        let before = self.sent.len();
        self.says(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
        self.sent[before..].iter().find(|message| message["id"] == *id && message.get("method").is_none()).cloned()
    }

    pub(crate) fn cancel(&mut self) {
        let steps = self.driver.on_cancel();
        self.take(steps);
    }

    pub(crate) fn answer(&mut self, request: &str, option: Option<&str>) {
        let steps = self.driver.on_answer(request, option);
        self.take(steps);
    }

    pub(crate) fn stop(&mut self, reason: &str) {
        self.reply(&json!({"stopReason": reason}));
    }

    pub(crate) fn exit(mut self, exit: ExitRecord) -> (Self, Conclusion) {
        let end = self.driver.on_exit(exit);
        (self, end)
    }

    /// The ids of the notices.
    pub(crate) fn notices(&self) -> Vec<&str> {
        let notices = self.known.iter().filter_map(|known| match known {
            Known::Notice { id, .. } => Some(id.as_str()),
            _ => None,
        });
        notices.collect()
    }
}
