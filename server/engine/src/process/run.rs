//! Runs a program to its end and returns what it said: for git, probes and verification.
//!
//! Blocking and single-threaded: one `poll` over the child's pidfd and its pipes, so neither a full pipe, nor a child
//! that doesn't read its input, nor a grandchild that keeps a pipe open can hang it. A run leaves nothing behind in its
//! process group, whether it ends, exceeds its output limit or reaches its deadline. What leaves the group is not
//! followed: for programs that are part of a job, a sweep of the job's tree comes after ([`super::tree`]).

use std::io::{self, Read, Write as _};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::process::CommandExt as _;
use std::process::{ChildStdin, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use pactify_core::AbsPath;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal, kill_process_group, pidfd_open};

use super::reap::Role;
use super::spawn::{Invocation, SpawnError};

/// How long a killed child may take to disappear; longer means it sits in the kernel.
const KILLED_WITHIN: Duration = Duration::from_secs(30);

/// The bounds of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// The longest it may take.
    pub deadline: Duration,
    /// The most bytes kept of each stream.
    pub bytes: usize,
    /// What happens to a program that writes more to its standard output.
    pub overflow: Overflow,
}

/// What happens when standard output exceeds its limit. Standard error is always cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Overflow {
    /// The run ends and fails: half an answer is worse than none.
    Fail,
    /// The rest is read and thrown away.
    Cut,
}

/// What a program said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Output {
    /// How it ended.
    pub status: ExitStatus,
    /// Its standard output.
    pub stdout: Captured,
    /// Its standard error.
    pub stderr: Captured,
}

/// The beginning of a stream, up to the limit.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Captured {
    /// The bytes kept.
    pub bytes: Vec<u8>,
    /// How many more there were.
    pub cut: u64,
}

/// Why a run has no [`Output`].
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// It didn't start.
    #[error(transparent)]
    Spawn(#[from] SpawnError),
    /// It took too long and was ended.
    #[error("{program} did not finish within {deadline:?}")]
    Deadline {
        /// The program.
        program: AbsPath,
        /// The time it had.
        deadline: Duration,
        /// The beginning of what it wrote to standard error.
        stderr: Vec<u8>,
    },
    /// It wrote more than it may and was ended.
    #[error("{program} wrote more than {limit} bytes")]
    Overflow {
        /// The program.
        program: AbsPath,
        /// The limit.
        limit: usize,
    },
    /// It was killed and is still there: the kernel holds it, for example in a hung file system.
    #[error("{program} (pid {pid}) was killed and does not end")]
    Stuck {
        /// The program.
        program: AbsPath,
        /// Its pid.
        pid: i32,
    },
    /// Talking to it failed.
    #[error("cannot communicate with {program}")]
    Io {
        /// The program.
        program: AbsPath,
        /// The kernel's answer.
        source: io::Error,
    },
}

impl Output {
    /// Whether the program reported success.
    #[must_use]
    pub fn success(&self) -> bool {
        self.status.success()
    }
}

impl Invocation {
    /// Runs the program to its end, with `input` as its standard input.
    ///
    /// # Errors
    /// When it cannot be started, takes too long, or says too much. Its exit status is not an error here.
    pub fn run(&self, input: &[u8], limits: &Limits) -> Result<Output, RunError> {
        let (mut child, registration) = self.start_blocking(Role::Tool, |command| {
            let stdin = if input.is_empty() { Stdio::null() } else { Stdio::piped() };
            command.stdin(stdin).stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0);
        })?;
        let program = || self.program().clone();
        let io_error = |source: io::Error| RunError::Io { program: program(), source };
        let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw).ok_or_else(|| io_error(Errno::SRCH.into()))?;

        // Ends the group even if what follows fails or panics; the group's number stays ours until the leader is
        // waited for.
        let group = Group(pid);
        let pidfd = pidfd_open(pid, PidfdFlags::empty()).map_err(|error| io_error(error.into()))?;
        let mut talk = Conversation {
            input,
            stdin: child.stdin.take(),
            stdout: Stream::open(child.stdout.take(), limits.bytes).map_err(io_error)?,
            stderr: Stream::open(child.stderr.take(), limits.bytes).map_err(io_error)?,
        };
        if let Some(stdin) = &talk.stdin {
            rustix::io::ioctl_fionbio(stdin, true).map_err(|error| io_error(error.into()))?;
        }
        let end = talk.hold(&pidfd, limits).map_err(io_error)?;
        drop(group);

        if !wait_readable(&pidfd, KILLED_WITHIN).map_err(io_error)? {
            return Err(RunError::Stuck { program: program(), pid: pid.as_raw_nonzero().get() });
        }
        talk.drain().map_err(io_error)?;
        let status = child.wait().map_err(io_error)?;
        drop(registration);
        match end {
            End::Exited if limits.overflow == Overflow::Fail && talk.stdout.captured.cut > 0 => {
                Err(RunError::Overflow { program: program(), limit: limits.bytes })
            }
            End::Exited => Ok(Output { status, stdout: talk.stdout.captured, stderr: talk.stderr.captured }),
            End::Overflow => Err(RunError::Overflow { program: program(), limit: limits.bytes }),
            End::Deadline => Err(RunError::Deadline {
                program: program(),
                deadline: limits.deadline,
                stderr: talk.stderr.captured.bytes,
            }),
        }
    }
}

/// A process group that ends when this value does. Its leader must not have been waited for.
struct Group(Pid);

impl Drop for Group {
    fn drop(&mut self) {
        // ESRCH: everybody has left. EPERM: a member took another user's identity; the leader's status tells the rest.
        let _ = kill_process_group(self.0, Signal::KILL);
    }
}

enum End {
    Exited,
    Overflow,
    Deadline,
}

struct Conversation<'a> {
    input: &'a [u8],
    stdin: Option<ChildStdin>,
    stdout: Stream,
    stderr: Stream,
}

impl Conversation<'_> {
    /// Writes and reads until the child ends or a limit is reached.
    fn hold(&mut self, pidfd: &OwnedFd, limits: &Limits) -> io::Result<End> {
        let deadline = Instant::now() + limits.deadline;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            if self.wait_for_news(pidfd, left)? {
                return Ok(End::Exited);
            }
            // Only now: a child that ended while we did not run was in time.
            if left.is_zero() {
                return Ok(End::Deadline);
            }
            self.write()?;
            self.stdout.read()?;
            self.stderr.read()?;
            if limits.overflow == Overflow::Fail && self.stdout.captured.cut > 0 {
                return Ok(End::Overflow);
            }
        }
    }

    /// Waits until something can be read or written; says whether the child has ended.
    fn wait_for_news(&self, pidfd: &OwnedFd, left: Duration) -> io::Result<bool> {
        let mut fds = vec![PollFd::new(pidfd, PollFlags::IN)];
        fds.extend(
            self.stdout
                .pipe()
                .into_iter()
                .chain(self.stderr.pipe())
                .map(|pipe| PollFd::from_borrowed_fd(pipe, PollFlags::IN)),
        );
        fds.extend(self.stdin.as_ref().map(|stdin| PollFd::new(stdin, PollFlags::OUT)));
        poll_for(&mut fds, left)?;
        Ok(!fds[0].revents().is_empty())
    }

    fn write(&mut self) -> io::Result<()> {
        let Some(stdin) = &mut self.stdin else { return Ok(()) };
        match stdin.write(self.input) {
            Ok(count) => self.input = &self.input[count..],
            Err(error) if is_transient(&error) => return Ok(()),
            // The child doesn't want the rest; whether that is an error is for its exit status to say.
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => self.input = &[],
            Err(error) => return Err(error),
        }
        if self.input.is_empty() {
            self.stdin = None;
        }
        Ok(())
    }

    /// Takes what the ended child left in its pipes: at most what the pipes hold, so that a survivor outside the group
    /// which goes on writing cannot keep us.
    fn drain(&mut self) -> io::Result<()> {
        for stream in [&mut self.stdout, &mut self.stderr] {
            let Some(pipe) = stream.pipe() else { continue };
            let mut left = rustix::pipe::fcntl_getpipe_size(pipe)?;
            while left > 0 {
                match stream.read()? {
                    0 => break,
                    count => left = left.saturating_sub(count),
                }
            }
        }
        Ok(())
    }
}

/// One output stream of the child.
struct Stream {
    pipe: Option<std::fs::File>,
    captured: Captured,
    limit: usize,
}

impl Stream {
    fn open(pipe: Option<impl Into<OwnedFd>>, limit: usize) -> io::Result<Self> {
        let pipe = pipe.map(|pipe| std::fs::File::from(pipe.into()));
        if let Some(pipe) = &pipe {
            rustix::io::ioctl_fionbio(pipe, true)?;
        }
        Ok(Self { pipe, captured: Captured::default(), limit })
    }

    fn pipe(&self) -> Option<BorrowedFd<'_>> {
        self.pipe.as_ref().map(AsFd::as_fd)
    }

    /// Reads once, without waiting; returns how many bytes there were.
    fn read(&mut self) -> io::Result<usize> {
        let Some(pipe) = &mut self.pipe else { return Ok(0) };
        let mut buffer = [0; 64 << 10];
        match pipe.read(&mut buffer) {
            Ok(0) => self.pipe = None,
            Ok(count) => {
                self.captured.take(&buffer[..count], self.limit);
                return Ok(count);
            }
            Err(error) if is_transient(&error) => {}
            Err(error) => return Err(error),
        }
        Ok(0)
    }
}

impl Captured {
    fn take(&mut self, bytes: &[u8], limit: usize) {
        let kept = bytes.len().min(limit.saturating_sub(self.bytes.len()));
        self.bytes.extend_from_slice(&bytes[..kept]);
        self.cut += (bytes.len() - kept) as u64;
    }
}

/// Waits until `fd` is readable: for a pidfd, until its process has ended. False when the time is up.
pub(super) fn wait_readable(fd: impl AsFd, within: Duration) -> io::Result<bool> {
    let deadline = Instant::now() + within;
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        let mut fds = [PollFd::new(&fd, PollFlags::IN)];
        poll_for(&mut fds, left)?;
        if !fds[0].revents().is_empty() {
            return Ok(true);
        }
        if left.is_zero() {
            return Ok(false);
        }
    }
}

pub(super) fn poll_for(fds: &mut [PollFd<'_>], within: Duration) -> io::Result<()> {
    let timeout = Timespec::try_from(within).map_err(|_| io::Error::from(Errno::INVAL))?;
    match poll(fds, Some(&timeout)) {
        Ok(_) | Err(Errno::INTR) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

fn is_transient(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process::EnvPolicy;
    use crate::process::environment::ChildEnv;

    const LIMITS: Limits = Limits { deadline: Duration::from_secs(60), bytes: 1 << 20, overflow: Overflow::Fail };

    fn path(path: &str) -> AbsPath {
        AbsPath::new(path).unwrap()
    }

    fn sh(script: &str) -> Invocation {
        let mut env = ChildEnv::default();
        env.set("PATH", "/usr/bin:/bin");
        Invocation::new(path("/bin/sh"), path("/"), env).args(["-c", script])
    }

    #[test]
    fn says_how_the_program_ended_and_what_it_said() {
        let output = sh("echo out; echo err >&2; exit 3").run(b"", &LIMITS).unwrap();
        assert_eq!(output.status.code(), Some(3));
        assert_eq!((output.stdout.bytes.as_slice(), output.stderr.bytes.as_slice()), (&b"out\n"[..], &b"err\n"[..]));
    }

    #[test]
    fn more_input_and_output_than_the_pipes_hold_pass_through() {
        let input = vec![b'x'; 900_000];
        let output = sh("tee /dev/stderr").run(&input, &LIMITS).unwrap();
        assert!(output.stdout.bytes == input && output.stderr.bytes == input);
    }

    #[test]
    fn a_program_need_not_read_its_input() {
        assert!(sh("exit 0").run(&vec![0; 1 << 20], &LIMITS).unwrap().success());
    }

    #[test]
    fn a_deadline_ends_the_whole_group_and_keeps_the_last_words() {
        let stubborn = sh("trap '' TERM INT; echo stuck >&2; sleep 600 & wait; sleep 600");
        let mut said = Vec::new();
        // As long as it takes to say something.
        for deadline in [300, 3_000, 30_000].map(Duration::from_millis) {
            let error = stubborn.run(b"", &Limits { deadline, ..LIMITS }).unwrap_err();
            assert_eq!(error.to_string(), format!("/bin/sh did not finish within {deadline:?}"));
            let RunError::Deadline { stderr, .. } = error else { panic!("{error:?}") };
            said = stderr;
            if !said.is_empty() {
                break;
            }
        }
        assert_eq!(said, b"stuck\n");
    }

    #[test]
    fn a_grandchild_that_keeps_the_pipes_open_does_not_hang_the_run() {
        let output = sh("sleep 600 & echo $!").run(b"", &LIMITS).unwrap();
        let pid = String::from_utf8(output.stdout.bytes).unwrap().trim().parse().unwrap();
        let gone = pidfd_open(Pid::from_raw(pid).unwrap(), PidfdFlags::empty());
        assert!(
            gone.is_err() || wait_readable(gone.unwrap(), KILLED_WITHIN).unwrap(),
            "it left its group's child behind"
        );
    }

    #[test]
    fn too_much_output_fails_or_is_cut() {
        let endless = sh("yes");
        let limits = Limits { bytes: 1000, ..LIMITS };
        assert!(matches!(endless.run(b"", &limits), Err(RunError::Overflow { limit: 1000, .. })));

        let output = sh("head -c 5000 /dev/zero").run(b"", &Limits { overflow: Overflow::Cut, ..limits }).unwrap();
        assert_eq!((output.stdout.bytes.len(), output.stdout.cut), (1000, 4000));
    }

    #[test]
    fn a_missing_program_and_a_missing_directory_are_told_apart() {
        let start = |program: &str, directory: &str| {
            let env = EnvPolicy::git().filter(&Default::default());
            Invocation::new(path(program), path(directory), env).run(b"", &LIMITS).unwrap_err().to_string()
        };
        assert_eq!(start("/no/such/program", "/"), "cannot start /no/such/program");
        assert_eq!(start("/bin/sh", "/no/such/directory"), "cannot start /bin/sh in /no/such/directory");
    }
}
