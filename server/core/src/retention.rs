//! What may go to make room, and what stays: a decision about all jobs at once.
//!
//! In two steps. First the *trees* of jobs about which nothing is left to decide: with the tree go its git directory and
//! the harness's private home, and with them the way to resume; journal, result, and what an undo needs stay. Then, only
//! when it is asked for, the whole *records* of such jobs. What nobody has decided about keeps its tree unless it is named or
//! asked for, and its record always: that is given up by discarding it, and by nothing else. Carrying it out is the
//! engine's work.

use std::collections::BTreeSet;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::JobId;

/// What the person wants.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Policy {
    /// Jobs that ended less than so many seconds ago stay.
    pub age_seconds: u64,
    /// So many of the newest jobs stay.
    pub keep_jobs: usize,
    /// Trees of results that nobody decided about go, too.
    pub unapplied: bool,
    /// Whole records go, too.
    pub records: bool,
    /// Only these, whatever their age; without any, all.
    pub named: BTreeSet<JobId>,
}

/// What is known of a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Facts {
    /// Which.
    pub id: JobId,
    /// Whether its latest attempt is over. A lost job is not over until it is repaired.
    pub is_over: bool,
    /// Whether there are changes that nobody applied or gave up.
    pub is_undecided: bool,
    /// Whether its tree is there.
    pub has_tree: bool,
    /// When it ended; when it was asked for, where that is not known.
    pub at: Timestamp,
}

/// What becomes of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub enum Fate {
    /// Its tree goes.
    Tree,
    /// All of it goes.
    Record,
    /// It goes on, or has to be repaired.
    Unfinished,
    /// It is too young.
    Recent,
    /// It is among the newest.
    Newest,
    /// Something of its result is not applied and not given up.
    Unapplied,
    /// It has no tree any more.
    NoTree,
}

impl Fate {
    /// Whether something goes.
    pub fn goes(self) -> bool {
        matches!(self, Self::Tree | Self::Record)
    }

    /// Why, in a few words.
    pub fn why(self) -> &'static str {
        match self {
            Self::Tree => "its tree goes; its record, its result and the way to undo stay",
            Self::Record => "all of it goes",
            Self::Unfinished => "stays: it is not finished",
            Self::Recent => "stays: it is recent",
            Self::Newest => "stays: it is among the newest",
            Self::Unapplied => "stays: not all of its result is applied; name it or pass --unapplied, or discard it",
            Self::NoTree => "stays: only its record is left; pass --records to remove that",
        }
    }
}

/// Decides about `jobs`, which are in the order newest first. Those that are not meant are left out.
pub fn decide(jobs: &[Facts], policy: &Policy, now: Timestamp) -> Vec<(JobId, Fate)> {
    let meant = jobs.iter().enumerate().filter(|(_, job)| policy.named.is_empty() || policy.named.contains(&job.id));
    meant.map(|(place, job)| (job.id.clone(), fate(place, job, policy, now))).collect()
}

fn fate(place: usize, job: &Facts, policy: &Policy, now: Timestamp) -> Fate {
    let is_named = policy.named.contains(&job.id);
    let age = now.duration_since(job.at).as_secs();
    if !job.is_over {
        Fate::Unfinished
    } else if !is_named && place < policy.keep_jobs {
        Fate::Newest
    } else if !is_named && age < i64::try_from(policy.age_seconds).unwrap_or(i64::MAX) {
        Fate::Recent
    } else if job.is_undecided {
        match job.has_tree {
            true if is_named || policy.unapplied => Fate::Tree,
            _ => Fate::Unapplied,
        }
    } else if policy.records {
        Fate::Record
    } else if job.has_tree {
        Fate::Tree
    } else {
        Fate::NoTree
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn job(n: u32) -> Facts {
        let id = format!("20260101-0000{n:02}-aaaaaa").parse().unwrap();
        let at = Timestamp::from_second(1_000_000 + i64::from(n) * 100).unwrap();
        Facts { id, is_over: true, is_undecided: false, has_tree: true, at }
    }

    #[test]
    fn nothing_undecided_goes_without_saying_so() {
        let now = Timestamp::from_second(2_000_000).unwrap();
        let named = BTreeSet::from([job(1).id]);
        let undecided = Facts { is_undecided: true, ..job(1) };
        for (job, policy, expected) in [
            (job(1), Policy::default(), Fate::Tree),
            (job(1), Policy { records: true, ..Policy::default() }, Fate::Record),
            (Facts { has_tree: false, ..job(1) }, Policy::default(), Fate::NoTree),
            (
                Facts { is_over: false, ..job(1) },
                Policy { named: named.clone(), ..Policy::default() },
                Fate::Unfinished,
            ),
            (undecided.clone(), Policy::default(), Fate::Unapplied),
            (undecided.clone(), Policy { records: true, ..Policy::default() }, Fate::Unapplied),
            (undecided.clone(), Policy { unapplied: true, records: true, ..Policy::default() }, Fate::Tree),
            (undecided.clone(), Policy { named: named.clone(), ..Policy::default() }, Fate::Tree),
            (
                Facts { has_tree: false, ..undecided },
                Policy { named: named.clone(), records: true, ..Policy::default() },
                Fate::Unapplied,
            ),
            (job(1), Policy { age_seconds: 10_000_000, ..Policy::default() }, Fate::Recent),
            (job(1), Policy { age_seconds: 10_000_000, named: named.clone(), ..Policy::default() }, Fate::Tree),
            (job(1), Policy { keep_jobs: 1, ..Policy::default() }, Fate::Newest),
            (job(1), Policy { keep_jobs: 1, named, ..Policy::default() }, Fate::Tree),
        ] {
            assert_eq!(decide(std::slice::from_ref(&job), &policy, now)[0].1, expected, "{job:?} {policy:?}");
        }
    }

    #[test]
    fn the_newest_stay_and_only_what_is_named_is_meant() {
        let now = Timestamp::from_second(2_000_000).unwrap();
        let jobs = [job(3), job(2), job(1)];
        let fates = |policy: &Policy| decide(&jobs, policy, now).into_iter().map(|(_, fate)| fate).collect::<Vec<_>>();
        assert_eq!(fates(&Policy { keep_jobs: 2, ..Policy::default() }), [Fate::Newest, Fate::Newest, Fate::Tree]);
        let named = BTreeSet::from([job(2).id]);
        assert_eq!(decide(&jobs, &Policy { named, ..Policy::default() }, now), [(job(2).id, Fate::Tree)]);
    }
}
