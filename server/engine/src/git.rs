//! git and what we do with it: reading the person's repository, making a job's tree, capturing its result.
//!
//! - [`Git`]: the one runner; every use of the git program is a method of it ([`command`] says how it is started).
//! - [`examine`]: from a folder to a repository's recorded facts, or a typed refusal.
//! - [`snapshot`]: what a job starts from, where that is more than a commit.
//! - [`prepare`]: a job's tree with a git directory of its own; [`manifest`] remembers what was put there.
//! - [`capture`]: from the tree that a dead job left to objects of our own; [`change_set`] tells them from the base.
//! - [`watch`]: what changed in a fresh tree before the job.
//! - [`lfs`]: contents of files in Git LFS, from the local store.
//! - [`checkout_form`]: what a checkout holds for stored contents (line endings, encodings), and back.
//! - [`renames`]: which added paths look like deleted ones.
//! - [`objects`]: contents by id. [`merge`]: three texts made one.
//! - [`accepted`]: what the person took of a result so far, as a tree of our own.
//! - [`scratch`]: questions about the person's objects and refs that only git can answer.
//! - [`export`]: a result as a patch, or as a branch of the person's repository.
//!
//! Which tool does what: git2 reads and writes objects, where it knows the repository's format; the git program does
//! what libgit2 cannot open or does slowly; walking a job's tree is our own code, because it must follow nothing.
//! Nothing here applies a result, removes a tree ([`crate::tree`]), or talks to a network.

pub mod accepted;
pub mod capture;
pub mod change_set;
pub mod checkout_form;
pub mod examine;
pub mod export;
mod fresh;
pub mod manifest;
pub mod meanwhile;
pub mod merge;
pub mod objects;
mod patch;
pub mod places;
pub mod prepare;
pub mod renames;
pub mod residue;
pub mod scratch;
pub mod snapshot;
pub mod watch;

mod command;
mod config;
mod conversion;
mod error;
mod ignores;
mod included;
mod lfs;
mod listing;
mod read;
mod threads;
mod uncommitted;
mod version;

use pactify_core::AbsPath;

use crate::env::Env;
use crate::process::{ChildEnv, EnvPolicy, Invocation, Limits};

pub use self::accepted::Accepted;
pub use self::capture::Captured;
pub use self::change_set::{ChangeList, Texts};
pub use self::checkout_form::CheckoutForm;
pub use self::error::{GitError, Stage};
pub use self::examine::Examined;
pub use self::fresh::make_repository;
pub use self::meanwhile::{ChangedMeanwhile, CheckoutBefore, CheckoutSeen};
pub use self::objects::Objects;
pub use self::patch::Patch;
pub use self::places::Places;
pub use self::prepare::{Notice, Prepared, Wanted};
pub use self::scratch::Scratch;
pub use self::snapshot::{Buffer, Snapshot, Source};
pub use self::version::Version;
pub use self::watch::Watch;

/// The git program, found and checked once.
#[derive(Clone, Debug)]
pub struct Git {
    program: AbsPath,
    version: Version,
    environment: ChildEnv,
    surroundings: Surroundings,
}

/// Directories outside any repository that matter for reading one.
#[derive(Clone, Debug)]
struct Surroundings {
    /// The person's home.
    home: AbsPath,
    /// Where git looks for the person's attributes and ignore rules when the configuration names none.
    git_config: AbsPath,
    /// Our own store, whose trees are never taken for the person's repositories.
    store: AbsPath,
}

impl Git {
    /// Finds git on the absolute directories of `PATH` and asks it for its version.
    ///
    /// # Errors
    /// [`GitError::Missing`], [`GitError::TooOld`], [`GitError::NotGit`].
    pub fn find(env: &Env) -> Result<Self, GitError> {
        let program = env.find_executable("git").map_err(GitError::Missing)?;
        let mut environment = EnvPolicy::git().filter(env.variables());
        command::harden(&mut environment);
        let version = ask_version(&program, &environment)?;
        if version < Version::OLDEST {
            return Err(GitError::TooOld { program, found: version });
        }
        let home = env.directories().home().clone();
        let configured = env.variable("XDG_CONFIG_HOME").and_then(|path| AbsPath::new(path).ok());
        let git_config = configured.unwrap_or_else(|| home.join(".config")).join("git");
        let store = env.directories().pactify_home().clone();
        Ok(Self { program, version, environment, surroundings: Surroundings { home, git_config, store } })
    }

    /// Where it is.
    pub fn program(&self) -> &AbsPath {
        &self.program
    }

    /// Which version it is.
    pub fn version(&self) -> Version {
        self.version
    }
}

fn ask_version(program: &AbsPath, environment: &ChildEnv) -> Result<Version, GitError> {
    use crate::process::run::Overflow;
    let limits = Limits { deadline: std::time::Duration::from_secs(20), bytes: 1 << 16, overflow: Overflow::Cut };
    let directory = program.as_path().parent().and_then(|parent| AbsPath::new(parent).ok());
    let output = Invocation::new(program.clone(), directory.unwrap_or_else(|| program.clone()), environment.clone())
        .arg("version")
        .run(b"", &limits)
        .map_err(|source| GitError::Run { command: "git version".to_owned(), source })?;
    let answer = String::from_utf8_lossy(&output.stdout.bytes);
    Version::parse(&answer).ok_or_else(|| {
        let answer = answer.chars().take(80).collect();
        GitError::NotGit { program: program.clone(), answer }
    })
}
