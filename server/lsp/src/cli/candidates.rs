//! What a shell offers for jobs and agent CLIs: looked up while the person waits for a key, so nothing here starts a
//! program, makes or changes a file, or complains.

use std::ffi::OsStr;

use clap::ValueHint;
use clap_complete::engine::{ArgValueCandidates, ArgValueCompleter, CompletionCandidate};
use pactify_core::protocol::view::path_of_uri;
use pactify_core::protocol::{JobSummary, StatusParams, words};
use pactify_core::{JobId, display};
use pactify_engine::env::Env;
use pactify_engine::jobs::{Jobs, harness_names};

/// Of files and directories nothing is offered, so that the shell completes them as it does: bash takes what is offered
/// for words of a command, unquoted, and a job may have named a file so that one runs.
pub(super) const LEFT_TO_THE_SHELL: ValueHint = ValueHint::Other;

/// How many jobs are looked at, the newest first.
const JOBS: u32 = 100;

/// Completes the name of a job.
pub(super) fn jobs() -> ArgValueCompleter {
    ArgValueCompleter::new(|typed: &OsStr| {
        let typed = typed.to_string_lossy();
        let named = newest().unwrap_or_default();
        let last =
            "last".starts_with(&*typed).then(|| CompletionCandidate::new("last").help(Some("the newest".into())));
        last.into_iter().chain(named.iter().filter_map(|job| candidate(job, &typed))).collect()
    })
}

/// Completes the name of an agent CLI.
pub(super) fn harnesses() -> ArgValueCandidates {
    ArgValueCandidates::new(|| {
        let names = Env::from_process().map(|env| harness_names(&env)).unwrap_or_default();
        names.into_iter().map(CompletionCandidate::new).collect()
    })
}

/// The newest jobs: of the checkout that one is in, if there are any.
fn newest() -> Option<Vec<JobSummary>> {
    let jobs = Jobs::open_unchanged(Env::from_process().ok()?).ok()?;
    let params = StatusParams { job_id: None, repository: None, all: true, cursor: None, limit: Some(JOBS) };
    let all = jobs.list(&params).ok()?.jobs;
    let here = std::env::current_dir().and_then(std::fs::canonicalize).ok()?;
    let is_here =
        |job: &&JobSummary| path_of_uri(&job.repository).is_some_and(|place| here.starts_with(place.as_path()));
    let of_here: Vec<JobSummary> = all.iter().filter(is_here).cloned().collect();
    Some(if of_here.is_empty() { all } else { of_here })
}

/// The job, by its id or by the random end of it, whichever goes on from what was typed.
fn candidate(job: &JobSummary, typed: &str) -> Option<CompletionCandidate> {
    let id: JobId = job.id.parse().ok()?;
    let end = id.as_str().rsplit('-').next().unwrap_or_default();
    let value = [id.as_str(), end].into_iter().find(|value| value.starts_with(typed))?;
    let help = format!("{}: {}", words::state(job), display::headline(&job.title, 50));
    Some(CompletionCandidate::new(value).help(Some(help.into())))
}
