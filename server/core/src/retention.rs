//! What may go to make room, and what stays: a decision about all jobs at once.
//!
//! In two steps. First the *trees* of jobs about which nothing is left to decide: with the tree go its git directory
//! and the harness's private home, and with them the way to resume; journal, result, and what an undo needs stay. Then,
//! only when it is asked for, the whole *records* of such jobs. What nobody has decided about keeps its tree unless it
//! is named or asked for, and its record always: that is given up by discarding it, and by nothing else. Work that is
//! in the tree and nowhere else is such a thing, whatever became of the result. Carrying it out is the engine's work.

use std::collections::BTreeSet;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::JobId;
use crate::change::Note;

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
    /// Trees with files that git ignores, which are nowhere else, stay.
    pub keep_ignored: bool,
    /// Only these, whatever their age; without any, all.
    pub named: BTreeSet<JobId>,
}

/// What a job's tree has that is nowhere else.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Holds {
    /// Nothing.
    #[default]
    Nothing,
    /// Files that git ignores: of a build, mostly, but nobody can tell.
    Ignored,
    /// Work that no capture took in.
    Work,
}

impl Holds {
    /// What a note of a capture says of the tree.
    pub fn of(note: &Note) -> Self {
        match note {
            Note::NestedRepository { .. }
            | Note::Submodule { .. }
            | Note::TooLarge { .. }
            | Note::Unreadable { .. }
            | Note::Commits { .. } => Self::Work,
            Note::Ignored { .. } => Self::Ignored,
            // A pipe holds nothing, the content behind another name is captured, and the link is ours.
            Note::SpecialFile { .. } | Note::HardLinked { .. } | Note::GitFileRewritten => Self::Nothing,
        }
    }
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
    /// What that has and nothing else.
    pub holds: Holds,
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
    /// Work that no capture took in is only in its tree.
    OnlyInTree,
    /// Files that git ignores are only in its tree, and nobody asked for a prune.
    Ignored,
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
            Self::OnlyInTree => {
                "stays: work that is not captured is only in its tree; look at it, then name the job, pass --unapplied, or discard it"
            }
            Self::Ignored => "stays: files that git ignores are only in its tree; `pactify sub prune` takes it",
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
    } else if job.is_undecided || job.holds == Holds::Work {
        match job.has_tree {
            true if is_named || policy.unapplied => Fate::Tree,
            _ if job.is_undecided => Fate::Unapplied,
            _ => Fate::OnlyInTree,
        }
    } else if job.holds == Holds::Ignored && policy.keep_ignored {
        Fate::Ignored
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
        Facts { id, is_over: true, is_undecided: false, has_tree: true, holds: Holds::Nothing, at }
    }

    #[test]
    fn nothing_undecided_goes_without_saying_so() {
        let now = Timestamp::from_second(2_000_000).unwrap();
        let named = BTreeSet::from([job(1).id]);
        let undecided = Facts { is_undecided: true, ..job(1) };
        let holding = |holds| Facts { holds, ..job(1) };
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
            (holding(Holds::Work), Policy::default(), Fate::OnlyInTree),
            (holding(Holds::Work), Policy { records: true, ..Policy::default() }, Fate::OnlyInTree),
            (holding(Holds::Work), Policy { unapplied: true, ..Policy::default() }, Fate::Tree),
            (holding(Holds::Work), Policy { named: named.clone(), records: true, ..Policy::default() }, Fate::Tree),
            (holding(Holds::Ignored), Policy::default(), Fate::Tree),
            (holding(Holds::Ignored), Policy { records: true, ..Policy::default() }, Fate::Record),
            (holding(Holds::Ignored), Policy { keep_ignored: true, ..Policy::default() }, Fate::Ignored),
            (holding(Holds::Ignored), Policy { keep_ignored: true, records: true, ..Policy::default() }, Fate::Ignored),
            (Facts { is_undecided: true, ..holding(Holds::Work) }, Policy::default(), Fate::Unapplied),
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
