//! agy's settings: what makes the access mode, and the person's own on top where they do not touch it.

use serde_json::{Map, Value, json};
use toml::Table;

use super::super::settings::{names_a_secret, secret_in};
use crate::job::access::Access;
use crate::{Failure, FailureCode};

/// What a read-only job's agent may read files with; a permission of agy's, not a tool.
const READING: &str = "read_file(*)";

/// The commands of a read-only job, whole: agy compares whole lines, and knows no prefixes.
pub(super) const COMMANDS: &[&str] = &["git diff", "git log", "git status", "ls", "pwd"];

/// Keys that make an access mode what it is.
const LOCKED: &[&str] = &["hooks", "permissions", "toolPermission", "trustedWorkspaces"];

/// Whether `own`, the person's settings in `[harnesses.agy.config]`, are ones that a job may have.
pub(super) fn check(own: &Table) -> Result<(), Failure> {
    if let Some(key) = LOCKED.iter().find(|key| own.contains_key(**key)) {
        return Err(Failure::new(
            FailureCode::InvalidConfig,
            format!("[harnesses.agy.config] {key}: this makes an access mode what it is, and cannot be set"),
            "remove the key; a job's access is chosen for the job (`--read-only`)",
        ));
    }
    match secret_in(own, &|path, _| path.last().is_some_and(|key| names_a_secret(key))) {
        None => Ok(()),
        Some(key) => Err(Failure::new(
            FailureCode::InvalidConfig,
            format!("[harnesses.agy.config] {key}: a secret written here would be copied into every job's record"),
            "remove the key, and let a variable with the secret through (`environment`)",
        )),
    }
}

/// The text of `settings.json`.
pub(super) fn generate(own: &Table, access: Access) -> Result<String, Failure> {
    check(own)?;
    let mut all: Map<String, Value> = serde_json::to_value(own)
        .ok()
        .and_then(|value| if let Value::Object(map) = value { Some(map) } else { None })
        .unwrap_or_default();
    if access == Access::ReadOnly {
        let allowed = COMMANDS.iter().map(|command| format!("command({command})"));
        let allowed: Vec<_> = std::iter::once(READING.to_owned()).chain(allowed).collect();
        all.insert("permissions".to_owned(), json!({"allow": allowed}));
        // What is not allowed would have to be asked for, and without a terminal that is a no.
        all.insert("toolPermission".to_owned(), json!("request-review"));
    }
    Ok(Value::Object(all).to_string())
}
