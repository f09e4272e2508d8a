//! What the end of an attempt left undone, done when a person asks for it: processes that could not be ended, a tree
//! that was not captured, for them or because the capture failed, and logins that could not be settled.

use pactify_core::Failure;
use pactify_core::JobId;
use pactify_core::job::state::{Phase, SeenState};

use super::Jobs;
use super::dispose::BUSY;
use crate::job_dir::LockError;
use crate::journal::Journal;
use crate::logins::Logins;

impl Jobs {
    /// Does what the end of a finished job could not do.
    pub(super) fn look_after(&self, job: &JobId) -> Result<(), Failure> {
        let state = &self.store().seen(job)?.0.state;
        // A tree that is gone would only be missed once more.
        let is_to_capture = state.is_to_capture()
            && state.tree.as_ref().is_some_and(|tree| tree.path.as_path().symlink_metadata().is_ok());
        if state.is_survived() || is_to_capture {
            return self.repair(job);
        }
        if Logins::open(self.store())?.uses_of(Some(job))?.is_empty() {
            return Ok(());
        }
        let lock = match self.store().job(job)?.lock(BUSY) {
            // A further turn began meanwhile: it looks itself.
            Err(LockError::Busy { .. }) if self.store().seen(job)?.1 != SeenState::Finished => return Ok(()),
            lock => lock?,
        };
        let journal = Journal::open(lock)?;
        if journal.state().phase == Phase::Finished { self.settle_logins(&journal) } else { Ok(()) }
    }

    /// Settles the logins that the job, which is over, left unsettled, or keeps them apart: its home may go afterwards.
    pub(super) fn settle_logins(&self, journal: &Journal) -> Result<(), Failure> {
        let dir = journal.lock().job();
        let told = Logins::open(self.store())?.settle_late(dir.id(), &dir.home(), self.env().now())?;
        for told in told {
            // A finished job's record takes no notice any more; what was kept apart is listed.
            tracing::warn!(job = %dir.id(), id = told.id, "{}", told.text);
        }
        Ok(())
    }
}
