//! Starts processes: the one place where std's and tokio's `Command` are allowed.
//!
//! What holds for every child: an absolute program (never looked up in `PATH` or the child's directory), an absolute
//! working directory, an environment that went through [`super::environment`], no inherited standard stream
//! ([`Invocation::attend`] apart), no other
//! descriptor (see [`super::descriptors`]), and a process group of its own. There is no `pre_exec`: with one, std has
//! to fork, which copies the page tables of a large process, instead of `posix_spawn`.
//!
//! Signals: std restores `SIGPIPE`. What else a host was started with is undone before it starts anything
//! ([`super::signals`]).

use std::ffi::OsString;
use std::io;
use std::process::{ExitStatus, Stdio};

use std::os::unix::process::CommandExt as _;

use pactify_core::AbsPath;
use pactify_core::path::AbsPathError;
use rustix::process::Pid;
use tokio::process::{ChildStderr, ChildStdin, ChildStdout};

use super::environment::ChildEnv;
use super::identity::ProcessIdentity;
use super::reap::{self, Registration, Role};

/// A program with everything it is started with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Invocation {
    program: AbsPath,
    arguments: Vec<OsString>,
    directory: AbsPath,
    environment: ChildEnv,
}

/// A running child with pipes, owned by the tokio program that started it.
///
/// Dropping it neither ends nor waits for the process: a job's processes end by a sweep.
#[derive(Debug)]
pub struct Child {
    inner: tokio::process::Child,
    identity: ProcessIdentity,
    registration: Option<Registration>,
}

/// Our ends of a child's standard streams.
#[derive(Debug)]
pub struct Pipes {
    /// The child reads what is written here. Drop it to let the child see the end.
    pub stdin: ChildStdin,
    /// What the child writes to its standard output. Ends when the last process that inherited it closes it.
    pub stdout: ChildStdout,
    /// What the child writes to its standard error.
    pub stderr: ChildStderr,
}

/// Why a program was not started.
#[derive(Debug, thiserror::Error)]
pub enum SpawnError {
    /// A path that cannot be started from.
    #[error("cannot start anything from this path")]
    Path(#[from] AbsPathError),
    /// The working directory is not there, which the kernel would report as if the program were missing.
    #[error("cannot start {program} in {directory}")]
    Directory {
        /// What was to be started.
        program: AbsPath,
        /// Where.
        directory: AbsPath,
        /// The kernel's answer.
        source: io::Error,
    },
    /// A host ended before it was detached.
    #[error("the host ended at once ({status}); its log says why")]
    HostEnded {
        /// How.
        status: ExitStatus,
    },
    /// The kernel refused.
    #[error("cannot start {program}")]
    Start {
        /// What was to be started.
        program: AbsPath,
        /// The kernel's answer.
        source: io::Error,
    },
}

impl Invocation {
    /// A program to be started in `directory`.
    #[must_use]
    pub fn new(program: AbsPath, directory: AbsPath, environment: ChildEnv) -> Self {
        Self { program, arguments: Vec::new(), directory, environment }
    }

    /// Adds an argument.
    #[must_use]
    pub fn arg(mut self, argument: impl Into<OsString>) -> Self {
        self.arguments.push(argument.into());
        self
    }

    /// Adds arguments.
    #[must_use]
    pub fn args(mut self, arguments: impl IntoIterator<Item = impl Into<OsString>>) -> Self {
        self.arguments.extend(arguments.into_iter().map(Into::into));
        self
    }

    /// The program.
    #[must_use]
    pub fn program(&self) -> &AbsPath {
        &self.program
    }

    /// The arguments, without the program's name.
    #[must_use]
    pub fn arguments(&self) -> &[OsString] {
        &self.arguments
    }

    /// Starts it as part of a job, in its own process group, with three pipes. Must be called within a tokio runtime.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn start(&self) -> Result<(Child, Pipes), SpawnError> {
        let mut command = self.command();
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0);
        let mut command = tokio::process::Command::from(command);
        let started = reap::register(Role::Job, || command.spawn(), |child| pid(child.id()));
        let (mut inner, registration) = started.map_err(|source| self.refused(source))?;
        // The child is not waited for yet, so its pid is its own and its entry in /proc stays.
        let identity = pid(inner.id()).and_then(ProcessIdentity::of);
        match take_pipes(&mut inner).and_then(|pipes| Ok((identity?, pipes))) {
            Ok((identity, pipes)) => Ok((Child { inner, identity, registration: Some(registration) }, pipes)),
            Err(source) => {
                // Nobody could ever end a child that cannot be named.
                let _ = inner.start_kill();
                Err(self.refused(source))
            }
        }
    }

    /// Runs it with this process's own terminal and in its group, for as long as it takes: a program that talks to the
    /// person, who asked for it. Nothing else inherits a standard stream.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn attend(&self) -> Result<ExitStatus, SpawnError> {
        let set_up = |command: &mut std::process::Command| {
            command.stdin(Stdio::inherit()).stdout(Stdio::inherit()).stderr(Stdio::inherit());
        };
        let (mut child, _registration) = self.start_blocking(Role::Tool, set_up)?;
        child.wait().map_err(|source| self.refused(source))
    }

    /// Starts it with standard streams of the caller's choice. The caller waits.
    pub(super) fn start_blocking(
        &self,
        role: Role,
        set_up: impl FnOnce(&mut std::process::Command),
    ) -> Result<(std::process::Child, Registration), SpawnError> {
        let mut command = self.command();
        set_up(&mut command);
        reap::register(role, || command.spawn(), |child| pid(Some(child.id()))).map_err(|source| self.refused(source))
    }

    #[expect(clippy::disallowed_methods, reason = "this is the one place that starts processes")]
    fn command(&self) -> std::process::Command {
        let mut command = std::process::Command::new(self.program.as_path());
        command.args(&self.arguments).current_dir(self.directory.as_path());
        command.env_clear().envs(self.environment.variables());
        command
    }

    fn refused(&self, source: io::Error) -> SpawnError {
        let (program, directory) = (self.program.clone(), self.directory.clone());
        match std::fs::metadata(directory.as_path()) {
            Ok(metadata) if metadata.is_dir() => SpawnError::Start { program, source },
            Ok(_) => SpawnError::Directory { program, directory, source: rustix::io::Errno::NOTDIR.into() },
            Err(source) => SpawnError::Directory { program, directory, source },
        }
    }
}

impl Child {
    /// Which process it is.
    #[must_use]
    pub fn identity(&self) -> &ProcessIdentity {
        &self.identity
    }

    /// Waits for the process itself, not for what it started. Can be cancelled and called again.
    ///
    /// # Errors
    /// When the status cannot be had.
    pub async fn wait(&mut self) -> io::Result<ExitStatus> {
        let status = self.inner.wait().await?;
        self.registration = None;
        Ok(status)
    }
}

fn take_pipes(child: &mut tokio::process::Child) -> io::Result<Pipes> {
    match (child.stdin.take(), child.stdout.take(), child.stderr.take()) {
        (Some(stdin), Some(stdout), Some(stderr)) => Ok(Pipes { stdin, stdout, stderr }),
        _ => Err(io::Error::other("a standard stream is not a pipe")),
    }
}

fn pid(id: Option<u32>) -> io::Result<Pid> {
    let raw = id.and_then(|id| i32::try_from(id).ok());
    raw.and_then(Pid::from_raw).ok_or_else(|| io::Error::other("the child has no pid"))
}
