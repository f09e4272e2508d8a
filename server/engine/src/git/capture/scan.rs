//! Reads the directories that the base has, on several threads, before the walk asks for them, and tells which of the
//! base's files are as the manifest has them: nearly all, usually.
//!
//! Nothing else is decided here, and nothing has to be found: a directory that cannot be opened just so (a link,
//! another file system, gone) is left to the walk, and so is what is more than a base of that size explains.

use std::collections::{HashMap, HashSet};
use std::ffi::OsStr;
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::sync::atomic::{AtomicUsize, Ordering};

use pactify_core::RepoPath;
use rustix::fs::{AtFlags, Dir, FileType, Mode, ResolveFlags, Stat};
use rustix::io::Errno;

use super::entry::DIRECTORY;
use super::walk::is_git_name;
use crate::git::listing::Listing;
use crate::git::manifest::{Fingerprint, Manifest};
use crate::git::threads::on_all;

/// How many directories a thread takes at a time.
const AT_A_TIME: usize = 16;

/// With fewer directories, threads cost more than they gain.
const FEW: usize = 64;

/// How many further entries are read ahead at most.
const SPARE: usize = 50_000;

/// A name in a directory, and what it is.
pub(super) type Named = (Vec<u8>, Result<Stat, Errno>);

/// What was read.
#[derive(Default)]
pub(super) struct Ahead {
    /// The entries of directories, without the unchanged files.
    pub(super) directories: HashMap<RepoPath, Vec<Named>>,
    /// The base's files that are unchanged, by where the base has their paths in memory.
    unchanged: HashSet<usize>,
}

impl Ahead {
    /// Whether the file that the base has at `path` (its own path, not one like it) was found unchanged.
    pub(super) fn is_unchanged(&self, path: &RepoPath) -> bool {
        self.unchanged.contains(&address(path))
    }
}

fn address(path: &RepoPath) -> usize {
    std::ptr::from_ref(path).addr()
}

/// Reads the base's directories below `root`.
pub(super) fn ahead(root: &OwnedFd, base: &Listing, manifest: &Manifest) -> Ahead {
    let directories: Vec<&RepoPath> = base.directories.keys().collect();
    if directories.len() < FEW {
        return Ahead::default();
    }
    let (next, most) = (AtomicUsize::new(0), base.entries.len() + SPARE);
    let found = AtomicUsize::new(0);
    let read = on_all(|| {
        let mut mine = Ahead::default();
        loop {
            let from = next.fetch_add(AT_A_TIME, Ordering::Relaxed);
            let Some(some) = directories.get(from..) else { return mine };
            for path in &some[..some.len().min(AT_A_TIME)] {
                if found.load(Ordering::Relaxed) > most {
                    return mine;
                }
                if let Ok(mut entries) = open(root, path).and_then(|directory| entries(&directory)) {
                    entries.retain(|entry| match unchanged(path, entry, base, manifest) {
                        Some(known) => !mine.unchanged.insert(address(known)),
                        None => true,
                    });
                    found.fetch_add(entries.len(), Ordering::Relaxed);
                    mine.directories.insert((*path).clone(), entries);
                }
            }
        }
    });
    let mut all = Ahead::default();
    for Ahead { directories, unchanged } in read {
        all.directories.extend(directories);
        all.unchanged.extend(unchanged);
    }
    all
}

/// The base's own path of an entry that is a file of the base and as the manifest has it.
fn unchanged<'b>(
    directory: &RepoPath,
    (name, stat): &Named,
    base: &'b Listing,
    manifest: &Manifest,
) -> Option<&'b RepoPath> {
    let stat = stat
        .as_ref()
        .ok()
        .filter(|stat| matches!(FileType::from_raw_mode(stat.st_mode), FileType::RegularFile | FileType::Symlink))?;
    if is_git_name(name) {
        return None;
    }
    let path = RepoPath::new([directory.as_bytes(), b"/", name].concat()).ok()?;
    let (known, _) = base.entries.get_key_value(&path)?;
    (manifest.files.get(known) == Some(&Fingerprint::of(stat))).then_some(known)
}

/// Opens a directory, if nothing on the way to it is a link or another file system.
fn open(root: &OwnedFd, path: &RepoPath) -> Result<OwnedFd, Errno> {
    let resolve =
        ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS | ResolveFlags::NO_XDEV;
    rustix::fs::openat2(root, path.as_bytes(), DIRECTORY, Mode::empty(), resolve)
}

/// What is in an open directory, sorted by name.
pub(super) fn entries(directory: &OwnedFd) -> Result<Vec<Named>, Errno> {
    let mut entries = Vec::new();
    for entry in Dir::read_from(directory.as_fd())? {
        let name = entry?.file_name().to_bytes().to_vec();
        if !matches!(name.as_slice(), b"." | b"..") {
            let stat = rustix::fs::statat(directory, OsStr::from_bytes(&name), AtFlags::SYMLINK_NOFOLLOW);
            entries.push((name, stat));
        }
    }
    entries.sort_unstable_by(|one, other| one.0.cmp(&other.0));
    Ok(entries)
}
