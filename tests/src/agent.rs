//! A coding agent that follows a script: it stands in for the codex CLI where the real one can't be made to do a thing.
//!
//! The program `scripted-agent` takes codex's command line as pactify uses it (`--version`, `login status`, `sandbox`,
//! `exec --json … [resume ID] -`) and prints the same JSON lines. What it *does* stands in the prompt, as a fenced
//! block of JSON lines that any amount of other text may surround; the last such block counts:
//!
//! ````text
//! ```agent
//! {"say": "I'll add the file."}
//! {"write": {"path": "hello.txt", "content": "hello\n"}}
//! {"run": "ls"}
//! ```
//! ````
//!
//! A turn of codex that says nothing ends with `Done.`, as every real one has an answer. Every step is described at
//! [`Step`]; [`prompt`] writes such a block. How the *program* behaves apart from a turn (its version, login, sandbox,
//! the steps for a prompt without a block) is its [`Profile`], a file beside the executable, as a filtered environment
//! doesn't take it away: [`install`] makes a `codex` with one.
//!
//! It has no model, no network and **no sandbox**: `-s read-only` refuses the file steps (as codex refuses a patch),
//! but a command runs as told and may write anywhere, and commands are orphaned by SIGTERM and SIGKILL, as codex leaves
//! them under `danger-full-access`. Nothing in it waits for ever: an hour is the end of any pause.
//!
//! As `scripted-agent acp` it speaks the Agent Client Protocol instead, and plays the same scripts; what only such an
//! agent does is [`Acp`].
//!
//! Read next: [`cli`] (the command line), `play` (one turn), `acp` (the other conversation).

mod acp;
pub mod cli;
mod escape;
mod files;
mod lines;
mod play;
mod step;
mod thread;

use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

pub use acp::serve_in;
pub use step::{Acp, Choice, Content, Edit, Escape, Escapee, Hex, Name, ScriptError, Step};

/// The version it claims to be: the one whose behaviour was measured.
pub const CODEX_VERSION: &str = "0.171.0";

/// How the program behaves apart from a turn.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct Profile {
    /// What `--version` says.
    pub version: String,
    /// How `login status` ends.
    pub login: Login,
    /// Does the preflight find a working sandbox?
    pub has_sandbox: bool,
    /// The steps of a turn whose prompt holds no block.
    pub steps: Vec<Step>,
}

/// The login that `login status` reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Login {
    /// `Logged in using ChatGPT`
    ChatGpt,
    /// `API key configured`
    ApiKey,
    /// `Not logged in`, exit code 1
    None,
}

impl Default for Profile {
    fn default() -> Self {
        Self { version: CODEX_VERSION.to_owned(), login: Login::ChatGpt, has_sandbox: true, steps: Vec::new() }
    }
}

/// The fenced block that makes the agent do these steps.
#[must_use]
pub fn prompt(steps: &[Step]) -> String {
    let lines: String = steps.iter().map(|step| format!("{}\n", step.to_json())).collect();
    format!("```agent\n{lines}```\n")
}

/// A brief with such a block; the steps are given as they are written, in a JSON list.
///
/// # Panics
/// When one of them is no step.
#[must_use]
pub fn brief(steps: &Value) -> String {
    let steps: Vec<Step> = serde_json::from_value(steps.clone()).expect("steps as the agent reads them");
    format!("Do as you are told.\n\n{}", prompt(&steps))
}

/// The step that creates or replaces a file, for [`brief`].
#[must_use]
pub fn write(path: &str, text: &str) -> Value {
    json!({"write": {"path": path, "content": text}})
}

/// Puts an executable `codex` with this profile into `folder`; returns its path.
pub fn install(agent: &Path, folder: &Path, profile: &Profile) -> io::Result<PathBuf> {
    let codex = folder.join("codex");
    std::fs::create_dir_all(folder)?;
    // A link would be resolved by whoever looks for the real executable, and the profile stands beside that.
    std::fs::hard_link(agent, &codex).or_else(|_| std::fs::copy(agent, &codex).map(drop))?;
    std::fs::write(profile_of(&codex), serde_json::to_string_pretty(profile)?)?;
    Ok(codex)
}

fn profile_of(program: &Path) -> PathBuf {
    let mut name = program.file_name().unwrap_or_default().to_owned();
    name.push(".profile.json");
    program.with_file_name(name)
}
