//! Every system call of an apply that changes the disk, and nothing else.
//!
//! One thin layer, so that a test can end the process before or after each call and can record what was called
//! (`fault`, only with the feature `fault-injection`). Names are single components below an open directory: no
//! path is resolved here. Where a file system lacks `renameat2`'s flags, the closest safe sequence is used; callers
//! that need to know ask [`Disk::can_exchange`].

#[cfg(feature = "fault-injection")]
pub mod fault;

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::fs::{AtFlags, Gid, Mode, OFlags, RenameFlags};
use rustix::io::{Errno, Result};

/// Directory and name of an entry.
#[derive(Clone, Copy, Debug)]
pub(super) struct At<'a> {
    pub(super) dir: BorrowedFd<'a>,
    pub(super) name: &'a [u8],
}

/// One call, for whoever watches.
#[derive(Clone, Copy, Debug)]
#[cfg_attr(not(feature = "fault-injection"), expect(dead_code, reason = "only the fault injection reads them"))]
pub(super) enum Call<'a> {
    Create(At<'a>),
    Write(BorrowedFd<'a>, &'a [u8]),
    SetMode(BorrowedFd<'a>, u32),
    SetGroup(BorrowedFd<'a>),
    MakeDirectory(At<'a>, u32),
    MakeLink(At<'a>, &'a [u8]),
    HardLink(At<'a>, At<'a>),
    Rename(At<'a>, At<'a>),
    Exchange(At<'a>, At<'a>),
    Unlink(At<'a>),
    RemoveDirectory(At<'a>),
    Sync(BorrowedFd<'a>),
    SyncFileSystem(BorrowedFd<'a>),
}

/// The changing calls, and what is known about the file system they go to.
#[derive(Debug)]
pub(super) struct Disk {
    exchange: AtomicBool,
    no_replace: AtomicBool,
}

impl Disk {
    pub(super) fn new() -> Self {
        Self { exchange: AtomicBool::new(true), no_replace: AtomicBool::new(true) }
    }

    /// As on a file system that knows neither flag of `renameat2`.
    #[cfg(test)]
    pub(super) fn without_rename_flags() -> Self {
        Self { exchange: AtomicBool::new(false), no_replace: AtomicBool::new(false) }
    }

    /// A new file, empty and private.
    pub(super) fn create(&self, at: At<'_>) -> Result<OwnedFd> {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        made(Call::Create(at), || rustix::fs::openat(at.dir, at.name, flags, Mode::from_raw_mode(0o600)))
    }

    pub(super) fn write_all(&self, file: impl AsFd, mut bytes: &[u8]) -> Result<()> {
        while !bytes.is_empty() {
            match made(Call::Write(file.as_fd(), bytes), || rustix::io::write(&file, bytes)) {
                Ok(written) => bytes = &bytes[written..],
                Err(Errno::INTR) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    pub(super) fn set_mode(&self, file: impl AsFd, mode: u32) -> Result<()> {
        made(Call::SetMode(file.as_fd(), mode), || rustix::fs::fchmod(&file, Mode::from_raw_mode(mode)))
    }

    pub(super) fn set_group(&self, file: impl AsFd, group: u32) -> Result<()> {
        made(Call::SetGroup(file.as_fd()), || rustix::fs::fchown(&file, None, Some(Gid::from_raw(group))))
    }

    pub(super) fn make_directory(&self, at: At<'_>, mode: u32) -> Result<()> {
        made(Call::MakeDirectory(at, mode), || rustix::fs::mkdirat(at.dir, at.name, Mode::from_raw_mode(mode)))
    }

    pub(super) fn make_link(&self, at: At<'_>, target: &[u8]) -> Result<()> {
        made(Call::MakeLink(at, target), || rustix::fs::symlinkat(target, at.dir, at.name))
    }

    /// A second name for a file or link, where there is nothing yet.
    pub(super) fn link(&self, from: At<'_>, to: At<'_>) -> Result<()> {
        let link = || rustix::fs::linkat(from.dir, from.name, to.dir, to.name, AtFlags::empty());
        made(Call::HardLink(from, to), link)
    }

    /// Whether [`Disk::exchange`] is worth trying.
    pub(super) fn can_exchange(&self) -> bool {
        self.exchange.load(Ordering::Relaxed)
    }

    /// Swaps two entries in one step. [`Errno::NOSYS`] where the file system cannot.
    pub(super) fn exchange(&self, a: At<'_>, b: At<'_>) -> Result<()> {
        if !self.can_exchange() {
            return Err(Errno::NOSYS);
        }
        let call = || rustix::fs::renameat_with(a.dir, a.name, b.dir, b.name, RenameFlags::EXCHANGE);
        let done = made(Call::Exchange(a, b), call);
        if let Err(error) = done
            && lacks_flag(error)
        {
            self.exchange.store(false, Ordering::Relaxed);
            return Err(Errno::NOSYS);
        }
        done
    }

    /// Moves an entry to a name that must be free: [`Errno::EXIST`] when it is not.
    ///
    /// Without `RENAME_NOREPLACE` this is a hard link and an unlink: between the two the entry has both names. The new
    /// name is on the disk before the old one goes, or a power failure could take both.
    pub(super) fn move_to_free(&self, from: At<'_>, to: At<'_>) -> Result<()> {
        if self.no_replace.load(Ordering::Relaxed) {
            let call = || rustix::fs::renameat_with(from.dir, from.name, to.dir, to.name, RenameFlags::NOREPLACE);
            match made(Call::Rename(from, to), call) {
                Err(error) if lacks_flag(error) => self.no_replace.store(false, Ordering::Relaxed),
                done => return done,
            }
        }
        self.link(from, to)?;
        self.sync(to.dir)?;
        self.unlink(from)
    }

    /// Moves an entry over whatever is at the new name.
    pub(super) fn replace(&self, from: At<'_>, to: At<'_>) -> Result<()> {
        made(Call::Rename(from, to), || rustix::fs::renameat(from.dir, from.name, to.dir, to.name))
    }

    pub(super) fn unlink(&self, at: At<'_>) -> Result<()> {
        made(Call::Unlink(at), || rustix::fs::unlinkat(at.dir, at.name, AtFlags::empty()))
    }

    pub(super) fn remove_directory(&self, at: At<'_>) -> Result<()> {
        made(Call::RemoveDirectory(at), || rustix::fs::unlinkat(at.dir, at.name, AtFlags::REMOVEDIR))
    }

    /// A file's content and attributes, or a directory's entries, are on the disk when this returns.
    pub(super) fn sync(&self, file: impl AsFd) -> Result<()> {
        made(Call::Sync(file.as_fd()), || rustix::fs::fsync(&file))
    }

    /// Everything on the file system of `file` is on the disk when this returns.
    pub(super) fn sync_file_system(&self, file: impl AsFd) -> Result<()> {
        made(Call::SyncFileSystem(file.as_fd()), || rustix::fs::syncfs(&file))
    }
}

fn lacks_flag(error: Errno) -> bool {
    matches!(error, Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP)
}

#[cfg(feature = "fault-injection")]
fn made<T>(call: Call<'_>, run: impl FnOnce() -> Result<T>) -> Result<T> {
    fault::around(call, run)
}

#[cfg(not(feature = "fault-injection"))]
fn made<T>(_: Call<'_>, run: impl FnOnce() -> Result<T>) -> Result<T> {
    run()
}
