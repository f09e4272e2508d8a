//! Ignored files of the checkout that a job's tree gets copies of, because `.worktreeinclude` names them: secrets and
//! local settings without which a project does not start.
//!
//! Only what git ignores under the rules of the base is copied: the capture, which decides by the same rules, then
//! never takes a copy for the job's work. Nothing that git tracks, no link and nothing special is copied; both trees
//! are walked by descriptor, following nothing. Which files they were is kept beside the tree for the capture alone.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt as _;

use pactify_core::RepoPath;
use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags};
use rustix::io::Errno;

use super::super::notices::Notice;
use super::{Furnished, Site};
use crate::git::Git;
use crate::git::capture::{DIRECTORY, open_below};
use crate::git::command::{Call, Place, Verb};
use crate::git::error::GitError;
use crate::git::ignores::{Ignores, Patterns};
use crate::git::read::read;

/// The file with the patterns, at the checkout's top.
const NAME: &str = ".worktreeinclude";

/// How many files are copied at most.
const MOST_FILES: usize = 20_000;

/// How many bytes are copied at most.
const MOST_BYTES: u64 = 1 << 30;

/// How many entries of the checkout are looked at to find them.
const MOST_LOOKS: usize = 1_000_000;

/// How many bytes of patterns are read.
const MOST_PATTERNS: usize = 1 << 20;

/// What a search of the checkout came to.
#[derive(Default)]
struct Found {
    files: BTreeSet<RepoPath>,
    looks: usize,
}

/// What copying came to.
#[derive(Default)]
struct Copied {
    files: Vec<RepoPath>,
    bytes: u64,
    left: u64,
}

impl Git {
    /// Copies the files that the base's `.worktreeinclude` names, or else the checkout's own.
    pub(super) fn include(&self, site: &Site<'_>, furnished: &mut Furnished) -> Result<(), GitError> {
        let Some(text) = self.patterns(site)? else { return Ok(()) };
        let patterns = Patterns::new(&text, site.rules.is_on("core.ignorecase", false));
        let checkout = site.repository.worktree.as_path();
        let root = rustix::fs::open(checkout, DIRECTORY, Mode::empty()).map_err(GitError::errno("open", checkout))?;
        let ignores = self.ignores(site.place, site.listing, site.rules)?;
        let mut found = search(&root, &patterns, &ignores, site)?;
        let complete = found.looks < MOST_LOOKS;
        self.drop_tracked(site, &mut found.files)?;
        let copied = copy(&root, site.directory, found.files)?;
        furnished.notices.extend(notice(&copied, complete));
        furnished.included = copied.files;
        Ok(())
    }

    fn patterns(&self, site: &Site<'_>) -> Result<Option<String>, GitError> {
        let tracked = RepoPath::new(NAME).ok().and_then(|path| site.listing.get(&path));
        let text = match tracked {
            Some(entry) if entry.mode.is_file() => self.contents(site.place, &[&entry.object])?.pop(),
            Some(_) => None,
            // The person's own; a link is fine there.
            None => read(site.repository.worktree.join(NAME).as_path()).ok(),
        };
        let text = text.filter(|text| text.len() <= MOST_PATTERNS);
        Ok(text.map(|text| String::from_utf8_lossy(&text).into_owned()).filter(|text| !text.trim().is_empty()))
    }

    /// A file that was only added to the index is tracked, too.
    fn drop_tracked(&self, site: &Site<'_>, files: &mut BTreeSet<RepoPath>) -> Result<(), GitError> {
        if files.is_empty() {
            return Ok(());
        }
        let call = Call::new(Verb::LsFiles, Place::Person(site.repository)).args(["-z", "--full-name"]);
        let answer = self.run(&call)?;
        for tracked in answer.split(|byte| *byte == 0).filter(|path| !path.is_empty()) {
            if let Ok(path) = RepoPath::new(tracked) {
                files.remove(&path);
            }
        }
        Ok(())
    }
}

/// A directory of the checkout that is still to be looked into.
struct Waiting {
    path: Option<RepoPath>,
    ignored: bool,
    wanted: bool,
}

fn search(root: &OwnedFd, patterns: &Patterns, ignores: &Ignores, site: &Site<'_>) -> Result<Found, GitError> {
    let mut found = Found::default();
    let mut waiting = vec![Waiting { path: None, ignored: false, wanted: false }];
    while let Some(directory) = waiting.pop() {
        // What cannot be read, cannot be copied.
        let Ok(opened) = open_below(root, directory.path.as_ref()) else { continue };
        let Ok(entries) = names(&opened) else { continue };
        let nested = directory.path.is_some() && entries.iter().any(|(name, _)| name == b".git");
        if nested || is_store(&opened, site)? {
            continue;
        }
        for (name, kind) in entries.into_iter().filter(|(name, _)| name != b".git") {
            found.looks += 1;
            if found.looks >= MOST_LOOKS {
                return Ok(found);
            }
            let parent = directory.path.as_ref().map(|path| [path.as_bytes(), b"/"].concat()).unwrap_or_default();
            let Ok(path) = RepoPath::new([parent, name].concat()) else { continue };
            let is_directory = kind == FileType::Directory;
            if site.listing.get(&path).is_some() {
                continue;
            }
            let ignored = directory.ignored || ignores.covers(&path, is_directory);
            let wanted = directory.wanted || patterns.cover(&path, is_directory);
            if is_directory {
                waiting.push(Waiting { path: Some(path), ignored, wanted });
            } else if kind == FileType::RegularFile && ignored && wanted {
                found.files.insert(path);
            }
        }
    }
    Ok(found)
}

/// Whether a directory is PACTIFY_HOME, which a person may keep in a repository of theirs.
fn is_store(directory: &OwnedFd, site: &Site<'_>) -> Result<bool, GitError> {
    let jobs = site.places.directory().as_path().parent().and_then(std::path::Path::parent);
    let Some(Ok(store)) = jobs.map(rustix::fs::stat) else { return Ok(false) };
    let stat = rustix::fs::fstat(directory).map_err(GitError::errno("look at", "the checkout"))?;
    Ok((stat.st_dev, stat.st_ino) == (store.st_dev, store.st_ino))
}

fn names(directory: &OwnedFd) -> Result<Vec<(Vec<u8>, FileType)>, Errno> {
    let mut found = Vec::new();
    for entry in Dir::read_from(directory)? {
        let entry = entry?;
        let name = entry.file_name().to_bytes().to_vec();
        let kind = match entry.file_type() {
            FileType::Unknown => {
                let stat = rustix::fs::statat(directory, OsStr::from_bytes(&name), AtFlags::SYMLINK_NOFOLLOW);
                stat.map_or(FileType::Unknown, |stat| FileType::from_raw_mode(stat.st_mode))
            }
            kind => kind,
        };
        if !matches!(name.as_slice(), b"." | b"..") {
            found.push((name, kind));
        }
    }
    Ok(found)
}

fn copy(from: &OwnedFd, to: &OwnedFd, files: BTreeSet<RepoPath>) -> Result<Copied, GitError> {
    let mut copied = Copied::default();
    for path in files {
        if copied.files.len() >= MOST_FILES {
            copied.left += 1;
            continue;
        }
        match copy_one(from, to, &path, MOST_BYTES - copied.bytes) {
            Ok(Some(bytes)) => {
                copied.bytes += bytes;
                copied.files.push(path);
            }
            Ok(None) => copied.left += 1,
            Err(error) if error.kind() == io::ErrorKind::StorageFull => {
                return Err(GitError::io("copy into the job's tree:", path.display())(error));
            }
            Err(_) => copied.left += 1,
        }
    }
    Ok(copied)
}

/// Copies a regular file with its mode; its size, or `None` when it is larger than `limit` or the tree has something
/// there already.
fn copy_one(from: &OwnedFd, to: &OwnedFd, path: &RepoPath, limit: u64) -> io::Result<Option<u64>> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let parent = open_below(from, path.parent().as_ref())?;
    let source = rustix::fs::openat(&parent, path.file_name(), flags, Mode::empty())?;
    let stat = rustix::fs::fstat(&source)?;
    let size = u64::try_from(stat.st_size).unwrap_or_default();
    if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile || size > limit {
        return Ok(None);
    }
    let parent = make_parents(from, to, path)?;
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let target = match rustix::fs::openat(&parent, path.file_name(), flags, Mode::RUSR | Mode::WUSR) {
        Err(Errno::EXIST) => return Ok(None),
        target => File::from(target?),
    };
    let copied = io::copy(&mut io::Read::take(File::from(source), size), &mut &target)
        .and_then(|bytes| Ok(rustix::fs::fchmod(&target, Mode::from_raw_mode(stat.st_mode & 0o777)).map(|()| bytes)?));
    if copied.is_err() {
        let _ = rustix::fs::unlinkat(&parent, path.file_name(), AtFlags::empty());
    }
    copied.map(Some)
}

/// Opens the directory of `path` below `to`, making what is missing with the modes that it has below `from`.
fn make_parents(from: &OwnedFd, to: &OwnedFd, path: &RepoPath) -> Result<OwnedFd, Errno> {
    let mut source = rustix::fs::openat(from, ".", DIRECTORY, Mode::empty())?;
    let mut target = rustix::fs::openat(to, ".", DIRECTORY, Mode::empty())?;
    let Some(parent) = path.parent() else { return Ok(target) };
    for component in parent.components() {
        let name = OsStr::from_bytes(component);
        source = rustix::fs::openat(&source, name, DIRECTORY, Mode::empty())?;
        let made = rustix::fs::mkdirat(&target, name, Mode::RWXU);
        target = rustix::fs::openat(&target, name, DIRECTORY, Mode::empty())?;
        match made {
            Ok(()) => {
                let mode = Mode::from_raw_mode(rustix::fs::fstat(&source)?.st_mode & 0o777) | Mode::RWXU;
                rustix::fs::fchmod(&target, mode)?;
            }
            Err(Errno::EXIST) => {}
            Err(errno) => return Err(errno),
        }
    }
    Ok(target)
}

fn notice(copied: &Copied, complete: bool) -> Option<Notice> {
    let Copied { files, left, .. } = copied;
    if files.is_empty() && *left == 0 && complete {
        return None;
    }
    let mut text = format!("ignored files copied into the job's tree, as .worktreeinclude says: {}", files.len());
    if *left > 0 {
        text.push_str(&format!("; left out, being too many, too large, unreadable or in the way: {left}"));
    }
    if !complete {
        text.push_str("; the checkout is too large to be searched to the end");
    }
    Some(Notice { id: "includedFiles", text })
}
