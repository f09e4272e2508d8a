//! Taking applies back: the checkout first, then the journal, then what was kept for it.

use std::collections::{BTreeMap, BTreeSet};

use pactify_core::change::Entry;
use pactify_core::job::event::Known;
use pactify_core::job::outcome::Disposition;
use pactify_core::job::state::JobState;
use pactify_core::path::PathName;
use pactify_core::protocol::{UndoParams, Undone};
use pactify_core::{Failure, FailureCode, JobId, ObjectId, RepoPath};

use super::dispose::{BUSY, refuse_survived};
use super::{Jobs, job_id};
use crate::apply::unsaved::unsaved;
use crate::apply::{self, ApplyId, RepositoryLock};
use crate::git::Places;
use crate::journal::{Journal, Reader};

impl Jobs {
    /// Takes an apply back: every path that it wrote, or none.
    pub fn undo(&self, params: &UndoParams) -> Result<Undone, Failure> {
        let job = job_id(&params.job_id)?;
        let mut journal = self.own(&job, "undo")?;
        refuse_survived(&journal, "undo")?;
        let repository = journal.spec().repository.clone();
        let lock = RepositoryLock::acquire(self.store(), &repository, BUSY)?;
        self.settle(&mut journal, &lock)?;
        let number = chosen(&job, journal.state(), params.apply_id)?;
        let unsaved = unsaved(self.store(), &repository)?;
        let undone = apply::undo(&ApplyId { job, number }, &unsaved, &lock)?;
        self.record_undone(&mut journal, &lock)?;
        Ok(Undone {
            apply: number,
            restored: undone.restored.into_iter().map(PathName::from).collect(),
            disposition: journal.state().disposition,
        })
    }

    /// Records the job's applies that are taken back, and deletes what was kept for that.
    pub(super) fn record_undone(&self, journal: &mut Journal, lock: &RepositoryLock) -> Result<(), Failure> {
        let job = journal.lock().job().id().clone();
        for apply in apply::undone(lock, &job)? {
            if journal.state().applies.standing().contains(&apply.number) {
                let event =
                    Known::Undone { apply: apply.number, accepted: self.accepted_without(journal, apply.number)? };
                let attempt = self.last_attempt(journal)?;
                journal.append(self.env().now(), attempt, event).map_err(|error| {
                    let mut failure = Failure::from(error);
                    failure.message = format!(
                        "your checkout is as before, but the job's journal does not say so: {}",
                        failure.message
                    );
                    failure
                })?;
            }
            apply::forget(lock, &apply)?;
        }
        Ok(())
    }

    /// The tree of what the person accepted, without what the apply `number` added to it: where nothing was accepted
    /// since, the tree of before; else that of now, in which the paths that only this apply concerns are as before it.
    fn accepted_without(&self, journal: &Journal, number: u32) -> Result<Option<ObjectId>, Failure> {
        let (before, after) = around(journal, number)?;
        let now = journal.state().accepted.clone();
        let (Some(after), Some(now)) = (after, now) else { return Ok(before) };
        if after == now {
            return Ok(before);
        }
        let base = &journal.spec().base;
        let places = Places::from(journal.lock().job());
        let before = before.unwrap_or_else(|| base.tree.clone());
        let store = self.git()?.accept(&places, &journal.spec().repository, base, true)?;
        let since: BTreeSet<RepoPath> = store.changes(&after, &now)?.into_iter().map(|change| change.path).collect();
        let own = store.changes(&before, &after)?.into_iter().filter(|change| !since.contains(&change.path));
        let entries: BTreeMap<RepoPath, Option<Entry>> = own.map(|change| (change.path, change.old)).collect();
        let objects = self.git()?.objects(&places.accepted(), &base.tree)?;
        Ok(Some(store.advance(&now, &entries, &objects, |_| None)?))
    }
}

/// The trees of what was accepted just before and just after an apply.
fn around(journal: &Journal, number: u32) -> Result<(Option<ObjectId>, Option<ObjectId>), Failure> {
    let records = Reader::open(journal.lock().job())?.read(usize::MAX)?.records;
    let mut state = JobState::default();
    for record in &records {
        if let Some(Known::Applied { apply, accepted, .. }) = record.event.meaning().as_deref()
            && *apply == number
        {
            return Ok((state.accepted, accepted.clone()));
        }
        state.apply(record);
    }
    Err(Failure::internal(format!("the journal tells of no apply {number}")))
}

/// Which apply is meant.
fn chosen(job: &JobId, state: &JobState, wanted: Option<u32>) -> Result<u32, Failure> {
    let refused = |message: String, next: &str| Err(Failure::new(FailureCode::WrongState, message, next));
    if state.disposition == Disposition::Discarded {
        let message = format!("job {job} was discarded, and with it what its applies had replaced");
        return refused(message, "take the old contents from git, or from your editor's history");
    }
    let standing = state.applies.standing();
    match (wanted, standing.last()) {
        (None, Some(newest)) => Ok(*newest),
        (Some(number), _) if standing.contains(&number) => Ok(number),
        (_, None) => refused(format!("nothing of job {job} is applied"), "nothing needs to be undone"),
        (Some(number), Some(_)) => {
            let standing: Vec<_> = standing.iter().map(ToString::to_string).collect();
            let message = format!("job {job} has no apply {number} that stands");
            refused(message, &format!("undo one that does: {}", standing.join(", ")))
        }
    }
}
