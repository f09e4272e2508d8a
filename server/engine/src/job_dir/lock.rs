//! The job lock: whoever appends to a job's journal holds it, and nobody else can.
//!
//! It is a `flock` on `jobs/<id>/lock`, so it belongs to the open file description: a child that inherits the
//! descriptor (the host, as its standard input) holds it on, and it is released when the last holder is gone, however
//! that happens. Whether a host is alive is asked by trying a *shared* lock for a moment: probes do not disturb each
//! other, and a writer that meets one tries again: where a shared lock can be had, nobody but probes holds it.

use std::fs::{File, TryLockError};
use std::io;
use std::time::{Duration, Instant};

use pactify_core::job::state::Host;
use pactify_core::{Failure, FailureCode, JobId};

use super::{JobDir, names};
use crate::disk::{DiskError, FileId, Open};

/// How long every attempt to lock outlasts probes. One holds the lock for microseconds, or for as long as its process
/// is kept from running.
const PROBED: Duration = Duration::from_secs(20);

/// How long every attempt to lock waits for a holder that let go: a program that it starts at that moment has the
/// descriptor until it runs.
const STARTING: Duration = Duration::from_millis(100);

/// The right to append to a job's journal.
#[derive(Debug)]
pub struct JobLock {
    file: File,
    job: JobDir,
}

/// Why a job cannot be locked.
#[derive(Debug, thiserror::Error)]
pub enum LockError {
    /// A host, or a command such as an apply, works on it.
    #[error("job {id} is in use by another pactify process")]
    Busy {
        /// The job.
        id: JobId,
    },
    /// It was removed, or its directory replaced, since it was opened.
    #[error("job {id} is no longer there")]
    Gone {
        /// The job.
        id: JobId,
    },
    /// An inherited descriptor is another file than the job's lock.
    #[error("the inherited descriptor is not the lock of job {id}")]
    AnotherFile {
        /// The job.
        id: JobId,
    },
    /// An inherited descriptor is the job's lock, but does not hold it.
    #[error("the inherited descriptor does not hold the lock of job {id}")]
    NotHeld {
        /// The job.
        id: JobId,
    },
    /// The lock file cannot be reached.
    #[error(transparent)]
    Disk(#[from] DiskError),
}

impl JobDir {
    /// Takes the lock, waiting up to `patience` for whoever holds it; probes are outlasted in any case.
    pub fn lock(&self, patience: Duration) -> Result<JobLock, LockError> {
        let begun = Instant::now();
        let mut held = begun;
        let mut pause = Duration::from_millis(1);
        loop {
            let file = self.dir().file(names::LOCK, Open::Append)?;
            match file.try_lock() {
                Ok(()) => return JobLock { file, job: self.clone() }.still_named(),
                Err(TryLockError::WouldBlock) => {
                    let left = if self.is_only_probed(&file)? {
                        PROBED.saturating_sub(held.elapsed())
                    } else {
                        held = Instant::now();
                        patience.max(STARTING).saturating_sub(begun.elapsed())
                    };
                    drop(file);
                    if left.is_zero() {
                        return Err(LockError::Busy { id: self.id().clone() });
                    }
                    std::thread::sleep(pause.min(left));
                    pause = (pause * 2).min(Duration::from_millis(50));
                }
                Err(TryLockError::Error(source)) => return Err(self.lock_failure(source)),
            }
        }
    }

    /// Whether nobody but probes is in the way, if anybody still is. `lock` is one itself until it is dropped.
    fn is_only_probed(&self, lock: &File) -> Result<bool, LockError> {
        match lock.try_lock_shared() {
            Ok(()) => Ok(true),
            Err(TryLockError::WouldBlock) => Ok(false),
            Err(TryLockError::Error(source)) => Err(self.lock_failure(source)),
        }
    }

    /// Whether anybody holds the lock. Takes it shared for an instant, and never waits.
    pub fn host(&self) -> Result<Host, LockError> {
        let file = self.dir().file(names::LOCK, Open::Read)?;
        Ok(if self.is_only_probed(&file)? { Host::Gone } else { Host::Alive })
    }

    /// Creates the lock file and takes it; for a job that nobody can see yet.
    pub(crate) fn create_lock(&self) -> Result<JobLock, LockError> {
        let file = self.dir().file(names::LOCK, Open::CreateNew)?;
        match file.try_lock() {
            Ok(()) => Ok(JobLock { file, job: self.clone() }),
            Err(TryLockError::WouldBlock) => Err(LockError::Busy { id: self.id().clone() }),
            Err(TryLockError::Error(source)) => Err(self.lock_failure(source)),
        }
    }

    fn lock_failure(&self, source: io::Error) -> LockError {
        DiskError::from_io(self.path().join(names::LOCK), "lock", source).into()
    }
}

impl JobLock {
    /// The job that is locked.
    pub fn job(&self) -> &JobDir {
        &self.job
    }

    /// Gives up the type, not the lock: whoever gets the descriptor holds it on.
    pub fn into_file(self) -> File {
        self.file
    }

    /// Takes up a lock that was handed over as a descriptor. It must be the job's lock file, and its description
    /// must hold the lock: an unlocked one is refused rather than locked, because another writer may have come and
    /// gone in between.
    pub fn from_file(job: &JobDir, file: File) -> Result<Self, LockError> {
        let id = || job.id().clone();
        let inherited = FileId::of_fd(&file).map_err(|source| job.lock_failure(source))?;
        let named = job.dir().lookup(names::LOCK)?.map(|stat| FileId::of(&stat));
        if named != Some(inherited) {
            return Err(LockError::AnotherFile { id: id() });
        }
        rustix::io::fcntl_setfd(&file, rustix::io::FdFlags::CLOEXEC).map_err(|errno| job.lock_failure(errno.into()))?;
        if job.host()? == Host::Gone {
            return Err(LockError::NotHeld { id: id() });
        }
        // Somebody holds it. If that is this very description, locking again changes nothing.
        match file.try_lock() {
            Ok(()) => Self { file, job: job.clone() }.still_named(),
            Err(TryLockError::WouldBlock) => Err(LockError::NotHeld { id: id() }),
            Err(TryLockError::Error(source)) => Err(job.lock_failure(source)),
        }
    }

    /// Checks that the name of the job still leads to the directory that was locked: whoever removes a job holds its
    /// lock while renaming it away.
    fn still_named(self) -> Result<Self, LockError> {
        let job = &self.job;
        let held = FileId::of(&job.dir().stat()?);
        let named = rustix::fs::lstat(job.path().as_path()).map(|stat| FileId::of(&stat));
        let lock = job.dir().lookup(names::LOCK)?.map(|stat| FileId::of(&stat));
        let same_lock = lock == FileId::of_fd(&self.file).ok();
        if named == Ok(held) && same_lock { Ok(self) } else { Err(LockError::Gone { id: job.id().clone() }) }
    }
}

impl From<LockError> for Failure {
    fn from(error: LockError) -> Self {
        let text = error.to_string();
        match error {
            LockError::Busy { .. } => {
                Self::new(FailureCode::StoreBusy, text, "wait until it is done, or cancel the job")
            }
            LockError::Gone { .. } => Self::new(FailureCode::JobNotFound, text, "list the jobs that there are"),
            LockError::AnotherFile { .. } | LockError::NotHeld { .. } => Self::internal(text),
            LockError::Disk(error) => error.into(),
        }
    }
}
