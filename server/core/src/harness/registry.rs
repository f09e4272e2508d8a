//! The harnesses of this build, by name. One line each.
//!
//! What a person added to them is in their settings ([`super::own`]).

use std::sync::Arc;

use super::{Harness, HarnessName, HarnessSettings, agy, codex, kimi, opencode};

/// The harness that jobs which name none would like best.
pub fn default_name() -> HarnessName {
    codex::Codex.name()
}

/// Every harness of this build, in the order in which people are shown them, and looked for where a job names none.
pub fn all() -> Vec<Arc<dyn Harness>> {
    vec![Arc::new(codex::Codex), Arc::new(kimi::Kimi), Arc::new(opencode::Opencode), Arc::new(agy::Agy)]
}

/// The harness of this build called `name`.
pub fn built_in(name: &HarnessName) -> Option<Arc<dyn Harness>> {
    all().into_iter().find(|harness| harness.name() == *name)
}

/// The harness called `name`: the one that its settings describe, else the one of this build.
///
/// A job's recorded settings win over a newer build that has a harness of the same name: the job means what it meant.
pub fn find(name: &HarnessName, settings: &HarnessSettings) -> Option<Arc<dyn Harness>> {
    match &settings.own {
        Some(own) => Some(own.harness(name)),
        None => built_in(name),
    }
}
