//! `cargo xtask bench`: what speed pactify promises, as ratios against a reference of the same run.
//!
//! A ratio is true on a busy machine, too: the two that are compared take turns, and medians are compared. All files are
//! in memory (`/dev/shm`), because removing many files slows down some disks for minutes afterwards. It isn't part of
//! `cargo xtask test`: a bar that is missed by a hair is for a person to look at. What is measured is in [`measure`],
//! over the bare pipes of [`pipe`].

mod measure;
mod pipe;
mod report;

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::ensure;
use pactify_tests::agent::{self, Profile};
use pactify_tests::editor::configure;
use pactify_tests::sandbox::Sandbox;
use pactify_tests::tools::Tool;

use crate::run::{aloud, command, say};
use crate::{repository, tools};

const BUILD: Duration = Duration::from_secs(3000);
/// In memory, and short enough for sockets below it.
const MEMORY: &str = "/dev/shm";

/// What is compared with what.
pub(crate) struct Bench {
    pub(crate) sandbox: Sandbox,
    server: PathBuf,
    echo: PathBuf,
    ruff: PathBuf,
}

pub(crate) fn run() -> anyhow::Result<()> {
    ensure!(Path::new(MEMORY).is_dir(), "{MEMORY} is missing: there is no place in memory to measure in");
    let ruff = tools::ensure(Tool::Ruff)?;
    let programs = build()?;
    let sandbox = Sandbox::new_in(&Path::new(MEMORY).join("pactify-bench"))?;
    let profile = Profile::default();
    let codex = agent::install(&programs.join("scripted-agent"), &sandbox.root().join("agent"), &profile)?;
    configure(&sandbox, &format!("[harnesses.codex]\nexecutable = {:?}\n", codex.display().to_string()))?;
    let bench = Bench { sandbox, server: programs.join("pactify-lsp"), echo: programs.join("echo-loop"), ruff };
    let figures = measure::all(&bench)?;
    let document = repository::root().join("docs/performance.md");
    std::fs::write(&document, report::document(&figures))?;
    for figure in &figures {
        say(&report::line(figure));
    }
    say(&format!("written: {}", document.display()));
    Ok(())
}

/// Builds what is measured; returns the folder of the programs.
fn build() -> anyhow::Result<PathBuf> {
    let mut cargo = command("cargo");
    cargo.args([
        "build",
        "--profile",
        "release-fast",
        "--package",
        "pactify-lsp",
        "--package",
        "pactify-tests",
        "--bins",
    ]);
    cargo.current_dir(repository::root()).env("CARGO_TARGET_DIR", repository::target());
    aloud(cargo, BUILD).map_err(|failed| failed.error)?;
    Ok(repository::target().join("release-fast"))
}
