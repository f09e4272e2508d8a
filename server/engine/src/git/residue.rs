//! What a verification left in a job's tree, so that a job which goes on there does not take it for its own.
//!
//! The result is captured before its verification runs, and what that writes is no part of it. It stays to be looked
//! at. When the job is resumed, files that the verification made and nobody touched since are removed first, and files
//! of the job's that it renamed get their names back ([`Residue::clear`]); files of the result that it changed cannot
//! be told from work by then, and are named. All are known by their `stat` from just before and just after
//! ([`Standing`]). Nothing of the job, or of its verification, runs meanwhile.

use std::collections::{BTreeMap, HashMap};
use std::os::fd::OwnedFd;

use pactify_core::job::Base;
use pactify_core::job::event::TreeRecord;
use pactify_core::{AbsPath, RepoPath};
use rustix::fs::{AtFlags, Mode, RenameFlags, renameat, renameat_with, statat, unlinkat};
use rustix::io::Errno;

use super::capture::{self, open_below, open_recorded};
use super::command::Place;
use super::error::GitError;
use super::included::Included;
use super::manifest::{Fingerprint, Manifest};
use super::{Git, Places};
use crate::disk::ensure_on_same;

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
    /// Nothing, where the base has something, which was this as the tree was populated.
    Gone(Option<Fingerprint>),
}

/// What a verification wrote.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Residue {
    /// What it made: nothing was there in the result.
    made: BTreeMap<RepoPath, Fingerprint>,
    /// What it renamed of the result, by the name that it has now.
    renamed: BTreeMap<RepoPath, Renamed>,
    /// What it changed or removed of the result, and files of the result that have another name beside what took
    /// theirs.
    changed: Vec<RepoPath>,
}

/// A file with another name than it had.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Renamed {
    found: Fingerprint,
    was: RepoPath,
}

/// What became of a residue.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Cleared {
    /// What is gone now.
    pub removed: Vec<RepoPath>,
    /// What has its name again.
    pub renamed: Vec<RepoPath>,
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
        let populated = |path: &RepoPath| manifest.files.get(path).copied();
        standing.extend(gone.into_iter().map(|path| (path.clone(), Entry::Gone(populated(&path)))));
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
                (None, Entry::New(found)) | (Some(Entry::Gone(_)), Entry::New(found) | Entry::Changed(found)) => {
                    residue.made.insert(path.clone(), *found);
                }
                _ => residue.changed.push(path.clone()),
            }
        }
        let was_there = |entry: &Entry| !matches!(entry, Entry::Gone(_));
        let gone = before.0.iter().filter(|(path, entry)| was_there(entry) && !self.0.contains_key(*path));
        residue.changed.extend(gone.map(|(path, _)| path.clone()));
        residue.tell_renames(before, self);
        residue
    }

    /// What stands at a path, as far as it is not as the tree was populated.
    fn found(&self, path: &RepoPath) -> Option<Fingerprint> {
        match self.0.get(path)? {
            Entry::New(found) | Entry::Changed(found) => Some(*found),
            Entry::Gone(_) => None,
        }
    }

    /// As it is kept on the disk.
    pub fn to_bytes(&self) -> Vec<u8> {
        self.0
            .iter()
            .flat_map(|(path, entry)| match entry {
                Entry::New(found) => line(b'+', path, Some(found)),
                Entry::Changed(found) => line(b'*', path, Some(found)),
                Entry::Gone(populated) => line(b'-', path, populated.as_ref()),
            })
            .collect()
    }

    /// What [`Self::to_bytes`] wrote; nothing when it did not write this.
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        let entries = lines(bytes).map(|line| match line? {
            (b'+', path, Some(found)) => Some((path, Entry::New(found))),
            (b'*', path, Some(found)) => Some((path, Entry::Changed(found))),
            (b'-', path, populated) => Some((path, Entry::Gone(populated))),
            _ => None,
        });
        entries.collect::<Option<_>>().map(Self)
    }
}

impl Residue {
    /// Whether there is nothing.
    pub fn is_empty(&self) -> bool {
        self.made.is_empty() && self.renamed.is_empty() && self.changed.is_empty()
    }

    /// Takes for renamed what was made and is in all but its name what stood elsewhere before. What took its place, if
    /// something did, cannot be told from work by then: both stay.
    fn tell_renames(&mut self, before: &Standing, after: &Standing) {
        let was = |path: &RepoPath| match (before.found(path), after.0.get(path)) {
            (None, Some(Entry::Gone(populated))) => *populated,
            (found, _) => found,
        };
        let lost = self.changed.iter().filter_map(|path| was(path).map(|found| (found.inode(), (path.clone(), found))));
        let mut lost: HashMap<u64, (RepoPath, Fingerprint)> = lost.collect();
        self.made.retain(|path, found| {
            // An inode alone may have been given to another file.
            let is_it = lost.get(&found.inode()).is_some_and(|(_, before)| before.is_same_file(found));
            let Some((was, _)) = is_it.then(|| lost.remove(&found.inode())).flatten() else { return true };
            if after.found(&was).is_some() {
                self.changed.push(path.clone());
            } else {
                self.changed.retain(|changed| *changed != was);
                self.renamed.insert(path.clone(), Renamed { found: *found, was });
            }
            false
        });
    }

    /// Removes what was made, and gives what was renamed its name again, as far as it was not touched since: in this
    /// order, as something that was made may stand in the way. Nothing may run in the tree.
    ///
    /// # Errors
    /// [`GitError::TreeReplaced`].
    pub fn clear(self, tree: &TreeRecord) -> Result<Cleared, GitError> {
        let root = open_recorded(tree)?;
        let mut cleared = Cleared { changed: self.changed, ..Cleared::default() };
        for (path, made) in self.made {
            match seen_in(&root, &path, &made) {
                Ok(Some(directory)) if unlinkat(&directory, path.file_name(), AtFlags::empty()).is_ok() => {
                    cleared.removed.push(path);
                }
                Err(Errno::NOENT | Errno::NOTDIR) => {}
                Ok(_) | Err(_) => cleared.kept.push(path),
            }
        }
        for (path, Renamed { found, was }) in self.renamed {
            match seen_in(&root, &path, &found) {
                Ok(Some(directory)) if rename_back(&root, (&directory, &path), &was).is_ok() => {
                    cleared.renamed.push(was);
                }
                Err(Errno::NOENT | Errno::NOTDIR) => cleared.changed.push(was),
                Ok(_) | Err(_) => {
                    cleared.kept.push(path);
                    cleared.changed.push(was);
                }
            }
        }
        Ok(cleared)
    }

    /// As it is kept on the disk.
    pub fn to_bytes(&self) -> Vec<u8> {
        let made = self.made.iter().flat_map(|(path, found)| line(b'+', path, Some(found)));
        let renamed = self
            .renamed
            .iter()
            .flat_map(|(path, Renamed { found, was })| [line(b'>', path, Some(found)), line(b'<', was, None)].concat());
        made.chain(renamed).chain(self.changed.iter().flat_map(|path| line(b'*', path, None))).collect()
    }

    /// What [`Self::to_bytes`] wrote; nothing when it did not write this.
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        let mut residue = Self::default();
        let mut lines = lines(bytes);
        while let Some(line) = lines.next() {
            match line? {
                (b'>', path, Some(found)) => {
                    let (b'<', was, None) = lines.next()?? else { return None };
                    residue.renamed.insert(path, Renamed { found, was });
                }
                (b'+', path, Some(found)) => drop(residue.made.insert(path, found)),
                (b'*', path, None) => residue.changed.push(path),
                _ => return None,
            }
        }
        Some(residue)
    }
}

/// The directory of the entry, if it is the one that was seen.
fn seen_in(root: &OwnedFd, path: &RepoPath, seen: &Fingerprint) -> Result<Option<OwnedFd>, Errno> {
    let directory = open_below(root, path.parent().as_ref())?;
    let found = Fingerprint::of(&statat(&directory, path.file_name(), AtFlags::SYMLINK_NOFOLLOW)?);
    Ok((found == *seen).then_some(directory))
}

/// Gives the entry the name `to`, if nothing has that name.
fn rename_back(root: &OwnedFd, (directory, path): (&OwnedFd, &RepoPath), to: &RepoPath) -> Result<(), Errno> {
    let mut target = open_below(root, None)?;
    for component in to.parent().iter().flat_map(RepoPath::components) {
        target = ensure_on_same(&target, component, Mode::RWXU | Mode::RWXG | Mode::RWXO)?;
    }
    match renameat_with(directory, path.file_name(), &target, to.file_name(), RenameFlags::NOREPLACE) {
        // A file system without that flag; nothing runs in the tree that could make one in between.
        Err(Errno::INVAL | Errno::NOSYS) => match statat(&target, to.file_name(), AtFlags::SYMLINK_NOFOLLOW) {
            Err(Errno::NOENT) => renameat(directory, path.file_name(), &target, to.file_name()),
            Err(errno) => Err(errno),
            Ok(_) => Err(Errno::EXIST),
        },
        renamed => renamed,
    }
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
