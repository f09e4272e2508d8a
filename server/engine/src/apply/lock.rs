//! One writer per repository: whoever applies, undoes, repairs or discards holds its [`RepositoryLock`].
//!
//! The lock belongs to the repository, not to a checkout of it, and is found by the identity (device and inode) of the
//! common git directory, so that two spellings of one path mean one lock. The kernel drops it with its process.

use std::fs::{File, TryLockError};
use std::io::{self, Read as _, Seek as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use pactify_core::AbsPath;
use pactify_core::job::RepositoryRecord;

use super::error::ApplyError;

/// The right to write to a repository's checkouts, for as long as the value lives.
#[derive(Debug)]
pub struct RepositoryLock {
    store: AbsPath,
    repository: RepositoryRecord,
    identity: Identity,
    directory: PathBuf,
    _file: File,
}

/// Which directory it is, whatever it is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Identity {
    device: u64,
    inode: u64,
}

impl Identity {
    pub(super) fn of(path: &Path) -> io::Result<Self> {
        let metadata = std::fs::metadata(path)?;
        Ok(Self { device: metadata.dev(), inode: metadata.ino() })
    }

    fn key(self) -> String {
        format!("{:x}-{:x}", self.device, self.inode)
    }
}

impl RepositoryLock {
    /// Takes the lock, waiting up to `patience` for another holder. `store` is PACTIFY_HOME.
    ///
    /// # Errors
    /// [`ApplyError::Busy`] when the other holder did not let go in time; when the repository or the store is not
    /// there.
    pub fn acquire(store: &AbsPath, repository: &RepositoryRecord, patience: Duration) -> Result<Self, ApplyError> {
        let identity = Identity::of(repository.common_dir.as_path())
            .map_err(|source| ApplyError::Checkout { path: repository.common_dir.clone(), source })?;
        let directory = store.as_path().join("repos").join(identity.key());
        let path = directory.join("lock");
        let mut file = open(&path).map_err(|source| ApplyError::Store { path: path.clone(), source })?;
        let start = Instant::now();
        let mut pause = Duration::from_millis(2);
        loop {
            match file.try_lock() {
                Ok(()) => break,
                Err(TryLockError::Error(source)) => return Err(ApplyError::Store { path, source }),
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

    /// The repository that is locked.
    pub fn repository(&self) -> &RepositoryRecord {
        &self.repository
    }

    pub(super) fn store(&self) -> &AbsPath {
        &self.store
    }

    /// The store's directory for this repository. Its name may change when the machine restarts: nothing that has to
    /// be found again may lie there.
    pub(super) fn directory(&self) -> &Path {
        &self.directory
    }

    /// Whether `other` is a record of the same repository.
    pub(super) fn covers(&self, other: &RepositoryRecord) -> bool {
        other.common_dir == self.repository.common_dir
            || Identity::of(other.common_dir.as_path()).is_ok_and(|identity| identity == self.identity)
    }
}

/// Creates directories that only the person may use.
pub(super) fn private_directory(path: &Path) -> io::Result<()> {
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(path)
}

fn open(path: &Path) -> io::Result<File> {
    private_directory(path.parent().unwrap_or(Path::new("/")))?;
    let no_follow = rustix::fs::OFlags::NOFOLLOW.bits().cast_signed();
    let mut options = File::options();
    options.read(true).write(true).create(true).truncate(false).mode(0o600).custom_flags(no_follow).open(path)
}

fn sign(file: &mut File) -> io::Result<()> {
    file.set_len(0)?;
    file.rewind()?;
    write!(file, "{}", std::process::id())
}

fn holder(file: &mut File) -> Option<u32> {
    let mut text = String::new();
    file.rewind().ok()?;
    file.take(16).read_to_string(&mut text).ok()?;
    text.parse().ok()
}
