//! Which part of a directory a baseline is of: a checkout without its git directory, or a git directory.
//!
//! Of a git directory everything counts, known to us or not, but what is named here, each with the reason. So a file
//! that a later git reads is compared before anybody here has heard of it.

use std::collections::HashSet;
use std::os::fd::OwnedFd;

use pactify_core::display::neutral;
use pactify_core::{AbsPath, RepoPath};
use rustix::fs::FileType;
use rustix::io::Errno;

use super::BaselineError;
use crate::fingerprint::shared::{TRANSIENT, below, leads_below, list, open_below};

/// Deeper git directories of submodules are entries like any other: nothing of them is left out.
const DEPTH: usize = 12;

/// What is below a directory and counts.
#[derive(Debug, Default)]
pub(in crate::fingerprint) enum Part {
    /// Everything but the git directory `.git`.
    #[default]
    Checkout,
    /// Everything of a git directory, but what is named here.
    GitDir(Layout),
}

/// Which directories of a git directory are git directories themselves.
#[derive(Debug, Default)]
pub(in crate::fingerprint) struct Layout {
    /// The top, as the empty path, those of submodules, and registrations of worktrees.
    git_dirs: HashSet<Vec<u8>>,
    /// Registrations of the trees of jobs, which come and go with other jobs.
    ours: HashSet<Vec<u8>>,
    /// Files at the top that the job's harness makes.
    files: &'static [&'static str],
}

/// What of a git directory is pactify's and the harness's own business.
#[derive(Clone, Debug)]
pub struct Spared {
    /// Where the trees of jobs are, to which registrations lead.
    pub jobs: AbsPath,
    /// Files that the job's harness makes at the top.
    pub files: &'static [&'static str],
}

/// How much of an entry counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kept {
    /// The entry, and what is in it.
    All,
    /// What is in it alone: it comes and goes with things that are left out.
    Inside,
    /// Nothing.
    Nothing,
}

impl Part {
    pub(super) fn keeps(&self, path: &[u8], kind: FileType) -> Kept {
        match self {
            Self::Checkout if kind == FileType::Directory && path == b".git" => Kept::Nothing,
            Self::Checkout => Kept::All,
            Self::GitDir(layout) => layout.keeps(path, kind),
        }
    }
}

impl Layout {
    /// Finds the git directories in that at `top`. Registrations that lead to trees of jobs are ours, unless `known`
    /// says that they were the person's before.
    pub(in crate::fingerprint) fn of(
        top: &OwnedFd,
        spared: &Spared,
        known: impl Fn(&[u8]) -> bool,
    ) -> Result<Self, BaselineError> {
        let mut layout = Self { files: spared.files, ..Self::default() };
        layout.add(top, Vec::new(), &|path| leads_below(top, path, &spared.jobs) && !known(path), 0)?;
        Ok(layout)
    }

    /// The git directories, in no order.
    pub(in crate::fingerprint) fn git_dirs(&self) -> impl Iterator<Item = &[u8]> {
        self.git_dirs.iter().map(Vec::as_slice)
    }

    fn add(
        &mut self,
        top: &OwnedFd,
        path: Vec<u8>,
        is_ours: &impl Fn(&[u8]) -> bool,
        depth: usize,
    ) -> Result<(), BaselineError> {
        for name in directories(top, &below(&path, b"worktrees"))? {
            let registration = [&below(&path, b"worktrees")[..], b"/", &name].concat();
            if path.is_empty() && is_ours(&registration) {
                self.ours.insert(registration);
            } else if depth < DEPTH {
                self.add(top, registration, is_ours, depth + 1)?;
            }
        }
        let modules = below(&path, b"modules");
        self.git_dirs.insert(path);
        self.modules(top, &modules, is_ours, depth + 1)
    }

    /// A submodule's name may have slashes, so its git directory may be anywhere below.
    fn modules(
        &mut self,
        top: &OwnedFd,
        path: &[u8],
        is_ours: &impl Fn(&[u8]) -> bool,
        depth: usize,
    ) -> Result<(), BaselineError> {
        if depth > DEPTH {
            return Ok(());
        }
        for name in directories(top, path)? {
            let inside = below(path, &name);
            if directories(top, &inside)?.iter().any(|name| name == b"objects") {
                self.add(top, inside, is_ours, depth + 1)?;
            } else {
                self.modules(top, &inside, is_ours, depth + 1)?;
            }
        }
        Ok(())
    }

    fn keeps(&self, path: &[u8], kind: FileType) -> Kept {
        let (above, name) = split(path);
        let is_directory = kind == FileType::Directory;
        if self.ours.contains(path) {
            return Kept::Nothing;
        }
        if above.is_empty() && !is_directory && self.files.iter().any(|file| file.as_bytes() == name) {
            return Kept::Nothing;
        }
        if self.git_dirs.contains(above) {
            return keeps_in_git_dir(above, name, is_directory);
        }
        // Refs are compared by their values; those of what git is in the middle of are not, so that their files count.
        if above == b"refs" {
            return if TRANSIENT.contains(&path) { Kept::All } else { Kept::Nothing };
        }
        // A loose object is named by its content, and git looks at that when it reads one. There are many of them, and
        // the job's own harmless look-ups may add some. What it takes to be read, a ref, is compared; so are packs and
        // what says where objects are borrowed from.
        let (git_dir, objects) = split(above);
        let is_loose = is_directory && name.len() == 2 && name.iter().all(u8::is_ascii_hexdigit);
        if is_loose && objects == b"objects" && self.git_dirs.contains(git_dir) {
            return Kept::Nothing;
        }
        Kept::All
    }
}

/// What counts directly in a git directory.
fn keeps_in_git_dir(git_dir: &[u8], name: &[u8], is_directory: bool) -> Kept {
    let is_top = git_dir.is_empty();
    match name {
        // Compared by its meaning. Another look at the files of a checkout writes it, and its lock, at any time.
        b"index" => Kept::Nothing,
        b"index.lock" if !is_directory => Kept::Nothing,
        // Where refs were: nothing is run or followed from there. The stash is compared as refs are.
        b"logs" if is_directory => Kept::Nothing,
        // Empty files by which git and its watcher of files wait for one another.
        b"fsmonitor--daemon" if is_directory => Kept::Nothing,
        // Refs are compared by their values, and may be packed meanwhile.
        b"refs" if is_top && is_directory => Kept::Inside,
        b"packed-refs" if is_top && !is_directory => Kept::Nothing,
        b"reftable" if is_directory && !git_dir.starts_with(b"modules/") => Kept::Nothing,
        // It comes with the first registration, and goes with the last.
        b"worktrees" if is_directory => Kept::Inside,
        _ => Kept::All,
    }
}

fn split(path: &[u8]) -> (&[u8], &[u8]) {
    match path.iter().rposition(|byte| *byte == b'/') {
        Some(at) => (&path[..at], &path[at + 1..]),
        None => (b"", path),
    }
}

/// The names of the directories in a directory; none where there is none.
fn directories(top: &OwnedFd, path: &[u8]) -> Result<Vec<Vec<u8>>, BaselineError> {
    let Ok(name) = RepoPath::new(path) else { return Ok(Vec::new()) };
    match open_below(top, Some(&name)).and_then(|opened| list(&opened)) {
        Ok(entries) => Ok(entries.into_iter().filter(|entry| entry.is_directory).map(|entry| entry.name).collect()),
        // What stands in its place is an entry like any other.
        Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => Ok(Vec::new()),
        Err(errno) => Err(BaselineError::Unreadable {
            path: neutral(&String::from_utf8_lossy(path)).into_owned(),
            source: errno.into(),
        }),
    }
}
