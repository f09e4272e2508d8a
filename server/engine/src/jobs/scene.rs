//! The checkout, looked at with a result in mind: what an apply decides on, and what a preview tells of it.

use std::io;

use pactify_core::change::plan::{Checkout, Grounds, Selection};
use pactify_core::job::state::SeenState;
use pactify_core::{Failure, JobId, ObjectId, RepoPath};

use super::Jobs;
use super::dispose::{BUSY, still_going};
use super::merge::Merging;
use super::offer::{Chosen, Offer};
use super::preview::Captured;
use crate::apply::{self, Canonical};
use crate::causes::with_causes;
use crate::git::{CheckoutForm, Places};
use crate::job_dir::JobLock;

/// What is known before anything is decided.
pub(super) struct Scene<'a> {
    result: &'a Captured,
    form: &'a CheckoutForm,
    pub(super) grounds: Grounds,
    pub(super) checkout: Checkout,
}

impl Jobs {
    /// How the contents of a result relate to those of the checkout. The caller holds the job's lock: git converts in a
    /// place of the job's.
    pub(super) fn form(&self, places: &Places, offer: &Offer<'_>) -> Result<CheckoutForm, Failure> {
        offer.provide_changes()?;
        let result = offer.result();
        Ok(self.git()?.checkout_form(places, &result.spec.base, &result.set)?)
    }

    /// The lock of a finished job, for looking at it with git's help.
    pub(super) fn quiet(&self, job: &JobId) -> Result<JobLock, Failure> {
        match self.store().seen(job)?.1 {
            SeenState::Finished => Ok(self.store().job(job)?.lock(BUSY)?),
            state => Err(still_going(job, "a look at the checkout", state)),
        }
    }
}

impl<'a> Scene<'a> {
    /// Looks at the checkout, if `groups` are the parts that are chosen.
    pub(super) fn of<'r: 'a>(
        form: &'a CheckoutForm,
        offer: &mut Offer<'r>,
        groups: &Chosen,
        unsaved: Vec<RepoPath>,
    ) -> Result<Self, Failure> {
        let result = offer.result();
        let grounds = offer.grounds(groups)?;
        let canonical = InCheckout { form, offer };
        let checkout = apply::observe(&result.spec.repository, &result.set, &grounds, &canonical, unsaved)?;
        Ok(Self { result, form, grounds, checkout })
    }

    pub(super) fn merging(&self) -> Merging<'a> {
        Merging { repository: &self.result.spec.repository, form: self.form }
    }

    /// Makes the merges that the chosen part needs.
    pub(super) fn merge(&mut self, selection: &Selection, offer: &mut Offer<'_>) -> Result<(), Failure> {
        let wanted = self.result.set.to_merge(selection, &self.grounds, &self.checkout);
        let merges = self.merging().all(&wanted, offer)?;
        self.grounds.merges.extend(merges);
        Ok(())
    }
}

/// The form that the checkout gives to contents, for the applier.
pub(super) struct InCheckout<'a> {
    pub(super) form: &'a CheckoutForm,
    pub(super) offer: &'a Offer<'a>,
}

impl Canonical for InCheckout<'_> {
    fn to_stored(&self, path: &RepoPath, bytes: &[u8]) -> io::Result<Option<ObjectId>> {
        self.form.stored(path, bytes).map_err(|error| io::Error::other(with_causes(&error)))
    }

    fn to_checkout(&self, path: &RepoPath, object: &ObjectId) -> io::Result<Option<Vec<u8>>> {
        if !self.form.converts(path) {
            return Ok(None);
        }
        let converted = self.offer.provide(object).and_then(|()| self.form.checked_out(path, object));
        converted.map_err(|error| io::Error::other(with_causes(&error)))
    }

    fn is_converted(&self, path: &RepoPath, object: &ObjectId) -> io::Result<bool> {
        if !self.form.converts(path) {
            return Ok(false);
        }
        let converted = self.offer.provide(object).and_then(|()| self.form.is_converted(path, object));
        converted.map_err(|error| io::Error::other(with_causes(&error)))
    }

    fn trusts_executable_bit(&self) -> bool {
        self.form.trusts_executable_bit()
    }
}
