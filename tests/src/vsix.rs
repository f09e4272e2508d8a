//! The VS Code extension as a package: what is in it, and how it is made.
//!
//! `cargo xtask dist` makes the one that people install, the end-to-end tests one with the server of the build under
//! test. Each step is a command for the caller to run, with its own environment and limits.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result};

use crate::tools::Tool;

/// The only system that the server is built for.
pub const TARGET: &str = "linux-x64";
/// Where the pictures of the manual and of the tour lie, as their texts name them, and where they lie in a package.
const PICTURES: [&str; 2] = ["../../docs/pictures/", "media/"];

/// Puts everything but the bundled code into `folder`; with a server, if one is given.
pub fn stage(folder: &Path, server: Option<&Path>) -> Result<()> {
    let source = source();
    let repository = source.ancestors().nth(2).context("the extension lies in the repository")?;
    std::fs::create_dir_all(folder.join("media"))?;
    copy(&source.join(".vscodeignore"), &folder.join(".vscodeignore"))?;
    for name in ["LICENSE-MIT", "LICENSE-APACHE"] {
        copy(&repository.join(name), &folder.join(name))?;
    }
    for media in std::fs::read_dir(source.join("media"))? {
        let media = media?;
        copy(&media.path(), &folder.join("media").join(media.file_name()))?;
    }
    for name in ["README.md", "package.json"] {
        let text = std::fs::read_to_string(source.join(name))?;
        for shown in text.split(PICTURES[0]).skip(1).filter_map(|rest| rest.split([')', '"']).next()) {
            copy(&repository.join("docs/pictures").join(shown), &folder.join("media").join(shown))?;
        }
        std::fs::write(folder.join(name), text.replace(PICTURES[0], PICTURES[1]))?;
    }
    if let Some(server) = server {
        std::fs::create_dir_all(folder.join("server"))?;
        copy(server, &folder.join("server/pactify-lsp"))?;
    }
    Ok(())
}

/// Bundles the code into a staged `folder`.
pub fn bundle(folder: &Path, command: impl Fn(&OsStr) -> Command) -> Result<Command> {
    Tool::Extension.find()?;
    let mut npm = command(OsStr::new("npm"));
    npm.args(["run", "--silent", "build", "--"]);
    npm.arg(format!("--outfile={}", folder.join("dist/extension.js").display())).current_dir(source());
    Ok(npm)
}

/// Packs a staged and bundled `folder` into the file `package`.
pub fn pack(folder: &Path, package: &Path, command: impl Fn(&OsStr) -> Command) -> Result<Command> {
    let mut vsce = command(Tool::Node24.find()?.as_os_str());
    vsce.arg(Tool::Extension.find()?.join("@vscode/vsce/vsce"));
    vsce.args(["package", "--no-dependencies", "--skip-license", "--no-rewrite-relative-links", "--target", TARGET]);
    vsce.arg("--out").arg(package).current_dir(folder);
    Ok(vsce)
}

fn source() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).with_file_name("editors").join("vscode")
}

fn copy(from: &Path, to: &Path) -> Result<()> {
    std::fs::copy(from, to).with_context(|| format!("can't copy {}", from.display()))?;
    Ok(())
}
