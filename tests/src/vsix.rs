//! The VS Code extension as a package: what is in it, and how it is made.
//!
//! `cargo xtask dist` makes the one that people install, the end-to-end tests one with the server of the build under
//! test. Each step is a command for the caller to run, with its own environment and limits.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, bail};

use crate::tools::Tool;

/// Where the pictures of the manual and of the tour lie, as their texts name them, and where they lie in a package.
const PICTURES: [&str; 2] = ["../../docs/pictures/", "media/"];

/// What VS Code calls the system of a Rust target.
pub fn platform(target: &str) -> Result<&'static str> {
    match target {
        "x86_64-unknown-linux-gnu" | "x86_64-unknown-linux-musl" => Ok("linux-x64"),
        "aarch64-unknown-linux-gnu" | "aarch64-unknown-linux-musl" => Ok("linux-arm64"),
        _ => bail!(
            "no VS Code package is made for the target {target}: make it on a Linux with x86_64 or aarch64, or, if \
            the server runs on {target}, add what VS Code calls it to `platform` in tests/src/vsix.rs"
        ),
    }
}

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
        for shown in pictures(&text) {
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

/// Packs a staged and bundled `folder` into the file `package`, for the system that this is built for.
pub fn pack(folder: &Path, package: &Path, command: impl Fn(&OsStr) -> Command) -> Result<Command> {
    let target = format!("{}-unknown-{}-gnu", std::env::consts::ARCH, std::env::consts::OS);
    pack_for(platform(&target)?, folder, package, command)
}

/// Packs a staged and bundled `folder` into the file `package`, for a [`platform`].
pub fn pack_for(platform: &str, folder: &Path, package: &Path, command: impl Fn(&OsStr) -> Command) -> Result<Command> {
    let mut vsce = command(Tool::Node24.find()?.as_os_str());
    vsce.arg(Tool::Extension.find()?.join("@vscode/vsce/vsce"));
    vsce.args(["package", "--no-dependencies", "--skip-license", "--no-rewrite-relative-links", "--target", platform]);
    vsce.arg("--out").arg(package).current_dir(folder);
    Ok(vsce)
}

/// The files of the pictures that a text of the extension shows, as Markdown, as HTML or as JSON.
fn pictures(text: &str) -> impl Iterator<Item = &str> {
    text.split(PICTURES[0]).skip(1).filter_map(|rest| rest.split([')', '"']).next())
}

fn source() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).with_file_name("editors").join("vscode")
}

fn copy(from: &Path, to: &Path) -> Result<()> {
    std::fs::copy(from, to).with_context(|| format!("can't copy {}", from.display()))?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_target_has_the_name_that_vs_code_gives_it_or_is_refused_with_what_to_do() {
        for (target, expected) in [
            ("x86_64-unknown-linux-gnu", "linux-x64"),
            ("x86_64-unknown-linux-musl", "linux-x64"),
            ("aarch64-unknown-linux-gnu", "linux-arm64"),
            ("aarch64-unknown-linux-musl", "linux-arm64"),
        ] {
            assert_eq!(platform(target).unwrap(), expected);
        }
        for unknown in ["riscv64gc-unknown-linux-gnu", "x86_64-unknown-linux-gnux32", "aarch64-apple-darwin", ""] {
            let refusal = platform(unknown).unwrap_err().to_string();
            assert!(refusal.contains(&format!("the target {unknown}: make it on a Linux")), "{refusal}");
        }
    }

    #[test]
    fn pictures_are_found_in_whatever_shows_them() {
        let text = "![a](../../docs/pictures/a.png) and <source srcset=\"../../docs/pictures/b-light.png\">\n\
            <img alt=\"b\" src=\"../../docs/pictures/b.png\"> {\"hc\": \"../../docs/pictures/c.png\"} docs/pictures/d.png";
        assert_eq!(pictures(text).collect::<Vec<_>>(), ["a.png", "b-light.png", "b.png", "c.png"]);
    }
}
