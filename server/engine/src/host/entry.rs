//! The way into a host and out of it: starting one, becoming one, running its errand.

use std::ffi::OsString;
use std::fs::File;
use std::process::ExitCode;

use pactify_core::brief::Brief;
use pactify_core::job::state::Phase;
use pactify_core::{Failure, JobId};

use super::error::HostError;
use super::turn::Turn;
use super::{Host, attempt, guard, watch};
use crate::causes::with_causes;
use crate::disk::{DiskError, Kind, Open};
use crate::env::Env;
use crate::job_dir::{JobDir, JobLock, names};
use crate::log::{self, Stderr};
use crate::process::detach::{self, HostStart};
use crate::process::{ProcessIdentity, SpawnError};
use crate::store::Store;

/// The first argument that makes our binary a host.
const ARGUMENT: &str = "__host";

/// Where a resume's message is left.
pub(super) const MESSAGE: &str = "message";

/// What a host is started for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Errand {
    /// The job's first run.
    Run,
    /// A further turn, with the message that [`leave_message`] left.
    Resume,
    /// Repairing a job whose host died.
    Recover,
}

/// Starts a host for a job whose lock the caller holds; the host holds it from then on.
pub(crate) fn start(env: &Env, lock: JobLock, errand: Errand) -> Result<ProcessIdentity, StartError> {
    let job = lock.job().clone();
    let log = open_log(&job)?;
    let word = match errand {
        Errand::Run => "run",
        Errand::Resume => "resume",
        Errand::Recover => "recover",
    };
    let arguments = [ARGUMENT, word, job.id().as_str()].map(OsString::from).to_vec();
    Ok(detach::spawn_host(env, HostStart { arguments, lock: lock.into_file(), log })?)
}

/// The host's log. What a job put in its place goes: a repair must not depend on it.
fn open_log(job: &JobDir) -> Result<File, DiskError> {
    match job.dir().file(names::HOST_LOG, Open::AppendOrCreate) {
        Err(DiskError::WrongKind { found, .. }) => {
            if found == Kind::Directory {
                let aside = format!("{}.directory", names::HOST_LOG);
                job.dir().rename_new(names::HOST_LOG, job.dir(), &aside)?;
            } else {
                job.dir().remove(names::HOST_LOG)?;
            }
            job.dir().file(names::HOST_LOG, Open::AppendOrCreate)
        }
        opened => opened,
    }
}

/// Leaves what a resumed session is told, for the host that is started next.
pub(crate) fn leave_message(lock: &JobLock, message: &Brief) -> Result<(), DiskError> {
    lock.job().dir().replace(MESSAGE, message.as_str().as_bytes(), true)
}

/// Why no host was started.
#[derive(Debug, thiserror::Error)]
pub(crate) enum StartError {
    #[error("cannot open the host's log")]
    Log(#[from] DiskError),
    #[error("cannot start the host")]
    Spawn(#[from] SpawnError),
}

impl From<StartError> for Failure {
    fn from(error: StartError) -> Self {
        Self::internal(with_causes(&error))
    }
}

/// Runs this process as a host if that is what its arguments say. Call it first, before any thread or runtime.
///
/// Returns the exit code of a host, `None` for any other process.
pub fn reenter(arguments: &[OsString]) -> Option<ExitCode> {
    let [first, rest @ ..] = arguments else { return None };
    if first != ARGUMENT {
        return None;
    }
    match enter(rest) {
        Ok(()) => Some(ExitCode::SUCCESS),
        Err(error) => {
            tracing::error!(error = with_causes(&error), "the host ends early");
            Some(ExitCode::from(70))
        }
    }
}

fn enter(arguments: &[OsString]) -> Result<(), HostError> {
    let detached = detach::become_host()?;
    let (errand, id) = parse(arguments).ok_or_else(|| HostError::Arguments(arguments.to_vec()))?;
    let env = Env::from_process()?;
    // Its standard error is the job's own log.
    log::start(&env, "host", Stderr::Shown);
    let store = Store::open(env.directories().pactify_home())?;
    let job = store.job(&id)?;
    let lock = JobLock::from_file(&job, detached.lock.try_clone().map_err(HostError::SetUp)?)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(HostError::SetUp)?;
    let outcome = runtime.block_on(async {
        detached.ignore_hangup().map_err(HostError::SetUp)?;
        live(env, store, lock, errand).await
    });
    // A blocking step that hangs in the kernel must not keep the process.
    runtime.shutdown_background();
    outcome
}

fn parse(arguments: &[OsString]) -> Option<(Errand, JobId)> {
    let [word, id] = arguments else { return None };
    let errand = match word.to_str()? {
        "run" => Errand::Run,
        "resume" => Errand::Resume,
        "recover" => Errand::Recover,
        _ => return None,
    };
    Some((errand, id.to_str()?.parse().ok()?))
}

/// Whether the end of a finished attempt left something that a recovery does.
fn is_left_to_do(host: &Host) -> bool {
    host.state().is_survived() || host.state().is_to_capture()
}

async fn live(env: Env, store: Store, lock: JobLock, errand: Errand) -> Result<(), HostError> {
    let mut host = Host::open(env, store, lock)?;
    match (host.listen(), errand) {
        // Whatever stands in the socket's place, or however full the disk is: a repair goes on, unheard.
        (Err(error), Errand::Recover) => {
            tracing::warn!(error = with_causes(&error), "nobody can ask for the end of the repair");
        }
        (listening, _) => listening?,
    }
    match errand {
        Errand::Run => attempt::run(&mut host, Turn::First).await?,
        Errand::Resume => {
            let message = host.message()?;
            attempt::run(&mut host, Turn::Further(message)).await?;
        }
        // Somebody else looked after it since it was seen to be lost.
        Errand::Recover if host.phase() == Phase::Finished && !is_left_to_do(&host) => return Ok(()),
        Errand::Recover => attempt::recover(&mut host).await?,
    }
    watch::forget(&host);
    guard::forget(&host);
    host.tidy();
    Ok(())
}
