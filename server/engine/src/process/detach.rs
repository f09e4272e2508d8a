//! Starting a host, and becoming one.
//!
//! A host is our own binary again, in a session of its own, holding the job's lock. The starter hands it the lock as
//! standard input, since a lock on an open file is kept by whoever has the file open: there is no moment at which
//! nobody holds it. The host detaches itself ([`become_host`]); doing it between fork and exec would need `pre_exec`
//! (see [`super::spawn`]). Until it has, whatever ends the starter's process group ends it too, so the starter waits:
//! the host's standard output is a pipe into which it says so. What a host then does is `host`'s business.

use std::ffi::OsString;
use std::fs::{File, OpenOptions};
use std::io::{self, Read as _};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use std::os::unix::process::CommandExt as _;

use pactify_core::AbsPath;
use rustix::fs::Mode;
use rustix::process::Pid;

use crate::env::Env;

use super::descriptors;
use super::environment::ChildEnv;
use super::identity::ProcessIdentity;
use super::reap::{Registration, Role};
use super::run;
use super::signals;
use super::spawn::{Invocation, SpawnError};

/// Leads to the binary that runs, even after a new version was installed over it: an old server starts old hosts.
const OWN_BINARY: &str = "/proc/self/exe";

/// What a host says when it is detached.
const DETACHED: &[u8] = b"d";

/// How long a host may take to detach. It is the first thing it does.
const DETACHED_WITHIN: Duration = Duration::from_secs(30);

/// Hosts started by this process that may still have to be waited for.
static HOSTS: Mutex<Vec<(std::process::Child, Registration)>> = Mutex::new(Vec::new());

/// What a host is started with.
#[derive(Debug)]
pub struct HostStart {
    /// The arguments that make our binary a host.
    pub arguments: Vec<OsString>,
    /// The job's lock, held.
    pub lock: File,
    /// Where its standard error goes.
    pub log: File,
}

/// A process that has detached itself.
#[derive(Debug)]
pub struct Detached {
    /// The job's lock, as handed over.
    pub lock: File,
}

/// Why a process could not become a host.
#[derive(Debug, thiserror::Error)]
pub enum DetachError {
    /// It is the leader of a process group, hence cannot lead a session: it wasn't started as a host.
    #[error("cannot start a session: hosts are started by pactify itself")]
    Session(#[source] io::Error),
    /// Standard input is not a lock.
    #[error("standard input is not a job's lock: hosts are started by pactify itself")]
    Lock,
    /// A system call failed.
    #[error("cannot detach: {step}")]
    System {
        /// What was tried.
        step: &'static str,
        /// The kernel's answer.
        source: io::Error,
    },
}

/// Marks what an editor left open in this process close-on-exec. The first thing each of our programs does.
///
/// # Errors
/// When `/proc` cannot be read.
pub fn seal_descriptors() -> io::Result<()> {
    descriptors::seal()
}

/// Starts a host, waits until it has detached itself (some milliseconds), and lets go of it. Returns which process it
/// is.
///
/// The host inherits our whole environment: it is ourselves, later, and needs the same directories and logins. The
/// filter is for harnesses.
///
/// # Errors
/// When the kernel refuses, `/proc` is not there, or the host ends before it is detached; its log then says why.
pub fn spawn_host(env: &Env, start: HostStart) -> Result<ProcessIdentity, SpawnError> {
    reap_hosts();
    let HostStart { arguments, lock, log } = start;
    let program = AbsPath::new(OWN_BINARY)?;
    let failed = |source| SpawnError::Start { program: program.clone(), source };
    let environment = ChildEnv::inherit(env.variables());
    let invocation = Invocation::new(program.clone(), AbsPath::new("/")?, environment).args(arguments);
    let (mut detached, until_detached) = io::pipe().map_err(failed)?;
    let (mut host, registration) = invocation.start_blocking(Role::Host, |command| {
        // No process group of its own: the leader of a group cannot start a session.
        command.arg0("pactify-host").stdin(lock).stdout(until_detached).stderr(log);
    })?;
    let pid = i32::try_from(host.id()).ok().and_then(Pid::from_raw);
    let identity = pid.ok_or_else(|| io::Error::other("the host has no pid")).and_then(ProcessIdentity::of);
    if !run::wait_readable(&detached, DETACHED_WITHIN).map_err(failed)? {
        let _ = host.kill();
        return Err(failed(io::ErrorKind::TimedOut.into()));
    }
    if detached.read(&mut [0]).map_err(failed)? == 0 {
        let status = host.wait().map_err(failed)?;
        return Err(SpawnError::HostEnded { status });
    }
    HOSTS.lock().unwrap_or_else(PoisonError::into_inner).push((host, registration));
    identity.map_err(failed)
}

/// Collects the hosts of this process that have ended. Without it they stay zombies until the next start of a host.
pub fn reap_hosts() {
    let mut hosts = HOSTS.lock().unwrap_or_else(PoisonError::into_inner);
    hosts.retain_mut(|(host, _)| matches!(host.try_wait(), Ok(None)));
}

/// Turns this process, started by [`spawn_host`], into a host. The first thing a host does, before any thread or
/// runtime.
///
/// Afterwards it leads its own session, adopts the orphans of everything below it, blocks no signal, creates files for
/// its user only, and has the null device as standard input and output. Standard error is the log.
///
/// # Errors
/// When it was not started as a host, or a system call fails.
pub fn become_host() -> Result<Detached, DetachError> {
    let system = |step| move |source: io::Error| DetachError::System { step, source };
    rustix::process::setsid().map_err(|error| DetachError::Session(error.into()))?;
    // Any pid but none: the kernel takes zero for "off".
    rustix::process::set_child_subreaper(Some(rustix::process::getpid()))
        .map_err(|error| system("adopt orphans")(error.into()))?;
    signals::unblock().map_err(system("let signals through"))?;
    let lock = take_lock()?;
    let null = OpenOptions::new().read(true).write(true).open("/dev/null").map_err(system("open /dev/null"))?;
    rustix::stdio::dup2_stdin(&null).map_err(|error| system("replace standard input")(error.into()))?;
    descriptors::seal().map_err(system("seal inherited descriptors"))?;
    rustix::process::umask(Mode::RWXG | Mode::RWXO);
    rustix::thread::set_name(c"pactify-host").map_err(|error| system("set the process name")(error.into()))?;
    rustix::io::write(rustix::stdio::stdout(), DETACHED).map_err(|error| system("tell the starter")(error.into()))?;
    rustix::stdio::dup2_stdout(&null).map_err(|error| system("replace standard output")(error.into()))?;
    Ok(Detached { lock })
}

impl Detached {
    /// Makes `SIGHUP` mean nothing, and nothing more of what the starter ignored, in this process alone. Must be called
    /// within a tokio runtime, before anything is started.
    ///
    /// They are handled, not ignored: an ignored signal would stay ignored in the harness ([`signals`]).
    ///
    /// # Errors
    /// When the handler cannot be installed, or `/proc` is not there.
    pub fn ignore_hangup(&self) -> io::Result<()> {
        // tokio never takes a handler away again, so the stream of signals need not be kept.
        tokio::signal::unix::signal(tokio::signal::unix::SignalKind::hangup()).map(drop)?;
        signals::handle_ignored()
    }
}

fn take_lock() -> Result<File, DetachError> {
    let lock = rustix::io::fcntl_dupfd_cloexec(rustix::stdio::stdin(), 3).map_err(|_| DetachError::Lock)?;
    let lock = File::from(lock);
    match lock.metadata() {
        Ok(metadata) if metadata.is_file() => Ok(lock),
        _ => Err(DetachError::Lock),
    }
}
