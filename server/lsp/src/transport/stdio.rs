//! The two ends of the session: standard input and output, taken so that nothing else can use them.
//!
//! Owns: claiming the descriptors and reading and writing them by their kind. Pipes and sockets, which is what editors
//! give, are polled; anything else (a file, a terminal) goes through tokio's blocking pool. After [`claim`] a stray
//! print lands on standard error and a stray read sees the end of input, so neither can corrupt the framing.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream as StdUnixStream;

use rustix::fs::{FileType, Mode, OFlags};
use tokio::io::unix::AsyncFd;
use tokio::io::{AsyncReadExt, AsyncWriteExt, Interest};
use tokio::net::{UnixStream, unix::pipe};

/// Takes descriptors 0 and 1 for the session. What remains under these numbers is `/dev/null` and standard error.
/// Call it once, inside a tokio runtime, before anything could print.
pub fn claim() -> io::Result<(Input, Output)> {
    let input = rustix::io::fcntl_dupfd_cloexec(rustix::stdio::stdin(), 3)?;
    let output = rustix::io::fcntl_dupfd_cloexec(rustix::stdio::stdout(), 3)?;
    let null = rustix::fs::open("/dev/null", OFlags::RDWR | OFlags::CLOEXEC, Mode::empty())?;
    rustix::stdio::dup2_stdin(&null)?;
    // An editor may have closed standard error.
    if rustix::stdio::dup2_stdout(rustix::stdio::stderr()).is_err() {
        rustix::stdio::dup2_stdout(&null)?;
    }
    Ok((Input::new(input)?, Output::new(output)?))
}

/// Where the client's bytes come from.
#[derive(Debug)]
pub struct Input(Source);

#[derive(Debug)]
enum Source {
    Pipe(pipe::Receiver),
    Socket(UnixStream),
    Blocking(tokio::fs::File),
}

impl Input {
    /// Reads from `fd` in the way its kind allows.
    pub fn new(fd: OwnedFd) -> io::Result<Self> {
        Ok(Self(match Kind::of(&fd)? {
            Kind::Pipe => Source::Pipe(pipe::Receiver::from_file(File::from(fd))?),
            Kind::Socket => Source::Socket(unix_stream(fd)?),
            Kind::Other => Source::Blocking(File::from(fd).into()),
        }))
    }

    /// Reads once; 0 is the end. Nothing is lost when the future is dropped.
    pub(super) async fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match &mut self.0 {
            Source::Pipe(pipe) => pipe.read(buffer).await,
            Source::Socket(socket) => socket.read(buffer).await,
            Source::Blocking(file) => file.read(buffer).await,
        }
    }

    /// Waits until the other side has closed, although unread bytes may remain. Never completes where the kernel
    /// can't tell.
    pub(super) async fn hung_up(&self) {
        if let Some(fd) = self.pollable()
            && wait_for_hangup(fd).await.is_ok()
        {
            return;
        }
        std::future::pending().await
    }

    fn pollable(&self) -> Option<BorrowedFd<'_>> {
        match &self.0 {
            Source::Pipe(pipe) => Some(pipe.as_fd()),
            Source::Socket(socket) => Some(socket.as_fd()),
            Source::Blocking(_) => None,
        }
    }
}

/// Where our bytes go.
#[derive(Debug)]
pub struct Output(Sink);

#[derive(Debug)]
enum Sink {
    Pipe(pipe::Sender),
    Socket(UnixStream),
    Blocking(tokio::fs::File),
}

impl Output {
    /// Writes to `fd` in the way its kind allows.
    pub fn new(fd: OwnedFd) -> io::Result<Self> {
        Ok(Self(match Kind::of(&fd)? {
            Kind::Pipe => Sink::Pipe(pipe::Sender::from_file(File::from(fd))?),
            Kind::Socket => Sink::Socket(unix_stream(fd)?),
            Kind::Other => Sink::Blocking(File::from(fd).into()),
        }))
    }

    pub(super) async fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        match &mut self.0 {
            Sink::Pipe(pipe) => pipe.write_all(bytes).await,
            Sink::Socket(socket) => socket.write_all(bytes).await,
            Sink::Blocking(file) => {
                file.write_all(bytes).await?;
                file.flush().await
            }
        }
    }
}

enum Kind {
    Pipe,
    Socket,
    Other,
}

impl Kind {
    fn of(fd: &OwnedFd) -> io::Result<Self> {
        Ok(match FileType::from_raw_mode(rustix::fs::fstat(fd)?.st_mode) {
            FileType::Fifo => Kind::Pipe,
            FileType::Socket if rustix::net::sockopt::socket_domain(fd)? == rustix::net::AddressFamily::UNIX => {
                Kind::Socket
            }
            _ => Kind::Other,
        })
    }
}

fn unix_stream(fd: OwnedFd) -> io::Result<UnixStream> {
    let stream = StdUnixStream::from(fd);
    stream.set_nonblocking(true)?;
    UnixStream::from_std(stream)
}

/// Asking for urgent data only, we are woken by the hang-up and not by bytes that we leave unread on purpose. A
/// descriptor of its own, because one can be registered once only.
async fn wait_for_hangup(fd: BorrowedFd<'_>) -> io::Result<()> {
    let watched = watch(fd.try_clone_to_owned()?, Interest::PRIORITY)?;
    loop {
        let mut guard = watched.ready(Interest::PRIORITY).await?;
        if guard.ready().is_read_closed() {
            return Ok(());
        }
        guard.clear_ready();
    }
}

/// Registers a descriptor that `owner` owns with tokio.
#[expect(deprecated, reason = "sound for a descriptor that is owned; the replacement is unsafe to call")]
pub(crate) fn watch<T: AsRawFd>(owner: T, interest: Interest) -> io::Result<AsyncFd<T>> {
    AsyncFd::with_interest(owner, interest)
}
