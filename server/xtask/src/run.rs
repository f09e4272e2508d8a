//! Running other programs: announced, with a time limit, and shown only if they fail.

use std::ffi::OsStr;
use std::io::{self, Write};
use std::process::Command;
use std::time::Duration;

use pactify_tests::running::Running;

/// How much of a failed program's output is shown.
const LAST_LINES: usize = 20;

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
    #[error("`{command}` ended with code {code}:\n{tail}")]
    Failed {
        /// The program and its arguments.
        command: String,
        /// Its exit code.
        code: i32,
        /// The end of what it printed.
        tail: String,
    },
}

/// A command in the environment of this process.
pub(crate) fn command(program: impl AsRef<OsStr>) -> Command {
    #[expect(clippy::disallowed_methods, reason = "automation runs tools as the person who called it would")]
    Command::new(program)
}

/// Runs a step to its end within the limit; returns what it printed on its standard output.
pub(crate) fn step(command: Command, limit: Duration) -> Result<String, StepError> {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    let shown = words.map(OsStr::to_string_lossy).collect::<Vec<_>>().join(" ");
    say(&format!("  $ {shown}"));
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

/// Tells the person at the terminal; it doesn't matter if nobody is there.
pub(crate) fn say(line: &str) {
    let _ = writeln!(io::stderr(), "{line}");
}
