//! Our thin clients in the real editors, as commands: VS Code in a browser without a window, and Neovim.
//!
//! What is done in them is written in their own languages, in `tests/editors/`.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Result;
use serde_json::json;

use crate::sandbox::{Repository, Sandbox};
use crate::tools::Tool;

/// A Neovim with the plugin in its runtime path and this server, and nothing of the person's.
pub fn neovim(sandbox: &Sandbox, folder: &Path, server: &Path) -> Result<Command> {
    let plugin = Path::new(env!("CARGO_MANIFEST_DIR")).with_file_name("editors").join("nvim");
    let mut nvim = sandbox.command(Tool::Nvim.find()?);
    nvim.arg("--clean").arg("--cmd").arg(format!("set rtp^={}", plugin.display()));
    nvim.arg("--cmd").arg(format!("let g:pactify = {}", json!({"cmd": [server.display().to_string(), "--stdio"]})));
    nvim.current_dir(folder);
    Ok(nvim)
}

/// A run of one of the scripts that drive VS Code, on this workspace. It leaves pictures in `pictures`.
pub fn vs_code(sandbox: &Sandbox, workspace: &Path, name: &str, pictures: &Path) -> Result<Command> {
    let extensions = sandbox.root().join("extensions");
    std::fs::create_dir_all(&extensions)?;
    let mut node = sandbox.command(Tool::Node24.find()?);
    node.arg(script(name)).env("PACTIFY_WORKSPACE", workspace).env("PACTIFY_EXTENSIONS", extensions);
    node.env("PACTIFY_UI_ROOT", sandbox.root().join("ui")).env("PACTIFY_PICTURES", pictures);
    node.env("PACTIFY_GO", sandbox.root().join("go"));
    for (name, tool) in [
        ("PACTIFY_CODE_SERVER", Tool::CodeServer),
        ("PACTIFY_PLAYWRIGHT", Tool::PlaywrightCore),
        ("PACTIFY_CHROMIUM", Tool::Chromium),
    ] {
        node.env(name, tool.find()?);
    }
    Ok(node)
}

/// A file of which a job can change several parts that are far apart.
pub fn add_thirty_lines(repository: &Repository<'_>) -> Result<()> {
    let lines: Vec<String> = (1..=30).map(|number| format!("line {number}\n")).collect();
    repository.write("numbers.txt", lines.concat())?;
    repository.commit("Thirty lines").map(drop)
}

/// Where [`vs_code`] looks for an extension that is installed without a package.
#[must_use]
pub fn installed(sandbox: &Sandbox) -> PathBuf {
    sandbox.root().join("extensions/pactify.pactify-0.1.0")
}

/// A script of `tests/editors/`.
#[must_use]
pub fn script(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("editors").join(name)
}
