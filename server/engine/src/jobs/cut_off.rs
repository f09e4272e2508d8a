//! Telling of applies that were cut off: until the next command that writes takes one back, the checkout may hold a
//! part of it, and nothing that is shown of that checkout means what it says.

use pactify_core::JobId;
use pactify_core::job::RepositoryRecord;

use crate::apply::{self, ApplyId};
use crate::causes::with_causes;
use crate::store::Store;

/// The applies that were cut off, and the checkouts that they were for.
#[derive(Debug)]
pub(super) struct CutOff(Vec<(ApplyId, Option<RepositoryRecord>)>);

impl CutOff {
    /// Those of a store, at this moment. Where they cannot be looked at, a job can be shown all the same: the doctor
    /// says why.
    pub(super) fn of(store: &Store) -> Self {
        let place = |apply: &ApplyId| Some(store.job(&apply.job).ok()?.spec().ok()?.repository);
        let interrupted = apply::interrupted(store).unwrap_or_else(|error| {
            tracing::warn!(error = with_causes(&error), "whether an apply was cut off is not known");
            Vec::new()
        });
        Self(interrupted.into_iter().map(|apply| (apply.clone(), place(&apply))).collect())
    }

    /// What a person is told who looks at `job`, whose checkout is that of `repository`.
    pub(super) fn told(&self, job: &JobId, repository: &RepositoryRecord) -> Option<String> {
        let is_there = |place: &Option<RepositoryRecord>| {
            place.as_ref().is_some_and(|place| place.worktree == repository.worktree)
        };
        let (apply, _) = self.0.iter().find(|(apply, place)| apply.job == *job || is_there(place))?;
        let whose = if apply.job == *job { "this job".to_owned() } else { format!("job {}", apply.job) };
        Some(format!(
            "an apply of {whose} was cut off, and your checkout may hold a part of it: the next apply, undo or discard there \
             takes it back"
        ))
    }
}
