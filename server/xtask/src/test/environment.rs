//! The world that the steps are run in: this clone's own target folder, a home that isn't the person's, no job.

use std::ffi::OsStr;
use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use pactify_tests::{outside, tools};

use crate::repository;
use crate::run;

/// What would change what is tested, or where it writes.
const REMOVED: [&str; 12] = [
    "GIT_DIR",
    "GIT_INDEX_FILE",
    "GIT_WORK_TREE",
    "PACTIFY_HOME",
    "PACTIFY_JOB",
    "PACTIFY_LOG",
    "CODEX_HOME",
    "XDG_CACHE_HOME",
    "XDG_CONFIG_HOME",
    "XDG_DATA_HOME",
    "XDG_STATE_HOME",
    "RUSTFLAGS",
];

/// Makes what the commands need.
pub(super) fn prepare() -> anyhow::Result<()> {
    fs::create_dir_all(home())?;
    Ok(())
}

/// A command at the root of the clone, with nobody at its standard input.
pub(super) fn command(program: impl AsRef<OsStr>) -> Command {
    let mut command = run::command(program);
    command.current_dir(repository::root()).stdin(Stdio::null());
    for name in REMOVED {
        command.env_remove(name);
    }
    // Before the home changes: these are found through it.
    let person = outside::variable("HOME").map(PathBuf::from);
    for (name, folder) in [("CARGO_HOME", ".cargo"), ("RUSTUP_HOME", ".rustup")] {
        let at_home = person.as_ref().map(|home| home.join(folder)).filter(|folder| folder.is_dir());
        if let (None, Some(folder)) = (outside::variable(name), at_home) {
            command.env(name, folder);
        }
    }
    if let Ok(cache) = tools::cache() {
        command.env("PACTIFY_TOOLS_CACHE", cache);
    }
    if let (None, Ok(cache)) = (outside::variable("PACTIFY_TEST_ROOT"), outside::cache_folder()) {
        command.env("PACTIFY_TEST_ROOT", cache.join("pactify-tests"));
    }
    command.env("HOME", home()).env("CARGO_TARGET_DIR", repository::target());
    command
}

fn home() -> PathBuf {
    repository::target().join("test-home")
}
