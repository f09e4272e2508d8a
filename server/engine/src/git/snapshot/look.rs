//! Which paths of a checkout have to be read: those that git's stat cache cannot vouch for, and what is staged.
//!
//! Nothing is opened here.

use std::collections::BTreeMap;

use pactify_core::RepoPath;
use pactify_core::change::EntryMode;
use rustix::fs::{AtFlags, FileType, Stat};
use rustix::io::Errno;

use super::Shot;
use super::told::Told;
use crate::git::capture::Outcome;
use crate::git::capture::entry::{Candidate, open_below};
use crate::git::conversion::below;
use crate::git::error::GitError;
use crate::git::listing::Listed;
use crate::git::manifest::Fingerprint;
use crate::git::uncommitted::{InCheckout, Tracked, Uncommitted};

/// One path that differs from HEAD, or may.
#[derive(Debug)]
pub(super) struct Seen {
    pub(super) head: Option<Listed>,
    /// Whether `head` is not known.
    pub(super) unmerged: bool,
    pub(super) index: Option<Listed>,
    pub(super) what: What,
}

/// What is at a path.
#[derive(Debug)]
pub(super) enum What {
    /// Nothing that a tree can hold.
    Gone,
    /// Not to be read: it is what the index has.
    Kept(Listed),
    /// A file or a link.
    File(Facts),
}

/// A file or link, unread.
#[derive(Debug)]
pub(super) struct Facts {
    pub(super) print: Fingerprint,
    pub(super) is_link: bool,
    executable: bool,
    size: u64,
    links: u64,
    identity: (u64, u64),
}

impl Seen {
    /// A path that HEAD and the index do not have.
    pub(super) fn new(what: What) -> Self {
        Self { head: None, unmerged: false, index: None, what }
    }

    /// The file to be read.
    pub(super) fn candidate(&self, path: &RepoPath) -> Option<Candidate> {
        match &self.what {
            What::File(facts) => Some(facts.candidate(path)),
            What::Gone | What::Kept(_) => None,
        }
    }

    /// What the snapshot has at a path that is not read.
    pub(super) fn settled(&self, path: &RepoPath) -> Option<Outcome> {
        match &self.what {
            What::Gone => Some((path.clone(), None)),
            What::Kept(entry) => Some((path.clone(), Some(entry.clone()))),
            What::File(_) => None,
        }
    }

    /// Whether HEAD has something else.
    pub(super) fn differs(&self, new: Option<&Listed>) -> bool {
        self.unmerged || self.head.as_ref() != new
    }
}

impl Facts {
    pub(super) fn of(stat: &Stat) -> Self {
        Self {
            print: Fingerprint::of(stat),
            is_link: FileType::from_raw_mode(stat.st_mode) == FileType::Symlink,
            executable: stat.st_mode & 0o100 != 0,
            size: u64::try_from(stat.st_size).unwrap_or_default(),
            links: stat.st_nlink,
            identity: (stat.st_dev, stat.st_ino),
        }
    }

    /// The same, with this executable bit.
    pub(super) fn with_executable(self, executable: bool) -> Self {
        Self { executable, ..self }
    }

    pub(super) fn candidate(&self, path: &RepoPath) -> Candidate {
        Candidate {
            path: path.clone(),
            is_link: self.is_link,
            executable: self.executable,
            size: self.size,
            links: self.links,
            identity: self.identity,
        }
    }
}

impl Shot<'_> {
    /// Looks at every path that git names.
    pub(super) fn look(&self, found: Uncommitted, told: &mut Told) -> Result<BTreeMap<RepoPath, Seen>, GitError> {
        let mut seen = BTreeMap::new();
        for tracked in found.tracked {
            let what = self.what(&tracked, told)?;
            let Tracked { path, head, index, unmerged, .. } = tracked;
            seen.insert(path, Seen { head, unmerged, index, what });
        }
        for path in found.untracked.into_iter().filter(|path| !self.is_in_store(path)) {
            if let Some(stat) = self.stat(&path)?.filter(is_storable) {
                // The index may have given it up, and HEAD not.
                seen.entry(path).or_insert_with(|| Seen::new(What::Gone)).what = What::File(Facts::of(&stat));
            }
        }
        Ok(seen)
    }

    fn what(&self, tracked: &Tracked, told: &mut Told) -> Result<What, GitError> {
        let as_in_index = tracked.checkout == InCheckout::AsInIndex;
        if as_in_index && tracked.index.is_none() {
            // Taken out of the index. A file there counts if git calls it untracked.
            return Ok(What::Gone);
        }
        match self.stat(&tracked.path)? {
            Some(stat) if is_storable(&stat) => Ok(What::File(Facts::of(&stat))),
            Some(stat) => {
                let is_directory = FileType::from_raw_mode(stat.st_mode) == FileType::Directory;
                told.special.extend((!is_directory).then(|| tracked.path.clone()));
                Ok(What::Gone)
            }
            // A sparse checkout leaves it out.
            None if as_in_index => Ok(tracked.index.clone().map_or(What::Gone, What::Kept)),
            None => Ok(What::Gone),
        }
    }

    /// What is at `path`, whatever it is; nothing follows a link.
    pub(super) fn stat(&self, path: &RepoPath) -> Result<Option<Stat>, GitError> {
        let stat = open_below(&self.root, path.parent().as_ref())
            .and_then(|directory| rustix::fs::statat(directory, path.file_name(), AtFlags::SYMLINK_NOFOLLOW));
        match stat {
            Ok(stat) => Ok(Some(stat)),
            Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => Ok(None),
            Err(errno) => {
                let why = std::io::Error::from(errno);
                Err(GitError::CheckoutUnreadable { message: format!("{}: {why}", path.display()) })
            }
        }
    }

    /// Whether a path lies in a store of pactify that is inside the checkout.
    fn is_in_store(&self, path: &RepoPath) -> bool {
        let at = below(&self.repository.worktree, path);
        at.as_path().starts_with(self.git.surroundings.store.as_path())
    }

    /// Notes the files that have a content filter.
    pub(super) fn note_filtered(&self, seen: &BTreeMap<RepoPath, Seen>, told: &mut Told) -> Result<(), GitError> {
        let files = seen.iter().filter(|(_, seen)| matches!(&seen.what, What::File(facts) if !facts.is_link));
        let filtered = self.git.with_attributes(self.place(), &["filter"], files.map(|(path, _)| path))?;
        told.filtered.extend(filtered);
        Ok(())
    }
}

pub(super) fn is_storable(stat: &Stat) -> bool {
    matches!(FileType::from_raw_mode(stat.st_mode), FileType::RegularFile | FileType::Symlink)
}

/// The mode of a file that only the index knows.
pub(super) fn is_executable(entry: Option<&Listed>) -> bool {
    entry.is_some_and(|entry| entry.mode == EntryMode::Executable)
}
