//! One turn: plays the steps and reports them as codex would.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read, Seek, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rustix::fs::{MemfdFlags, memfd_create};
use rustix::process::{Pid, Signal, getpid, kill_process, kill_process_group};
use serde_json::{Value, json};
use tokio::signal::unix::{SignalKind, signal};

use super::files::{self, Change};
use super::lines::Lines;
use super::step::{Chatter, ScriptError, Step};
use super::thread::Thread;
use super::{escape, step::Name};
use crate::rendezvous;

/// Nothing waits longer.
const LONGEST_PAUSE: Duration = Duration::from_secs(3600);
/// Between two bursts of chatter.
const BREATH: Duration = Duration::from_millis(2);
/// Far more than any reader may keep.
const ENDLESS: usize = 64 << 30;

/// Are signals to have no effect?
static IS_DEAF: AtomicBool = AtomicBool::new(false);
/// The command that runs, if one does. Who ends the agent never lets go of it: a turn whose command was
/// ended must not come to its own end, with an exit code of its own, before the process is gone.
static RUNNING: Mutex<Option<Pid>> = Mutex::new(None);

pub(super) struct Turn {
    /// Where relative paths start.
    pub(super) folder: PathBuf,
    pub(super) prompt: String,
    pub(super) thread: Thread,
    pub(super) lines: Lines,
    /// Are the file steps refused?
    pub(super) refuses_edits: bool,
    pub(super) last_message: Option<String>,
    pub(super) last_message_file: Option<PathBuf>,
}

/// How a turn ends before its last step.
pub(super) enum End {
    /// With this exit code and no further event.
    Silent(u8),
    /// With `turn.failed`.
    Failed(String),
}

/// A command of the agent or of one of its own processes.
#[expect(clippy::disallowed_methods, reason = "this stands in for another program, whose children are its own affair")]
pub(super) fn command(program: impl AsRef<OsStr>) -> Command {
    Command::new(program)
}

/// Makes the process survive the signals that ask it to end.
pub(super) fn deafen() -> io::Result<()> {
    IS_DEAF.store(true, Ordering::SeqCst);
    listen(&[SignalKind::interrupt(), SignalKind::terminate(), SignalKind::hangup(), SignalKind::quit()])
}

impl Turn {
    /// Plays the steps to the end of the turn.
    pub(super) fn play(mut self, steps: Result<Vec<Step>, ScriptError>) -> ExitCode {
        // codex ends itself and its command on SIGINT, with code 1; other signals have their usual effect.
        if let Err(error) = listen(&[SignalKind::interrupt()]) {
            complain(&format!("can't listen for SIGINT: {error}"));
        }
        self.lines.event(&json!({"type": "thread.started", "thread_id": self.thread.id}));
        self.lines.event(&json!({"type": "turn.started"}));
        let played = match steps {
            Ok(steps) => steps.iter().try_for_each(|step| self.step(step)),
            Err(error) => Err(End::Failed(with_causes(&error))),
        };
        let ended = played.and_then(|()| self.complete().map_err(|error| End::Failed(error.to_string())));
        match ended {
            Ok(()) => ExitCode::SUCCESS,
            Err(End::Silent(code)) => ExitCode::from(code),
            Err(End::Failed(message)) => {
                self.lines.event(&json!({"type": "error", "message": message}));
                self.lines.event(&json!({"type": "turn.failed", "error": {"message": message}}));
                ExitCode::FAILURE
            }
        }
    }

    fn complete(&mut self) -> io::Result<()> {
        if self.last_message.is_none() {
            self.say("Done.");
        }
        if let Some(file) = &self.last_message_file {
            std::fs::write(file, self.last_message.as_deref().unwrap_or_default())?;
        }
        let usage = self.thread.end_turn()?;
        self.lines.event(&json!({"type": "turn.completed", "usage": usage}));
        Ok(())
    }

    fn step(&mut self, step: &Step) -> Result<(), End> {
        if let Some(change) = files::describe(&self.folder, step) {
            return self.change(step, &change).map_err(failed(step));
        }
        match step {
            Step::Say(text) => self.say(text),
            Step::Reason(text) => self.lines.item("reasoning", json!({"text": text})),
            Step::Warn(text) => self.lines.item("error", json!({"message": text})),
            Step::Error(text) => self.lines.event(&json!({"type": "error", "message": text})),
            Step::IgnoreSandbox => self.refuses_edits = false,
            Step::Run(text) => self.run(text).map_err(failed(step))?,
            Step::Flood(count) => (0..*count).for_each(|number| self.say(&format!("message {number}"))),
            Step::Chatter(chatter) => self.chatter(chatter)?,
            Step::LongLine(bytes) => self.say(&"x".repeat(usize::try_from(*bytes).unwrap_or(ENDLESS).min(ENDLESS))),
            Step::Report(path) => self.report(path).map_err(failed(step))?,
            Step::Fail(message) => return Err(End::Failed(message.clone())),
            other => act(&self.folder, other, &mut self.lines)?,
        }
        Ok(())
    }

    fn say(&mut self, text: &str) {
        self.last_message = Some(text.to_owned());
        self.lines.item("agent_message", json!({"text": text}));
    }

    fn chatter(&mut self, Chatter { per_second, until, seconds }: &Chatter) -> Result<(), End> {
        let (until, begun, mut said) = (self.folder.join(until.to_path()), Instant::now(), 0_u64);
        while !until.exists() {
            let elapsed = begun.elapsed();
            if elapsed > pause(*seconds) {
                return Err(End::Failed(format!("{} did not appear within {seconds} s", until.display())));
            }
            let due = (elapsed.as_secs_f64() * f64::from(*per_second)) as u64;
            (said..due).for_each(|number| self.say(&format!("message {number}")));
            said = due.max(said);
            rest(BREATH);
        }
        self.say(&format!("{:.0} messages a second", said as f64 / begun.elapsed().as_secs_f64()));
        Ok(())
    }

    fn change(&mut self, step: &Step, change: &Change<'_>) -> io::Result<()> {
        if self.refuses_edits {
            // codex tells the model, and prints no event.
            complain("ERROR codex_core::tools::router: error=patch rejected: writing is blocked by read-only sandbox");
            return Ok(());
        }
        let (kind, fields) = match change {
            Change::Patch(kind, path) => {
                let path = self.folder.join(path.to_path()).to_string_lossy().into_owned();
                ("file_change", json!({"changes": [{"path": path, "kind": kind}]}))
            }
            Change::Command(text) => ("command_execution", json!({"command": shown(text), "aggregated_output": ""})),
        };
        let id = self.lines.start_item(kind, with(&fields, json!({"status": "in_progress"})));
        files::make(&self.folder, step)?;
        self.lines.end_item(&id, kind, with(&fields, json!({"status": "completed"})));
        Ok(())
    }

    fn run(&mut self, text: &str) -> io::Result<()> {
        let item = |output: &str, code: Option<i32>, status: &str| json!({"command": shown(text), "aggregated_output": output, "exit_code": code, "status": status});
        let id = self.lines.start_item("command_execution", item("", None, "in_progress"));
        let (status, output) = shell(&self.folder, text, || false)?;
        let ended = if status.success() { "completed" } else { "failed" };
        let code = Some(status.code().unwrap_or(-1));
        self.lines.end_item(&id, "command_execution", item(&output, code, ended));
        Ok(())
    }

    fn report(&self, path: &Name) -> io::Result<()> {
        #[expect(clippy::disallowed_methods, reason = "reports what this process was given")]
        let environment: Vec<(String, String)> =
            std::env::vars_os().map(|(name, value)| (lossy(&name), lossy(&value))).collect();
        let report = json!({
            "arguments": std::env::args_os().map(|argument| lossy(&argument)).collect::<Vec<_>>(),
            "environment": environment.into_iter().collect::<std::collections::BTreeMap<_, _>>(),
            "folder": self.folder.to_string_lossy(),
            "workingFolder": std::env::current_dir()?.to_string_lossy(),
            "prompt": self.prompt,
            "thread": self.thread.id,
        });
        let path = self.folder.join(path.to_path());
        let partial = path.with_extension("partial");
        std::fs::write(&partial, serde_json::to_vec_pretty(&report)?)?;
        std::fs::rename(partial, path)
    }
}

/// Does a step that is the same whatever the agent speaks.
pub(super) fn act(folder: &Path, step: &Step, lines: &mut Lines) -> Result<(), End> {
    match step {
        Step::Escape(escape) => escape::start(folder, escape).map_err(failed(step))?,
        Step::Emit(line) => lines.bytes(format!("{line}\n").as_bytes()),
        Step::EmitBytes(bytes) => lines.bytes(&bytes.0),
        Step::EndlessLine => (0..ENDLESS >> 16).for_each(|_| lines.bytes(&[b'x'; 1 << 16])),
        Step::Stderr(text) => complain(text),
        Step::StderrFlood(bytes) => (0..bytes.div_ceil(1 << 16)).for_each(|_| complain(&"e".repeat((1 << 16) - 1))),
        Step::CloseStdout => close_stdout().map_err(failed(step))?,
        Step::Sleep(seconds) => rest(pause(*seconds)),
        Step::Hang => rest(LONGEST_PAUSE),
        Step::IgnoreSignals => deafen().map_err(failed(step))?,
        Step::WaitFor(path, seconds) => {
            rendezvous::appears(&folder.join(path.to_path()), pause(*seconds)).map_err(failed(step))?;
        }
        Step::Exit(code) => return Err(End::Silent(u8::try_from(*code).unwrap_or(u8::MAX))),
        Step::Die(number) => return die(*number),
        other => return Err(End::Failed(format!("this agent does no such thing: {}", other.to_json()))),
    }
    Ok(())
}

/// Runs a command in a session of its own, and gives how it ended and all that it printed. It ends at once if
/// `is_over`: who wanted to end it may have found none.
pub(super) fn shell(folder: &Path, text: &str, is_over: impl Fn() -> bool) -> io::Result<(ExitStatus, String)> {
    // Not a pipe: what the command leaves running in the background must not delay its end.
    let mut output = File::from(memfd_create("output", MemfdFlags::CLOEXEC)?);
    let mut session = command(std::env::current_exe()?);
    session.args(["__session", text]).current_dir(folder).stdin(Stdio::null());
    session.stdout(output.try_clone()?).stderr(output.try_clone()?);
    let mut child = {
        let mut running = running();
        let child = session.spawn()?;
        *running = Some(Pid::from_child(&child));
        if is_over() {
            end(*running);
        }
        child
    };
    let status = child.wait()?;
    *running() = None;
    output.rewind()?;
    let mut bytes = Vec::new();
    output.read_to_end(&mut bytes)?;
    Ok((status, String::from_utf8_lossy(&bytes).into_owned()))
}

/// Ends the command that runs, if one does.
pub(super) fn end_command() {
    end(*running());
}

/// Ends the command that runs, and then this process.
pub(super) fn end_with_command(code: i32) -> ! {
    let running = running();
    end(*running);
    std::process::exit(code)
}

fn running() -> MutexGuard<'static, Option<Pid>> {
    RUNNING.lock().unwrap_or_else(PoisonError::into_inner)
}

fn end(running: Option<Pid>) {
    if let Some(session) = running {
        // It may have ended just now, or not be at the head of a session yet.
        let _ = kill_process_group(session, Signal::KILL).or_else(|_| kill_process(session, Signal::KILL));
    }
}

/// Acts on these signals in a thread of its own: nothing while deaf, else codex's way to end on SIGINT.
fn listen(kinds: &[SignalKind]) -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let mut signals = {
        let _in_runtime = runtime.enter();
        kinds.iter().map(|kind| signal(*kind)).collect::<io::Result<Vec<_>>>()?
    };
    std::thread::spawn(move || {
        runtime.block_on(async {
            while signals[0].recv().await.is_some() {
                if !IS_DEAF.load(Ordering::SeqCst) {
                    end_with_command(1);
                }
            }
        });
    });
    Ok(())
}

fn die(number: i32) -> Result<(), End> {
    let signal = Signal::from_named_raw(number).ok_or_else(|| End::Failed(format!("{number} is not a signal")))?;
    // Twice, as Rust's own handler swallows the first SIGSEGV and SIGBUS.
    for _ in 0..2 {
        kill_process(getpid(), signal).map_err(|error| End::Failed(error.to_string()))?;
    }
    rest(LONGEST_PAUSE);
    Ok(())
}

/// Does nothing for this long.
#[expect(clippy::disallowed_methods, reason = "idling is what the script asks of this process")]
pub(super) fn rest(time: Duration) {
    std::thread::sleep(time);
}

fn close_stdout() -> io::Result<()> {
    let null = std::fs::OpenOptions::new().write(true).open("/dev/null")?;
    Ok(rustix::stdio::dup2_stdout(null)?)
}

pub(super) fn failed<E: std::error::Error>(step: &Step) -> impl Fn(E) -> End {
    let step = step.to_json();
    move |error| End::Failed(format!("the scripted agent can't {step}: {}", with_causes(&error)))
}

pub(super) fn with_causes(error: &dyn std::error::Error) -> String {
    std::iter::successors(Some(error), |error| error.source()).map(ToString::to_string).collect::<Vec<_>>().join(": ")
}

/// A command as codex shows it.
fn shown(text: &str) -> String {
    format!("/bin/bash -c '{}'", text.replace('\'', r"'\''"))
}

fn with(fields: &Value, more: Value) -> Value {
    let mut fields = fields.clone();
    if let (Value::Object(fields), Value::Object(more)) = (&mut fields, more) {
        fields.extend(more);
    }
    fields
}

fn lossy(text: &OsStr) -> String {
    Path::new(text).display().to_string()
}

fn pause(seconds: f64) -> Duration {
    Duration::try_from_secs_f64(seconds).unwrap_or(LONGEST_PAUSE).min(LONGEST_PAUSE)
}

pub(super) fn complain(line: &str) {
    // Nobody may be listening.
    let _ = writeln!(io::stderr(), "{line}");
}
