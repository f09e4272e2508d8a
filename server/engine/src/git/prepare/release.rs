//! What a job's tree has in the person's repository: made when it is prepared, ended when the job is given up.

use pactify_core::ObjectId;
use pactify_core::job::RepositoryRecord;

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
