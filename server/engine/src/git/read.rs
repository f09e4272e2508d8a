//! Reading small files by path where somebody else may have put something else: a pipe there must not be waited for.
//!
//! Links are followed: what is read this way is the person's (their ignore rules may well be a link), or lies where
//! only they and their jobs can write, and nothing is written. Files of the store are [`crate::disk`]'s, a job's tree
//! the capture's.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::Path;

use rustix::fs::{FileType, Mode, OFlags};

/// No file that is read whole is larger, in bytes: rules, lists of cuts, links.
const LARGEST: u64 = 256 << 20;

/// What the file at `path` holds. `/dev/null`, with which git is told that there is no file, holds nothing.
///
/// # Errors
/// The kernel's, and for what is no file, or absurdly large: an agent without a sandbox may have left it there.
pub(super) fn read(path: &Path) -> io::Result<Vec<u8>> {
    let mut content = Vec::new();
    if let Some(file) = open(path)? {
        let is_large = file.metadata()?.len() > LARGEST;
        // It may grow meanwhile.
        if is_large || file.take(LARGEST + 1).read_to_end(&mut content)? as u64 > LARGEST {
            return Err(too_large(LARGEST));
        }
    }
    Ok(content)
}

fn too_large(most: u64) -> io::Error {
    io::Error::new(io::ErrorKind::FileTooLarge, format!("it has more than {most} bytes"))
}

/// Copies the file at `path` to `to`, where nothing may be yet; at most `most` bytes. How many there were.
///
/// # Errors
/// The kernel's, and for what is no file, or larger.
pub(super) fn copy(path: &Path, to: &Path, most: u64) -> io::Result<u64> {
    let mut copy = File::create_new(to)?;
    let Some(file) = open(path)? else { return Ok(0) };
    if file.metadata()?.len() > most {
        return Err(too_large(most));
    }
    io::copy(&mut file.take(most), &mut copy)
}

/// The file at `path`, opened without waiting; `None` for `/dev/null`.
fn open(path: &Path) -> io::Result<Option<File>> {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let file = File::from(rustix::fs::open(path, flags, Mode::empty())?);
    let stat = rustix::fs::fstat(&file)?;
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile => Ok(Some(file)),
        FileType::CharacterDevice if stat.st_rdev == rustix::fs::makedev(1, 3) => Ok(None),
        _ => Err(io::Error::new(io::ErrorKind::InvalidInput, "it is no regular file")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_files_are_read_and_nothing_is_waited_for() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        std::fs::write(at("file"), "text").unwrap();
        std::os::unix::fs::symlink(at("file"), at("link")).unwrap();
        rustix::fs::mknodat(rustix::fs::CWD, at("pipe"), FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
        let socket = std::os::unix::net::UnixListener::bind(at("socket")).unwrap();

        assert_eq!((read(&at("file")).unwrap(), read(&at("link")).unwrap()), (b"text".to_vec(), b"text".to_vec()));
        assert_eq!(read(Path::new("/dev/null")).unwrap(), b"");
        assert_eq!(read(&at("missing")).unwrap_err().kind(), io::ErrorKind::NotFound);
        File::create(at("huge")).unwrap().set_len(LARGEST + 1).unwrap();
        assert_eq!(read(&at("huge")).unwrap_err().kind(), io::ErrorKind::FileTooLarge);
        for special in [at("pipe"), at("socket"), folder.path().to_owned(), "/dev/zero".into()] {
            assert!(read(&special).is_err(), "{}", special.display());
        }
        drop(socket);

        copy(&at("link"), &at("copy"), 4).unwrap();
        assert_eq!(read(&at("copy")).unwrap(), b"text");
        assert_eq!(copy(&at("file"), &at("copy 2"), 3).unwrap_err().kind(), io::ErrorKind::FileTooLarge);
        assert!(copy(&at("pipe"), &at("copy 3"), 3).is_err());
    }
}
