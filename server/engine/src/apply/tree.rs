//! A checkout opened by its top: directories below it are reached without following any link (threats T-15, T-18).
//!
//! `openat2` resolves a whole path in one call; where it is missing, and to say which component is in the way, the
//! path is walked one component at a time. Nothing here changes the disk.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use pactify_core::{AbsPath, RepoPath};
use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, ResolveFlags};
use rustix::io::Errno;

use crate::disk::DIRECTORY;

/// The top of a checkout.
#[derive(Debug)]
pub(super) struct Tree {
    top: OwnedFd,
}

/// Why a directory cannot be reached.
#[derive(Debug)]
pub(super) enum Blocked {
    /// It, or this directory on the way to it, does not exist.
    Missing,
    /// A file or a link is on the way.
    ByEntry(RepoPath),
    /// Something that is neither directory, file nor link is on the way.
    BySpecial(RepoPath, &'static str),
    /// The system refused to look.
    Unreadable(RepoPath, Errno),
}

impl Tree {
    /// Opens the top. Its own path may lead through links: where the checkout is, is the person's choice.
    pub(super) fn open(top: &AbsPath) -> io::Result<Self> {
        let top = rustix::fs::openat(CWD, top.as_path(), DIRECTORY.difference(OFlags::NOFOLLOW), Mode::empty())?;
        Ok(Self { top })
    }

    pub(super) fn top(&self) -> BorrowedFd<'_> {
        self.top.as_fd()
    }

    /// The directory that `path` lies in.
    pub(super) fn parent_of(&self, path: &RepoPath) -> Result<OwnedFd, Blocked> {
        match path.parent() {
            Some(parent) => self.directory(&parent),
            None => self.reopen_top().map_err(|error| Blocked::Unreadable(path.clone(), error)),
        }
    }

    /// The directory `path`.
    pub(super) fn directory(&self, path: &RepoPath) -> Result<OwnedFd, Blocked> {
        let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
        match rustix::fs::openat2(&self.top, path.as_bytes(), DIRECTORY, Mode::empty(), resolve) {
            Ok(directory) => Ok(directory),
            Err(Errno::NOENT) => Err(Blocked::Missing),
            // Not there before Linux 5.6 and in some sandboxes; else the walk finds out what is in the way.
            Err(_) => self.walk(path),
        }
    }

    fn walk(&self, path: &RepoPath) -> Result<OwnedFd, Blocked> {
        let mut current: Option<OwnedFd> = None;
        for reached in path.ancestors().chain([path.clone()]) {
            let above = current.as_ref().map_or(self.top.as_fd(), AsFd::as_fd);
            match rustix::fs::openat(above, reached.file_name(), DIRECTORY, Mode::empty()) {
                Ok(directory) => current = Some(directory),
                Err(Errno::NOENT) => return Err(Blocked::Missing),
                Err(error) => return Err(blocked_at(above, reached, error)),
            }
        }
        current.ok_or(Blocked::Missing)
    }

    fn reopen_top(&self) -> rustix::io::Result<OwnedFd> {
        rustix::fs::openat(&self.top, ".", DIRECTORY, Mode::empty())
    }
}

/// Opens a directory by its name below another one, creating nothing and following nothing.
pub(super) fn open_directory(above: impl AsFd, name: &[u8]) -> rustix::io::Result<OwnedFd> {
    rustix::fs::openat(above, name, DIRECTORY, Mode::empty())
}

/// The names in a directory.
pub(super) fn names(directory: impl AsFd) -> rustix::io::Result<Vec<Vec<u8>>> {
    let entries = rustix::fs::Dir::read_from(directory)?;
    let names = entries.map(|entry| entry.map(|entry| entry.file_name().to_bytes().to_vec()));
    let names = names.filter(|name| !matches!(name.as_deref(), Ok(b"." | b"..")));
    names.collect()
}

fn blocked_at(above: BorrowedFd<'_>, reached: RepoPath, error: Errno) -> Blocked {
    if !matches!(error, Errno::NOTDIR | Errno::LOOP | Errno::NXIO) {
        return Blocked::Unreadable(reached, error);
    }
    match rustix::fs::statat(above, reached.file_name(), AtFlags::SYMLINK_NOFOLLOW) {
        Ok(stat) => match FileType::from_raw_mode(stat.st_mode) {
            FileType::RegularFile | FileType::Symlink => Blocked::ByEntry(reached),
            other => Blocked::BySpecial(reached, kind_name(other)),
        },
        Err(Errno::NOENT) => Blocked::Missing,
        Err(error) => Blocked::Unreadable(reached, error),
    }
}

/// What an entry is, for people.
pub(super) fn kind_name(kind: FileType) -> &'static str {
    match kind {
        FileType::RegularFile => "a file",
        FileType::Directory => "a directory",
        FileType::Symlink => "a symbolic link",
        FileType::Fifo => "a pipe",
        FileType::Socket => "a socket",
        FileType::CharacterDevice | FileType::BlockDevice => "a device",
        FileType::Unknown => "something unknown",
    }
}
