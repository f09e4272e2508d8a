//! Files below a directory of our own, reached component by component from its descriptor.
//!
//! Every open is relative to a [`Dir`], follows no symbolic link, never blocks and is closed on exec; what was opened
//! is checked before it is used: the right kind, and ours. Directories are 0700 and files 0600 from the moment they
//! exist, whatever the umask. A directory that a job could write to is opened as [`Dir::foreign`]: nothing below it is
//! reached on a file system that was mounted there, which may be served by a process of the job, and never answer.
//! Nothing here knows what the files mean: jobs are [`crate::job_dir`], journals [`crate::journal`]. The person's
//! checkout is not reached this way; its rules are the change engine's.

mod error;
mod wakeup;

use std::fs::File;
use std::io::{ErrorKind, Read, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use pactify_core::AbsPath;
use rustix::fs::{AtFlags, FileType, Mode, OFlags, RenameFlags, ResolveFlags, Stat, Timespec, Timestamps, UTIME_NOW};
use rustix::io::Errno;

pub use error::{DiskError, Kind};
pub use wakeup::Wakeup;

/// A directory of ours, held open.
#[derive(Debug)]
pub struct Dir {
    fd: OwnedFd,
    path: AbsPath,
    reach: Reach,
}

/// What is reached from a directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reach {
    /// Whatever the person mounted there.
    Mounts,
    /// What is on the same file system: a job could have mounted something.
    SameFileSystem,
}

/// Which file a name leads to, as far as a `stat` can tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileId {
    /// The device it lies on.
    pub device: u64,
    /// Its inode there.
    pub inode: u64,
}

/// How a file is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Open {
    /// To read what is there.
    Read,
    /// To read, and to write at the end.
    Append,
    /// The same, made where it is missing.
    AppendOrCreate,
    /// New, to read and write; refused when the name is taken.
    CreateNew,
}

const DIR_MODE: Mode = Mode::RWXU;
const FILE_MODE: Mode = Mode::RUSR.union(Mode::WUSR);
/// Always: no link, no waiting, no controlling terminal, not for children.
pub(crate) const SAFE: OFlags = OFlags::NOFOLLOW.union(OFlags::NONBLOCK).union(OFlags::NOCTTY).union(OFlags::CLOEXEC);

/// The same, for a directory: how one is opened whose name a job could have given to something else.
pub(crate) const DIRECTORY: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(SAFE);

impl Dir {
    /// Opens a directory by its path. Links on the way are followed, so `path` must come from the person or from
    /// [`std::fs::canonicalize`], never from a job; the last component must not be one.
    pub fn open(path: &AbsPath) -> Result<Self, DiskError> {
        let fd = rustix::fs::openat(rustix::fs::CWD, path.as_path(), DIRECTORY, Mode::empty())
            .map_err(|errno| refusal(rustix::fs::CWD, path.as_path(), path.clone(), Kind::Directory, errno))?;
        Self::checked(fd, path.clone(), Reach::Mounts)
    }

    /// Opens a directory that a job could write to, and could put something else in the place of. What it lies in must
    /// not be the job's.
    pub(crate) fn foreign(path: &AbsPath) -> Result<Self, DiskError> {
        let missing = || DiskError::Missing { path: path.clone() };
        let (parent, name) = path.as_path().parent().zip(path.as_path().file_name()).ok_or_else(missing)?;
        let parent = AbsPath::new(parent).map_err(|_| missing())?;
        let parent = Self { reach: Reach::SameFileSystem, ..Self::open(&parent)? };
        parent.dir(name.to_str().ok_or_else(missing)?)
    }

    /// Where it is. A rename since then is not seen here.
    pub fn path(&self) -> &AbsPath {
        &self.path
    }

    /// Opens a directory directly below.
    pub fn dir(&self, name: &str) -> Result<Self, DiskError> {
        let path = self.path.join(name);
        let fd = self
            .step(name, DIRECTORY, Mode::empty())
            .map_err(|errno| refusal(&self.fd, name, path.clone(), Kind::Directory, errno))?;
        Self::checked(fd, path, self.reach)
    }

    /// Makes a directory below; refused when the name is taken.
    pub fn create_dir(&self, name: &str) -> Result<Self, DiskError> {
        rustix::fs::mkdirat(&self.fd, name, DIR_MODE).map_err(|errno| self.failure(name, "create", errno))?;
        let dir = self.dir(name)?;
        if Mode::from_raw_mode(dir.stat()?.st_mode) != DIR_MODE {
            dir.set_private()?;
        }
        Ok(dir)
    }

    /// Opens the directory below, making it first where it is missing.
    pub fn ensure_dir(&self, name: &str) -> Result<Self, DiskError> {
        match self.dir(name) {
            Err(DiskError::Missing { .. }) => match self.create_dir(name) {
                Err(DiskError::Exists { .. }) => self.dir(name),
                made => made,
            },
            opened => opened,
        }
    }

    /// Opens a regular file of ours directly below.
    pub fn file(&self, name: &str, open: Open) -> Result<File, DiskError> {
        let flags = match open {
            Open::Read => OFlags::RDONLY,
            Open::Append => OFlags::RDWR | OFlags::APPEND,
            Open::AppendOrCreate => OFlags::RDWR | OFlags::APPEND | OFlags::CREATE,
            Open::CreateNew => OFlags::RDWR | OFlags::CREATE | OFlags::EXCL,
        };
        let path = self.path.join(name);
        let mode = if flags.contains(OFlags::CREATE) { FILE_MODE } else { Mode::empty() };
        let fd = self
            .step(name, SAFE | flags, mode)
            .map_err(|errno| refusal(&self.fd, name, path.clone(), Kind::File, errno))?;
        let stat = rustix::fs::fstat(&fd).map_err(|errno| DiskError::io(path.clone(), "stat", errno))?;
        expect(&stat, Kind::File, &path)?;
        if open == Open::CreateNew && Mode::from_raw_mode(stat.st_mode) != FILE_MODE {
            rustix::fs::fchmod(&fd, FILE_MODE).map_err(|errno| DiskError::io(path, "change the mode of", errno))?;
        }
        Ok(File::from(fd))
    }

    /// The whole of a small file; one of more than `limit` bytes is refused.
    pub fn read(&self, name: &str, limit: u64) -> Result<Vec<u8>, DiskError> {
        let mut bytes = Vec::new();
        self.file(name, Open::Read)?.take(limit + 1).read_to_end(&mut bytes).map_err(|source| DiskError::Io {
            path: self.path.join(name),
            action: "read",
            source,
        })?;
        if bytes.len() as u64 > limit {
            return Err(DiskError::TooLarge { path: self.path.join(name), limit });
        }
        Ok(bytes)
    }

    /// Writes a new file and waits until its content is on disk; refused when the name is taken. The name itself is
    /// durable after [`Dir::sync`].
    pub fn write_new(&self, name: &str, bytes: &[u8]) -> Result<File, DiskError> {
        let file = self.file(name, Open::CreateNew)?;
        let written = (&file).write_all(bytes).and_then(|()| file.sync_all());
        written.map_err(|source| DiskError::from_io(self.path.join(name), "write", source))?;
        Ok(file)
    }

    /// Puts a file in place of whatever non-directory has its name, whole or not at all. `durable` waits for the disk.
    pub fn replace(&self, name: &str, bytes: &[u8], durable: bool) -> Result<(), DiskError> {
        let fresh = format!(".{name}.new");
        self.remove(&fresh)?;
        let file = self.file(&fresh, Open::CreateNew)?;
        let written = (&file).write_all(bytes).and_then(|()| if durable { file.sync_all() } else { Ok(()) });
        let placed = written
            .map_err(|source| DiskError::from_io(self.path.join(name), "write", source))
            .and_then(|()| {
                rustix::fs::renameat(&self.fd, &fresh, &self.fd, name)
                    .map_err(|errno| self.failure(name, "replace", errno))
            })
            .and_then(|()| if durable { self.sync() } else { Ok(()) });
        if placed.is_err() {
            self.remove(&fresh)?;
        }
        placed
    }

    /// Removes a name that is no directory; one that is not there is fine.
    pub fn remove(&self, name: &str) -> Result<(), DiskError> {
        match rustix::fs::unlinkat(&self.fd, name, AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => Ok(()),
            Err(errno) => Err(self.failure(name, "remove", errno)),
        }
    }

    /// Removes an empty directory.
    pub fn remove_dir(&self, name: &str) -> Result<(), DiskError> {
        rustix::fs::unlinkat(&self.fd, name, AtFlags::REMOVEDIR).map_err(|errno| self.failure(name, "remove", errno))
    }

    /// Gives `from` the name `to` in `target`, which must be free.
    pub fn rename_new(&self, from: &str, target: &Self, to: &str) -> Result<(), DiskError> {
        match rustix::fs::renameat_with(&self.fd, from, &target.fd, to, RenameFlags::NOREPLACE) {
            // A file system without NOREPLACE: a directory still cannot take the place of one that has entries.
            Err(Errno::INVAL | Errno::NOSYS) => rustix::fs::renameat(&self.fd, from, &target.fd, to),
            renamed => renamed,
        }
        .map_err(|errno| target.failure(to, "rename to", errno))
    }

    /// What the name leads to, without following a link; `None` where there is nothing.
    pub fn lookup(&self, name: &str) -> Result<Option<Stat>, DiskError> {
        let stat = match self.reach {
            Reach::Mounts => rustix::fs::statat(&self.fd, name, AtFlags::SYMLINK_NOFOLLOW),
            // Even a `stat` would ask the file system that is mounted there.
            Reach::SameFileSystem => self
                .step(name, OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC, Mode::empty())
                .and_then(rustix::fs::fstat),
        };
        match stat {
            Ok(stat) => Ok(Some(stat)),
            Err(Errno::NOENT) => Ok(None),
            Err(errno) => Err(self.failure(name, "stat", errno)),
        }
    }

    /// The names directly below, in no order, without `.` and `..`; one that is not UTF-8 is none of ours and left out.
    pub fn names(&self) -> Result<Vec<String>, DiskError> {
        let failed = |errno| DiskError::io(self.path.clone(), "list", errno);
        let mut names = Vec::new();
        for entry in rustix::fs::Dir::read_from(&self.fd).map_err(failed)? {
            if let Ok(name) = entry.map_err(failed)?.file_name().to_str()
                && !matches!(name, "." | "..")
            {
                names.push(name.to_owned());
            }
        }
        Ok(names)
    }

    /// Waits until its entries are on disk.
    pub fn sync(&self) -> Result<(), DiskError> {
        rustix::fs::fsync(&self.fd).map_err(|errno| DiskError::io(self.path.clone(), "sync", errno))
    }

    /// Its own `stat`.
    pub fn stat(&self) -> Result<Stat, DiskError> {
        rustix::fs::fstat(&self.fd).map_err(|errno| DiskError::io(self.path.clone(), "stat", errno))
    }

    /// Sets its times to now, which those who watch the directory that it lies in are told of.
    pub(crate) fn touch(&self) -> Result<(), DiskError> {
        let now = Timespec { tv_sec: 0, tv_nsec: UTIME_NOW };
        let times = Timestamps { last_access: now, last_modification: now };
        rustix::fs::futimens(&self.fd, &times).map_err(|errno| DiskError::io(self.path.clone(), "touch", errno))
    }

    /// Takes every right from everybody else.
    pub fn set_private(&self) -> Result<(), DiskError> {
        rustix::fs::fchmod(&self.fd, DIR_MODE)
            .map_err(|errno| DiskError::io(self.path.clone(), "change the mode of", errno))
    }

    fn step(&self, name: &str, flags: OFlags, mode: Mode) -> rustix::io::Result<OwnedFd> {
        match self.reach {
            Reach::Mounts => rustix::fs::openat(&self.fd, name, flags, mode),
            Reach::SameFileSystem => open_on_same(&self.fd, name, flags, mode),
        }
    }

    fn checked(fd: OwnedFd, path: AbsPath, reach: Reach) -> Result<Self, DiskError> {
        let stat = rustix::fs::fstat(&fd).map_err(|errno| DiskError::io(path.clone(), "stat", errno))?;
        expect(&stat, Kind::Directory, &path)?;
        Ok(Self { fd, path, reach })
    }

    fn failure(&self, name: &str, action: &'static str, errno: Errno) -> DiskError {
        DiskError::io(self.path.join(name), action, errno)
    }
}

impl AsFd for Dir {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

impl FileId {
    /// The file that `stat` describes.
    pub fn of(stat: &Stat) -> Self {
        Self { device: stat.st_dev, inode: stat.st_ino }
    }

    /// The file that is open as `fd`.
    pub fn of_fd(fd: impl AsFd) -> std::io::Result<Self> {
        Ok(Self::of(&rustix::fs::fstat(fd)?))
    }
}

/// Opens what is directly below `directory`, unless it is a link, or another file system is mounted there: that one is
/// not even asked.
pub(crate) fn open_on_same(
    directory: impl AsFd,
    name: impl rustix::path::Arg + Copy,
    flags: OFlags,
    mode: Mode,
) -> rustix::io::Result<OwnedFd> {
    let resolve = ResolveFlags::NO_XDEV | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    match rustix::fs::openat2(&directory, name, flags, mode, resolve) {
        // A kernel before 5.6, or a container that hides the call.
        Err(Errno::NOSYS | Errno::PERM) => rustix::fs::openat(&directory, name, flags | OFlags::NOFOLLOW, mode),
        opened => opened,
    }
}

/// The directory directly below `directory`, made where it is missing, and opened as by [`open_on_same`].
pub(crate) fn ensure_on_same(
    directory: impl AsFd,
    name: impl rustix::path::Arg + Copy,
    mode: Mode,
) -> rustix::io::Result<OwnedFd> {
    match rustix::fs::mkdirat(&directory, name, mode) {
        Ok(()) | Err(Errno::EXIST) => open_on_same(&directory, name, DIRECTORY, Mode::empty()),
        Err(errno) => Err(errno),
    }
}

/// Refuses what is of another kind or of another user.
fn expect(stat: &Stat, kind: Kind, path: &AbsPath) -> Result<(), DiskError> {
    let found = Kind::of(FileType::from_raw_mode(stat.st_mode));
    if found != kind {
        return Err(DiskError::WrongKind { path: path.clone(), expected: kind, found });
    }
    if stat.st_uid != rustix::process::geteuid().as_raw() {
        return Err(DiskError::ForeignOwner { path: path.clone(), uid: stat.st_uid });
    }
    Ok(())
}

/// What a failed open means: what stands there says more than the error number.
fn refusal(
    at: impl AsFd,
    name: impl rustix::path::Arg + Copy,
    path: AbsPath,
    expected: Kind,
    errno: Errno,
) -> DiskError {
    if errno == Errno::XDEV {
        return DiskError::Mounted { path };
    }
    if matches!(
        errno,
        Errno::LOOP | Errno::NOTDIR | Errno::ISDIR | Errno::NXIO | Errno::NODEV | Errno::ACCESS | Errno::PERM
    ) && let Ok(stat) = rustix::fs::statat(at, name, AtFlags::SYMLINK_NOFOLLOW)
        && let Err(refused) = expect(&stat, expected, &path)
    {
        return refused;
    }
    DiskError::io(path, "open", errno)
}

/// Whether an error says that there is no room: disk, quota, or the limit on a file's size.
pub(crate) fn is_no_space(error: &std::io::Error) -> bool {
    matches!(error.kind(), ErrorKind::StorageFull | ErrorKind::QuotaExceeded | ErrorKind::FileTooLarge)
}
