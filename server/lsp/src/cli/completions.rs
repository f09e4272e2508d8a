//! `pactify completions`: a script that teaches a shell our commands.

use std::io::Write as _;
use std::process::ExitCode;

use clap::CommandFactory as _;
use clap_complete::{Shell, generate};

use super::Program;

/// Print a completion script for a shell
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  pactify completions bash > ~/.local/share/bash-completion/completions/pactify
  pactify completions fish > ~/.config/fish/completions/pactify.fish")]
pub(super) struct Args {
    /// The shell
    shell: Shell,
}

/// Prints the script. Needs neither a home nor a store.
pub(super) fn run(args: Args) -> ExitCode {
    let mut script = Vec::new();
    generate(args.shell, &mut Program::command(), "pactify", &mut script);
    match std::io::stdout().write_all(&script) {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}
