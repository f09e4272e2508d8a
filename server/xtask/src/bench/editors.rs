//! What a person who types feels of a job that says ten thousand events a second, in the real editors.
//!
//! The scripts in `tests/editors/` type in turns, without a job and beside one, in one and the same editor. The
//! harness, its host and the server share the machine with the editor, as they do where people work.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, ensure};
use pactify_tests::sandbox::{Repository, Sandbox};
use pactify_tests::tools::Tool;
use pactify_tests::{clients, vsix};
use serde::Deserialize;
use serde_json::json;

use super::measure::median;
use super::{Bench, Figure};
use crate::run::{output, say};
use crate::tools;

/// For all turns in one editor, on a busy machine.
const LIMIT: Duration = Duration::from_secs(900);
/// A harness is to say 10,000 events in a second; one that was kept from saying half of that proves nothing.
const LEAST: f64 = 5_000.0;

/// The names of what is measured here.
const NAMES: [&str; 2] = ["editors-neovim", "editors-vscode"];

/// What a script prints, in milliseconds.
#[derive(Deserialize)]
struct Samples {
    with: Vec<f64>,
    without: Vec<f64>,
}

/// Whether something that is measured here has such a name.
pub(super) fn is_chosen(filter: &str) -> bool {
    NAMES.iter().any(|name| name.contains(filter))
}

pub(super) fn all(bench: &Bench, filter: &str) -> anyhow::Result<Vec<Figure>> {
    let chosen = NAMES.into_iter().filter(|name| name.contains(filter));
    chosen.map(|name| if name == NAMES[0] { neovim(bench) } else { vs_code(bench) }).collect()
}

/// In a terminal, to what it is told to draw.
fn neovim(bench: &Bench) -> anyhow::Result<Figure> {
    say("measuring: typing in Neovim");
    let nvim = tools::ensure(Tool::Nvim)?;
    let repository = repository(bench, "typed-nvim")?;
    let folder = bench.sandbox.root().join("typing");
    std::fs::create_dir_all(&folder)?;
    let mut child = clients::neovim(&bench.sandbox, repository.path(), &bench.server)?;
    child.args(["-n", "-c", "let &stl = \"%{%v:lua.require'pactify'.statusline()%}\" | set ls=3", "README.md"]);
    let words = std::iter::once(child.get_program()).chain(child.get_args());
    let words: Vec<_> = words.map(|word| word.to_string_lossy()).collect();
    let mut driver = bench.sandbox.command(nvim);
    driver.arg("--clean").arg("-l").arg(clients::script("nvim/latency.lua")).current_dir(repository.path());
    driver.env("PACTIFY_FLOW", folder).env("PACTIFY_CHILD", json!(words).to_string());
    figure(bench, driver, "a key to the screen of Neovim")
}

/// In a browser, to the text on the page.
fn vs_code(bench: &Bench) -> anyhow::Result<Figure> {
    say("measuring: typing in VS Code");
    for tool in [Tool::Node24, Tool::CodeServer, Tool::PlaywrightCore, Tool::Chromium, Tool::Extension] {
        tools::ensure(tool)?;
    }
    let repository = repository(bench, "typed-code")?;
    let extension = clients::installed(&bench.sandbox);
    vsix::stage(&extension, None)?;
    output(vsix::bundle(&extension, |program| bench.sandbox.command(program))?, LIMIT)?;
    let pictures = crate::repository::target().join("pictures");
    let mut driver = clients::vs_code(&bench.sandbox, repository.path(), "vscode/latency.mjs", &pictures)?;
    driver.env("PACTIFY_LSP", &bench.server);
    figure(bench, driver, "a key to the page of VS Code")
}

fn repository<'a>(bench: &'a Bench, name: &str) -> anyhow::Result<Repository<'a>> {
    let repository = bench.sandbox.filled(name)?;
    repository.write("notes.txt", "")?;
    repository.commit("Notes")?;
    Ok(repository)
}

/// Runs a driver; what it measured counts if the jobs kept their pace.
fn figure(bench: &Bench, driver: Command, what: &str) -> anyhow::Result<Figure> {
    let known = paces(&bench.sandbox)?.len();
    let said = output(driver, LIMIT)?;
    let samples = said.lines().find(|line| line.starts_with('{')).context("the script printed no samples")?;
    let Samples { with, without } = serde_json::from_str(samples)?;
    let paces = &paces(&bench.sandbox)?[known..];
    ensure!(!paces.is_empty(), "no job told its pace");
    let pace = median(paces.to_vec());
    ensure!(pace >= LEAST, "the harness said {pace} events a second only: the machine is too busy for this");
    Ok(Figure {
        what: format!("{what}, beside {:.0},000 events a second", pace / 1000.0),
        reference: "the same without a job".to_owned(),
        unit: "ms".to_owned(),
        ours: median(with),
        theirs: median(without),
        bar: Some(2.0),
    })
}

/// What the jobs' harnesses said in a second, by job.
fn paces(sandbox: &Sandbox) -> anyhow::Result<Vec<f64>> {
    let jobs = sandbox.jobs();
    let mut found: Vec<_> =
        std::fs::read_dir(jobs).into_iter().flatten().map(|job| Ok(job?.path())).collect::<anyhow::Result<_>>()?;
    found.sort();
    Ok(found.iter().filter_map(|job| pace(job)).collect())
}

/// As the scripted agent tells it at the end of its chatter.
fn pace(job: &Path) -> Option<f64> {
    let journal = std::fs::read_to_string(job.join("events.jsonl")).ok()?;
    let (before, _) = journal.split_once(" messages a second")?;
    before.rsplit('"').next()?.parse().ok()
}
