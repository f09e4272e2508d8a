//! The staging directory of one apply: where new contents wait and old ones are kept.
//!
//! An exchange needs both sides on one file system. The checkout's git directory usually is on it and is out of
//! everybody's sight: `<git dir>/pactify/stage-<store>/<apply>/`. Where it is not (a linked worktree on another disk, a
//! separate git directory), the directory is `.pactify-stage/` at the checkout's top, with an ignore file of its own
//! that hides it from git; [`super::Applied`] says so. `<store>` keeps two PACTIFY_HOMEs out of each other's way.

use std::os::fd::{AsFd, OwnedFd};
use std::path::PathBuf;

use pactify_core::AbsPath;
use pactify_core::job::RepositoryRecord;
use rustix::fs::{CWD, Mode, OFlags};
use rustix::io::{Errno, Result};
use sha2::Digest as _;

use super::disk::{At, Disk};
use super::error::ApplyError;
use super::intent::{StageHome, Transaction};
use super::tree::{Tree, names, open_directory};
use crate::hash::hex;

const IN_GIT_DIRECTORY: &str = "pactify";
const IN_CHECKOUT: &str = ".pactify-stage";
const IGNORE_FILE: &[u8] = b".gitignore";

/// All staging directories that one store has for one checkout.
#[derive(Debug)]
pub(super) struct StageRoot {
    anchor: OwnedFd,
    anchor_path: PathBuf,
    home: StageHome,
    store_name: String,
}

/// The staging directory of one apply.
#[derive(Debug)]
pub(super) struct Stage {
    directory: OwnedFd,
    path: PathBuf,
}

impl StageRoot {
    /// The root in the given home.
    pub(super) fn open(repository: &RepositoryRecord, store: &AbsPath, home: StageHome) -> Result<Self> {
        let anchor_path = match home {
            StageHome::GitDirectory => repository.git_dir.as_path(),
            StageHome::Checkout => repository.worktree.as_path(),
        };
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let anchor = rustix::fs::openat(CWD, anchor_path, flags, Mode::empty())?;
        let digest = sha2::Sha256::digest(store.as_path().as_os_str().as_encoded_bytes());
        let store_name = format!("stage-{}", hex(&digest[..6]));
        Ok(Self { anchor, anchor_path: anchor_path.to_owned(), home, store_name })
    }

    /// The root in the git directory, or at the checkout's top where that is another file system.
    pub(super) fn choose(repository: &RepositoryRecord, store: &AbsPath, tree: &Tree) -> Result<Self> {
        let root = Self::open(repository, store, StageHome::GitDirectory)?;
        if rustix::fs::fstat(&root.anchor)?.st_dev == rustix::fs::fstat(tree.top())?.st_dev {
            return Ok(root);
        }
        Self::open(repository, store, StageHome::Checkout)
    }

    pub(super) fn home(&self) -> StageHome {
        self.home
    }

    /// What a failed step here means. Where something else stands in the place of one of its directories, that is
    /// named.
    pub(super) fn refusal(&self, error: Errno) -> ApplyError {
        let top = self.anchor_path.join(self.top_name());
        let is_taken = |path: &PathBuf| path.symlink_metadata().is_ok_and(|found| !found.is_dir());
        match [&top, &self.path()].into_iter().find(|path| is_taken(path)) {
            Some(path) => ApplyError::PlaceTaken { path: path.clone() },
            None => ApplyError::Store { path: self.path(), source: error.into() },
        }
    }

    /// The staging directory of a transaction, which must be new when `fresh`.
    pub(super) fn create(&self, transaction: &Transaction, fresh: bool, disk: &Disk) -> Result<Stage> {
        let top = self.enter(&self.anchor, self.top_name().as_bytes(), self.top_bits(), disk)?;
        if self.home == StageHome::Checkout {
            hide_from_git(&top, disk)?;
        }
        let root = self.enter(&top, self.store_name.as_bytes(), 0o700, disk)?;
        let name = transaction.to_string();
        let at = At { dir: root.as_fd(), name: name.as_bytes() };
        match disk.make_directory(at, 0o700) {
            Err(Errno::EXIST) if !fresh => {}
            made => made?,
        }
        disk.sync(&root)?;
        let directory = open_directory(&root, name.as_bytes())?;
        Ok(Stage { directory, path: self.path().join(name) })
    }

    /// The staging directory that a transaction has; `None` when it is gone.
    pub(super) fn kept(&self, transaction: &Transaction) -> Result<Option<Stage>> {
        let Some(root) = self.existing()? else { return Ok(None) };
        let name = transaction.to_string();
        match open_directory(&root, name.as_bytes()) {
            Ok(directory) => Ok(Some(Stage { directory, path: self.path().join(name) })),
            Err(Errno::NOENT) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// The transactions that have a staging directory here.
    pub(super) fn list(&self) -> Result<Vec<Transaction>> {
        let Some(root) = self.existing()? else { return Ok(vec![]) };
        let names = names(&root)?;
        Ok(names.iter().filter_map(|name| std::str::from_utf8(name).ok()?.parse().ok()).collect())
    }

    /// Deletes the staging directory of a transaction, and the directories around it when nothing else is in them.
    pub(super) fn remove(&self, transaction: &Transaction, disk: &Disk) -> Result<()> {
        if let Some(root) = self.existing()? {
            let name = transaction.to_string();
            match open_directory(&root, name.as_bytes()) {
                Ok(stage) => {
                    empty(&stage, disk)?;
                    disk.remove_directory(At { dir: root.as_fd(), name: name.as_bytes() })?;
                }
                Err(Errno::NOENT) => {}
                Err(error) => return Err(error),
            }
        }
        self.remove_if_empty(disk)
    }

    /// Deletes the root when nothing is in it.
    pub(super) fn remove_if_empty(&self, disk: &Disk) -> Result<()> {
        let top_at = At { dir: self.anchor.as_fd(), name: self.top_name().as_bytes() };
        let top = match open_directory(&self.anchor, top_at.name) {
            Ok(top) => top,
            Err(Errno::NOENT) => return Ok(()),
            Err(error) => return Err(error),
        };
        remove_empty(At { dir: top.as_fd(), name: self.store_name.as_bytes() }, disk)?;
        if names(&top)?.iter().all(|name| name == IGNORE_FILE) {
            empty(&top, disk)?;
            remove_empty(top_at, disk)?;
        }
        Ok(())
    }

    fn existing(&self) -> Result<Option<OwnedFd>> {
        let top = open_directory(&self.anchor, self.top_name().as_bytes());
        match top.and_then(|top| open_directory(top, self.store_name.as_bytes())) {
            Ok(root) => Ok(Some(root)),
            Err(Errno::NOENT) => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn enter(&self, above: &OwnedFd, name: &[u8], bits: u32, disk: &Disk) -> Result<OwnedFd> {
        match disk.make_directory(At { dir: above.as_fd(), name }, bits) {
            Ok(()) => disk.sync(above)?,
            Err(Errno::EXIST) => {}
            Err(error) => return Err(error),
        }
        open_directory(above, name)
    }

    fn path(&self) -> PathBuf {
        self.anchor_path.join(self.top_name()).join(&self.store_name)
    }

    fn top_name(&self) -> &'static str {
        match self.home {
            StageHome::GitDirectory => IN_GIT_DIRECTORY,
            StageHome::Checkout => IN_CHECKOUT,
        }
    }

    /// In a repository that several people share, each needs a directory of their own below this one.
    fn top_bits(&self) -> u32 {
        match self.home {
            StageHome::GitDirectory => 0o777,
            StageHome::Checkout => 0o700,
        }
    }
}

impl Stage {
    pub(super) fn directory(&self) -> &OwnedFd {
        &self.directory
    }

    pub(super) fn path(&self) -> &PathBuf {
        &self.path
    }

    pub(super) fn at<'a>(&'a self, slot: &'a str) -> At<'a> {
        At { dir: self.directory.as_fd(), name: slot.as_bytes() }
    }
}

/// The slot in which step `n`'s new content waits; after an exchange it holds the old one.
pub(super) fn new_slot(n: usize) -> String {
    format!("{n}.new")
}

/// The slot that a deleted path's old content is moved to; a changed one's where the file system cannot exchange.
pub(super) fn old_slot(n: usize) -> String {
    format!("{n}.old")
}

fn hide_from_git(top: &OwnedFd, disk: &Disk) -> Result<()> {
    match disk.create(At { dir: top.as_fd(), name: IGNORE_FILE }) {
        Ok(file) => disk.write_all(&file, b"*\n"),
        Err(Errno::EXIST) => Ok(()),
        Err(error) => Err(error),
    }
}

/// Unlinks everything in a directory of ours. Directories occur in it only when a race moved one there, and hold
/// what somebody else put into them: they stay.
fn empty(directory: &OwnedFd, disk: &Disk) -> Result<()> {
    for name in names(directory)? {
        match disk.unlink(At { dir: directory.as_fd(), name: &name }) {
            Ok(()) | Err(Errno::NOENT | Errno::ISDIR) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

fn remove_empty(at: At<'_>, disk: &Disk) -> Result<()> {
    match disk.remove_directory(at) {
        Ok(()) | Err(Errno::NOENT | Errno::NOTEMPTY | Errno::EXIST) => Ok(()),
        Err(error) => Err(error),
    }
}
