//! Putting results into the checkout: preview id, checks, apply, record — in this order, under two locks.
//!
//! The job's lock makes this process the only writer of its journal, the repository's lock the only writer of the
//! checkout. What an interrupted apply left is repaired first. An apply that was completed but not recorded (its process
//! died in between) is recorded by the next one.

use std::io;

use pactify_core::change::plan::Selection;
use pactify_core::job::RepositoryRecord;
use pactify_core::job::event::Known;
use pactify_core::job::outcome::Disposition;
use pactify_core::path::PathName;
use pactify_core::protocol::{Applied, ApplyParams};
use pactify_core::{AbsPath, Failure, FailureCode, JobId, ObjectId, RepoPath};

use super::dispose::BUSY;
use super::preview::Captured;
use super::{Jobs, invalid, job_id};
use crate::apply::unsaved::unsaved;
use crate::apply::{self, ApplyError, ApplyId, Canonical, Contents, Materials, RepositoryLock};
use crate::causes::with_causes;
use crate::git::{CheckoutForm, Objects, Places, capture};
use crate::journal::Journal;

impl Jobs {
    /// Puts a result into the checkout: all that was chosen, or nothing.
    pub fn apply(&self, params: &ApplyParams) -> Result<Applied, Failure> {
        let job = job_id(&params.job_id)?;
        let selection = selection(params)?;
        let mut journal = self.own(&job, "apply")?;
        let result = self.result(&job)?;
        refuse_unless_shown(&job, &result, &journal, &params.change_set)?;

        let lock = RepositoryLock::acquire(self.store(), &result.spec.repository, BUSY)?;
        self.settle(&mut journal, &lock)?;

        let unsaved = unsaved(self.store(), &result.spec.repository)?;
        let places = Places::from(&self.store().job(&job)?);
        let form = InCheckout(self.git()?.checkout_form(&places, &result.spec.base, &result.set)?);
        let checkout = apply::observe(&result.spec.repository, &result.set, &form, unsaved)?;
        let plan = result.set.check(&selection, &checkout).map_err(ApplyError::Conflicts)?;
        let id = next_apply(&journal, &job);
        let contents = Captures(&result.objects);
        let applied = apply::apply(plan, &id, Materials { contents: &contents, canonical: &form }, &lock)?;
        self.record_applied(&mut journal, &applied)?;
        Ok(Applied {
            apply: id.number,
            applied: applied.written.into_iter().map(PathName::from).collect(),
            already: applied.already.into_iter().map(PathName::from).collect(),
            disposition: journal.state().disposition,
        })
    }

    /// Tells every other pactify process which files this editor holds unsaved text for, until this process ends.
    pub fn publish_unsaved(&self, paths: &[AbsPath]) -> Result<(), Failure> {
        Ok(self.publisher()?.publish(paths)?)
    }

    /// Makes sure that what is about to be given up is in the checkout whole or not at all.
    pub(super) fn settle_applies(&self, repository: &RepositoryRecord, journal: &mut Journal) -> Result<(), Failure> {
        if !repository.worktree.as_path().is_dir() {
            return Ok(());
        }
        let lock = RepositoryLock::acquire(self.store(), repository, BUSY)?;
        self.settle(journal, &lock)
    }

    /// Takes interrupted applies back, and records completed ones.
    fn settle(&self, journal: &mut Journal, lock: &RepositoryLock) -> Result<(), Failure> {
        for repaired in apply::recover(lock)? {
            tracing::warn!(apply = %repaired.apply, left = repaired.rolled_back.left.len(), "an interrupted apply was taken back");
        }
        self.record_finished(journal, lock)
    }

    /// Deletes what was kept for undoing the job's applies. What cannot be deleted stays, and is in nobody's way.
    pub(super) fn forget_applies(&self, repository: &RepositoryRecord, journal: &Journal, job: &JobId) {
        let forgotten = RepositoryLock::acquire(self.store(), repository, BUSY).and_then(|lock| {
            (1..=journal.state().applies)
                .try_for_each(|number| apply::forget(&lock, &ApplyId { job: job.clone(), number }))
        });
        if let Err(error) = forgotten {
            tracing::warn!(%job, %error, "old contents of a discarded job's applies are kept");
        }
    }

    /// Records applies that were completed by a process that ended before it could.
    fn record_finished(&self, journal: &mut Journal, lock: &RepositoryLock) -> Result<(), Failure> {
        let job = journal.lock().job().id().clone();
        while let Some(applied) = apply::finished(lock, &next_apply(journal, &job))? {
            self.record_applied(journal, &applied)?;
        }
        Ok(())
    }

    fn record_applied(&self, journal: &mut Journal, applied: &apply::Applied) -> Result<(), Failure> {
        let event = Known::Applied {
            apply: applied.apply.number,
            change_set: applied.change_set.clone(),
            complete: applied.complete,
            accepted: None,
            paths: applied.written.iter().map(RepoPath::display).collect(),
        };
        let attempt = self.last_attempt(journal)?;
        journal.append(self.env().now(), attempt, event).map_err(|error| {
            let mut failure = Failure::from(error);
            failure.message =
                format!("the changes are in your checkout, but not in the job's journal: {}", failure.message);
            failure
        })?;
        Ok(())
    }
}

fn next_apply(journal: &Journal, job: &JobId) -> ApplyId {
    ApplyId { job: job.clone(), number: journal.state().applies + 1 }
}

/// Captured contents, for the applier.
struct Captures<'a>(&'a Objects);

impl Contents for Captures<'_> {
    fn read(&self, object: &ObjectId) -> io::Result<Vec<u8>> {
        self.0.read(object, capture::MAX_FILE_BYTES).map_err(|error| io::Error::other(with_causes(&error)))
    }
}

/// The form that the checkout gives to them, for the applier.
struct InCheckout(CheckoutForm);

impl Canonical for InCheckout {
    fn to_stored(&self, path: &RepoPath, bytes: &[u8]) -> io::Result<Option<ObjectId>> {
        self.0.stored(path, bytes).map_err(|error| io::Error::other(with_causes(&error)))
    }

    fn to_checkout(&self, path: &RepoPath, object: &ObjectId) -> io::Result<Option<Vec<u8>>> {
        self.0.checked_out(path, object).map_err(|error| io::Error::other(with_causes(&error)))
    }

    fn is_converted(&self, path: &RepoPath, object: &ObjectId) -> io::Result<bool> {
        self.0.is_converted(path, object).map_err(|error| io::Error::other(with_causes(&error)))
    }

    fn trusts_executable_bit(&self) -> bool {
        self.0.trusts_executable_bit()
    }
}

fn selection(params: &ApplyParams) -> Result<Selection, Failure> {
    let paths = |names: &[PathName]| {
        let parse =
            |name: &PathName| RepoPath::try_from(name.clone()).map_err(|error| invalid(format!("path: {error}")));
        names.iter().map(parse).collect::<Result<Vec<_>, _>>()
    };
    Ok(match &params.select {
        None => Selection::All { confirmed: paths(&params.confirm_sensitive)? },
        Some(selected) if selected.is_empty() => {
            return Err(invalid("select: name at least one path, or leave it out"));
        }
        Some(selected) => Selection::Paths(paths(selected)?),
    })
}

fn refuse_unless_shown(job: &JobId, result: &Captured, journal: &Journal, shown: &str) -> Result<(), Failure> {
    if journal.state().disposition == Disposition::Discarded {
        let message = format!("job {job} was discarded");
        return Err(Failure::new(FailureCode::WrongState, message, "retry the job to get a new result"));
    }
    if result.set.id.as_str() != shown {
        return Err(Failure::new(
            FailureCode::StalePreview,
            format!("job {job} has the result {}, and the preview showed {shown:?}", result.set.id),
            "look at the preview again, then apply what it shows",
        ));
    }
    if result.set.changes.is_empty() {
        let message = format!("job {job} changed nothing");
        return Err(Failure::new(FailureCode::NothingToApply, message, "nothing needs to be done"));
    }
    Ok(())
}
