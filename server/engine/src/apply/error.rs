//! Why an apply, or the repair of one, did not happen.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use pactify_core::failure::{Conflict, ConflictKind};
use pactify_core::{AbsPath, Failure, FailureCode, ObjectId, RepoPath};
use rustix::io::Errno;

use super::ApplyId;
use super::commit::Stopped;
use crate::causes::with_causes;
use crate::store::StoreError;

/// Why an apply did not happen. After every variant but [`ApplyError::NotRolledBack`] the checkout is as it was.
#[derive(Debug, thiserror::Error)]
pub enum ApplyError {
    /// Paths stand in the way; all that were found.
    #[error("{}", summary(.0))]
    Conflicts(Vec<Conflict>),
    /// The checkout is not as the apply left it that was to be taken back; all paths at which it isn't.
    #[error("{}", summary(.0))]
    NotAsLeft(Vec<Conflict>),
    /// There is nothing to take this apply back with.
    #[error("what the apply {0} replaced is not kept any more")]
    NotKept(ApplyId),
    /// The disk is full.
    #[error("no space is left for the new contents")]
    NoSpace(Vec<Conflict>),
    /// The checkout cannot be opened.
    #[error("the checkout {path} cannot be opened")]
    Checkout {
        /// Its top.
        path: AbsPath,
        /// Why.
        source: io::Error,
    },
    /// What the checkout has at a path cannot be looked at.
    #[error("{path} cannot be read in the checkout")]
    Unreadable {
        /// The path.
        path: RepoPath,
        /// Why.
        source: io::Error,
    },
    /// Another process writes to the repository.
    #[error("{repository} is being written to by {}; waited {} s for it", holder_text(*.holder), .waited.as_secs())]
    Busy {
        /// The repository's checkout.
        repository: AbsPath,
        /// The process that holds the lock, if it said so.
        holder: Option<u32>,
        /// How long this one waited.
        waited: Duration,
    },
    /// An earlier apply was interrupted and is not repaired yet.
    #[error("the apply {0} was interrupted and has to be rolled back first")]
    Pending(ApplyId),
    /// There is a record of an apply of this name already.
    #[error("there is an apply {0} already")]
    Exists(ApplyId),
    /// The store is out of reach.
    #[error(transparent)]
    Unavailable(#[from] StoreError),
    /// A file or directory of the store, or the staging directory, cannot be used.
    #[error("{} cannot be used", .path.display())]
    Store {
        /// Which.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// Something else stands where the contents from before an apply are kept.
    #[error("{} is no directory, and what an apply replaces is kept there", .path.display())]
    PlaceTaken {
        /// Where.
        path: PathBuf,
    },
    /// A record does not say what it should.
    #[error("the record {} is damaged: {why}", .path.display())]
    Damaged {
        /// Which.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// A record of a newer version.
    #[error("the record {} has format {format}, which is newer than this version of pactify", .path.display())]
    Newer {
        /// Which.
        path: PathBuf,
        /// Its format.
        format: u32,
    },
    /// A captured content is gone or not what it should be.
    #[error("the captured content of {path} ({object}) cannot be read")]
    Contents {
        /// Where it would go.
        path: RepoPath,
        /// Its id.
        object: ObjectId,
        /// Why.
        source: io::Error,
    },
    /// The apply failed half-way and its steps could not all be taken back. The next writer tries again.
    #[error("the apply {apply} failed and could not be rolled back yet")]
    NotRolledBack {
        /// Which.
        apply: ApplyId,
        /// What stopped it.
        conflicts: Vec<Conflict>,
        /// What stopped the rollback.
        source: io::Error,
    },
}

impl ApplyError {
    /// The same refusal, naming more paths.
    pub(super) fn and(mut self, more: impl IntoIterator<Item = Conflict>) -> Self {
        if let Self::Conflicts(conflicts) | Self::NotAsLeft(conflicts) | Self::NoSpace(conflicts) = &mut self {
            conflicts.extend(more);
        }
        self
    }

    /// The same refusal, of taking an apply back.
    pub(super) fn of_undo(self) -> Self {
        match self {
            Self::Conflicts(conflicts) => Self::NotAsLeft(conflicts),
            error => error,
        }
    }

    /// The paths in the way.
    pub fn into_conflicts(self) -> Vec<Conflict> {
        match self {
            Self::Conflicts(conflicts)
            | Self::NotAsLeft(conflicts)
            | Self::NoSpace(conflicts)
            | Self::NotRolledBack { conflicts, .. } => conflicts,
            _ => vec![],
        }
    }
}

impl From<Stopped> for ApplyError {
    fn from(stopped: Stopped) -> Self {
        let conflicts = vec![stopped.conflict];
        if stopped.full { Self::NoSpace(conflicts) } else { Self::Conflicts(conflicts) }
    }
}

impl From<ApplyError> for Failure {
    fn from(error: ApplyError) -> Self {
        let message = with_causes(&error);
        let retry = "close what uses the path, or free it, and apply again";
        match error {
            ApplyError::Conflicts(conflicts) => {
                let (code, next) = code_of(&conflicts);
                Self::new(code, message, next).with_conflicts(conflicts)
            }
            ApplyError::NotAsLeft(conflicts) => {
                let unsaved = conflicts.iter().all(|conflict| conflict.kind == ConflictKind::UnsavedText);
                let (code, next) = if unsaved {
                    (FailureCode::UnsavedBuffers, "give the unsaved text up or save it elsewhere, then undo again")
                } else {
                    let next =
                        "bring the paths named back to what was applied (undo a later apply first), or keep them";
                    (FailureCode::ApplyConflict, next)
                };
                Self::new(code, message, next).with_conflicts(conflicts)
            }
            ApplyError::NotKept(_) => Self::new(
                FailureCode::WrongState,
                message,
                "take the old contents from git, or from your editor's history",
            ),
            ApplyError::NoSpace(conflicts) => {
                Self::new(FailureCode::NoSpace, message, "free some space and try again").with_conflicts(conflicts)
            }
            ApplyError::Checkout { .. } => {
                Self::new(FailureCode::NoRepository, message, "put the checkout back where it was, and apply again")
            }
            ApplyError::Unreadable { .. } => {
                Self::new(FailureCode::PathRefused, message, "make it readable for you, and look again")
            }
            ApplyError::Busy { .. } => {
                Self::new(FailureCode::StoreBusy, message, "wait for the other command, and try again")
            }
            ApplyError::Pending(_) | ApplyError::NotRolledBack { .. } => {
                Self::new(FailureCode::WrongState, message, "run the command again; it repairs the checkout first")
            }
            ApplyError::Exists(_) => Self::new(FailureCode::StoreBusy, message, "look at the job again, then apply"),
            ApplyError::Unavailable(error) => error.into(),
            ApplyError::PlaceTaken { path } => {
                let next = format!("see what {} is, remove it, and run the command again", path.display());
                Self::new(FailureCode::StoreUnavailable, message, next)
            }
            ApplyError::Store { .. } => Self::new(FailureCode::StoreUnavailable, message, retry),
            ApplyError::Damaged { .. } => {
                let next = "compare the checkout with `git diff`, then move the named file away";
                Self::new(FailureCode::StoreDamaged, message, next)
            }
            ApplyError::Newer { .. } => Self::new(FailureCode::StoreNewer, message, "update pactify"),
            ApplyError::Contents { .. } => {
                Self::new(FailureCode::ObjectsMissing, message, "retry the job, or run `pactify sub doctor`")
            }
        }
    }
}

/// What a refusal of the system means, as a fragment for people.
pub(super) fn reason(error: Errno) -> String {
    match error {
        Errno::ACCESS => "permission denied".into(),
        Errno::PERM => "the system does not permit it (is it marked immutable?)".into(),
        Errno::NOSPC | Errno::DQUOT => "no space is left".into(),
        Errno::ROFS => "the file system is read-only".into(),
        Errno::NAMETOOLONG => "the name is too long for this file system".into(),
        Errno::XDEV => "it is on another file system than the top of the checkout".into(),
        Errno::EXIST => "something is there by now".into(),
        Errno::NOENT => "it is gone".into(),
        Errno::NOTEMPTY => "the directory is not empty".into(),
        Errno::AGAIN => "it is being written right now".into(),
        other => io::Error::from(other).to_string().to_lowercase(),
    }
}

pub(super) fn is_full(error: Errno) -> bool {
    matches!(error, Errno::NOSPC | Errno::DQUOT)
}

fn code_of(conflicts: &[Conflict]) -> (FailureCode, &'static str) {
    let all = |kind: ConflictKind| conflicts.iter().all(|conflict| conflict.kind == kind);
    if all(ConflictKind::UnsavedText) {
        (FailureCode::UnsavedBuffers, "save the files, then apply again")
    } else if all(ConflictKind::NameRefused) {
        (FailureCode::PathRefused, "apply without these paths")
    } else if all(ConflictKind::MergeNotShown) {
        (FailureCode::ApplyConflict, "look at the merged content of each path, confirm it, and apply again")
    } else {
        (FailureCode::ApplyConflict, "resolve the conflicts named, or apply without these paths")
    }
}

fn summary(conflicts: &[Conflict]) -> String {
    match conflicts {
        [one] => format!("{}: {}", one.path.path, one.detail),
        many => format!("{} paths stand in the way; nothing was written", many.len()),
    }
}

fn holder_text(holder: Option<u32>) -> String {
    holder.map_or_else(|| "another process".into(), |pid| format!("process {pid}"))
}
