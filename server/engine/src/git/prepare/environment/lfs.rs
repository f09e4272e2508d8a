//! Contents in place of pointers, from the local store of the repository.
//!
//! A content is copied beside the tree first and hashed on the way; only the right one takes the pointer's place, by
//! one rename. The manifest, which is made later, then knows it as what the tree was populated with.

use std::fs::File;
use std::io::Write as _;
use std::ops::AddAssign;
use std::os::fd::{AsFd as _, OwnedFd};

use pactify_core::lfs::{LfsPolicy, Pointer};
use pactify_core::{AbsPath, ObjectId, RepoPath};
use rustix::fs::{AtFlags, CWD, FileType, Mode};

use super::super::notices::Notice;
use super::super::undo::remove;
use crate::git::Git;
use crate::git::capture::open_below;
use crate::git::command::Place;
use crate::git::config::{Rules, create_file};
use crate::git::error::GitError;
use crate::git::lfs::LocalStore;
use crate::git::listing::Listing;

/// A populated tree, with what decides about its files.
pub(super) struct Tree<'a> {
    pub(super) place: Place<'a>,
    pub(super) listing: &'a Listing,
    pub(super) rules: &'a Rules,
    pub(super) directory: &'a OwnedFd,
}

/// How many files in LFS there are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Filled {
    contents: u64,
    pointers: u64,
}

impl AddAssign for Filled {
    fn add_assign(&mut self, other: Self) {
        self.contents += other.contents;
        self.pointers += other.pointers;
    }
}

impl Git {
    /// Puts the contents of LFS files into `tree`, as far as `store` has them and `policy` wants them, and adds their
    /// paths to `rewritten`.
    pub(super) fn fill_lfs(
        &self,
        tree: &Tree<'_>,
        store: &LocalStore,
        policy: LfsPolicy,
        temporary: &AbsPath,
        rewritten: &mut Vec<RepoPath>,
    ) -> Result<Filled, GitError> {
        let mut filled = Filled::default();
        if !self.mentions_lfs(tree.place, tree.listing, tree.rules)? {
            return Ok(filled);
        }
        let files = tree.listing.entries.iter().filter(|(_, entry)| entry.mode.is_file());
        let files: Vec<&RepoPath> = files.map(|(path, _)| path).collect();
        let paths = self.in_lfs(tree.place, files.into_iter())?;
        let there = paths.iter().filter(|path| file_mode(tree.directory, path).is_some());
        let entries = there.filter_map(|path| Some((path, &tree.listing.get(path)?.object)));
        let pointers = self.pointers(tree.place, entries.collect::<Vec<(&RepoPath, &ObjectId)>>().into_iter())?;
        for (path, pointer) in &pointers {
            if policy == LfsPolicy::Contents && put(tree.directory, path, pointer, store, temporary)? {
                filled.contents += 1;
                rewritten.push((*path).clone());
            } else {
                filled.pointers += 1;
            }
        }
        Ok(filled)
    }
}

/// Puts one content in its pointer's place. False when the store does not have it.
fn put(
    directory: &OwnedFd,
    path: &RepoPath,
    pointer: &Pointer,
    store: &LocalStore,
    temporary: &AbsPath,
) -> Result<bool, GitError> {
    remove(temporary);
    create_file(temporary, b"")?;
    let placed = place(directory, path, pointer, store, temporary);
    if !matches!(placed, Ok(true)) {
        remove(temporary);
    }
    placed
}

fn place(
    directory: &OwnedFd,
    path: &RepoPath,
    pointer: &Pointer,
    store: &LocalStore,
    temporary: &AbsPath,
) -> Result<bool, GitError> {
    let failed = || GitError::io("write the content of", path.display());
    let Some(mode) = file_mode(directory, path) else { return Ok(false) };
    let file = File::options().write(true).open(temporary).map_err(failed())?;
    let found = store.copy(pointer, |piece| (&file).write_all(piece)).map_err(failed())?;
    if !found {
        return Ok(false);
    }
    let placed = rustix::fs::fchmod(&file, mode).and_then(|()| {
        let parent = open_below(directory, path.parent().as_ref())?;
        rustix::fs::renameat(CWD, temporary.as_path(), &parent, path.file_name())
    });
    placed.map(|()| true).map_err(|errno| failed()(errno.into()))
}

/// The mode of the file that the tree has at `path`.
fn file_mode(directory: &OwnedFd, path: &RepoPath) -> Option<Mode> {
    let parent = open_below(directory, path.parent().as_ref()).ok()?;
    let stat = rustix::fs::statat(parent.as_fd(), path.file_name(), AtFlags::SYMLINK_NOFOLLOW).ok()?;
    let is_file = FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile;
    is_file.then_some(Mode::from_raw_mode(stat.st_mode & 0o777))
}

/// What to say of LFS files that are pointers.
pub(super) fn notice(filled: &Filled, policy: LfsPolicy) -> Option<Notice> {
    let Filled { contents, pointers } = *filled;
    if pointers == 0 {
        return None;
    }
    let count = if contents == 0 { format!("{pointers}") } else { format!("{pointers} of {}", contents + pointers) };
    let why = match policy {
        LfsPolicy::Pointers => "as the configuration says",
        LfsPolicy::Contents => "because the repository's local store lacks their contents (`git lfs fetch` gets them)",
    };
    let text = format!("files in Git LFS (lfs) that are pointers in the job's tree, {why}: {count}");
    Some(Notice { id: "lfsPointers", text })
}
