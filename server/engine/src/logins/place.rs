//! The place of a login: a name in a directory of the person's, reached by the directory's descriptor.
//!
//! The path was resolved before the job. A write is whole or not at all, 0600, and never over anything but what was
//! seen: both names are exchanged in one step, and what came out is looked at; if it is not what was seen, they are
//! exchanged back. What then stands beside may be a login that somebody wrote in that moment: only what is known is
//! removed, the rest is kept.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::os::fd::OwnedFd;

use pactify_core::AbsPath;
use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, RenameFlags, fstat, openat, renameat_with, unlinkat};
use rustix::io::Errno;

use super::{LoginError, MAX_BYTES};
use crate::disk::{DIRECTORY, FileId, SAFE};

/// Keeps a login that must not be lost.
pub(super) type Keep<'a> = &'a dyn Fn(&[u8]) -> Result<(), LoginError>;

/// One login's place.
#[derive(Debug)]
pub(super) struct Place {
    login: AbsPath,
    directory: OwnedFd,
    name: String,
}

impl Place {
    pub(super) fn open(login: &AbsPath) -> Result<Self, LoginError> {
        let no_file = || LoginError::NoFile { login: login.clone() };
        let name = login.as_path().file_name().and_then(|name| name.to_str()).ok_or_else(no_file)?.to_owned();
        let parent = login.as_path().parent().ok_or_else(no_file)?;
        let directory = openat(CWD, parent, DIRECTORY, Mode::empty()).map_err(|errno| LoginError::Login {
            login: login.clone(),
            action: "open the directory of",
            source: errno.into(),
        })?;
        Ok(Self { login: login.clone(), directory, name })
    }

    /// Which directory it is in.
    pub(super) fn directory(&self) -> Result<FileId, LoginError> {
        FileId::of_fd(&self.directory).map_err(|source| LoginError::Login {
            login: self.login.clone(),
            action: "stat the directory of",
            source,
        })
    }

    /// What is there; `None` when there is nothing.
    pub(super) fn read(&self, limit: u64) -> Result<Option<Vec<u8>>, LoginError> {
        self.read_name(&self.name, limit)
    }

    /// Puts `contents` there if what is there is `seen`. `keep` keeps what an earlier write, or somebody else's, left
    /// beside.
    pub(super) fn put(&self, contents: &[u8], seen: Option<&[u8]>, keep: Keep<'_>) -> Result<(), LoginError> {
        let fresh = format!(".{}.pactify", self.name);
        let failed =
            |action, errno: Errno| LoginError::Login { login: self.login.clone(), action, source: errno.into() };
        self.clear(&fresh, &[Some(contents), seen], keep)?;
        let flags = SAFE | OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL;
        let fd = openat(&self.directory, &fresh, flags, Mode::RUSR | Mode::WUSR)
            .map_err(|errno| failed("write beside", errno))?;
        let mut file = File::from(fd);
        if let Err(source) = file.write_all(contents).and_then(|()| file.sync_all()) {
            // A part of ours: nothing was exchanged yet.
            self.unlink(&fresh)?;
            return Err(LoginError::Login { login: self.login.clone(), action: "write beside", source });
        }
        let placed = self.exchange(&fresh, seen);
        self.clear(&fresh, &[Some(contents), seen], keep)?;
        placed?;
        rustix::fs::fsync(&self.directory).map_err(|errno| failed("sync the directory of", errno))
    }

    /// Removes what stands beside, once it is kept unless it is one of `known`.
    fn clear(&self, fresh: &str, known: &[Option<&[u8]>], keep: Keep<'_>) -> Result<(), LoginError> {
        let Some(found) = self.read_name(fresh, MAX_BYTES)? else { return Ok(()) };
        if !known.contains(&Some(&found)) {
            keep(&found)?;
        }
        self.unlink(fresh)
    }

    fn unlink(&self, fresh: &str) -> Result<(), LoginError> {
        match unlinkat(&self.directory, fresh, AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => Ok(()),
            Err(errno) => {
                let (login, source) = (self.login.clone(), errno.into());
                Err(LoginError::Login { login, action: "remove what stands beside", source })
            }
        }
    }

    /// Gives the fresh file the login's name.
    fn exchange(&self, fresh: &str, seen: Option<&[u8]>) -> Result<(), LoginError> {
        let rename = |flags| renameat_with(&self.directory, fresh, &self.directory, &self.name, flags);
        let failed =
            |errno: Errno| LoginError::Login { login: self.login.clone(), action: "replace", source: errno.into() };
        let raced = || LoginError::Raced { login: self.login.clone() };
        let Some(seen) = seen else {
            return rename(RenameFlags::NOREPLACE)
                .map_err(|errno| if errno == Errno::EXIST { raced() } else { failed(errno) });
        };
        let is_seen =
            |name: &str| Ok::<_, LoginError>(self.read_name(name, seen.len() as u64)?.as_deref() == Some(seen));
        match rename(RenameFlags::EXCHANGE) {
            Ok(()) if is_seen(fresh).unwrap_or(false) => Ok(()),
            Ok(()) => {
                rename(RenameFlags::EXCHANGE).map_err(failed)?;
                Err(raced())
            }
            Err(Errno::NOENT) => Err(raced()),
            // A file system that cannot exchange: looked at just before.
            Err(Errno::INVAL | Errno::NOSYS) if is_seen(&self.name)? => rename(RenameFlags::empty()).map_err(failed),
            Err(Errno::INVAL | Errno::NOSYS) => Err(raced()),
            Err(errno) => Err(failed(errno)),
        }
    }

    fn read_name(&self, name: &str, limit: u64) -> Result<Option<Vec<u8>>, LoginError> {
        let failed = |source| LoginError::Login { login: self.login.clone(), action: "read", source };
        let file = match openat(&self.directory, name, SAFE | OFlags::RDONLY, Mode::empty()) {
            Ok(fd) => File::from(fd),
            Err(Errno::NOENT) => return Ok(None),
            Err(Errno::LOOP) => return Err(LoginError::NoFile { login: self.login.clone() }),
            Err(errno) => return Err(failed(errno.into())),
        };
        let stat = fstat(&file).map_err(|errno| failed(errno.into()))?;
        let mut bytes = Vec::new();
        if FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile {
            file.take(limit + 1).read_to_end(&mut bytes).map_err(failed)?;
            if bytes.len() as u64 <= limit {
                return Ok(Some(bytes));
            }
        }
        Err(LoginError::NoFile { login: self.login.clone() })
    }
}

/// The names of the regular files directly in a directory, `most` of them at most, in order.
pub(super) fn files_in(directory: &AbsPath, most: usize) -> Result<Vec<String>, LoginError> {
    let failed = |errno: Errno| LoginError::Login { login: directory.clone(), action: "list", source: errno.into() };
    let fd = openat(CWD, directory.as_path(), DIRECTORY, Mode::empty()).map_err(failed)?;
    let mut names = Vec::new();
    for entry in rustix::fs::Dir::read_from(&fd).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        let Ok(name) = entry.file_name().to_str() else { continue };
        let is_file = || {
            let stat = rustix::fs::statat(&fd, name, AtFlags::SYMLINK_NOFOLLOW).ok()?;
            (FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile).then_some(())
        };
        if !name.starts_with('.') && is_file().is_some() {
            names.push(name.to_owned());
        }
    }
    names.sort();
    names.truncate(most);
    Ok(names)
}
