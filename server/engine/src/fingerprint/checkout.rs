//! The guard over a checkout in which a read-only job works: everything below it, and git's index of it.
//!
//! It is taken before anything runs and kept beside the job, so that a recovery compares as well; its digest is in the
//! journal. Whatever cannot be compared is a difference. What is in the git directory that all checkouts share is
//! [`super::Watch`]'s part. Nothing is written to the checkout, ever.

use pactify_core::fingerprint::Item;
use pactify_core::fingerprint::index::meaning;
use pactify_core::job::RepositoryRecord;
use pactify_core::job::event::CheckoutRecord;
use pactify_core::{AbsPath, AttemptNo};

use super::baseline::{Baseline, BaselineError, Comparison};
use super::{FingerprintError, shared};
use crate::disk::{DIRECTORY, Dir, FileId};
use crate::env::Env;
use crate::hash;

/// More than any record that is kept has.
const MOST_BYTES: u64 = 2 << 30;

/// The longest index that is read for its meaning; of a longer one every byte counts.
const KEPT_INDEX: u64 = 256 << 20;

/// A checkout as it was at one moment.
#[derive(Debug)]
pub struct Checkout {
    /// Which directory it is.
    record: CheckoutRecord,
    baseline: Baseline,
    /// A digest of what the index means.
    index: String,
}

impl Checkout {
    /// Looks at the checkout of `repository`, whose objects are named by SHA-256 if `sha256`.
    ///
    /// # Errors
    /// When anything could not be looked at.
    pub fn take(env: &Env, repository: &RepositoryRecord, sha256: bool) -> Result<Self, BaselineError> {
        let index = index(&repository.git_dir, sha256)?;
        let baseline = Baseline::take(env, &repository.worktree)?;
        let record = identify(&repository.worktree)?;
        Ok(Self { record, baseline, index })
    }

    /// Which directory it is.
    pub fn record(&self) -> &CheckoutRecord {
        &self.record
    }

    /// Looks again. What changed, as `path: how`.
    ///
    /// # Errors
    /// When anything could not be looked at: then nothing may be taken for unchanged.
    pub fn compare(&self, env: &Env, repository: &RepositoryRecord, sha256: bool) -> Result<Comparison, BaselineError> {
        let mut found = self.baseline.compare(env, |_| None)?;
        if index(&repository.git_dir, sha256)? != self.index {
            found.changed.insert(0, "git's index: has other entries".to_owned());
        }
        Ok(found)
    }

    /// Keeps it in `directory`, and gives the record's digest.
    ///
    /// # Errors
    /// When it cannot be kept.
    pub fn keep(&self, directory: &Dir, attempt: AttemptNo) -> Result<String, FingerprintError> {
        let name = name(attempt);
        let wrong = |error: serde_json::Error| FingerprintError::Record {
            path: directory.path().join(&name),
            why: error.to_string(),
        };
        let mut bytes = serde_json::to_vec(&(&self.record, &self.index)).map_err(wrong)?;
        bytes.push(b'\n');
        bytes.extend(self.baseline.to_bytes().map_err(wrong)?);
        directory.replace(&name, &bytes, false)?;
        Ok(hash::digest(&bytes))
    }

    /// What [`Self::keep`] kept, if it still has the digest.
    ///
    /// # Errors
    /// [`FingerprintError::Record`] when it hasn't.
    pub fn kept(directory: &Dir, attempt: AttemptNo, digest: &str) -> Result<Self, FingerprintError> {
        let name = name(attempt);
        let bytes = directory.read(&name, MOST_BYTES)?;
        let wrong = |why: &str| FingerprintError::Record { path: directory.path().join(&name), why: why.to_owned() };
        if hash::digest(&bytes) != digest {
            return Err(wrong("its digest is not the one in the job's journal"));
        }
        let read = || {
            let end = bytes.iter().position(|byte| *byte == b'\n')?;
            let (record, index) = serde_json::from_slice(&bytes[..end]).ok()?;
            Some(Self { record, index, baseline: Baseline::from_bytes(&bytes[end + 1..])? })
        };
        read().ok_or_else(|| wrong("it is of another version"))
    }

    /// Removes the record of an attempt.
    ///
    /// # Errors
    /// When it cannot be removed.
    pub fn forget(directory: &Dir, attempt: AttemptNo) -> Result<(), FingerprintError> {
        Ok(directory.remove(&name(attempt))?)
    }
}

fn name(attempt: AttemptNo) -> String {
    format!("{}.checkout", attempt.get())
}

fn identify(path: &AbsPath) -> Result<CheckoutRecord, BaselineError> {
    let replaced = |_| BaselineError::Replaced { path: path.clone() };
    let opened = rustix::fs::open(path.as_path(), DIRECTORY, rustix::fs::Mode::empty()).map_err(replaced)?;
    let FileId { device, inode } = FileId::of(&rustix::fs::fstat(&opened).map_err(replaced)?);
    Ok(CheckoutRecord { path: path.clone(), device, inode })
}

/// A digest of what the index in `git_dir` means, or of what stands in its place.
fn index(git_dir: &AbsPath, sha256: bool) -> Result<String, BaselineError> {
    let unreadable = |source| BaselineError::Unreadable { path: "git's index".to_owned(), source };
    let opened = rustix::fs::open(git_dir.as_path(), DIRECTORY, rustix::fs::Mode::empty());
    let opened = opened.map_err(|errno| unreadable(errno.into()))?;
    Ok(match shared::item(&opened, b"index", KEPT_INDEX).map_err(unreadable)? {
        Some(Item::File { content: Some(content), .. }) => {
            hash::digest(&meaning(&content, if sha256 { 32 } else { 20 }).unwrap_or(content))
        }
        other => format!("{other:?}"),
    })
}
