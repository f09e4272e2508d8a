//! `cargo xtask bench`: what speed pactify promises, as ratios against a reference of the same run.
//!
//! A ratio is true on a busy machine, too: the two that are compared take turns, and medians are compared. All files
//! are in memory (`/dev/shm`), because removing many files slows down some disks for minutes afterwards. It isn't part
//! of `cargo xtask test`: a bar that is missed by a hair is for a person to look at. What a client waits for is
//! measured in [`measure`], over the bare pipes of [`pipe`]; what a person who types waits for in [`editors`]; what the
//! engine takes for it by a program of its own ([`engine`]). The programs are built as people get them, by
//! [`crate::install`]. With a filter only the measures whose names contain it are taken, and the document stays as it
//! is.

mod editors;
mod engine;
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

use crate::run::{aloud, say};
use crate::{install, repository, tools};

/// What `cargo xtask bench` takes.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Only the measures whose names contain this: start, status, memory, delegate, editors-neovim,
    /// editors-vscode, tree-1k, tree-10k, tree-50k, capture, baseline, listing, apply
    filter: Option<String>,
    /// Where the engine's repositories are made: a file system in memory unless told otherwise
    #[arg(long, default_value = MEMORY)]
    folder: PathBuf,
}

const BUILD: Duration = Duration::from_secs(3000);
/// What is measured beside the product, or takes part.
const OTHERS: [&str; 3] = ["engine-bench", "echo-loop", "scripted-agent"];
/// In memory, and short enough for sockets below it.
const MEMORY: &str = "/dev/shm";

/// A promise, and what was found.
#[derive(serde::Deserialize)]
struct Figure {
    what: String,
    reference: String,
    unit: String,
    ours: f64,
    theirs: f64,
    /// The ratio must not be larger; a figure without a bar is only told.
    bar: Option<f64>,
}

/// What is compared with what.
pub(crate) struct Bench {
    pub(crate) sandbox: Sandbox,
    server: PathBuf,
    echo: PathBuf,
    ruff: PathBuf,
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<()> {
    ensure!(Path::new(MEMORY).is_dir(), "{MEMORY} is missing: there is no place in memory to measure in");
    let filter = arguments.filter.as_deref().unwrap_or_default();
    let programs = build()?;
    let is_of_clients = measure::is_chosen(filter) || editors::is_chosen(filter);
    let mut figures = if is_of_clients { clients(&programs, filter)? } else { Vec::new() };
    figures.extend(engine::figures(&programs, &arguments.folder.join("pactify-bench"), filter)?);
    for figure in &figures {
        say(&report::line(figure));
    }
    if arguments.filter.is_none() {
        let document = repository::root().join("docs/performance.md");
        std::fs::write(&document, report::document(&figures))?;
        say(&format!("written: {}", document.display()));
    }
    Ok(())
}

/// What a client waits for.
fn clients(programs: &Path, filter: &str) -> anyhow::Result<Vec<Figure>> {
    let ruff = tools::ensure(Tool::Ruff)?;
    let sandbox = Sandbox::new_in(&Path::new(MEMORY).join("pactify-bench"))?;
    let profile = Profile::default();
    let codex = agent::install(&programs.join("scripted-agent"), &sandbox.root().join("agent"), &profile)?;
    configure(&sandbox, &format!("[harnesses.codex]\nexecutable = {:?}\n", codex.display().to_string()))?;
    let bench = Bench { sandbox, server: programs.join("pactify-lsp"), echo: programs.join("echo-loop"), ruff };
    let mut figures = if measure::is_chosen(filter) { measure::all(&bench, filter)? } else { Vec::new() };
    figures.extend(editors::all(&bench, filter)?);
    Ok(figures)
}

/// Builds what is measured; returns the folder of the programs.
fn build() -> anyhow::Result<PathBuf> {
    let target = install::host()?;
    // Apart: what else the tests' programs are built with must not get into the product's.
    let product = ["--package", "pactify-lsp", "--bin", "pactify-lsp"].as_slice();
    let others = ["--package", "pactify-tests", "--no-default-features", "--features", "engine"].as_slice();
    let programs = OTHERS.map(|program| ["--bin", program]);
    for chosen in [product, &[others, programs.as_flattened()].concat()] {
        let mut cargo = install::shipped("build", &target);
        cargo.arg("--release").args(chosen);
        aloud(cargo, BUILD).map_err(|failed| failed.error)?;
    }
    Ok(repository::target().join(target).join("release"))
}
