//! What a tree holds, by path: the base's side of a capture.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;

use pactify_core::change::EntryMode;
use pactify_core::{ObjectId, RepoPath};

use super::Git;
use super::command::{Call, Place, Verb, unexpected};
use super::error::GitError;

/// One entry of a tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Listed {
    pub(super) mode: EntryMode,
    pub(super) object: ObjectId,
}

/// Every entry of a tree, at any depth, and the directories that lead to them.
#[derive(Debug, Default)]
pub(super) struct Listing {
    pub(super) entries: BTreeMap<RepoPath, Listed>,
    directories: HashSet<RepoPath>,
}

impl Listing {
    pub(super) fn get(&self, path: &RepoPath) -> Option<&Listed> {
        self.entries.get(path)
    }

    /// Without the entry at `path`, if there is one.
    pub(super) fn forget(&mut self, path: &RepoPath) {
        self.entries.remove(path);
    }

    /// Whether something lies below `path`.
    pub(super) fn is_directory(&self, path: &RepoPath) -> bool {
        self.directories.contains(path)
    }

    /// The regular files called `name`, in any directory.
    pub(super) fn files_called(&self, name: &'static [u8]) -> impl Iterator<Item = (&RepoPath, &Listed)> {
        self.entries.iter().filter(move |(path, entry)| path.file_name() == name && entry.mode.is_file())
    }

    pub(super) fn insert(&mut self, path: RepoPath, entry: Listed) {
        let mut parent = path.parent();
        while let Some(directory) = parent {
            parent = directory.parent();
            if !self.directories.insert(directory) {
                break;
            }
        }
        self.entries.insert(path, entry);
    }
}

impl Git {
    /// Lists the tree `tree`.
    pub(super) fn list(&self, place: Place<'_>, tree: &ObjectId) -> Result<Listing, GitError> {
        self.listing(&Call::new(Verb::LsTree, place).args(["-r", "-z", "--full-tree", tree.as_str()]))
    }

    /// Lists those of `paths` that the tree `tree` has. For few paths.
    pub(super) fn list_only(
        &self,
        place: Place<'_>,
        tree: &ObjectId,
        paths: &BTreeSet<RepoPath>,
    ) -> Result<Listing, GitError> {
        let call = Call::new(Verb::LsTree, place).args(["-z", "--full-tree", tree.as_str(), "--"]);
        self.listing(&call.args(paths.iter().map(|path| OsStr::from_bytes(path.as_bytes()))))
    }

    fn listing(&self, call: &Call<'_>) -> Result<Listing, GitError> {
        let answer = self.run(call)?;
        let mut listing = Listing::default();
        for line in answer.split(|byte| *byte == 0).filter(|line| !line.is_empty()) {
            let (path, entry) = parse(line).ok_or_else(|| unexpected(call, line))?;
            listing.insert(path, entry);
        }
        Ok(listing)
    }
}

/// `<mode> <type> <object>\t<path>`
fn parse(line: &[u8]) -> Option<(RepoPath, Listed)> {
    let tab = line.iter().position(|byte| *byte == b'\t')?;
    let mut words = std::str::from_utf8(&line[..tab]).ok()?.split(' ');
    let mode = EntryMode::from_octal(words.next()?)?;
    let object = words.nth(1)?.parse().ok()?;
    Some((RepoPath::new(&line[tab + 1..]).ok()?, Listed { mode, object }))
}
