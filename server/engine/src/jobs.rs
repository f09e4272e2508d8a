//! What front ends may call: every verb of the wire, executed.
//!
//! [`Jobs`] takes and returns the shapes of [`pactify_core::protocol`], so that a language server, a terminal and
//! a test say the same things. Calls block for as long as their disk and git work takes, never for a job: front ends
//! run them off their event loop. A job itself runs in its own process ([`crate::host`]); this module creates it, reads
//! what it left, and applies or discards that. Nothing here knows an editor or a terminal.

mod aftermath;
mod answer;
mod apply;
mod approve;
mod base;
mod content;
mod cut_off;
mod delegate;
mod dispose;
mod doctor;
mod left;
mod login;
mod merge;
mod offer;
mod outside;
mod patch_file;
mod preview;
mod prune;
mod read;
mod retry;
mod scene;
mod undo;
mod unnamed;

pub use self::approve::Proposal;

use std::collections::HashMap;
use std::ops::Range;
use std::sync::{Arc, Mutex, OnceLock};

use pactify_core::{AbsPath, Failure, FailureCode, JobId, RepoPath};

use crate::apply::unsaved::Publisher;
use crate::config;
use crate::env::Env;
use crate::git::Git;
use crate::journal::Cursor;
use crate::store::{Store, Wakeup};

pub use self::base::UnsavedText;

/// The engine, open on one `PACTIFY_HOME`. Cheap to clone; every clone sees the same store.
#[derive(Clone, Debug)]
pub struct Jobs {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    env: Env,
    store: Store,
    git: OnceLock<Git>,
    /// What this process's editor holds; withdrawn with the last clone.
    publisher: OnceLock<Publisher>,
    /// Where journals were read to: whoever reads on begins there.
    read_to: Mutex<HashMap<JobId, Cursor>>,
}

impl Jobs {
    /// Opens the store, which is made when absent.
    pub fn open(env: Env) -> Result<Self, Failure> {
        let store = Store::open(env.directories().pactify_home())?;
        Ok(Self::of(env, store))
    }

    /// Opens the store as it is, for a look at what is there: nothing is made or changed.
    ///
    /// # Errors
    /// When there is none, and as [`Self::open`].
    pub fn open_unchanged(env: Env) -> Result<Self, Failure> {
        let store = Store::open_unchanged(env.directories().pactify_home())?;
        Ok(Self::of(env, store))
    }

    fn of(env: Env, store: Store) -> Self {
        let (git, publisher) = (OnceLock::new(), OnceLock::new());
        let shared = Shared { env, store, git, publisher, read_to: Mutex::default() };
        Self { shared: Arc::new(shared) }
    }

    /// The surroundings that this engine was opened in.
    pub fn env(&self) -> &Env {
        &self.shared.env
    }

    /// Wakes when a job came, went, or stands otherwise, whoever moved it.
    pub fn wakeup(&self) -> Result<Wakeup, Failure> {
        Ok(self.store().wakeup()?)
    }

    fn store(&self) -> &Store {
        &self.shared.store
    }

    /// The git program: found when it is first needed, so that a server starts without it.
    fn git(&self) -> Result<&Git, Failure> {
        if let Some(git) = self.shared.git.get() {
            return Ok(git);
        }
        let git = Git::find(self.env())?;
        Ok(self.shared.git.get_or_init(|| git))
    }

    fn publisher(&self) -> Result<&Publisher, Failure> {
        if let Some(publisher) = self.shared.publisher.get() {
            return Ok(publisher);
        }
        let publisher = Publisher::new(self.store())?;
        Ok(self.shared.publisher.get_or_init(|| publisher))
    }
}

/// The names of the harnesses that a job may be given to, installed or not.
pub fn harness_names(env: &Env) -> Vec<String> {
    let known = config::load(env).unwrap_or_default().known_harnesses();
    known.iter().map(|(harness, _)| harness.name().to_string()).collect()
}

/// A part of a list that grows.
struct Page {
    range: Range<usize>,
    next: Option<String>,
}

/// The page of a list of `total` items that a cursor and a limit name.
fn page(cursor: Option<&str>, limit: Option<u32>, default: u32, most: u32, total: usize) -> Result<Page, Failure> {
    let start = match cursor {
        None => 0,
        Some(cursor) => cursor.parse().map_err(|_| invalid(format!("cursor: {cursor:?} is not one of ours")))?,
    };
    let start = total.min(start);
    let end = total.min(start.saturating_add(limit.unwrap_or(default).clamp(1, most) as usize));
    Ok(Page { range: start..end, next: (end < total).then(|| end.to_string()) })
}

fn job_id(text: &str) -> Result<JobId, Failure> {
    text.parse().map_err(|error| invalid(format!("jobId: {error}")))
}

fn invalid(message: impl Into<String>) -> Failure {
    Failure::new(FailureCode::InvalidParams, message, "correct the argument; docs/protocol.md describes it")
}

/// A path that the job left as it was.
fn unchanged(path: &RepoPath) -> Failure {
    let message = format!("path: {path} is not among the job's changes");
    Failure::new(FailureCode::InvalidParams, message, "look at the summary of its changes, and name one of those paths")
}

/// The local path behind a `file:` URI.
fn local_path(field: &str, uri: &str) -> Result<AbsPath, Failure> {
    let path = pactify_core::protocol::view::path_of_uri(uri);
    path.ok_or_else(|| invalid(format!("{field}: {uri} is not the URI of a local file")))
}

#[cfg(test)]
mod tests;
