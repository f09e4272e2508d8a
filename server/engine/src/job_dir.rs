//! One job's directory: where each of its files is, its lock, and its control socket.
//!
//! A [`JobDir`] holds the directory open, so what is done through it concerns this job even when its path has been
//! given to something else. A [`lock::JobLock`] is the right to append to the journal. What the files hold is the
//! business of [`crate::journal`], [`crate::store`] and the host.

pub mod lock;
pub mod socket;

use std::sync::Arc;

use pactify_core::job::{JobSpec, SPEC_FORMAT};
use pactify_core::{AbsPath, Failure, FailureCode, JobId};
use serde::Deserialize;

use crate::disk::{Dir, DiskError};

pub use lock::{JobLock, LockError};

/// The names below a job's directory.
pub(crate) mod names {
    pub(crate) const SPEC: &str = "job.json";
    pub(crate) const JOURNAL: &str = "events.jsonl";
    pub(crate) const LOCK: &str = "lock";
    pub(crate) const SOCKET: &str = "host.sock";
    pub(crate) const SUMMARY: &str = "summary.json";
    pub(crate) const HOST_LOG: &str = "host.log";
    pub(crate) const WIRE_LOG: &str = "wire.log";
    pub(crate) const BASE: &str = "base";
    pub(crate) const BEFORE_VERIFICATION: &str = "before-verification";
    pub(crate) const RESIDUE: &str = "residue";
}

/// The longest `job.json`: a brief of the greatest length, escaped, with room for settings.
pub(crate) const MAX_SPEC_BYTES: u64 = 4 * 1024 * 1024;

/// A job's directory, held open. Clones share the descriptor.
#[derive(Clone, Debug)]
pub struct JobDir {
    id: JobId,
    dir: Arc<Dir>,
}

/// Why a job's spec cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum SpecError {
    /// A newer pactify wrote it.
    #[error("job {id} was written by a newer pactify (format {format})")]
    Newer {
        /// The job.
        id: JobId,
        /// The format it says it has.
        format: u64,
    },
    /// It is not what pactify writes.
    #[error("{path} is damaged: {reason}")]
    Damaged {
        /// The file.
        path: AbsPath,
        /// What is wrong with it.
        reason: String,
    },
    /// It cannot be reached.
    #[error(transparent)]
    Disk(#[from] DiskError),
}

impl JobDir {
    pub(crate) fn new(id: JobId, dir: Dir) -> Self {
        Self { id, dir: Arc::new(dir) }
    }

    /// The job.
    pub fn id(&self) -> &JobId {
        &self.id
    }

    /// The open directory.
    pub fn dir(&self) -> &Dir {
        &self.dir
    }

    /// Where it is.
    pub fn path(&self) -> &AbsPath {
        self.dir.path()
    }

    /// The detached worktree.
    pub fn tree(&self) -> AbsPath {
        self.path().join("tree")
    }

    /// The git directory of the captured result.
    pub fn capture(&self) -> AbsPath {
        self.path().join("capture")
    }

    /// The harness's private home.
    pub fn home(&self) -> AbsPath {
        self.path().join("home")
    }

    /// The harness's `TMPDIR`.
    pub fn tmp(&self) -> AbsPath {
        self.path().join("tmp")
    }

    /// The control socket's name; to use it, see [`socket`].
    pub fn socket(&self) -> AbsPath {
        self.path().join(names::SOCKET)
    }

    /// The host's own log.
    pub fn host_log(&self) -> AbsPath {
        self.path().join(names::HOST_LOG)
    }

    /// The journal.
    pub fn journal(&self) -> AbsPath {
        self.path().join(names::JOURNAL)
    }

    /// Reads what was asked.
    pub fn spec(&self) -> Result<JobSpec, SpecError> {
        let bytes = self.dir.read(names::SPEC, MAX_SPEC_BYTES)?;
        let damaged = |reason: String| SpecError::Damaged { path: self.path().join(names::SPEC), reason };
        let version: Version = serde_json::from_slice(&bytes).map_err(|error| damaged(error.to_string()))?;
        if version.format > u64::from(SPEC_FORMAT) {
            return Err(SpecError::Newer { id: self.id.clone(), format: version.format });
        }
        let spec: JobSpec = serde_json::from_slice(&bytes).map_err(|error| damaged(error.to_string()))?;
        if spec.id != self.id {
            return Err(damaged(format!("it names job {}", spec.id)));
        }
        Ok(spec)
    }
}

/// The part of a spec that every format has.
#[derive(Deserialize)]
struct Version {
    format: u64,
}

impl From<SpecError> for Failure {
    fn from(error: SpecError) -> Self {
        let text = error.to_string();
        match error {
            SpecError::Newer { .. } => Self::new(FailureCode::StoreNewer, text, "use the newer pactify for this job"),
            SpecError::Damaged { .. } => {
                Self::new(FailureCode::StoreDamaged, text, "restore the file from a backup, or remove the job")
            }
            SpecError::Disk(error) => error.into(),
        }
    }
}

#[cfg(test)]
mod tests;
