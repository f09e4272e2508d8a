//! `cargo xtask pictures`: takes the documentation's pictures anew.
//!
//! They are what the end-to-end tests of the clients see on their way, so they can't show what doesn't work.

use std::fs;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, ensure};

use crate::repository;
use crate::run::{command, say, step};

/// A test that takes pictures, and those of them that the documentation shows.
struct Sitting {
    test: &'static str,
    shown: &'static [&'static str],
    /// Whether it is asked for a light background.
    is_light: bool,
}

const NEOVIM: &str = "a_newcomer_delegates_takes_one_change_then_the_rest_and_undoes_it";
const SITTINGS: [Sitting; 3] = [
    Sitting {
        // It takes both backgrounds in one run.
        test: "a_newcomer_goes_all_the_way_in_vs_code",
        shown: &[
            "vscode-doctor.png",
            "vscode-delegate.png",
            "vscode-progress.png",
            "vscode-progress-light.png",
            "vscode-preview.png",
            "vscode-preview-light.png",
            "vscode-parts.png",
            "vscode-parts-light.png",
        ],
        is_light: false,
    },
    Sitting { test: NEOVIM, shown: &["nvim-brief.png", "nvim-jobs.png", "nvim-preview.png"], is_light: false },
    Sitting { test: NEOVIM, shown: &["nvim-jobs-light.png", "nvim-preview-light.png"], is_light: true },
];
/// A page with pictures has to load quickly.
const MOST_BYTES: usize = 200 << 10;
/// For the test, and for building what it needs.
const LIMIT: Duration = Duration::from_secs(1800);

pub(crate) fn run() -> anyhow::Result<()> {
    let taken = repository::target().join("pictures");
    crate::demo::build()?;
    for sitting in &SITTINGS {
        sitting.take(&taken)?;
    }
    Ok(())
}

impl Sitting {
    /// Takes its pictures into `taken`, and copies those that are shown.
    fn take(&self, taken: &Path) -> anyhow::Result<()> {
        let root = repository::root();
        let mut cargo = command("cargo");
        cargo.args(["test", "--package", "pactify-tests", "--test", "e2e", "--", self.test]);
        cargo.env("PACTIFY_TEST_PICTURES", taken).current_dir(&root);
        if self.is_light {
            cargo.env("PACTIFY_TEST_LIGHT", "1");
        }
        step(cargo, LIMIT)?;
        let folder = root.join("docs/pictures");
        fs::create_dir_all(&folder).with_context(|| format!("can't make {}", folder.display()))?;
        for name in self.shown {
            let from = taken.join(name);
            let picture = fs::read(&from).with_context(|| format!("the test left no {}", from.display()))?;
            ensure!(picture.len() <= MOST_BYTES, "{name} has {} bytes; {MOST_BYTES} is the most", picture.len());
            fs::write(folder.join(name), picture)?;
            say(&format!("wrote docs/pictures/{name}"));
        }
        Ok(())
    }
}
