//! The harnesses of this build, by name. One line each.

use super::{Harness, HarnessName, codex};

/// The harness used when a person names none.
pub fn default_name() -> HarnessName {
    codex::Codex.name()
}

/// Every harness, in the order in which people are shown them.
pub fn all() -> [&'static dyn Harness; 1] {
    [&codex::Codex]
}

/// The harness called `name`.
pub fn find(name: &HarnessName) -> Option<&'static dyn Harness> {
    all().into_iter().find(|harness| harness.name() == *name)
}
