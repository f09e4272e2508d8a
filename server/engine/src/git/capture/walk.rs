//! Looks at every entry of a job's tree: unchanged, changed, new, or only to be noted.
//!
//! Directories are opened from the tree's top, component by component, following nothing, so that a link is an
//! entry like any other and depth costs nothing. No file is opened here.

use std::collections::HashSet;
use std::ffi::OsStr;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt as _;

use pactify_core::RepoPath;
use pactify_core::change::{EntryMode, Note};
use pactify_core::display::neutral;
use pactify_core::path::rules::{Rule, WritablePath};
use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, Stat};
use rustix::io::Errno;

use super::super::error::GitError;
use super::super::ignores::Ignores;
use super::super::included::Included;
use super::super::listing::Listing;
use super::super::manifest::{Fingerprint, Manifest};
use super::entry::{Candidate, open_below};
use super::scan::{self, Ahead};
use super::unreadable;

/// How many ignored files are named.
const EXAMPLES: usize = 10;

/// How many notes are kept: a job can leave any number of pipes.
const NOTES: usize = 1000;

/// What a walk found.
#[derive(Default)]
pub(in crate::git) struct Findings {
    /// Files and links that are new or may have changed.
    pub(super) candidates: Vec<Candidate>,
    pub(in crate::git) notes: Vec<Note>,
    /// Paths of the base that are still there in some form, or about which nothing is known.
    kept: HashSet<RepoPath>,
    /// What was read ahead knows of more of them.
    ahead: Ahead,
    /// Directories about whose content nothing is known.
    closed: Vec<RepoPath>,
    ignored: u64,
    ignored_examples: Vec<RepoPath>,
}

pub(super) struct Walk<'a> {
    root: &'a OwnedFd,
    device: u64,
    base: &'a Listing,
    manifest: &'a Manifest,
    ignores: &'a Ignores,
    included: &'a Included,
    /// Directories that were read ahead.
    ahead: Ahead,
    found: Findings,
    waiting: Vec<Directory>,
}

/// A directory to be looked into; `None` is the top.
struct Directory {
    path: Option<RepoPath>,
    ignored: bool,
}

struct Found {
    path: RepoPath,
    name: Vec<u8>,
    stat: Stat,
}

impl Findings {
    /// Files and links that were found in another way.
    pub(in crate::git) fn of(candidates: Vec<Candidate>) -> Self {
        Self { candidates, ..Self::default() }
    }

    /// The paths of the base that the job removed.
    pub(super) fn deleted<'a>(&'a self, base: &'a Listing, manifest: &'a Manifest) -> impl Iterator<Item = RepoPath> {
        let is_known = |path: &RepoPath| !self.closed.iter().any(|closed| is_below(path, closed));
        let gone = base.entries.keys().filter(|path| !self.ahead.is_unchanged(path) && !self.kept.contains(*path));
        gone.filter(move |path| manifest.files.contains_key(path) && is_known(path)).cloned()
    }

    /// Leaves the base's entry at `path` as it is.
    pub(super) fn keep(&mut self, path: &RepoPath, note: Note) {
        self.kept.insert(path.clone());
        self.notes.push(note);
    }

    pub(super) fn into_notes(mut self) -> Vec<Note> {
        if self.ignored > 0 {
            self.ignored_examples.sort();
            self.notes.insert(0, Note::Ignored { files: self.ignored, examples: self.ignored_examples });
        }
        if let Some(more) = self.notes.len().checked_sub(NOTES + 1) {
            self.notes.truncate(NOTES);
            let why = format!("{} more entries like these are not listed", more + 1);
            self.notes.push(Note::Unreadable { shown: "…".to_owned(), why });
        }
        self.notes
    }
}

impl<'a> Walk<'a> {
    pub(super) fn new(
        root: &'a OwnedFd,
        base: &'a Listing,
        manifest: &'a Manifest,
        ignores: &'a Ignores,
        included: &'a Included,
    ) -> Self {
        let (found, waiting) = (Findings::default(), vec![Directory { path: None, ignored: false }]);
        let ahead = Ahead::default();
        Self { root, device: 0, base, manifest, ignores, included, ahead, found, waiting }
    }

    pub(super) fn run(mut self) -> Result<Findings, GitError> {
        let stat = rustix::fs::fstat(self.root).map_err(GitError::errno("look at", "the job's tree"))?;
        self.device = stat.st_dev;
        self.ahead = scan::ahead(self.root, self.base, self.manifest);
        while let Some(directory) = self.waiting.pop() {
            if let Err(errno) = self.look_into(&directory) {
                self.close(directory.path, errno);
            }
        }
        self.found.ahead = self.ahead;
        Ok(self.found)
    }

    fn look_into(&mut self, directory: &Directory) -> Result<(), Errno> {
        let ahead = directory.path.as_ref().and_then(|path| self.ahead.directories.remove(path));
        let entries = match ahead {
            Some(entries) => entries,
            None => scan::entries(&open_below(self.root, directory.path.as_ref())?)?,
        };
        if entries.iter().any(|(name, _)| name == b".git") {
            match &directory.path {
                None => self.check_git_file(),
                Some(path) if self.is_nested_repository(path) => return Ok(()),
                Some(_) => {}
            }
        } else if directory.path.is_none() {
            self.found.notes.push(Note::GitFileRewritten);
        }
        for (name, stat) in entries.into_iter().filter(|(name, _)| name != b".git") {
            let Some(path) = self.name(directory.path.as_ref(), &name) else { continue };
            match stat {
                Ok(stat) => self.look_at(Found { path, name, stat }, directory.ignored),
                Err(errno) => self.found.keep(&path, unreadable(&path, io::Error::from(errno).to_string())),
            }
        }
        Ok(())
    }

    fn look_at(&mut self, found: Found, parent_ignored: bool) {
        let Found { path, name, stat } = &found;
        if is_git_name(name) {
            return self.found.keep(path, unreadable(path, Rule::GitDirectory.to_string()));
        }
        let kind = FileType::from_raw_mode(stat.st_mode);
        let is_directory = kind == FileType::Directory;
        let tracked = self.base.get(path).map(|entry| entry.mode);
        let holds_tracked = is_directory && (self.base.is_directory(path) || tracked == Some(EntryMode::Gitlink));
        let ignored = parent_ignored || (tracked.is_none() && self.ignores.covers(path, is_directory));
        if ignored && tracked.is_none() && !holds_tracked {
            return self.count_ignored(path.clone(), is_directory);
        }
        match kind {
            FileType::Directory if stat.st_dev != self.device => self.close(Some(path.clone()), Errno::XDEV),
            FileType::Directory if tracked == Some(EntryMode::Gitlink) => self.submodule(found.path),
            FileType::Directory => self.waiting.push(Directory { path: Some(found.path), ignored }),
            FileType::RegularFile | FileType::Symlink => self.file(found, kind == FileType::Symlink, tracked.is_some()),
            kind => {
                let what = special_name(kind).to_owned();
                self.found.notes.push(Note::SpecialFile { path: found.path, what });
            }
        }
    }

    fn file(&mut self, found: Found, is_link: bool, tracked: bool) {
        let Found { path, stat, .. } = found;
        if tracked {
            self.found.kept.insert(path.clone());
            if self.manifest.files.get(&path) == Some(&Fingerprint::of(&stat)) {
                return;
            }
        }
        self.found.candidates.push(Candidate {
            path,
            is_link,
            executable: stat.st_mode & 0o100 != 0,
            size: u64::try_from(stat.st_size).unwrap_or_default(),
            links: stat.st_nlink,
            identity: (stat.st_dev, stat.st_ino),
        });
    }

    /// A directory where the base has a submodule: its content is another repository's.
    fn submodule(&mut self, path: RepoPath) {
        let files = self.count_changes(&path);
        self.found.kept.insert(path.clone());
        if files > 0 {
            self.found.notes.push(Note::Submodule { path, files });
        }
    }

    /// Notes a repository in the tree. One around files of the base is looked into all the same: or `git init` in a
    /// directory would hide what was changed there.
    fn is_nested_repository(&mut self, path: &RepoPath) -> bool {
        let hides_nothing = !self.base.is_directory(path);
        let files = if hides_nothing { self.count_files(path) } else { 0 };
        self.found.notes.push(Note::NestedRepository { path: path.clone(), files });
        hides_nothing
    }

    fn check_git_file(&mut self) {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        let expected = self.manifest.header.git_file.as_bytes();
        let mut content = vec![0; expected.len() + 1];
        let read = rustix::fs::openat(self.root, ".git", flags, Mode::empty())
            .and_then(|file| rustix::io::read(&file, content.as_mut_slice()));
        if read == Err(Errno::ISDIR) {
            let why = "it is a repository of the job's own now, and is not looked into".to_owned();
            self.found.notes.push(Note::Unreadable { shown: ".git".to_owned(), why });
        }
        if read.map(|count| &content[..count]) != Ok(expected) {
            self.found.notes.push(Note::GitFileRewritten);
        }
    }

    fn count_ignored(&mut self, path: RepoPath, is_directory: bool) {
        let files = if is_directory { self.count_files(&path) } else { u64::from(!self.included.has(&path)) };
        self.found.ignored += files;
        if files > 0 && self.found.ignored_examples.len() < EXAMPLES {
            self.found.ignored_examples.push(path);
        }
    }

    /// How many files below a submodule's directory are not what it was filled with, the missing ones included.
    fn count_changes(&self, directory: &RepoPath) -> u64 {
        let filled = |path: &RepoPath| self.manifest.files.get(path);
        let onwards = self.manifest.files.range(directory.clone()..).map(|(path, _)| path);
        let below = onwards.skip_while(|path| !is_below(path, directory)).take_while(|path| is_below(path, directory));
        let mut missing: HashSet<&RepoPath> = below.collect();
        let mut changed = 0;
        self.visit_files(directory, |parent, path, name| {
            missing.remove(&path);
            let stat = rustix::fs::statat(parent, OsStr::from_bytes(name), AtFlags::SYMLINK_NOFOLLOW);
            let is_same = |stat| filled(&path).is_some_and(|filled| filled.resembles(&Fingerprint::of(&stat)));
            changed += u64::from(!stat.is_ok_and(is_same));
        });
        changed + missing.len() as u64
    }

    /// How many files are below a directory, as far as it can be read. The git directories of repositories don't count,
    /// nor do the files that the tree was given.
    fn count_files(&self, directory: &RepoPath) -> u64 {
        let mut files = 0;
        self.visit_files(directory, |_, path, _| files += u64::from(!self.included.has(&path)));
        files
    }

    fn visit_files(&self, directory: &RepoPath, mut visit: impl FnMut(&OwnedFd, RepoPath, &[u8])) {
        let mut waiting = vec![directory.clone()];
        while let Some(path) = waiting.pop() {
            let Ok(opened) = open_below(self.root, Some(&path)) else { continue };
            let Ok(entries) = Dir::read_from(&opened) else { continue };
            for entry in entries.filter_map(Result::ok) {
                let name = entry.file_name().to_bytes();
                if matches!(name, b"." | b".." | b".git") {
                    continue;
                }
                let Ok(path) = RepoPath::new([path.as_bytes(), b"/", name].concat()) else { continue };
                if entry.file_type() == FileType::Directory {
                    waiting.push(path);
                } else {
                    visit(&opened, path, name);
                }
            }
        }
    }

    /// The path of an entry; what no repository can hold is noted.
    fn name(&mut self, directory: Option<&RepoPath>, name: &[u8]) -> Option<RepoPath> {
        let bytes = match directory {
            Some(directory) => [directory.as_bytes(), b"/", name].concat(),
            None => name.to_vec(),
        };
        let path = RepoPath::new(bytes);
        if let Err(error) = &path {
            let shown = neutral(&String::from_utf8_lossy(name)).into_owned();
            self.found.notes.push(Note::Unreadable { shown, why: error.to_string() });
        }
        path.ok()
    }

    /// Nothing is known about what is below `path`: the base's entries there stay as they are.
    fn close(&mut self, path: Option<RepoPath>, errno: Errno) {
        let why = match errno {
            Errno::XDEV => "another file system is mounted there".to_owned(),
            errno => io::Error::from(errno).to_string(),
        };
        let shown = path.as_ref().map_or_else(|| ".".to_owned(), RepoPath::display);
        self.found.notes.push(Note::Unreadable { shown, why });
        match path {
            Some(path) => self.found.closed.push(path),
            None => self.found.kept.extend(self.base.entries.keys().cloned()),
        }
    }
}

/// Whether git refuses the name in a tree, because some file system takes it for `.git`.
pub(super) fn is_git_name(name: &[u8]) -> bool {
    // Most names: none of the spellings is without a dot in front or a tilde.
    if name[0].is_ascii_alphanumeric() && name.iter().all(|byte| byte.is_ascii_alphanumeric() || b"._-".contains(byte))
    {
        return false;
    }
    let refusal = RepoPath::new(name).ok().and_then(|path| WritablePath::check(path).err());
    refusal.is_some_and(|refusal| refusal.rule == Rule::GitDirectory)
}

fn is_below(path: &RepoPath, directory: &RepoPath) -> bool {
    path.as_bytes().strip_prefix(directory.as_bytes()).is_some_and(|rest| rest.first() == Some(&b'/'))
}

fn special_name(kind: FileType) -> &'static str {
    match kind {
        FileType::Fifo => "pipe",
        FileType::Socket => "socket",
        FileType::CharacterDevice | FileType::BlockDevice => "device",
        _ => "special file",
    }
}
