//! A checkout in a temporary directory, and captured results made of plain maps.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::time::Duration;

use pactify_core::change::plan::{Grounds, Selection};
use pactify_core::change::{Change, ChangeSet, Entry, EntryMode};
use pactify_core::failure::{Conflict, ConflictKind};
use pactify_core::job::RepositoryRecord;
use pactify_core::{AbsPath, ChangeSetId, ObjectId, RepoPath};

use super::super::disk::Disk;
use super::super::undo::undo_with;
use super::super::{Applied, ApplyError, ApplyId, Contents, Materials, RepositoryLock, Verbatim};
#[cfg(feature = "fault-injection")]
use super::super::{Recovered, recover};
use super::super::{Undone, apply_with, observe};
use crate::hash::Algorithm;
use crate::store::Store;

/// What one path holds. The executable bit belongs to it, other bits do not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Node {
    File(Vec<u8>),
    Executable(Vec<u8>),
    Link(Vec<u8>),
    /// Only in pictures of directories.
    Directory,
}

/// Paths and what they hold.
pub(crate) type Files = BTreeMap<Vec<u8>, Node>;

pub(crate) fn file(text: &str) -> Node {
    Node::File(text.into())
}

pub(crate) fn executable(text: &str) -> Node {
    Node::Executable(text.into())
}

pub(crate) fn link(target: &str) -> Node {
    Node::Link(target.into())
}

pub(crate) fn files<'a>(entries: impl IntoIterator<Item = (&'a str, Node)>) -> Files {
    entries.into_iter().map(|(path, node)| (path.as_bytes().to_vec(), node)).collect()
}

pub(crate) fn path(text: &str) -> RepoPath {
    RepoPath::new(text).unwrap()
}

/// A link to the git directory, where that is not in the checkout.
const GIT_DIRECTORY: &str = "git-dir";

/// What is in a checkout beside the person's files.
const OURS: [&[u8]; 2] = [b".git", b".pactify-stage"];

/// A checkout, its git directory, and a store.
pub(crate) struct Sandbox {
    root: AbsPath,
    _folders: Vec<tempfile::TempDir>,
    pub(crate) repository: RepositoryRecord,
    pub(crate) store: Store,
}

impl Sandbox {
    /// A checkout that holds `files` and a git directory with an index.
    pub(crate) fn new(files: &Files) -> Self {
        Self::in_folder(tempfile::tempdir().unwrap(), files)
    }

    /// The same in memory, where waiting for the disk takes no time.
    pub(crate) fn in_memory(files: &Files) -> Self {
        Self::in_folder(tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap(), files)
    }

    /// The sandbox that another process made.
    #[cfg(feature = "fault-injection")]
    pub(crate) fn existing(root: AbsPath) -> Self {
        Self::at_root(root, Vec::new())
    }

    /// The same with its git directory on another file system; `None` where there is only one.
    #[cfg(feature = "fault-injection")]
    pub(crate) fn in_memory_with_git_on_disk(files: &Files) -> Option<Self> {
        let (folder, elsewhere) = (tempfile::tempdir_in("/dev/shm").ok()?, tempfile::tempdir().unwrap());
        let device = |folder: &tempfile::TempDir| folder.path().metadata().unwrap().dev();
        if device(&folder) == device(&elsewhere) {
            return None;
        }
        symlink(elsewhere.path(), folder.path().join(GIT_DIRECTORY)).unwrap();
        let mut sandbox = Self::in_folder(folder, files);
        sandbox._folders.push(elsewhere);
        Some(sandbox)
    }

    fn in_folder(folder: tempfile::TempDir, files: &Files) -> Self {
        let root = AbsPath::new(folder.path().canonicalize().unwrap()).unwrap();
        let sandbox = Self::at_root(root, vec![folder]);
        sandbox.populate(files);
        sandbox
    }

    fn at_root(root: AbsPath, folders: Vec<tempfile::TempDir>) -> Self {
        let worktree = root.join("checkout");
        std::fs::create_dir_all(worktree.as_path()).unwrap();
        let elsewhere = std::fs::read_link(root.join(GIT_DIRECTORY).as_path());
        let git_dir = elsewhere.map_or(worktree.join(".git"), |elsewhere| AbsPath::new(elsewhere).unwrap());
        std::fs::create_dir_all(git_dir.as_path()).unwrap();
        let repository =
            RepositoryRecord { worktree, git_dir: git_dir.clone(), common_dir: git_dir, prefix: String::new() };
        let store = Store::open(&root.join("store")).unwrap();
        Self { root, _folders: folders, repository, store }
    }

    fn populate(&self, files: &Files) {
        std::fs::create_dir_all(self.outside()).unwrap();
        std::fs::write(self.repository.git_dir.join("index").as_path(), "an index that nobody opens").unwrap();
        for (path, node) in files {
            self.put(path, node);
        }
    }

    #[cfg(feature = "fault-injection")]
    pub(crate) fn root(&self) -> &AbsPath {
        &self.root
    }

    pub(crate) fn at(&self, path: impl AsRef<[u8]>) -> PathBuf {
        self.repository.worktree.as_path().join(OsStr::from_bytes(path.as_ref()))
    }

    /// A directory that no apply has any business in.
    pub(crate) fn outside(&self) -> PathBuf {
        self.root.join("outside").as_path().to_owned()
    }

    pub(crate) fn put(&self, path: impl AsRef<[u8]>, node: &Node) {
        let at = self.at(path);
        std::fs::create_dir_all(at.parent().unwrap()).unwrap();
        if at.symlink_metadata().is_ok_and(|metadata| !metadata.is_dir()) {
            std::fs::remove_file(&at).unwrap();
        }
        match node {
            Node::File(bytes) => std::fs::write(&at, bytes).unwrap(),
            Node::Executable(bytes) => {
                std::fs::write(&at, bytes).unwrap();
                set_bits(&at, 0o755);
            }
            Node::Link(target) => symlink(OsStr::from_bytes(target), &at).unwrap(),
            Node::Directory => std::fs::create_dir_all(&at).unwrap(),
        }
    }

    /// Everything in the checkout but the git directory and what is staged beside it.
    pub(crate) fn picture(&self) -> Files {
        let mut picture = picture(self.repository.worktree.as_path());
        let is_ours = |path: &[u8]| path.split(|byte| *byte == b'/').next().is_some_and(|top| OURS.contains(&top));
        picture.retain(|path, _| !is_ours(path));
        picture
    }

    /// Everything in the store.
    #[cfg(feature = "fault-injection")]
    pub(crate) fn store_picture(&self) -> Files {
        picture(self.store.home().as_path())
    }

    /// Everything in the git directory.
    pub(crate) fn git_picture(&self) -> Files {
        picture(self.repository.git_dir.as_path())
    }

    pub(crate) fn lock(&self) -> RepositoryLock {
        RepositoryLock::acquire(&self.store, &self.repository, Duration::from_secs(60)).unwrap()
    }

    #[cfg(feature = "fault-injection")]
    pub(crate) fn recover(&self) -> Vec<Recovered> {
        recover(&self.lock()).unwrap()
    }

    /// Observes, checks and applies, as the façade does.
    pub(crate) fn apply(&self, result: &CapturedResult, selection: &Selection) -> Result<Applied, ApplyError> {
        self.apply_on(result, selection, Disk::new(), || {})
    }

    /// The same, with something happening between the check and the apply.
    pub(in crate::apply) fn apply_on(
        &self,
        result: &CapturedResult,
        selection: &Selection,
        disk: Disk,
        between: impl FnOnce(),
    ) -> Result<Applied, ApplyError> {
        self.apply_as(1, result, selection, disk, between)
    }

    /// The same, as the job's apply of this number.
    pub(in crate::apply) fn apply_as(
        &self,
        number: u32,
        result: &CapturedResult,
        selection: &Selection,
        disk: Disk,
        between: impl FnOnce(),
    ) -> Result<Applied, ApplyError> {
        let lock = self.lock();
        let grounds = Grounds::default();
        let checkout = observe(&self.repository, &result.set, &grounds, &Verbatim, vec![])?;
        let plan = result.set.check(selection, &grounds, &checkout).map_err(ApplyError::Conflicts)?;
        between();
        let materials = Materials { contents: result, canonical: &Verbatim };
        apply_with(plan, &apply_id(number), materials, &lock, disk)
    }

    /// Takes an apply back.
    pub(in crate::apply) fn undo(&self, number: u32) -> Result<Undone, ApplyError> {
        self.undo_on(number, Disk::new())
    }

    pub(in crate::apply) fn undo_on(&self, number: u32, disk: Disk) -> Result<Undone, ApplyError> {
        undo_with(&apply_id(number), &[], &self.lock(), disk)
    }

    /// Permission bits, inodes and numbers of names of everything in the checkout but the git directory.
    pub(in crate::apply) fn attributes(&self) -> BTreeMap<Vec<u8>, (u32, u64, u64)> {
        let attributes = |path: Vec<u8>| {
            let metadata = self.at(&path).symlink_metadata().unwrap();
            let inode = if metadata.is_dir() { 0 } else { metadata.ino() };
            let names = if metadata.is_dir() { 0 } else { metadata.nlink() };
            (path, (metadata.mode(), inode, names))
        };
        self.picture().into_keys().map(attributes).collect()
    }
}

pub(crate) fn apply_id(number: u32) -> ApplyId {
    ApplyId { job: "20261129-154512-aaaaaa".parse().unwrap(), number }
}

pub(crate) fn everything() -> Selection {
    Selection::All { confirmed: vec![] }
}

/// A captured result: a change set and its contents.
pub(crate) struct CapturedResult {
    pub(crate) set: ChangeSet,
    objects: BTreeMap<ObjectId, Vec<u8>>,
}

impl CapturedResult {
    pub(crate) fn between(base: &Files, result: &Files) -> Self {
        let mut objects = BTreeMap::new();
        let mut entry = |node: Option<&Node>| {
            let (mode, bytes) = match node? {
                Node::File(bytes) => (EntryMode::File, bytes),
                Node::Executable(bytes) => (EntryMode::Executable, bytes),
                Node::Link(target) => (EntryMode::Symlink, target),
                Node::Directory => return None,
            };
            let object = Algorithm::Sha1.blob(bytes);
            objects.insert(object.clone(), bytes.clone());
            Some(Entry { mode, object, size: bytes.len() as u64 })
        };
        let mut paths: Vec<&Vec<u8>> = base.keys().chain(result.keys()).collect();
        paths.sort();
        paths.dedup();
        let changes = paths.into_iter().filter(|path| base.get(*path) != result.get(*path)).map(|path| Change {
            path: RepoPath::new(path.clone()).unwrap(),
            old: entry(base.get(path)),
            new: entry(result.get(path)),
        });
        let changes = changes.collect();
        let id = ChangeSetId::of_result_tree(Algorithm::Sha1.blob(b"the result's tree"));
        let base_tree = Algorithm::Sha1.blob(b"the base's tree");
        Self { set: ChangeSet { id, base_tree, changes, notes: vec![] }, objects }
    }

    pub(crate) fn paths(&self) -> Vec<RepoPath> {
        self.set.changes.iter().map(|change| change.path.clone()).collect()
    }
}

impl Contents for CapturedResult {
    fn read(&self, object: &ObjectId) -> std::io::Result<Vec<u8>> {
        self.objects.get(object).cloned().ok_or_else(|| std::io::ErrorKind::NotFound.into())
    }
}

/// The kinds of obstacle, by path.
pub(crate) fn obstacles(error: ApplyError) -> Vec<(String, ConflictKind)> {
    let shown = format!("{error:?}");
    let conflicts: Vec<Conflict> = error.into_conflicts();
    assert!(!conflicts.is_empty(), "{shown}");
    conflicts.into_iter().map(|conflict| (conflict.path.path, conflict.kind)).collect()
}

pub(crate) fn set_bits(path: &Path, bits: u32) {
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(bits)).unwrap();
}

pub(crate) fn bits(path: &Path) -> u32 {
    path.symlink_metadata().unwrap().mode() & 0o7777
}

/// Everything below a directory.
pub(crate) fn picture(top: &Path) -> Files {
    let mut picture = Files::new();
    let mut waiting = vec![top.to_owned()];
    while let Some(directory) = waiting.pop() {
        for entry in std::fs::read_dir(&directory).unwrap() {
            let entry = entry.unwrap();
            let kind = entry.file_type().unwrap();
            let node = if kind.is_dir() {
                waiting.push(entry.path());
                Node::Directory
            } else if kind.is_symlink() {
                Node::Link(std::fs::read_link(entry.path()).unwrap().as_os_str().as_bytes().to_vec())
            } else if kind.is_file() {
                let bytes = std::fs::read(entry.path()).unwrap_or_default();
                if bits(&entry.path()) & 0o100 == 0 { Node::File(bytes) } else { Node::Executable(bytes) }
            } else {
                Node::Directory
            };
            let path = entry.path().strip_prefix(top).unwrap().as_os_str().as_bytes().to_vec();
            picture.insert(path, node);
        }
    }
    picture
}
