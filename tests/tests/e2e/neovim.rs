//! The Neovim client in the real Neovim: suites without a screen, written in Lua in `tests/editors/nvim/`, and
//! [`screens`]: a person's way from nothing to an undone apply, in a terminal.
//!
//! Neovim runs the server of this build. Each step of a suite has a time limit of its own.

mod screens;

use std::process::Command;
use std::time::Duration;

use anyhow::{Result, ensure};
use pactify_tests::clients;
use pactify_tests::editor::scripted_sandbox;
use pactify_tests::outside;
use pactify_tests::running::Running;
use pactify_tests::sandbox::{Repository, Sandbox};

use crate::clients::with_the_real_codex;
use crate::permissions;

/// For a whole suite. Less than the runner's own limit, after which nothing is told; more than suites take that
/// succeed.
const PATIENCE: Duration = Duration::from_secs(720);

/// A Neovim with the plugin in its runtime path and the server of this build, and nothing of the person's.
pub(crate) fn neovim(sandbox: &Sandbox, repository: &Repository<'_>) -> Result<Command> {
    clients::neovim(sandbox, repository.path(), &outside::program("pactify-lsp")?)
}

/// Runs a suite to its end.
fn suite(name: &str, sandbox: &Sandbox, repository: &Repository<'_>) -> Result<()> {
    let folder = sandbox.root().join("briefs");
    std::fs::create_dir_all(&folder)?;
    let mut nvim = neovim(sandbox, repository)?;
    nvim.arg("-l").arg(clients::script("nvim").join(name));
    nvim.env("PACTIFY_FLOW", folder);
    let ended = Running::start(nvim, b"")?.wait(PATIENCE)?.success()?;
    ensure!(ended.stdout.contains("ok - the server ends with its client"), "{ended:?}");
    Ok(())
}

/// Runs a suite in the sample repository, with the scripted agent as codex.
fn with_the_scripted_agent(name: &str) -> Result<()> {
    let sandbox = scripted_sandbox()?;
    let repository = sandbox.filled("sample")?;
    clients::add_thirty_lines(&repository)?;
    suite(name, &sandbox, &repository)
}

#[test]
fn a_job_is_delegated_previewed_applied_and_cancelled() -> Result<()> {
    with_the_scripted_agent("flow.lua")
}

#[test]
fn the_real_codex_writes_and_is_cancelled() -> Result<()> {
    with_the_real_codex(|sandbox, repository| suite("codex.lua", sandbox, repository))
}

#[test]
fn parts_are_accepted_merged_and_undone() -> Result<()> {
    with_the_scripted_agent("review.lua")
}

#[test]
fn a_brief_is_written_in_a_buffer_that_nothing_sends_by_accident() -> Result<()> {
    with_the_scripted_agent("write.lua")
}

#[test]
fn a_result_is_exported_opened_and_merged_and_a_job_outlives_its_editor() -> Result<()> {
    with_the_scripted_agent("actions.lua")
}

#[test]
fn briefs_and_lists_are_of_the_repository_that_they_were_asked_for_in() -> Result<()> {
    with_the_scripted_agent("elsewhere.lua")
}

#[test]
fn a_brief_that_was_not_sent_outlives_its_neovim() -> Result<()> {
    with_the_scripted_agent("draft.lua")
}

#[test]
fn the_list_of_jobs_lives_through_a_flood() -> Result<()> {
    with_the_scripted_agent("board.lua")
}

#[test]
fn ten_thousand_files_are_previewed_without_freezing() -> Result<()> {
    with_the_scripted_agent("large.lua")
}

#[test]
fn two_neovims_see_the_same_and_a_server_may_die() -> Result<()> {
    with_the_scripted_agent("together.lua")
}

#[test]
fn what_a_job_asks_waits_until_the_person_wants_to_answer() -> Result<()> {
    let stage = permissions::Stage::running(1, 600, "echo one && rm -rf two")?;
    suite("answer.lua", &stage.sandbox, &stage.repository()?)
}

#[test]
fn a_wrong_configuration_is_told_and_help_has_its_tags() -> Result<()> {
    with_the_scripted_agent("setup.lua")
}
