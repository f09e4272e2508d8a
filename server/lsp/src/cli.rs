//! `pactify`: the same verbs as an editor's, from a terminal.
//!
//! One file per command under `cli/`; what they print goes through [`output`], where text of unknown origin is
//! neutralised, and how a program ends is decided by the protocol's exit codes. `--json` prints the shapes of
//! [`pactify_core::protocol`] on standard output and nothing else there.

mod answer;
mod apply;
mod approve;
mod asked;
mod brief;
mod cancel;
mod candidates;
mod choice;
mod completions;
mod debug_report;
mod diff;
mod discard;
mod doctor;
mod duration;
mod events;
mod export;
mod harnesses;
mod list;
mod login;
mod meant;
mod output;
mod place;
mod prune;
mod question;
mod restore;
mod resume;
mod retry;
mod run;
mod show;
mod target;
mod undo;
mod watch;
mod wording;

use std::panic::AssertUnwindSafe;
use std::process::ExitCode;

use clap::error::{ContextKind, ContextValue};
use clap::{Parser, Subcommand};
use pactify_core::{AbsPath, Failure};
use pactify_engine::env::Env;
use pactify_engine::jobs::Jobs;
use pactify_engine::log::{self, Stderr};

use crate::entry;
use asked::Asked;
use output::Output;

/// Hands coding tasks to agent CLIs in detached worktrees, and takes over what you choose of the result.
#[derive(Debug, Parser)]
#[command(name = "pactify", version, arg_required_else_help = true, after_help = HELP)]
struct Program {
    #[command(subcommand)]
    part: Part,
}

const HELP: &str = "\
A job works in a tree of its own; your checkout changes only by `pactify sub apply`.

  echo 'Fix the failing test in src/parse.rs' | pactify sub run
  pactify sub diff last
  pactify sub apply last

Exit codes:
   0  done                           5  conflict, nothing applied
   1  the job failed                 6  no changes
   2  usage                          7  read-only violated
   3  refused or not allowed now     8  over a limit of time or use
   4  harness missing or no login   70  internal error";

#[derive(Debug, Subcommand)]
enum Part {
    /// Run and handle jobs
    #[command(subcommand)]
    Sub(Command),
    /// Print a completion script for a shell
    Completions(completions::Args),
}

#[derive(Debug, Subcommand)]
enum Command {
    Run(run::Args),
    List(list::Args),
    Show(show::Args),
    Events(events::Args),
    Diff(diff::Args),
    Apply(apply::Args),
    Undo(undo::Args),
    Answer(answer::Args),
    Approve(approve::Args),
    Discard(discard::Args),
    Prune(prune::Args),
    Restore(restore::Args),
    Cancel(cancel::Args),
    Resume(resume::Args),
    Retry(retry::Args),
    Export(export::Args),
    Harnesses(harnesses::Args),
    Login(login::Args),
    Doctor(doctor::Args),
    DebugReport(debug_report::Args),
    #[command(hide = true)]
    Completions(completions::Args),
}

/// What every command works with.
struct Terminal {
    jobs: Jobs,
    output: Output,
}

/// How a command that did its work ends.
type Ended = Result<u8, Failure>;

/// What the log is called by.
const PROGRAM: &str = "pactify";

/// Everything went as asked.
const DONE: u8 = 0;

/// Reads the command line, does what it says, and gives the exit code.
#[must_use]
pub fn run() -> ExitCode {
    if let Some(answered) = completions::answer() {
        return answered;
    }
    let program = Program::try_parse().unwrap_or_else(|error| with_sub(error).exit());
    let command = match program.part {
        Part::Completions(args) | Part::Sub(Command::Completions(args)) => return completions::run(args),
        Part::Sub(command) => command,
    };
    let output = Output::of_process();
    let env = match entry::begin(PROGRAM, Stderr::Quiet) {
        Ok(env) => env,
        Err(error) => {
            let failure = Failure::internal(format!("{:#}", anyhow::Error::from(error)));
            return output.refuse(&failure, false);
        }
    };
    let output = output.styled_for(&env);
    let json = command.json();
    let log = log::file(&env, PROGRAM);
    let ended =
        guarded(log, || Jobs::open(env).and_then(|jobs| command.run(&Terminal { jobs, output: output.clone() })));
    output.end_status();
    match ended {
        Ok(code) => ExitCode::from(code),
        Err(failure) => output.refuse(&failure, json),
    }
}

/// What is wrong with the command line. Who leaves `sub` out of it is told of it.
fn with_sub(mut error: clap::Error) -> clap::Error {
    let typed = match error.get(ContextKind::InvalidSubcommand) {
        Some(ContextValue::String(typed)) => typed.clone(),
        _ => return error,
    };
    if Command::has_subcommand(&typed) {
        error.insert(ContextKind::SuggestedSubcommand, ContextValue::Strings(vec![format!("sub {typed}")]));
    }
    error
}

/// Does the work; a panic in it is told like everything else that goes wrong. The panic itself is in the log.
fn guarded(log: Option<AbsPath>, work: impl FnOnce() -> Ended) -> Ended {
    std::panic::catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|panic| {
        let message = format!("pactify came upon a defect of its own: {}", log::panic_message(&*panic));
        let mut failure = Failure::internal(message);
        if let Some(log) = log {
            failure.next = format!("{}; {log} says where it happened", failure.next);
        }
        Err(failure)
    })
}

impl Terminal {
    fn env(&self) -> &Env {
        self.jobs.env()
    }
}

impl Command {
    fn run(self, terminal: &Terminal) -> Ended {
        match self {
            Self::Run(args) => args.run(terminal),
            Self::List(args) => args.run(terminal),
            Self::Show(args) => args.run(terminal),
            Self::Events(args) => args.run(terminal),
            Self::Diff(args) => args.run(terminal),
            Self::Apply(args) => args.run(terminal),
            Self::Undo(args) => args.run(terminal),
            Self::Answer(args) => args.run(terminal),
            Self::Approve(args) => args.run(terminal),
            Self::Discard(args) => args.run(terminal),
            Self::Prune(args) => args.run(terminal),
            Self::Restore(args) => args.run(terminal),
            Self::Cancel(args) => args.run(terminal),
            Self::Resume(args) => args.run(terminal),
            Self::Retry(args) => args.run(terminal),
            Self::Export(args) => args.run(terminal),
            Self::Harnesses(args) => args.run(terminal),
            Self::Login(args) => args.run(terminal),
            Self::Doctor(args) => args.run(terminal),
            Self::DebugReport(args) => args.run(terminal),
            Self::Completions(_) => Ok(DONE),
        }
    }

    /// Whether a refusal is also printed as JSON.
    fn json(&self) -> bool {
        match self {
            Self::Run(run::Args { asked: Asked { json, .. }, .. })
            | Self::Retry(retry::Args { asked: Asked { json, .. }, .. })
            | Self::List(list::Args { json, .. })
            | Self::Show(show::Args { json, .. })
            | Self::Events(events::Args { json, .. })
            | Self::Diff(diff::Args { json, .. })
            | Self::Apply(apply::Args { json, .. })
            | Self::Undo(undo::Args { json, .. })
            | Self::Answer(answer::Args { json, .. })
            | Self::Approve(approve::Args { json, .. })
            | Self::Discard(discard::Args { json, .. })
            | Self::Prune(prune::Args { json, .. })
            | Self::Restore(restore::Args { json, .. })
            | Self::Cancel(cancel::Args { json, .. })
            | Self::Resume(resume::Args { json, .. })
            | Self::Export(export::Args { json, .. })
            | Self::Harnesses(harnesses::Args { json })
            | Self::Login(login::Args { json, .. })
            | Self::Doctor(doctor::Args { json, .. }) => *json,
            Self::DebugReport(_) | Self::Completions(_) => false,
        }
    }
}

#[cfg(test)]
mod tests;
