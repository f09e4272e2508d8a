//! Running other programs with a time limit: announced and shown only if they fail ([`step`]), or aloud ([`aloud`]).

use std::ffi::OsStr;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use pactify_tests::rendezvous;
use pactify_tests::running::Running;
use rustix::process::{Pid, Signal, kill_process};

/// How much of a failed program's output is shown.
const LAST_LINES: usize = 20;
/// For a program that is told to end to end what it started.
const GRACE: Duration = Duration::from_secs(20);
/// Its output may come this long after its end.
const AFTERMATH: Duration = Duration::from_secs(5);

/// Why a step didn't succeed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum StepError {
    /// It can't be started.
    #[error("can't start `{command}`: {detail}")]
    NotStarted {
        /// The program and its arguments.
        command: String,
        /// Why.
        detail: String,
    },
    /// It took too long and was ended.
    #[error("`{command}` was ended: it took more than {} seconds", limit.as_secs())]
    TooSlow {
        /// The program and its arguments.
        command: String,
        /// How long it may take.
        limit: Duration,
    },
    /// It failed.
    #[error("`{command}` ended with code {code}{}{tail}", if tail.is_empty() { "" } else { ":\n" })]
    Failed {
        /// The program and its arguments.
        command: String,
        /// Its exit code.
        code: i32,
        /// The end of what it printed.
        tail: String,
    },
}

/// A program that was run aloud and didn't succeed.
pub(crate) struct FailedAloud {
    /// Why.
    pub(crate) error: StepError,
    /// What it printed.
    pub(crate) said: String,
}

/// A command in the environment of this process.
pub(crate) fn command(program: impl AsRef<OsStr>) -> Command {
    #[expect(clippy::disallowed_methods, reason = "automation runs tools as the person who called it would")]
    Command::new(program)
}

/// Runs a step to its end within the limit; returns what it printed on its standard output.
pub(crate) fn step(command: Command, limit: Duration) -> Result<String, StepError> {
    say(&format!("  $ {}", words(&command)));
    output(command, limit)
}

/// The same for what needs no announcement.
pub(crate) fn output(command: Command, limit: Duration) -> Result<String, StepError> {
    let shown = words(&command);
    let running = Running::start_beside(command, b"").map_err(|error| StepError::NotStarted {
        command: shown.clone(),
        detail: format!("{:#}", error.root_cause()),
    })?;
    let ended = running.wait(limit).map_err(|_| StepError::TooSlow { command: shown.clone(), limit })?;
    if ended.status.success() {
        return Ok(ended.stdout);
    }
    let all: Vec<&str> = ended.stdout.lines().chain(ended.stderr.lines()).collect();
    let tail = all[all.len().saturating_sub(LAST_LINES)..].iter().map(|line| format!("    {line}\n")).collect();
    Err(StepError::Failed { command: shown, code: ended.code(), tail })
}

/// Runs a program to its end within the limit, passing on what it prints line by line; returns that.
pub(crate) fn aloud(mut command: Command, limit: Duration) -> Result<String, FailedAloud> {
    let shown = words(&command);
    say(&format!("  $ {shown}"));
    let not_started = |error: io::Error| FailedAloud {
        error: StepError::NotStarted { command: shown.clone(), detail: error.to_string() },
        said: String::new(),
    };
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().map_err(not_started)?;
    let (sender, lines) = mpsc::channel();
    pass_on(child.stdout.take(), sender.clone());
    pass_on(child.stderr.take(), sender);
    let ended = end(&mut child, limit).map_err(not_started)?;
    let mut said = String::new();
    // The channel ends with the last pipe; a process that was left behind may hold one for longer.
    while let Ok(line) = lines.recv_timeout(AFTERMATH) {
        said.push_str(&line);
        said.push('\n');
    }
    let error = match ended {
        Some(status) if status.success() => return Ok(said),
        Some(status) => StepError::Failed { command: shown, code: status.code().unwrap_or(-1), tail: String::new() },
        None => StepError::TooSlow { command: shown, limit },
    };
    Err(FailedAloud { error, said })
}

/// Waits for the end; `None` if it had to be brought about.
fn end(child: &mut Child, limit: Duration) -> io::Result<Option<ExitStatus>> {
    let pid = Pid::from_child(child);
    if rendezvous::ends(pid, limit).map_err(io::Error::other)? {
        return child.wait().map(Some);
    }
    // Asked first: a test runner takes its tests with it.
    let _ = kill_process(pid, Signal::TERM);
    if !rendezvous::ends(pid, GRACE).map_err(io::Error::other)? {
        child.kill()?;
    }
    child.wait()?;
    Ok(None)
}

/// Says each line that comes out of the pipe, and sends it on.
fn pass_on(pipe: Option<impl Read + Send + 'static>, lines: mpsc::Sender<String>) {
    let Some(pipe) = pipe else { return };
    std::thread::spawn(move || {
        for line in BufReader::new(pipe).split(b'\n').map_while(Result::ok) {
            let line = String::from_utf8_lossy(&line).into_owned();
            say(&line);
            // Nobody listens any more if the end was waited for in vain.
            let _ = lines.send(line);
        }
    });
}

/// The program and its arguments.
pub(crate) fn words(command: &Command) -> String {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    words.map(OsStr::to_string_lossy).collect::<Vec<_>>().join(" ")
}

/// Tells the person at the terminal; it doesn't matter if nobody is there.
pub(crate) fn say(line: &str) {
    let _ = writeln!(io::stderr(), "{line}");
}
