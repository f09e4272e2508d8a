//! A twin of opencode 2 as public material describes it, the program `scripted-opencode`: its login is a row of a
//! database in `XDG_DATA_HOME`, its permissions are an ordered list in `opencode.json`, and it speaks the Agent Client
//! Protocol.
//!
//! It knows `--version`, `auth login`, which reads a key from standard input, and `acp`, which plays what the prompt
//! says ([`crate::agent`]). Where any of its permissions is a question it does not begin. The real one was never run
//! here.

use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context as _, Result, bail};
use serde_json::Value;

use crate::agent::{Login, Profile, serve_in};

/// The version it claims to be.
pub const VERSION: &str = "2.0.26";

/// What it asks for, or does.
const ACTIONS: [&str; 15] = [
    "read",
    "edit",
    "glob",
    "grep",
    "list",
    "shell",
    "subagent",
    "skill",
    "lsp",
    "todowrite",
    "webfetch",
    "websearch",
    "external_directory",
    "doom_loop",
    "question",
];

/// Puts an executable `opencode` into `folder` that says it is of this version; returns its path.
pub fn install(program: &Path, folder: &Path, version: &str) -> io::Result<PathBuf> {
    let opencode = folder.join("opencode");
    std::fs::create_dir_all(folder)?;
    // A link would be resolved by whoever looks for the real executable, and the version stands beside that.
    std::fs::hard_link(program, &opencode).or_else(|_| std::fs::copy(program, &opencode).map(drop))?;
    std::fs::write(folder.join("opencode.version"), version)?;
    Ok(opencode)
}

/// The program.
#[must_use]
pub fn run() -> ExitCode {
    let arguments: Vec<String> = std::env::args().collect();
    let words: Vec<&str> = arguments.iter().skip(1).map(String::as_str).collect();
    let outcome = match words.as_slice() {
        ["--version"] => version(&arguments),
        ["auth", "login"] => log_in(),
        ["acp"] => serve(),
        other => Err(anyhow::anyhow!("unknown arguments: {other:?}")),
    };
    outcome.map_or_else(
        |error| {
            let _ = writeln!(io::stderr(), "Error: {error:#}");
            ExitCode::FAILURE
        },
        |()| ExitCode::SUCCESS,
    )
}

fn version(arguments: &[String]) -> Result<()> {
    let beside = Path::new(arguments.first().context("no name")?).with_file_name("opencode.version");
    let version = std::fs::read_to_string(beside).unwrap_or_else(|_| VERSION.to_owned());
    Ok(writeln!(io::stdout(), "{version}")?)
}

fn log_in() -> Result<()> {
    write!(io::stderr(), "Key: ")?;
    let mut key = String::new();
    io::stdin().read_line(&mut key)?;
    let database = database()?;
    std::fs::create_dir_all(database.parent().context("no folder")?)?;
    Ok(std::fs::write(database, key.trim())?)
}

fn serve() -> Result<()> {
    let config = folder("XDG_CONFIG_HOME")?.join("opencode/opencode.json");
    let config: Value = serde_json::from_str(&std::fs::read_to_string(config)?).context("Configuration is invalid")?;
    for action in ACTIONS {
        if effect(&config["permissions"], action) == "ask" {
            bail!("{action} would ask");
        }
    }
    let is_logged_in = std::fs::read_to_string(database()?).is_ok_and(|key| !key.is_empty());
    let login = if is_logged_in { Login::ApiKey } else { Login::None };
    let profile = Profile { version: VERSION.to_owned(), login, ..Profile::default() };
    Ok(serve_in(&profile, folder("XDG_DATA_HOME")?.join("opencode"))?)
}

/// The last rule that fits; a question where none does.
fn effect<'v>(rules: &'v Value, action: &str) -> &'v str {
    let fits = |rule: &&Value| rule["action"] == action && rule["resource"] == "*";
    let last = rules.as_array().into_iter().flatten().rfind(fits);
    last.and_then(|rule| rule["effect"].as_str()).unwrap_or("ask")
}

fn database() -> Result<PathBuf> {
    Ok(folder("XDG_DATA_HOME")?.join("opencode/opencode.db"))
}

#[expect(clippy::disallowed_methods, reason = "this stands in for another program, with its own environment")]
fn folder(variable: &str) -> Result<PathBuf> {
    std::env::var_os(variable).map(PathBuf::from).with_context(|| format!("no {variable}"))
}
