//! A whole git directory as it was, for a job that works in the checkout itself and may change nothing.
//!
//! [`Part::GitDir`] names the little that does not count. Of that every index, of whichever checkout or submodule, is
//! compared here by what it means, and refs are [`super::shared`]'s part.

use std::collections::{BTreeMap, BTreeSet};
use std::os::fd::OwnedFd;

use pactify_core::display::neutral;
use pactify_core::fingerprint::Item;
use pactify_core::fingerprint::index::meaning;
use pactify_core::{AbsPath, RepoPath};
use rustix::fs::Mode;
use rustix::io::Errno;
use serde::{Deserialize, Serialize};

use super::baseline::part::{Layout, Part, Spared};
use super::baseline::{Baseline, BaselineError, Comparison};
use super::shared;
use crate::disk::DIRECTORY;
use crate::env::Env;
use crate::hash;

/// The longest index that is read for its meaning; of a longer one every byte counts.
const KEPT_INDEX: u64 = 256 << 20;

/// A git directory at one moment.
#[derive(Debug)]
pub(super) struct GitDir {
    path: AbsPath,
    baseline: Baseline,
    indexes: Indexes,
}

/// What a record says of one beside its entries.
#[derive(Serialize, Deserialize)]
pub(super) struct GitDirRecord {
    path: AbsPath,
    /// How many bytes the entries take.
    length: u64,
    indexes: Vec<(Vec<u8>, String)>,
}

/// A digest of what the index of each git directory in there means.
type Indexes = BTreeMap<Vec<u8>, String>;

impl GitDir {
    pub(super) fn take(env: &Env, path: &AbsPath, sha256: bool, spared: &Spared) -> Result<Self, BaselineError> {
        let top = open(path)?;
        let layout = Layout::of(&top, spared, |_| false)?;
        let indexes = indexes(&top, &layout, sha256)?;
        let baseline = Baseline::take_part(env, path, Part::GitDir(layout))?;
        Ok(Self { path: path.clone(), baseline, indexes })
    }

    /// Looks again.
    pub(super) fn compare(&self, env: &Env, sha256: bool, spared: &Spared) -> Result<Comparison, BaselineError> {
        let top = open(&self.path)?;
        let layout = Layout::of(&top, spared, |registration| self.baseline.holds(registration))?;
        let indexes = indexes(&top, &layout, sha256)?;
        let mut found = self.baseline.compare_part(env, Part::GitDir(layout), |_| None)?;
        for list in [&mut found.changed, &mut found.touched] {
            list.iter_mut().for_each(|change| change.insert_str(0, "git directory: "));
        }
        let all: BTreeSet<_> = self.indexes.keys().chain(indexes.keys()).collect();
        let differ = all.into_iter().filter(|path| self.indexes.get(*path) != indexes.get(*path));
        found.changed.extend(differ.map(|path| match &path[..] {
            b"" => "git's index: has other entries".to_owned(),
            path => format!("git directory: {}/index: has other entries", neutral(&String::from_utf8_lossy(path))),
        }));
        Ok(found)
    }

    /// As a part of a record.
    pub(super) fn to_bytes(&self) -> Result<(GitDirRecord, Vec<u8>), serde_json::Error> {
        let bytes = self.baseline.to_bytes()?;
        let indexes = self.indexes.clone().into_iter().collect();
        Ok((GitDirRecord { path: self.path.clone(), length: bytes.len() as u64, indexes }, bytes))
    }

    /// What [`Self::to_bytes`] gave, from the front of `rest`.
    pub(super) fn from_bytes(record: GitDirRecord, rest: &mut &[u8]) -> Option<Self> {
        let GitDirRecord { path, length, indexes } = record;
        let (bytes, left) = rest.split_at_checked(usize::try_from(length).ok()?)?;
        *rest = left;
        Some(Self { path, baseline: Baseline::from_bytes(bytes)?, indexes: indexes.into_iter().collect() })
    }
}

fn open(path: &AbsPath) -> Result<OwnedFd, BaselineError> {
    let opened = rustix::fs::open(path.as_path(), DIRECTORY, Mode::empty());
    opened.map_err(|_| BaselineError::Replaced { path: path.clone() })
}

fn indexes(top: &OwnedFd, layout: &Layout, sha256: bool) -> Result<Indexes, BaselineError> {
    let all = layout.git_dirs().map(|path| Ok((path.to_vec(), index(top, path, sha256)?)));
    all.collect()
}

/// A digest of what an index means, or of what stands in its place.
fn index(top: &OwnedFd, git_dir: &[u8], sha256: bool) -> Result<String, BaselineError> {
    let unreadable = |source| {
        let path = shared::below(git_dir, b"index");
        BaselineError::Unreadable { path: neutral(&String::from_utf8_lossy(&path)).into_owned(), source }
    };
    let opened = match shared::open_below(top, RepoPath::new(git_dir).ok().as_ref()) {
        Err(Errno::NOENT) => return Ok(String::new()),
        opened => opened.map_err(|errno| unreadable(errno.into()))?,
    };
    Ok(match shared::item(&opened, b"index", KEPT_INDEX).map_err(unreadable)? {
        Some(Item::File { content: Some(content), .. }) => {
            hash::digest(&meaning(&content, if sha256 { 32 } else { 20 }).unwrap_or(content))
        }
        other => format!("{other:?}"),
    })
}
