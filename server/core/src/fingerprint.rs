//! What steers git in a person's git directories: looked at before a job runs and after it, and told apart.
//!
//! A linked worktree shares configuration, hooks, refs and stash with the person's checkout, and even a private one
//! does not keep a process from writing there by path (threats T-06, T-10). So the engine takes a [`SharedState`] of
//! the git directory that all checkouts share, and [`differences`] says how two of them differ. [`weigh`] says what a
//! difference means for the person. Nobody is accused: a person, another job or a fetch may have been at work
//! meanwhile.
//!
//! Not in here: objects, logs (but the stash's), indexes, `FETCH_HEAD` and the like, which every git command rewrites,
//! and what pactify has there itself ([`is_ours`]). How files are read and put back is the engine's.

pub mod config;
pub mod index;
pub mod refs;
pub mod weigh;

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::RepoPath;

pub use self::config::Value;
pub use self::refs::{RefValue, StashEntry};
pub use self::weigh::{OutsideChange, Weight};

/// What the shared git directory held at one moment. Names are paths below it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SharedState {
    /// Files that steer git, and whatever stands in place of them.
    pub items: BTreeMap<RepoPath, Item>,
    /// Every ref of the repository by its full name, and `HEAD` and `worktrees/<name>/HEAD`.
    pub refs: BTreeMap<RepoPath, RefValue>,
    /// The stash, newest first.
    pub stash: Vec<StashEntry>,
    /// What could not be looked at, with the reason: never taken for unchanged.
    pub gaps: BTreeMap<RepoPath, String>,
}

/// One file, or what stands in its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Item {
    /// A regular file.
    File {
        /// Whether anybody may execute it.
        executable: bool,
        /// Its size in bytes.
        size: u64,
        /// A digest of its content.
        digest: String,
        /// The content, unless it was too large to be kept.
        content: Option<Vec<u8>>,
    },
    /// A symbolic link.
    Link {
        /// Where it leads, as written in it.
        target: Vec<u8>,
    },
    /// A pipe, a socket, a device, or a directory where a file belongs.
    Special {
        /// Which of them.
        what: String,
    },
}

/// One way in which two states differ. The order of [`differences`] is stable, so a place in it is a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Difference {
    /// A key of a configuration file has other values.
    Key {
        /// The file.
        file: RepoPath,
        /// The key: section and name folded, subsection as it is.
        key: String,
        /// Its values before, in order.
        old: Vec<Value>,
        /// Its values now.
        new: Vec<Value>,
    },
    /// A file is there, gone, or another one.
    Item {
        /// The file.
        name: RepoPath,
        /// Before.
        old: Option<Item>,
        /// Now.
        new: Option<Item>,
    },
    /// A worktree is registered, or no longer.
    Registration {
        /// Its directory, `worktrees/<name>`.
        name: RepoPath,
        /// Its files, of before or of now, by their path below the shared git directory.
        items: BTreeMap<RepoPath, Item>,
        /// What its `HEAD` names.
        head: Option<RefValue>,
        /// Whether it is gone, and not new.
        gone: bool,
    },
    /// A ref, or a `HEAD`, has another value.
    Ref {
        /// Its name.
        name: RepoPath,
        /// Before.
        old: Option<RefValue>,
        /// Now.
        new: Option<RefValue>,
    },
    /// The stash has other entries.
    Stash {
        /// Entries that are gone, newest first.
        missing: Vec<StashEntry>,
        /// How many are new.
        added: usize,
    },
    /// Something could not be compared.
    Gap {
        /// What.
        name: RepoPath,
        /// Why.
        why: String,
        /// Whether it could be compared before: then anything can hide there now.
        fresh: bool,
    },
}

/// Whether a ref is one that pactify keeps itself.
pub fn is_ours(name: &RepoPath) -> bool {
    name.as_bytes().starts_with(b"refs/pactify/")
}

/// The registration, `worktrees/<name>`, that a file below the shared git directory belongs to.
pub fn registration_of(name: &RepoPath) -> Option<RepoPath> {
    let mut parts = name.components();
    if parts.next() != Some(b"worktrees") {
        return None;
    }
    let own = parts.next()?;
    parts.next()?;
    RepoPath::new([b"worktrees/", own].concat()).ok()
}

/// Whether the file is read as configuration.
pub fn is_config(name: &RepoPath) -> bool {
    matches!(name.file_name(), b"config" | b"config.worktree")
}

/// Every way in which `after` differs from `before`, in a stable order.
pub fn differences(before: &SharedState, after: &SharedState) -> Vec<Difference> {
    let mut found = Vec::new();
    let (old, new) = (registrations(before), registrations(after));
    let one_sided: BTreeSet<&RepoPath> = old.symmetric_difference(&new).collect();
    for name in &one_sided {
        let gone = old.contains(*name);
        found.push(registration(name, if gone { before } else { after }, gone));
    }
    let names: BTreeSet<&RepoPath> = before.items.keys().chain(after.items.keys()).collect();
    for name in names {
        let of_one_side = registration_of(name).is_some_and(|own| one_sided.contains(&own));
        if !of_one_side && !is_index(name) && !is_unknown(name, before) && !is_unknown(name, after) {
            item(name, before.items.get(name), after.items.get(name), &mut found);
        }
    }
    let names: BTreeSet<&RepoPath> = before.refs.keys().chain(after.refs.keys()).collect();
    for name in names {
        let (old, new) = (before.refs.get(name), after.refs.get(name));
        let of_one_side = registration_of(name).is_some_and(|own| one_sided.contains(&own));
        let known = !is_unknown(name, before) && !is_unknown(name, after);
        if old != new && known && !of_one_side && !is_ours(name) && !is_stash(name) {
            found.push(Difference::Ref { name: name.clone(), old: old.cloned(), new: new.cloned() });
        }
    }
    stash(before, after, &mut found);
    let gaps = before.gaps.iter().chain(&after.gaps).collect::<BTreeMap<_, _>>();
    found.extend(gaps.into_iter().map(|(name, why)| {
        let fresh = !before.gaps.contains_key(name);
        Difference::Gap { name: name.clone(), why: why.clone(), fresh }
    }));
    found
}

fn stash(before: &SharedState, after: &SharedState, found: &mut Vec<Difference>) {
    let absent = |from: &[StashEntry], of: &StashEntry| !from.iter().any(|entry| entry.commit == of.commit);
    let missing: Vec<_> = before.stash.iter().filter(|entry| absent(&after.stash, entry)).cloned().collect();
    let added = after.stash.iter().filter(|entry| absent(&before.stash, entry)).count();
    if !missing.is_empty() || added > 0 {
        found.push(Difference::Stash { missing, added });
    }
}

fn registration(name: &RepoPath, from: &SharedState, gone: bool) -> Difference {
    let is_of = |path: &&RepoPath| registration_of(path).as_ref() == Some(name);
    let of = |(path, item): (&RepoPath, &Item)| (path.clone(), item.clone());
    let items = from.items.iter().filter(|(path, _)| is_of(path)).map(of).collect();
    let head = from.refs.iter().find(|(path, _)| is_of(path)).map(|(_, value)| value.clone());
    Difference::Registration { name: name.clone(), items, head, gone }
}

fn registrations(state: &SharedState) -> BTreeSet<RepoPath> {
    let unknown = state.gaps.keys().filter(|name| name.as_bytes().starts_with(b"worktrees/")).cloned();
    state.items.keys().filter_map(registration_of).chain(unknown).collect()
}

fn item(name: &RepoPath, old: Option<&Item>, new: Option<&Item>, found: &mut Vec<Difference>) {
    if old.map(Item::identity) == new.map(Item::identity) {
        return;
    }
    if is_config(name)
        && let (Some(before), Some(after)) = (keys(old), keys(new))
    {
        let all: BTreeSet<&String> = before.keys().chain(after.keys()).collect();
        for key in all {
            let (old, new) =
                (before.get(key).cloned().unwrap_or_default(), after.get(key).cloned().unwrap_or_default());
            if old != new {
                found.push(Difference::Key { file: name.clone(), key: key.clone(), old, new });
            }
        }
        return;
    }
    found.push(Difference::Item { name: name.clone(), old: old.cloned(), new: new.cloned() });
}

/// The keys of a configuration file; none of one that isn't there. `None` where it cannot be understood.
pub fn keys(item: Option<&Item>) -> Option<BTreeMap<String, Vec<Value>>> {
    match item {
        None => Some(BTreeMap::new()),
        Some(Item::File { content: Some(text), .. }) => config::parse(text).ok(),
        Some(_) => None,
    }
}

/// Rewritten by every git command, and kept only to put back a registration that is gone.
fn is_index(name: &RepoPath) -> bool {
    name.file_name() == b"index"
}

fn is_stash(name: &RepoPath) -> bool {
    name.as_bytes() == b"refs/stash"
}

fn is_unknown(name: &RepoPath, state: &SharedState) -> bool {
    state.gaps.contains_key(name) || name.ancestors().any(|above| state.gaps.contains_key(&above))
}

impl Item {
    /// What two items are the same by: content counts by its digest.
    pub fn identity(&self) -> (u8, bool, u64, &[u8]) {
        match self {
            Self::File { executable, size, digest, .. } => (0, *executable, *size, digest.as_bytes()),
            Self::Link { target } => (1, false, 0, target),
            Self::Special { what } => (2, false, 0, what.as_bytes()),
        }
    }
}

/// A name as records write it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Named<T> {
    /// The path below the shared git directory.
    pub name: RepoPath,
    /// What is there.
    pub value: T,
}

#[cfg(test)]
mod tests;
