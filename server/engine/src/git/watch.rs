//! What changed in a fresh tree while something ran there before the job: the setup command.
//!
//! What is compared with is read beforehand, as long as nothing could have written to the tree or its git directory.
//! Only names come out of this; the job's result is measured against its base all the same.

use pactify_core::job::Base;
use pactify_core::job::event::TreeRecord;
use pactify_core::{AbsPath, RepoPath};

use super::capture::{self, open_recorded};
use super::command::Place;
use super::error::GitError;
use super::ignores::Ignores;
use super::included::Included;
use super::listing::Listing;
use super::manifest::Manifest;
use super::{Git, Places};
use crate::hash::Algorithm;

/// A fresh tree, as it is known to be.
#[derive(Debug)]
pub struct Watch {
    listing: Listing,
    manifest: Manifest,
    ignores: Ignores,
    included: Included,
    algorithm: Algorithm,
}

impl Git {
    /// Remembers what the fresh tree of `places` holds. Nothing may have run in it yet.
    ///
    /// # Errors
    /// When the records of the tree cannot be read.
    pub fn watch(&self, places: &Places, base: &Base) -> Result<Watch, GitError> {
        let manifest = Manifest::read(&places.manifest())?;
        let git_dir: AbsPath = places.git();
        let place = Place::Private { git_dir: &git_dir, work_tree: None, index: None };
        let listing = self.list(place, &base.tree)?;
        let ignores = self.ignores(place, &listing, &manifest.header.rules)?;
        let included = Included::read(&places.included());
        Ok(Watch { listing, manifest, ignores, included, algorithm: Algorithm::of(&base.tree) })
    }
}

impl Watch {
    /// The paths that changed since, without what git ignores. Nothing may run in the tree any more.
    ///
    /// # Errors
    /// [`GitError::TreeReplaced`].
    pub fn changed(&self, tree: &TreeRecord) -> Result<Vec<RepoPath>, GitError> {
        let root = open_recorded(tree)?;
        let Self { listing, manifest, ignores, included, algorithm } = self;
        let mut changed = capture::differing(&root, listing, manifest, ignores, included, *algorithm)?;
        changed.sort();
        Ok(changed)
    }
}
