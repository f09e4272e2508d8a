//! `pactify-lsp`: the language server on standard input and output.

use std::io::{self, Write};
use std::process::ExitCode;

use pactify_engine::log::Stderr;
use pactify_lsp::{entry, lsp};

const HELP: &str = "\
The pactify language server: hands coding tasks to agent CLIs in detached worktrees.

Usage: pactify-lsp [--stdio]

Editors start it; it speaks the Language Server Protocol on standard input and output.
For a terminal there is `pactify`.

Options:
      --stdio    Speak on standard input and output (the default, and the only way)
  -V, --version  Print the version
  -h, --help     Print this

Environment:
  PACTIFY_HOME   Where jobs are kept [default: ~/.pactify]
  PACTIFY_LOG    off, error, warn, info, debug or trace [default: info];
                 the log goes to standard error and to $PACTIFY_HOME/logs
";

enum Request {
    Serve,
    Print(String),
    Refuse(String),
}

fn main() -> ExitCode {
    if let Some(code) = entry::become_host() {
        return code;
    }
    match read(std::env::args_os().skip(1).map(|argument| argument.to_string_lossy().into_owned())) {
        Request::Serve => serve(),
        Request::Print(text) => print(io::stdout(), &text, 0),
        Request::Refuse(argument) => {
            print(io::stderr(), &format!("pactify-lsp: {argument:?} is not an option\n\n{HELP}"), 2)
        }
    }
}

fn read(arguments: impl Iterator<Item = String>) -> Request {
    for argument in arguments {
        match argument.as_str() {
            "--stdio" => {}
            "-V" | "--version" => return Request::Print(format!("pactify-lsp {}\n", env!("CARGO_PKG_VERSION"))),
            "-h" | "--help" => return Request::Print(HELP.to_owned()),
            // What vscode-languageclient adds to every server's arguments.
            client if client.starts_with("--clientProcessId=") => {}
            _ => return Request::Refuse(argument),
        }
    }
    Request::Serve
}

fn serve() -> ExitCode {
    let served = entry::begin("pactify-lsp", Stderr::Shown).map_err(anyhow::Error::from).and_then(|env| {
        tracing::info!(version = env!("CARGO_PKG_VERSION"), pid = std::process::id(), "start");
        Ok(lsp::run(env)?)
    });
    match served {
        Ok(ending) => {
            tracing::info!(?ending, "end");
            // Work in the blocking pool is abandoned: jobs live in processes of their own.
            std::process::exit(ending.code())
        }
        Err(error) => print(io::stderr(), &format!("pactify-lsp: {error:#}\n"), 70),
    }
}

fn print(mut to: impl Write, text: &str, code: u8) -> ExitCode {
    match to.write_all(text.as_bytes()) {
        Ok(()) => ExitCode::from(code),
        Err(_) => ExitCode::FAILURE,
    }
}
