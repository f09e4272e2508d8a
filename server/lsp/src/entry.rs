//! How both programs begin: as a job's host if they were started as one, else with an environment and a log.

use std::ffi::OsString;
use std::process::ExitCode;

use pactify_engine::env::{Env, EnvError};
use pactify_engine::log::{self, Stderr};

/// Runs a job's host, if this process was started as one. To be called before anything else: a host wants none of
/// what a front end sets up.
pub fn become_host() -> Option<ExitCode> {
    let arguments: Vec<OsString> = std::env::args_os().skip(1).collect();
    pactify_engine::host::reenter(&arguments)
}

/// Reads the environment and starts the log of `program`. A panic becomes a line of the log from here on.
///
/// # Errors
/// When there is no home directory, or `PACTIFY_HOME` is unusable.
pub fn begin(program: &str, stderr: Stderr) -> Result<Env, EnvError> {
    let env = Env::from_process()?;
    log::start(&env, program, stderr);
    log::log_panics();
    Ok(env)
}
