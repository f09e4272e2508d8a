//! The durable record of an apply: what it is about to do, precise enough to take every step back.
//!
//! It lies in the store (`PACTIFY_HOME/applies/`), not beside the staged contents: a job with a linked worktree can
//! write to the repository's git directory, and what is read here decides what a repair writes. The file's name
//! says how far the apply is, so that one rename is the marker: `<apply>.intent` (in progress or interrupted), then
//! `<apply>.done`, or `<apply>.left` when a repair had to leave paths alone. The first line is the digest of the rest.
//!
//! Taking an apply back is the same the other way round, under a name of its own: `<apply>.undo.<n>`.

use std::fmt;
use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::str::FromStr;

use pactify_core::change::EntryMode;
use pactify_core::change::plan::CheckedPlan;
use pactify_core::job::RepositoryRecord;
use pactify_core::{ChangeSetId, JobId, ObjectId, RepoPath};
use serde::{Deserialize, Serialize};
use sha2::Digest as _;

use super::disk::{At, Disk};
use super::error::ApplyError;
use super::lock::RepositoryLock;
use crate::disk::Dir;
use crate::hash::hex;
use crate::store::{Area, StoreError};

/// The version that this build writes.
const FORMAT: u32 = 1;

/// An apply's name: its job, and its number among the applies of that job.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct ApplyId {
    /// The job whose result is applied.
    pub job: JobId,
    /// From 1.
    pub number: u32,
}

/// A text that names no apply.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} names no apply: expected a job id, a dot and a number")]
pub struct ParseApplyIdError(String);

impl fmt::Display for ApplyId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.job, self.number)
    }
}

impl FromStr for ApplyId {
    type Err = ParseApplyIdError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let parsed = text.split_once('.').and_then(|(job, number)| {
            let number = number.parse().ok().filter(|parsed: &u32| parsed.to_string() == number)?;
            Some(Self { job: job.parse().ok()?, number })
        });
        parsed.ok_or_else(|| ParseApplyIdError(text.chars().take(80).collect()))
    }
}

impl TryFrom<String> for ApplyId {
    type Error = ParseApplyIdError;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

impl From<ApplyId> for String {
    fn from(id: ApplyId) -> Self {
        id.to_string()
    }
}

/// What a record is of.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub(super) enum Transaction {
    /// Putting something into the checkout.
    Apply(ApplyId),
    /// Taking that back; the number tells tries apart, from 1.
    Undo(ApplyId, u32),
}

impl Transaction {
    /// The apply that is made or taken back.
    pub(super) fn apply(&self) -> &ApplyId {
        match self {
            Self::Apply(apply) | Self::Undo(apply, _) => apply,
        }
    }
}

impl From<&ApplyId> for Transaction {
    fn from(apply: &ApplyId) -> Self {
        Self::Apply(apply.clone())
    }
}

impl fmt::Display for Transaction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Apply(apply) => apply.fmt(f),
            Self::Undo(apply, number) => write!(f, "{apply}{UNDO}{number}"),
        }
    }
}

impl FromStr for Transaction {
    type Err = ParseApplyIdError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let Some((apply, number)) = text.split_once(UNDO) else { return text.parse().map(Self::Apply) };
        let parsed = number.parse().ok().filter(|parsed: &u32| parsed.to_string() == number);
        let number = parsed.ok_or_else(|| ParseApplyIdError(text.chars().take(80).collect()))?;
        Ok(Self::Undo(apply.parse()?, number))
    }
}

impl TryFrom<String> for Transaction {
    type Error = ParseApplyIdError;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

impl From<Transaction> for String {
    fn from(transaction: Transaction) -> Self {
        transaction.to_string()
    }
}

/// Everything that a repair or an undo has to know.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Intent {
    format: u32,
    /// Which apply, or the undo of which.
    #[serde(rename = "apply")]
    pub(super) transaction: Transaction,
    /// Where to.
    pub(super) repository: RepositoryRecord,
    /// Of which result.
    pub(super) change_set: ChangeSetId,
    /// Whether nothing of the result is left once it is done.
    pub(super) complete: bool,
    /// The tree of all that is accepted once it is done.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) accepted: Option<ObjectId>,
    /// Where the new contents wait and the old ones are kept.
    pub(super) stage: StageHome,
    /// What happens to each path. Slot `n` of the stage belongs to step `n`.
    pub(super) steps: Vec<Step>,
    /// Directories that did not exist, outermost first.
    pub(super) made: Vec<RepoPath>,
    /// Directories that existed once and come back, outermost first. Any of them may lie in one that is `made`, none
    /// the other way round.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) restored: Vec<DirectoryBits>,
    /// Directories that deletions may have emptied, innermost first: they go when nothing is left in them.
    pub(super) emptied: Vec<DirectoryBits>,
}

/// What an apply does to one path.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Step {
    /// Where.
    pub(super) path: RepoPath,
    /// What was there, byte for byte; `None` for nothing.
    pub(super) before: Option<Held>,
    /// What will be there; `None` for nothing.
    pub(super) after: Option<Held>,
}

/// What a path of the checkout holds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Held {
    /// Its kind.
    pub(super) mode: EntryMode,
    /// The id of exactly the checkout's bytes, before any conversion.
    pub(super) object: ObjectId,
}

/// A directory, and its permission bits when it is made again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct DirectoryBits {
    /// Where.
    pub(super) path: RepoPath,
    /// The bits.
    pub(super) bits: u32,
}

/// Where the staging directories of a checkout are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum StageHome {
    /// In the checkout's git directory.
    GitDirectory,
    /// At the checkout's top, hidden from git by an ignore file of its own: its git directory is on another file
    /// system, and an exchange needs both sides on one.
    Checkout,
}

/// How far a recorded apply is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Progress {
    /// In progress, or interrupted.
    Intent,
    /// All of it is in the checkout.
    Done,
    /// It was taken back, except for paths that had been edited since.
    Left,
}

impl Progress {
    pub(super) fn extension(self) -> &'static str {
        match self {
            Self::Intent => "intent",
            Self::Done => "done",
            Self::Left => "left",
        }
    }
}

impl Intent {
    /// A record of this build's format, without steps.
    pub(super) fn new(
        transaction: Transaction,
        repository: RepositoryRecord,
        plan: &CheckedPlan,
        stage: StageHome,
    ) -> Self {
        Self {
            format: FORMAT,
            transaction,
            repository,
            change_set: plan.change_set().clone(),
            complete: plan.is_complete(),
            accepted: plan.accepted().cloned(),
            stage,
            steps: vec![],
            made: vec![],
            restored: vec![],
            emptied: vec![],
        }
    }

    /// The record of taking `self` back, without steps.
    pub(super) fn undo(&self, transaction: Transaction) -> Self {
        Self {
            format: FORMAT,
            transaction,
            repository: self.repository.clone(),
            change_set: self.change_set.clone(),
            complete: false,
            accepted: None,
            stage: self.stage,
            steps: vec![],
            made: vec![],
            restored: vec![],
            emptied: vec![],
        }
    }
}

/// The records of all applies of a store.
#[derive(Debug)]
pub(super) struct Records<'a> {
    home: File,
    directory: Dir,
    /// Where records are written before they get their name: one directory per repository, so that whoever holds
    /// the repository's lock is alone in it.
    scratch: &'a Dir,
}

/// More than the record of a million paths has.
const MAX_BYTES: u64 = 1 << 30;
const FRESH: &str = "intent.new";
const UNDO: &str = ".undo.";

impl<'a> Records<'a> {
    /// Opens `applies/` of the store, creating it.
    pub(super) fn open(lock: &'a RepositoryLock) -> Result<Self, ApplyError> {
        let store = lock.store();
        let home = File::open(store.home().as_path())
            .map_err(|source| ApplyError::Store { path: store.home().as_path().to_owned(), source })?;
        let directory = store.area(Area::Applies)?;
        Ok(Self { home, directory, scratch: lock.directory() })
    }

    /// How far a transaction is; `None` when there is no record of it.
    pub(super) fn progress(&self, transaction: &Transaction) -> Option<Progress> {
        let recorded =
            |progress: &Progress| matches!(self.directory.lookup(&name(transaction, *progress)), Ok(Some(_)));
        [Progress::Intent, Progress::Done, Progress::Left].into_iter().find(recorded)
    }

    /// The transactions that are recorded as being this far.
    pub(super) fn list(&self, progress: Progress) -> Result<Vec<Transaction>, ApplyError> {
        Self::list_in(&self.directory, progress)
    }

    /// The same, in a directory of records.
    pub(super) fn list_in(directory: &Dir, progress: Progress) -> Result<Vec<Transaction>, ApplyError> {
        let mut found = Vec::new();
        for name in directory.names().map_err(StoreError::from)? {
            let id = name.strip_suffix(progress.extension()).and_then(|rest| rest.strip_suffix('.'));
            found.extend(id.and_then(|id| id.parse::<Transaction>().ok()));
        }
        found.sort();
        Ok(found)
    }

    /// Reads and checks a record.
    pub(super) fn read(&self, transaction: &Transaction, progress: Progress) -> Result<Intent, ApplyError> {
        Self::read_in(&self.directory, transaction, progress)
    }

    /// The same, for whoever cannot hold the lock of its repository before he knows which that is.
    pub(super) fn read_in(
        directory: &Dir,
        transaction: &Transaction,
        progress: Progress,
    ) -> Result<Intent, ApplyError> {
        let name = name(transaction, progress);
        let path = directory.path().join(&name).as_path().to_owned();
        let damaged = |why: &str| ApplyError::Damaged { path: path.clone(), why: why.into() };
        let bytes = directory.read(&name, MAX_BYTES).map_err(StoreError::from)?;
        let text = String::from_utf8(bytes).map_err(|_| damaged("it is no text"))?;
        let (digest, body) = text.split_once('\n').ok_or_else(|| damaged("it has no digest"))?;
        if digest != digest_of(body) {
            return Err(damaged("its digest does not fit"));
        }
        let value: serde_json::Value = serde_json::from_str(body).map_err(|error| damaged(&error.to_string()))?;
        let format = value["format"].as_u64().and_then(|format| u32::try_from(format).ok());
        match format {
            Some(FORMAT) => serde_json::from_value(value).map_err(|error| damaged(&error.to_string())),
            Some(format) if format > FORMAT => Err(ApplyError::Newer { path, format }),
            _ => Err(damaged("it has no known format")),
        }
    }

    /// Makes the intent durable. From here on an interruption is found and taken back.
    pub(super) fn begin(&self, intent: &Intent, disk: &Disk) -> Result<(), ApplyError> {
        let body = serde_json::to_string(intent).map_err(|error| self.failed(error.into()))?;
        let name = name(&intent.transaction, Progress::Intent);
        let text = format!("{}\n{body}", digest_of(&body));
        self.write(&name, text.as_bytes(), disk).map_err(|error| self.failed(error.into()))
    }

    /// Moves a record on, durably.
    pub(super) fn advance(&self, transaction: &Transaction, to: Progress, disk: &Disk) -> rustix::io::Result<()> {
        let (from, to) = (name(transaction, Progress::Intent), name(transaction, to));
        disk.replace(self.at(&from), self.at(&to))?;
        disk.sync(&self.directory)
    }

    /// Forgets a record, durably.
    pub(super) fn remove(&self, transaction: &Transaction, progress: Progress, disk: &Disk) -> rustix::io::Result<()> {
        disk.unlink(self.at(&name(transaction, progress)))?;
        disk.sync(&self.directory)
    }

    /// Where an interrupted [`Records::begin`] leaves a record.
    pub(super) fn torn(&self) -> PathBuf {
        self.scratch.path().join(FRESH).as_path().to_owned()
    }

    /// Removes what an interrupted [`Records::begin`] left.
    pub(super) fn tidy(&self, disk: &Disk) -> rustix::io::Result<()> {
        match disk.unlink(self.fresh()) {
            Err(rustix::io::Errno::NOENT) => Ok(()),
            done => done,
        }
    }

    fn write(&self, name: &str, bytes: &[u8], disk: &Disk) -> rustix::io::Result<()> {
        self.tidy(disk)?;
        let file = disk.create(self.fresh())?;
        disk.write_all(&file, bytes)?;
        disk.sync(&file)?;
        disk.replace(self.fresh(), self.at(name))?;
        disk.sync(&self.directory)?;
        // The first apply of all makes the directory itself.
        disk.sync(&self.home)
    }

    fn fresh(&self) -> At<'_> {
        At { dir: self.scratch.as_fd(), name: FRESH.as_bytes() }
    }

    fn at<'b>(&'b self, name: &'b str) -> At<'b> {
        At { dir: self.directory.as_fd(), name: name.as_bytes() }
    }

    fn failed(&self, source: io::Error) -> ApplyError {
        ApplyError::Store { path: self.directory.path().as_path().to_owned(), source }
    }
}

fn name(transaction: &Transaction, progress: Progress) -> String {
    format!("{transaction}.{}", progress.extension())
}

fn digest_of(body: &str) -> String {
    hex(&sha2::Sha256::digest(body.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn apply_ids_are_one_safe_component() {
        let id: ApplyId = "20261129-154512-aaaaaa.3".parse().unwrap();
        assert_eq!((id.job.as_str(), id.number), ("20261129-154512-aaaaaa", 3));
        for text in ["", "20261129-154512-aaaaaa", "20261129-154512-aaaaaa.", "20261129-154512-aaaaaa.03", "../x.1"] {
            assert!(text.parse::<ApplyId>().is_err(), "{text:?}");
        }
    }

    #[test]
    fn the_undo_of_an_apply_has_a_name_of_its_own() {
        let apply: ApplyId = "20261129-154512-aaaaaa.3".parse().unwrap();
        for (text, transaction) in [
            ("20261129-154512-aaaaaa.3", Transaction::Apply(apply.clone())),
            ("20261129-154512-aaaaaa.3.undo.1", Transaction::Undo(apply, 1)),
        ] {
            assert_eq!(text.parse::<Transaction>().unwrap(), transaction);
            assert_eq!(transaction.to_string(), text);
        }
        for text in ["20261129-154512-aaaaaa.3.undo.", "20261129-154512-aaaaaa.3.undo.01", "x.undo.1"] {
            assert!(text.parse::<Transaction>().is_err(), "{text:?}");
        }
    }
}
