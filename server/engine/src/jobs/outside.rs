//! Putting back what changed in the person's git directory while a job ran.
//!
//! Only what the job's journal names, only to what was recorded before the job, and only on request.

use std::collections::BTreeMap;

use pactify_core::fingerprint::weigh::parse_id;
use pactify_core::fingerprint::{OutsideChange, Weight};
use pactify_core::job::event::Known;
use pactify_core::job::outcome::Disposition;
use pactify_core::job::state::OutsideSeen;
use pactify_core::protocol::{ApplyParams, RefusedChange, RestoreParams, RestoredChange, RestoredOutside};
use pactify_core::{Failure, FailureCode, JobId};

use super::dispose::refuse_survived;
use super::{Jobs, invalid, job_id};
use crate::fingerprint::{Verdict, Watch};
use crate::journal::Journal;

impl Jobs {
    /// Puts changes outside a job's tree back: each whole, or not at all.
    pub fn restore_outside(&self, params: &RestoreParams) -> Result<RestoredOutside, Failure> {
        let job = job_id(&params.job_id)?;
        let mut journal = self.own(&job, "restore")?;
        refuse_survived(&journal, "restore")?;
        let chosen = chosen(&journal, &job, params.select.as_deref())?;
        let (spec, jobs) = (journal.spec().clone(), self.store().jobs());
        let watch = Watch::of(self.git()?, journal.lock().job(), &spec, &jobs)?;
        let mut answer = RestoredOutside { restored: Vec::new(), refused: Vec::new() };
        // A later attempt's changes lie on top of an earlier one's.
        for (seen, changes) in chosen.iter().rev() {
            let indices: Vec<usize> = changes.keys().copied().collect();
            for restored in watch.restore(seen.of, &seen.before, &seen.after, &indices)? {
                let Some(change) = changes.get(&restored.index) else { continue };
                let (id, place) = (change.id.clone(), change.place.clone());
                match restored.verdict {
                    Verdict::PutBack(note) => answer.restored.push(RestoredChange { id, place, note }),
                    Verdict::Already => answer.restored.push(RestoredChange { id, place, note: None }),
                    Verdict::Refused(why) => answer.refused.push(RefusedChange { id, place, why }),
                }
            }
        }
        if !answer.restored.is_empty() {
            let ids = answer.restored.iter().map(|change| change.id.clone()).collect();
            let attempt = self.last_attempt(&journal)?;
            journal.append(self.env().now(), attempt, Known::OutsideRestored { ids })?;
        }
        Ok(answer)
    }
}

/// Refuses an apply while something dangerous outside was neither put back nor confirmed, of a part as well: a part is
/// what a client makes of "all but what can never be applied", and whoever takes one has not looked outside for it.
pub(super) fn refuse_unless_settled(journal: &Journal, params: &ApplyParams) -> Result<(), Failure> {
    if params.confirm_outside || !journal.state().has_danger_outside() {
        return Ok(());
    }
    let changes = journal.state().outside_changes();
    let dangerous = |change: &&OutsideChange| change.weight == Weight::Dangerous && !change.restored;
    let mut named: Vec<_> = changes.iter().filter(dangerous).take(3).map(|change| change.place.clone()).collect();
    let unnamed = journal.state().unnamed_danger_outside();
    if unnamed > 0 {
        named.push(format!("{unnamed} that are not named, because there were too many"));
    }
    let id = journal.lock().job().id();
    Err(Failure::new(
        FailureCode::OutsideNotConfirmed,
        format!("while job {id} ran, dangerous things changed outside its tree: {}", named.join(", ")),
        format!(
            "look at them with `pactify sub restore {id} --list`; put them back, or confirm them (`--confirm-outside`)"
        ),
    ))
}

type Chosen<'a> = Vec<(&'a OutsideSeen, BTreeMap<usize, &'a OutsideChange>)>;

fn chosen<'a>(journal: &'a Journal, job: &JobId, select: Option<&[String]>) -> Result<Chosen<'a>, Failure> {
    let state = journal.state();
    if state.disposition == Disposition::Discarded {
        let message = format!("job {job} was discarded, and what was recorded before it is gone");
        return Err(Failure::new(FailureCode::WrongState, message, "compare with a backup, or with another clone"));
    }
    let changes = || state.outside.iter().flat_map(|seen| &seen.changes);
    for id in select.into_iter().flatten() {
        match changes().find(|change| change.id == *id) {
            None => return Err(invalid(format!("select: job {job} has no change outside called {id:?}"))),
            Some(change) if !change.restorable => {
                return Err(invalid(format!("select: {id} ({} {}) cannot be put back", change.place, change.what)));
            }
            Some(_) => {}
        }
    }
    let is_chosen = |change: &&OutsideChange| match select {
        Some(ids) => ids.contains(&change.id),
        None => change.restorable && change.weight != Weight::Ordinary,
    };
    let of = |seen: &'a OutsideSeen| {
        let changes = seen.changes.iter().filter(is_chosen);
        changes.filter_map(|change| Some((parse_id(&change.id)?.1, change))).collect::<BTreeMap<_, _>>()
    };
    let chosen: Chosen<'_> =
        state.outside.iter().map(|seen| (seen, of(seen))).filter(|(_, changes)| !changes.is_empty()).collect();
    if chosen.is_empty() {
        let message = format!("nothing that can be put back changed outside the tree of job {job}");
        return Err(Failure::new(FailureCode::NothingToApply, message, "nothing needs to be done"));
    }
    Ok(chosen)
}
