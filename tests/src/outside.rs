//! Everything that the test kit takes from the environment it is run in. Tests themselves get a built one.
//!
//! | variable | meaning |
//! | --- | --- |
//! | `PACTIFY_TEST_ROOT` | where sandboxes are made (default: `pactify-tests` in the user's cache folder) |
//! | `PACTIFY_KEEP` | keep the sandbox of a test that panics; `all` keeps every one |
//! | `PACTIFY_TOOLS_CACHE` | where the pinned tools are (default: `pactify-tools` in the user's cache folder) |
//! | `PACTIFY_TEST_CODEX` | the codex to test against (default: the pinned one in the tools cache) |
//! | `PACTIFY_TEST_PICTURES` | where pictures of editors are put (default: `pictures` in cargo's folder for tests) |
//! | `PACTIFY_TEST_BIN` | the folder of our own programs (default: where cargo puts them for this test) |

use std::env;
use std::ffi::OsString;
use std::path::PathBuf;

use anyhow::{Context, ensure};

/// A variable of the outer environment.
#[must_use]
#[expect(clippy::disallowed_methods, reason = "the one place where the kit reads the environment it is run in")]
pub fn variable(name: &str) -> Option<OsString> {
    env::var_os(name).filter(|value| !value.is_empty())
}

/// The user's folder for what can be made again.
pub fn cache_folder() -> anyhow::Result<PathBuf> {
    let absolute = |name| variable(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let cache = absolute("XDG_CACHE_HOME").or_else(|| Some(absolute("HOME")?.join(".cache")));
    cache.context("neither XDG_CACHE_HOME nor HOME names a folder: set one of them")
}

/// One of our own programs, such as `pactify-lsp` or `scripted-agent`.
pub fn program(name: &str) -> anyhow::Result<PathBuf> {
    let beside_test = || {
        let test = env::current_exe().context("where is this test?")?;
        // target/PROFILE/deps/TEST-HASH, or target/PROFILE/PROGRAM
        let folder = test.ancestors().skip(1).find(|folder| !folder.ends_with("deps"));
        folder.map(PathBuf::from).context("this test has no folder")
    };
    let folder = variable("PACTIFY_TEST_BIN").map_or_else(beside_test, |folder| Ok(PathBuf::from(folder)))?;
    let program = folder.join(name);
    ensure!(program.is_file(), "{} is not built: run `cargo build --workspace --bins`", program.display());
    Ok(program)
}
