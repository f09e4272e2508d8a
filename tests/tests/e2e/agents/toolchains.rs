//! What commands of an agent whose home is the job's own find of the person's toolchains.

use std::ffi::OsStr;
use std::fs;

use anyhow::{Context as _, Result};
use pactify_tests::editor::Editor;
use pactify_tests::sandbox::shell_program;
use serde_json::json;

use super::{Agent, Stage, finished};

/// What rustup puts on PATH: a program that looks for the real one.
const SHIM: &str = "exec \"${RUSTUP_HOME:-$HOME/.rustup}/toolchains/stable/bin/cargo\" \"$@\"";
const CARGO: &str = "echo \"$1 by the person's cargo\"\n";

fn finds_toolchains(agent: Agent) -> Result<()> {
    let look = "cargo test > seen.txt; for name in CARGO_HOME PYENV_ROOT GOMODCACHE NVM_DIR; do \
                eval \"echo $name \\${$name-unset}\" >> seen.txt; done; test -e ~/.cargo || echo 'no ~/.cargo' >> seen.txt";
    let mut stage = Stage::playing(agent, &json!([{"shell": look}, {"message": "Done."}]))?;
    let home = stage.sandbox.home();
    shell_program(&home.join(".cargo/bin/cargo"), SHIM)?;
    shell_program(&home.join(".rustup/toolchains/stable/bin/cargo"), CARGO)?;
    fs::write(home.join(".cargo/credentials.toml"), "[registry]\ntoken = \"t\"\n")?;
    for folder in [".pyenv", "go/pkg/mod"] {
        fs::create_dir_all(home.join(folder))?;
    }
    let path = stage.sandbox.environment().get(OsStr::new("PATH")).context("no PATH")?.clone();
    let folders = std::iter::once(home.join(".cargo/bin")).chain(std::env::split_paths(&path));
    stage.sandbox.set("PATH", std::env::join_paths(folders)?);
    stage.sandbox.set("PYENV_ROOT", "/opt/pyenv");
    let repository = stage.repository()?;
    let mut editor = Editor::open(&stage.sandbox, repository.path())?;
    let job = stage.delegate(&mut editor, "Run the tests.", json!({}))?;
    let status = finished(&mut editor, &job)?;
    assert_eq!(status["outcome"], "succeeded", "{status:#}");
    let seen = fs::read_to_string(stage.sandbox.job(&job).join("tree/seen.txt"))?;
    let modules = home.join("go/pkg/mod");
    let expected = format!(
        "test by the person's cargo\nCARGO_HOME unset\nPYENV_ROOT /opt/pyenv\nGOMODCACHE {}\nNVM_DIR unset\nno ~/.cargo\n",
        modules.display()
    );
    assert_eq!(seen, expected);
    Ok(())
}

#[test]
fn kimi_s_commands_find_the_person_s_toolchains() -> Result<()> {
    finds_toolchains(Agent::Kimi)
}

#[test]
fn opencode_s_commands_find_the_person_s_toolchains() -> Result<()> {
    finds_toolchains(Agent::Opencode)
}
