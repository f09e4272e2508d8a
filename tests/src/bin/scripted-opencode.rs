//! `scripted-opencode`: the twin of opencode 2 in [`pactify_tests::opencode`] as a program.

use std::process::ExitCode;

fn main() -> ExitCode {
    pactify_tests::opencode::run()
}
