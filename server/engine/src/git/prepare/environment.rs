//! What a job's tree has beside the files of its base, put there after it was populated and before anything runs in it.
//!
//! [`lfs`]: contents of files in Git LFS. [`submodules`]: the repositories inside the repository. [`includes`]: ignored
//! files of the checkout that `.worktreeinclude` names. All of it comes from this machine; what is not there is told in
//! a notice and fails nothing. No filter, hook or program runs for it.

mod includes;
mod lfs;
mod submodules;

use std::os::fd::OwnedFd;

use pactify_core::change::EntryMode;
use pactify_core::job::RepositoryRecord;
use pactify_core::lfs::LfsPolicy;
use pactify_core::{AbsPath, RepoPath};

use self::lfs::Filled;
use super::notices::Notice;
use crate::git::command::Place;
use crate::git::config::{Rules, Settings};
use crate::git::error::GitError;
use crate::git::lfs::LocalStore;
use crate::git::listing::Listing;
use crate::git::{Git, Places};

/// A populated tree that is to be furnished.
pub(super) struct Site<'a> {
    pub(super) places: &'a Places,
    pub(super) repository: &'a RepositoryRecord,
    pub(super) settings: &'a Settings,
    pub(super) rules: &'a Rules,
    /// The git directory that populated it.
    pub(super) place: Place<'a>,
    pub(super) listing: &'a Listing,
    /// Its top, open.
    pub(super) directory: &'a OwnedFd,
    pub(super) lfs: LfsPolicy,
}

/// What was put into a tree.
#[derive(Debug, Default)]
pub(super) struct Furnished {
    pub(super) notices: Vec<Notice>,
    /// Files that `.worktreeinclude` names.
    pub(super) included: Vec<RepoPath>,
    /// Files and submodules of the base that are not as the tree was populated any more.
    pub(super) rewritten: Vec<RepoPath>,
    /// The files of its submodules.
    pub(super) below_submodules: Vec<RepoPath>,
}

impl Git {
    /// Furnishes the tree of `site`.
    ///
    /// # Errors
    /// When the tree cannot be written.
    pub(super) fn furnish(&self, site: &Site<'_>) -> Result<Furnished, GitError> {
        let mut furnished = Furnished::default();
        let store = local_store(site.repository, site.settings);
        let temporary = site.places.directory().join("lfs.new");
        let tree = lfs::Tree { place: site.place, listing: site.listing, rules: site.rules, directory: site.directory };
        let mut filled = self.fill_lfs(&tree, &store, site.lfs, &temporary, &mut furnished.rewritten)?;
        filled += self.fill_submodules(site, &mut furnished)?;
        let submodules = site.listing.entries.iter().filter(|(_, entry)| entry.mode == EntryMode::Gitlink);
        furnished.rewritten.extend(submodules.map(|(path, _)| path.clone()));
        furnished.notices.extend(lfs::notice(&filled, site.lfs));
        self.include(site, &mut furnished)?;
        Ok(furnished)
    }
}

/// Where the contents of a repository's LFS files are.
pub(super) fn local_store(repository: &RepositoryRecord, settings: &Settings) -> LocalStore {
    let named = settings.get("lfs.storage").filter(|path| !path.is_empty());
    let path = named.and_then(|path| AbsPath::new(repository.common_dir.as_path().join(path)).ok());
    path.map_or_else(|| LocalStore::in_git_dir(&repository.common_dir), LocalStore::at)
}
