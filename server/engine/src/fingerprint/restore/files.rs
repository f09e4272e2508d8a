//! Writing files of the person's git directory as git writes them: under a lock, by one rename, following nothing.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Write as _};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt as _;

use pactify_core::RepoPath;
use pactify_core::fingerprint::Item;
use pactify_core::job::RepositoryRecord;
use rustix::fs::{AtFlags, FileType, Mode, OFlags, RenameFlags};
use rustix::io::Errno;

use super::super::shared::{item, open_below, open_top};
use super::Verdict;
use crate::disk::{DIRECTORY, SAFE};

/// Contents are kept up to this size, and compared by digest beyond.
const KEEP: u64 = 1 << 20;

/// Where a directory is put together before it gets its name.
const ASIDE: &str = "pactify-restore";

/// How directories are made on the way, as git makes its own.
const DIRECTORY_MODE: Mode = Mode::RWXU.union(Mode::RGRP).union(Mode::XGRP).union(Mode::ROTH).union(Mode::XOTH);

/// The shared git directory of a repository, open.
pub(super) struct Files(OwnedFd);

/// The right to replace one file, as git understands it. Given back when it is dropped.
pub(super) struct Lock {
    directory: OwnedFd,
    name: Vec<u8>,
    lock: Vec<u8>,
    file: Option<File>,
    placed: bool,
}

impl Files {
    pub(super) fn open(repository: &RepositoryRecord) -> io::Result<Self> {
        Ok(Self(open_top(repository)?))
    }

    /// Locks the file at `path`; or says why not.
    pub(super) fn lock(&self, path: &RepoPath) -> Result<Lock, Verdict> {
        let directory = self.directory(path.parent().as_ref())?;
        let name = path.file_name().to_vec();
        let lock = [&name[..], b".lock"].concat();
        let flags = SAFE | OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL;
        let mode = Mode::RUSR | Mode::WUSR;
        match rustix::fs::openat(&directory, OsStr::from_bytes(&lock), flags, mode) {
            Ok(file) => Ok(Lock { directory, name, lock, file: Some(file.into()), placed: false }),
            Err(Errno::EXIST) => Err(Verdict::refused(format!(
                "git holds {}.lock: try again when it is done, or remove that file if no git runs",
                path.display()
            ))),
            Err(errno) => Err(refusal(errno)),
        }
    }

    /// Puts what was there before at `path`, if what is there is `new`.
    pub(super) fn put(&self, path: &RepoPath, old: Option<&Item>, new: Option<&Item>) -> Verdict {
        let lock = match self.lock(path) {
            Ok(lock) => lock,
            // Where even the directory cannot be made, there is nothing to be removed either.
            Err(_) if old.is_none() && self.is_absent(path) => return Verdict::Already,
            Err(verdict) => return verdict,
        };
        let current = match lock.current() {
            Ok(current) => current,
            Err(verdict) => return verdict,
        };
        let same = |other: Option<&Item>| current.as_ref().map(Item::identity) == other.map(Item::identity);
        if same(old) {
            return Verdict::Already;
        }
        if !same(new) {
            return Verdict::changed_again();
        }
        match old {
            None => lock.remove(),
            Some(Item::File { content: Some(content), executable, .. }) => lock.write(content, *executable),
            Some(Item::Link { target }) => lock.link(target),
            Some(Item::File { content: None, .. }) => Verdict::refused("it was too large to be kept"),
            Some(Item::Special { what }) => Verdict::refused(format!("it was a {what}")),
        }
    }

    /// Makes a directory with these files in it, all of it at once. Nothing may be at `path`.
    pub(super) fn put_directory(
        &self,
        path: &RepoPath,
        contents: &[(Vec<u8>, Vec<u8>)],
        note: Option<String>,
    ) -> Verdict {
        if self.holds(path, contents) {
            return Verdict::Already;
        }
        let opened = rustix::fs::mkdirat(&self.0, ASIDE, DIRECTORY_MODE)
            .and_then(|()| rustix::fs::openat(&self.0, ASIDE, DIRECTORY, Mode::empty()));
        let aside = match opened {
            Ok(aside) => aside,
            // Not ours to clean up: nobody knows what is in it.
            Err(Errno::EXIST) => {
                return Verdict::refused(format!("{ASIDE} is in the way in the git directory: remove it first"));
            }
            Err(errno) => return refusal(errno),
        };
        let made = contents.iter().try_for_each(|(name, content)| create(&aside, name, content));
        let verdict = match (made, self.directory(path.parent().as_ref())) {
            (Err(errno), _) => refusal(errno),
            (Ok(()), Err(verdict)) => verdict,
            (Ok(()), Ok(parent)) => {
                let name = OsStr::from_bytes(path.file_name());
                match rustix::fs::renameat_with(&self.0, ASIDE, &parent, name, RenameFlags::NOREPLACE) {
                    Ok(()) => return Verdict::PutBack(note),
                    Err(Errno::EXIST | Errno::NOTEMPTY) => Verdict::refused("it is there again"),
                    Err(errno) => refusal(errno),
                }
            }
        };
        self.remove_aside(&aside, contents);
        verdict
    }

    /// Whether the directory has these files; an index may be another one.
    fn holds(&self, path: &RepoPath, contents: &[(Vec<u8>, Vec<u8>)]) -> bool {
        let Ok(directory) = open_below(&self.0, Some(path)) else { return false };
        contents.iter().filter(|(name, _)| !name.contains(&b'/') && name != b"index").all(|(name, wanted)| {
            let found = item(&directory, name, KEEP);
            matches!(found, Ok(Some(Item::File { content: Some(content), .. })) if content == *wanted)
        })
    }

    /// Removes what [`Self::put_directory`] made, in the directory that it made.
    fn remove_aside(&self, aside: &OwnedFd, contents: &[(Vec<u8>, Vec<u8>)]) {
        for (name, _) in contents {
            let (folder, last) = split(name);
            let Ok(directory) = open_folder(aside, folder) else { continue };
            let _ = rustix::fs::unlinkat(&directory, OsStr::from_bytes(last), AtFlags::empty());
            if let Some(folder) = folder {
                let _ = rustix::fs::unlinkat(aside, OsStr::from_bytes(folder), AtFlags::REMOVEDIR);
            }
        }
        let _ = rustix::fs::unlinkat(&self.0, ASIDE, AtFlags::REMOVEDIR);
    }

    fn is_absent(&self, path: &RepoPath) -> bool {
        let parent = path.parent();
        let opened = open_below(&self.0, parent.as_ref());
        matches!(opened, Err(Errno::NOENT))
            || opened.is_ok_and(|opened| matches!(item(&opened, path.file_name(), 0), Ok(None)))
    }

    /// Opens a directory, and makes what is missing of it.
    fn directory(&self, path: Option<&RepoPath>) -> Result<OwnedFd, Verdict> {
        let mut opened = rustix::fs::openat(&self.0, ".", DIRECTORY, Mode::empty()).map_err(refusal)?;
        for component in path.into_iter().flat_map(RepoPath::components) {
            let name = OsStr::from_bytes(component);
            opened = match rustix::fs::openat(&opened, name, DIRECTORY, Mode::empty()) {
                Err(Errno::NOENT) => rustix::fs::mkdirat(&opened, name, DIRECTORY_MODE)
                    .and_then(|()| rustix::fs::openat(&opened, name, DIRECTORY, Mode::empty())),
                opened => opened,
            }
            .map_err(refusal)?;
        }
        Ok(opened)
    }
}

impl Lock {
    /// What is there now.
    pub(super) fn current(&self) -> Result<Option<Item>, Verdict> {
        item(&self.directory, &self.name, KEEP).map_err(|error| Verdict::refused(format!("it cannot be read: {error}")))
    }

    /// The permissions of what replaces the file: those that it has, as far as they go with being a program or not.
    fn mode(&self, executable: bool) -> Mode {
        let name = OsStr::from_bytes(&self.name);
        let mode = match rustix::fs::statat(&self.directory, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) if FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile => stat.st_mode & 0o777,
            _ => 0o644,
        };
        let mode = if executable { mode | ((mode & 0o444) >> 2) } else { mode & !0o111 };
        Mode::from_raw_mode(mode)
    }

    /// Replaces the file.
    pub(super) fn write(mut self, content: &[u8], executable: bool) -> Verdict {
        let Some(mut file) = self.file.take() else { return Verdict::refused("it is not locked") };
        let mode = self.mode(executable);
        let written = file
            .write_all(content)
            .and_then(|()| Ok(rustix::fs::fchmod(&file, mode)?))
            .and_then(|()| file.sync_all())
            .and_then(|()| Ok(self.place()?));
        match written {
            Ok(()) => Verdict::PutBack(None),
            Err(error) => Verdict::refused(error.to_string()),
        }
    }

    /// Replaces the file by a link.
    fn link(mut self, target: &[u8]) -> Verdict {
        let lock = OsStr::from_bytes(&self.lock);
        let made = rustix::fs::unlinkat(&self.directory, lock, AtFlags::empty())
            .and_then(|()| rustix::fs::symlinkat(OsStr::from_bytes(target), &self.directory, lock))
            .and_then(|()| self.place());
        made.map_or_else(refusal, |()| Verdict::PutBack(None))
    }

    /// Removes the file.
    pub(super) fn remove(self) -> Verdict {
        match rustix::fs::unlinkat(&self.directory, OsStr::from_bytes(&self.name), AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => Verdict::PutBack(None),
            Err(errno) => refusal(errno),
        }
    }

    fn place(&mut self) -> Result<(), Errno> {
        let (lock, name) = (OsStr::from_bytes(&self.lock), OsStr::from_bytes(&self.name));
        rustix::fs::renameat(&self.directory, lock, &self.directory, name)?;
        self.placed = true;
        rustix::fs::fsync(&self.directory)
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        if !self.placed {
            let _ = rustix::fs::unlinkat(&self.directory, OsStr::from_bytes(&self.lock), AtFlags::empty());
        }
    }
}

fn create(directory: &OwnedFd, name: &[u8], content: &[u8]) -> Result<(), Errno> {
    let (folder, last) = split(name);
    if let Some(folder) = folder {
        match rustix::fs::mkdirat(directory, OsStr::from_bytes(folder), DIRECTORY_MODE) {
            Ok(()) | Err(Errno::EXIST) => {}
            Err(errno) => return Err(errno),
        }
    }
    let directory = open_folder(directory, folder)?;
    let flags = SAFE | OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL;
    let mode = Mode::from_raw_mode(0o644);
    let mut file = File::from(rustix::fs::openat(&directory, OsStr::from_bytes(last), flags, mode)?);
    let written = file.write_all(content).and_then(|()| file.sync_all());
    written.map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO))
}

/// The folder that a file of a registration is in, if it is in one, and its name there.
fn split(name: &[u8]) -> (Option<&[u8]>, &[u8]) {
    match name.iter().position(|byte| *byte == b'/') {
        Some(slash) => (Some(&name[..slash]), &name[slash + 1..]),
        None => (None, name),
    }
}

fn open_folder(directory: &OwnedFd, folder: Option<&[u8]>) -> Result<OwnedFd, Errno> {
    rustix::fs::openat(directory, OsStr::from_bytes(folder.unwrap_or(b".")), DIRECTORY, Mode::empty())
}

fn refusal(errno: Errno) -> Verdict {
    match errno {
        Errno::LOOP | Errno::NOTDIR => Verdict::refused("a link or a file is on the way to it"),
        errno => Verdict::refused(io::Error::from(errno).to_string()),
    }
}
