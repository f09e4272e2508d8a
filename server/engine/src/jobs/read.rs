//! Telling about jobs: lists, one job, its events.

use std::collections::HashMap;
use std::sync::{Arc, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use pactify_core::job::Place;
use pactify_core::job::outcome::Disposition;
use pactify_core::job::state::{Host, Phase, SeenState};
use pactify_core::protocol::{
    BaseView, EventList, EventView, EventsParams, JobDetail, JobList, JobStatus, JobSummary, StatusParams,
    UnreadableJob, Worktree, view,
};
use pactify_core::{AbsPath, Failure, FailureCode, JobId, Seq};
use serde_json::value::{RawValue, to_raw_value};

use super::cut_off::CutOff;
use super::left::Left;
use super::{Jobs, invalid, job_id, local_path};
use crate::journal::summary::Summary;
use crate::journal::{Batch, Cursor, Follower, Reader, Waited};
use crate::store::{JobSnapshot, Listed};
use crate::{config, host};

/// How many jobs are looked at for one page before it is returned short of its limit.
const LOOK: usize = 500;
/// How many journals' positions are kept; without its position a journal is read from its start.
const MOST_POSITIONS: usize = 256;

impl Jobs {
    /// Jobs, newest first. `params.job_id` is not looked at: see [`Self::status`].
    pub fn list(&self, params: &StatusParams) -> Result<JobList, Failure> {
        let limit = params.limit.unwrap_or(50).clamp(1, 500) as usize;
        let repository = match &params.repository {
            None => None,
            Some(uri) => Some(self.git()?.common_dir(&local_path("repository", uri)?)?),
        };
        let mut after = params.cursor.as_deref().map(cursor).transpose()?;
        let cut_off = CutOff::of(self.store());
        let mut list = JobList { jobs: Vec::new(), next: None, unreadable: Vec::new() };
        loop {
            let page = self.store().list(after.as_ref(), LOOK.min(limit.max(50)))?;
            for listed in page.jobs {
                if list.jobs.len() == limit {
                    list.next = after.map(|id| id.to_string());
                    return Ok(list);
                }
                after = Some(listed.id().clone());
                match listed {
                    Listed::Job { summary, seen } if wanted(&summary, seen, params.all, repository.as_ref()) => {
                        let told = cut_off.told(&summary.id, &summary.repository);
                        list.jobs.push(self.why_queued(with_notice(shown(&summary, seen), told)));
                    }
                    Listed::Job { .. } => {}
                    Listed::Newer { id, format } => list.unreadable.push(newer(&id, format)),
                    Listed::Damaged { id, reason, .. } => list.unreadable.push(damaged(&id, reason)),
                }
            }
            match page.next {
                None => return Ok(list),
                next => after = next,
            }
        }
    }

    /// One job, whole.
    pub fn status(&self, job: &JobId) -> Result<JobDetail, Failure> {
        let (snapshot, seen) = self.store().seen(job)?;
        let told = CutOff::of(self.store()).told(job, &snapshot.spec.repository);
        Ok(self.described(&snapshot, seen, told))
    }

    /// One job, as a list shows it.
    pub fn summary(&self, job: &JobId) -> Result<JobSummary, Failure> {
        let (snapshot, seen) = self.store().seen(job)?;
        let told = CutOff::of(self.store()).told(job, &snapshot.spec.repository);
        Ok(self.why_queued(with_notice(shown(&snapshot.summary(), seen), told)))
    }

    fn described(&self, snapshot: &JobSnapshot, seen: SeenState, told: Option<String>) -> JobDetail {
        let mut detail = detail(snapshot, seen);
        if let (SeenState::Finished | SeenState::Lost, Ok(job)) = (seen, self.store().job(&snapshot.spec.id)) {
            detail.only_in_tree = Left::of(&job, &snapshot.state).told;
        }
        detail.summary = self.why_queued(with_notice(detail.summary, told));
        detail
    }

    /// What [`Self::status`] tells, as the JSON of a [`JobStatus`]. A finished job, which editors ask for again and
    /// again, is put into words once, until its journal grows.
    pub fn status_json(&self, job: &JobId) -> Result<Arc<RawValue>, Failure> {
        let (snapshot, seen) = self.store().seen(job)?;
        let cut_off = CutOff::of(self.store()).told(job, &snapshot.spec.repository);
        if let (Some(told), None) = (snapshot.told.get(), &cut_off) {
            return Ok(Arc::clone(told));
        }
        // Not of the job's own journal: it is told as long as it is so.
        let is_of_journal = cut_off.is_none();
        let status = JobStatus { job: self.described(&snapshot, seen, cut_off) };
        let told = to_raw_value(&status)
            .map_err(|error| Failure::internal(format!("job {job} cannot be written as JSON: {error}")))?;
        let told: Arc<RawValue> = Arc::from(told);
        if is_of_journal && snapshot.state.phase == Phase::Finished {
            // Another thread may have been faster, with the same.
            let _ = snapshot.told.set(Arc::clone(&told));
        }
        Ok(told)
    }

    /// A job that waits for its turn says for what.
    fn why_queued(&self, summary: JobSummary) -> JobSummary {
        if summary.state != SeenState::Queued {
            return summary;
        }
        let most = config::load(self.env()).ok().and_then(|settings| settings.running_jobs);
        let (most, says) = match most {
            Some(most) => (most, "[limits] running-jobs"),
            None => (host::cores(), "as many as there are cores"),
        };
        let why = match most {
            1 => format!("waits for its turn: 1 job runs at once ({says})"),
            _ => format!("waits for its turn: {most} jobs run at once ({says})"),
        };
        JobSummary { activity: Some(why), ..summary }
    }

    /// Events after a position.
    pub fn events(&self, params: &EventsParams) -> Result<EventList, Failure> {
        let job = job_id(&params.job_id)?;
        let after = params.after.unwrap_or(0);
        let limit = params.limit.unwrap_or(200).clamp(1, 1_000) as usize;
        let mut reader = self.reader_after(&job, after)?;
        let batch = reader.read(limit)?;
        self.keep(&job, reader.cursor());
        Ok(event_list(&batch, after))
    }

    /// Waits until the job's journal grows beyond `after`, or `limit` passes; then tells what [`Self::events`] would.
    /// An empty answer means that nothing happened in time.
    pub fn await_events(&self, job: &JobId, after: u64, limit: Duration) -> Result<EventList, Failure> {
        let mut follower = Follower::new(self.reader_after(job, after)?);
        let waited = follower.wait(1_000, Instant::now() + limit)?;
        self.keep(job, follower.reader().cursor());
        match waited {
            Waited::News(batch) => Ok(event_list(&batch, after)),
            Waited::TimedOut => Ok(EventList { events: Vec::new(), next: after }),
        }
    }

    /// Whether a host has the job: it works on it, or waits for its turn to. A job that is to go on looks finished
    /// until that turn comes.
    pub fn is_held(&self, job: &JobId) -> Result<bool, Failure> {
        Ok(self.store().job(job)?.host()? == Host::Alive)
    }

    /// Where the job's tree is.
    pub fn worktree(&self, job: &JobId) -> Result<Worktree, Failure> {
        let snapshot = self.store().state(job)?;
        if snapshot.spec.place == Place::Checkout {
            let message = format!("job {job} works in your checkout, and has no tree");
            return Err(Failure::new(FailureCode::WrongState, message, "look at your checkout"));
        }
        let tree = snapshot.state.tree.as_ref().ok_or_else(|| {
            let next = "a job has a tree from the moment it runs until it is discarded";
            Failure::new(FailureCode::WrongState, format!("job {job} has no tree"), next)
        })?;
        Ok(Worktree { worktree: view::file_uri(tree.path.as_path()) })
    }

    /// Reads what follows a position: from where the journal was read to if that is not behind it. Otherwise whoever
    /// follows a job that says much would read all of it for each page.
    fn reader_after(&self, job: &JobId, after: u64) -> Result<Reader, Failure> {
        let known = self.read_to().get(job).copied().filter(|cursor| cursor.seq().0 <= after);
        let dir = self.store().job(job)?;
        // What was read of another file means nothing in this one.
        let resumed = known.and_then(|cursor| Reader::resume(&dir, cursor).ok());
        let mut reader = resumed.map_or_else(|| Reader::open(&dir), Ok)?;
        if after > reader.cursor().seq().0 {
            reader.skip_to(Seq(after))?;
        }
        Ok(reader)
    }

    fn keep(&self, job: &JobId, cursor: Cursor) {
        let mut read_to = self.read_to();
        if read_to.len() >= MOST_POSITIONS && !read_to.contains_key(job) {
            read_to.clear();
        }
        read_to.insert(job.clone(), cursor);
    }

    fn read_to(&self) -> MutexGuard<'_, HashMap<JobId, Cursor>> {
        // Each is checked against its journal before it is used, so one left by a panic does no harm.
        self.shared.read_to.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn with_notice(mut summary: JobSummary, notice: Option<String>) -> JobSummary {
    summary.notices.extend(notice);
    summary
}

/// A job as a bug report names it: no brief, no path.
pub(super) fn reported(listed: &Listed) -> String {
    match listed {
        Listed::Job { summary, seen } => {
            format!("{} {} {:?} {seen:?} {:?}", summary.id, summary.harness, summary.access, summary.outcome)
        }
        Listed::Newer { id, format } => format!("{id} of format {format}"),
        Listed::Damaged { id, .. } => format!("{id} damaged"),
    }
}

fn event_list(batch: &Batch, after: u64) -> EventList {
    let next = batch.records.last().map_or(after, |record| record.seq.0);
    EventList { events: batch.records.iter().map(EventView::from).collect(), next }
}

fn wanted(summary: &Summary, seen: SeenState, all: bool, repository: Option<&AbsPath>) -> bool {
    let decided = matches!(summary.disposition, Disposition::Applied | Disposition::Discarded);
    (all || seen != SeenState::Finished || !decided)
        && repository.is_none_or(|common_dir| summary.repository.common_dir == *common_dir)
}

fn newer(id: &JobId, format: u64) -> UnreadableJob {
    let message = format!("job {id} was written by a newer pactify (format {format})");
    let failure = Failure::new(FailureCode::StoreNewer, message, "use the newer pactify for this job");
    UnreadableJob { job_id: id.to_string(), failure }
}

fn damaged(id: &JobId, reason: String) -> UnreadableJob {
    let next = "the job's tree is untouched: take what you need from it, or restore its files from a backup";
    UnreadableJob { job_id: id.to_string(), failure: Failure::new(FailureCode::StoreDamaged, reason, next) }
}

fn cursor(text: &str) -> Result<JobId, Failure> {
    text.parse().map_err(|_| invalid(format!("cursor: {text:?} is not one of ours")))
}

fn detail(snapshot: &JobSnapshot, seen: SeenState) -> JobDetail {
    view::detail(shown(&snapshot.summary(), seen), &snapshot.spec, &snapshot.state)
}

fn shown(summary: &Summary, seen: SeenState) -> JobSummary {
    JobSummary {
        id: summary.id.to_string(),
        title: summary.title.clone(),
        harness: summary.harness.to_string(),
        model: summary.model.clone(),
        access: summary.access,
        in_place: summary.place == Place::Checkout,
        repository: view::file_uri(summary.repository.worktree.as_path()),
        base: BaseView { kind: summary.base.kind, commit: summary.base.commit.to_string() },
        state: seen,
        outcome: summary.outcome,
        disposition: summary.disposition,
        created_at: summary.created_at,
        started_at: summary.started_at,
        ended_at: summary.ended_at,
        decided_at: summary.decided_at,
        activity: summary.activity.clone(),
        waiting: summary.waiting.as_ref().map(view::waiting),
        waiting_more: summary.waiting_more,
        changes: summary.totals,
        usage: summary.usage,
        notices: summary.notices.clone(),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::FileExt as _;

    use pactify_core::job::event::Known;

    use super::*;
    use crate::env::{Directories, Env};
    use crate::store::fixture::{Home, append, ended, message, started};

    fn jobs(home: &Home) -> Jobs {
        let directories = Directories::under(home.store.home()).with_pactify_home(home.store.home().clone());
        Jobs::open(Env::from_values(Default::default(), directories)).unwrap()
    }

    #[test]
    fn whoever_reads_on_does_not_read_again_what_was_read() {
        let home = Home::new();
        let (job, mut journal) = home.journal();
        let jobs = jobs(&home);
        (0..8).for_each(|number| append(&mut journal, message(&format!("message {number}"))));
        let numbers = |after, limit| {
            let params = EventsParams { job_id: job.id().to_string(), after: Some(after), limit: Some(limit) };
            let list = jobs.events(&params).unwrap();
            (list.events.iter().map(|event| event.seq).collect::<Vec<_>>(), list.next)
        };
        assert_eq!(numbers(0, 2), (vec![1, 2], 2));
        assert_eq!((numbers(4, 2), numbers(1, 2)), ((vec![5, 6], 6), (vec![2, 3], 3)), "forwards and back");
        assert_eq!(numbers(3, 3), (vec![4, 5, 6], 6));
        // Damage shows to whoever comes by it.
        let file = std::fs::File::options().write(true).open(job.journal()).unwrap();
        let second_line = std::fs::read(job.journal()).unwrap().iter().position(|byte| *byte == b'\n').unwrap() + 1;
        file.write_at(b"damaged", second_line as u64).unwrap();
        assert_eq!(numbers(6, 100), (vec![7, 8], 8));
        let waited = jobs.await_events(job.id(), 8, Duration::ZERO).unwrap();
        assert!(waited.events.is_empty() && waited.next == 8);
        assert_eq!(numbers(0, 100).0, [0; 0]);
    }

    #[test]
    fn a_finished_job_is_written_once_and_anew_when_its_journal_grows() {
        let home = Home::new();
        let (job, mut journal) = home.journal();
        let jobs = jobs(&home);
        let told = || jobs.status_json(job.id()).unwrap();
        append(&mut journal, started());
        append(&mut journal, message("at work"));
        assert!(!Arc::ptr_eq(&told(), &told()), "whether its host lives has to be looked at each time");
        append(&mut journal, ended());
        let finished = told();
        assert!(Arc::ptr_eq(&finished, &told()));
        let status = JobStatus { job: jobs.status(job.id()).unwrap() };
        assert_eq!(finished.get(), serde_json::to_string(&status).unwrap());
        append(&mut journal, Known::Discarded);
        assert!(told().get().contains(r#""disposition":"discarded""#), "{}", told().get());
    }
}
