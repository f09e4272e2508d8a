//! Looks at what steers git in the directory that all checkouts of a repository share.
//!
//! Everything is opened by name in the directory above, following nothing, and only if it is a regular file, so
//! whatever a job put there can neither be waited for nor lead elsewhere. What cannot be looked at becomes a gap, which
//! counts as changed. Refs are read from their files; tables of refs by git, from copies in a git directory of ours.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read as _, Seek as _};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;

use pactify_core::fingerprint::{Item, SharedState, keys, refs, registration_of};
use pactify_core::job::RepositoryRecord;
use pactify_core::{AbsPath, RepoPath};
use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags};
use rustix::io::Errno;

mod values;

use super::FingerprintError;
use crate::disk::{DIRECTORY, SAFE};
use crate::git::{Git, Scratch};
use crate::hash;

/// A larger file is told apart by its digest alone, and cannot be put back.
const KEPT_FILE: u64 = 1 << 20;

/// Contents kept altogether.
const KEPT: u64 = 32 << 20;

/// A larger file is not read.
const MOST_BYTES: u64 = 64 << 20;

/// Contents read altogether, whether they are kept or not.
const MOST_READ: u64 = 256 << 20;

/// A larger file is no ref.
const MOST_REF: u64 = 4096;

/// More files and directories, or refs, than are looked at.
const MOST_ITEMS: usize = 50_000;
const MOST_REFS: usize = 1_000_000;

/// How deep directories are looked into.
const DEPTH: usize = 12;

/// Files of a git directory that steer git.
const TOP: &[&str] = &["config", "config.worktree", "commondir", "shallow"];
const INFO: &[&str] = &["attributes", "exclude", "grafts", "sparse-checkout"];
const BORROWING: &[&str] = &["alternates", "http-alternates"];
/// Files of a registered worktree.
const REGISTERED: &[&str] = &["gitdir", "commondir", "config.worktree", "locked", "index"];

/// Refs that are each worktree's own, and come and go with what git is in the middle of.
pub(super) const TRANSIENT: &[&[u8]] = &[b"refs/bisect", b"refs/worktree", b"refs/rewritten"];

/// Where to look.
#[derive(Clone, Copy, Debug)]
pub struct Subject<'a> {
    /// The repository, as it was recorded when the job was made.
    pub repository: &'a RepositoryRecord,
    /// Whether it names its objects by SHA-256.
    pub sha256: bool,
    /// The directory of all jobs: registrations of trees in there are pactify's own.
    pub jobs: &'a AbsPath,
}

impl Subject<'_> {
    /// Looks. `before` is the state to be compared with, if there is one: what it has is looked for again. `scratch` is
    /// where a git directory of ours can be made.
    ///
    /// # Errors
    /// Only for what goes wrong on our own side; what cannot be looked at is a gap of the state.
    pub fn look(
        &self,
        git: &Git,
        scratch: &Scratch,
        before: Option<&SharedState>,
    ) -> Result<SharedState, FingerprintError> {
        let mut reader =
            Reader { subject: *self, before, state: SharedState::default(), kept: 0, read: 0, looked: 0, spent: false };
        match open_top(self.repository) {
            Ok(top) => reader.everything(&top, git, scratch)?,
            Err(error) => reader.gap(b".", error.to_string()),
        }
        Ok(reader.state)
    }

    /// The end of a ref's log: what it was last set to, if it has a log.
    pub(super) fn last_logged(&self, name: &RepoPath) -> Option<pactify_core::ObjectId> {
        let mut parts: Vec<&[u8]> = name.components().collect();
        let at = if registration_of(name).is_some() { 2 } else { 0 };
        parts.insert(at, b"logs");
        let path = RepoPath::new(parts.join(&b'/')).ok()?;
        let top = open_top(self.repository).ok()?;
        let directory = open_below(&top, path.parent().as_ref()).ok()?;
        let mut file = open_file(&directory, path.file_name()).ok()?;
        let length = file.metadata().ok()?.len();
        file.seek(io::SeekFrom::Start(length.saturating_sub(4096))).ok()?;
        let mut tail = Vec::new();
        file.take(4096).read_to_end(&mut tail).ok()?;
        refs::last_logged(&tail)
    }
}

/// Opens the shared git directory of a repository.
pub(super) fn open_top(repository: &RepositoryRecord) -> io::Result<OwnedFd> {
    Ok(rustix::fs::open(repository.common_dir.as_path(), DIRECTORY, Mode::empty())?)
}

/// Opens a directory below `top`, following nothing.
pub(super) fn open_below(top: &OwnedFd, path: Option<&RepoPath>) -> Result<OwnedFd, Errno> {
    let mut opened = rustix::fs::openat(top, ".", DIRECTORY, Mode::empty())?;
    for component in path.into_iter().flat_map(RepoPath::components) {
        opened = rustix::fs::openat(&opened, OsStr::from_bytes(component), DIRECTORY, Mode::empty())?;
    }
    Ok(opened)
}

/// What is at `name`; nothing where nothing is. `keep` says up to which size a content is kept.
pub(super) fn item(directory: impl AsFd, name: &[u8], keep: u64) -> io::Result<Option<Item>> {
    let directory = directory.as_fd();
    let stat = match rustix::fs::statat(directory, OsStr::from_bytes(name), AtFlags::SYMLINK_NOFOLLOW) {
        Err(Errno::NOENT | Errno::NOTDIR) => return Ok(None),
        stat => stat?,
    };
    let special = |what: &str| Ok(Some(Item::Special { what: what.to_owned() }));
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile => {}
        FileType::Symlink => {
            let target = rustix::fs::readlinkat(directory, OsStr::from_bytes(name), Vec::new())?;
            return Ok(Some(Item::Link { target: target.into_bytes() }));
        }
        FileType::Directory => return special("directory"),
        FileType::Fifo => return special("pipe"),
        FileType::Socket => return special("socket"),
        _ => return special("device"),
    }
    let too_large = || io::Error::other(format!("it has more than {} MiB", MOST_BYTES >> 20));
    if stat.st_size as u64 > MOST_BYTES {
        return Err(too_large());
    }
    let file = open_file(directory, name)?;
    let mut content = Vec::new();
    file.take(MOST_BYTES + 1).read_to_end(&mut content)?;
    let size = content.len() as u64;
    if size > MOST_BYTES {
        return Err(too_large());
    }
    let (digest, executable) = (hash::digest(&content), stat.st_mode & 0o111 != 0);
    Ok(Some(Item::File { executable, size, digest, content: (size <= keep).then_some(content) }))
}

/// How much there is to read at `name`, if anything is there.
fn size(directory: impl AsFd, name: &[u8]) -> Option<u64> {
    let stat = rustix::fs::statat(directory, OsStr::from_bytes(name), AtFlags::SYMLINK_NOFOLLOW).ok()?;
    let is_file = FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile;
    Some(if is_file { stat.st_size as u64 } else { 0 })
}

fn open_file(directory: impl AsFd, name: &[u8]) -> io::Result<File> {
    let opened = rustix::fs::openat(directory, OsStr::from_bytes(name), SAFE | OFlags::RDONLY, Mode::empty())?;
    let stat = rustix::fs::fstat(&opened)?;
    if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
        return Err(io::Error::other("it is no regular file"));
    }
    Ok(opened.into())
}

struct Reader<'a> {
    subject: Subject<'a>,
    before: Option<&'a SharedState>,
    state: SharedState,
    /// Bytes of contents that are kept.
    kept: u64,
    /// Bytes that were read.
    read: u64,
    /// Files and directories that were looked at.
    looked: usize,
    /// Whether there is more than is looked at. No other file is then.
    spent: bool,
}

/// What a directory holds.
pub(super) struct Entry {
    pub(super) name: Vec<u8>,
    pub(super) is_directory: bool,
}

impl Reader<'_> {
    fn everything(&mut self, top: &OwnedFd, git: &Git, scratch: &Scratch) -> Result<(), FingerprintError> {
        self.git_dir(top, b"", 0);
        self.files(top, b"objects/info", BORROWING);
        for old_fashioned in [&b"remotes"[..], b"branches"] {
            self.tree(top, old_fashioned, 0);
        }
        self.worktrees(top);
        self.included(top);
        if self.uses_tables() {
            self.tables(top, b"", git, scratch)?;
            let registered: Vec<_> = self.state.items.keys().filter_map(registration_of).collect();
            for registration in registered {
                self.tables(top, registration.as_bytes(), git, scratch)?;
            }
        } else {
            self.head(top, b"HEAD");
            self.packed(top);
            self.loose(top, b"refs", 0);
            self.stash(top);
        }
        self.again(top);
        Ok(())
    }

    /// Files and hooks of a git directory, and those of its submodules.
    fn git_dir(&mut self, top: &OwnedFd, path: &[u8], depth: usize) {
        self.files(top, path, TOP);
        self.files(top, &below(path, b"info"), INFO);
        self.tree(top, &below(path, b"hooks"), 0);
        self.modules(top, &below(path, b"modules"), depth);
    }

    fn modules(&mut self, top: &OwnedFd, path: &[u8], depth: usize) {
        if !self.spend(0) {
            return;
        }
        for entry in self.entries(top, path, depth) {
            let entry_path = below(path, &entry.name);
            let inside = if entry.is_directory { self.entries(top, &entry_path, depth + 1) } else { Vec::new() };
            if inside.iter().any(|entry| entry.name == b"objects") {
                self.git_dir(top, &entry_path, depth + 1);
            } else if entry.is_directory {
                self.modules(top, &entry_path, depth + 1);
            }
        }
    }

    fn worktrees(&mut self, top: &OwnedFd) {
        for entry in self.entries(top, b"worktrees", 0) {
            let path = below(b"worktrees", &entry.name);
            let known = RepoPath::new([&path[..], b"/gitdir"].concat())
                .is_ok_and(|gitdir| self.before.is_some_and(|before| before.items.contains_key(&gitdir)));
            if !entry.is_directory || (!known && self.is_ours(top, &path)) {
                continue;
            }
            self.files(top, &path, REGISTERED);
            self.files(top, &below(&path, b"info"), INFO);
            if !self.uses_tables() {
                self.head(top, &below(&path, b"HEAD"));
            }
        }
    }

    /// Whether a registration is that of a job's tree.
    fn is_ours(&self, top: &OwnedFd, path: &[u8]) -> bool {
        leads_below(top, path, self.subject.jobs)
    }

    fn files(&mut self, top: &OwnedFd, directory: &[u8], names: &[&str]) {
        let path = RepoPath::new(directory).ok();
        match open_below(top, path.as_ref()) {
            Ok(opened) => {
                for name in names {
                    self.file(&opened, directory, name.as_bytes());
                }
            }
            Err(Errno::NOENT) => {}
            Err(errno) => self.gap(directory, io::Error::from(errno).to_string()),
        }
    }

    fn file(&mut self, opened: &OwnedFd, directory: &[u8], name: &[u8]) {
        let path = below(directory, name);
        let keep = KEPT_FILE.min(KEPT - self.kept);
        let size = size(opened, name);
        // An index is never compared, so one that is too large to be kept need not be read.
        if name == b"index" && size.is_some_and(|size| size > keep) {
            return;
        }
        if let Some(size) = size
            && !self.spend(if size > MOST_BYTES { 0 } else { size })
        {
            let was_there =
                |before: &SharedState| RepoPath::new(&path[..]).is_ok_and(|path| before.items.contains_key(&path));
            if self.before.is_some_and(was_there) {
                self.gap(&path, "there is too much beside it".to_owned());
            }
            return;
        }
        match item(opened, name, keep) {
            Ok(None) => {}
            Ok(Some(item)) => self.keep(&path, item),
            Err(error) => self.gap(&path, error.to_string()),
        }
    }

    /// Takes what looking at one more thing costs from what may be looked at; or says that there is too much.
    fn spend(&mut self, bytes: u64) -> bool {
        if !self.spent && (self.looked >= MOST_ITEMS || self.read + bytes > MOST_READ) {
            self.spent = true;
            let mebibytes = MOST_READ >> 20;
            self.gap(b".", format!("more than {MOST_ITEMS} files, or {mebibytes} MiB, steer git there"));
        }
        if !self.spent {
            self.looked += 1;
            self.read += bytes;
        }
        !self.spent
    }

    fn keep(&mut self, path: &[u8], item: Item) {
        if let Item::File { content: Some(content), .. } = &item {
            self.kept += content.len() as u64;
        }
        if let Ok(path) = RepoPath::new(path) {
            self.state.items.insert(path, item);
        }
    }

    /// Every file below a directory.
    fn tree(&mut self, top: &OwnedFd, path: &[u8], depth: usize) {
        if !self.spend(0) {
            return;
        }
        let entries = self.entries(top, path, depth);
        let Some(opened) = RepoPath::new(path).ok().and_then(|path| open_below(top, Some(&path)).ok()) else { return };
        for entry in entries {
            if entry.is_directory {
                self.tree(top, &below(path, &entry.name), depth + 1);
            } else {
                self.file(&opened, path, &entry.name);
            }
        }
    }

    /// What is in a directory; nothing where there is none. Something else in its place is an item.
    fn entries(&mut self, top: &OwnedFd, path: &[u8], depth: usize) -> Vec<Entry> {
        if depth > DEPTH {
            self.gap(path, "it is too deep".to_owned());
            return Vec::new();
        }
        let Ok(name) = RepoPath::new(path) else { return Vec::new() };
        let listed = open_below(top, Some(&name)).and_then(|opened| list(&opened));
        match listed {
            Ok(entries) => entries,
            Err(Errno::NOENT) => Vec::new(),
            Err(Errno::LOOP | Errno::NOTDIR) => {
                let parent = name.parent();
                if let Ok(above) = open_below(top, parent.as_ref()) {
                    self.file(&above, parent.as_ref().map_or(b"", RepoPath::as_bytes), name.file_name());
                }
                Vec::new()
            }
            Err(errno) => {
                self.gap(path, io::Error::from(errno).to_string());
                Vec::new()
            }
        }
    }

    /// Files of the git directory that its configuration includes.
    fn included(&mut self, top: &OwnedFd) {
        let configs: Vec<_> = self.state.items.iter().filter(|(name, _)| name.as_bytes() == b"config").collect();
        let keys = configs.into_iter().filter_map(|(_, item)| keys(Some(item))).flatten();
        let named = keys.filter(|(key, _)| key == "include.path" || key.starts_with("includeif."));
        let values: Vec<String> = named.flat_map(|(_, values)| values).filter_map(|value| value.0).collect();
        for value in values {
            let inside = std::path::Path::new(&value).strip_prefix(self.subject.repository.common_dir.as_path());
            let path = inside.map_or(value.as_bytes(), |path| path.as_os_str().as_bytes());
            let path = path.strip_prefix(b"./").unwrap_or(path);
            if let Ok(path) = RepoPath::new(path) {
                self.one(top, &path);
            }
        }
    }

    /// What was there before, wherever it was.
    fn again(&mut self, top: &OwnedFd) {
        let Some(before) = self.before else { return };
        for name in before.items.keys() {
            if !self.state.items.contains_key(name) {
                self.one(top, name);
            }
        }
    }

    fn one(&mut self, top: &OwnedFd, path: &RepoPath) {
        match open_below(top, path.parent().as_ref()) {
            Ok(opened) => {
                let above = path.parent();
                self.file(&opened, above.as_ref().map_or(b"", RepoPath::as_bytes), path.file_name());
            }
            Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => {}
            Err(errno) => self.gap(path.as_bytes(), io::Error::from(errno).to_string()),
        }
    }

    fn gap(&mut self, path: &[u8], why: String) {
        let path = RepoPath::new(path).or_else(|_| RepoPath::new("git directory"));
        if let Ok(path) = path {
            self.state.gaps.insert(path, why);
        }
    }
}

/// Whether the registration at `path` is that of a tree below `jobs`.
pub(super) fn leads_below(top: &OwnedFd, path: &[u8], jobs: &AbsPath) -> bool {
    let directory = RepoPath::new(path).ok().and_then(|path| open_below(top, Some(&path)).ok());
    let leads = directory.filter(|directory| size(directory, b"gitdir").is_some_and(|size| size <= KEPT_FILE));
    let leads = leads.and_then(|directory| item(&directory, b"gitdir", KEPT_FILE).ok().flatten());
    let Some(Item::File { content: Some(leads), .. }) = leads else { return false };
    std::path::Path::new(OsStr::from_bytes(&leads)).starts_with(jobs.as_path())
}

/// What is in a directory, in order.
pub(super) fn list(directory: &OwnedFd) -> Result<Vec<Entry>, Errno> {
    let mut entries = Vec::new();
    for entry in Dir::read_from(directory)? {
        let entry = entry?;
        let name = entry.file_name().to_bytes();
        if matches!(name, b"." | b"..") {
            continue;
        }
        let kind = match entry.file_type() {
            FileType::Unknown => {
                let stat = rustix::fs::statat(directory, entry.file_name(), AtFlags::SYMLINK_NOFOLLOW)?;
                FileType::from_raw_mode(stat.st_mode)
            }
            kind => kind,
        };
        entries.push(Entry { name: name.to_vec(), is_directory: kind == FileType::Directory });
    }
    entries.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(entries)
}

pub(super) fn below(directory: &[u8], name: &[u8]) -> Vec<u8> {
    if directory.is_empty() { name.to_vec() } else { [directory, b"/", name].concat() }
}
