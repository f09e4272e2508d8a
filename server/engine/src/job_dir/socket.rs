//! The host's control socket: bound and reached through the job directory's descriptor.
//!
//! A socket's path is limited to about 100 bytes; `/proc/self/fd/<directory>/host.sock` always fits. The directory is
//! 0700 and the socket 0600, and each side checks the other's user. What is said over it is the host's business.

use std::io;
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;

use pactify_core::{AbsPath, Failure, FailureCode};
use rustix::fs::{AtFlags, FileType, Mode};

use super::{JobDir, JobLock, names};
use crate::disk::{DiskError, Kind};

/// Why a control socket cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum SocketError {
    /// Nobody listens: the host is gone, or does not listen yet.
    #[error("no host listens at {path}")]
    NobodyListens {
        /// The socket.
        path: AbsPath,
    },
    /// The process at the other end belongs to somebody else.
    #[error("the peer at {path} belongs to user {uid}")]
    ForeignPeer {
        /// The socket.
        path: AbsPath,
        /// Whose process it is.
        uid: u32,
    },
    /// Anything else.
    #[error(transparent)]
    Disk(#[from] DiskError),
}

/// Listens at the job's socket. Only the lock holder may: one that a dead host left is removed first.
pub fn bind(lock: &JobLock) -> Result<UnixListener, SocketError> {
    let job = lock.job();
    if let Some(kind) = kind(job)? {
        if kind != Kind::Socket {
            return Err(DiskError::WrongKind { path: job.socket(), expected: Kind::Socket, found: kind }.into());
        }
        job.dir().remove(names::SOCKET)?;
    }
    let failed = |source| DiskError::from_io(job.socket(), "listen at", source);
    let listener = UnixListener::bind(proc_path(job)).map_err(failed)?;
    rustix::fs::chmodat(job.dir(), names::SOCKET, Mode::RUSR | Mode::WUSR, AtFlags::empty())
        .map_err(|errno| failed(errno.into()))?;
    Ok(listener)
}

/// Connects to the job's host.
pub fn connect(job: &JobDir) -> Result<UnixStream, SocketError> {
    match kind(job)? {
        None => return Err(SocketError::NobodyListens { path: job.socket() }),
        Some(Kind::Socket) => {}
        Some(found) => {
            return Err(DiskError::WrongKind { path: job.socket(), expected: Kind::Socket, found }.into());
        }
    }
    let stream = UnixStream::connect(proc_path(job)).map_err(|source| match source.kind() {
        io::ErrorKind::ConnectionRefused | io::ErrorKind::NotFound => SocketError::NobodyListens { path: job.socket() },
        _ => DiskError::from_io(job.socket(), "connect to", source).into(),
    })?;
    check_peer(job, &stream)?;
    Ok(stream)
}

/// Refuses a peer of another user; the host asks it of every connection it accepts.
pub fn check_peer(job: &JobDir, stream: impl AsFd) -> Result<(), SocketError> {
    let peer = rustix::net::sockopt::socket_peercred(stream)
        .map_err(|errno| DiskError::io(job.socket(), "ask for the peer of", errno))?;
    if peer.uid == rustix::process::geteuid() {
        Ok(())
    } else {
        Err(SocketError::ForeignPeer { path: job.socket(), uid: peer.uid.as_raw() })
    }
}

fn kind(job: &JobDir) -> Result<Option<Kind>, DiskError> {
    Ok(job.dir().lookup(names::SOCKET)?.map(|stat| Kind::of(FileType::from_raw_mode(stat.st_mode))))
}

fn proc_path(job: &JobDir) -> PathBuf {
    PathBuf::from(format!("/proc/self/fd/{}/{}", job.dir().as_fd().as_raw_fd(), names::SOCKET))
}

impl From<SocketError> for Failure {
    fn from(error: SocketError) -> Self {
        let text = error.to_string();
        match error {
            SocketError::NobodyListens { .. } => {
                Self::new(FailureCode::HostUnreachable, text, "ask for the job's state: its host may have ended")
            }
            SocketError::ForeignPeer { .. } => {
                Self::new(FailureCode::HostUnreachable, text, "find out who runs a process in your PACTIFY_HOME")
            }
            SocketError::Disk(error) => error.into(),
        }
    }
}
