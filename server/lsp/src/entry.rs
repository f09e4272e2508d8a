//! How both programs begin: as a job's host if they were started as one, else with an environment and a log.

use std::ffi::OsString;
use std::process::ExitCode;

use pactify_engine::env::{Env, EnvError};
use pactify_engine::log::{self, Stderr};
use pactify_engine::process::detach;

/// Runs a job's host, if this process was started as one. To be called before anything else: a host wants none of
/// what a front end sets up.
pub fn become_host() -> Option<ExitCode> {
    let arguments: Vec<OsString> = std::env::args_os().skip(1).collect();
    pactify_engine::host::reenter(&arguments)
}

/// Keeps what the caller left open from our children, reads the environment and starts the log of `program`.
///
/// # Errors
/// When there is no home directory, or `PACTIFY_HOME` is unusable.
pub fn begin(program: &str, stderr: Stderr) -> Result<Env, EnvError> {
    let sealed = detach::seal_descriptors();
    let env = Env::from_process()?;
    log::start(&env, program, stderr);
    if let Err(error) = sealed {
        tracing::warn!(%error, "programs that are started here may inherit the editor's open files");
    }
    Ok(env)
}
