//! `cargo xtask tidy`: the rules of the house that a machine can check, each in a file of its own.
//!
//! A check is a function from the repository's text to problems, so that its test is a few lines of bad text. What
//! rustfmt and clippy check isn't checked here.

mod changelog;
mod contract;
mod evidence;
mod formats;
mod layering;
mod links;
mod machine;
mod modules;
mod names;
mod production;
mod size;
mod strays;
mod top_level;
mod width;

use std::fmt;
use std::fs;
use std::time::Duration;

use clap::Args;

use crate::codegen;
use crate::repository::{self, Tree};
use crate::run::{command, say, step};

const FORMAT: Duration = Duration::from_secs(120);

#[derive(Args, Default)]
pub(crate) struct Arguments {
    /// First format, regenerate what is generated, and mend what needs no decision
    #[arg(long)]
    fix: bool,
}

/// One place that breaks a rule.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Problem {
    path: String,
    /// From 1; 0 for the file as a whole.
    line: usize,
    what: String,
}

/// A rule: its name, and what finds the places that break it.
type Check = (&'static str, fn(&Tree) -> Vec<Problem>);

const CHECKS: [Check; 13] = [
    ("layering", layering::check),
    ("size", size::check),
    ("modules", modules::check),
    ("names", names::check),
    ("strays", strays::check),
    ("links", links::check),
    ("formats", formats::check),
    ("contract", contract::check),
    ("evidence", evidence::check),
    ("machine", machine::check),
    ("top level", top_level::check),
    ("changelog", changelog::check),
    ("width", width::check),
];

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let root = repository::root();
    if arguments.fix {
        let mut format = command("cargo");
        format.args(["fmt", "--all"]).current_dir(&root);
        step(format, FORMAT)?;
        codegen::run(&codegen::Arguments { check: false })?;
        for file in Tree::read(&root)?.files {
            if let Some(mended) = formats::mend(&file) {
                say(&format!("mended: {}", file.path));
                fs::write(root.join(&file.path), mended)?;
            }
        }
    }
    let tree = Tree::read(&root)?;
    let mut count = 0;
    for (name, check) in CHECKS {
        let problems = check(&tree);
        for problem in &problems {
            say(&format!("{name}: {problem}"));
        }
        count += problems.len();
    }
    anyhow::ensure!(count == 0, "{count} places are not tidy");
    say(&format!("tidy: {} files, {} rules, {}", tree.files.len(), CHECKS.len(), size::summary(&tree)));
    Ok(())
}

impl Problem {
    fn new(path: &str, line: usize, what: impl Into<String>) -> Self {
        Self { path: path.to_owned(), line, what: what.into() }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            0 => write!(f, "{}: {}", self.path, self.what),
            line => write!(f, "{}:{line}: {}", self.path, self.what),
        }
    }
}

/// Runs a check over files of these names and texts; returns the problems as they are shown.
#[cfg(test)]
fn found(check: fn(&Tree) -> Vec<Problem>, files: &[(&str, &str)]) -> Vec<String> {
    let files = files.iter().map(|(path, text)| ((*path).to_owned(), (*text).to_owned()));
    check(&Tree::of(files)).iter().map(Problem::to_string).collect()
}
