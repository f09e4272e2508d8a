//! Making room: trees of decided jobs, then whole records, and what belongs to no job any more.
//!
//! What goes is decided in `pactify_core::retention`. Each job is locked while it goes, and looked at once more under
//! the lock; one that somebody works in, or that cannot be removed, stays and says why. Only what the store itself
//! records is touched: a ref or a registration in a person's repository goes with its job, never because its job is
//! unknown here (another `PACTIFY_HOME` may know it).

use pactify_core::config::Settings;
use pactify_core::job::event::Known;
use pactify_core::job::state::{Phase, SeenState};
use pactify_core::protocol::{PruneItem, PruneParams, Pruned};
use pactify_core::retention::{Facts, Fate, Policy, decide};
use pactify_core::{Failure, FailureCode, JobId};

use super::dispose::BUSY;
use super::left::Left;
use super::{Jobs, job_id};
use crate::apply;
use crate::causes::with_causes;
use crate::config;
use crate::git::Places;
use crate::journal::Journal;
use crate::journal::summary::Summary;
use crate::store::Listed;
use crate::tree::{Trash, size};

/// What is kept where neither the person nor the configuration says so.
const AGE_SECONDS: u64 = 30 * DAY;
const DAY: u64 = 24 * 60 * 60;

/// What to do about a job that is not what it was when the prune looked at it.
const LOOK: &str = "look at it; apply the rest of it, or discard it";

impl Jobs {
    /// Tells what a prune would do, or does it.
    pub fn prune(&self, params: &PruneParams) -> Result<Pruned, Failure> {
        self.refuse_inside_a_job()?;
        self.prune_by(params, &policy(params, &config::load(self.env())?)?)
    }

    fn prune_by(&self, params: &PruneParams, policy: &Policy) -> Result<Pruned, Failure> {
        let mut pruned = Pruned { jobs: Vec::new(), bytes: 0, orphans: 0 };
        let jobs = self.jobs_to_decide()?;
        for (job, fate) in
            decide(&jobs.iter().map(|job| job.facts.clone()).collect::<Vec<_>>(), policy, self.env().now())
        {
            let of = jobs.iter().find(|known| known.facts.id == job);
            let title = of.map(|known| known.title.clone()).unwrap_or_default();
            let lost = of.filter(|_| fate.goes()).map(|known| known.lost.clone()).unwrap_or_default();
            let was_shown = params.shown.as_ref().is_none_or(|shown| shown.iter().any(|shown| shown == job.as_str()));
            if fate.goes() && !was_shown {
                continue;
            }
            let bytes = if fate.goes() { unless_gone(self.room(&job, fate))? } else { Some(0) };
            let Some(bytes) = bytes else { continue };
            let (job_id, why) = (job.to_string(), fate.why().to_owned());
            let mut item = PruneItem { job_id, title, fate, why, lost, bytes, failure: None };
            if fate.goes() && !params.dry_run {
                match unless_gone(self.remove_part(&job, fate, policy)) {
                    Ok(Some(())) => {}
                    Ok(None) => continue,
                    Err(failure) => item.failure = Some(failure),
                }
            }
            if item.failure.is_none() {
                pruned.bytes += item.bytes;
            }
            pruned.jobs.push(item);
        }
        if !params.dry_run {
            pruned.orphans = self.remove_orphans();
            Trash::open(self.store().home())?.empty()?;
        }
        Ok(pruned)
    }

    /// Prunes as the configuration says; nothing where it says nothing. Called when a server starts.
    pub fn prune_as_configured(&self) -> Result<(), Failure> {
        let settings = config::load(self.env())?;
        if settings.retention_age_days.is_none() && settings.retention_keep_jobs.is_none() {
            return Ok(());
        }
        self.refuse_inside_a_job()?;
        let unasked = PruneParams::default();
        let policy = Policy { keep_ignored: !settings.retention_ignored_files, ..policy(&unasked, &settings)? };
        let pruned = self.prune_by(&unasked, &policy)?;
        for item in pruned.jobs {
            if let Some(failure) = item.failure {
                tracing::warn!(job = item.job_id, %failure, "a job is not pruned");
            }
        }
        Ok(())
    }

    /// Bytes on the disk below `PACTIFY_HOME`.
    pub(super) fn disk_use(&self) -> u64 {
        size(self.store().home().as_path())
    }

    /// Every job, newest first, with its title. Damaged ones and those of a newer pactify are nothing to decide about.
    fn jobs_to_decide(&self) -> Result<Vec<ToDecide>, Failure> {
        let mut jobs = Vec::new();
        let mut after = None;
        loop {
            let page = self.store().list(after.as_ref(), 500)?;
            for listed in page.jobs {
                if let Listed::Job { summary, seen } = listed {
                    jobs.extend(unless_gone(self.facts_of(&summary, seen))?);
                }
            }
            match page.next {
                None => return Ok(jobs),
                next => after = next,
            }
        }
    }

    fn facts_of(&self, summary: &Summary, seen: SeenState) -> Result<ToDecide, Failure> {
        let changed = summary.totals.is_some_and(|totals| totals.files > 0);
        let job = self.store().job(&summary.id)?;
        let has_tree = job.tree().as_path().symlink_metadata().is_ok();
        // A summary does not tell it; the journal is read only where something may go.
        let left = match (seen, has_tree) {
            (SeenState::Finished, true) => Left::of(&job, &self.store().state(&summary.id)?.state),
            _ => Left::default(),
        };
        let facts = Facts {
            id: summary.id.clone(),
            is_over: seen == SeenState::Finished,
            is_undecided: changed && summary.disposition.is_open(),
            has_tree,
            holds: left.holds,
            at: summary.ended_at.unwrap_or(summary.created_at),
        };
        Ok(ToDecide { facts, title: summary.title.clone(), lost: left.told })
    }

    /// How much room goes.
    fn room(&self, job: &JobId, fate: Fate) -> Result<u64, Failure> {
        let dir = self.store().job(job)?;
        let places = Places::from(&dir);
        Ok(match fate {
            Fate::Record => size(dir.path().as_path()),
            _ => [dir.tree(), places.git(), places.look(), dir.home(), dir.tmp()]
                .iter()
                .map(|path| size(path.as_path()))
                .sum(),
        })
    }

    fn remove_part(&self, job: &JobId, fate: Fate, policy: &Policy) -> Result<(), Failure> {
        let mut journal = Journal::open(self.store().job(job)?.lock(BUSY)?)?;
        let state = journal.state();
        if state.phase != Phase::Finished {
            return Err(super::dispose::still_going(job, "prune", SeenState::Running));
        }
        super::dispose::refuse_survived(&journal, "prune")?;
        self.refuse_unmeant(job, fate, policy)?;
        let repository = journal.spec().repository.clone();
        self.settle_applies(&repository, &mut journal)?;
        let trash = Trash::open(self.store().home())?;
        let had_tree = journal.state().tree.is_some();
        self.take_tree(&journal, &trash)?;
        if fate == Fate::Tree {
            if had_tree {
                let attempt = self.last_attempt(&journal)?;
                journal.append(self.env().now(), attempt, Known::TreeRemoved)?;
            }
            return Ok(());
        }
        // The record is the last to go: as long as it is there, whoever is interrupted here can go on.
        self.release(&journal, &Places::from(journal.lock().job()))?;
        self.forget_applies(&repository, &journal, job)?;
        self.remove_patch_file(job)?;
        trash.take(journal.lock().job().path())?;
        Ok(())
    }

    /// What became of the job since it was looked at decides: it may have gone on. The caller holds its lock.
    fn refuse_unmeant(&self, job: &JobId, meant: Fate, policy: &Policy) -> Result<(), Failure> {
        let Some(Listed::Job { summary, seen }) = self.store().describe(job)? else {
            let next = "see what is wrong with it with `pactify sub doctor`";
            return Err(Failure::new(FailureCode::WrongState, format!("job {job} cannot be read"), next));
        };
        // How many are newer was decided for all of them at once.
        let policy = Policy { keep_jobs: 0, ..policy.clone() };
        let now = decide(&[self.facts_of(&summary, seen)?.facts], &policy, self.env().now());
        match (meant, now.first().map(|(_, fate)| *fate)) {
            (meant, Some(now)) if now == meant => Ok(()),
            // No more than may go.
            (Fate::Tree, Some(Fate::Record | Fate::NoTree)) => Ok(()),
            (_, Some(now)) if !now.goes() => {
                Err(Failure::new(FailureCode::WrongState, format!("job {job} {}", now.why()), LOOK))
            }
            _ => {
                let message = format!("job {job} changed since it was looked at: it stays");
                Err(Failure::new(FailureCode::WrongState, message, "prune again"))
            }
        }
    }

    /// Deletes what is recorded of applies of jobs that are gone, with the old contents that were kept for them.
    fn remove_orphans(&self) -> u32 {
        let is_gone = |job: &JobId| matches!(self.store().describe(job), Ok(None));
        match apply::forget_of(self.store(), BUSY, &is_gone) {
            Ok(count) => count,
            Err(error) => {
                tracing::warn!(error = with_causes(&error), "records of applies without a job are kept");
                0
            }
        }
    }
}

/// A job with what is told of it.
struct ToDecide {
    facts: Facts,
    title: String,
    /// What its tree has and nothing else.
    lost: Vec<String>,
}

/// Nothing, where another process removed the job meanwhile: what was to become of it has.
fn unless_gone<T>(done: Result<T, Failure>) -> Result<Option<T>, Failure> {
    match done {
        Err(failure) if failure.code == FailureCode::JobNotFound => Ok(None),
        done => done.map(Some),
    }
}

/// What the person says, else what the configuration says, else thirty days.
fn policy(params: &PruneParams, settings: &Settings) -> Result<Policy, Failure> {
    let configured = settings.retention_age_days.map(|days| u64::from(days) * DAY);
    let only_count = params.keep_jobs.is_some() || (configured.is_none() && settings.retention_keep_jobs.is_some());
    let age_seconds = params.older_than_seconds.or(configured).unwrap_or(if only_count { 0 } else { AGE_SECONDS });
    Ok(Policy {
        age_seconds,
        keep_jobs: params.keep_jobs.or(settings.retention_keep_jobs).map_or(0, |jobs| jobs as usize),
        unapplied: params.unapplied,
        records: params.records,
        keep_ignored: false,
        named: params.job_ids.iter().map(|id| job_id(id)).collect::<Result<_, _>>()?,
    })
}
