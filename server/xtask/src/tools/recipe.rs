//! How each tool is installed: the measured recipes, one step at a time, each with a time limit.
//!
//! npm packages come without their install scripts: nothing that is downloaded runs before a test starts it, and
//! code-server would otherwise compile for minutes what tests don't use.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use pactify_tests::outside;
use pactify_tests::tools::{Source, Tool};

use super::ToolError;
use crate::run::{StepError, command, step};

/// For a step that downloads and unpacks.
const DOWNLOAD: Duration = Duration::from_secs(600);
/// For one that compiles, at the same time as other things.
const COMPILE: Duration = Duration::from_secs(2400);
const QUIET: [&str; 3] = ["--ignore-scripts", "--no-audit", "--no-fund"];

/// The tools that this one's recipe uses.
pub(super) fn needs(tool: Tool) -> &'static [Tool] {
    match tool {
        Tool::CodeServer | Tool::Kimi => &[Tool::Node24],
        _ => &[],
    }
}

/// Fills an empty folder with the tool.
pub(super) fn fill(tool: Tool, folder: &Path) -> Result<(), ToolError> {
    match tool.source() {
        Source::Npm(pins) => {
            npm(tool, &pins, folder)?;
            if tool == Tool::CodeServer { vscode(tool, folder) } else { Ok(()) }
        }
        Source::Pip(requirements) => pip(tool, &requirements, folder),
        Source::Cargo(pins) => cargo(tool, &pins, folder),
        Source::System(package) => Err(ToolError::NeedsRoot { tool, package }),
    }
}

/// Installs a package of the system.
pub(super) fn system(tool: Tool, package: &'static str) -> Result<(), ToolError> {
    if !rustix::process::geteuid().is_root() {
        return Err(ToolError::NeedsRoot { tool, package });
    }
    for arguments in [&["update", "-q"][..], &["install", "-q", "-y", "--no-install-recommends", package]] {
        let mut apt = command("apt-get");
        apt.args(arguments).env("DEBIAN_FRONTEND", "noninteractive");
        done(tool, "apt-get", apt, DOWNLOAD)?;
    }
    Ok(())
}

fn npm(tool: Tool, pins: &Path, folder: &Path) -> Result<(), ToolError> {
    for file in ["package.json", "package-lock.json"] {
        let to = folder.join(file);
        fs::copy(pins.join(file), &to).map_err(|source| ToolError::Cache { tool, path: to, source })?;
    }
    let mut npm = command("npm");
    npm.arg("ci").args(QUIET).current_dir(folder);
    if tool == Tool::Kimi {
        // A terminal and a clipboard, as native modules for every system: as much again as kimi itself.
        npm.arg("--omit=optional");
    }
    done(tool, "npm", npm, DOWNLOAD)
}

/// What code-server's own install script would do, without compiling; `npm ci` refuses its shrinkwrap.
fn vscode(tool: Tool, folder: &Path) -> Result<(), ToolError> {
    let mut npm = command("npm");
    npm.args(["install", "--omit=dev"]).args(QUIET).current_dir(folder.join("node_modules/code-server/lib/vscode"));
    // It wants exactly the Node.js that will run it.
    if let Some(node) = Tool::Node24.installed().ok().flatten().as_deref().and_then(Path::parent) {
        let path = outside::variable("PATH").unwrap_or_default();
        let folders = std::iter::once(node.to_owned()).chain(std::env::split_paths(&path));
        npm.env("PATH", std::env::join_paths(folders).unwrap_or(path.clone()));
    }
    done(tool, "npm", npm, DOWNLOAD)
}

/// Not a virtual environment: its scripts hold the path that it was made at, which is about to change.
fn pip(tool: Tool, requirements: &Path, folder: &Path) -> Result<(), ToolError> {
    let mut pip = command("python3");
    pip.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps", "--require-hashes"]);
    pip.arg("--only-binary=:all:").arg("--target").arg(folder.join("site")).arg("--requirement").arg(requirements);
    done(tool, "python3", pip, DOWNLOAD)
}

/// Without optimization, as its manifest says why; only the program is kept.
fn cargo(tool: Tool, pins: &Path, folder: &Path) -> Result<(), ToolError> {
    let build = folder.join("build");
    let mut cargo = command("cargo");
    cargo.args(["install", "--quiet", "--locked", "--debug", "--no-track", "--path"]).arg(pins);
    cargo.arg("--root").arg(folder).arg("--target-dir").arg(&build);
    done(tool, "cargo", cargo, COMPILE)?;
    fs::remove_dir_all(&build).map_err(|source| ToolError::Cache { tool, path: build, source })
}

fn done(tool: Tool, installer: &'static str, command: Command, limit: Duration) -> Result<(), ToolError> {
    match step(command, limit) {
        Ok(_) => Ok(()),
        Err(StepError::NotStarted { .. }) => Err(ToolError::NoInstaller { tool, installer }),
        Err(source) => Err(ToolError::Step { tool, source }),
    }
}
