//! Putting results into the checkout: preview id, checks, apply, record — in this order, under two locks.
//!
//! What is accepted by an apply is written down as a tree before the apply itself ([`crate::git::accepted`]); the
//! apply's own record and the journal both name it. Parts and merges come from [`super::offer`] and [`super::merge`].
//!
//! The job's lock makes this process the only writer of its journal, the repository's lock the only writer of the
//! checkout. What an interrupted apply left is repaired first. An apply that was completed but not recorded (its
//! process died in between) is recorded by the next one.

use std::collections::{BTreeMap, BTreeSet};

use pactify_core::change::Entry;
use pactify_core::change::group::GroupId;
use pactify_core::change::plan::{CheckedPlan, Selection};
use pactify_core::failure::{Conflict, ConflictKind};
use pactify_core::job::RepositoryRecord;
use pactify_core::job::event::Known;
use pactify_core::job::outcome::Disposition;
use pactify_core::path::PathName;
use pactify_core::protocol::{Applied, ApplyParams};
use pactify_core::{AbsPath, Failure, FailureCode, JobId, ObjectId, RepoPath, display};

use super::dispose::{BUSY, refuse_survived};
use super::offer::{Chosen, Offer};
use super::outside::refuse_unless_settled;
use super::preview::Captured;
use super::scene::{InCheckout, Scene};
use super::{Jobs, invalid, job_id};
use crate::apply::unsaved::unsaved;
use crate::apply::{self, ApplyError, ApplyId, Materials, RepositoryLock};
use crate::git::{CheckoutForm, Places};
use crate::journal::Journal;

impl Jobs {
    /// Puts a result into the checkout: all that was chosen, or nothing.
    pub fn apply(&self, params: &ApplyParams) -> Result<Applied, Failure> {
        let job = job_id(&params.job_id)?;
        let wish = Wish::read(params)?;
        let mut journal = self.own(&job, "apply")?;
        refuse_survived(&journal, "apply")?;
        refuse_discarded(&job, &journal)?;
        refuse_unless_settled(&journal, params)?;

        let lock = RepositoryLock::acquire(self.store(), &journal.spec().repository, BUSY)?;
        self.settle(&mut journal, &lock)?;

        let result = self.result(&job)?;
        refuse_unless_shown(&job, &result, &params.change_set)?;
        let places = Places::from(&self.store().job(&job)?);
        let mut offer = Offer::of(&result);
        let unsaved = unsaved(self.store(), &result.spec.repository)?;
        let form = self.form(&places, &offer)?;
        let plan = plan(&mut offer, &form, wish, unsaved)?;

        let merged = plan.actions().iter().filter(|action| action.merged).map(|action| action.path.path().clone());
        let merged: Vec<PathName> = merged.map(PathName::from).collect();
        let accepted = self.accept(&places, &result, &plan, &offer)?;
        let id = next_apply(&journal, &lock)?;
        let canonical = InCheckout { form: &form, offer: &offer };
        let materials = Materials { contents: &offer, canonical: &canonical };
        let applied = apply::apply(plan.accepting(accepted), &id, materials, &lock)?;
        self.record_applied(&mut journal, &applied)?;
        Ok(Applied {
            apply: id.number,
            applied: applied.written.into_iter().map(PathName::from).collect(),
            merged,
            already: applied.already.into_iter().map(PathName::from).collect(),
            disposition: journal.state().disposition,
        })
    }

    /// Writes down what is accepted once `plan` is done: before it is done, so that no crash can lose it.
    fn accept(
        &self,
        places: &Places,
        result: &Captured,
        plan: &CheckedPlan,
        offer: &Offer<'_>,
    ) -> Result<ObjectId, Failure> {
        let before = result.accepted.as_ref().unwrap_or(&result.set.base_tree);
        let mut entries = plan.accepts().clone();
        for change in &result.set.changes {
            let had = offer.had(change);
            let facts = |entry: &Option<Entry>| entry.as_ref().map(|entry| (entry.mode, entry.object.clone()));
            if entries.get(&change.path).is_some_and(|entry| facts(entry) == facts(&had)) {
                entries.remove(&change.path);
            }
        }
        if entries.is_empty() {
            return Ok(before.clone());
        }
        let store =
            self.git()?.accept(places, &result.spec.repository, &result.spec.base, result.accepted.is_some())?;
        Ok(store.advance(before, &entries, &result.objects, |object| offer.made(object))?)
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
    pub(super) fn settle(&self, journal: &mut Journal, lock: &RepositoryLock) -> Result<(), Failure> {
        let mut left = Vec::new();
        let mut kept = String::new();
        for repaired in apply::recover(lock)? {
            tracing::warn!(apply = %repaired.apply, left = repaired.rolled_back.left.len(), "an interrupted apply was taken back");
            if let Some(stage) = repaired.kept {
                kept = format!(" (the contents from before are in {})", stage.display());
            }
            let why = "you edited it after an apply that was interrupted: it was left as it is";
            left.extend(
                repaired.rolled_back.left.iter().map(|path| Conflict::new(path, ConflictKind::ContentDiffers, why)),
            );
        }
        self.record_finished(journal, lock)?;
        if left.is_empty() {
            return Ok(());
        }
        let edited = display::counted(left.len() as u64, "path");
        let message = format!("an interrupted apply was taken back, but for {edited} that you edited{kept}");
        let next = "look at these paths, then run the command again: it goes on from what is there";
        Err(Failure::new(FailureCode::ApplyConflict, display::neutral(&message), next).with_conflicts(left))
    }

    /// Deletes what was kept for undoing the job's applies. What cannot be deleted stays, and is in nobody's way.
    ///
    /// # Errors
    /// When somebody else works in the repository for too long; nothing is deleted then.
    pub(super) fn forget_applies(
        &self,
        repository: &RepositoryRecord,
        journal: &Journal,
        job: &JobId,
    ) -> Result<(), Failure> {
        let applies = journal.state().applies.last();
        if applies == 0 {
            return Ok(());
        }
        let lock = RepositoryLock::acquire(self.store(), repository, BUSY)?;
        let forgotten =
            (1..=applies).try_for_each(|number| apply::forget(&lock, &ApplyId { job: job.clone(), number }));
        if let Err(error) = forgotten {
            tracing::warn!(%job, %error, "old contents of a discarded job's applies are kept");
        }
        Ok(())
    }

    /// Records applies that were completed, or taken back, by a process that ended before it could.
    fn record_finished(&self, journal: &mut Journal, lock: &RepositoryLock) -> Result<(), Failure> {
        while let Some(applied) = apply::finished(lock, &next_apply(journal, lock)?)? {
            self.record_applied(journal, &applied)?;
        }
        self.record_undone(journal, lock)
    }

    fn record_applied(&self, journal: &mut Journal, applied: &apply::Applied) -> Result<(), Failure> {
        let event = Known::Applied {
            apply: applied.apply.number,
            change_set: applied.change_set.clone(),
            complete: applied.complete,
            accepted: applied.accepted.clone(),
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

/// Holds what is wanted of a result against the checkout.
///
/// # Errors
/// With every conflict, when one path cannot be had as it was chosen.
pub(super) fn plan(
    offer: &mut Offer<'_>,
    form: &CheckoutForm,
    wish: Wish,
    unsaved: Vec<RepoPath>,
) -> Result<CheckedPlan, Failure> {
    let set = &offer.result().set;
    let mut scene = Scene::of(form, offer, &wish.groups, unsaved)?;
    scene.grounds.shown = wish.shown;
    scene.merge(&wish.selection, offer)?;
    let plan = set.check(&wish.selection, &scene.grounds, &scene.checkout).map_err(ApplyError::Conflicts)?;
    scene.merging().keep(&plan, offer)?;
    Ok(plan)
}

fn next_apply(journal: &Journal, lock: &RepositoryLock) -> Result<ApplyId, ApplyError> {
    let mut id = ApplyId { job: journal.lock().job().id().clone(), number: journal.state().applies.last() + 1 };
    while apply::is_left(lock, &id)? {
        id.number += 1;
    }
    Ok(id)
}

/// What the person wants, understood.
pub(super) struct Wish {
    selection: Selection,
    groups: Chosen,
    shown: BTreeMap<RepoPath, ObjectId>,
}

impl Wish {
    pub(super) fn read(params: &ApplyParams) -> Result<Self, Failure> {
        let parse = |field: &str, name: &PathName| {
            RepoPath::try_from(name.clone()).map_err(|error| invalid(format!("{field}: {error}")))
        };
        let shown = params.confirm_merges.iter().map(|merge| {
            let object = merge.object.parse().map_err(|error| invalid(format!("confirmMerges: {error}")))?;
            Ok((parse("confirmMerges", &merge.path)?, object))
        });
        let shown = shown.collect::<Result<_, Failure>>()?;
        let Some(select) = &params.select else {
            let confirmed = params.confirm_sensitive.iter().map(|name| parse("confirmSensitive", name));
            let selection = Selection::All { confirmed: confirmed.collect::<Result<_, _>>()? };
            return Ok(Self { selection, groups: Chosen::new(), shown });
        };
        if select.is_empty() {
            return Err(invalid("select: name at least one path, or leave it out"));
        }
        let mut groups = Chosen::new();
        let mut paths = BTreeSet::new();
        for selected in select {
            let path = parse("select", &selected.path)?;
            let named = match &selected.groups {
                None => &[GroupId::Whole][..],
                Some(named) if named.is_empty() => {
                    return Err(invalid(format!("select: name at least one part of {path}, or leave `groups` out")));
                }
                Some(named) => named,
            };
            groups.entry(path.clone()).or_default().extend(named);
            paths.insert(path);
        }
        Ok(Self { selection: Selection::Paths(paths.into_iter().collect()), groups, shown })
    }
}

fn refuse_discarded(job: &JobId, journal: &Journal) -> Result<(), Failure> {
    if journal.state().disposition == Disposition::Discarded {
        let message = format!("job {job} was discarded");
        return Err(Failure::new(FailureCode::WrongState, message, "retry the job to get a new result"));
    }
    Ok(())
}

fn refuse_unless_shown(job: &JobId, result: &Captured, shown: &str) -> Result<(), Failure> {
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
