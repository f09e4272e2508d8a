//! `pactify completions`: a script that teaches a shell our commands, and the answers to what that script asks.
//!
//! The script asks this program for each completion, so that jobs are among them ([`super::candidates`]).

use std::ffi::OsString;
use std::io::{self, Write as _};
use std::path::Path;
use std::process::ExitCode;

use clap::{Command, CommandFactory as _};
use clap_complete::env::Shells;
use clap_complete::{CompleteEnv, Shell};
use pactify_core::{Failure, FailureCode};

use super::Program;
use super::output::Output;

/// Set by the script when it asks.
const ASKED: &str = "PACTIFY_COMPLETE";

/// Print a completion script for a shell
#[derive(Debug, clap::Args)]
#[command(after_help = "\
The script asks pactify itself, so it also knows your jobs. Let your shell read it each
time it starts: another version of pactify may need another script.

Examples:
  echo 'source <(pactify completions bash)' >> ~/.bashrc
  echo 'source <(pactify completions zsh)' >> ~/.zshrc
  echo 'pactify completions fish | source' > ~/.config/fish/completions/pactify.fish")]
pub(super) struct Args {
    /// The shell
    shell: Shell,
}

/// Answers a shell, if one asked.
pub(super) fn answer() -> Option<ExitCode> {
    let here = std::env::current_dir().ok();
    let asked = CompleteEnv::with_factory(Program::command).var(ASKED);
    match asked.try_complete(std::env::args_os(), here.as_deref()) {
        Ok(false) => None,
        Ok(true) => Some(ExitCode::SUCCESS),
        // A shell that is not known, above all. On standard error: a shell takes the rest for completions.
        Err(error) => {
            let error = error.to_string();
            let message = format!("{ASKED}: {}", error.trim().trim_start_matches("error: "));
            let next = "let `pactify completions SHELL` print the script for one of these shells";
            let failure = Failure::new(FailureCode::InvalidParams, message, next);
            Some(Output::of_process().refuse(&failure, false))
        }
    }
}

/// Prints the script. Needs neither a home nor a store.
pub(super) fn run(args: Args) -> ExitCode {
    let script = script(args.shell, std::env::args_os().next());
    match script.and_then(|script| io::stdout().write_all(&script)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}

/// The script for a program that was called as `called`.
fn script(shell: Shell, called: Option<OsString>) -> io::Result<Vec<u8>> {
    let name = shell.to_string();
    let shells = Shells::builtins();
    let shell = shells.completer(&name).ok_or_else(|| io::Error::other(format!("no script for {name}")))?;
    let program = Program::command();
    let name = Command::get_name(&program);
    let called = called.unwrap_or_else(|| name.into());
    // As it was found: on the search path, or at a place.
    let completer = match Path::new(&called).components().count() {
        1 => Path::new(&called).to_path_buf(),
        _ => std::env::current_dir()?.join(&called),
    };
    let mut script = Vec::new();
    shell.write_registration(ASKED, name, name, &completer.to_string_lossy(), &mut script)?;
    Ok(script)
}
