//! One look at a job: what happened since the last one, and where the job stands now.

use std::time::Duration;

use pactify_core::protocol::{EventView, EventsParams, JobDetail};
use pactify_core::{Failure, JobId};
use pactify_engine::jobs::Jobs;

/// Events per page.
const PAGE: u32 = 500;

/// What a look found.
pub(crate) struct Look {
    /// The job.
    pub job: JobDetail,
    /// What happened, oldest first.
    pub events: Vec<EventView>,
    /// The position from which the next look goes on.
    pub next: u64,
}

impl Look {
    /// What happened after `after`; with `patience`, once something did.
    ///
    /// # Errors
    /// What the engine says.
    pub(crate) fn at(jobs: &Jobs, job: &JobId, after: u64, patience: Option<Duration>) -> Result<Self, Failure> {
        let mut events = Vec::new();
        let mut next = after;
        if let Some(patience) = patience {
            let news = jobs.await_events(job, after, patience)?;
            next = news.next;
            events = news.events;
        }
        // Before the events: those of a finished job are then all there.
        let now = jobs.status(job)?;
        loop {
            let params = EventsParams { job_id: job.to_string(), after: Some(next), limit: Some(PAGE) };
            let more = jobs.events(&params)?;
            next = more.next;
            let is_last = more.events.len() < PAGE as usize;
            events.extend(more.events);
            if is_last {
                break;
            }
        }
        Ok(Self { job: now, events, next })
    }
}
