//! Which files of the person's checkout changed while a job ran.
//!
//! git compares, as for [`super::uncommitted`], in a git directory made for this: the job's own may say anything by now.
//! What differed before the job is told apart by the change time, which nobody without privileges can set; a deletion
//! shows as a change of the directory that it was in. Nothing is read but by git, and no link is followed on the way.

use std::os::fd::OwnedFd;

use jiff::Timestamp;
use pactify_core::job::{Base, RepositoryRecord};
use pactify_core::{AbsPath, RepoPath};
use rustix::fs::{Mode, OFlags, ResolveFlags};
use rustix::io::Errno;

use super::capture::entry::DIRECTORY;
use super::command::Place;
use super::config::{Layout, object_directories};
use super::error::GitError;
use super::manifest::Fingerprint;
use super::prepare::{copy_shallow, copy_sparse_patterns, remove};
use super::uncommitted::copy_index;
use super::{Git, Places};

impl Git {
    /// Files of the checkout that are not as in `base`, were last changed at `since` or later, and are ignored by no rule;
    /// in order.
    ///
    /// # Errors
    /// When they cannot be told, or not in seconds.
    pub fn changed_meanwhile(
        &self,
        places: &Places,
        repository: &RepositoryRecord,
        base: &Base,
        since: Timestamp,
    ) -> Result<Vec<RepoPath>, GitError> {
        let git_dir = places.directory().join("checkout.git");
        remove(&git_dir);
        let found = self.differing(&git_dir, repository, base);
        remove(&git_dir);
        let mut found = found?;
        let top = repository.worktree.as_path();
        let top = rustix::fs::open(top, DIRECTORY, Mode::empty()).map_err(GitError::errno("open", top))?;
        found.retain(|path| changed_at(&top, path).is_some_and(|changed| changed >= since.as_nanosecond()));
        Ok(found)
    }

    fn differing(
        &self,
        git_dir: &AbsPath,
        repository: &RepositoryRecord,
        base: &Base,
    ) -> Result<Vec<RepoPath>, GitError> {
        let settings = self.settings(Place::Person(repository))?;
        let rules = self.rules(repository, &settings)?;
        let layout = Layout {
            path: git_dir,
            settings: settings.for_snapshot(),
            rules: &rules,
            sha256: base.tree.is_sha256(),
            checkout: true,
            head: base.public_commit(),
            alternates: &object_directories(&repository.common_dir)?,
        };
        layout.create()?;
        copy_shallow(git_dir, repository)?;
        copy_sparse_patterns(git_dir, repository, &settings)?;
        let index = git_dir.join("checkout.index");
        copy_index(repository, git_dir, &index)?;
        self.changed(Place::Private { git_dir, work_tree: Some(&repository.worktree), index: Some(&index) }, &settings)
    }
}

/// When the entry last changed; where there is none, when the nearest directory above it did. `None` where a link or
/// something that can't be looked at is in the way.
fn changed_at(top: &OwnedFd, path: &RepoPath) -> Option<i128> {
    let mut place = Some(path.clone());
    loop {
        let name = place.as_ref().map_or(b".".as_slice(), RepoPath::as_bytes);
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
        match rustix::fs::openat2(top, name, flags, Mode::empty(), resolve) {
            // A link at the end is opened, not followed.
            Ok(opened) => return Some(Fingerprint::of(&rustix::fs::fstat(&opened).ok()?).changed()),
            Err(Errno::NOENT | Errno::NOTDIR) => place = place?.parent(),
            Err(_) => return None,
        }
    }
}
