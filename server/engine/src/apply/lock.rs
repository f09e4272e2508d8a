//! One writer per repository: whoever applies, undoes, repairs or discards holds its [`RepositoryLock`].
//!
//! The lock belongs to the repository, not to a checkout of it, and is found by the identity (device and inode) of the
//! common git directory, so that two spellings of one path mean one lock. The kernel drops it with its process.

use std::fs::{File, TryLockError};
use std::io::{self, Read as _, Seek as _, Write as _};
use std::path::Path;
use std::time::{Duration, Instant};

use pactify_core::job::RepositoryRecord;
use rustix::fs::Mode;

use super::error::ApplyError;
use crate::disk::{Dir, DiskError, FileId, Open};
use crate::store::{Area, Store, StoreError};

const LOCK: &str = "lock";

/// The right to write to a repository's checkouts, for as long as the value lives.
#[derive(Debug)]
pub struct RepositoryLock {
    store: Store,
    repository: RepositoryRecord,
    identity: FileId,
    directory: Dir,
    _file: File,
}

/// Holds off whoever would take the lock, but no other probe.
pub(super) struct Probe {
    _file: File,
}

impl RepositoryLock {
    /// Takes the lock, waiting up to `patience` for another holder.
    ///
    /// # Errors
    /// [`ApplyError::Busy`] when the other holder did not let go in time; when the repository or the store is not
    /// there.
    pub fn acquire(store: &Store, repository: &RepositoryRecord, patience: Duration) -> Result<Self, ApplyError> {
        let (identity, directory) = place_of(store, repository)?;
        let mut file = open(&directory).map_err(StoreError::from)?;
        let start = Instant::now();
        let mut pause = Duration::from_millis(2);
        loop {
            match file.try_lock() {
                Ok(()) => break,
                Err(TryLockError::Error(source)) => return Err(refused(&directory, source)),
                Err(TryLockError::WouldBlock) if start.elapsed() >= patience => {
                    let (repository, holder) = (repository.worktree.clone(), holder(&mut file));
                    return Err(ApplyError::Busy { repository, holder, waited: patience });
                }
                Err(TryLockError::WouldBlock) => {
                    // The kernel has no wait with a deadline for this kind of lock.
                    std::thread::sleep(pause.min(patience.saturating_sub(start.elapsed())));
                    pause = (pause * 2).min(Duration::from_millis(50));
                }
            }
        }
        // Only for the message of whoever has to wait.
        let _ = sign(&mut file);
        Ok(Self { store: store.clone(), repository: repository.clone(), identity, directory, _file: file })
    }

    /// Makes sure that nobody holds the lock, as long as the value lives; nothing where somebody does. Never waits, and
    /// is in no other probe's way.
    pub(super) fn probe(store: &Store, repository: &RepositoryRecord) -> Result<Option<Probe>, ApplyError> {
        let (_, directory) = place_of(store, repository)?;
        let file = open(&directory).map_err(StoreError::from)?;
        match file.try_lock_shared() {
            Ok(()) => Ok(Some(Probe { _file: file })),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(source)) => Err(refused(&directory, source)),
        }
    }

    /// The repository that is locked.
    pub fn repository(&self) -> &RepositoryRecord {
        &self.repository
    }

    pub(super) fn store(&self) -> &Store {
        &self.store
    }

    /// The store's directory for this repository. Its name may change when the machine restarts: nothing that has to
    /// be found again may lie there.
    pub(super) fn directory(&self) -> &Dir {
        &self.directory
    }

    /// Whether `other` is a record of the same repository.
    pub(super) fn covers(&self, other: &RepositoryRecord) -> bool {
        other.common_dir == self.repository.common_dir
            || identity_of(other.common_dir.as_path()).is_ok_and(|identity| identity == self.identity)
    }
}

/// Which directory a path leads to, whatever it is called.
pub(super) fn identity_of(path: &Path) -> io::Result<FileId> {
    let flags = rustix::fs::OFlags::PATH | rustix::fs::OFlags::DIRECTORY | rustix::fs::OFlags::CLOEXEC;
    FileId::of_fd(rustix::fs::openat(rustix::fs::CWD, path, flags, Mode::empty())?)
}

/// Which repository it is, and the store's directory for it.
fn place_of(store: &Store, repository: &RepositoryRecord) -> Result<(FileId, Dir), ApplyError> {
    let identity = identity_of(repository.common_dir.as_path())
        .map_err(|source| ApplyError::Checkout { path: repository.common_dir.clone(), source })?;
    let key = format!("{:x}-{:x}", identity.device, identity.inode);
    let directory = store.area(Area::Repositories)?.ensure_dir(&key).map_err(StoreError::from)?;
    Ok((identity, directory))
}

fn refused(directory: &Dir, source: io::Error) -> ApplyError {
    ApplyError::Store { path: directory.path().join(LOCK).as_path().to_owned(), source }
}

fn open(directory: &Dir) -> Result<File, DiskError> {
    match directory.file(LOCK, Open::CreateNew) {
        Err(DiskError::Exists { .. }) => directory.file(LOCK, Open::Append),
        made => made,
    }
}

fn sign(file: &mut File) -> io::Result<()> {
    file.set_len(0)?;
    write!(file, "{}", std::process::id())
}

fn holder(file: &mut File) -> Option<u32> {
    let mut text = String::new();
    file.rewind().ok()?;
    file.take(16).read_to_string(&mut text).ok()?;
    text.parse().ok()
}
