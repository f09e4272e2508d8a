//! A look at the store for what others did: jobs of the workspace's repositories that this server did not start, and
//! jobs that were moved elsewhere.

use std::collections::HashSet;

use pactify_core::job::outcome::Disposition;
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
    /// Known jobs that need no further look: they are given up, or gone.
    pub gone: HashSet<JobId>,
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
        let job = jobs.summary(id).ok();
        if job.as_ref().is_none_or(|job| job.disposition == Disposition::Discarded) {
            found.gone.insert(id.clone());
        }
        found.jobs.extend(job);
    }
    Ok(found)
}

/// The jobs of the repositories of `folders`, newest first; of all repositories when there is no folder. A folder
/// outside any repository has none, and one that cannot be looked at hides no other.
pub(super) fn of_folders(jobs: &Jobs, folders: &[AbsPath], all: bool) -> Result<Vec<JobSummary>, Failure> {
    let repositories: Vec<Option<String>> = match folders {
        [] => vec![None],
        folders => folders.iter().map(|folder| Some(file_uri(folder.as_path()))).collect(),
    };
    let (mut found, mut is_read, mut failed) = (Vec::new(), false, None);
    for repository in repositories {
        match of_repository(jobs, repository, all) {
            Ok(jobs) => {
                is_read = true;
                found.extend(jobs);
            }
            Err(failure) if failure.code == FailureCode::NoRepository => {}
            Err(failure) => failed = Some(failure),
        }
    }
    if let Some(failure) = failed.filter(|_| !is_read) {
        return Err(failure);
    }
    found.sort_by(|a: &JobSummary, b| b.id.cmp(&a.id));
    found.dedup_by(|a, b| a.id == b.id);
    Ok(found)
}

fn of_repository(jobs: &Jobs, repository: Option<String>, all: bool) -> Result<Vec<JobSummary>, Failure> {
    let mut found = Vec::new();
    let mut params = StatusParams { job_id: None, repository, all, cursor: None, limit: Some(500) };
    loop {
        let JobList { jobs: page, next, .. } = jobs.list(&params)?;
        found.extend(page);
        match next {
            Some(next) => params.cursor = Some(next),
            None => return Ok(found),
        }
    }
}
