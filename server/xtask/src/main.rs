//! `cargo xtask`: all automation of this repository, in Rust, so that nothing else has to be installed to run it.
//!
//! One file per command. A command prints what it does on the standard error; its result, if it has one, is its only
//! standard output. Nothing here is part of the product, and no product crate may depend on it.

mod bench;
mod codegen;
mod demo;
mod dist;
mod install;
mod pictures;
mod repository;
mod run;
mod soak;
mod test;
mod tidy;
mod tools;

use std::process::ExitCode;

use clap::Parser;

/// Automation of the pactify repository
#[derive(Parser)]
#[command(name = "cargo xtask")]
enum Command {
    /// Measure what speed is promised, and write docs/performance.md
    Bench(bench::Arguments),
    /// Write the clients' types from the wire's
    Codegen(codegen::Arguments),
    /// Show one job from the brief to the applied result, with the real codex and no login
    Demo,
    /// Make the packages that people install
    Dist(dist::Arguments),
    /// Build and install the programs, statically linked
    Install(install::Arguments),
    /// Take the documentation's pictures anew
    Pictures,
    /// Run many jobs at once under random kills, or the suites in real editors again and again
    Soak(soak::Arguments),
    /// Check everything that has to hold before a change lands
    Test(test::Arguments),
    /// Check the rules of the house that a machine can check
    Tidy(tidy::Arguments),
    /// Install the pinned tools that tests, benches and the demo use
    Tools(tools::Arguments),
}

fn main() -> ExitCode {
    let result = match Command::parse() {
        Command::Bench(arguments) => bench::run(&arguments),
        Command::Codegen(arguments) => codegen::run(&arguments),
        Command::Demo => demo::run(),
        Command::Dist(arguments) => dist::run(&arguments),
        Command::Install(arguments) => install::run(&arguments),
        Command::Pictures => pictures::run(),
        Command::Soak(arguments) => soak::run(&arguments),
        Command::Test(arguments) => test::run(&arguments),
        Command::Tidy(arguments) => tidy::run(&arguments),
        Command::Tools(arguments) => tools::run(&arguments),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            run::say(&format!("error: {error:#}"));
            ExitCode::FAILURE
        }
    }
}
