//! Contents from the person's checkout, where it holds just what the base does.
//!
//! Reading a file costs a fraction of inflating an object. Nothing is trusted for it, neither the index nor a `stat`:
//! the bytes that were read are hashed, and count only if they have the object's id. Where the checkout is another, or
//! holds converted files, that is soon noticed and no more is tried.

use std::fs::File;
use std::io::Read as _;
use std::os::fd::OwnedFd;

use pactify_core::{AbsPath, ObjectId, RepoPath};
use rustix::fs::{FileType, Mode, OFlags};

use super::place::Directory;
use crate::hash::Algorithm;

/// A larger file is read from the objects, in their own way.
const LARGEST: u64 = 16 << 20;

/// How many more files than were of use may be read in vain.
const IN_VAIN: usize = 64;

/// A checkout that may hold what is wanted.
pub(super) struct Donor {
    top: OwnedFd,
    place: Directory,
    buffer: Vec<u8>,
    useful: usize,
    useless: usize,
}

impl Donor {
    /// The checkout, if it can be opened. Its own path may lead through links: where it is, is the person's choice.
    pub(super) fn open(checkout: &AbsPath) -> Option<Self> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let top = rustix::fs::open(checkout.as_path(), flags, Mode::empty()).ok()?;
        Some(Self { top, place: Directory::default(), buffer: Vec::new(), useful: 0, useless: 0 })
    }

    /// The content of `object`, if that is what the checkout has at `path`.
    pub(super) fn content(&mut self, path: &RepoPath, object: &ObjectId) -> Option<&[u8]> {
        if self.useless > self.useful + IN_VAIN {
            return None;
        }
        let same = self.read(path).is_some() && Algorithm::of(object).blob(&self.buffer) == *object;
        *(if same { &mut self.useful } else { &mut self.useless }) += 1;
        same.then_some(self.buffer.as_slice())
    }

    /// Reads a regular file into the buffer, following and waiting for nothing.
    fn read(&mut self, path: &RepoPath) -> Option<()> {
        let directory = self.place.of(&self.top, path).ok()?;
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        let file = File::from(rustix::fs::openat(directory, path.file_name(), flags, Mode::empty()).ok()?);
        let stat = rustix::fs::fstat(&file).ok()?;
        let size = u64::try_from(stat.st_size).ok().filter(|size| *size <= LARGEST)?;
        if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
            return None;
        }
        self.buffer.clear();
        self.buffer.reserve(usize::try_from(size).ok()? + 1);
        (&file).take(LARGEST).read_to_end(&mut self.buffer).ok()?;
        Some(())
    }
}
