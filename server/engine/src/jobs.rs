//! What front ends may call: every verb of the wire, executed.
//!
//! [`Jobs`] takes and returns the shapes of [`pactify_core::protocol`], so that a language server, a terminal and
//! a test say the same things. Calls block for as long as their disk and git work takes, never for a job: front ends
//! run them off their event loop. A job itself runs in its own process ([`crate::host`]); this module creates it, reads
//! what it left, and applies or discards that. Nothing here knows an editor or a terminal.

use std::time::Duration;

use pactify_core::protocol::{
    Applied, ApplyParams, Content, ContentParams, DebugReport, DelegateParams, Delegated, DoctorParams, EventList,
    EventsParams, ExportParams, Exported, Findings, HarnessList, JobDetail, JobList, JobMoved, Preview, PreviewParams,
    StatusParams, Worktree,
};
use pactify_core::{AbsPath, Failure, JobId};

/// The engine, open on one `PACTIFY_HOME`. Cheap to clone; every clone sees the same store.
#[derive(Clone, Debug)]
pub struct Jobs {}

impl Jobs {
    /// Opens the store (made when absent) and reads the person's configuration.
    pub fn open() -> Result<Self, Failure> {
        Err(Failure::internal("not built yet"))
    }

    /// Creates a job and starts its host. `params.brief` must be text: front ends read documents.
    /// `params.repository` must be there: front ends know the folder.
    pub fn delegate(&self, _params: &DelegateParams) -> Result<Delegated, Failure> {
        Err(Failure::internal("not built yet"))
    }

    /// A new job from the brief and settings of an older one.
    pub fn retry(&self, _job: &JobId) -> Result<Delegated, Failure> {
        Err(Failure::internal("not built yet"))
    }

    /// Jobs, newest first. `params.job_id` is not looked at: see [`Self::status`].
    pub fn list(&self, _params: &StatusParams) -> Result<JobList, Failure> {
        Err(Failure::internal("not built yet"))
    }

    /// One job, whole.
    pub fn status(&self, _job: &JobId) -> Result<JobDetail, Failure> {
        Err(Failure::internal("not built yet"))
    }

    /// Events after a position.
    pub fn events(&self, _params: &EventsParams) -> Result<EventList, Failure> {
        Err(Failure::internal("not built yet"))
    }

    /// Waits until the job's journal grows beyond `after`, its host goes away, or `limit` passes; then tells
    /// what [`Self::events`] would. An empty answer means that nothing happened in time.
    pub fn await_events(&self, _job: &JobId, _after: u64, _limit: Duration) -> Result<EventList, Failure> {
        Err(Failure::internal("not built yet"))
    }

    /// What a job changed.
    pub fn preview(&self, _params: &PreviewParams) -> Result<Preview, Failure> {
        Err(Failure::internal("not built yet"))
    }

    /// One side of one path.
    pub fn content(&self, _params: &ContentParams) -> Result<Content, Failure> {
        Err(Failure::internal("not built yet"))
    }

    /// Puts a result into the checkout: all that was chosen, or nothing.
    pub fn apply(&self, _params: &ApplyParams) -> Result<Applied, Failure> {
        Err(Failure::internal("not built yet"))
    }

    /// Asks the job's host to end it; a lost job is swept and captured instead.
    pub fn cancel(&self, _job: &JobId) -> Result<JobMoved, Failure> {
        Err(Failure::internal("not built yet"))
    }

    /// Gives a result up and removes the job's tree. The record stays.
    pub fn discard(&self, _job: &JobId) -> Result<JobMoved, Failure> {
        Err(Failure::internal("not built yet"))
    }

    /// Where the job's tree is.
    pub fn worktree(&self, _job: &JobId) -> Result<Worktree, Failure> {
        Err(Failure::internal("not built yet"))
    }

    /// The result as a patch, or as a branch of the person's repository.
    pub fn export(&self, _params: &ExportParams) -> Result<Exported, Failure> {
        Err(Failure::internal("not built yet"))
    }

    /// The harnesses of this build and what is installed.
    pub fn harnesses(&self) -> Result<HarnessList, Failure> {
        Err(Failure::internal("not built yet"))
    }

    /// Looks at everything that jobs depend on.
    pub fn doctor(&self, _params: &DoctorParams) -> Result<Findings, Failure> {
        Err(Failure::internal("not built yet"))
    }

    /// One redacted text for a bug report.
    pub fn debug_report(&self) -> Result<DebugReport, Failure> {
        Err(Failure::internal("not built yet"))
    }

    /// Starts a recovery host for each job that is lost, so that nothing stays half done. Called once by a server
    /// when it starts; returns the jobs concerned.
    pub fn recover_lost(&self) -> Result<Vec<JobId>, Failure> {
        Err(Failure::internal("not built yet"))
    }

    /// Tells every other pactify process which files this editor holds unsaved text for.
    pub fn publish_unsaved(&self, _paths: &[AbsPath]) -> Result<(), Failure> {
        Err(Failure::internal("not built yet"))
    }
}
