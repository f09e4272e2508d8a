//! `cargo xtask install`: the programs as people should have them.
//!
//! They are linked statically, which takes the loading of shared libraries off every start of the server and lets a
//! program be copied to any Linux of the same architecture. Flags for that can't stand in the workspace's settings,
//! where they would apply to procedural macros too, which have to be shared libraries: so they are given here, with a
//! target, to whatever builds what is measured or installed ([`shipped`]). A static program moves its own pointers to
//! where it was loaded, at every start; with a C library that can, they are packed ([`can_unpack`]), which takes 300
//! KiB off what a start has to read.

use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use anyhow::Context;
use clap::Args;

use crate::repository;
use crate::run::{FailedAloud, aloud, command, output, say};

const BUILD: Duration = Duration::from_secs(3000);
const QUESTION: Duration = Duration::from_secs(60);
/// The two programs.
const PACKAGE: &str = "server/lsp";

#[derive(Args)]
pub(crate) struct Arguments {
    /// Into the folder `bin` of this one, instead of cargo's own
    #[arg(long)]
    root: Option<PathBuf>,
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let target = host()?;
    let mut cargo = shipped("install", &target);
    cargo.args(["--path", PACKAGE, "--force"]);
    if let Some(root) = &arguments.root {
        cargo.arg("--root").arg(std::path::absolute(root)?);
    }
    aloud(cargo, BUILD).map_err(|FailedAloud { error, said }| {
        if said.contains("-lc") {
            say("The C library to link statically is missing: install it (glibc-static on Fedora), or do without:");
            say(&format!("  cargo install --locked --path {PACKAGE}"));
        }
        error
    })?;
    Ok(())
}

/// `cargo <verb>` for programs as they are shipped; they are built below `target/<target>/release`.
pub(crate) fn shipped(verb: &str, target: &str) -> Command {
    let mut flags = vec!["-C", "target-feature=+crt-static"];
    if can_unpack() {
        flags.extend(["-C", "link-arg=-Wl,-z,pack-relative-relocs"]);
    }
    let flags = serde_json::json!(flags);
    let mut cargo = command("cargo");
    cargo.arg(verb).args(["--locked", "--target", target, "--config", &format!("target.{target}.rustflags={flags}")]);
    // Either would take the place of the flags above.
    cargo.env_remove("RUSTFLAGS").env_remove("CARGO_ENCODED_RUSTFLAGS");
    cargo.current_dir(repository::root()).env("CARGO_TARGET_DIR", repository::target());
    cargo
}

/// Whether the C library that is linked in understands packed pointers: glibc does since 2.36.
fn can_unpack() -> bool {
    let mut getconf = command("getconf");
    getconf.arg("GNU_LIBC_VERSION");
    let said = output(getconf, QUESTION).unwrap_or_default();
    let version = said.trim().strip_prefix("glibc ").and_then(|version| version.split_once('.'));
    version.is_some_and(|(major, minor)| major == "2" && minor.parse().is_ok_and(|minor: u32| minor >= 36))
}

/// The target that rustc builds for when it isn't told one.
pub(crate) fn host() -> anyhow::Result<String> {
    let mut rustc = command("rustc");
    rustc.arg("-vV").current_dir(repository::root());
    let said = output(rustc, QUESTION)?;
    let host = said.lines().find_map(|line| line.strip_prefix("host: ")).context("rustc names no host")?;
    Ok(host.to_owned())
}
