//! Unlinks a directory with everything in it, holding open what it works on.
//!
//! Every subdirectory that isn't empty is first moved up beside the one being erased and done later, so the depth of
//! a tree costs neither stack nor descriptors nor path length. Moving also finds mount points: the kernel refuses to
//! rename one, and it is left alone.

use std::ffi::{CStr, OsStr, OsString};
use std::os::fd::{AsFd, AsRawFd as _, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStringExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, RenameFlags};
use rustix::io::Errno;

use crate::disk::DIRECTORY;

/// What an erasure did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// How many entries are gone.
    pub removed: u64,
    /// What is left, and why.
    pub left: Vec<Left>,
}

/// Something that could not be unlinked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Left {
    /// Where it is now.
    pub path: PathBuf,
    /// Why it stays.
    pub why: String,
}

/// Unlinks the entry `name` of `parent`, which is at `place`.
pub(crate) fn erase(parent: BorrowedFd<'_>, place: &Path, name: &OsStr, report: &mut Report) {
    let mut work = Work { parent, place, number: 0, report };
    let mut waiting = vec![name.to_owned()];
    while let Some(name) = waiting.pop() {
        if let Err(errno) = work.erase_one(&name, &mut waiting) {
            work.leave(&name, errno);
        }
    }
}

/// The names in a directory.
pub(super) fn names(directory: BorrowedFd<'_>) -> Result<Vec<OsString>, Errno> {
    Ok(entries(directory)?.into_iter().map(|(name, _)| name).collect())
}

/// Lets the owner read, write and enter the directory `name`; anything else is left as it is.
pub(super) fn make_accessible(parent: BorrowedFd<'_>, name: &OsStr) -> Result<(), Errno> {
    let handle = match rustix::fs::openat(parent, name, DIRECTORY.union(OFlags::PATH), Mode::empty()) {
        Ok(handle) => handle,
        Err(Errno::NOTDIR | Errno::LOOP) => return Ok(()),
        Err(errno) => return Err(errno),
    };
    let mode = rustix::fs::fstat(&handle)?.st_mode & 0o7777;
    if mode & 0o700 != 0o700 {
        // A directory that may not be read can be opened by name only; this link leads to the open one.
        let link = format!("/proc/self/fd/{}", handle.as_raw_fd());
        rustix::fs::chmod(link, Mode::RWXU)?;
    }
    Ok(())
}

struct Work<'a> {
    parent: BorrowedFd<'a>,
    place: &'a Path,
    number: u64,
    report: &'a mut Report,
}

impl Work<'_> {
    fn erase_one(&mut self, name: &OsStr, waiting: &mut Vec<OsString>) -> Result<(), Errno> {
        let stat = match rustix::fs::statat(self.parent, name, AtFlags::SYMLINK_NOFOLLOW) {
            Err(Errno::NOENT) => return Ok(()),
            stat => stat?,
        };
        if FileType::from_raw_mode(stat.st_mode) != FileType::Directory {
            return self.unlink(self.parent, name, AtFlags::empty());
        }
        if stat.st_dev != rustix::fs::fstat(self.parent)?.st_dev {
            return Err(Errno::XDEV);
        }
        make_accessible(self.parent, name)?;
        let directory = rustix::fs::openat(self.parent, name, DIRECTORY, Mode::empty())?;
        let left_before = self.report.left.len();
        for (child, kind) in entries(directory.as_fd())? {
            if let Err(errno) = self.clear(&directory, &child, kind, waiting) {
                let path = self.place.join(name).join(&child);
                self.report.left.push(Left { path, why: explain(errno) });
            }
        }
        if self.report.left.len() > left_before {
            return Ok(());
        }
        self.unlink(self.parent, name, AtFlags::REMOVEDIR)
    }

    /// Gets `child` out of `directory`: away, or up and into the queue.
    fn clear(
        &mut self,
        directory: &OwnedFd,
        child: &OsStr,
        kind: FileType,
        waiting: &mut Vec<OsString>,
    ) -> Result<(), Errno> {
        if kind != FileType::Directory {
            match self.unlink(directory.as_fd(), child, AtFlags::empty()) {
                // The kind was not known, or is another by now.
                Err(Errno::ISDIR | Errno::PERM) if is_directory(directory, child) => {}
                done => return done,
            }
        }
        match self.unlink(directory.as_fd(), child, AtFlags::REMOVEDIR) {
            Err(Errno::NOTEMPTY | Errno::EXIST) => {}
            done => return done,
        }
        make_accessible(directory.as_fd(), child)?;
        loop {
            self.number += 1;
            let free = format!("{}.{}", rustix::process::getpid().as_raw_nonzero(), self.number);
            match rustix::fs::renameat_with(directory, child, self.parent, &free, RenameFlags::NOREPLACE) {
                Err(Errno::EXIST | Errno::NOTEMPTY) => {}
                Err(errno) => return Err(errno),
                Ok(()) => {
                    waiting.push(free.into());
                    return Ok(());
                }
            }
        }
    }

    fn unlink(&mut self, directory: BorrowedFd<'_>, name: &OsStr, flags: AtFlags) -> Result<(), Errno> {
        match rustix::fs::unlinkat(directory, name, flags) {
            Ok(()) => self.report.removed += 1,
            Err(Errno::NOENT) => {}
            Err(errno) => return Err(errno),
        }
        Ok(())
    }

    fn leave(&mut self, name: &OsStr, errno: Errno) {
        self.report.left.push(Left { path: self.place.join(name), why: explain(errno) });
    }
}

fn is_directory(parent: &OwnedFd, name: &OsStr) -> bool {
    let stat = rustix::fs::statat(parent, name, AtFlags::SYMLINK_NOFOLLOW);
    stat.is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode) == FileType::Directory)
}

fn entries(directory: BorrowedFd<'_>) -> Result<Vec<(OsString, FileType)>, Errno> {
    let mut found = Vec::new();
    for entry in Dir::read_from(directory)? {
        let entry = entry?;
        let name: &CStr = entry.file_name();
        if !matches!(name.to_bytes(), b"." | b"..") {
            found.push((OsString::from_vec(name.to_bytes().to_vec()), entry.file_type()));
        }
    }
    Ok(found)
}

fn explain(errno: Errno) -> String {
    match errno {
        Errno::BUSY | Errno::XDEV => "a file system is mounted there".to_owned(),
        errno => std::io::Error::from(errno).to_string(),
    }
}
