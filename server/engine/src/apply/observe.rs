//! The checkout as it is now, at the paths of a change set: what `ChangeSet::check` decides on, and what people are
//! shown.
//!
//! Reads only. Takes no lock of git's and does not look at the index.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::os::fd::AsFd;

use pactify_core::RepoPath;
use pactify_core::change::plan::{Checkout, Grounds, Observed};
use pactify_core::change::{Change, ChangeSet};
use pactify_core::job::RepositoryRecord;
use rustix::io::Errno;

use super::contents::{self, Canonical};
use super::disk::At;
use super::error::{ApplyError, reason};
use super::look::{Seen, look, read_at_most};
use super::tree::{Blocked, Tree, names, open_directory};
use crate::hash::Algorithm;

/// Looks at every path of `set` in the checkout of `repository`; `grounds` say what may be there besides base and
/// result.
///
/// `unsaved` are the paths for which an editor holds unsaved text ([`super::unsaved::unsaved`]).
///
/// # Errors
/// When the checkout's top cannot be opened. Everything below it that cannot be looked at is part of the answer.
pub fn observe(
    repository: &RepositoryRecord,
    set: &ChangeSet,
    grounds: &Grounds,
    canonical: &dyn Canonical,
    unsaved: Vec<RepoPath>,
) -> Result<Checkout, ApplyError> {
    let tree = Tree::open(&repository.worktree)
        .map_err(|source| ApplyError::Checkout { path: repository.worktree.clone(), source })?;
    let observer = Observer { tree: &tree, set, grounds, canonical };
    let observed = set.changes.iter().map(|change| (change.path.clone(), observer.at(change))).collect();
    Ok(Checkout { observed, unsaved, neighbours: observer.neighbours() })
}

/// What one path of a checkout holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Current {
    /// No file and no link: nothing, a directory, or something special.
    Absent,
    /// A file over the limit; its size in bytes.
    TooLarge(u64),
    /// A file's bytes, or where a link leads to.
    Bytes(Vec<u8>),
}

/// Reads one path of the checkout of `repository` as it is, `limit` bytes of it at most. Follows no link.
///
/// # Errors
/// When something is there that cannot be read.
pub fn current(repository: &RepositoryRecord, path: &RepoPath, limit: u64) -> Result<Current, ApplyError> {
    let unreadable = |source: io::Error| {
        let path = path.clone();
        ApplyError::Unreadable { path, source }
    };
    let tree = Tree::open(&repository.worktree)
        .map_err(|source| ApplyError::Checkout { path: repository.worktree.clone(), source })?;
    let parent = match tree.parent_of(path) {
        Ok(parent) => parent,
        Err(Blocked::Missing | Blocked::ByEntry(_) | Blocked::BySpecial(..)) => return Ok(Current::Absent),
        Err(Blocked::Unreadable(_, error)) => return Err(unreadable(error.into())),
    };
    read_at_most(At { dir: parent.as_fd(), name: path.file_name() }, limit).map_err(unreadable)
}

struct Observer<'a> {
    tree: &'a Tree,
    set: &'a ChangeSet,
    grounds: &'a Grounds,
    canonical: &'a dyn Canonical,
}

impl Observer<'_> {
    fn at(&self, change: &Change) -> Observed {
        let path = &change.path;
        let parent = match self.tree.parent_of(path) {
            Ok(parent) => parent,
            Err(Blocked::Missing) => return Observed::Absent,
            Err(Blocked::ByEntry(entry)) => return Observed::Beneath(entry),
            Err(Blocked::BySpecial(at, what)) => return Observed::Obstacle(format!("{what} is at {at}")),
            Err(Blocked::Unreadable(at, error)) => return Observed::Unreadable(format!("{at}: {}", reason(error))),
        };
        let at = At { dir: parent.as_fd(), name: path.file_name() };
        match look(at, Algorithm::of(self.set.id.tree())) {
            Seen::Absent => Observed::Absent,
            Seen::Directory => Observed::Directory { foreign: self.foreign(path) },
            Seen::Special(what) => Observed::Obstacle(format!("{what} is there")),
            Seen::Unreadable(error) => Observed::Unreadable(reason(error)),
            Seen::Entry(found) => {
                let sides = contents::sides(change, self.grounds.goals.get(path));
                match contents::stored_form(path, at, &found, &sides, self.canonical) {
                    Ok(stored) => Observed::Entry { mode: stored.mode, object: stored.object },
                    Err(error) => Observed::Unreadable(error.to_string()),
                }
            }
        }
    }

    fn foreign(&self, directory: &RepoPath) -> Option<RepoPath> {
        let deleted =
            self.set.changes.iter().filter(|change| change.new.is_none()).map(|change| &change.path).collect();
        foreign(self.tree, directory, &deleted)
    }

    /// All names in the existing directories that an addition goes into or through.
    fn neighbours(&self) -> Vec<RepoPath> {
        let added = self.set.changes.iter().filter(|change| change.old.is_none());
        let directories: BTreeSet<Option<RepoPath>> =
            added.flat_map(|change| [None].into_iter().chain(change.path.ancestors().map(Some))).collect();
        let mut listed = BTreeMap::new();
        for directory in directories {
            if let Ok(names) = self.list(directory.as_ref()) {
                listed.insert(directory, names);
            }
        }
        let paths = listed
            .into_iter()
            .flat_map(|(directory, names)| names.into_iter().filter_map(move |name| below(directory.as_ref(), &name)));
        paths.collect()
    }

    fn list(&self, directory: Option<&RepoPath>) -> Result<Vec<Vec<u8>>, Errno> {
        match directory {
            None => names(self.tree.top()),
            Some(directory) => names(self.tree.directory(directory).map_err(|_| Errno::NOENT)?),
        }
    }
}

/// The first entry below a directory that is no directory and not among `leaving`.
pub(super) fn foreign(tree: &Tree, directory: &RepoPath, leaving: &BTreeSet<&RepoPath>) -> Option<RepoPath> {
    let mut waiting = vec![directory.clone()];
    while let Some(directory) = waiting.pop() {
        // What cannot be listed cannot be shown to be free of other things.
        let Ok(open) = tree.directory(&directory) else { return Some(directory) };
        let Ok(names) = names(&open) else { return Some(directory) };
        for name in names {
            let path = below(Some(&directory), &name)?;
            match open_directory(&open, &name) {
                Ok(_) => waiting.push(path),
                Err(_) if leaving.contains(&path) => {}
                Err(_) => return Some(path),
            }
        }
    }
    None
}

fn below(directory: Option<&RepoPath>, name: &[u8]) -> Option<RepoPath> {
    let mut bytes = directory.map(|directory| directory.as_bytes().to_vec()).unwrap_or_default();
    if !bytes.is_empty() {
        bytes.push(b'/');
    }
    bytes.extend_from_slice(name);
    RepoPath::new(bytes).ok()
}
