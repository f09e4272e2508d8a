//! Which new files count: the ignore rules of the base and of the person, never the job's.
//!
//! Precedence is git's: the rules nearest to the file first, within them the last; then `info/exclude`, then the
//! person's own file. A tracked file is never ignored; asking only about new ones is the caller's work.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use ::ignore::Match;
use ::ignore::gitignore::{Gitignore, GitignoreBuilder};
use pactify_core::RepoPath;

/// The rules of one base.
#[derive(Debug)]
pub(super) struct Ignores {
    /// By the directory that holds them; the empty name is the top.
    directories: BTreeMap<Vec<u8>, Gitignore>,
    /// For the whole tree, in falling precedence.
    general: [Gitignore; 2],
    fold_case: bool,
}

/// Patterns of one file, for all of a tree.
#[derive(Debug)]
pub(super) struct Patterns(Gitignore);

impl Patterns {
    pub(super) fn new(text: &str, fold_case: bool) -> Self {
        Self(matcher(text, fold_case))
    }

    /// Whether they cover `path` itself. A covered directory covers what is below it; the caller remembers that.
    pub(super) fn cover(&self, path: &RepoPath, is_directory: bool) -> bool {
        self.0.matched(Path::new(OsStr::from_bytes(path.as_bytes())), is_directory).is_ignore()
    }
}

impl Ignores {
    pub(super) fn new(info_exclude: &str, global: &str, fold_case: bool) -> Self {
        let general = [matcher(info_exclude, fold_case), matcher(global, fold_case)];
        Self { directories: BTreeMap::new(), general, fold_case }
    }

    /// Adds the content of the `.gitignore` at `path`.
    pub(super) fn add(&mut self, path: &RepoPath, text: &str) {
        let directory = path.parent().map(|parent| parent.as_bytes().to_vec()).unwrap_or_default();
        self.directories.insert(directory, matcher(text, self.fold_case));
    }

    /// Whether the rules cover `path` itself. A covered directory covers what is below it; the caller remembers that.
    pub(super) fn covers(&self, path: &RepoPath, is_directory: bool) -> bool {
        let bytes = path.as_bytes();
        let slashes = bytes.iter().enumerate().rev().filter(|(_, byte)| **byte == b'/').map(|(at, _)| at);
        let nearest_first = slashes.map(|at| (&bytes[..at], &bytes[at + 1..])).chain([(&b""[..], bytes)]);
        let own = nearest_first.filter_map(|(directory, rest)| Some((self.directories.get(directory)?, rest)));
        let general = self.general.iter().map(|matcher| (matcher, bytes));
        for (matcher, rest) in own.chain(general) {
            match matcher.matched(Path::new(OsStr::from_bytes(rest)), is_directory) {
                Match::Ignore(_) => return true,
                Match::Whitelist(_) => return false,
                Match::None => {}
            }
        }
        false
    }
}

fn matcher(text: &str, fold_case: bool) -> Gitignore {
    let mut builder = GitignoreBuilder::new(".");
    // The builder's only failure is a glob it cannot compile; git ignores such lines as well.
    let _ = builder.case_insensitive(fold_case);
    for line in text.trim_start_matches('\u{feff}').split('\n') {
        let _ = builder.add_line(None, line.strip_suffix('\r').unwrap_or(line));
    }
    builder.build().unwrap_or_else(|_| Gitignore::empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_rule_and_within_a_file_the_last_one_decides() {
        let mut ignores = Ignores::new("*.tmp\nlocal/\n", "*.swp\n", false);
        ignores.add(&RepoPath::new(".gitignore").unwrap(), "*.log\r\n!keep.log\n/build/\ntarget\n");
        ignores.add(&RepoPath::new("sub/.gitignore").unwrap(), "!*.log\n!*.tmp\nonly-here\n");
        for (path, is_directory, expected) in [
            ("a.log", false, true),
            ("deep/er/a.log", false, true),
            ("keep.log", false, false),
            ("sub/a.log", false, false),
            ("sub/x.tmp", false, false),
            ("x.tmp", false, true),
            ("x.swp", false, true),
            ("build", true, true),
            ("build", false, false),
            ("sub/build", true, false),
            ("sub/target", true, true),
            ("sub/only-here", false, true),
            ("only-here", false, false),
            ("local", true, true),
            ("src/main.rs", false, false),
        ] {
            assert_eq!(ignores.covers(&RepoPath::new(path).unwrap(), is_directory), expected, "{path}");
        }
    }
}
