//! Files that an editor names, read without trusting what is in their place.
//!
//! A brief and a file that is compared with an open document: at most so many bytes, no link followed, and a pipe or a
//! device refused instead of waited for.

use std::fs::File;
use std::io::{self, Read as _};

use pactify_core::brief::{self, Brief};
use pactify_core::{AbsPath, Failure, FailureCode};
use rustix::fs::{FileType, Mode, OFlags};

/// The brief in a file.
pub(super) fn read(path: &AbsPath) -> Result<String, Failure> {
    let bytes = read_file(path, brief::MAX_BYTES + 1)
        .map_err(|error| invalid(format!("the brief {path} cannot be read: {error}")))?;
    let text = String::from_utf8(bytes).map_err(|_| invalid(format!("the brief {path} is not UTF-8")))?;
    check(text)
}

/// A text as a brief.
pub(super) fn check(text: String) -> Result<String, Failure> {
    Brief::new(text).map(String::from).map_err(|error| invalid(error.to_string()))
}

/// The beginning of a regular file.
pub(super) fn read_file(path: &AbsPath, max: usize) -> io::Result<Vec<u8>> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = File::from(rustix::fs::open(path.as_path(), flags, Mode::empty())?);
    if FileType::from_raw_mode(rustix::fs::fstat(&file)?.st_mode) != FileType::RegularFile {
        return Err(io::Error::other("it is no regular file"));
    }
    let mut bytes = Vec::new();
    file.take(max as u64).read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn invalid(message: String) -> Failure {
    Failure::new(
        FailureCode::InvalidParams,
        message,
        "pass the task as text, or as {\"uri\": …} of a text file with it",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_small_regular_text_file_is_a_brief() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| AbsPath::new(folder.path().join(name)).unwrap();
        std::fs::write(at("good"), "Do it.\n").unwrap();
        std::fs::write(at("empty"), " \n").unwrap();
        std::fs::write(at("latin"), b"caf\xe9").unwrap();
        std::fs::write(at("long"), "x".repeat(brief::MAX_BYTES + 1)).unwrap();
        std::fs::create_dir(at("folder")).unwrap();
        std::os::unix::fs::symlink(at("good"), at("link")).unwrap();
        rustix::fs::mknodat(rustix::fs::CWD, at("pipe").as_path(), FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();

        assert_eq!(read(&at("good")).unwrap(), "Do it.\n");
        for (name, named) in [
            ("missing", "No such file"),
            ("empty", "the brief is empty"),
            ("latin", "not UTF-8"),
            ("long", "more than"),
            ("folder", "no regular file"),
            ("link", "cannot be read"),
            ("pipe", "no regular file"),
        ] {
            let failure = read(&at(name)).unwrap_err();
            assert_eq!(failure.code, FailureCode::InvalidParams, "{name}");
            assert!(failure.message.contains(named), "{name}: {}", failure.message);
        }
    }
}
