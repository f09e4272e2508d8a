//! A result beside what was accepted of it before: where an apply of each path starts, and where it leads.
//!
//! Contents that exist nowhere yet (some parts of a change, a merge) are made here and kept in memory; an apply writes
//! them down, a preview only shows them. What the parts are and what they come to is decided in
//! [`pactify_core::change::group`].

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::time::Instant;

use pactify_core::change::group::{self, Choice, GroupId, Had, Parts, Taken, Undivided};
use pactify_core::change::hunk;
use pactify_core::change::plan::{Goal, Grounds};
use pactify_core::change::{Change, Entry, EntryMode};
use pactify_core::{Failure, FailureCode, ObjectId, RepoPath};

use super::preview::Captured;
use crate::apply::Contents;
use crate::causes::with_causes;
use crate::git::merge::{Labels, Merged, merge};
use crate::git::{GitError, capture};

/// The parts that are chosen of some paths; of others it is the whole.
pub(super) type Chosen = BTreeMap<RepoPath, Vec<GroupId>>;

/// A result, ready to be taken in parts.
pub(super) struct Offer<'a> {
    result: &'a Captured,
    /// Contents that are in no store.
    made: BTreeMap<ObjectId, Vec<u8>>,
    /// Contents that the capture does not hold.
    foreign: BTreeSet<ObjectId>,
}

/// Both sides of a change, as far as they are read.
pub(super) struct Sides {
    old: Option<Vec<u8>>,
    new: Option<Vec<u8>>,
}

/// What a path's goal comes to.
enum Aim {
    Goal(Goal),
    /// The part cannot be taken by itself, because of this.
    Refused(String),
}

impl<'a> Offer<'a> {
    pub(super) fn of(result: &'a Captured) -> Self {
        let of_entries = result.accepted_entries.values().flatten().map(|entry| entry.object.clone());
        Self { result, made: BTreeMap::new(), foreign: of_entries.collect() }
    }

    /// What is offered.
    pub(super) fn result(&self) -> &'a Captured {
        self.result
    }

    /// The goals of all paths, if `chosen` are the parts that are chosen.
    pub(super) fn grounds(&mut self, chosen: &Chosen) -> Result<Grounds, Failure> {
        let mut grounds = Grounds::default();
        let result = self.result;
        for change in &result.set.changes {
            let groups = chosen.get(&change.path).filter(|groups| !groups.contains(&GroupId::Whole));
            let had = self.had(change);
            let aim = match groups {
                Some(groups) => self.part(change, had, groups)?,
                None if result.accepted_entries.contains_key(&change.path) => {
                    Aim::Goal(Goal { old: had, without: change.old.clone(), target: change.new.clone() })
                }
                None => continue,
            };
            match aim {
                Aim::Goal(goal) => drop(grounds.goals.insert(change.path.clone(), goal)),
                Aim::Refused(why) => drop(grounds.refused.insert(change.path.clone(), why)),
            }
        }
        Ok(grounds)
    }

    /// What was accepted of a path before.
    pub(super) fn had(&self, change: &Change) -> Option<Entry> {
        self.result.accepted_entries.get(&change.path).unwrap_or(&change.old).clone()
    }

    /// Reads both sides of a change, as far as they are not too large.
    pub(super) fn sides(&self, change: &Change) -> Result<Sides, Failure> {
        let read = |entry: &Option<Entry>| match entry {
            Some(entry) if entry.mode != EntryMode::Gitlink && entry.size <= hunk::MAX_TEXT_BYTES => {
                self.read(&entry.object, hunk::MAX_TEXT_BYTES).map(Some)
            }
            _ => Ok(None),
        };
        Ok(Sides { old: read(&change.old)?, new: read(&change.new)? })
    }

    /// Which of a change's groups of lines were accepted, and whether its mode was.
    pub(super) fn accepted(&self, change: &Change, parts: &Parts<'_>) -> Result<(Vec<bool>, bool), Failure> {
        let none = vec![false; parts.lines().len()];
        let (Some(had), Some(old), Some(new)) = (self.had(change), &change.old, &change.new) else {
            return Ok((none, false));
        };
        let mode = had.mode == new.mode && old.mode != new.mode;
        let lines = if had.object == old.object {
            none
        } else if had.object == new.object {
            vec![true; parts.lines().len()]
        } else {
            let text = self.read(&had.object, hunk::MAX_TEXT_BYTES)?;
            std::str::from_utf8(&text).ok().and_then(|text| parts.accepted(text, &[])).unwrap_or(none)
        };
        Ok((lines, mode))
    }

    /// The goal of a path of which `groups` are chosen and `had` was accepted.
    fn part(&mut self, change: &Change, had: Option<Entry>, groups: &[GroupId]) -> Result<Aim, Failure> {
        let sides = self.sides(change)?;
        let parts = sides.divide(change).map_err(|why| undivided(&change.path, why))?;
        let choice = parts.choose(groups).map_err(|error| unknown(&change.path, &error))?;
        let (Some(base), Some(result)) = (&change.old, &change.new) else {
            return Err(undivided(&change.path, Undivided::Kind));
        };
        let take_all = "what was accepted of it before comes from another result; take the whole file";
        let Some(had) = had.filter(|had| had.mode.is_file()) else { return Ok(Aim::Refused(take_all.to_owned())) };
        let text = if had.object == base.object || had.object == result.object {
            None
        } else {
            let bytes = self.read(&had.object, hunk::MAX_TEXT_BYTES)?;
            match String::from_utf8(bytes) {
                Ok(text) => Some(text),
                Err(_) => return Ok(Aim::Refused(take_all.to_owned())),
            }
        };
        let known = match &text {
            Some(text) => Had::Text(text),
            None if had.object == base.object => Had::Base,
            None => Had::Result,
        };
        let taken = parts.take(&choice.lines, known).map_err(|error| unknown(&change.path, &error))?;
        let target = match taken {
            Taken::Same => had.object.clone(),
            Taken::Text(text) => self.make(text.into_bytes()),
            Taken::Merge(theirs) => {
                let base = sides.old.as_deref().unwrap_or_default();
                let had = text.as_deref().unwrap_or_default();
                match merge(base, had.as_bytes(), theirs.as_bytes(), ACCEPTED)? {
                    Merged::Clean(merged) => self.make(merged),
                    Merged::Conflicted { .. } | Merged::Impossible(_) => {
                        return Ok(Aim::Refused(take_all.to_owned()));
                    }
                }
            }
        };
        let without = match parts.without(&choice.lines, known) {
            Some(text) => self.make(text.into_bytes()),
            None => had.object.clone(),
        };
        let (mode_with, mode_without) = modes(&choice, [base.mode, had.mode, result.mode]);
        let (without, target) = (self.entry(mode_without, without), self.entry(mode_with, target));
        Ok(Aim::Goal(Goal { old: Some(had.clone()), without, target }))
    }

    fn entry(&self, mode: EntryMode, object: ObjectId) -> Option<Entry> {
        let size = self.made.get(&object).map_or(0, |bytes| bytes.len() as u64);
        Some(Entry { mode, object, size })
    }

    /// Keeps a content under its id.
    pub(super) fn make(&mut self, bytes: Vec<u8>) -> ObjectId {
        let object = self.id_of(&bytes);
        self.made.insert(object.clone(), bytes);
        object
    }

    /// The id of a content.
    pub(super) fn id_of(&self, bytes: &[u8]) -> ObjectId {
        self.result.objects.id_of(bytes)
    }

    /// A content that was made here.
    pub(super) fn made(&self, object: &ObjectId) -> Option<Vec<u8>> {
        self.made.get(object).cloned()
    }

    /// A content, wherever it is.
    pub(super) fn read(&self, object: &ObjectId, limit: u64) -> Result<Vec<u8>, GitError> {
        match self.made.get(object) {
            Some(bytes) => Ok(bytes.clone()),
            None => self.result.objects.read(object, limit),
        }
    }

    /// Sees to it that git finds the contents of all changes in the capture, where it converts.
    pub(super) fn provide_changes(&self) -> Result<(), GitError> {
        let old = self.result.set.changes.iter().filter_map(|change| change.old.as_ref());
        old.filter(|entry| entry.mode.is_file()).try_for_each(|entry| self.provide(&entry.object))
    }

    /// Sees to it that git finds a content in the capture, where it converts.
    pub(super) fn provide(&self, object: &ObjectId) -> Result<(), GitError> {
        if self.made.contains_key(object) || self.foreign.contains(object) {
            self.result.objects.write(&self.read(object, capture::MAX_FILE_BYTES)?)?;
        }
        Ok(())
    }
}

/// How conflicts between what was accepted and a new part are marked; nobody sees them.
const ACCEPTED: Labels = Labels { base: "the job's base", ours: "accepted before", theirs: "chosen now" };

impl Sides {
    /// Both sides as text: empty where there is nothing; `None` where one is no text or too large.
    pub(super) fn texts(&self, change: &Change) -> Option<(&str, &str)> {
        fn text<'t>(entry: &Option<Entry>, bytes: &'t Option<Vec<u8>>) -> Option<&'t str> {
            match (entry, bytes) {
                (None, _) => Some(""),
                (Some(entry), _) if entry.mode == EntryMode::Gitlink => Some(""),
                (Some(_), Some(bytes)) if hunk::is_text(bytes) => std::str::from_utf8(bytes).ok(),
                _ => None,
            }
        }
        Some((text(&change.old, &self.old)?, text(&change.new, &self.new)?))
    }

    /// The parts of the change whose sides these are.
    pub(super) fn divide(&self, change: &Change) -> Result<Parts<'_>, Undivided> {
        let deadline = Instant::now() + hunk::DEADLINE;
        group::divide(change, self.old.as_deref(), self.new.as_deref(), Some(deadline), Instant::now)
    }
}

impl Contents for Offer<'_> {
    fn read(&self, object: &ObjectId) -> io::Result<Vec<u8>> {
        Offer::read(self, object, capture::MAX_FILE_BYTES).map_err(|error| io::Error::other(with_causes(&error)))
    }
}

/// The mode with the choice, and without it, of base, accepted and result.
fn modes(choice: &Choice, [base, had, result]: [EntryMode; 3]) -> (EntryMode, EntryMode) {
    if choice.mode { (result, base) } else { (had, had) }
}

fn undivided(path: &RepoPath, why: Undivided) -> Failure {
    let message = format!("{path} can only be taken as a whole: {why}");
    Failure::new(FailureCode::InvalidParams, message, "choose the whole path instead of parts of it")
}

fn unknown(path: &RepoPath, error: &group::PartError) -> Failure {
    let next =
        "look at the changed lines again: they name the parts of each path (in a terminal: `pactify sub diff --hunks`)";
    Failure::new(FailureCode::InvalidParams, format!("{path}: {error}"), next)
}
