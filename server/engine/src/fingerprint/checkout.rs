//! The guard over a checkout in which a read-only job works: everything below it, and in its git directories.
//!
//! It is taken before anything runs and kept beside the job, so that a recovery compares as well; its digest is in the
//! journal. Whatever cannot be compared is a difference. What refs are, and what a change of the configuration means,
//! is [`super::Watch`]'s part. Nothing is written to the checkout, ever.

use pactify_core::job::RepositoryRecord;
use pactify_core::job::event::CheckoutRecord;
use pactify_core::{AbsPath, AttemptNo};
use serde::{Deserialize, Serialize};

use super::FingerprintError;
use super::baseline::part::Spared;
use super::baseline::{Baseline, BaselineError, Comparison};
use super::git_dir::{GitDir, GitDirRecord};
use crate::disk::{DIRECTORY, Dir, FileId};
use crate::env::Env;
use crate::hash;

/// More than any record that is kept has.
const MOST_BYTES: u64 = 2 << 30;

/// A checkout as it was at one moment.
#[derive(Debug)]
pub struct Checkout {
    /// Which directory it is.
    record: CheckoutRecord,
    baseline: Baseline,
    /// The git directory that all checkouts share, and that of the checkout where it is not in there.
    git_dirs: Vec<GitDir>,
}

/// The first line of a record; the entries follow.
#[derive(Serialize, Deserialize)]
struct Header {
    record: CheckoutRecord,
    /// How many bytes the checkout's entries take.
    length: u64,
    git_dirs: Vec<GitDirRecord>,
}

impl Checkout {
    /// Looks at the checkout of `repository`, whose objects are named by SHA-256 if `sha256`, but for what is `spared`.
    ///
    /// # Errors
    /// When anything could not be looked at.
    pub fn take(
        env: &Env,
        repository: &RepositoryRecord,
        sha256: bool,
        spared: &Spared,
    ) -> Result<Self, BaselineError> {
        let apart = !repository.git_dir.as_path().starts_with(repository.common_dir.as_path());
        let places = [Some(&repository.common_dir), apart.then_some(&repository.git_dir)];
        let git_dirs = places.into_iter().flatten().map(|path| GitDir::take(env, path, sha256, spared));
        let git_dirs = git_dirs.collect::<Result<_, _>>()?;
        let baseline = Baseline::take(env, &repository.worktree)?;
        let record = identify(&repository.worktree)?;
        Ok(Self { record, baseline, git_dirs })
    }

    /// Which directory it is.
    pub fn record(&self) -> &CheckoutRecord {
        &self.record
    }

    /// Looks again. What changed, as `path: how`.
    ///
    /// # Errors
    /// When anything could not be looked at: then nothing may be taken for unchanged.
    pub fn compare(&self, env: &Env, sha256: bool, spared: &Spared) -> Result<Comparison, BaselineError> {
        let mut found = self.baseline.compare(env, |_| None)?;
        for git_dir in &self.git_dirs {
            let Comparison { changed, touched, more } = git_dir.compare(env, sha256, spared)?;
            found.changed.extend(changed);
            found.touched.extend(touched);
            found.more += more;
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
        let entries = self.baseline.to_bytes().map_err(wrong)?;
        let (mut git_dirs, mut rest) = (Vec::new(), Vec::new());
        for git_dir in &self.git_dirs {
            let (record, entries) = git_dir.to_bytes().map_err(wrong)?;
            git_dirs.push(record);
            rest.extend(entries);
        }
        let header = Header { record: self.record.clone(), length: entries.len() as u64, git_dirs };
        let mut bytes = serde_json::to_vec(&header).map_err(wrong)?;
        bytes.push(b'\n');
        bytes.extend(entries);
        bytes.extend(rest);
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
        from_bytes(&bytes).ok_or_else(|| wrong("it is of another version"))
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

fn from_bytes(bytes: &[u8]) -> Option<Checkout> {
    let end = bytes.iter().position(|byte| *byte == b'\n')?;
    let Header { record, length, git_dirs } = serde_json::from_slice(&bytes[..end]).ok()?;
    let (entries, mut rest) = bytes[end + 1..].split_at_checked(usize::try_from(length).ok()?)?;
    let mut read = Vec::new();
    for git_dir in git_dirs {
        read.push(GitDir::from_bytes(git_dir, &mut rest)?);
    }
    rest.is_empty().then_some(())?;
    Some(Checkout { record, baseline: Baseline::from_bytes(entries)?, git_dirs: read })
}

#[cfg(test)]
mod tests;
