//! `cargo xtask pictures`: takes the documentation's pictures anew.
//!
//! They are what the end-to-end tests of the clients see on their way, so they can't show what doesn't work.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, ensure};

use crate::repository;
use crate::run::{command, say, step};

/// A test that takes pictures, and those of them that the documentation shows.
struct Sitting {
    test: &'static str,
    /// Their names, without the ending that tells the background.
    shown: &'static [&'static str],
    /// One ending for each background that is taken in this run.
    endings: &'static [&'static str],
    /// Whether it is asked for a light background.
    is_light: bool,
}

const DARK: &str = ".png";
const LIGHT: &str = "-light.png";

const VS_CODE: &str = "a_newcomer_goes_all_the_way_in_vs_code";
const OF_VS_CODE: [&str; 8] = [
    "vscode-welcome",
    "vscode-doctor",
    "vscode-delegate",
    "vscode-progress",
    "vscode-preview",
    "vscode-parts",
    "vscode-apply",
    "vscode-undo",
];
const NEOVIM: &str = "a_newcomer_delegates_takes_one_change_then_the_rest_and_undoes_it";
const OF_NEOVIM: [&str; 5] = ["nvim-brief", "nvim-jobs", "nvim-preview", "nvim-applied", "nvim-undo"];
const SITTINGS: [Sitting; 3] = [
    // It takes both backgrounds in one run.
    Sitting { test: VS_CODE, shown: &OF_VS_CODE, endings: &[DARK, LIGHT], is_light: false },
    Sitting { test: NEOVIM, shown: &OF_NEOVIM, endings: &[DARK], is_light: false },
    Sitting { test: NEOVIM, shown: &OF_NEOVIM, endings: &[LIGHT], is_light: true },
];
/// A page with pictures has to load quickly.
const MOST_BYTES: usize = 200 << 10;
/// For the test, and for building what it needs.
const LIMIT: Duration = Duration::from_secs(1800);

pub(crate) fn run() -> anyhow::Result<()> {
    let (taken, folder) = (repository::target().join("pictures"), repository::root().join("docs/pictures"));
    fs::create_dir_all(&folder).with_context(|| format!("can't make {}", folder.display()))?;
    crate::demo::build()?;
    let stand_ins = stand_in(&folder)?;
    let done = SITTINGS.iter().try_for_each(|sitting| sitting.take(&taken, &folder));
    for left in stand_ins.iter().filter(|path| path.metadata().is_ok_and(|metadata| metadata.len() == 0)) {
        fs::remove_file(left).with_context(|| format!("can't remove {}", left.display()))?;
    }
    done
}

/// Puts an empty file where a picture was never taken, and tells where: the extension's package has all that its
/// manual shows, and is what most of them are taken of.
fn stand_in(folder: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let mut made = Vec::new();
    for path in SITTINGS.iter().flat_map(Sitting::pictures).map(|name| folder.join(name)) {
        if !path.metadata().is_ok_and(|metadata| metadata.len() > 0) {
            fs::write(&path, "").with_context(|| format!("can't write {}", path.display()))?;
            made.push(path);
        }
    }
    Ok(made)
}

impl Sitting {
    /// The names of the files.
    fn pictures(&self) -> impl Iterator<Item = String> {
        self.shown.iter().flat_map(move |name| self.endings.iter().map(move |ending| format!("{name}{ending}")))
    }

    /// Takes its pictures into `taken`, and copies them into `folder`.
    fn take(&self, taken: &Path, folder: &Path) -> anyhow::Result<()> {
        let mut cargo = command("cargo");
        cargo.args(["test", "--package", "pactify-tests", "--test", "e2e", "--", self.test]);
        cargo.env("PACTIFY_TEST_PICTURES", taken).current_dir(repository::root());
        if self.is_light {
            cargo.env("PACTIFY_TEST_LIGHT", "1");
        }
        step(cargo, LIMIT)?;
        for name in self.pictures() {
            let from = taken.join(&name);
            let picture = fs::read(&from).with_context(|| format!("the test left no {}", from.display()))?;
            ensure!(picture.len() <= MOST_BYTES, "{name} has {} bytes; {MOST_BYTES} is the most", picture.len());
            fs::write(folder.join(&name), picture)?;
            say(&format!("wrote docs/pictures/{name}"));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::repository::Tree;

    /// What the documents and the extension's tour show, by the names of the files.
    fn shown(tree: &Tree) -> BTreeSet<String> {
        let texts = tree.below("", ".md").chain(tree.file("editors/vscode/package.json"));
        let after = texts.flat_map(|file| file.text.split("docs/pictures/").skip(1));
        let names = after.filter_map(|rest| rest.split([')', '"']).next());
        names.filter(|name| name.ends_with(DARK)).map(str::to_owned).collect()
    }

    #[test]
    fn what_is_taken_is_shown_and_what_is_shown_is_taken() -> anyhow::Result<()> {
        let taken: BTreeSet<String> = SITTINGS.iter().flat_map(Sitting::pictures).collect();
        assert_eq!(taken, shown(&Tree::read(&repository::root())?));
        Ok(())
    }

    #[test]
    fn a_picture_that_was_taken_is_left_as_it_is() -> anyhow::Result<()> {
        let folder = tempfile::tempdir()?;
        let first = folder.path().join("vscode-welcome.png");
        fs::write(&first, "a picture")?;
        let made = stand_in(folder.path())?;
        assert_eq!(made.len(), 2 * (OF_VS_CODE.len() + OF_NEOVIM.len()) - 1);
        assert!(!made.contains(&first));
        assert_eq!(fs::read_to_string(&first)?, "a picture");
        Ok(())
    }
}
