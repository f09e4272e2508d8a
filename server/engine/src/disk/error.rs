//! How a file of ours can be out of reach, and what a person can do about it.

use std::fmt;
use std::io;

use pactify_core::{AbsPath, Failure, FailureCode};
use rustix::fs::FileType;
use rustix::io::Errno;

/// Why a file or directory of ours cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum DiskError {
    /// Nothing has that name.
    #[error("{path} does not exist")]
    Missing {
        /// The name.
        path: AbsPath,
    },
    /// The name is taken.
    #[error("{path} exists already")]
    Exists {
        /// The name.
        path: AbsPath,
    },
    /// Something else than expected stands there; it was neither followed nor read.
    #[error("{path} is {found}, not {expected}")]
    WrongKind {
        /// Where.
        path: AbsPath,
        /// What should be there.
        expected: Kind,
        /// What is there.
        found: Kind,
    },
    /// Another file system is mounted there, and may be a job's; it was not asked.
    #[error("another file system is mounted at {path}")]
    Mounted {
        /// Where.
        path: AbsPath,
    },
    /// It belongs to somebody else.
    #[error("{path} belongs to user {uid}")]
    ForeignOwner {
        /// Where.
        path: AbsPath,
        /// Whose it is.
        uid: u32,
    },
    /// It is larger than anything pactify writes there.
    #[error("{path} has more than {limit} bytes")]
    TooLarge {
        /// Where.
        path: AbsPath,
        /// How many bytes would have been read.
        limit: u64,
    },
    /// The disk, the quota or the limit on file sizes is exhausted.
    #[error("no space left to write {path}")]
    NoSpace {
        /// What was being written.
        path: AbsPath,
    },
    /// Anything else that the system says.
    #[error("cannot {action} {path}: {source}")]
    Io {
        /// Where.
        path: AbsPath,
        /// What was being done.
        action: &'static str,
        /// What the system says.
        source: io::Error,
    },
}

/// What can stand at a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "see the Display text of each")]
pub enum Kind {
    File,
    Directory,
    Symlink,
    Fifo,
    Socket,
    Device,
    Other,
}

impl DiskError {
    pub(crate) fn io(path: AbsPath, action: &'static str, errno: Errno) -> Self {
        Self::from_io(path, action, errno.into())
    }

    pub(crate) fn from_io(path: AbsPath, action: &'static str, source: io::Error) -> Self {
        match source.kind() {
            io::ErrorKind::NotFound => Self::Missing { path },
            io::ErrorKind::CrossesDevices => Self::Mounted { path },
            io::ErrorKind::AlreadyExists | io::ErrorKind::DirectoryNotEmpty => Self::Exists { path },
            _ if super::is_no_space(&source) => Self::NoSpace { path },
            _ => Self::Io { path, action, source },
        }
    }
}

impl Kind {
    pub(crate) fn of(file_type: FileType) -> Self {
        match file_type {
            FileType::RegularFile => Self::File,
            FileType::Directory => Self::Directory,
            FileType::Symlink => Self::Symlink,
            FileType::Fifo => Self::Fifo,
            FileType::Socket => Self::Socket,
            FileType::CharacterDevice | FileType::BlockDevice => Self::Device,
            _ => Self::Other,
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::File => "a regular file",
            Self::Directory => "a directory",
            Self::Symlink => "a symbolic link",
            Self::Fifo => "a pipe",
            Self::Socket => "a socket",
            Self::Device => "a device",
            Self::Other => "something unknown",
        })
    }
}

impl From<DiskError> for Failure {
    fn from(error: DiskError) -> Self {
        let (code, next) = match &error {
            DiskError::Missing { .. } => (FailureCode::StoreDamaged, "restore it, or discard the job".to_owned()),
            DiskError::Exists { .. } | DiskError::WrongKind { .. } | DiskError::TooLarge { .. } => {
                (FailureCode::StoreDamaged, "look at what is there, and move it away".to_owned())
            }
            DiskError::Mounted { path } => {
                (FailureCode::StoreDamaged, format!("unmount it (`fusermount3 -u {path}`, or `umount`)"))
            }
            DiskError::ForeignOwner { .. } => (
                FailureCode::StoreUnavailable,
                "run pactify as the user whose files these are, or set PACTIFY_HOME to a directory of your own"
                    .to_owned(),
            ),
            DiskError::NoSpace { .. } => {
                (FailureCode::NoSpace, "free some space, for example by discarding finished jobs".to_owned())
            }
            DiskError::Io { path, .. } => {
                (FailureCode::StoreUnavailable, format!("make sure that you may read and write {path}"))
            }
        };
        Self::new(code, error.to_string(), next)
    }
}
