//! What runs a harness that is a script. Finding it is the engine's work.

/// A program that runs others, such as Node.js.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interpreter {
    /// What people call it.
    pub name: &'static str,
    /// Its program's name on the search path. It answers `--version` with its version.
    pub program: &'static str,
    /// The oldest version that will do: major, minor, patch.
    pub at_least: [u64; 3],
}

impl Interpreter {
    /// Whether the version that it reports will do.
    pub fn accepts(&self, version: &str) -> bool {
        let numbers = version.trim().trim_start_matches('v').split(['-', '+']).next().unwrap_or_default();
        let mut parts = numbers.split('.').map(|part| part.parse::<u64>().ok());
        let mut next = || parts.next().flatten();
        matches!((next(), next(), next()), (Some(major), Some(minor), Some(patch))
            if [major, minor, patch] >= self.at_least)
    }

    /// The oldest version that will do, in words.
    pub fn wanted(&self) -> String {
        let [major, minor, patch] = self.at_least;
        format!("{} {major}.{minor}.{patch} or newer", self.name)
    }
}
