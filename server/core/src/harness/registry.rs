//! The harnesses of this build, by name. One line each.

use std::sync::Arc;

use super::{Harness, HarnessName, codex};

/// The harness used when a person names none.
pub fn default_name() -> HarnessName {
    codex::Codex.name()
}

/// Every harness, in the order in which people are shown them.
pub fn all() -> Vec<Arc<dyn Harness>> {
    vec![Arc::new(codex::Codex)]
}

/// The harness called `name`.
pub fn find(name: &HarnessName) -> Option<Arc<dyn Harness>> {
    all().into_iter().find(|harness| harness.name() == *name)
}
