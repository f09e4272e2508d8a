//! What can be wrong with a journal.

use std::io;

use pactify_core::{AbsPath, Failure, FailureCode};

use crate::disk::DiskError;
use crate::job_dir::SpecError;

/// Why a journal cannot be read or appended to.
#[derive(Debug, thiserror::Error)]
pub enum JournalError {
    /// It is not there. It is made, durably, before its job can be seen, so no crash explains this.
    #[error("the journal {path} is missing")]
    Missing {
        /// Where it should be.
        path: AbsPath,
    },
    /// A newer pactify writes it.
    #[error("the journal {path} was written by a newer pactify (format {format})")]
    Newer {
        /// Where.
        path: AbsPath,
        /// The format it says it has.
        format: u64,
    },
    /// A line is not what was written.
    #[error(transparent)]
    Damaged(Damage),
    /// Another file took its place.
    #[error("the journal {path} was replaced by another file")]
    Replaced {
        /// Where.
        path: AbsPath,
    },
    /// It is shorter than what was read of it before.
    #[error("the journal {path} was cut to {found} bytes, after {expected} had been read")]
    Truncated {
        /// Where.
        path: AbsPath,
        /// How far it had been read.
        expected: u64,
        /// Its length now.
        found: u64,
    },
    /// Somebody without the lock wrote to it.
    #[error("the journal {path} has {found} bytes where its writer left {expected}")]
    Interfered {
        /// Where.
        path: AbsPath,
        /// The length that the lock holder left.
        expected: u64,
        /// Its length now.
        found: u64,
    },
    /// There is no room. Nothing of the rest is in the file.
    #[error("no space left to append to {path}")]
    NoSpace {
        /// Where.
        path: AbsPath,
        /// How many of the events were written before.
        written: usize,
    },
    /// What was appended is in the file, and may not survive a power loss.
    #[error("{path} could not be synced: {source}")]
    NotDurable {
        /// Where.
        path: AbsPath,
        /// What the system says.
        source: io::Error,
    },
    /// The job's spec cannot be read.
    #[error(transparent)]
    Spec(#[from] SpecError),
    /// The file cannot be reached.
    #[error(transparent)]
    Disk(DiskError),
}

/// A line that is not what was written there.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the journal {path} is damaged at line {line}: {reason}")]
pub struct Damage {
    /// The journal.
    pub path: AbsPath,
    /// Counted from 1; the first is the header.
    pub line: u64,
    /// Where the line starts.
    pub offset: u64,
    /// What is wrong with it.
    pub reason: &'static str,
}

/// A last line without its end: what a crash leaves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Torn {
    /// Counted from 1.
    pub line: u64,
    /// Where it starts.
    pub offset: u64,
    /// How many bytes of it there are.
    pub bytes: u64,
}

impl From<DiskError> for JournalError {
    fn from(error: DiskError) -> Self {
        match error {
            DiskError::NoSpace { path } => Self::NoSpace { path, written: 0 },
            error => Self::Disk(error),
        }
    }
}

impl From<JournalError> for Failure {
    fn from(error: JournalError) -> Self {
        let text = error.to_string();
        match error {
            JournalError::Newer { .. } => {
                Self::new(FailureCode::StoreNewer, text, "use the newer pactify for this job")
            }
            JournalError::Missing { .. }
            | JournalError::Damaged(_)
            | JournalError::Replaced { .. }
            | JournalError::Truncated { .. }
            | JournalError::Interfered { .. } => Self::new(
                FailureCode::StoreDamaged,
                text,
                "the job's tree is untouched: take what you need from it, or restore the journal from a backup",
            ),
            JournalError::NoSpace { .. } => {
                Self::new(FailureCode::NoSpace, text, "free some space, for example by discarding finished jobs")
            }
            JournalError::NotDurable { .. } => {
                Self::new(FailureCode::StoreUnavailable, text, "check the disk that holds PACTIFY_HOME")
            }
            JournalError::Spec(error) => error.into(),
            JournalError::Disk(error) => error.into(),
        }
    }
}
