//! What an apply would do: a change set held against a checkout, as staged types.
//!
//! `ChangeSet → to_merge(checkout) → check(checkout, merges) → CheckedPlan`, which the engine's applier takes by value.
//! A [`CheckedPlan`] has no public constructor: holding one proves that every chosen path was checked, and it carries
//! the contents that it was checked against, so that a save which races the apply is found. One conflict anywhere means
//! no plan. Each path is decided in [`verdict`]; texts are merged by whoever asks, because that needs contents.

mod names;
mod verdict;

use std::collections::{BTreeMap, BTreeSet};

use self::verdict::{Needs, Verdict};
use super::sensitive::{Tier, tier};
use super::{Change, ChangeSet, Entry, EntryMode};
use crate::failure::{Conflict, ConflictKind};
use crate::path::rules::WritablePath;
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

/// Where the apply of one path starts, and where it leads.
///
/// A checkout that holds `old` or `without` gets `target`; in any other, what leads from `old` to `target` is merged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Goal {
    /// What was accepted of the path before: the base's entry when nothing was.
    pub old: Option<Entry>,
    /// The same without the chosen part: what a checkout holds in which that part was taken back by hand.
    pub without: Option<Entry>,
    /// What is accepted of it afterwards.
    pub target: Option<Entry>,
}

/// What a merge of texts comes to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Merge {
    /// One text.
    Clean {
        /// Its id, as the repository stores it.
        object: ObjectId,
        /// Its size in bytes.
        size: u64,
    },
    /// Both sides changed the same lines.
    Conflicted {
        /// In how many places.
        places: u32,
    },
    /// Nothing that can be merged, and why.
    Impossible(String),
}

/// Three contents that have to be merged before a path can be decided.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToMerge {
    /// Where.
    pub path: RepoPath,
    /// What both sides come from.
    pub base: ObjectId,
    /// The checkout's, as the repository would store it.
    pub ours: ObjectId,
    /// The job's.
    pub theirs: ObjectId,
}

/// What is known of the paths of a change set beyond their change.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Grounds {
    /// For paths of which something was accepted before, or a part is chosen. The others go from base to result.
    pub goals: BTreeMap<RepoPath, Goal>,
    /// Chosen paths whose part cannot be taken by itself, and why.
    pub refused: BTreeMap<RepoPath, String>,
    /// What became of [`ChangeSet::to_merge`].
    pub merges: BTreeMap<RepoPath, Merge>,
    /// The merged contents that the person has looked at and wants.
    pub shown: BTreeMap<RepoPath, ObjectId>,
}

/// What applying a path now would do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outlook {
    /// It is written as the job left it.
    Clean,
    /// There is nothing to do.
    Already,
    /// A merge is written: this content.
    Merge(ObjectId),
    /// It is not written.
    Conflict(Conflict),
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
    /// What will be there; `None` for nothing. The size is 0 where it is the checkout's own content.
    pub becomes: Option<Entry>,
    /// Whether that is neither what was accepted nor what was there, but a merge.
    pub merged: bool,
}

/// A plan that passed every check. The only way to get one is [`ChangeSet::check`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckedPlan {
    change_set: ChangeSetId,
    actions: Vec<Action>,
    already: Vec<RepoPath>,
    accepts: BTreeMap<RepoPath, Option<Entry>>,
    accepted: Option<ObjectId>,
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

    /// What is accepted of each chosen path once this plan is done.
    pub fn accepts(&self) -> &BTreeMap<RepoPath, Option<Entry>> {
        &self.accepts
    }

    /// The same plan, with the tree in which all that is accepted afterwards was written down.
    #[must_use]
    pub fn accepting(mut self, tree: ObjectId) -> Self {
        self.accepted = Some(tree);
        self
    }

    /// The tree of all that is accepted afterwards, where it was written down.
    pub fn accepted(&self) -> Option<&ObjectId> {
        self.accepted.as_ref()
    }

    /// Chosen paths that hold what was chosen already.
    pub fn already(&self) -> &[RepoPath] {
        &self.already
    }

    /// Whether nothing of the change set is left once this plan is done.
    pub fn is_complete(&self) -> bool {
        self.complete
    }
}

impl Goal {
    /// From base to result.
    fn of(change: &Change) -> Self {
        Self { old: change.old.clone(), without: change.old.clone(), target: change.new.clone() }
    }
}

impl ChangeSet {
    /// The merges without which the chosen part cannot be checked.
    pub fn to_merge(&self, selection: &Selection, grounds: &Grounds, checkout: &Checkout) -> Vec<ToMerge> {
        let chosen = &Chosen::of(selection);
        let chosen_changes = self.changes.iter().filter(|change| chosen.includes(&change.path));
        let needs = chosen_changes.filter_map(|change| match self.verdict(change, chosen, grounds, checkout) {
            Ok((_, Verdict::Needs(Needs { base, ours, theirs }))) => {
                Some(ToMerge { path: change.path.clone(), base, ours, theirs })
            }
            _ => None,
        });
        needs.collect()
    }

    /// Checks the chosen part against the checkout. Every obstacle is reported, not the first.
    pub fn check(
        &self,
        selection: &Selection,
        grounds: &Grounds,
        checkout: &Checkout,
    ) -> Result<CheckedPlan, Vec<Conflict>> {
        let chosen = &Chosen::of(selection);
        let mut conflicts = Vec::new();
        let mut actions = Vec::new();
        let mut already = Vec::new();
        let mut accepts = BTreeMap::new();
        let mut complete = true;
        for change in &self.changes {
            let goal = grounds.goal(change);
            if !chosen.includes(&change.path) {
                complete &= verdict::same(goal.old.as_ref(), change.new.as_ref());
                continue;
            }
            complete &= verdict::same(goal.target.as_ref(), change.new.as_ref());
            accepts.insert(change.path.clone(), goal.target);
            match self.decide(change, chosen, grounds, checkout) {
                Ok(Some(action)) => actions.push(action),
                Ok(None) => already.push(change.path.clone()),
                Err(conflict) => conflicts.push(conflict),
            }
        }
        conflicts.extend(unknown_paths(self, chosen));
        conflicts.extend(names::collisions(&actions, checkout));
        if conflicts.is_empty() {
            Ok(CheckedPlan { change_set: self.id.clone(), actions, already, accepts, accepted: None, complete })
        } else {
            Err(conflicts)
        }
    }

    /// What applying each path now would do, were every one chosen, named and looked at.
    pub fn outlook(&self, grounds: &Grounds, checkout: &Checkout) -> BTreeMap<RepoPath, Outlook> {
        let everything = Selection::Paths(self.changes.iter().map(|change| change.path.clone()).collect());
        let chosen = &Chosen::of(&everything);
        let mut outlook = BTreeMap::new();
        let mut actions = Vec::new();
        for change in &self.changes {
            let seen = match self.decide(change, chosen, grounds, checkout) {
                Ok(Some(action)) => {
                    let merged = action.becomes.as_ref().filter(|_| action.merged).map(|entry| entry.object.clone());
                    actions.push(action);
                    merged.map_or(Outlook::Clean, Outlook::Merge)
                }
                Ok(None) => Outlook::Already,
                Err(Conflict { kind: ConflictKind::MergeNotShown, object: Some(object), .. }) => {
                    object.parse().map_or(Outlook::Clean, Outlook::Merge)
                }
                Err(conflict) => Outlook::Conflict(conflict),
            };
            outlook.insert(change.path.clone(), seen);
        }
        for collision in names::collisions(&actions, checkout) {
            if let Ok(path) = RepoPath::try_from(collision.path.clone()) {
                outlook.insert(path, Outlook::Conflict(collision));
            }
        }
        outlook
    }

    /// What is to be done at one path; `None` for nothing.
    fn decide(
        &self,
        change: &Change,
        chosen: &Chosen<'_>,
        grounds: &Grounds,
        checkout: &Checkout,
    ) -> Result<Option<Action>, Conflict> {
        let path = &change.path;
        let (current, verdict) = self.verdict(change, chosen, grounds, checkout)?;
        let writable = WritablePath::check(path.clone())
            .map_err(|refusal| Conflict::new(path, ConflictKind::NameRefused, refusal.rule.to_string()))?;
        let act = |becomes, merged| Action { path: writable, expected: current, becomes, merged };
        match verdict {
            Verdict::Already => Ok(None),
            Verdict::Write(becomes) => Ok(Some(act(becomes, false))),
            Verdict::Keep(becomes) => Ok(Some(act(Some(becomes), true))),
            Verdict::Merged(becomes) if grounds.shown.get(path) == Some(&becomes.object) => {
                Ok(Some(act(Some(becomes), true)))
            }
            Verdict::Merged(becomes) => {
                let detail = "it was changed since; both changes fit together, but nobody has looked at the merge yet";
                let object = Some(becomes.object.to_string());
                Err(Conflict { object, ..Conflict::new(path, ConflictKind::MergeNotShown, detail) })
            }
            Verdict::Needs(_) => {
                Err(Conflict::new(path, ConflictKind::ContentDiffers, "it was changed since the job's base"))
            }
        }
    }

    /// Everything that can be said about one chosen path, and what counts as being there.
    fn verdict(
        &self,
        change: &Change,
        chosen: &Chosen<'_>,
        grounds: &Grounds,
        checkout: &Checkout,
    ) -> Result<(Option<(EntryMode, ObjectId)>, Verdict), Conflict> {
        let path = &change.path;
        WritablePath::check(path.clone())
            .map_err(|refusal| Conflict::new(path, ConflictKind::NameRefused, refusal.rule.to_string()))?;
        check_kind(change, chosen)?;
        if tier(path) == Some(Tier::Sensitive) && !chosen.names(path) {
            let detail = "it can execute by itself later; look at it, then name or confirm it";
            return Err(Conflict::new(path, ConflictKind::SensitiveNotConfirmed, detail));
        }
        if checkout.unsaved.contains(path) {
            return Err(Conflict::new(path, ConflictKind::UnsavedText, "an editor holds unsaved text for it"));
        }
        if let Some(why) = grounds.refused.get(path) {
            return Err(Conflict::new(path, ConflictKind::ContentDiffers, why));
        }
        let observed = checkout.observed.get(path).unwrap_or(&Observed::Absent);
        let current = self.current(change, chosen, observed)?;
        let verdict = verdict::of(path, &grounds.goal(change), current.as_ref(), grounds.merges.get(path))?;
        Ok((current, verdict))
    }

    /// What counts as being at the path. What the chosen part itself deletes is not in its way.
    fn current(
        &self,
        change: &Change,
        chosen: &Chosen<'_>,
        observed: &Observed,
    ) -> Result<Option<(EntryMode, ObjectId)>, Conflict> {
        let path = &change.path;
        let deleted = |other: &Change| other.new.is_none() && chosen.includes(&other.path);
        match observed {
            Observed::Absent => Ok(None),
            Observed::Entry { mode, object } => Ok(Some((*mode, object.clone()))),
            // Whatever is there or in the way: it is not the file that the job deleted.
            Observed::Directory { .. } | Observed::Beneath(_) if change.new.is_none() => Ok(None),
            Observed::Directory { foreign: Some(entry) } => {
                let detail = format!("a directory is there, and {entry} in it stays");
                Err(Conflict::new(path, ConflictKind::DirectoryInTheWay, detail))
            }
            Observed::Directory { foreign: None } => {
                match self.changes.iter().find(|other| is_below(&other.path, path) && !deleted(other)) {
                    Some(kept) => {
                        let detail = format!("a directory is there; choose {} too", kept.path);
                        Err(Conflict::new(path, ConflictKind::DirectoryInTheWay, detail))
                    }
                    None => Ok(None),
                }
            }
            Observed::Beneath(obstacle) => {
                if self.changes.iter().any(|other| other.path == *obstacle && deleted(other)) {
                    return Ok(None);
                }
                let detail = format!("{obstacle} on the way to it is no directory");
                Err(Conflict::new(path, ConflictKind::DirectoryInTheWay, detail))
            }
            Observed::Obstacle(what) => Err(Conflict::new(path, ConflictKind::NotARegularFile, what.clone())),
            Observed::Unreadable(why) => Err(Conflict::new(path, ConflictKind::FileSystem, why.clone())),
        }
    }
}

impl Grounds {
    fn goal(&self, change: &Change) -> Goal {
        self.goals.get(&change.path).cloned().unwrap_or_else(|| Goal::of(change))
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

fn check_kind(change: &Change, chosen: &Chosen<'_>) -> Result<(), Conflict> {
    let modes = || [&change.old, &change.new].into_iter().flatten().map(|entry| entry.mode);
    if modes().any(|mode| mode == EntryMode::Gitlink) {
        let detail = "it is a nested repository, which is never written";
        return Err(Conflict::new(&change.path, ConflictKind::KindRefused, detail));
    }
    if modes().any(|mode| mode == EntryMode::Symlink) && !chosen.names(&change.path) {
        let detail = "it is a symbolic link, written only when it is named or confirmed";
        return Err(Conflict::new(&change.path, ConflictKind::SymlinkNotNamed, detail));
    }
    Ok(())
}

fn unknown_paths(set: &ChangeSet, chosen: &Chosen<'_>) -> Vec<Conflict> {
    let known: BTreeSet<&RepoPath> = set.changes.iter().map(|change| &change.path).collect();
    let unknown = chosen.named.difference(&known);
    unknown.map(|path| Conflict::new(path, ConflictKind::Missing, "it is not among the job's changes")).collect()
}

fn is_below(path: &RepoPath, directory: &RepoPath) -> bool {
    path.as_bytes().strip_prefix(directory.as_bytes()).is_some_and(|rest| rest.first() == Some(&b'/'))
}

#[cfg(test)]
mod tests;
