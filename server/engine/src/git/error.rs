//! Everything that can go wrong with git and with a job's tree. What a person is told of it: [`told`].

mod told;

use std::io;
use std::path::PathBuf;

use pactify_core::display::{headline, neutral};
use pactify_core::{AbsPath, ObjectId, RepoPath};

use super::version::Version;
use crate::env::EnvError;
use crate::process::RunError;

/// Why something about a repository or a job's tree was not done.
#[derive(Debug, thiserror::Error)]
pub enum GitError {
    /// There is no git program.
    #[error("git was not found")]
    Missing(#[source] EnvError),
    /// The git program is older than what we need.
    #[error("{program} is git {found}; pactify needs {} or newer", Version::OLDEST)]
    TooOld {
        /// The program.
        program: AbsPath,
        /// Its version.
        found: Version,
    },
    /// A program named git that does not answer like git.
    #[error("{program} does not say its version: {answer:?}")]
    NotGit {
        /// The program.
        program: AbsPath,
        /// What it said.
        answer: String,
    },
    /// git could not be started, or took too long, or said too much.
    #[error("{command} was not completed")]
    Run {
        /// The command.
        command: String,
        /// What happened.
        source: RunError,
    },
    /// git refused.
    #[error("{command} failed: {}", headline(message, 300))]
    Failed {
        /// The command.
        command: String,
        /// What git said.
        message: String,
    },
    /// git answered in a form that it never should.
    #[error("{command} answered unexpectedly: {answer}")]
    Answer {
        /// The command.
        command: String,
        /// The part of its answer that was not understood.
        answer: String,
    },
    /// The folder belongs to no repository.
    #[error("{folder} is not in a git repository")]
    NoRepository {
        /// The folder named.
        folder: AbsPath,
    },
    /// The folder lies in pactify's own store: it is a job's tree or something beside it.
    #[error("{folder} belongs to a job")]
    InsideJob {
        /// The folder named.
        folder: AbsPath,
    },
    /// The repository has no checkout here.
    #[error("{git_dir} has no checkout here: it is a bare repository, or the folder is inside a git directory")]
    Bare {
        /// The repository.
        git_dir: AbsPath,
    },
    /// git refuses the repository because it belongs to another user.
    #[error("git refuses {folder}: {}", neutral(message))]
    DubiousOwnership {
        /// The folder named.
        folder: AbsPath,
        /// git's own message, which names the remedy.
        message: String,
    },
    /// The repository has a format that this git does not know.
    #[error("git cannot read the repository of {folder}: {}", headline(message, 300))]
    Unsupported {
        /// The folder named.
        folder: AbsPath,
        /// git's own message.
        message: String,
    },
    /// Its configuration names a checkout that is not the one around the folder (threat T-09).
    #[error("{folder} belongs to a repository whose configuration (core.worktree) puts its files into {worktree}")]
    Redirected {
        /// The folder named.
        folder: AbsPath,
        /// Where the files would be.
        worktree: AbsPath,
    },
    /// There is no commit yet.
    #[error("{worktree} has no commit yet")]
    Unborn {
        /// The checkout.
        worktree: AbsPath,
    },
    /// HEAD names a branch that does not exist, while others do.
    #[error("HEAD of {worktree} names {target}, which does not exist")]
    HeadNamesNothing {
        /// The checkout.
        worktree: AbsPath,
        /// What HEAD names.
        target: String,
    },
    /// Objects that are needed are not in the repository.
    #[error("{} is not among the objects of {repository}", name_objects(missing))]
    ObjectsMissing {
        /// Where they should be.
        repository: AbsPath,
        /// Some of them.
        missing: Vec<String>,
    },
    /// A file in Git LFS whose content a checkout cannot be given.
    #[error("{path} is a Git LFS pointer, and {why}")]
    LfsContentMissing {
        /// The file.
        path: RepoPath,
        /// Why.
        why: String,
    },
    /// An object is larger than what was asked for.
    #[error("object {object} has {size} bytes, more than {limit}")]
    ObjectTooLarge {
        /// The object.
        object: ObjectId,
        /// Its size in bytes.
        size: u64,
        /// The most that was asked for.
        limit: u64,
    },
    /// libgit2 refused.
    #[error("cannot {action} in {}", path.display())]
    Objects {
        /// What was tried.
        action: &'static str,
        /// Where.
        path: PathBuf,
        /// libgit2's answer.
        source: git2::Error,
    },
    /// The operating system refused.
    #[error("cannot {action} {}", path.display())]
    Io {
        /// What was tried.
        action: &'static str,
        /// With what.
        path: PathBuf,
        /// The kernel's answer.
        source: io::Error,
    },
    /// A record of ours cannot be used.
    #[error("{path} is damaged: {why}")]
    RecordDamaged {
        /// The record.
        path: AbsPath,
        /// Why.
        why: String,
    },
    /// A populated tree is not what it was made from.
    #[error("{path} was not populated as asked: {why}")]
    NotPopulated {
        /// The tree.
        path: AbsPath,
        /// Why.
        why: String,
    },
    /// A tree does not fit.
    #[error("{path} needs {needed} bytes, and its file system has {free} left")]
    NoSpace {
        /// The tree.
        path: AbsPath,
        /// What the files of the base need.
        needed: u64,
        /// What is there.
        free: u64,
    },
    /// What is at the tree's place is not the directory that was recorded.
    #[error("{path} is not the directory that was made for the job")]
    TreeReplaced {
        /// The tree.
        path: AbsPath,
    },
    /// The processes that are proved dead are those of another job.
    #[error("{job} cannot be captured: the proof is about {proof}")]
    ProofOfAnotherJob {
        /// The job to be captured.
        job: String,
        /// Whose processes are dead.
        proof: String,
    },
    /// Something in the checkout may not be read, so its state is not known.
    #[error("not all of the checkout can be read: {}", headline(message, 300))]
    CheckoutUnreadable {
        /// What git says, or we.
        message: String,
    },
    /// The checkout was never the same before and after it was read.
    #[error("{worktree} changes while it is read: {what}")]
    CheckoutRestless {
        /// The checkout.
        worktree: AbsPath,
        /// What changed.
        what: String,
    },
    /// A branch is there already.
    #[error("there is a branch {name:?} already, {}", if *is_same { "with this very result" } else { "with something else in it" })]
    BranchExists {
        /// Its name.
        name: String,
        /// Whether its files are those of the result.
        is_same: bool,
    },
    /// A branch could not be made.
    #[error("cannot make the branch {name:?}: {reason}")]
    BranchRefused {
        /// Its name.
        name: String,
        /// What git says.
        reason: String,
    },
}

/// What was going on when a [`GitError`] came up: decides the code of what is merely "git failed".
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// A job's tree was being made.
    Prepare,
    /// A job's result was being captured.
    Capture,
    /// Anything else.
    Other,
}

impl GitError {
    pub(crate) fn io(action: &'static str, path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |source| Self::Io { action, path, source }
    }

    pub(crate) fn errno(action: &'static str, path: impl Into<PathBuf>) -> impl FnOnce(rustix::io::Errno) -> Self {
        let path = path.into();
        move |errno| Self::Io { action, path, source: errno.into() }
    }

    pub(super) fn objects(action: &'static str, path: impl Into<PathBuf>) -> impl FnOnce(git2::Error) -> Self {
        let path = path.into();
        move |source| Self::Objects { action, path, source }
    }
}

fn name_objects(missing: &[String]) -> String {
    const SHOWN: usize = 3;
    let names = missing.iter().take(SHOWN).map(|name| neutral(name)).collect::<Vec<_>>().join(", ");
    match missing.len().saturating_sub(SHOWN) {
        0 => names,
        more => format!("{names} and {more} more"),
    }
}
