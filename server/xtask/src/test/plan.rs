//! What is run, in which order, for how long at most.
//!
//! One build for everything: all packages, targets and features together, in the dev profile, so that no crate is built
//! twice for the sake of another step (clippy's own metadata apart).

use std::process::Command;
use std::time::Duration;

use anyhow::Context;
use pactify_tests::tools::Tool;

use super::environment;
use crate::repository;
use crate::{codegen, demo, tidy, tools};

/// What every cargo command that compiles is given.
const EVERYTHING: [&str; 3] = ["--workspace", "--all-targets", "--all-features"];
const MINUTE: Duration = Duration::from_secs(60);

/// One thing to do.
pub(super) struct Step {
    pub(super) name: &'static str,
    /// After that it is ended, and has failed.
    pub(super) limit: Duration,
    pub(super) work: Work,
}

pub(super) enum Work {
    /// A program; which one, is found out when it is its turn.
    Run(Box<dyn FnOnce() -> anyhow::Result<Command>>),
    /// Something of ours.
    Own(Box<dyn FnOnce() -> anyhow::Result<()>>),
}

pub(super) fn full() -> Vec<Step> {
    let mut steps = vec![own("tools", || install(tools::by_default()))];
    steps.extend(style());
    steps.extend([
        build(),
        own("demo", demo::play),
        tests(None),
        cargo("doc tests", 10, &["test", "--doc", "--workspace", "--all-features"]),
    ]);
    steps.extend(clients());
    steps.extend([dependencies(), fuzz_targets()]);
    steps
}

pub(super) fn quick() -> Vec<Step> {
    let mut steps = vec![own("tools", || install([Tool::Nextest]))];
    steps.extend(style());
    steps.push(unit_tests(None));
    steps
}

pub(super) fn chosen(filter: &str) -> Vec<Step> {
    vec![own("tools", || install(tools::by_default())), build(), tests(Some(filter))]
}

pub(super) fn quick_chosen(filter: &str) -> Vec<Step> {
    vec![own("tools", || install([Tool::Nextest])), unit_tests(Some(filter))]
}

fn style() -> [Step; 4] {
    let clippy = [&["clippy", "--quiet"], &EVERYTHING[..], &["--", "--deny", "warnings"]].concat();
    [
        cargo("rustfmt", 2, &["fmt", "--all", "--check"]),
        own("tidy", || tidy::run(&tidy::Arguments::default())),
        own("codegen", || codegen::run(&codegen::Arguments { check: true })),
        cargo("clippy", 25, &clippy),
    ]
}

fn build() -> Step {
    cargo("build", 25, &[&["build"], &EVERYTHING[..]].concat())
}

/// Unit, integration and end-to-end tests; how long each may take is in `.config/nextest.toml`.
fn tests(filter: Option<&str>) -> Step {
    nextest("tests", 40, &[&EVERYTHING[..], filter.as_slice()].concat())
}

fn unit_tests(filter: Option<&str>) -> Step {
    let targets = ["--workspace", "--all-features", "--lib", "--bins"];
    nextest("unit tests", 25, &[&targets[..], filter.as_slice()].concat())
}

/// What belongs to the editors' clients and isn't a test of ours. (The lint of VS Code's checks the types first.)
fn clients() -> [Step; 5] {
    let mut npm = environment::command("npm");
    npm.args(["run", "--silent", "lint"]).current_dir(repository::root().join("editors/vscode"));
    [
        Step { name: "vscode lint", limit: 5 * MINUTE, work: Work::Run(Box::new(|| Ok(npm))) },
        lua(),
        lua_lint(),
        lua_annotations(),
        lua_format(),
    ]
}

/// Unused and unknown names in Neovim's client. (Its generated file is as wide as the wire's sentences.)
fn lua_lint() -> Step {
    with_tool("nvim lint", MINUTE, Tool::Luacheck, |luacheck| {
        luacheck.args(["--quiet", "--config", "editors/nvim/.luacheckrc", "editors/nvim"]);
    })
}

/// The annotations of Neovim's client and its suites are true to each other, and to those of Neovim's own API.
///
/// As lua-language-server does it, what is taken out of a list counts as there (`strict.arrayIndex`): the client knows
/// how long its lists are. Then two checks have to be off, which call every look whether it is there unnecessary.
fn lua_annotations() -> Step {
    let make = || {
        let nvim = Tool::Nvim.find()?;
        let runtime = nvim.ancestors().nth(2).map(|installed| installed.join("share/nvim/runtime"));
        let mut check = environment::command(Tool::EmmyluaCheck.find()?);
        check.env("VIMRUNTIME", runtime.context("nvim has no runtime")?);
        check.args(["--warnings-as-errors", "editors/nvim", "tests/editors/nvim"]);
        Ok(check)
    };
    Step { name: "nvim annotations", limit: 5 * MINUTE, work: Work::Run(Box::new(make)) }
}

/// Neovim's client and its suites are formatted as `stylua.toml` says.
fn lua_format() -> Step {
    let make = || {
        let mut node = environment::command(Tool::Node24.find()?);
        node.env("PACTIFY_STYLUA", Tool::Stylua.find()?);
        node.args(["tests/editors/stylua.mjs", "editors/nvim/stylua.toml", "editors/nvim", "tests/editors/nvim"]);
        Ok(node)
    };
    Step { name: "nvim format", limit: MINUTE, work: Work::Run(Box::new(make)) }
}

/// Neovim reads every file of its client without running it.
fn lua() -> Step {
    const READ: &str = "lua local bad = 0 \
        for _, file in ipairs(vim.fn.globpath('editors/nvim', '**/*.lua', true, true)) do \
        local read, why = loadfile(file) \
        if not read then bad = bad + 1 io.stderr:write(why .. '\\n') end end \
        vim.cmd(bad == 0 and 'qa!' or 'cq!')";
    with_tool("nvim syntax", MINUTE, Tool::Nvim, |nvim| {
        nvim.args(["--clean", "--headless", "-c", READ]);
    })
}

/// Licences, sources and bans; the list of advisories would have to be fetched.
fn dependencies() -> Step {
    with_tool("dependencies", 5 * MINUTE, Tool::Deny, |deny| {
        deny.args(["--workspace", "--all-features", "check", "bans", "licenses", "sources"]);
    })
}

/// They are a workspace of their own, which nothing else here would see break. (Running them takes a nightly compiler.)
fn fuzz_targets() -> Step {
    let target = repository::target();
    let mut cargo = environment::command("cargo");
    cargo.args(["check", "--locked", "--manifest-path", "tests/fuzz/Cargo.toml", "--target-dir"]).arg(target);
    Step { name: "fuzz targets", limit: 15 * MINUTE, work: Work::Run(Box::new(|| Ok(cargo))) }
}

fn nextest(name: &'static str, minutes: u32, arguments: &[&str]) -> Step {
    let arguments: Vec<String> = arguments.iter().map(|argument| (*argument).to_owned()).collect();
    with_tool(name, minutes * MINUTE, Tool::Nextest, move |nextest| {
        nextest.args(["nextest", "run"]).args(arguments);
    })
}

/// A step that runs a tool, which may be installed by a step before it.
fn with_tool(name: &'static str, limit: Duration, tool: Tool, arguments: impl FnOnce(&mut Command) + 'static) -> Step {
    let make = move || {
        let mut command = environment::command(tool.find()?);
        arguments(&mut command);
        Ok(command)
    };
    Step { name, limit, work: Work::Run(Box::new(make)) }
}

/// Tries all of them: what is missing should be told at once.
fn install(needed: impl IntoIterator<Item = Tool>) -> anyhow::Result<()> {
    let errors = needed.into_iter().filter_map(|tool| tools::ensure(tool).err()).map(anyhow::Error::from);
    let failed: Vec<String> = errors.map(|error| format!("{error:#}")).collect();
    anyhow::ensure!(failed.is_empty(), "{}", failed.join("\n"));
    Ok(())
}

fn own(name: &'static str, own: impl FnOnce() -> anyhow::Result<()> + 'static) -> Step {
    Step { name, limit: Duration::MAX, work: Work::Own(Box::new(own)) }
}

fn cargo(name: &'static str, minutes: u32, arguments: &[&str]) -> Step {
    let mut cargo = environment::command("cargo");
    cargo.args(arguments);
    Step { name, limit: minutes * MINUTE, work: Work::Run(Box::new(|| Ok(cargo))) }
}
