//! From the tree that a dead job left to objects of our own.
//!
//! [`walk`] looks at every entry without following or opening anything special, and decides what has changed, what is
//! new and what is only noted. [`store`] puts contents into a git directory that is made for this capture, in the form
//! in which git would store them under the base's attributes ([`convert`], [`super::conversion`]). [`write`] makes the
//! result's tree. From then on nothing looks at the job's files any more.
//!
//! The job's index, refs, `.git` file, configuration, attributes and ignore rules have no part in it: a commit, a
//! reset, `assume-unchanged` or an exclude changes nothing. Nothing that the job left can stop a capture or hide the
//! rest from it; what is not captured becomes a [`Note`].

mod commits;
mod convert;
pub(super) mod entry;
mod scan;
pub(super) mod store;
pub(super) mod walk;
mod write;

use std::os::fd::OwnedFd;

use pactify_core::change::{Change, ChangeSet, Entry, EntryMode, Note};
use pactify_core::job::event::{ResultRecord, TreeRecord};
use pactify_core::job::{Base, RepositoryRecord};
use pactify_core::{AbsPath, ChangeSetId, RepoPath};
use rustix::fs::Mode;

pub(super) use self::entry::{DIRECTORY, open_below};

use super::change_set::{Texts, remember, totals, write_notes};
use super::command::Place;
use super::config::{Layout, Rules, lenders};
use super::error::GitError;
use super::ignores::Ignores;
use super::included::Included;
use super::listing::{Listed, Listing};
use super::manifest::{Fingerprint, Manifest, Unread};
use super::prepare::remove;
use super::{Git, Places};
use crate::hash::Algorithm;
use crate::process::{Marker, VerifiedDead};

/// A larger file is noted, not captured: no preview could show it, and an apply would be the wrong way to move it.
pub const MAX_FILE_BYTES: u64 = 64 << 20;

/// What one capture takes in altogether; files beyond are noted.
pub const MAX_TOTAL_BYTES: u64 = 2 << 30;

/// A captured result.
#[derive(Clone, Debug, PartialEq)]
pub struct Captured {
    /// For the journal.
    pub result: ResultRecord,
    /// The result itself.
    pub change_set: ChangeSet,
}

/// A path's entry in the result, or `None` for a path that is gone.
pub(super) type Outcome = (RepoPath, Option<Listed>);

impl Git {
    /// Captures what the job of `places` left in `tree`. An earlier capture is replaced, once this one is complete.
    ///
    /// # Errors
    /// [`GitError::TreeReplaced`], or what the file system refuses on our own side; never for what the job left.
    pub fn capture(
        &self,
        dead: &VerifiedDead,
        places: &Places,
        repository: &RepositoryRecord,
        base: &Base,
        tree: &TreeRecord,
    ) -> Result<Captured, GitError> {
        let marker = Marker::of(places.job());
        if *dead.marker() != marker {
            let (job, proof) = (marker.to_string(), dead.marker().to_string());
            return Err(GitError::ProofOfAnotherJob { job, proof });
        }
        let root = open_recorded(tree)?;
        let manifest = Unread::open(&places.manifest())?;
        let previous = SetAside::of(places)?;
        let included = Included::read(&places.included());
        let set = self.capture_into(places, &root, repository, base, &manifest, &included)?;
        let captured = self.describe(&places.capture(), set)?;
        previous.replace()?;
        Ok(captured)
    }

    fn capture_into(
        &self,
        places: &Places,
        root: &OwnedFd,
        repository: &RepositoryRecord,
        base: &Base,
        manifest: &Unread,
        included: &Included,
    ) -> Result<ChangeSet, GitError> {
        let rules = &manifest.header.rules;
        let capture = &places.capture();
        create(capture, places, repository, base, rules)?;
        let place = Place::Private { git_dir: capture, work_tree: None, index: None };
        let (manifest, listing) = std::thread::scope(|scope| {
            let files = scope.spawn(|| manifest.read());
            let listing = self.list(place, &base.tree);
            (files.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)), listing)
        });
        let (manifest, listing) = (&manifest?, listing?);
        let ignores = self.ignores(place, &listing, rules)?;
        let mut findings = walk::Walk::new(root, &listing, manifest, &ignores, included).run()?;

        let mut outcomes = store::Store::open(self, capture, root, base, &listing, rules)?.take(&mut findings)?;
        outcomes.extend(findings.deleted(&listing, manifest).map(|path| (path, None)));
        let unchanged = |(path, new): &Outcome| listing.get(path) == new.as_ref();
        outcomes.retain(|outcome| !unchanged(outcome));
        let result = self.write_tree(capture, &base.tree, &outcomes)?;
        let changes = changes(&listing, outcomes);
        // Whoever compares the two trees later has to find the same.
        debug_assert_eq!(changes, self.differences(capture, &base.tree, &result)?);
        let mut notes = findings.into_notes();
        notes.extend(self.own_commits(places, repository, base, &manifest.header));
        write_notes(capture, &notes)?;
        let id = ChangeSetId::of_result_tree(result);
        Ok(ChangeSet { id, base_tree: base.tree.clone(), changes, notes })
    }

    fn describe(&self, capture: &AbsPath, mut change_set: ChangeSet) -> Result<Captured, GitError> {
        let objects = self.objects(capture, change_set.id.tree())?;
        self.add_sizes(&objects, &mut change_set.changes)?;
        let mut texts = Texts::default();
        // A list pages: each page would compare all contents again.
        let (renames, totals) = std::thread::scope(|scope| {
            let renames = scope.spawn(|| {
                self.renames(capture, &change_set.base_tree, change_set.id.tree(), &change_set.changes)
                    .inspect_err(|error| tracing::info!(%error, "renames are not remembered"))
            });
            let totals = totals(&objects, &change_set.changes, &mut texts);
            (renames.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)), totals)
        });
        let totals = totals?;
        remember(capture, &change_set, &texts, renames.ok());
        let (id, base_tree) = (change_set.id.clone(), change_set.base_tree.clone());
        Ok(Captured { result: ResultRecord { change_set: id, base_tree, totals }, change_set })
    }

    /// The ignore rules of a tree and of the person.
    pub(super) fn ignores(&self, place: Place<'_>, listing: &Listing, rules: &Rules) -> Result<Ignores, GitError> {
        let mut ignores =
            Ignores::new(&rules.info_exclude, &rules.global_ignores, rules.is_on("core.ignorecase", false));
        let (paths, objects): (Vec<_>, Vec<_>) =
            listing.files_called(b".gitignore").map(|(path, entry)| (path, &entry.object)).unzip();
        for (path, text) in paths.iter().zip(self.contents_there(place, &objects)?) {
            if let Some(text) = text {
                ignores.add(path, &String::from_utf8_lossy(&text));
            }
        }
        Ok(ignores)
    }
}

/// What the outcomes change, sorted by path, without sizes.
fn changes(listing: &Listing, outcomes: Vec<Outcome>) -> Vec<Change> {
    let entry = |listed: &Listed| Entry { mode: listed.mode, object: listed.object.clone(), size: 0 };
    let mut changes: Vec<Change> = outcomes
        .into_iter()
        .map(|(path, new)| Change { old: listing.get(&path).map(entry), new: new.as_ref().map(entry), path })
        .collect();
    changes.sort_by(|one, other| one.path.cmp(&other.path));
    changes
}

/// The capture before this one, out of the way. Comes back if this one fails, even if it fails with the whole process:
/// as long as there is one set aside, what stands in its place is not complete.
struct SetAside {
    capture: AbsPath,
    aside: AbsPath,
    outdated: AbsPath,
}

impl SetAside {
    fn of(places: &Places) -> Result<Self, GitError> {
        let beside = |name: &str| places.directory().join(name);
        let this =
            Self { capture: places.capture(), aside: beside("capture.previous"), outdated: beside("capture.outdated") };
        remove(&this.outdated);
        if is_there(&this.aside) {
            remove(&this.capture);
        } else if is_there(&this.capture) {
            std::fs::rename(&this.capture, &this.aside).map_err(GitError::io("set aside", this.capture.as_path()))?;
        }
        Ok(this)
    }

    /// Gives up what was set aside: by one rename, because an erasure can be interrupted.
    fn replace(self) -> Result<(), GitError> {
        if is_there(&self.aside) {
            std::fs::rename(&self.aside, &self.outdated).map_err(GitError::io("replace", self.aside.as_path()))?;
            remove(&self.outdated);
        }
        std::mem::forget(self);
        Ok(())
    }
}

/// Whether the name is taken, or cannot be told to be free.
fn is_there(path: &AbsPath) -> bool {
    !std::fs::symlink_metadata(path).is_err_and(|error| error.kind() == std::io::ErrorKind::NotFound)
}

impl Drop for SetAside {
    fn drop(&mut self) {
        remove(&self.capture);
        // There may be none.
        let _ = std::fs::rename(&self.aside, &self.capture);
    }
}

/// Makes a git directory of ours for objects that a job made, borrowing those that its base is made of.
pub(super) fn create(
    path: &AbsPath,
    places: &Places,
    repository: &RepositoryRecord,
    base: &Base,
    rules: &Rules,
) -> Result<(), GitError> {
    let mut settings = rules.settings.clone();
    // Names are taken as they are: nothing checks these trees out, and an apply has rules of its own.
    settings.insert("core.protectntfs".to_owned(), "false".to_owned());
    settings.insert("core.protecthfs".to_owned(), "false".to_owned());
    let alternates = lenders(places, repository, base)?;
    let sha256 = base.tree.is_sha256();
    let head = &base.commit;
    Layout { path, settings, rules, sha256, checkout: false, head, alternates: &alternates }.create()
}

/// The paths below `root` that are not what a tree was populated with, ignored ones apart. A file whose conversion
/// changes its bytes may be named although only its time changed.
pub(super) fn differing(
    root: &OwnedFd,
    listing: &Listing,
    manifest: &Manifest,
    ignores: &Ignores,
    included: &Included,
    algorithm: Algorithm,
) -> Result<Vec<RepoPath>, GitError> {
    let findings = walk::Walk::new(root, listing, manifest, ignores, included).run()?;
    let is_same = |candidate: &entry::Candidate| {
        let Some(entry) = listing.get(&candidate.path).filter(|_| !candidate.is_link) else { return false };
        let hashed = candidate.open(root).and_then(|mut file| algorithm.blob_from(candidate.size, &mut file));
        entry.mode == file_mode(candidate.executable) && hashed.is_ok_and(|found| found.as_ref() == Some(&entry.object))
    };
    // Of the youngest files the walk does not trust the `stat`; here it is enough, and the content may be a converted
    // one.
    let looks_same = |candidate: &entry::Candidate| {
        let known = manifest.files.get(&candidate.path);
        let stat = entry::open_below(root, candidate.path.parent().as_ref()).and_then(|directory| {
            rustix::fs::statat(&directory, candidate.path.file_name(), rustix::fs::AtFlags::SYMLINK_NOFOLLOW)
        });
        known.is_some_and(|known| stat.is_ok_and(|stat| known.resembles(&Fingerprint::of(&stat))))
    };
    let differs = |candidate: &&entry::Candidate| !looks_same(candidate) && !is_same(candidate);
    let candidates = findings.candidates.iter().filter(differs);
    let mut paths: Vec<RepoPath> = candidates.map(|candidate| candidate.path.clone()).collect();
    paths.extend(findings.deleted(listing, manifest));
    Ok(paths)
}

/// The files and links below `root` that are not what a tree was populated with, ignored ones apart, and the paths of
/// the base that are gone.
pub(super) fn standing(
    root: &OwnedFd,
    listing: &Listing,
    manifest: &Manifest,
    ignores: &Ignores,
    included: &Included,
) -> Result<(Vec<RepoPath>, Vec<RepoPath>), GitError> {
    let findings = walk::Walk::new(root, listing, manifest, ignores, included).run()?;
    let gone = findings.deleted(listing, manifest).collect();
    Ok((findings.candidates.into_iter().map(|candidate| candidate.path).collect(), gone))
}

/// Opens the tree, if it still is the directory that was recorded.
///
/// # Errors
/// [`GitError::TreeReplaced`].
pub fn open_recorded(tree: &TreeRecord) -> Result<OwnedFd, GitError> {
    let replaced = || GitError::TreeReplaced { path: tree.path.clone() };
    let root = rustix::fs::open(tree.path.as_path(), entry::DIRECTORY, Mode::empty()).map_err(|_| replaced())?;
    let stat = rustix::fs::fstat(&root).map_err(GitError::errno("look at", tree.path.as_path()))?;
    if (stat.st_dev, stat.st_ino) != (tree.device, tree.inode) {
        return Err(replaced());
    }
    Ok(root)
}

/// A note that the entry `path` is not captured because of `why`.
fn unreadable(path: &RepoPath, why: impl Into<String>) -> Note {
    Note::Unreadable { shown: path.display(), why: why.into() }
}

/// A mode as a base or a result has it.
fn file_mode(executable: bool) -> EntryMode {
    if executable { EntryMode::Executable } else { EntryMode::File }
}
