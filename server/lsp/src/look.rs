//! One look at a job: what happened since the last one, and where the job stands now. And [`Watch`]: whether another
//! one is of use, for whoever watches a job to its end.

use std::time::Duration;

use pactify_core::job::state::SeenState;
use pactify_core::protocol::{EventView, EventsParams, JobDetail};
use pactify_core::{Failure, JobId};
use pactify_engine::jobs::Jobs;

/// Events per page.
const PAGE: u32 = 500;
/// Pages of one look: a job can tell as fast as it is read, and then where it stands would never be told.
const PAGES: u32 = 40;

/// How long one look waits for something to happen. A host that is gone is noticed by the next one.
const PATIENCE: Duration = Duration::from_secs(2);
/// Looks at a lost job for which a recovery was started, before it is given up.
const RECOVERY_LOOKS: u32 = 100;
/// Recoveries that are started for one job. If they die, too, another one would.
const RECOVERIES: u32 = 3;

/// What a watched job was through, as far as it matters for how long it is watched.
#[derive(Debug, Default)]
pub(crate) struct Watch {
    recoveries: u32,
    looks_at_lost: u32,
}

/// What to do about a watched job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// Nothing: it is over, or lost for good.
    Stop,
    /// Wait for news.
    Await,
    /// Its host is gone: start one that sweeps and captures what it left.
    Recover,
    /// Look whether the recovery has come to something.
    Look,
}

impl Watch {
    /// What to do about the job, which was just seen in `state`.
    pub(crate) fn next(&mut self, state: SeenState) -> Next {
        match state {
            SeenState::Finished => return Next::Stop,
            SeenState::Lost => {}
            _ => {
                self.looks_at_lost = 0;
                return Next::Await;
            }
        }
        let is_news = self.looks_at_lost == 0;
        if self.looks_at_lost == RECOVERY_LOOKS || (is_news && self.recoveries == RECOVERIES) {
            return Next::Stop;
        }
        self.looks_at_lost += 1;
        self.recoveries += u32::from(is_news);
        if is_news { Next::Recover } else { Next::Look }
    }
}

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
    /// The next look at a watched job, after doing what is to be done about it.
    ///
    /// # Errors
    /// What the engine says.
    pub(crate) fn next(jobs: &Jobs, job: &JobId, after: u64, next: Next) -> Result<Self, Failure> {
        if next == Next::Recover {
            jobs.recover_lost()?;
        }
        Self::at(jobs, job, after, (next == Next::Await).then_some(PATIENCE))
    }

    /// What happened after `after`; with `patience`, once something did. Of a job that goes on that may not be all yet.
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
        let is_over = now.summary.state == SeenState::Finished;
        for page in 1.. {
            let params = EventsParams { job_id: job.to_string(), after: Some(next), limit: Some(PAGE) };
            let more = jobs.events(&params)?;
            next = more.next;
            let is_last = more.events.len() < PAGE as usize;
            events.extend(more.events);
            if is_last || (page >= PAGES && !is_over) {
                break;
            }
        }
        Ok(Self { job: now, events, next })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is done about a job that is seen in these states, each so many times in a row.
    fn done(states: &[(SeenState, u32)]) -> Vec<Next> {
        let mut watch = Watch::default();
        let each = states.iter().flat_map(|(state, times)| std::iter::repeat_n(*state, *times as usize));
        each.map(|state| watch.next(state)).collect()
    }

    #[test]
    fn a_job_is_watched_to_its_end() {
        let states = [(SeenState::Queued, 1), (SeenState::Running, 1), (SeenState::Finished, 1)];
        assert_eq!(done(&states), [Next::Await, Next::Await, Next::Stop]);
    }

    #[test]
    fn a_recovery_that_comes_to_nothing_is_given_up() {
        let done = done(&[(SeenState::Lost, RECOVERY_LOOKS + 1)]);
        assert_eq!(done[0], Next::Recover);
        assert!(done[1..RECOVERY_LOOKS as usize].iter().all(|next| *next == Next::Look));
        assert_eq!(done.last(), Some(&Next::Stop));
    }

    #[test]
    fn a_job_whose_recoveries_die_too_is_given_up() {
        let once = [(SeenState::Lost, 1), (SeenState::Running, 1)];
        let done = done(&once.repeat(RECOVERIES as usize + 1));
        let recoveries = done.iter().filter(|next| **next == Next::Recover).count();
        assert_eq!((recoveries, done[2 * RECOVERIES as usize]), (RECOVERIES as usize, Next::Stop));
    }
}
