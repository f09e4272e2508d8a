//! A job that is being made: nobody sees it before it is whole, and nothing of it stays if it never is.

use pactify_core::JobId;
use pactify_core::job::JobSpec;

use super::{Store, StoreError, UNBORN};
use crate::disk::DiskError;
use crate::job_dir::{JobDir, JobLock, names};
use crate::journal;

/// A job's directory under a name that is no job's, with its lock. Goes when it is dropped, or with the next
/// [`Store::sweep_unborn`] if the whole process dies.
#[derive(Debug)]
pub struct Draft {
    store: Store,
    name: String,
    job: JobDir,
    /// Until the job is there.
    lock: Option<JobLock>,
}

impl Draft {
    pub(super) fn begin(store: &Store, id: &JobId) -> Result<Self, StoreError> {
        if store.shared.jobs.lookup(id.as_str())?.is_some() {
            return Err(StoreError::JobExists { id: id.clone() });
        }
        let jobs = &store.shared.jobs;
        let name = format!("{UNBORN}{id}");
        let job = JobDir::new(id.clone(), jobs.create_dir(&name).map_err(exists(id))?);
        let mut draft = Self { store: store.clone(), name, job, lock: None };
        draft.lock = Some(draft.job.create_lock()?);
        Ok(draft)
    }

    /// Its directory, as long as the job is not there. What is put into it belongs to the job.
    pub fn job(&self) -> &JobDir {
        &self.job
    }

    /// Makes the job of it, with this spec (of the same id) and an empty journal: whole or not at all, durably, and
    /// under an id that no other job has. The caller holds the lock.
    pub fn create(mut self, spec: &JobSpec) -> Result<(JobDir, JobLock), StoreError> {
        let text = serde_json::to_vec_pretty(spec).map_err(|source| StoreError::Unwritable { source })?;
        let (jobs, dir, id) = (&self.store.shared.jobs, self.job.dir(), self.job.id());
        dir.write_new(names::SPEC, &text)?;
        journal::create(dir, id)?;
        dir.sync()?;
        jobs.rename_new(&self.name, jobs, id.as_str()).map_err(exists(id))?;
        if let Err(error) = jobs.sync() {
            jobs.rename_new(id.as_str(), jobs, &self.name)?;
            return Err(error.into());
        }
        let job = self.store.job(id)?;
        match self.lock.take() {
            Some(lock) => Ok((job.clone(), JobLock::from_file(&job, lock.into_file())?)),
            None => Err(StoreError::JobNotFound { id: id.clone() }),
        }
    }
}

impl Drop for Draft {
    fn drop(&mut self) {
        // Whoever removes it takes the lock first. Nothing is there under this name once the job has its own.
        self.lock = None;
        self.store.remove_unborn(&self.name);
    }
}

fn exists(id: &JobId) -> impl FnOnce(DiskError) -> StoreError {
    let id = id.clone();
    |error| match error {
        DiskError::Exists { .. } => StoreError::JobExists { id },
        error => error.into(),
    }
}
