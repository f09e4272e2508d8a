//! `cargo xtask pictures`: takes the documentation's pictures anew.
//!
//! They are what the end-to-end test of the VS Code extension sees on its way, so they can't show what doesn't work.

use std::fs;
use std::time::Duration;

use anyhow::{Context, ensure};

use crate::repository;
use crate::run::{command, say, step};

/// The test that takes them.
const TEST: &str = "a_person_delegates_previews_and_applies_in_vs_code";
/// Those of its pictures that the documentation shows.
const SHOWN: [&str; 2] = ["vscode-progress.png", "vscode-preview.png"];
/// A page with pictures has to load quickly.
const MOST_BYTES: usize = 200 << 10;
/// For the test, and for building what it needs.
const LIMIT: Duration = Duration::from_secs(1800);

pub(crate) fn run() -> anyhow::Result<()> {
    let root = repository::root();
    let taken = repository::target().join("pictures");
    crate::demo::build()?;
    let mut cargo = command("cargo");
    cargo.args(["test", "--package", "pactify-tests", "--test", "e2e", "--", TEST]);
    cargo.env("PACTIFY_TEST_PICTURES", &taken).current_dir(&root);
    step(cargo, LIMIT)?;
    let folder = root.join("docs/pictures");
    fs::create_dir_all(&folder).with_context(|| format!("can't make {}", folder.display()))?;
    for name in SHOWN {
        let from = taken.join(name);
        let picture = fs::read(&from).with_context(|| format!("the test left no {}", from.display()))?;
        ensure!(picture.len() <= MOST_BYTES, "{name} has {} bytes; {MOST_BYTES} is the most", picture.len());
        fs::write(folder.join(name), picture)?;
        say(&format!("wrote docs/pictures/{name}"));
    }
    Ok(())
}
