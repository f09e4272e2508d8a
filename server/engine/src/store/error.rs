//! Why the store, or a job in it, is out of reach.

use std::io;

use pactify_core::{AbsPath, Failure, FailureCode, JobId};

use crate::disk::DiskError;
use crate::job_dir::{LockError, SpecError};
use crate::journal::JournalError;

/// Why the store cannot do something.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// PACTIFY_HOME cannot be made or resolved.
    #[error("cannot use {path} as PACTIFY_HOME: {source}")]
    Home {
        /// The path as it was given.
        path: AbsPath,
        /// What the system says.
        source: io::Error,
    },
    /// Others may write to PACTIFY_HOME, so what is in it may be theirs.
    #[error("others may write to {path} (mode {mode:o})")]
    WritableByOthers {
        /// PACTIFY_HOME.
        path: AbsPath,
        /// Its permissions.
        mode: u32,
    },
    /// A newer pactify made the store.
    #[error("{path} says format {format}: a newer pactify made this store")]
    Newer {
        /// The format file.
        path: AbsPath,
        /// What it says.
        format: u64,
    },
    /// The format file says nothing.
    #[error("{path} names no store format")]
    FormatUnreadable {
        /// The format file.
        path: AbsPath,
    },
    /// No job has that id.
    #[error("there is no job {id}")]
    JobNotFound {
        /// The id.
        id: JobId,
    },
    /// A job has that id.
    #[error("there is a job {id} already")]
    JobExists {
        /// The id.
        id: JobId,
    },
    /// A spec without a JSON form.
    #[error("the job cannot be written down: {source}")]
    Unwritable {
        /// What the encoder says.
        source: serde_json::Error,
    },
    /// A job's lock.
    #[error(transparent)]
    Lock(#[from] LockError),
    /// A job's spec.
    #[error(transparent)]
    Spec(#[from] SpecError),
    /// A job's journal.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// A file of the store.
    #[error(transparent)]
    Disk(#[from] DiskError),
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        let text = error.to_string();
        match error {
            StoreError::Home { .. } => Self::new(
                FailureCode::StoreUnavailable,
                text,
                "set PACTIFY_HOME to a directory of your own that you may write to",
            ),
            StoreError::WritableByOthers { path, .. } => Self::new(
                FailureCode::StoreUnavailable,
                text,
                format!("look at what is in it, then run `chmod 700` on {path}"),
            ),
            StoreError::Newer { .. } => {
                Self::new(FailureCode::StoreNewer, text, "use the newer pactify, or another PACTIFY_HOME")
            }
            StoreError::FormatUnreadable { .. } => Self::new(
                FailureCode::StoreDamaged,
                text,
                "restore the file from a backup, or remove it if no newer pactify used this store",
            ),
            StoreError::JobNotFound { .. } => Self::new(FailureCode::JobNotFound, text, "list the jobs that there are"),
            StoreError::JobExists { .. } | StoreError::Unwritable { .. } => Self::internal(text),
            StoreError::Lock(error) => error.into(),
            StoreError::Spec(error) => error.into(),
            StoreError::Journal(error) => error.into(),
            StoreError::Disk(error) => error.into(),
        }
    }
}
