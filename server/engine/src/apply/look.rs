//! What is at one place right now: kind, content id, and the marks by which a later change shows.
//!
//! Looks before it opens, opens without following or blocking, and looks again at what it opened, so that neither a
//! link nor a pipe nor a device put there meanwhile is read (threat T-18).

use std::fs::File;
use std::io::Read as _;
use std::os::fd::BorrowedFd;

use pactify_core::ObjectId;
use pactify_core::change::EntryMode;
use rustix::fs::{AtFlags, FileType, Mode, OFlags, Stat};
use rustix::io::Errno;

use super::disk::At;
use super::observe::Current;
use super::tree::kind_name;
use crate::disk::SAFE;
use crate::hash::Algorithm;

/// What a look finds.
#[derive(Debug)]
pub(super) enum Seen {
    Absent,
    Entry(Found),
    Directory,
    Special(&'static str),
    Unreadable(Errno),
}

/// A file or a link.
#[derive(Clone, Debug)]
pub(super) struct Found {
    pub(super) mode: EntryMode,
    /// The id of exactly the bytes on the disk.
    pub(super) object: ObjectId,
    pub(super) stamp: Stamp,
    /// Permission bits.
    pub(super) bits: u32,
    pub(super) group: u32,
}

/// What differs after any write to a file, or when it is another file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stamp {
    pub(super) device: u64,
    pub(super) inode: u64,
    size: i64,
    modified: (i64, u64),
}

impl Stamp {
    pub(super) fn of(stat: &Stat) -> Self {
        Self {
            device: stat.st_dev,
            inode: stat.st_ino,
            size: stat.st_size,
            modified: (stat.st_mtime, stat.st_mtime_nsec),
        }
    }

    /// The stamp of what is there now; `None` when that cannot be told.
    pub(super) fn at(at: At<'_>) -> Option<Self> {
        rustix::fs::statat(at.dir, at.name, AtFlags::SYMLINK_NOFOLLOW).ok().map(|stat| Self::of(&stat))
    }

    pub(super) fn same_inode(&self, other: &Self) -> bool {
        (self.device, self.inode) == (other.device, other.inode)
    }
}

impl Seen {
    pub(super) fn entry(self) -> Option<Found> {
        match self {
            Self::Entry(found) => Some(found),
            _ => None,
        }
    }
}

/// Looks at one place.
pub(super) fn look(at: At<'_>, algorithm: Algorithm) -> Seen {
    let stat = match rustix::fs::statat(at.dir, at.name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(stat) => stat,
        Err(Errno::NOENT | Errno::NOTDIR) => return Seen::Absent,
        Err(error) => return Seen::Unreadable(error),
    };
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile => look_at_file(at, algorithm),
        FileType::Symlink => match rustix::fs::readlinkat(at.dir, at.name, Vec::new()) {
            Ok(target) => Seen::Entry(found(&stat, algorithm.blob(target.as_bytes()))),
            Err(Errno::NOENT) => Seen::Absent,
            Err(error) => Seen::Unreadable(error),
        },
        FileType::Directory => Seen::Directory,
        other => Seen::Special(kind_name(other)),
    }
}

/// The bytes of a regular file or the target of a link.
pub(super) fn read(at: At<'_>, mode: EntryMode) -> std::io::Result<Vec<u8>> {
    if mode == EntryMode::Symlink {
        return Ok(rustix::fs::readlinkat(at.dir, at.name, Vec::new())?.into_bytes());
    }
    let (mut file, stat) = open_file(at.dir, at.name)?;
    let mut bytes = Vec::with_capacity(usize::try_from(stat.st_size).unwrap_or_default());
    file.read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// What is at one place, without its id.
pub(super) fn read_at_most(at: At<'_>, limit: u64) -> std::io::Result<Current> {
    let stat = match rustix::fs::statat(at.dir, at.name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(stat) => stat,
        Err(Errno::NOENT | Errno::NOTDIR) => return Ok(Current::Absent),
        Err(error) => return Err(error.into()),
    };
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::Symlink => read(at, EntryMode::Symlink).map(Current::Bytes),
        FileType::RegularFile => {
            let (file, stat) = open_file(at.dir, at.name)?;
            let mut bytes = Vec::new();
            file.take(limit.saturating_add(1)).read_to_end(&mut bytes)?;
            let size = (bytes.len() as u64).max(u64::try_from(stat.st_size).unwrap_or_default());
            Ok(if bytes.len() as u64 > limit { Current::TooLarge(size) } else { Current::Bytes(bytes) })
        }
        _ => Ok(Current::Absent),
    }
}

fn look_at_file(at: At<'_>, algorithm: Algorithm) -> Seen {
    let (mut file, stat) = match open_file(at.dir, at.name) {
        Ok(opened) => opened,
        Err(Errno::NOENT) => return Seen::Absent,
        Err(error) => return Seen::Unreadable(error),
    };
    let size = u64::try_from(stat.st_size).unwrap_or_default();
    match algorithm.blob_from(size, &mut file) {
        Ok(Some(object)) => Seen::Entry(found(&stat, object)),
        // It is being written right now.
        Ok(None) => Seen::Unreadable(Errno::AGAIN),
        Err(error) => Seen::Unreadable(Errno::from_io_error(&error).unwrap_or(Errno::IO)),
    }
}

fn open_file(dir: BorrowedFd<'_>, name: &[u8]) -> rustix::io::Result<(File, Stat)> {
    let file = rustix::fs::openat(dir, name, OFlags::RDONLY | SAFE, Mode::empty())?;
    let stat = rustix::fs::fstat(&file)?;
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile => Ok((file.into(), stat)),
        // Swapped between the look and the open.
        _ => Err(Errno::AGAIN),
    }
}

fn found(stat: &Stat, object: ObjectId) -> Found {
    let mode = match FileType::from_raw_mode(stat.st_mode) {
        FileType::Symlink => EntryMode::Symlink,
        // Git's rule: the owner's bit decides.
        _ if stat.st_mode & 0o100 != 0 => EntryMode::Executable,
        _ => EntryMode::File,
    };
    Found { mode, object, stamp: Stamp::of(stat), bits: stat.st_mode & 0o777, group: stat.st_gid }
}
