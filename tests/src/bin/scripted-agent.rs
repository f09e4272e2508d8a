//! `scripted-agent`: the coding agent of [`pactify_tests::agent`] as a program.

use std::process::ExitCode;

fn main() -> ExitCode {
    pactify_tests::agent::cli::run()
}
