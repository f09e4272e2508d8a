//! The same agent over the Agent Client Protocol: one JSON object a line on standard input and output.
//!
//! It does as the measured agents do: a command runs in a session of its own and outlives a killed agent, a cancel and
//! the end of the input end it, sessions are kept in the home. Modes and models may be chosen and mean nothing. One
//! thread reads, so that a cancel is heard at any time; the other one plays.

use std::collections::VecDeque;
use std::io::{self, BufRead};
use std::path::{Path, PathBuf};
use std::process::exit;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};

use serde_json::{Value, json};

use super::files::{self, Change};
use super::lines::Lines;
use super::play::{End, act, complain, end_command, end_with_command, failed, shell, with_causes};
use super::step::{Acp, Choice, Step};
use super::thread::Thread;
use super::{Login, Profile};

/// Was the turn cancelled?
static IS_CANCELLED: AtomicBool = AtomicBool::new(false);
/// Has a cancel no effect?
static IGNORES_CANCEL: AtomicBool = AtomicBool::new(false);
/// Has the end of the input no effect?
static IGNORES_END: AtomicBool = AtomicBool::new(false);

struct Agent {
    profile: Profile,
    lines: Lines,
    inbox: Receiver<Value>,
    /// What came while an answer was waited for.
    later: VecDeque<Value>,
    home: PathBuf,
    folder: PathBuf,
    thread: Option<Thread>,
    asked: u64,
    calls: u64,
}

/// Why a turn is over.
enum Stop {
    Reason(String),
    Refused(i64, String),
    Silent(u8),
}

/// Speaks until the input ends, with sessions below `HOME`.
pub(super) fn serve(profile: &Profile) -> io::Result<()> {
    #[expect(clippy::disallowed_methods, reason = "this stands in for another program, with its own environment")]
    let home = std::env::var_os("HOME").map(PathBuf::from);
    serve_in(profile, home.ok_or_else(|| io::Error::other("the agent needs a HOME"))?.join(".scripted-agent"))
}

/// Speaks until the input ends, with sessions in this folder.
pub fn serve_in(profile: &Profile, home: PathBuf) -> io::Result<()> {
    let (sender, inbox) = channel();
    std::thread::spawn(move || read(&sender));
    let mut agent = Agent {
        profile: profile.clone(),
        lines: Lines::new(),
        inbox,
        later: VecDeque::new(),
        home,
        folder: PathBuf::from("/"),
        thread: None,
        asked: 0,
        calls: 0,
    };
    while let Some(message) = agent.next() {
        agent.answer(&message);
    }
    Ok(())
}

fn read(inbox: &Sender<Value>) {
    for line in io::stdin().lock().lines() {
        let Ok(line) = line else { break };
        let Ok(message) = serde_json::from_str::<Value>(&line) else {
            complain(&format!("this is no message: {line}"));
            continue;
        };
        match message["method"].as_str() {
            // Here, where cancels are heard: one that comes right after the prompt is for that.
            Some("session/prompt") => IS_CANCELLED.store(false, Ordering::SeqCst),
            Some("session/cancel") if !IGNORES_CANCEL.load(Ordering::SeqCst) => {
                IS_CANCELLED.store(true, Ordering::SeqCst);
                end_command();
            }
            _ => {}
        }
        if inbox.send(message).is_err() {
            return;
        }
    }
    if !IGNORES_END.load(Ordering::SeqCst) {
        end_with_command(0);
    }
}

fn is_cancelled() -> bool {
    IS_CANCELLED.load(Ordering::SeqCst)
}

impl Agent {
    fn next(&mut self) -> Option<Value> {
        self.later.pop_front().or_else(|| self.inbox.recv().ok())
    }

    fn send(&mut self, message: &Value) {
        self.lines.bytes(format!("{message}\n").as_bytes());
    }

    fn answer(&mut self, message: &Value) {
        let (Some(method), Some(id)) = (message["method"].as_str(), message.get("id")) else { return };
        let params = &message["params"];
        let result = match method {
            "initialize" => Ok(json!({
                "protocolVersion": 1,
                "agentCapabilities": {"loadSession": true, "promptCapabilities": {}},
                "agentInfo": {"name": "scripted-agent", "version": self.profile.version},
                "authMethods": [{"id": "key", "name": "A key"}],
            })),
            "authenticate" | "session/set_mode" | "session/set_model" => Ok(json!({})),
            "session/new" if self.profile.login == Login::None => Err((-32000, "Authentication required".to_owned())),
            "session/new" => self.open(params, None),
            "session/load" => self.open(params, params["sessionId"].as_str()),
            "session/prompt" => self.prompt(params),
            other => Err((-32601, format!("Method not found: {other}"))),
        };
        let reply = match result {
            Ok(result) => json!({"jsonrpc": "2.0", "id": id, "result": result}),
            Err((code, message)) => json!({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": message}}),
        };
        self.send(&reply);
    }

    fn open(&mut self, params: &Value, session: Option<&str>) -> Result<Value, (i64, String)> {
        self.folder = Path::new(params["cwd"].as_str().unwrap_or("/")).to_owned();
        let thread = match session {
            None => Thread::new(&self.home, false),
            Some(id) => Thread::find(&self.home, id)
                .map_err(|_| (-32602, format!("Invalid params: Unknown sessionId: {id}")))?,
        };
        thread.keep().map_err(|error| (-32603, error.to_string()))?;
        let models = json!({"currentModelId": "scripted-model", "availableModels":
            [{"modelId": "scripted-model", "name": "Scripted"}, {"modelId": "other-model", "name": "Other"}]});
        let result = match session {
            None => json!({"sessionId": thread.id, "models": models}),
            Some(_) => json!({"models": models}),
        };
        self.thread = Some(thread);
        Ok(result)
    }

    fn prompt(&mut self, params: &Value) -> Result<Value, (i64, String)> {
        let prompt = params["prompt"][0]["text"].as_str().unwrap_or_default();
        let steps = match Step::in_prompt(prompt) {
            Ok(steps) => steps.unwrap_or_else(|| self.profile.steps.clone()),
            Err(error) => return Err((-32602, with_causes(&error))),
        };
        let played = self.play(&steps);
        if is_cancelled() {
            return Ok(json!({"stopReason": "cancelled"}));
        }
        let reason = match played {
            Ok(()) => "end_turn".to_owned(),
            Err(Stop::Reason(reason)) => reason,
            Err(Stop::Refused(code, message)) => return Err((code, message)),
            Err(Stop::Silent(code)) => exit(code.into()),
        };
        if let Some(thread) = &mut self.thread {
            thread.end_turn().map_err(|error| (-32603, error.to_string()))?;
        }
        let usage = json!({"inputTokens": 100, "outputTokens": 30, "totalTokens": 150, "cachedReadTokens": 20});
        Ok(json!({"stopReason": reason, "usage": usage}))
    }

    fn play(&mut self, steps: &[Step]) -> Result<(), Stop> {
        for step in steps {
            if is_cancelled() {
                break;
            }
            self.step(step)?;
        }
        Ok(())
    }

    fn step(&mut self, step: &Step) -> Result<(), Stop> {
        if let Some(change) = files::describe(&self.folder, step) {
            return self.change(step, &change).map_err(|error| stop(failed(step)(error)));
        }
        match step {
            Step::Say(text) => self.say(text),
            Step::Reason(text) => self.chunk("agent_thought_chunk", text),
            Step::Flood(count) => (0..*count).for_each(|number| self.say(&format!("message {number}"))),
            Step::LongLine(bytes) => self.say(&"x".repeat(usize::try_from(*bytes).unwrap_or(usize::MAX))),
            Step::Run(text) => self.run(text).map_err(|error| stop(failed(step)(error)))?,
            Step::Hang => self.hang(),
            Step::Fail(message) => return Err(Stop::Refused(-32603, format!("Internal error: {message}"))),
            Step::Acp(acp) => self.acp(acp)?,
            other => act(&self.folder, other, &mut self.lines).map_err(stop)?,
        }
        Ok(())
    }

    fn acp(&mut self, step: &Acp) -> Result<(), Stop> {
        match step {
            Acp::Ask { title, input, options, then, otherwise } => {
                let options = if options.is_empty() { usual() } else { options.clone() };
                let id = self.ask(title, input, &options);
                let answer = self.wait(id);
                self.play(if is_yes(&answer, &options) { then } else { otherwise })?;
            }
            Acp::AskMany(count) => {
                let ids: Vec<u64> =
                    (0..*count).map(|n| self.ask(&format!("step {n}"), &Value::Null, &usual())).collect();
                let granted = ids.into_iter().filter(|id| is_yes(&self.wait(*id), &usual())).count();
                self.say(&format!("{granted} of {count} granted"));
            }
            Acp::ReadFile(path, place) => {
                let answer = self.request("fs/read_text_file", &json!({"path": self.at(path)}));
                let text = match answer.pointer("/result/content").and_then(Value::as_str) {
                    Some(content) => content.to_owned(),
                    None => format!("refused: {}", answer["error"]["message"]),
                };
                let place = self.folder.join(place.to_path());
                std::fs::write(place, text).map_err(|error| Stop::Refused(-32603, error.to_string()))?;
            }
            Acp::WriteFile(path, content) => {
                let answer = self.request("fs/write_text_file", &json!({"path": self.at(path), "content": content}));
                if let Some(error) = answer.get("error") {
                    self.say(&format!("refused: {}", error["message"]));
                }
            }
            Acp::Request(method, params) => {
                let answer = self.request(method, params);
                self.say(&format!("{method}: {}", answer.get("error").unwrap_or(&answer["result"])));
            }
            Acp::Update(update) => self.update(update),
            Acp::UpdateOf(session, update) => {
                self.send(&json!({"jsonrpc": "2.0", "method": "session/update",
                    "params": {"sessionId": session, "update": update}}));
            }
            Acp::Spell { variable, pieces } => self.spell(variable, *pieces),
            Acp::IgnoreCancel => IGNORES_CANCEL.store(true, Ordering::SeqCst),
            Acp::IgnoreEnd => IGNORES_END.store(true, Ordering::SeqCst),
            Acp::Stop(reason) => return Err(Stop::Reason(reason.clone())),
            Acp::Refuse(code, message) => return Err(Stop::Refused(*code, message.clone())),
        }
        Ok(())
    }

    fn session(&self) -> &str {
        self.thread.as_ref().map_or("", |thread| &thread.id)
    }

    /// A path in the turn's folder, letter by letter: `..` stays there.
    fn at(&self, path: &str) -> String {
        if path.starts_with('/') { path.to_owned() } else { format!("{}/{path}", self.folder.display()) }
    }

    fn update(&mut self, update: &Value) {
        let message = json!({"jsonrpc": "2.0", "method": "session/update",
            "params": {"sessionId": self.session(), "update": update}});
        self.send(&message);
    }

    fn say(&mut self, text: &str) {
        let middle = (text.len() / 2..).find(|at| text.is_char_boundary(*at)).unwrap_or(text.len());
        self.chunk("agent_message_chunk", &text[..middle]);
        self.chunk("agent_message_chunk", &text[middle..]);
    }

    fn spell(&mut self, variable: &str, pieces: usize) {
        #[expect(clippy::disallowed_methods, reason = "this stands in for another program, with its own environment")]
        let letters: Vec<char> = std::env::var(variable).unwrap_or_default().chars().collect();
        let pieces = letters.chunks(letters.len().div_ceil(pieces.max(1)).max(1)).map(String::from_iter);
        let pieces: Vec<String> = pieces.collect();
        for kind in ["agent_message_chunk", "agent_thought_chunk"] {
            pieces.iter().for_each(|piece| self.chunk(kind, piece));
        }
        let id = self.call("execute", "shell", &json!({}));
        let mut shown = String::new();
        for piece in &pieces {
            shown.push_str(piece);
            self.update(&json!({"sessionUpdate": "tool_call_update", "toolCallId": id, "status": "in_progress",
                "rawInput": {"command": shown}, "content": [{"type": "content", "content": {"type": "text", "text": shown}}]}));
        }
        self.update(&json!({"sessionUpdate": "tool_call_update", "toolCallId": id, "status": "completed",
            "rawOutput": {"output": shown, "metadata": {"exit": 0}}}));
    }

    fn chunk(&mut self, kind: &str, text: &str) {
        self.update(&json!({"sessionUpdate": kind, "content": {"type": "text", "text": text}}));
    }

    fn call(&mut self, kind: &str, title: &str, input: &Value) -> String {
        self.calls += 1;
        let id = format!("call_{}", self.calls);
        self.update(&json!({"sessionUpdate": "tool_call", "toolCallId": id, "title": title, "kind": kind,
            "status": "in_progress", "rawInput": input}));
        id
    }

    fn change(&mut self, step: &Step, change: &Change<'_>) -> io::Result<()> {
        let (id, locations) = match change {
            Change::Patch(_, path) => {
                let path = self.folder.join(path.to_path());
                let locations = json!([{"path": path.to_string_lossy()}]);
                (self.call("edit", "write", &json!({})), locations)
            }
            Change::Command(text) => (self.call("execute", "shell", &json!({"command": text})), json!([])),
        };
        files::make(&self.folder, step)?;
        self.update(&json!({"sessionUpdate": "tool_call_update", "toolCallId": id, "status": "completed",
            "locations": locations}));
        Ok(())
    }

    fn run(&mut self, text: &str) -> io::Result<()> {
        let id = self.call("execute", "shell", &json!({"command": text}));
        let (status, output) = shell(&self.folder, text, is_cancelled)?;
        let ended = if status.success() { "completed" } else { "failed" };
        self.update(&json!({"sessionUpdate": "tool_call_update", "toolCallId": id, "status": ended,
            "rawOutput": {"output": output, "metadata": {"exit": status.code().unwrap_or(-1)}}}));
        Ok(())
    }

    /// Does nothing until the turn is cancelled.
    fn hang(&mut self) {
        while !is_cancelled() {
            let Ok(message) = self.inbox.recv() else { return };
            self.later.push_back(message);
        }
    }

    fn ask(&mut self, title: &str, input: &Value, options: &[Choice]) -> u64 {
        let options: Vec<Value> = options
            .iter()
            .map(|option| json!({"optionId": option.id, "name": option.name, "kind": option.kind}))
            .collect();
        let call = json!({"toolCallId": format!("asked_{}", self.asked + 1), "title": title, "rawInput": input});
        self.begin("session/request_permission", &json!({"toolCall": call, "options": options}))
    }

    fn begin(&mut self, method: &str, params: &Value) -> u64 {
        self.asked += 1;
        let mut params = params.clone();
        if let Some(params) = params.as_object_mut() {
            params.insert("sessionId".to_owned(), self.session().into());
        }
        self.send(&json!({"jsonrpc": "2.0", "id": self.asked, "method": method, "params": params}));
        self.asked
    }

    fn request(&mut self, method: &str, params: &Value) -> Value {
        let id = self.begin(method, params);
        self.wait(id)
    }

    /// The answer to the request of this number.
    fn wait(&mut self, id: u64) -> Value {
        let is_it = |message: &Value| message["id"] == id && message.get("method").is_none();
        if let Some(at) = self.later.iter().position(is_it) {
            return self.later.remove(at).unwrap_or_default();
        }
        while let Ok(message) = self.inbox.recv() {
            if is_it(&message) {
                return message;
            }
            self.later.push_back(message);
        }
        Value::Null
    }
}

fn stop(end: End) -> Stop {
    match end {
        End::Silent(code) => Stop::Silent(code),
        End::Failed(message) => Stop::Refused(-32603, message),
    }
}

fn usual() -> Vec<Choice> {
    let choice = |id: &str, kind: &str| Choice { id: id.to_owned(), kind: kind.to_owned(), name: id.to_owned() };
    vec![choice("once", "allow_once"), choice("always", "allow_always"), choice("no", "reject_once")]
}

fn is_yes(answer: &Value, options: &[Choice]) -> bool {
    let chosen = answer.pointer("/result/outcome/optionId").and_then(Value::as_str);
    options.iter().any(|option| Some(option.id.as_str()) == chosen && option.kind.starts_with("allow"))
}
