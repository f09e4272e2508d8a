//! `cargo xtask soak --editors`: the suites in the real editors, again and again, until one of them fails.
//!
//! What fails once in twenty runs fails somebody every day. A run is all of VS Code's tests (extension host, user
//! interface, both editors together) and all of Neovim's (without a screen, and on one).

use std::time::{Duration, Instant};

use anyhow::{Context, bail, ensure};
use pactify_tests::tools::Tool;

use crate::run::{aloud, command, say};
use crate::{demo, repository, tools};

/// The tests in real editors, by nextest's words.
const SUITES: &str = "binary(e2e) and test(/^(clients|neovim)::/)";
/// For one run, on a machine that is busy with other things.
const RUN: Duration = Duration::from_secs(1800);

pub(super) fn run(runs: usize) -> anyhow::Result<()> {
    ensure!(runs > 0, "--runs is at least 1");
    for tool in tools::by_default() {
        tools::ensure(tool)?;
    }
    demo::build()?;
    let mut took = Vec::new();
    for number in 1..=runs {
        say(&format!("\nrun {number} of {runs}"));
        let begun = Instant::now();
        let tests = one().with_context(|| format!("run {number} of {runs}; {} passed before it", took.len()))?;
        took.push(begun.elapsed().as_secs());
        say(&format!("run {number} of {runs}: {tests} tests in {} s", begun.elapsed().as_secs()));
    }
    let (least, most) = (took.iter().min().unwrap_or(&0), took.iter().max().unwrap_or(&0));
    say(&format!("held: {runs} runs in a row, {least} to {most} s each"));
    Ok(())
}

/// Runs all suites; says how many tests that were.
fn one() -> anyhow::Result<usize> {
    let mut nextest = command(Tool::Nextest.find()?);
    nextest.args(["nextest", "run", "--package", "pactify-tests", "--all-features", "--fail-fast"]);
    nextest.args(["--status-level", "pass", "-E", SUITES]).current_dir(repository::root());
    match aloud(nextest, RUN) {
        Ok(said) => {
            let tests = named(&said, "PASS [").count();
            ensure!(tests > 0, "no test was run: this proves nothing");
            Ok(tests)
        }
        Err(failed) => {
            let tests: Vec<_> = ["FAIL [", "TIMEOUT ["].iter().flat_map(|how| named(&failed.said, how)).collect();
            match tests.first() {
                Some(test) => bail!("{test} failed: {}", failed.error),
                None => Err(failed.error.into()),
            }
        }
    }
}

/// The tests that ended so, by nextest's lines about each.
fn named<'a>(said: &'a str, how: &'a str) -> impl Iterator<Item = &'a str> {
    let lines = said.lines().filter(move |line| line.trim_start().starts_with(how));
    lines.filter_map(|line| line.split_whitespace().last())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tests_are_named_by_how_they_ended() {
        let said = "        PASS [  16.6s] ( 1/12) pactify-tests::e2e clients::goes\n  \
                    TIMEOUT [ 300.0s] ( 2/12) pactify-tests::e2e neovim::hangs\n    quoted: FAIL [x] y\n";
        let all = |how| named(said, how).collect::<Vec<_>>();
        assert_eq!(
            (all("PASS ["), all("TIMEOUT ["), all("FAIL [")),
            (vec!["clients::goes"], vec!["neovim::hangs"], vec![])
        );
    }
}
