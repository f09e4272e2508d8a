//! What a job left in its home in place of the link to a login. The job may have put anything there: nothing is
//! followed, no mount is entered, and nothing but a private regular file of a bounded length is read.

use std::io::Read as _;
use std::os::unix::ffi::OsStrExt as _;

use pactify_core::AbsPath;
use rustix::fs::{FileType, Stat, readlinkat};

use crate::disk::{Dir, DiskError, Kind, Open};

/// What was found.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Found {
    /// The link as it was made, or nothing.
    Nothing,
    /// A private regular file.
    File(Vec<u8>),
    /// Something that no harness leaves.
    Odd(String),
}

/// Looks at the end of `way`, from the job's home, where a link to `leads_to` was made; at the file `below` it where
/// that was a directory and a private one stands there now.
pub(super) fn find(home: &AbsPath, way: &[String], leads_to: &AbsPath, below: Option<&str>, limit: u64) -> Found {
    let looked = || -> Result<Found, DiskError> {
        let Some((name, parents)) = way.split_last() else { return Ok(Found::Nothing) };
        let mut dir = Dir::foreign(home)?;
        for parent in parents {
            dir = dir.dir(parent)?;
        }
        let Some(stat) = dir.lookup(name)? else { return Ok(Found::Nothing) };
        match (kind(&stat), below) {
            (Kind::Symlink, _) => Ok(link(&dir, name, leads_to)),
            (Kind::File, None) => file(&dir, name, limit),
            (Kind::Directory, Some(below)) => {
                let private = dir.dir(name)?;
                match private.lookup(below)?.map(|stat| kind(&stat)) {
                    None => Ok(Found::Nothing),
                    Some(Kind::File) => file(&private, below, limit),
                    Some(other) => Ok(Found::Odd(other.to_string())),
                }
            }
            (other, _) => Ok(Found::Odd(other.to_string())),
        }
    };
    looked().unwrap_or_else(|error| match error {
        DiskError::Missing { .. } => Found::Nothing,
        DiskError::WrongKind { found, .. } => Found::Odd(found.to_string()),
        DiskError::Mounted { .. } => Found::Odd("a file system that is mounted there".to_owned()),
        DiskError::TooLarge { .. } => Found::Odd("a file that is too large for a login".to_owned()),
        other => Found::Odd(format!("something that cannot be read ({other})")),
    })
}

fn link(dir: &Dir, name: &str, leads_to: &AbsPath) -> Found {
    match readlinkat(dir, name, Vec::new()) {
        Ok(target) if target.to_bytes() == leads_to.as_path().as_os_str().as_bytes() => Found::Nothing,
        _ => Found::Odd("a link to somewhere else".to_owned()),
    }
}

fn file(dir: &Dir, name: &str, limit: u64) -> Result<Found, DiskError> {
    let file = dir.file(name, Open::Read)?;
    let stat = rustix::fs::fstat(&file).map_err(|errno| DiskError::io(dir.path().join(name), "stat", errno))?;
    if stat.st_nlink != 1 {
        // Another name of some file of the person.
        return Ok(Found::Odd("a file with another name elsewhere".to_owned()));
    }
    let mut bytes = Vec::new();
    let read = file.take(limit + 1).read_to_end(&mut bytes);
    read.map_err(|source| DiskError::from_io(dir.path().join(name), "read", source))?;
    if bytes.len() as u64 > limit {
        return Err(DiskError::TooLarge { path: dir.path().join(name), limit });
    }
    Ok(Found::File(bytes))
}

fn kind(stat: &Stat) -> Kind {
    Kind::of(FileType::from_raw_mode(stat.st_mode))
}
