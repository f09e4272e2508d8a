//! Removing what a job wrote: into the trash by one rename, from there entry by entry, following nothing.
//!
//! A job can put a link, a mount or another directory where its tree was (threat T-01). So a tree is taken only if it
//! is the very directory that was recorded when it was made, and everything works on open directories, never on paths
//! that could lead elsewhere by the time they are used. git's own `worktree remove` is never used: it emptied
//! directories of the person when we tried.
//!
//! Deciding what may go is the caller's work; unregistering a linked worktree is [`crate::git`]'s.

mod erase;
mod size;

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::PathBuf;

use pactify_core::display::neutral;
use pactify_core::job::event::TreeRecord;
use pactify_core::{AbsPath, Failure, FailureCode};
use rustix::fs::{AtFlags, Mode, OFlags, RenameFlags, Stat};
use rustix::io::Errno;

use crate::causes::with_causes;
use crate::disk::DIRECTORY;
use crate::store::Area;

pub(crate) use self::erase::erase;
pub use self::erase::{Left, Report};
pub use self::size::size;

/// The directory of the store in which everything waits to be unlinked.
#[derive(Debug)]
pub struct Trash {
    path: AbsPath,
    directory: OwnedFd,
}

/// What became of something that was to be taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Taken {
    /// It is in the trash.
    Moved,
    /// There was nothing at its place.
    AlreadyGone,
}

/// Why something was not removed. Nothing was touched.
#[derive(Debug, thiserror::Error)]
pub enum RemoveError {
    /// A tree that does not lie where trees lie.
    #[error("{path} is not a tree of the store {jobs}")]
    Elsewhere {
        /// The tree.
        path: AbsPath,
        /// The directory of all jobs.
        jobs: AbsPath,
    },
    /// Not the directory that was recorded.
    #[error("{path} is not the directory that was made for the job")]
    Replaced {
        /// The tree.
        path: AbsPath,
    },
    /// The kernel refused.
    #[error("cannot {action} {}", path.display())]
    Io {
        /// What was tried.
        action: &'static str,
        /// With what.
        path: PathBuf,
        /// The kernel's answer.
        source: io::Error,
    },
}

impl Trash {
    /// The trash of the store at `store`; made if it isn't there.
    ///
    /// # Errors
    /// When it cannot be made or opened.
    pub fn open(store: &AbsPath) -> Result<Self, RemoveError> {
        let path = store.join(Area::Trash.name());
        match rustix::fs::mkdir(path.as_path(), Mode::RWXU) {
            Ok(()) | Err(Errno::EXIST) => {}
            Err(errno) => return Err(refused("create", &path)(errno)),
        }
        let directory = rustix::fs::open(path.as_path(), DIRECTORY, Mode::empty()).map_err(refused("open", &path))?;
        Ok(Self { path, directory })
    }

    /// Moves a job's tree here, if it still is the directory that was recorded. `jobs` is the directory of all jobs.
    ///
    /// # Errors
    /// [`RemoveError::Elsewhere`], [`RemoveError::Replaced`], or the kernel's refusal; the tree is where it was.
    pub fn take_tree(&self, jobs: &AbsPath, tree: &TreeRecord) -> Result<Taken, RemoveError> {
        let elsewhere = || RemoveError::Elsewhere { path: tree.path.clone(), jobs: jobs.clone() };
        let below = tree.path.as_path().strip_prefix(jobs.as_path()).map_err(|_| elsewhere())?;
        let (Some(job), Some(name), true) = (below.parent(), below.file_name(), below.components().count() == 2) else {
            return Err(elsewhere());
        };
        // The store itself may be reached through a link of the person's; below it nothing may be one.
        let parent = rustix::fs::open(jobs.as_path(), DIRECTORY.difference(OFlags::NOFOLLOW), Mode::empty())
            .map_err(refused("open", jobs))?;
        let parent = match rustix::fs::openat(&parent, job, DIRECTORY, Mode::empty()) {
            Ok(parent) => parent,
            Err(Errno::NOENT) => return Ok(Taken::AlreadyGone),
            Err(errno) => return Err(refused("open", &tree.path)(errno)),
        };
        let replaced = || RemoveError::Replaced { path: tree.path.clone() };
        let is_recorded = |stat: &Stat| stat.st_dev == tree.device && stat.st_ino == tree.inode;
        let held = match rustix::fs::openat(&parent, name, DIRECTORY.union(OFlags::PATH), Mode::empty()) {
            Ok(held) => held,
            Err(Errno::NOENT) => return Ok(Taken::AlreadyGone),
            Err(Errno::NOTDIR | Errno::LOOP) => return Err(replaced()),
            Err(errno) => return Err(refused("look at", &tree.path)(errno)),
        };
        let look = || rustix::fs::fstat(&held).map_err(refused("look at", &tree.path));
        if !is_recorded(&look()?) {
            return Err(replaced());
        }
        let label = job.to_string_lossy();
        let moved = self.adopt(&parent, name, &label).map_err(refused("move to the trash", &tree.path))?;
        // Something may have taken its place between the look and the move; then it goes back.
        match rustix::fs::statat(&self.directory, &moved, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) if is_recorded(&stat) => Ok(Taken::Moved),
            // Another process emptied the trash already. A removed directory has no name left.
            Err(Errno::NOENT) if look()?.st_nlink == 0 => Ok(Taken::Moved),
            _ => {
                let back = rustix::fs::renameat_with(&self.directory, &moved, &parent, name, RenameFlags::NOREPLACE);
                back.map_err(refused("move back", &tree.path))?;
                Err(replaced())
            }
        }
    }

    /// Moves something else of ours here: a git directory, a capture, a record.
    ///
    /// # Errors
    /// The kernel's refusal; it is where it was.
    pub fn take(&self, path: &AbsPath) -> Result<Taken, RemoveError> {
        let (Some(parent), Some(name)) = (path.as_path().parent(), path.as_path().file_name()) else {
            return Err(refused("move to the trash", path)(Errno::BUSY));
        };
        let flags = DIRECTORY.difference(OFlags::NOFOLLOW);
        let parent = match rustix::fs::open(parent, flags, Mode::empty()) {
            Ok(parent) => parent,
            Err(Errno::NOENT) => return Ok(Taken::AlreadyGone),
            Err(errno) => return Err(refused("open the directory of", path)(errno)),
        };
        match self.adopt(&parent, name, &name.to_string_lossy()) {
            Ok(_) => Ok(Taken::Moved),
            Err(Errno::NOENT) => Ok(Taken::AlreadyGone),
            Err(errno) => Err(refused("move to the trash", path)(errno)),
        }
    }

    /// Unlinks everything that is here. Takes a while for large trees: not for a thread that someone waits for.
    ///
    /// # Errors
    /// When the trash cannot be read. What cannot be unlinked is in the report.
    pub fn empty(&self) -> Result<Report, RemoveError> {
        let mut report = Report::default();
        let names = erase::names(self.directory.as_fd()).map_err(refused("read", &self.path))?;
        for name in names {
            erase(self.directory.as_fd(), self.path.as_path(), &name, &mut report);
        }
        Ok(report)
    }

    /// Renames an entry of `parent` to a free name here. A directory moves as it is, whatever its own mode says, once
    /// its owner may write it.
    fn adopt(&self, parent: &OwnedFd, name: &std::ffi::OsStr, label: &str) -> Result<String, Errno> {
        erase::make_accessible(parent.as_fd(), name)?;
        for number in 0.. {
            let free = format!("{label}.{number}");
            match rustix::fs::renameat_with(parent, name, &self.directory, &free, RenameFlags::NOREPLACE) {
                Ok(()) => return Ok(free),
                Err(Errno::EXIST | Errno::NOTEMPTY) => {}
                Err(errno) => return Err(errno),
            }
        }
        Err(Errno::EXIST)
    }
}

impl From<RemoveError> for Failure {
    fn from(error: RemoveError) -> Self {
        let message = with_causes(&error);
        let next = match error {
            RemoveError::Elsewhere { .. } | RemoveError::Replaced { .. } => {
                "look at it yourself; pactify removes only the directory that it made"
            }
            RemoveError::Io { .. } => "repair what the message names, then discard the job again",
        };
        Self::new(FailureCode::StoreUnavailable, neutral(&message), next)
    }
}

fn refused(action: &'static str, path: &AbsPath) -> impl FnOnce(Errno) -> RemoveError {
    let path = path.as_path().to_owned();
    move |errno| RemoveError::Io { action, path, source: errno.into() }
}
