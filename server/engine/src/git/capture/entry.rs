//! Opening what a job's tree holds: from the tree's top, component by component, following nothing.

use std::ffi::OsStr;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt as _;

use pactify_core::RepoPath;
use rustix::fs::{FileType, Mode, OFlags};
use rustix::io::Errno;

/// How a directory is opened: as that directory or not at all.
pub(in crate::git) const DIRECTORY: OFlags =
    OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::NONBLOCK).union(OFlags::CLOEXEC);

/// A file or link whose content is to be looked at.
pub(in crate::git) struct Candidate {
    pub(in crate::git) path: RepoPath,
    pub(in crate::git) is_link: bool,
    pub(in crate::git) executable: bool,
    pub(in crate::git) size: u64,
    pub(in crate::git) links: u64,
    pub(in crate::git) identity: (u64, u64),
}

impl Candidate {
    /// Opens it, if it still is the entry that was looked at.
    pub(in crate::git) fn open(&self, root: &OwnedFd) -> io::Result<std::fs::File> {
        let directory = open_below(root, self.path.parent().as_ref())?;
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        let file = rustix::fs::openat(&directory, self.path.file_name(), flags, Mode::empty())?;
        let stat = rustix::fs::fstat(&file)?;
        let is_file = FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile;
        if !is_file || (stat.st_dev, stat.st_ino) != self.identity {
            return Err(io::Error::other("it was replaced while it was captured"));
        }
        Ok(file.into())
    }

    /// Where the link leads to, as it is written in it.
    pub(in crate::git) fn target(&self, root: &OwnedFd) -> io::Result<Vec<u8>> {
        let directory = open_below(root, self.path.parent().as_ref())?;
        Ok(rustix::fs::readlinkat(&directory, self.path.file_name(), Vec::new())?.into_bytes())
    }
}

/// Opens the directory `path` below `root`, following nothing on the way.
pub(in crate::git) fn open_below(root: &OwnedFd, path: Option<&RepoPath>) -> Result<OwnedFd, Errno> {
    let mut opened = rustix::fs::openat(root, ".", DIRECTORY, Mode::empty())?;
    for component in path.into_iter().flat_map(RepoPath::components) {
        opened = rustix::fs::openat(&opened, OsStr::from_bytes(component), DIRECTORY, Mode::empty())?;
    }
    Ok(opened)
}
