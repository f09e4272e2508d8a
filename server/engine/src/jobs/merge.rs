//! What the checkout holds, merged with what is chosen of a result.

use std::collections::BTreeMap;

use pactify_core::change::hunk;
use pactify_core::change::plan::{CheckedPlan, Merge, ToMerge};
use pactify_core::job::RepositoryRecord;
use pactify_core::{Failure, ObjectId, RepoPath};

use super::offer::Offer;
use crate::apply::{self, Current};
use crate::git::merge::{Labels, Merged, merge};
use crate::git::{CheckoutForm, GitError};

const LABELS: Labels = Labels { base: "accepted before", ours: "your checkout", theirs: "the job" };

const TOO_LARGE: &str = "it is too large to be merged";
const RESTLESS: &str = "it is being changed right now";

/// The checkout that contents are merged with.
pub(super) struct Merging<'a> {
    pub(super) repository: &'a RepositoryRecord,
    pub(super) form: &'a CheckoutForm,
}

impl Merging<'_> {
    /// Makes every merge of `wanted`, and keeps the merged contents in `offer`.
    pub(super) fn all(&self, wanted: &[ToMerge], offer: &mut Offer<'_>) -> Result<BTreeMap<RepoPath, Merge>, Failure> {
        let mut merges = BTreeMap::new();
        for wanted in wanted {
            let merge = match self.one(wanted, offer)? {
                Merged::Clean(bytes) => {
                    let size = bytes.len() as u64;
                    Merge::Clean { object: offer.make(bytes), size }
                }
                Merged::Conflicted { places, .. } => Merge::Conflicted { places },
                Merged::Impossible(why) => Merge::Impossible(why.to_owned()),
            };
            merges.insert(wanted.path.clone(), merge);
        }
        Ok(merges)
    }

    /// Makes one merge.
    pub(super) fn one(&self, wanted: &ToMerge, offer: &mut Offer<'_>) -> Result<Merged, Failure> {
        let ours = match self.ours(&wanted.path, &wanted.ours, offer)? {
            Ok(ours) => ours,
            Err(why) => return Ok(Merged::Impossible(why)),
        };
        let [base, theirs] = [&wanted.base, &wanted.theirs].map(|object| offer.read(object, hunk::MAX_TEXT_BYTES));
        let (base, theirs) = match (base, theirs) {
            (Err(GitError::ObjectTooLarge { .. }), _) | (_, Err(GitError::ObjectTooLarge { .. })) => {
                return Ok(Merged::Impossible(TOO_LARGE));
            }
            (base, theirs) => (base?, theirs?),
        };
        let merged = merge(&base, &ours, &theirs, LABELS)?;
        offer.make(ours);
        Ok(merged)
    }

    /// Keeps in `offer` those contents of the checkout that `plan` leaves as they are, with another mode.
    pub(super) fn keep(&self, plan: &CheckedPlan, offer: &mut Offer<'_>) -> Result<(), Failure> {
        for action in plan.actions().iter().filter(|action| action.merged) {
            let (Some((_, current)), Some(becomes)) = (&action.expected, &action.becomes) else { continue };
            if *current == becomes.object
                && offer.made(current).is_none()
                && let Ok(ours) = self.ours(action.path.path(), current, offer)?
            {
                offer.make(ours);
            }
        }
        Ok(())
    }

    /// What the repository would store for what the checkout holds at `path`; `None` for nothing, or what is too large.
    pub(super) fn held(&self, path: &RepoPath) -> Result<Option<Vec<u8>>, Failure> {
        match apply::current(self.repository, path, hunk::MAX_TEXT_BYTES)? {
            Current::Bytes(bytes) if self.form.is_in_lfs(path) => Ok(Some(bytes)),
            Current::Bytes(bytes) => Ok(Some(self.form.stored_content(path, &bytes)?.unwrap_or(bytes))),
            Current::TooLarge(_) | Current::Absent => Ok(None),
        }
    }

    /// What the repository would store for what the checkout holds at `path`, which was `object` a moment ago; or why
    /// that cannot be said.
    fn ours(
        &self,
        path: &RepoPath,
        object: &ObjectId,
        offer: &Offer<'_>,
    ) -> Result<Result<Vec<u8>, &'static str>, Failure> {
        if self.form.is_in_lfs(path) {
            return Ok(Err("its content is in Git LFS, where nothing is merged"));
        }
        let held = match apply::current(self.repository, path, hunk::MAX_TEXT_BYTES)? {
            Current::Bytes(bytes) => bytes,
            Current::TooLarge(_) => return Ok(Err(TOO_LARGE)),
            Current::Absent => return Ok(Err(RESTLESS)),
        };
        let stored = self.form.stored_content(path, &held)?.unwrap_or(held);
        Ok(if offer.id_of(&stored) == *object { Ok(stored) } else { Err(RESTLESS) })
    }
}
