//! What every command is given: the engine, the session, the way to the client.

use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use pactify_core::Failure;
use pactify_engine::env::Env;
use pactify_engine::jobs::Jobs;

use super::session::SessionHandle;
use crate::transport::Outbox;

/// The engine, opened when it is first needed: `initialize` must not wait for a disk. One that could not be opened is
/// tried again by the next command, so that a corrected configuration needs no restart.
#[derive(Clone, Debug)]
pub(super) struct Engine {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    env: Env,
    jobs: OnceLock<Jobs>,
    /// Held by whoever opens the engine, so that it is opened once.
    opening: Mutex<()>,
}

/// What a command works with.
#[derive(Clone)]
pub(super) struct Context {
    engine: Engine,
    session: SessionHandle,
    outbox: Outbox,
}

impl Engine {
    /// The engine of the `PACTIFY_HOME` of `env`.
    pub(super) fn new(env: Env) -> Self {
        Self { shared: Arc::new(Shared { env, jobs: OnceLock::new(), opening: Mutex::default() }) }
    }

    pub(super) fn env(&self) -> &Env {
        &self.shared.env
    }

    /// The engine. Blocks the first time.
    fn jobs(&self) -> Result<&Jobs, Failure> {
        if let Some(jobs) = self.shared.jobs.get() {
            return Ok(jobs);
        }
        let _opening = self.shared.opening.lock().unwrap_or_else(PoisonError::into_inner);
        match self.shared.jobs.get() {
            Some(jobs) => Ok(jobs),
            None => {
                let jobs = Jobs::open(self.shared.env.clone())?;
                Ok(self.shared.jobs.get_or_init(|| jobs))
            }
        }
    }

    /// Does disk or git work off the loop.
    pub(super) async fn work<T, F>(&self, work: F) -> Result<T, Failure>
    where
        T: Send + 'static,
        F: FnOnce(&Jobs) -> Result<T, Failure> + Send + 'static,
    {
        let engine = self.clone();
        let done = tokio::task::spawn_blocking(move || work(engine.jobs()?)).await;
        done.unwrap_or_else(|error| Err(Failure::internal(format!("the work broke off: {error}"))))
    }

    /// Does work of a few system calls where it is asked for, which saves a change of threads.
    pub(super) async fn brief_work<T, F>(&self, work: F) -> Result<T, Failure>
    where
        T: Send + 'static,
        F: FnOnce(&Jobs) -> Result<T, Failure> + Send + 'static,
    {
        match self.shared.jobs.get() {
            Some(jobs) => work(jobs),
            None => self.work(work).await,
        }
    }
}

impl Context {
    pub(super) fn new(engine: Engine, session: SessionHandle, outbox: Outbox) -> Self {
        Self { engine, session, outbox }
    }

    pub(super) fn engine(&self) -> &Engine {
        &self.engine
    }

    pub(super) fn session(&self) -> &SessionHandle {
        &self.session
    }

    pub(super) fn outbox(&self) -> &Outbox {
        &self.outbox
    }
}
