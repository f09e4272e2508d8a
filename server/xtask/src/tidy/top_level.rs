//! The top level holds what a newcomer expects there, and nothing else.

use std::collections::BTreeSet;

use super::Problem;
use crate::repository::Tree;

/// Hidden entries may be there, too.
const ALLOWED: [&str; 15] = [
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "Cargo.lock",
    "Cargo.toml",
    "LICENSE-APACHE",
    "LICENSE-MIT",
    "README.md",
    "SECURITY.md",
    "clippy.toml",
    "deny.toml",
    "docs",
    "editors",
    "rustfmt.toml",
    "server",
    "tests",
];

pub(super) fn check(tree: &Tree) -> Vec<Problem> {
    let tops = tree.files.iter().map(|file| file.path.split('/').next().unwrap_or_default());
    let tops: BTreeSet<&str> = tops.filter(|top| !top.starts_with('.') && !ALLOWED.contains(top)).collect();
    tops.into_iter().map(|top| Problem::new(top, 0, "doesn't belong at the top level")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::found;

    #[test]
    fn strangers_are_named_once() {
        let files = [(".ci/run", ""), ("docs/a.md", ""), ("scripts/a", ""), ("scripts/b", ""), ("notes.txt", "")];
        let expected = ["notes.txt: doesn't belong at the top level", "scripts: doesn't belong at the top level"];
        assert_eq!(found(check, &files), expected);
    }
}
