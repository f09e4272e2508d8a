//! agy's settings: what makes the access mode, and the person's own on top where they do not touch it.

use serde_json::{Value, json};
use toml::Table;

use super::super::settings::bounds::{Bounds, Object, On, lock};
use crate::Failure;
use crate::job::access::Access;

/// What a read-only job's agent may read files with; a permission of agy's, not a tool.
const READING: &str = "read_file(*)";

/// The commands of a read-only job, whole: agy compares whole lines, and knows no prefixes.
pub(super) const COMMANDS: &[&str] = &["git diff", "git log", "git status", "ls", "pwd"];

const MODE: &str = "the job's access mode decides it";

/// What the person's settings are held against.
const BOUNDS: Bounds = Bounds {
    harness: "agy",
    locks: &[
        lock(&["hooks"], On::EveryJob, MODE),
        lock(&["permissions"], On::EveryJob, MODE),
        lock(&["toolPermission"], On::EveryJob, MODE),
        lock(&["trustedWorkspaces"], On::EveryJob, MODE),
    ],
    tightens: |_, _| false,
    names_variable: |_, _| false,
    instead: "let a variable with it through (`environment`)",
};

/// The person's settings, if they are ones that a job of this access may have.
pub(super) fn allowed(wanted: &Table, access: Access) -> Result<Object, Failure> {
    BOUNDS.over(Object::new(), wanted, access)
}

/// The text of `settings.json`.
pub(super) fn generate(wanted: &Table, access: Access) -> Result<String, Failure> {
    let mut all = allowed(wanted, access)?;
    if access == Access::ReadOnly {
        let allowed = COMMANDS.iter().map(|command| format!("command({command})"));
        let allowed: Vec<_> = std::iter::once(READING.to_owned()).chain(allowed).collect();
        all.insert("permissions".to_owned(), json!({"allow": allowed}));
        // What is not allowed would have to be asked for, and without a terminal that is a no.
        all.insert("toolPermission".to_owned(), json!("request-review"));
    }
    Ok(Value::Object(all).to_string())
}
