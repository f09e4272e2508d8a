//! `scripted-agy`: the twin of agy in [`pactify_tests::agy`] as a program.

use std::process::ExitCode;

fn main() -> ExitCode {
    pactify_tests::agy::run()
}
