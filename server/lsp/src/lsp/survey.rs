//! A look at the store for what others did: jobs of the workspace's repositories that this server did not start, and
//! jobs that were moved elsewhere.

use std::collections::HashSet;

use pactify_core::job::state::SeenState;
use pactify_core::protocol::view::file_uri;
use pactify_core::protocol::{JobList, JobSummary, StatusParams};
use pactify_core::{AbsPath, Failure, FailureCode, JobId};
use pactify_engine::jobs::Jobs;

/// What a look found.
#[derive(Debug, Default)]
pub(super) struct Survey {
    /// Jobs that are not over.
    pub unfinished: Vec<JobId>,
    /// Every job that is not over or not decided, and those of the known ones that are both by now.
    pub jobs: Vec<JobSummary>,
    /// Known jobs that need no further look.
    pub decided: HashSet<JobId>,
}

/// Looks at the jobs of the repositories of `folders`, and at `known` jobs that are no longer among them.
pub(super) fn survey(jobs: &Jobs, folders: &[AbsPath], known: &[JobId]) -> Result<Survey, Failure> {
    let mut found = Survey::default();
    let mut ids = HashSet::new();
    let current = if folders.is_empty() { Vec::new() } else { of_folders(jobs, folders, false)? };
    for job in current {
        let Ok(id) = job.id.parse::<JobId>() else { continue };
        if !ids.insert(id.clone()) {
            continue;
        }
        if job.state != SeenState::Finished {
            found.unfinished.push(id);
        }
        found.jobs.push(job);
    }
    for id in known.iter().filter(|id| !ids.contains(*id)) {
        found.decided.insert(id.clone());
        if let Ok(job) = jobs.status(id) {
            found.jobs.push(job.summary);
        }
    }
    Ok(found)
}

/// The jobs of the repositories of `folders`, newest first; of all repositories when there is no folder. A folder
/// outside any repository has none.
pub(super) fn of_folders(jobs: &Jobs, folders: &[AbsPath], all: bool) -> Result<Vec<JobSummary>, Failure> {
    let repositories: Vec<Option<String>> = match folders {
        [] => vec![None],
        folders => folders.iter().map(|folder| Some(file_uri(folder.as_path()))).collect(),
    };
    let mut found: Vec<JobSummary> = Vec::new();
    for repository in repositories {
        let mut params = StatusParams { job_id: None, repository, all, cursor: None, limit: Some(500) };
        loop {
            let page = match jobs.list(&params) {
                Err(failure) if failure.code == FailureCode::NoRepository => break,
                page => page?,
            };
            let JobList { jobs: page, next, .. } = page;
            found.extend(page);
            match next {
                Some(next) => params.cursor = Some(next),
                None => break,
            }
        }
    }
    found.sort_by(|a, b| b.id.cmp(&a.id));
    found.dedup_by(|a, b| a.id == b.id);
    Ok(found)
}
