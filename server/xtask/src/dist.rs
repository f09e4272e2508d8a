//! `cargo xtask dist`: what people install.
//!
//! The VS Code extension as a package for one system, with the statically linked server in it: whoever installs it
//! needs neither Rust nor a `pactify-lsp` in `PATH`.

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::Context as _;
use clap::Args;
use pactify_tests::tools::Tool;
use pactify_tests::vsix;

use crate::install::{host, shipped};
use crate::run::{aloud, command, say, step};
use crate::{repository, tools};

/// The server, from nothing, optimized.
const BUILD: Duration = Duration::from_secs(3000);
/// Bundling and packing.
const PACK: Duration = Duration::from_secs(300);

#[derive(Args)]
pub(crate) struct Arguments {
    /// The folder to put packages into: `target/dist` when absent
    #[arg(long)]
    to: Option<PathBuf>,
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<()> {
    for tool in [Tool::Node24, Tool::Extension] {
        tools::ensure(tool)?;
    }
    let target = host()?;
    // Before the server is built for it, which takes long.
    let platform = vsix::platform(&target)?;
    let mut cargo = shipped("build", &target);
    cargo.args(["--release", "--package", "pactify-lsp", "--bin", "pactify-lsp"]);
    aloud(cargo, BUILD).map_err(|failed| failed.error)?;

    let to = arguments.to.clone().unwrap_or_else(|| repository::target().join("dist"));
    let to = std::path::absolute(to)?;
    let staged = to.join("extension");
    // What an earlier version had must not be in this one.
    if staged.exists() {
        fs::remove_dir_all(&staged).with_context(|| format!("can't empty {}", staged.display()))?;
    }
    vsix::stage(&staged, Some(&repository::target().join(&target).join("release/pactify-lsp")))?;
    step(vsix::bundle(&staged, |program| command(program))?, PACK)?;
    let package = to.join(format!("pactify-{platform}-{}.vsix", env!("CARGO_PKG_VERSION")));
    step(vsix::pack_for(platform, &staged, &package, |program| command(program))?, PACK)?;
    fs::remove_dir_all(&staged)?;
    say(&format!("wrote {}", package.display()));
    say(&format!("  code --install-extension {}", package.display()));
    Ok(())
}
