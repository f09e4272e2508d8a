//! Job's files that git stores in another form than the tree has.
//!
//! They are copied to the [`Stage`], converted together there, and stored. A file that git cannot convert (text that is
//! not in its declared encoding) is stored as it is.

use std::collections::BTreeSet;
use std::io::Read as _;
use std::os::fd::OwnedFd;

use pactify_core::change::EntryMode;
use pactify_core::{AbsPath, ObjectId, RepoPath};

use super::Outcome;
use super::entry::Candidate;
use super::store::{Trouble, copy_exactly};
use crate::git::Git;
use crate::git::config::Rules;
use crate::git::conversion::{Keep, Stage};
use crate::git::error::GitError;
use crate::git::listing::{Listed, Listing};

/// What converts a capture's files; without a stage where git converts nothing.
pub(super) struct Converter<'a> {
    listing: &'a Listing,
    stage: Option<Stage>,
}

/// Stored entries, and the files that could not be read with the reason.
type Converted = (Vec<Outcome>, Vec<(RepoPath, String)>);

impl<'a> Converter<'a> {
    pub(super) fn open(git: &Git, capture: &AbsPath, listing: &'a Listing, rules: &Rules) -> Result<Self, GitError> {
        Ok(Self { listing, stage: Stage::open(git, capture, listing, rules)? })
    }

    /// Which of `paths` git would convert.
    pub(super) fn affects<'p>(
        &self,
        paths: impl Iterator<Item = &'p RepoPath>,
    ) -> Result<BTreeSet<RepoPath>, GitError> {
        self.stage.as_ref().map_or_else(|| Ok(BTreeSet::new()), |stage| stage.affects(paths))
    }

    /// Which of `paths` are in Git LFS.
    pub(super) fn in_lfs<'p>(&self, paths: impl Iterator<Item = &'p RepoPath>) -> Result<BTreeSet<RepoPath>, GitError> {
        self.stage.as_ref().map_or_else(|| Ok(BTreeSet::new()), |stage| stage.in_lfs(paths))
    }

    /// Stores the contents of `candidates` as git would, and tells their entries.
    pub(super) fn convert(
        self,
        candidates: &[Candidate],
        root: &OwnedFd,
        mode: impl Fn(&Candidate) -> EntryMode,
    ) -> Result<Converted, GitError> {
        let Some(stage) = &self.stage else { return Ok(Converted::default()) };
        let mut outcomes = Vec::new();
        let mut troubles = Vec::new();
        let mut staged = Vec::new();
        let mut apart = Vec::new();
        for candidate in candidates {
            match copy(stage, candidate, root) {
                Ok(true) => staged.push(candidate),
                Ok(false) => apart.push(candidate),
                Err(Trouble::Theirs(why)) => troubles.push((candidate.path.clone(), why)),
                Err(Trouble::Ours(error)) => return Err(error),
            }
        }
        let paths: Vec<&RepoPath> = staged.iter().map(|candidate| &candidate.path).collect();
        let objects = stage.store(&paths, |path| self.listing.get(path), Keep::Objects)?;
        for candidate in staged {
            match objects.get(&candidate.path) {
                Some(object) => outcomes.push(entry(candidate, mode(candidate), object.clone())),
                None => apart.push(candidate),
            }
        }
        for candidate in apart {
            match store_apart(stage, candidate, root) {
                Ok(object) => outcomes.push(entry(candidate, mode(candidate), object)),
                Err(Trouble::Theirs(why)) => troubles.push((candidate.path.clone(), why)),
                Err(Trouble::Ours(error)) => return Err(error),
            }
        }
        Ok((outcomes, troubles))
    }
}

/// Copies a file to its path in the stage. False where that is not free.
fn copy(stage: &Stage, candidate: &Candidate, root: &OwnedFd) -> Result<bool, Trouble> {
    let Some(to) = stage.free(&candidate.path) else { return Ok(false) };
    copy_exactly(&to, candidate.size, candidate.open(root).map_err(Trouble::theirs)?)?;
    Ok(true)
}

/// Stores one file outside the stage, converted if git can.
fn store_apart(stage: &Stage, candidate: &Candidate, root: &OwnedFd) -> Result<ObjectId, Trouble> {
    let mut content = Vec::new();
    let file = candidate.open(root).map_err(Trouble::theirs)?;
    file.take(candidate.size).read_to_end(&mut content).map_err(Trouble::theirs)?;
    let stored = match stage.store_apart(&candidate.path, &content, Keep::Objects).map_err(Trouble::Ours)? {
        None => stage.store_verbatim(&content, Keep::Objects).map_err(Trouble::Ours)?,
        stored => stored,
    };
    stored.ok_or_else(|| Trouble::Theirs("git cannot store it".to_owned()))
}

fn entry(candidate: &Candidate, mode: EntryMode, object: ObjectId) -> Outcome {
    (candidate.path.clone(), Some(Listed { mode, object }))
}
