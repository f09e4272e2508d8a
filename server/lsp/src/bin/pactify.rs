//! `pactify`: jobs from a terminal.

use std::process::ExitCode;

use pactify_lsp::{cli, entry};

fn main() -> ExitCode {
    entry::become_host().unwrap_or_else(cli::run)
}
