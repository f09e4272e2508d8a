//! What an apply would do: a change set held against a checkout, as staged types.
//!
//! `ChangeSet → check(observed) → CheckedPlan`, which the engine's applier takes by value. A [`CheckedPlan`] has no
//! public constructor: holding one proves that every chosen path was checked, and it carries the contents
//! that it was checked against, so that a save which races the apply is found. One conflict anywhere means no plan.

use std::collections::{BTreeMap, BTreeSet};

use super::sensitive::{Tier, tier};
use super::{Change, ChangeSet, Entry, EntryMode};
use crate::failure::{Conflict, ConflictKind};
use crate::path::rules::{WritablePath, folded};
use crate::{ChangeSetId, ObjectId, RepoPath};

/// Which part of a change set the person wants.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Selection {
    /// All of it; sensitive paths need to be among `confirmed`, links too.
    All {
        /// Paths that the person looked at and wants.
        confirmed: Vec<RepoPath>,
    },
    /// These paths, each named by the person.
    Paths(Vec<RepoPath>),
}

/// What is at a path of the checkout now, without following links.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Observed {
    /// Nothing.
    Absent,
    /// A file or a link.
    Entry {
        /// Its kind.
        mode: EntryMode,
        /// Its content's object id, as the repository would store it.
        object: ObjectId,
    },
    /// A directory.
    Directory {
        /// An entry below it that the change set does not delete; `None` when there is no such entry, so that
        /// deleting what the set deletes makes room.
        foreign: Option<RepoPath>,
    },
    /// Nothing can be here: this path on the way is a file or a link.
    Beneath(RepoPath),
    /// Something that is never written to, on the path itself or on the way to it; in a few words.
    Obstacle(String),
    /// It could not be looked at, and why.
    Unreadable(String),
}

/// The checkout as the engine saw it just now.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Checkout {
    /// What is at each path of the change set.
    pub observed: BTreeMap<RepoPath, Observed>,
    /// Paths for which an attached editor holds unsaved text.
    pub unsaved: Vec<RepoPath>,
    /// Other names in the directories concerned, to find collisions on folded names.
    pub neighbours: Vec<RepoPath>,
}

/// What is to be done at one path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Action {
    /// Where.
    pub path: WritablePath,
    /// What was there when it was checked; `None` for nothing.
    pub expected: Option<(EntryMode, ObjectId)>,
    /// What will be there; `None` for nothing.
    pub becomes: Option<Entry>,
}

/// A plan that passed every check. The only way to get one is [`ChangeSet::check`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckedPlan {
    change_set: ChangeSetId,
    actions: Vec<Action>,
    already: Vec<RepoPath>,
    complete: bool,
}

impl CheckedPlan {
    /// The result that is applied.
    pub fn change_set(&self) -> &ChangeSetId {
        &self.change_set
    }

    /// What is to be done, sorted by path. Deletions come with their own actions; directories follow from paths.
    pub fn actions(&self) -> &[Action] {
        &self.actions
    }

    /// Chosen paths that hold their result already.
    pub fn already(&self) -> &[RepoPath] {
        &self.already
    }

    /// Whether nothing of the change set is left once this plan is done.
    pub fn is_complete(&self) -> bool {
        self.complete
    }
}

impl ChangeSet {
    /// Checks the chosen part against the checkout. Every obstacle is reported, not the first.
    pub fn check(&self, selection: &Selection, checkout: &Checkout) -> Result<CheckedPlan, Vec<Conflict>> {
        let selection = &Chosen::of(selection);
        let mut conflicts = Vec::new();
        let mut actions = Vec::new();
        let mut already = Vec::new();
        let mut complete = true;
        for change in &self.changes {
            if !selection.includes(&change.path) {
                complete &= holds_result(change, checkout);
                continue;
            }
            match self.decide(change, selection, checkout) {
                Ok(Decision::Act(action)) => actions.push(action),
                Ok(Decision::Already) => already.push(change.path.clone()),
                Err(conflict) => conflicts.push(conflict),
            }
        }
        conflicts.extend(unknown_paths(self, selection));
        conflicts.extend(collisions(&actions, checkout));
        if conflicts.is_empty() {
            Ok(CheckedPlan { change_set: self.id.clone(), actions, already, complete })
        } else {
            Err(conflicts)
        }
    }

    fn decide(&self, change: &Change, selection: &Chosen<'_>, checkout: &Checkout) -> Result<Decision, Conflict> {
        let path = WritablePath::check(change.path.clone())
            .map_err(|refusal| conflict(&change.path, ConflictKind::NameRefused, refusal.rule.to_string()))?;
        check_kind(change, selection)?;
        if tier(&change.path) == Some(Tier::Sensitive) && !selection.names(&change.path) {
            let detail = "it can execute by itself later; look at it, then name or confirm it";
            return Err(conflict(&change.path, ConflictKind::SensitiveNotConfirmed, detail));
        }
        if checkout.unsaved.contains(&change.path) {
            return Err(conflict(&change.path, ConflictKind::UnsavedText, "an editor holds unsaved text for it"));
        }
        let observed = checkout.observed.get(&change.path).unwrap_or(&Observed::Absent);
        let current = self.current(change, selection, observed)?;
        let wanted = change.new.as_ref().map(|entry| (entry.mode, &entry.object));
        if current.as_ref().map(|(mode, object)| (*mode, object)) == wanted {
            return Ok(Decision::Already);
        }
        let base = change.old.as_ref().map(|entry| (entry.mode, entry.object.clone()));
        if current == base {
            return Ok(Decision::Act(Action { path, expected: current, becomes: change.new.clone() }));
        }
        Err(match (&change.old, &current) {
            (None, Some(_)) => conflict(&change.path, ConflictKind::AlreadyExists, "another file is there already"),
            (Some(_), None) => conflict(&change.path, ConflictKind::Missing, "the job changed it, and it is gone"),
            _ => conflict(&change.path, ConflictKind::ContentDiffers, "it was changed since the job's base"),
        })
    }

    /// What counts as being at the path. What the chosen part itself deletes is not in its way.
    fn current(
        &self,
        change: &Change,
        selection: &Chosen<'_>,
        observed: &Observed,
    ) -> Result<Option<(EntryMode, ObjectId)>, Conflict> {
        let path = &change.path;
        let deleted = |other: &Change| other.new.is_none() && selection.includes(&other.path);
        match observed {
            Observed::Absent => Ok(None),
            Observed::Entry { mode, object } => Ok(Some((*mode, object.clone()))),
            // Whatever is there or in the way: it is not the file that the job deleted.
            Observed::Directory { .. } | Observed::Beneath(_) if change.new.is_none() => Ok(None),
            Observed::Directory { foreign: Some(entry) } => {
                let detail = format!("a directory is there, and {entry} in it stays");
                Err(conflict(path, ConflictKind::DirectoryInTheWay, detail))
            }
            Observed::Directory { foreign: None } => {
                match self.changes.iter().find(|other| is_below(&other.path, path) && !deleted(other)) {
                    Some(kept) => {
                        let detail = format!("a directory is there; choose {} too", kept.path);
                        Err(conflict(path, ConflictKind::DirectoryInTheWay, detail))
                    }
                    None => Ok(None),
                }
            }
            Observed::Beneath(obstacle) => {
                if self.changes.iter().any(|other| other.path == *obstacle && deleted(other)) {
                    return Ok(None);
                }
                let detail = format!("{obstacle} on the way to it is no directory");
                Err(conflict(path, ConflictKind::DirectoryInTheWay, detail))
            }
            Observed::Obstacle(what) => Err(conflict(path, ConflictKind::NotARegularFile, what.clone())),
            Observed::Unreadable(why) => Err(conflict(path, ConflictKind::FileSystem, why.clone())),
        }
    }
}

/// A selection, ready to be asked about many paths.
struct Chosen<'a> {
    all: bool,
    named: BTreeSet<&'a RepoPath>,
}

impl<'a> Chosen<'a> {
    fn of(selection: &'a Selection) -> Self {
        match selection {
            Selection::All { confirmed } => Self { all: true, named: confirmed.iter().collect() },
            Selection::Paths(paths) => Self { all: false, named: paths.iter().collect() },
        }
    }

    fn includes(&self, path: &RepoPath) -> bool {
        self.all || self.names(path)
    }

    fn names(&self, path: &RepoPath) -> bool {
        self.named.contains(path)
    }
}

/// Whether an earlier apply, or the person, already put the change's result there.
fn holds_result(change: &Change, checkout: &Checkout) -> bool {
    match (checkout.observed.get(&change.path), &change.new) {
        (None | Some(Observed::Absent), None) => true,
        (Some(Observed::Entry { mode, object }), Some(entry)) => (*mode, object) == (entry.mode, &entry.object),
        _ => false,
    }
}

enum Decision {
    Act(Action),
    Already,
}

fn check_kind(change: &Change, selection: &Chosen<'_>) -> Result<(), Conflict> {
    let modes = || [&change.old, &change.new].into_iter().flatten().map(|entry| entry.mode);
    if modes().any(|mode| mode == EntryMode::Gitlink) {
        let detail = "it is a nested repository, which is never written";
        return Err(conflict(&change.path, ConflictKind::KindRefused, detail));
    }
    if modes().any(|mode| mode == EntryMode::Symlink) && !selection.names(&change.path) {
        let detail = "it is a symbolic link, written only when it is named or confirmed";
        return Err(conflict(&change.path, ConflictKind::SymlinkNotNamed, detail));
    }
    Ok(())
}

fn unknown_paths(set: &ChangeSet, selection: &Chosen<'_>) -> Vec<Conflict> {
    let known: BTreeSet<&RepoPath> = set.changes.iter().map(|change| &change.path).collect();
    let unknown = selection.named.difference(&known);
    unknown.map(|path| conflict(path, ConflictKind::Missing, "it is not among the job's changes")).collect()
}

/// Names that would be one entry on a folding file system: within the plan, or against the checkout. Directories
/// count like files. Names that exist side by side already are no reason to refuse a change to one of them.
fn collisions(actions: &[Action], checkout: &Checkout) -> Vec<Conflict> {
    let mut existing: BTreeSet<&RepoPath> = checkout.neighbours.iter().collect();
    for action in actions.iter().filter(|action| action.becomes.is_none()) {
        existing.remove(action.path.path());
    }
    let mut taken: BTreeMap<Vec<u8>, RepoPath> = BTreeMap::new();
    for path in &existing {
        taken.entry(folded(path)).or_insert_with(|| (*path).clone());
    }
    let mut conflicts = Vec::new();
    for action in actions.iter().filter(|action| action.expected.is_none() && action.becomes.is_some()) {
        let path = action.path.path();
        for name in path.ancestors().chain([path.clone()]).filter(|name| !existing.contains(name)) {
            let holder = taken.entry(folded(&name)).or_insert_with(|| name.clone());
            if *holder != name {
                let detail = format!("{name} is the same as {holder} where a file system folds case or Unicode");
                conflicts.push(conflict(path, ConflictKind::NameCollides, detail));
                break;
            }
        }
    }
    conflicts
}

fn is_below(path: &RepoPath, directory: &RepoPath) -> bool {
    path.as_bytes().strip_prefix(directory.as_bytes()).is_some_and(|rest| rest.first() == Some(&b'/'))
}

fn conflict(path: &RepoPath, kind: ConflictKind, detail: impl Into<String>) -> Conflict {
    Conflict { path: path.clone().into(), kind, detail: detail.into() }
}
