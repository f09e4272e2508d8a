//! What a job's tree has in the person's repository: made when it is prepared, ended when the job is given up.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;

use pactify_core::job::RepositoryRecord;
use pactify_core::{ObjectId, RepoPath};

use crate::git::command::{Call, Place, Verb};
use crate::git::error::GitError;
use crate::git::{Git, Places};

impl Git {
    /// Points a ref of the person's repository at `commit`, running no hook.
    pub(super) fn set_ref(&self, repository: &RepositoryRecord, name: &str, commit: &ObjectId) -> Result<(), GitError> {
        let arguments = ["--no-deref", name, commit.as_str()];
        self.run(&Call::new(Verb::UpdateRef, Place::Person(&shared(repository))).args(arguments)).map(drop)
    }

    /// Removes a ref of the person's repository, if it is there, running no hook.
    pub(super) fn delete_ref(&self, repository: &RepositoryRecord, name: &str) -> Result<(), GitError> {
        let arguments = ["--no-deref", "-d", name];
        self.run(&Call::new(Verb::UpdateRef, Place::Person(&shared(repository))).args(arguments))?;
        // git leaves the directory. Not empty, or not there: another job's ref is in it, or refs are no files.
        let ours = repository.common_dir.join("refs").join("pactify");
        let _ = rustix::fs::unlinkat(rustix::fs::CWD, ours.as_path(), rustix::fs::AtFlags::REMOVEDIR);
        Ok(())
    }

    /// Points a ref of the person's repository at `to` if it names `from` (nothing, where it must not exist), with an
    /// entry in its log and without any hook; or returns what git said against it.
    ///
    /// # Errors
    /// When git cannot be run.
    pub fn move_ref(
        &self,
        repository: &RepositoryRecord,
        name: &RepoPath,
        to: &ObjectId,
        from: Option<&ObjectId>,
        message: &str,
    ) -> Result<Result<(), String>, GitError> {
        let none = "0".repeat(to.as_str().len());
        let from = from.map_or(none.as_str(), ObjectId::as_str);
        let name = OsStr::from_bytes(name.as_bytes());
        let shared = shared(repository);
        let call = Call::new(Verb::UpdateRef, Place::Person(&shared))
            .args(["--no-deref", "--create-reflog", "-m", message])
            .args([name, to.as_str().as_ref(), from.as_ref()]);
        Ok(self.try_run(&call)?.map(drop))
    }

    /// Ends what a job's tree has in the person's repository: the ref that keeps its base, and a linked tree's
    /// registration. The tree itself goes by [`crate::tree`]. In a repository that is gone there is nothing to end.
    ///
    /// # Errors
    /// When the repository cannot be changed.
    pub fn release(&self, places: &Places, repository: &RepositoryRecord) -> Result<(), GitError> {
        if !repository.common_dir.as_path().is_dir() {
            return Ok(());
        }
        self.unregister(places, repository)?;
        self.delete_ref(repository, &places.keep_ref())
    }
}

/// The repository without the checkout that a job was made from: that one may be gone when the job is given up.
fn shared(repository: &RepositoryRecord) -> RepositoryRecord {
    let common_dir = repository.common_dir.clone();
    RepositoryRecord { worktree: common_dir.clone(), git_dir: common_dir.clone(), common_dir, prefix: String::new() }
}
