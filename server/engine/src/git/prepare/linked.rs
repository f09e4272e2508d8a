//! Linked trees: registering one in the person's repository, and unregistering it.
//!
//! `git worktree add` registers, because only git knows every ref format; it is told to check nothing out. It chooses
//! the registration's name, which we record at once and later remove by, after checking that it is about our tree. `git
//! worktree remove` is not used (threat T-01).

use std::fs;
use std::io;

use pactify_core::AbsPath;
use pactify_core::job::{Base, Isolation, RepositoryRecord};

use super::undo::{Undo, remove};
use crate::git::command::{Call, Place, Verb};
use crate::git::error::GitError;
use crate::git::manifest::Manifest;
use crate::git::places::bytes;
use crate::git::read::read;
use crate::git::{Git, Places};

/// A linked tree that git has registered.
pub(super) struct Registered {
    /// The registration's name below `worktrees/`.
    pub(super) name: String,
    /// Its directory: the tree's own git directory.
    pub(super) directory: AbsPath,
    /// What the tree's `.git` file holds.
    pub(super) git_file: String,
}

impl Git {
    /// Registers a tree that is still to be populated.
    pub(super) fn register(
        &self,
        tree: &AbsPath,
        repository: &RepositoryRecord,
        base: &Base,
        undo: &mut Undo<'_>,
    ) -> Result<Registered, GitError> {
        let call = Call::new(Verb::WorktreeAdd, Place::Person(repository))
            .args(["--detach", "--no-checkout"])
            .args([tree.as_path().as_os_str(), base.commit.as_str().as_ref()]);
        self.run(&call)?;
        // Nothing but git has written here yet.
        let link = tree.join(".git");
        let git_file = fs::read_to_string(&link).map_err(GitError::io("read", link.as_path()))?;
        let unexpected =
            || GitError::NotPopulated { path: tree.clone(), why: format!("git linked it as {git_file:?}") };
        let directory = git_file.trim_end_matches('\n').strip_prefix("gitdir: ").ok_or_else(unexpected)?;
        let directory = AbsPath::new(directory).map_err(|_| unexpected())?;
        let name = directory.as_path().file_name().and_then(|name| name.to_str()).ok_or_else(unexpected)?.to_owned();
        if directory != registration(repository, &name) {
            return Err(unexpected());
        }
        undo.registration(directory.clone());
        Ok(Registered { name, directory, git_file })
    }

    /// Removes the registration of a job's linked tree, if it has one and it is about that tree. One that cannot be
    /// told stays: git prunes a registration whose tree is gone, and a spoilt record must not keep a job from being
    /// given up.
    ///
    /// # Errors
    /// When the repository or the job's record of its tree cannot be used.
    pub fn unregister(&self, places: &Places, repository: &RepositoryRecord) -> Result<(), GitError> {
        let manifest = match Manifest::read(&places.manifest()) {
            Ok(manifest) => manifest,
            Err(GitError::Io { source, .. }) if source.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(error) => {
                tracing::warn!(%error, job = %places.job(), "whether its tree is registered cannot be told");
                return Ok(());
            }
        };
        let (Isolation::Linked, Some(name)) = (manifest.header.isolation, manifest.header.registration) else {
            return Ok(());
        };
        if name.contains('/') || matches!(name.as_str(), "" | "." | "..") {
            let why = format!("{name:?} is no name of a registration");
            return Err(GitError::RecordDamaged { path: places.manifest(), why });
        }
        let directory = registration(repository, &name);
        let back = directory.join("gitdir");
        match read(back.as_path()) {
            Ok(link) if link.strip_suffix(b"\n") == Some(bytes(&places.tree().join(".git"))) => {
                remove(&directory);
                Ok(())
            }
            // Another worktree's by now, or gone.
            Ok(_) => Ok(()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            Err(error) => Err(GitError::io("read", back.as_path())(error)),
        }
    }
}

/// The directory in the person's repository that registers a linked tree: the tree's own git directory.
pub(in crate::git) fn registration(repository: &RepositoryRecord, name: &str) -> AbsPath {
    repository.common_dir.join("worktrees").join(name)
}
