//! Putting results into the checkout: preview id, checks, apply, record — in this order, under two locks.
//!
//! The job's lock makes this process the only writer of its journal, the repository's lock the only writer of the
//! checkout. What an interrupted apply left is repaired first. An apply that was completed but not recorded (its process
//! died in between) is recorded by the next one.

use std::io;

use pactify_core::change::plan::Selection;
use pactify_core::job::event::Known;
use pactify_core::job::outcome::Disposition;
use pactify_core::path::PathName;
use pactify_core::protocol::{Applied, ApplyParams};
use pactify_core::{AbsPath, Failure, FailureCode, JobId, ObjectId, RepoPath};

use super::dispose::BUSY;
use super::preview::Captured;
use super::{Jobs, invalid, job_id};
use crate::apply::{self, ApplyError, ApplyId, Contents, Materials, RepositoryLock, Verbatim};
use crate::git::{Objects, capture};
use crate::host;
use crate::journal::Journal;

impl Jobs {
    /// Puts a result into the checkout: all that was chosen, or nothing.
    pub fn apply(&self, params: &ApplyParams) -> Result<Applied, Failure> {
        let job = job_id(&params.job_id)?;
        let selection = selection(params)?;
        let mut journal = self.own(&job, "apply")?;
        let result = self.result(&job)?;
        refuse_unless_shown(&job, &result, &journal, &params.change_set)?;

        let lock = RepositoryLock::acquire(self.store().home(), &result.spec.repository, BUSY)?;
        for repaired in apply::recover(&lock)? {
            tracing::warn!(apply = %repaired.apply, left = repaired.rolled_back.left.len(), "an interrupted apply was taken back");
        }

        let checkout = apply::observe(&result.spec.repository, &result.set, &Verbatim, Vec::new())?;
        let plan = result.set.check(&selection, &checkout).map_err(ApplyError::Conflicts)?;
        let (already, complete) = (plan.already().to_vec(), plan.is_complete());
        let id = ApplyId { job, number: journal.state().applies + 1 };
        let contents = Captures(&result.objects);
        let applied = apply::apply(plan, &id, Materials { contents: &contents, canonical: &Verbatim }, &lock)?;
        self.record_applied(&mut journal, &id, &result, complete, &applied.written)?;
        Ok(Applied {
            apply: id.number,
            applied: applied.written.into_iter().map(PathName::from).collect(),
            already: already.into_iter().map(PathName::from).collect(),
            disposition: journal.state().disposition,
        })
    }

    /// Tells every other pactify process which files this editor holds unsaved text for, until this process ends.
    pub fn publish_unsaved(&self, _paths: &[AbsPath]) -> Result<(), Failure> {
        Ok(())
    }

    fn record_applied(
        &self,
        journal: &mut Journal,
        id: &ApplyId,
        result: &Captured,
        complete: bool,
        written: &[RepoPath],
    ) -> Result<(), Failure> {
        let applied = Known::Applied {
            apply: id.number,
            change_set: result.set.id.clone(),
            complete,
            paths: written.iter().map(RepoPath::display).collect(),
        };
        let attempt = self.last_attempt(journal)?;
        journal.append(self.env().now(), attempt, applied).map_err(|error| {
            let mut failure = Failure::from(error);
            failure.message =
                format!("the changes are in your checkout, but not in the job's journal: {}", failure.message);
            failure
        })?;
        Ok(())
    }
}

/// Captured contents, for the applier.
struct Captures<'a>(&'a Objects);

impl Contents for Captures<'_> {
    fn read(&self, object: &ObjectId) -> io::Result<Vec<u8>> {
        self.0.read(object, capture::MAX_FILE_BYTES).map_err(|error| io::Error::other(host::chain(&error)))
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
