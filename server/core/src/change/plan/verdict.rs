//! One path decided: what was accepted before, what is chosen, and what the checkout holds.
//!
//! The three-way rule for whole entries. Contents that have to be looked into are left to a merge of texts; the
//! executable bit merges by itself, since of two bits one is always the one that nobody changed.

use super::super::{Entry, EntryMode};
use super::{Goal, Merge};
use crate::failure::{Conflict, ConflictKind};
use crate::{ObjectId, RepoPath};

/// What becomes of a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// Nothing: the checkout has what was chosen.
    Already,
    /// What was chosen is written, as it was shown.
    Write(Option<Entry>),
    /// Content and executable bit are each one that was shown or is there, but not of one side.
    Keep(Entry),
    /// A merged text is written, once it was shown.
    Merged(Entry),
    /// That depends on a merge of texts.
    Needs(Needs),
}

/// The contents of a merge.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Needs {
    pub(super) base: ObjectId,
    pub(super) ours: ObjectId,
    pub(super) theirs: ObjectId,
}

/// Decides `path`, where the checkout holds `current`.
pub(super) fn of(
    path: &RepoPath,
    goal: &Goal,
    current: Option<&(EntryMode, ObjectId)>,
    merge: Option<&Merge>,
) -> Result<Verdict, Conflict> {
    let Goal { old, without, target } = goal;
    if is(current, target.as_ref()) {
        return Ok(Verdict::Already);
    }
    if is(current, old.as_ref()) || is(current, without.as_ref()) {
        return Ok(Verdict::Write(target.clone()));
    }
    let conflict = |kind, detail: &str| Err(Conflict::new(path, kind, detail));
    match (old, current, target) {
        // It was accepted before, and the person has done something else with it since.
        (old, _, target) if same(old.as_ref(), target.as_ref()) => Ok(Verdict::Already),
        (None, Some(_), _) => conflict(ConflictKind::AlreadyExists, "another file is there already"),
        (_, None, _) => conflict(ConflictKind::Missing, "the job changed it, and it is gone"),
        (Some(old), Some(current), Some(target))
            if old.mode.is_file() && current.0.is_file() && target.mode.is_file() =>
        {
            merged(path, old, current, target, merge)
        }
        (_, Some(_), None) => conflict(ConflictKind::ContentDiffers, "the job deleted it, and it was changed since"),
        _ => conflict(ConflictKind::ContentDiffers, "it was changed since the job's base, and is no text to merge"),
    }
}

fn merged(
    path: &RepoPath,
    old: &Entry,
    current: &(EntryMode, ObjectId),
    target: &Entry,
    merge: Option<&Merge>,
) -> Result<Verdict, Conflict> {
    let (mode, object) = current;
    let mode = if *mode == old.mode { target.mode } else { *mode };
    let entry = |object: &ObjectId, size| Entry { mode, object: object.clone(), size };
    let whole = |entry: Entry| match entry {
        entry if is(Some(current), Some(&entry)) => Verdict::Already,
        entry if same(Some(&entry), Some(target)) => Verdict::Write(Some(entry)),
        entry => Verdict::Keep(entry),
    };
    if *object == old.object || *object == target.object {
        return Ok(whole(entry(&target.object, target.size)));
    }
    if target.object == old.object {
        return Ok(whole(entry(object, 0)));
    }
    let refused = |detail: String| Err(Conflict::new(path, ConflictKind::ContentDiffers, detail));
    match merge {
        None => {
            Ok(Verdict::Needs(Needs { base: old.object.clone(), ours: object.clone(), theirs: target.object.clone() }))
        }
        Some(Merge::Clean { object: merged, size }) => Ok(match entry(merged, *size) {
            entry if entry.object == *object || entry.object == target.object => whole(entry),
            entry => Verdict::Merged(entry),
        }),
        Some(Merge::Conflicted { places: 1 }) => {
            refused("it was changed since the job's base, in lines that the job changed too".to_owned())
        }
        Some(Merge::Conflicted { places }) => {
            refused(format!("it was changed since the job's base, in {places} places that the job changed too"))
        }
        Some(Merge::Impossible(why)) => refused(format!("it was changed since the job's base, and {why}")),
    }
}

/// Whether two entries are one in a tree.
pub(super) fn same(one: Option<&Entry>, other: Option<&Entry>) -> bool {
    one.map(|entry| (entry.mode, &entry.object)) == other.map(|entry| (entry.mode, &entry.object))
}

fn is(current: Option<&(EntryMode, ObjectId)>, entry: Option<&Entry>) -> bool {
    current.map(|(mode, object)| (*mode, object)) == entry.map(|entry| (entry.mode, &entry.object))
}
