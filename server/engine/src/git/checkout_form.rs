//! What a checkout holds for the contents of a change set, and back: what an apply compares with and writes.
//!
//! Decided under the base's attributes and the settings of the job's creation, as the capture was: a change set that
//! changes `.gitattributes` does not alter how its other files are written. Where nothing of the change set is
//! converted, this costs two git calls at most. Where something is, all of its contents are converted together
//! beforehand, in a [`Stage`]; git is asked again only for files that hold neither side of their change.
//!
//! A file in Git LFS counts as its pointer: an untouched one equals the base, whatever its content. Where a result
//! holds a pointer, a checkout gets the content behind it from the repository's local store, or the apply is refused.
//!
//! git's exception for files that were stored with CRLF needs their base entry, which it is given for the change set's
//! contents only; a file that holds neither side differs from both with or without it.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io;

use pactify_core::change::{Change, ChangeSet, Entry};
use pactify_core::job::Base;
use pactify_core::lfs::{MAX_POINTER_BYTES, Pointer, is_pointer};
use pactify_core::path::rules::WritablePath;
use pactify_core::{AbsPath, ObjectId, RepoPath};

use super::command::Place;
use super::conversion::{Keep, Stage, below};
use super::error::GitError;
use super::lfs::{self, LocalStore};
use super::listing::{Listed, Listing};
use super::manifest::Header;
use super::{Git, Objects, Places};
use crate::hash::Algorithm;

/// Above this number of directories, listing all of the base is cheaper than picking from it.
const FEW_DIRECTORIES: usize = 200;

/// The form that a checkout gives to the contents of one change set.
#[derive(Debug)]
pub struct CheckoutForm {
    trusts_executable_bit: bool,
    conversion: Option<Conversion>,
    in_lfs: Option<InLfs>,
}

impl CheckoutForm {
    /// That of a checkout in which nothing is converted.
    #[cfg(test)]
    pub(crate) fn plain() -> Self {
        Self { trusts_executable_bit: true, conversion: None, in_lfs: None }
    }
}

/// The paths in Git LFS.
#[derive(Debug)]
struct InLfs {
    paths: BTreeSet<RepoPath>,
    /// The objects of both sides.
    sides: BTreeMap<RepoPath, Vec<ObjectId>>,
    store: LocalStore,
    objects: Objects,
    algorithm: Algorithm,
}

/// The conversion of those paths that have one.
#[derive(Debug)]
struct Conversion {
    stage: Stage,
    algorithm: Algorithm,
    affected: BTreeSet<RepoPath>,
    forms: BTreeMap<RepoPath, Vec<Form>>,
}

/// One side of a change, as a checkout holds it.
#[derive(Debug)]
struct Form {
    /// The side.
    object: ObjectId,
    /// The file with the checkout's bytes.
    file: AbsPath,
    /// The id of these bytes.
    held: ObjectId,
    /// What git stores for them.
    stored: ObjectId,
}

impl Git {
    /// How the contents of `set`, captured for the job of `places`, relate to those of a checkout.
    ///
    /// # Errors
    /// When the job's records or the base cannot be read, or git cannot convert.
    pub fn checkout_form(&self, places: &Places, base: &Base, set: &ChangeSet) -> Result<CheckoutForm, GitError> {
        let Header { rules, lfs_store, .. } = Header::read(&places.manifest())?;
        let trusts_executable_bit = rules.is_on("core.filemode", true);
        let capture = places.capture();
        let changes: Vec<&Change> = set.changes.iter().filter(|change| is_convertible(change)).collect();
        let place = Place::Private { git_dir: &capture, work_tree: None, index: None };
        let attributes = self.attributes_above(place, &base.tree, changes.iter().map(|change| &change.path))?;
        let mut form = CheckoutForm { trusts_executable_bit, conversion: None, in_lfs: None };
        let Some(stage) = Stage::open(self, &capture, &attributes, &rules)? else { return Ok(form) };
        let algorithm = Algorithm::of(&base.tree);
        let paths = stage.in_lfs(changes.iter().map(|change| &change.path))?;
        if !paths.is_empty() {
            let store = LocalStore::at(lfs_store.unwrap_or_else(|| capture.join("lfs")));
            let objects = self.objects(&capture, &base.tree)?;
            let sides = changes.iter().filter(|change| paths.contains(&change.path)).map(|change| {
                let sides = [&change.old, &change.new].into_iter().flatten();
                (change.path.clone(), sides.map(|entry| entry.object.clone()).collect())
            });
            let sides = sides.collect();
            form.in_lfs = Some(InLfs { paths, sides, store, objects, algorithm });
        }
        let in_lfs = |path: &RepoPath| form.in_lfs.as_ref().is_some_and(|lfs| lfs.paths.contains(path));
        let changes: Vec<&Change> = changes.into_iter().filter(|change| !in_lfs(&change.path)).collect();
        form.conversion = Conversion::of(stage, &changes, algorithm)?;
        Ok(form)
    }

    /// The `.gitattributes` of a tree that have a say about `paths`; perhaps others, too.
    pub(super) fn attributes_above<'p>(
        &self,
        place: Place<'_>,
        tree: &ObjectId,
        paths: impl Iterator<Item = &'p RepoPath>,
    ) -> Result<Listing, GitError> {
        let name = b".gitattributes".as_slice();
        let mut wanted: BTreeSet<RepoPath> = RepoPath::new(name).into_iter().collect();
        for directory in paths.flat_map(RepoPath::ancestors) {
            wanted.extend(RepoPath::new([directory.as_bytes(), b"/", name].concat()));
            if wanted.len() > FEW_DIRECTORIES {
                return self.list(place, tree);
            }
        }
        self.list_only(place, tree, &wanted)
    }
}

impl CheckoutForm {
    /// The id of what the repository would store for a file at `path` that holds `bytes`; `None` when it would store
    /// these very bytes.
    ///
    /// # Errors
    /// When git cannot be run.
    pub fn stored(&self, path: &RepoPath, bytes: &[u8]) -> Result<Option<ObjectId>, GitError> {
        match self.in_lfs(path) {
            Some(lfs) => lfs.stored(path, bytes),
            None => self.conversion(path).map_or(Ok(None), |conversion| conversion.stored(path, bytes)),
        }
    }

    /// What the repository would store for a file at `path` that holds `bytes`; `None` when it would store these very
    /// bytes. Not for paths in Git LFS.
    ///
    /// # Errors
    /// When git cannot be run.
    pub fn stored_content(&self, path: &RepoPath, bytes: &[u8]) -> Result<Option<Vec<u8>>, GitError> {
        self.conversion(path).map_or(Ok(None), |conversion| conversion.stored_content(path, bytes))
    }

    /// Whether the checkout's form of `path` is another than the stored one, perhaps.
    pub fn converts(&self, path: &RepoPath) -> bool {
        self.is_in_lfs(path) || self.conversion(path).is_some()
    }

    /// Whether what the repository stores for `path` only points to the content.
    pub fn is_in_lfs(&self, path: &RepoPath) -> bool {
        self.in_lfs(path).is_some()
    }

    /// What a checkout would hold at `path` for the stored `object`; `None` when that is its bytes as they are.
    ///
    /// # Errors
    /// When the object is not there, or git cannot be run; [`GitError::LfsContentMissing`].
    pub fn checked_out(&self, path: &RepoPath, object: &ObjectId) -> Result<Option<Vec<u8>>, GitError> {
        match self.in_lfs(path) {
            Some(lfs) => lfs.checked_out(path, object),
            None => self.conversion(path).map_or(Ok(None), |conversion| conversion.checked_out(path, object)),
        }
    }

    /// Whether a checkout would hold other bytes at `path` than those of the stored `object`. Known also where those
    /// bytes are not.
    ///
    /// # Errors
    /// When the object is not there, or git cannot be run.
    pub fn is_converted(&self, path: &RepoPath, object: &ObjectId) -> Result<bool, GitError> {
        match self.in_lfs(path) {
            Some(lfs) => Ok(lfs.pointer(object)?.is_some()),
            None => Ok(self.checked_out(path, object)?.is_some()),
        }
    }

    /// Whether the executable bits of the checkout's files mean anything (`core.fileMode`).
    pub fn trusts_executable_bit(&self) -> bool {
        self.trusts_executable_bit
    }

    fn in_lfs(&self, path: &RepoPath) -> Option<&InLfs> {
        self.in_lfs.as_ref().filter(|lfs| lfs.paths.contains(path))
    }

    fn conversion(&self, path: &RepoPath) -> Option<&Conversion> {
        self.conversion.as_ref().filter(|conversion| conversion.affected.contains(path))
    }
}

impl InLfs {
    fn stored(&self, path: &RepoPath, bytes: &[u8]) -> Result<Option<ObjectId>, GitError> {
        // A side that is no pointer is stored as it is.
        if self.sides.get(path).is_some_and(|sides| sides.contains(&self.algorithm.blob(bytes))) {
            return Ok(None);
        }
        let pointer = lfs::stored(bytes).map_err(GitError::io("read", path.display()))?;
        Ok(pointer.map(|pointer| self.algorithm.blob(pointer.as_bytes())))
    }

    fn checked_out(&self, path: &RepoPath, object: &ObjectId) -> Result<Option<Vec<u8>>, GitError> {
        let Some(blob) = self.pointer(object)? else { return Ok(None) };
        let missing = |why: &str| GitError::LfsContentMissing { path: path.clone(), why: why.to_owned() };
        let pointer = Pointer::parse(&blob).ok_or_else(|| missing("its form is not the one that git-lfs writes"))?;
        if pointer.size > lfs::MAX_APPLIED_BYTES {
            return Err(missing(&format!("its content has {} bytes, which is too much for an apply", pointer.size)));
        }
        let content = self.store.read(&pointer).map_err(GitError::io("read the content of", path.display()))?;
        let why = || missing(&format!("its content {} is not in the repository's local store", pointer.oid()));
        content.map(Some).ok_or_else(why)
    }

    /// The blob, if it is a pointer of any kind.
    fn pointer(&self, object: &ObjectId) -> Result<Option<Vec<u8>>, GitError> {
        match self.objects.read(object, MAX_POINTER_BYTES) {
            Ok(blob) => Ok(Some(blob).filter(|blob| is_pointer(blob))),
            Err(GitError::ObjectTooLarge { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }
}

impl Conversion {
    fn of(stage: Stage, changes: &[&Change], algorithm: Algorithm) -> Result<Option<Self>, GitError> {
        let affected = stage.affects(changes.iter().map(|change| &change.path))?;
        if affected.is_empty() {
            return Ok(None);
        }
        let side = |of: fn(&Change) -> &Option<Entry>| -> BTreeMap<RepoPath, Listed> {
            let affected = changes.iter().filter(|change| affected.contains(&change.path));
            let file = |change: &&&Change| {
                let entry = of(change).as_ref().filter(|entry| entry.mode.is_file())?;
                Some((change.path.clone(), Listed { mode: entry.mode, object: entry.object.clone() }))
            };
            affected.filter_map(|change| file(&change)).collect()
        };
        let (old, mut new) = (side(|change| &change.old), side(|change| &change.new));
        let mut conversion = Self { stage, algorithm, affected, forms: BTreeMap::new() };

        let directory = conversion.stage.aside("old")?;
        conversion.stage.check_out(old.iter(), Some(&directory))?;
        for (path, entry) in &old {
            // Whatever git would make of it, a file as it was checked out is an untouched one.
            conversion.add(path, entry, below(&directory, path), Some(&entry.object))?;
        }

        new.retain(|path, _| conversion.stage.free(path).is_some());
        conversion.stage.check_out(new.iter(), None)?;
        let paths: Vec<&RepoPath> = new.keys().collect();
        let stored = conversion.stage.store(&paths, |path| old.get(path), Keep::Ids)?;
        for (path, entry) in &new {
            conversion.add(path, entry, conversion.stage.at(path), stored.get(path))?;
        }
        Ok(Some(conversion))
    }

    /// Notes the form of one side. What git cannot convert, it stores as it is.
    fn add(
        &mut self,
        path: &RepoPath,
        entry: &Listed,
        file: AbsPath,
        stored: Option<&ObjectId>,
    ) -> Result<(), GitError> {
        let failed = GitError::io("read", file.as_path());
        let hash = |mut open: File| self.algorithm.blob_from(open.metadata()?.len(), &mut open);
        let held = File::open(&file).and_then(hash);
        let held = held.and_then(|held| held.ok_or_else(|| io::Error::other("it changed"))).map_err(failed)?;
        let stored = stored.unwrap_or(&held).clone();
        let form = Form { object: entry.object.clone(), file, held, stored };
        self.forms.entry(path.clone()).or_default().push(form);
        Ok(())
    }

    fn stored(&self, path: &RepoPath, bytes: &[u8]) -> Result<Option<ObjectId>, GitError> {
        let held = self.algorithm.blob(bytes);
        match self.forms(path).find(|form| form.held == held) {
            Some(form) => Ok(Some(form.stored.clone())),
            None => self.stage.store_apart(path, bytes, Keep::Ids),
        }
    }

    fn stored_content(&self, path: &RepoPath, bytes: &[u8]) -> Result<Option<Vec<u8>>, GitError> {
        match self.stage.store_apart(path, bytes, Keep::Objects)? {
            None => Ok(None),
            Some(object) => self.stage.read(&object).map(Some),
        }
    }

    fn checked_out(&self, path: &RepoPath, object: &ObjectId) -> Result<Option<Vec<u8>>, GitError> {
        match self.forms(path).find(|form| form.object == *object) {
            Some(form) if form.held == form.object => Ok(None),
            Some(form) => std::fs::read(&form.file).map(Some).map_err(GitError::io("read", form.file.as_path())),
            None => {
                let bytes = self.stage.check_out_apart(path, object)?;
                Ok((self.algorithm.blob(&bytes) != *object).then_some(bytes))
            }
        }
    }

    fn forms(&self, path: &RepoPath) -> impl Iterator<Item = &Form> {
        self.forms.get(path).into_iter().flatten()
    }
}

/// Whether a side of the change is a file that may be written. git's index takes no other names either.
fn is_convertible(change: &Change) -> bool {
    let sides = [&change.old, &change.new];
    sides.into_iter().flatten().any(|entry| entry.mode.is_file()) && WritablePath::check(change.path.clone()).is_ok()
}
