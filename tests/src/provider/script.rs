//! What the provider says: scripts, their steps, and the JSON they are written in.
//!
//! Data only: what a step becomes on the wire is decided in [`super::reply`]. A script file is either one script
//! (`{"steps": […]}`, played as `default`) or `{"scripts": {"NAME": {…}, …}}`. A step is one HTTP answer and holds
//! exactly one of these, plus modifiers:
//!
//! | key | answer |
//! | --- | --- |
//! | `message`: text | an assistant message |
//! | `edit`: `{path, content}` | create a file with whatever tool the request offers |
//! | `shell`: command | run a command with whatever tool the request offers |
//! | `call`: `{name, arguments, namespace?}` | a function call |
//! | `custom`: `{name, input}` | a freeform tool call |
//! | `items`: `[step, …]`, `raw_items`: `[…]` | several of the above; output items word for word |
//! | `status`: 429, with `body`, `headers` | an HTTP error |
//! | `raw`: text, with `content_type` | that body with status 200 |
//! | `failed`, `sse_error`: object | `response.failed`; an `error` event |
//! | `hang`, `hang_headers`, `hang_stream`: seconds | silence before the headers, after them, in mid-message |
//! | `drop`, `truncate`: true | the connection closes unanswered; the stream ends early |
//!
//! Modifiers: `reasoning` and `preamble` (text before the item), `incomplete` (ends as `response.incomplete` for that
//! reason), `delay` and `chunk_delay` (seconds), `usage`. A script may also hold `after` (the step played once the
//! steps are used up; otherwise the last one repeats), `models`, `models_status`, `require_auth`, `oauth`, `ws_status`.
//! Unknown keys are errors: a misspelt step must not pass as an empty one.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::Deserialize;
use serde_json::Value;

/// No silence lasts longer, whatever the script says: a forgotten provider must end its connections some day.
const LONGEST_PAUSE: Duration = Duration::from_secs(3600);

/// All scripts of one provider, by the name that stands in the URL.
#[derive(Clone, Debug, Default)]
pub struct Scripts(BTreeMap<String, Script>);

/// One conversation: the steps in order, and how the other routes answer.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Script {
    /// Played in order, one per request of a session.
    #[serde(default)]
    pub steps: Vec<Step>,
    /// Played once the steps are used up; without it the last step repeats.
    pub after: Option<Step>,
    /// The body of `GET …/models`.
    pub models: Option<Value>,
    /// `GET …/models` fails with this status.
    pub models_status: Option<u16>,
    /// Requests must carry exactly this `Authorization` header, else they get a 401.
    pub require_auth: Option<String>,
    /// The answer of `POST …/oauth/token`.
    pub oauth: Option<FixedAnswer>,
    /// How a WebSocket upgrade is refused (426 makes codex fall back at once).
    pub ws_status: Option<u16>,
}

/// A status with a JSON body.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FixedAnswer {
    /// HTTP status.
    #[serde(default = "ok")]
    pub status: u16,
    /// JSON body.
    pub body: Value,
}

/// One HTTP answer.
#[derive(Clone, Debug, Deserialize)]
#[serde(try_from = "RawStep")]
pub struct Step {
    /// What is answered.
    pub answer: Answer,
    /// Silence before anything is sent.
    pub delay: Duration,
    /// Silence between two events of a stream.
    pub chunk_delay: Duration,
    /// The `usage` object of the finished response; a fixed one otherwise.
    pub usage: Option<Value>,
}

/// The kinds of answer.
#[derive(Clone, Debug)]
pub enum Answer {
    /// A stream of output items that completes.
    Items(Vec<Item>),
    /// The same, ended as `response.incomplete` for this reason.
    Incomplete(Vec<Item>, String),
    /// An HTTP status, its body, extra headers.
    Status(u16, Option<Value>, BTreeMap<String, String>),
    /// Status 200 with this body, of this content type.
    Raw(String, String),
    /// `response.failed` with this error object.
    Failed(Value),
    /// An `error` event with these fields.
    SseError(Value),
    /// No answer for this long, then the connection closes.
    Hang(Duration),
    /// Headers, then silence for this long.
    HangHeaders(Duration),
    /// Half a message, then silence for this long.
    HangStream(Duration),
    /// The connection closes unanswered.
    Drop,
    /// Half a message, then a clean end of the stream.
    Truncate,
}

/// One output item. `Edit` and `Shell` take the shape of the tools that the request offers.
#[derive(Clone, Debug, PartialEq)]
pub enum Item {
    /// A reasoning summary.
    Reasoning(String),
    /// Assistant text; `commentary` marks text that precedes a tool call.
    Message {
        /// The text.
        text: String,
        /// Is it an aside before a tool call?
        commentary: bool,
    },
    /// A function call.
    Call {
        /// The tool's name.
        name: String,
        /// Its arguments; a string is sent as it is (so that it can be malformed).
        arguments: Value,
        /// The namespace in which the tool was offered.
        namespace: Option<String>,
    },
    /// A freeform tool call.
    Custom {
        /// The tool's name.
        name: String,
        /// Its input.
        input: String,
    },
    /// Create a file.
    Edit {
        /// Relative to the working directory of the request's author.
        path: String,
        /// All of it.
        content: String,
    },
    /// Run a command.
    Shell(String),
    /// An item word for word.
    Raw(Value),
}

/// Why a script file was refused.
#[derive(Debug, thiserror::Error)]
pub enum ScriptError {
    /// Not JSON, or not a script.
    #[error("not a provider script: {0}")]
    Syntax(#[from] serde_json::Error),
    /// A step says nothing, or several things at once.
    #[error("a step must hold exactly one answer, this one holds {count}: {keys}")]
    NotOneAnswer {
        /// How many answers it holds.
        count: usize,
        /// Their names.
        keys: String,
    },
}

impl Scripts {
    /// Reads a script file's text.
    pub fn parse(text: &str) -> Result<Self, ScriptError> {
        Self::from_value(serde_json::from_str(text)?)
    }

    /// The same, from `serde_json::json!`.
    pub fn from_value(value: Value) -> Result<Self, ScriptError> {
        #[derive(Deserialize)]
        #[serde(deny_unknown_fields)]
        struct Named {
            scripts: BTreeMap<String, Script>,
        }
        if value.get("scripts").is_some() {
            return Ok(Self(Named::deserialize(value)?.scripts));
        }
        Ok(Self::default().with("default", Script::deserialize(value)?))
    }

    /// Adds one script.
    #[must_use]
    pub fn with(mut self, name: &str, script: Script) -> Self {
        self.0.insert(name.to_owned(), script);
        self
    }

    /// The script of that name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&Script> {
        self.0.get(name)
    }

    /// All names, for messages.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }
}

impl Script {
    /// A script of these steps and nothing else.
    #[must_use]
    pub fn of(steps: impl IntoIterator<Item = Step>) -> Self {
        Self { steps: steps.into_iter().collect(), ..Self::default() }
    }

    /// The step for the `turn`-th request of a session (from 0).
    #[must_use]
    pub fn step(&self, turn: usize) -> Step {
        let last = self.after.as_ref().or(self.steps.last());
        self.steps.get(turn).or(last).cloned().unwrap_or_else(|| Step::message("ok"))
    }
}

impl Step {
    /// An assistant message.
    #[must_use]
    pub fn message(text: &str) -> Self {
        Self::items([Item::Message { text: text.to_owned(), commentary: false }])
    }

    /// Create a file with whatever the request offers.
    #[must_use]
    pub fn edit(path: &str, content: &str) -> Self {
        Self::items([Item::Edit { path: path.to_owned(), content: content.to_owned() }])
    }

    /// Run a command with whatever the request offers.
    #[must_use]
    pub fn shell(command: &str) -> Self {
        Self::items([Item::Shell(command.to_owned())])
    }

    /// An HTTP error in OpenAI's shape.
    #[must_use]
    pub fn error(status: u16, code: &str, message: &str) -> Self {
        let body = serde_json::json!({"error": {"message": message, "type": code, "code": code}});
        Self::of(Answer::Status(status, Some(body), BTreeMap::new()))
    }

    /// Several items in one answer.
    #[must_use]
    pub fn items(items: impl IntoIterator<Item = Item>) -> Self {
        Self::of(Answer::Items(items.into_iter().collect()))
    }

    /// This answer, without delays.
    #[must_use]
    pub fn of(answer: Answer) -> Self {
        Self { answer, delay: Duration::ZERO, chunk_delay: Duration::ZERO, usage: None }
    }
}

fn ok() -> u16 {
    200
}

/// A step as it is written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawStep {
    message: Option<String>,
    edit: Option<RawEdit>,
    shell: Option<String>,
    call: Option<RawCall>,
    custom: Option<RawCustom>,
    items: Option<Vec<RawStep>>,
    raw_items: Option<Vec<Value>>,
    status: Option<u16>,
    raw: Option<String>,
    failed: Option<Value>,
    sse_error: Option<Value>,
    hang: Option<f64>,
    hang_headers: Option<f64>,
    hang_stream: Option<f64>,
    #[serde(default)]
    drop: bool,
    #[serde(default)]
    truncate: bool,
    // Modifiers.
    reasoning: Option<String>,
    preamble: Option<String>,
    incomplete: Option<String>,
    body: Option<Value>,
    #[serde(default)]
    headers: BTreeMap<String, String>,
    content_type: Option<String>,
    delay: Option<f64>,
    chunk_delay: Option<f64>,
    usage: Option<Value>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawEdit {
    path: String,
    content: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawCall {
    name: String,
    arguments: Value,
    namespace: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawCustom {
    name: String,
    input: String,
}

impl RawStep {
    /// The answers that are present; a correct step has one.
    fn present(&self) -> Vec<&'static str> {
        let all = [
            ("message", self.message.is_some()),
            ("edit", self.edit.is_some()),
            ("shell", self.shell.is_some()),
            ("call", self.call.is_some()),
            ("custom", self.custom.is_some()),
            ("items", self.items.is_some()),
            ("raw_items", self.raw_items.is_some()),
            ("status", self.status.is_some()),
            ("raw", self.raw.is_some()),
            ("failed", self.failed.is_some()),
            ("sse_error", self.sse_error.is_some()),
            ("hang", self.hang.is_some()),
            ("hang_headers", self.hang_headers.is_some()),
            ("hang_stream", self.hang_stream.is_some()),
            ("drop", self.drop),
            ("truncate", self.truncate),
        ];
        all.into_iter().filter_map(|(name, is_there)| is_there.then_some(name)).collect()
    }

    fn into_items(self) -> Result<Vec<Item>, ScriptError> {
        let mut items = Vec::new();
        items.extend(self.reasoning.map(Item::Reasoning));
        items.extend(self.preamble.map(|text| Item::Message { text, commentary: true }));
        items.extend(self.message.map(|text| Item::Message { text, commentary: false }));
        items.extend(self.edit.map(|edit| Item::Edit { path: edit.path, content: edit.content }));
        items.extend(self.shell.map(Item::Shell));
        items.extend(self.call.map(|c| Item::Call { name: c.name, arguments: c.arguments, namespace: c.namespace }));
        items.extend(self.custom.map(|c| Item::Custom { name: c.name, input: c.input }));
        items.extend(self.raw_items.into_iter().flatten().map(Item::Raw));
        for inner in self.items.into_iter().flatten() {
            one_answer(&inner)?;
            items.extend(inner.into_items()?);
        }
        Ok(items)
    }
}

impl TryFrom<RawStep> for Step {
    type Error = ScriptError;

    fn try_from(mut raw: RawStep) -> Result<Self, ScriptError> {
        // A bare `incomplete` or `reasoning` is an answer with no message, which codex does meet.
        if raw.incomplete.is_none() && raw.reasoning.is_none() {
            one_answer(&raw)?;
        }
        let (delay, chunk_delay) = (pause(raw.delay), pause(raw.chunk_delay));
        let usage = raw.usage.take();
        let answer = if let Some(status) = raw.status {
            Answer::Status(status, raw.body, raw.headers)
        } else if let Some(text) = raw.raw {
            Answer::Raw(text, raw.content_type.unwrap_or_else(|| "text/event-stream".to_owned()))
        } else if let Some(error) = raw.failed {
            Answer::Failed(error)
        } else if let Some(error) = raw.sse_error {
            Answer::SseError(error)
        } else if raw.hang.is_some() {
            Answer::Hang(pause(raw.hang))
        } else if raw.hang_headers.is_some() {
            Answer::HangHeaders(pause(raw.hang_headers))
        } else if raw.hang_stream.is_some() {
            Answer::HangStream(pause(raw.hang_stream))
        } else if raw.drop {
            Answer::Drop
        } else if raw.truncate {
            Answer::Truncate
        } else if let Some(reason) = raw.incomplete.take() {
            Answer::Incomplete(raw.into_items()?, reason)
        } else {
            Answer::Items(raw.into_items()?)
        };
        Ok(Self { answer, delay, chunk_delay, usage })
    }
}

fn one_answer(raw: &RawStep) -> Result<(), ScriptError> {
    let keys = raw.present();
    if keys.len() == 1 {
        return Ok(());
    }
    Err(ScriptError::NotOneAnswer { count: keys.len(), keys: keys.join(", ") })
}

fn pause(seconds: Option<f64>) -> Duration {
    let wanted = Duration::try_from_secs_f64(seconds.unwrap_or(0.0)).unwrap_or(LONGEST_PAUSE);
    wanted.min(LONGEST_PAUSE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_steps_are_played_in_order_and_the_last_one_repeats() {
        let scripts = Scripts::parse(r#"{"steps": [{"edit": {"path": "a", "content": "x"}}, {"message": "done"}]}"#);
        let script = scripts.unwrap().get("default").unwrap().clone();
        let text = |turn| format!("{:?}", script.step(turn).answer);
        assert!(text(0).contains("Edit"), "{}", text(0));
        assert!(text(1).contains("done"), "{}", text(1));
        assert_eq!(text(1), text(7));
    }

    #[test]
    fn a_script_that_could_be_misread_is_refused() {
        for (script, complaint) in [
            (r#"{"steps": [{"mesage": "typo"}]}"#, "unknown field `mesage`"),
            (r#"{"steps": [{}]}"#, "holds 0"),
            (r#"{"steps": [{"message": "a", "status": 500}]}"#, "holds 2: message, status"),
            (r#"{"steps": [{"items": [{"message": "a", "shell": "b"}]}]}"#, "holds 2: message, shell"),
            (r#"{"scripts": {}, "steps": []}"#, "unknown field `steps`"),
        ] {
            let error = Scripts::parse(script).unwrap_err().to_string();
            assert!(error.contains(complaint), "{script}: {error}");
        }
    }

    #[test]
    fn no_pause_lasts_for_ever() {
        for seconds in ["1e300", "-1", "99999"] {
            let scripts = Scripts::parse(&format!(r#"{{"steps": [{{"hang": {seconds}}}]}}"#)).unwrap();
            let Answer::Hang(pause) = scripts.get("default").unwrap().step(0).answer else { panic!() };
            assert_eq!(pause, LONGEST_PAUSE, "{seconds}");
        }
    }
}
