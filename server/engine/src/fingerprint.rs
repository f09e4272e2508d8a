//! Fingerprints: what the person's checkout and git directories are like before a job, and whether they still are after
//! it.
//!
//! [`baseline`] is about a checkout, for jobs that may change nothing: fail-closed, by the `stat` of every entry;
//! [`checkout`] keeps one, with all of the git directory, for a job that looks around there. [`shared`] looks at what
//! steers git in the directory that all checkouts share, [`record`] keeps that beside the job, and [`restore`] puts
//! chosen parts of it back. [`Watch`] is what a host does with them. What a difference means is decided in
//! [`pactify_core::fingerprint`]; none of it runs anything that a job could have configured.

pub mod baseline;
pub mod checkout;
mod git_dir;
pub mod record;
pub mod restore;
pub mod shared;

use pactify_core::fingerprint::weigh::{self, Move};
use pactify_core::fingerprint::{Difference, OutsideChange, RefValue, SharedState, Weight, differences};
use pactify_core::job::JobSpec;
use pactify_core::{AbsPath, AttemptNo, Failure, FailureCode, RepoPath};

pub use self::baseline::part::Spared;
pub use self::baseline::{Baseline, BaselineError, Comparison};
pub use self::checkout::Checkout;
pub use self::restore::{Restored, Verdict};
pub use self::shared::Subject;

use self::record::Phase;
use crate::causes::with_causes;
use crate::disk::{Dir, DiskError};
use crate::git::{Git, GitError, Scratch};
use crate::job_dir::JobDir;

/// The directory below a job's in which states are kept.
pub(crate) const DIRECTORY: &str = "shared";

/// How many changes a record names.
const NAMED: usize = 200;

/// How many moved refs are followed through the history; others count as moved elsewhere.
const FOLLOWED: usize = 64;

/// What changed outside a job's tree while an attempt ran.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outside {
    /// Worst first, bounded.
    pub changes: Vec<OutsideChange>,
    /// How many more there are.
    pub more: u64,
    /// How many of those are dangerous.
    pub more_dangerous: u64,
    /// The digest of the record of before.
    pub before: String,
    /// And of the one of after.
    pub after: String,
}

/// Why a fingerprint was not taken, kept or read. It is never about what a job left.
#[derive(Debug, thiserror::Error)]
pub enum FingerprintError {
    /// Our own files.
    #[error(transparent)]
    Disk(#[from] DiskError),
    /// git, in a directory of ours or for putting a ref back.
    #[error(transparent)]
    Git(#[from] GitError),
    /// A record that is not what was written.
    #[error("{path} is not the record that was made: {why}")]
    Record {
        /// The record.
        path: AbsPath,
        /// What is wrong.
        why: String,
    },
}

/// The watch over what an attempt's processes share with the person.
#[derive(Debug)]
pub struct Watch<'a> {
    git: &'a Git,
    spec: &'a JobSpec,
    jobs: &'a AbsPath,
    directory: Dir,
}

impl<'a> Watch<'a> {
    /// For the job of `job`; `jobs` is the directory of all jobs.
    ///
    /// # Errors
    /// When the directory for its records cannot be made.
    pub fn of(git: &'a Git, job: &JobDir, spec: &'a JobSpec, jobs: &'a AbsPath) -> Result<Self, FingerprintError> {
        Ok(Self { git, spec, jobs, directory: job.dir().ensure_dir(DIRECTORY)? })
    }

    /// Looks before anything of the attempt runs, and keeps what it saw. Returns the record's digest as well.
    ///
    /// # Errors
    /// When it cannot be kept.
    pub fn begin(&self, attempt: AttemptNo) -> Result<(SharedState, String), FingerprintError> {
        let state = self.look(None)?;
        let digest = record::write(&self.directory, attempt.get(), Phase::Before, &state)?;
        Ok((state, digest))
    }

    /// The state that [`Self::begin`] kept, if the record still has the digest.
    ///
    /// # Errors
    /// [`FingerprintError::Record`] when it hasn't.
    pub fn begun(&self, attempt: AttemptNo, digest: &str) -> Result<SharedState, FingerprintError> {
        record::read(&self.directory, attempt.get(), Phase::Before, digest)
    }

    /// Looks after everything of the attempt is dead, and says what changed; `None` when nothing did. What was kept
    /// stays: whoever asks may end before it is written down, and the next one asks again.
    ///
    /// # Errors
    /// When it cannot be kept.
    pub fn end(&self, attempt: AttemptNo, before: &SharedState) -> Result<Option<Outside>, FingerprintError> {
        let after = self.look(Some(before))?;
        let found = differences(before, &after);
        if found.is_empty() {
            return Ok(None);
        }
        // What lies there could have been written by the job; what is in memory could not.
        let before_digest = record::write(&self.directory, attempt.get(), Phase::Before, before)?;
        let after_digest = record::write(&self.directory, attempt.get(), Phase::After, &after)?;
        let mut follower = Follower { watch: self, after: &after, followed: 0 };
        let weighed = found.iter().enumerate().map(|(index, difference)| {
            weigh::weigh(weigh::id(attempt, index), difference, || follower.follow(difference))
        });
        let mut changes: Vec<_> = weighed.collect();
        changes.sort_by_key(|change| change.weight);
        let more = changes.len().saturating_sub(NAMED) as u64;
        let cut = changes.split_off(changes.len().min(NAMED));
        let more_dangerous = cut.iter().filter(|change| change.weight == Weight::Dangerous).count() as u64;
        Ok(Some(Outside { changes, more, more_dangerous, before: before_digest, after: after_digest }))
    }

    /// Removes what was kept of an attempt that changed nothing, once the attempt's end is written down.
    ///
    /// # Errors
    /// When it cannot be removed.
    pub fn forget(job: &JobDir, attempt: AttemptNo) -> Result<(), FingerprintError> {
        record::forget(&job.dir().ensure_dir(DIRECTORY)?, attempt.get())
    }

    fn look(&self, before: Option<&SharedState>) -> Result<SharedState, FingerprintError> {
        self.subject().look(self.git, &self.scratch(), before)
    }

    fn subject(&self) -> Subject<'_> {
        let sha256 = self.spec.base.commit.is_sha256();
        Subject { repository: &self.spec.repository, sha256, jobs: self.jobs }
    }

    fn scratch(&self) -> Scratch {
        Scratch::in_directory(self.directory.path().clone())
    }
}

/// Finds out where refs went.
struct Follower<'a> {
    watch: &'a Watch<'a>,
    after: &'a SharedState,
    followed: usize,
}

impl Follower<'_> {
    fn follow(&mut self, difference: &Difference) -> Move {
        let Difference::Ref { name, old: Some(old), new: Some(new) } = difference else { return Move::Elsewhere };
        let last = self.watch.subject().last_logged(name);
        let is_logged =
            |value: &RefValue| self.resolve(value).is_none_or(|id| last.as_ref().is_none_or(|last| *last == id));
        let is_head = !name.as_bytes().starts_with(b"refs/");
        if is_head {
            return if is_logged(new) { Move::Logged } else { Move::Elsewhere };
        }
        let (RefValue::Object(from), RefValue::Object(to)) = (old, new) else { return Move::Elsewhere };
        let logged = is_logged(new);
        self.followed += 1;
        if self.followed > FOLLOWED {
            return Move::Elsewhere;
        }
        let watch = self.watch;
        match watch.git.ahead(&watch.scratch(), &watch.spec.repository, from, to) {
            Ok(Some(commits)) => Move::Forward { commits, logged },
            Ok(None) => Move::Elsewhere,
            Err(error) => {
                tracing::warn!(error = with_causes(&error), ref_name = %name, "where a ref went is not known");
                Move::Elsewhere
            }
        }
    }

    fn resolve(&self, value: &RefValue) -> Option<pactify_core::ObjectId> {
        match value {
            RefValue::Object(id) => Some(id.clone()),
            RefValue::Symbolic(name) => match self.after.refs.get(&RepoPath::new(name.as_bytes()).ok()?)? {
                RefValue::Object(id) => Some(id.clone()),
                RefValue::Symbolic(_) | RefValue::Broken(_) => None,
            },
            RefValue::Broken(_) => None,
        }
    }
}

impl From<FingerprintError> for Failure {
    fn from(error: FingerprintError) -> Self {
        match error {
            FingerprintError::Disk(error) => error.into(),
            FingerprintError::Git(error) => error.into(),
            error @ FingerprintError::Record { .. } => Self::new(
                FailureCode::StoreDamaged,
                with_causes(&error),
                "what it recorded cannot be put back by pactify: compare with a backup, or with another clone",
            ),
        }
    }
}
