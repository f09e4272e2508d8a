//! What a verification left in a job's tree, so that a job which goes on there does not take it for its own.
//!
//! The result is captured before its verification runs, and what that writes is no part of it. It stays to be looked
//! at. When the job is resumed, files that the verification made and nobody touched since are removed first
//! ([`Residue::remove`]); files of the result that it changed cannot be told from work by then, and are named. Both are
//! known by their `stat` from just before and just after ([`Standing`]). Nothing of the job, or of its verification,
//! runs meanwhile.

use std::collections::BTreeMap;
use std::os::fd::OwnedFd;

use pactify_core::job::Base;
use pactify_core::job::event::TreeRecord;
use pactify_core::{AbsPath, RepoPath};
use rustix::fs::{AtFlags, statat, unlinkat};
use rustix::io::Errno;

use super::capture::{self, open_below, open_recorded};
use super::command::Place;
use super::error::GitError;
use super::included::Included;
use super::manifest::{Fingerprint, Manifest};
use super::{Git, Places};

/// The entries of a tree that are not as the tree was populated, without those that git ignores.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Standing(BTreeMap<RepoPath, Entry>);

/// What stands at a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Entry {
    /// A file or a link that the base does not have.
    New(Fingerprint),
    /// One that it has.
    Changed(Fingerprint),
    /// Nothing, where the base has something.
    Gone,
}

/// What a verification wrote.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Residue {
    /// What it made: nothing was there in the result.
    made: BTreeMap<RepoPath, Fingerprint>,
    /// What it changed or removed of the result.
    changed: Vec<RepoPath>,
}

/// What became of a residue.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Removed {
    /// What is gone now.
    pub removed: Vec<RepoPath>,
    /// What was made by the verification and touched since, or could not be removed.
    pub kept: Vec<RepoPath>,
    /// What it changed of the result, and what is as it left it.
    pub changed: Vec<RepoPath>,
}

impl Git {
    /// Looks at the tree of a job whose result is captured.
    ///
    /// # Errors
    /// [`GitError::TreeReplaced`], or when our own records cannot be read.
    pub fn standing(&self, places: &Places, base: &Base, tree: &TreeRecord) -> Result<Standing, GitError> {
        let root = open_recorded(tree)?;
        let manifest = Manifest::read(&places.manifest())?;
        let capture: AbsPath = places.capture();
        let place = Place::Private { git_dir: &capture, work_tree: None, index: None };
        let listing = self.list(place, &base.tree)?;
        let ignores = self.ignores(place, &listing, &manifest.header.rules)?;
        let included = Included::read(&places.included());
        let (there, gone) = capture::standing(&root, &listing, &manifest, &ignores, &included)?;
        let mut standing = BTreeMap::new();
        for path in there {
            let Ok(found) = look(&root, &path) else { continue };
            let entry = if listing.get(&path).is_some() { Entry::Changed(found) } else { Entry::New(found) };
            standing.insert(path, entry);
        }
        standing.extend(gone.into_iter().map(|path| (path, Entry::Gone)));
        Ok(Standing(standing))
    }
}

impl Standing {
    /// What was written between `before` and this.
    pub fn since(&self, before: &Self) -> Residue {
        let mut residue = Residue::default();
        for (path, entry) in &self.0 {
            match (before.0.get(path), entry) {
                (Some(old), new) if old == new => {}
                (None, Entry::New(found)) | (Some(Entry::Gone), Entry::New(found) | Entry::Changed(found)) => {
                    residue.made.insert(path.clone(), *found);
                }
                _ => residue.changed.push(path.clone()),
            }
        }
        let gone = before.0.iter().filter(|(path, entry)| **entry != Entry::Gone && !self.0.contains_key(path));
        residue.changed.extend(gone.map(|(path, _)| path.clone()));
        residue
    }

    /// As it is kept on the disk.
    pub fn to_bytes(&self) -> Vec<u8> {
        self.0
            .iter()
            .flat_map(|(path, entry)| match entry {
                Entry::New(found) => line(b'+', path, Some(found)),
                Entry::Changed(found) => line(b'*', path, Some(found)),
                Entry::Gone => line(b'-', path, None),
            })
            .collect()
    }

    /// What [`Self::to_bytes`] wrote; nothing when it did not write this.
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        let entries = lines(bytes).map(|line| match line? {
            (b'+', path, Some(found)) => Some((path, Entry::New(found))),
            (b'*', path, Some(found)) => Some((path, Entry::Changed(found))),
            (b'-', path, None) => Some((path, Entry::Gone)),
            _ => None,
        });
        entries.collect::<Option<_>>().map(Self)
    }
}

impl Residue {
    /// Whether there is nothing.
    pub fn is_empty(&self) -> bool {
        self.made.is_empty() && self.changed.is_empty()
    }

    /// Removes what was made and not touched since. Nothing may run in the tree.
    ///
    /// # Errors
    /// [`GitError::TreeReplaced`].
    pub fn remove(self, tree: &TreeRecord) -> Result<Removed, GitError> {
        let root = open_recorded(tree)?;
        let mut removed = Removed { changed: self.changed, ..Removed::default() };
        for (path, made) in self.made {
            match remove(&root, &path, &made) {
                Ok(true) => removed.removed.push(path),
                Err(Errno::NOENT | Errno::NOTDIR) => {}
                Ok(false) | Err(_) => removed.kept.push(path),
            }
        }
        Ok(removed)
    }

    /// As it is kept on the disk.
    pub fn to_bytes(&self) -> Vec<u8> {
        let made = self.made.iter().flat_map(|(path, found)| line(b'+', path, Some(found)));
        made.chain(self.changed.iter().flat_map(|path| line(b'*', path, None))).collect()
    }

    /// What [`Self::to_bytes`] wrote; nothing when it did not write this.
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        let mut residue = Self::default();
        for line in lines(bytes) {
            match line? {
                (b'+', path, Some(found)) => drop(residue.made.insert(path, found)),
                (b'*', path, None) => residue.changed.push(path),
                _ => return None,
            }
        }
        Some(residue)
    }
}

/// Removes the entry, if it is the one that was seen.
fn remove(root: &OwnedFd, path: &RepoPath, seen: &Fingerprint) -> Result<bool, Errno> {
    let directory = open_below(root, path.parent().as_ref())?;
    if Fingerprint::of(&statat(&directory, path.file_name(), AtFlags::SYMLINK_NOFOLLOW)?) != *seen {
        return Ok(false);
    }
    unlinkat(&directory, path.file_name(), AtFlags::empty()).map(|()| true)
}

fn look(root: &OwnedFd, path: &RepoPath) -> Result<Fingerprint, Errno> {
    let directory = open_below(root, path.parent().as_ref())?;
    statat(&directory, path.file_name(), AtFlags::SYMLINK_NOFOLLOW).map(|stat| Fingerprint::of(&stat))
}

/// A sign, a fingerprint or none, a path.
fn line(sign: u8, path: &RepoPath, found: Option<&Fingerprint>) -> Vec<u8> {
    let facts = found.map_or_else(|| "- ".to_owned(), |found| found.to_words());
    [&[sign, b' '], facts.as_bytes(), path.as_bytes(), b"\0"].concat()
}

type Line = (u8, RepoPath, Option<Fingerprint>);

fn lines(bytes: &[u8]) -> impl Iterator<Item = Option<Line>> {
    bytes.split_inclusive(|byte| *byte == 0).map(|line| {
        let (sign, rest) = line.split_first()?;
        let rest = rest.strip_prefix(b" ")?;
        match rest.strip_prefix(b"- ") {
            Some(name) => Some((*sign, RepoPath::new(name.strip_suffix(b"\0")?).ok()?, None)),
            None => Fingerprint::parse(rest).map(|(path, found)| (*sign, path, Some(found))),
        }
    })
}
