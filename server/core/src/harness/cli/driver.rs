//! The understanding of a program that is known only by its exit code and its output.
//!
//! Text: each line is a message, and all of it, bounded, is the answer. Lines of JSON: events of the common shapes
//! ([`super::event`]); what is no such event is kept as chatter and is no answer. A turn is complete when the program
//! exits with 0, said nothing to the contrary, and, where it may only look, answered something.

use super::super::failure::{MALFORMED, PROVIDER, Speaker, ended, endless, find, session_replaced, with_reason};
use super::super::notices::{Notices, cut, one_line};
use super::super::repeats::Repeats;
use super::super::tail::Tail;
use super::super::{Conclusion, Driver, HarnessName, Resume, Step};
use super::event::{self, Event, Words};
use super::is_plain_session;
use crate::display;
use crate::job::access::Access;
use crate::job::event::{ExitRecord, Known};
use crate::job::outcome::Verdict;
use crate::{Failure, FailureCode, strict_json};

/// What is wrong with a line that [`strict_json`] does not read.
const AMBIGUOUS: &str = "a line named a member twice";
/// The longest message that is recorded, in bytes.
const MESSAGE_MAX: usize = 16 * 1024;
/// The most messages that are recorded; the answer has the rest.
const MESSAGES_MAX: u32 = 5_000;
/// How much of the beginning of an answer is kept, and how much of its end.
const ANSWER_HEAD: usize = 16 * 1024;
const ANSWER_TAIL: usize = 48 * 1024;

/// Drives one launch.
#[derive(Debug)]
pub(super) struct CliDriver {
    name: String,
    access: Access,
    reading: Reading,
    messages: u32,
    notices: Notices,
    stderr: Tail,
}

/// How the output is read, and what it came to.
#[derive(Debug)]
enum Reading {
    Text(Answer),
    Jsonl(Box<Told>),
}

/// What events told.
#[derive(Debug, Default)]
struct Told {
    keeps_session: bool,
    asked_session: Option<String>,
    session: Option<String>,
    was_replaced: bool,
    /// What came in pieces and is not whole yet.
    pieces: Answer,
    /// The last whole message.
    last: Option<String>,
    /// The answer in a closing event.
    result: Option<String>,
    /// The turn failed, in the program's own words.
    failed: Option<String>,
    /// An error after which nothing was said yet.
    trouble: Option<String>,
    repeats: Repeats,
    /// What a tool was told to do whose result is still to be told.
    begun: Option<String>,
}

/// A text of any length, of which the beginning and the end are kept.
#[derive(Debug, Default)]
struct Answer {
    head: String,
    tail: String,
    cut: u64,
}

impl CliDriver {
    pub(super) fn text(name: &HarnessName, access: Access) -> Self {
        Self::new(name, access, Reading::Text(Answer::default()))
    }

    pub(super) fn jsonl(name: &HarnessName, access: Access, keeps_session: bool, resume: Option<Resume<'_>>) -> Self {
        let asked_session = resume.map(|resume| resume.session.to_owned());
        Self::new(name, access, Reading::Jsonl(Box::new(Told { keeps_session, asked_session, ..Told::default() })))
    }

    fn new(name: &HarnessName, access: Access, reading: Reading) -> Self {
        let (notices, stderr) = (Notices::default(), Tail::default());
        Self { name: name.to_string(), access, reading, messages: 0, notices, stderr }
    }

    fn message(&mut self, words: &str) -> Vec<Step> {
        if words.trim().is_empty() {
            return Vec::new();
        }
        self.messages = self.messages.saturating_add(1);
        if self.messages > MESSAGES_MAX {
            let note =
                format!("{} said more than {MESSAGES_MAX} things; the rest is not recorded one by one", self.name);
            return self.notices.once("cli-messages-left-out", &note);
        }
        vec![Step::Record(Known::Message { text: cut(words, MESSAGE_MAX) })]
    }

    fn event(&mut self, event: Event) -> Vec<Step> {
        let Reading::Jsonl(told) = &mut self.reading else { return Vec::new() };
        if matches!(event, Event::Words(_) | Event::Reasoning(_) | Event::Tool { .. } | Event::Done { .. }) {
            // The agent goes on after an error: that was no end.
            told.trouble = None;
        }
        match event {
            Event::Session { id, model } => self.session(&id, model),
            Event::Words(Words::Whole(words)) => {
                let whole = words.trim().to_owned();
                let was_streamed = told.pieces.take().is_some_and(|pieces| pieces.trim() == whole);
                told.last = Some(bounded(&words));
                if was_streamed { Vec::new() } else { self.message(&words) }
            }
            Event::Words(Words::Piece(piece)) => {
                told.pieces.push(&piece);
                Vec::new()
            }
            Event::Reasoning(words) => vec![Step::Record(Known::Reasoning { text: cut(&words, MESSAGE_MAX) })],
            Event::Tool { tool, failed, input, output } => {
                let what = input.map(|input| format!("{tool}\0{input}"));
                match (what, output) {
                    (Some(what), Some(output)) => told.repeats.work(&what, &output),
                    (what, _) => told.begun = what,
                }
                let mut steps: Vec<Step> = told.repeats.end().into_iter().collect();
                steps.extend(self.whole_pieces());
                steps.push(Step::Record(Known::ToolUsed { tool: one_line(&tool), failed }));
                steps
            }
            Event::Result(result) => {
                if let Some(what) = told.begun.take() {
                    told.repeats.work(&what, &result);
                }
                told.repeats.end().into_iter().collect()
            }
            Event::Error(message) => {
                told.trouble = Some(message.clone());
                let note = format!("{} reports an error: {message}", self.name);
                self.notices.once("cli-error", &note)
            }
            Event::Done { failure, answer, usage } => {
                told.result = answer.as_deref().map(bounded);
                // A later success does not undo it.
                told.failed = told.failed.take().or(failure);
                let mut steps = self.whole_pieces();
                steps.extend(usage.map(|usage| Step::Record(Known::Usage { usage })));
                steps
            }
            Event::Unknown(kind) => {
                let kind = display::headline(&kind, 60);
                let note = format!("{} sent an event that this pactify does not know: {kind:?}", self.name);
                self.notices.once("cli-unknown-event", &note)
            }
        }
    }

    /// What came in pieces is a message once something else follows.
    fn whole_pieces(&mut self) -> Vec<Step> {
        let Reading::Jsonl(told) = &mut self.reading else { return Vec::new() };
        let Some(words) = told.pieces.take().filter(|words| !words.trim().is_empty()) else { return Vec::new() };
        told.last = Some(words.clone());
        self.message(&words)
    }

    fn session(&mut self, id: &str, model: Option<String>) -> Vec<Step> {
        let Reading::Jsonl(told) = &mut self.reading else { return Vec::new() };
        if !told.keeps_session || told.session.as_deref() == Some(id) {
            return Vec::new();
        }
        if !is_plain_session(id) {
            let note = format!("{} named no session that could be resumed", self.name);
            return self.notices.once("cli-session-unusable", &note);
        }
        told.was_replaced |= told.asked_session.as_deref().is_some_and(|asked| asked != id);
        told.session = Some(id.to_owned());
        vec![Step::Record(Known::SessionStarted { session: id.to_owned(), model })]
    }

    fn verdict(&self, exit: ExitRecord, answer: Option<&str>) -> Verdict {
        if matches!(&self.reading, Reading::Jsonl(told) if told.repeats.is_endless()) {
            return Verdict::Failed(endless(&self.name));
        }
        let told = match &self.reading {
            Reading::Text(_) => None,
            Reading::Jsonl(told) => told.failed.as_ref().or(told.trouble.as_ref()),
        };
        if let Some(said) = told {
            return Verdict::Failed(self.failed(&format!("{} failed", self.name), &one_line(said)));
        }
        if let Reading::Jsonl(told) = &self.reading
            && told.was_replaced
        {
            return Verdict::Failed(session_replaced(&self.name));
        }
        match exit {
            ExitRecord::Code(0) if answer.is_none() && self.has_to_answer() => Verdict::Silent,
            ExitRecord::Code(0) => Verdict::Completed,
            _ => Verdict::Failed(self.failed(&format!("{} {}", self.name, ended(exit)), &self.stderr.quoted())),
        }
    }

    /// A program of Unix says nothing where all went well; one that speaks in lines of JSON tells what it did.
    fn has_to_answer(&self) -> bool {
        self.access == Access::ReadOnly || matches!(self.reading, Reading::Jsonl(_))
    }

    /// What happened, in the program's own words; if they are about its provider, that is what it is called.
    fn failed(&self, what: &str, said: &str) -> Failure {
        if said.is_empty() {
            let next = format!("run it in a terminal to see what is wrong: [harnesses.{}]", self.name);
            return Failure::new(
                FailureCode::HarnessFailed,
                format!("{what} and said nothing on standard error"),
                next,
            );
        }
        let log_in =
            format!("log in with {} itself, or let its key through with `environment`; then retry the job", self.name);
        let speaker = Speaker { agent: &self.name, log_in: &log_in };
        with_reason(speaker, find(&[PROVIDER, MALFORMED], said), what, said)
    }
}

impl Driver for CliDriver {
    fn on_line(&mut self, line: &str) -> Vec<Step> {
        let shown = shown(line);
        match &mut self.reading {
            Reading::Text(answer) => {
                answer.push(&shown);
                answer.push("\n");
                self.message(&shown)
            }
            Reading::Jsonl(_) => match event::read(line) {
                Some(events) => events.into_iter().flat_map(|event| self.event(event)).collect(),
                // It may have been the end of all: what follows shows whether it was.
                None if strict_json::is_ambiguous(line) => self.event(Event::Error(AMBIGUOUS.to_owned())),
                None => self.message(&shown),
            },
        }
    }

    fn is_in_pieces(&self, line: &str) -> bool {
        match &self.reading {
            Reading::Text(_) => false,
            // What an event of an unknown kind holds nobody knows. Whether a message is whole not even those tell who
            // call it one.
            Reading::Jsonl(_) => !event::read(line).is_some_and(|events| {
                let is_whole = |event: &Event| matches!(event, Event::Error(_) | Event::Done { .. });
                events.iter().any(is_whole) && !events.iter().any(|event| matches!(event, Event::Words(_)))
            }),
        }
    }

    fn on_stderr(&mut self, line: &str) -> Vec<Step> {
        self.stderr.push(&shown(line));
        Vec::new()
    }

    fn on_exit(&mut self, exit: ExitRecord) -> Conclusion {
        let answer = match &mut self.reading {
            Reading::Text(answer) => answer.take(),
            Reading::Jsonl(told) => {
                let pieces = told.pieces.take();
                told.result.take().or(pieces).or_else(|| told.last.take())
            }
        };
        let final_message = answer.map(|words| words.trim().to_owned()).filter(|words| !words.is_empty());
        Conclusion { verdict: self.verdict(exit, final_message.as_deref()), final_message }
    }
}

impl Answer {
    fn push(&mut self, text: &str) {
        let into_head = display::head(text, ANSWER_HEAD - self.head.len().min(ANSWER_HEAD));
        let into_head = if self.tail.is_empty() { into_head } else { "" };
        self.head.push_str(into_head);
        self.tail.push_str(&text[into_head.len()..]);
        if self.tail.len() > 2 * ANSWER_TAIL {
            self.shorten();
        }
    }

    /// All of it; nothing when there is none.
    fn take(&mut self) -> Option<String> {
        self.shorten();
        let Self { head, tail, cut } = std::mem::take(self);
        let gap = if cut > 0 { format!("\n[… {cut} bytes cut]\n") } else { String::new() };
        let whole = format!("{head}{gap}{tail}");
        (!whole.is_empty()).then_some(whole)
    }

    fn shorten(&mut self) {
        let kept = display::tail(&self.tail, ANSWER_TAIL);
        let lost = self.tail.len() - kept.len();
        self.cut += lost as u64;
        self.tail.drain(..lost);
    }
}

/// A text with no more than what is kept of an answer.
fn bounded(text: &str) -> String {
    let mut answer = Answer::default();
    answer.push(text);
    answer.take().unwrap_or_default()
}

/// A line as a terminal would show it in the end: without colours, and of a line that was written over only what is
/// left of it.
fn shown(line: &str) -> String {
    let plain = display::without_ansi(line);
    plain.rsplit('\r').find(|part| !part.trim().is_empty()).unwrap_or_default().to_owned()
}
