//! Which job is meant: an id, the beginning or end of one, or `last`.

use std::convert::Infallible;
use std::str::FromStr;

use pactify_core::protocol::{JobSummary, StatusParams};
use pactify_core::{Failure, FailureCode, JobId};

use super::{Terminal, place};

/// A job as a person names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum JobName {
    /// The newest job of the repository one is in; of all, outside any.
    Last,
    /// A whole id.
    Id(JobId),
    /// The beginning or the end of one.
    Part(String),
}

/// How many jobs an ambiguous name lists.
const NAMED: usize = 10;

impl FromStr for JobName {
    type Err = Infallible;

    fn from_str(text: &str) -> Result<Self, Infallible> {
        Ok(match (text, text.parse()) {
            ("last", _) => Self::Last,
            (_, Ok(id)) => Self::Id(id),
            (part, Err(_)) => Self::Part(part.to_owned()),
        })
    }
}

impl JobName {
    /// The job's id.
    pub(super) fn find(&self, terminal: &Terminal) -> Result<JobId, Failure> {
        match self {
            Self::Id(id) => Ok(id.clone()),
            Self::Last => last(terminal),
            Self::Part(part) => {
                let mut ids = Vec::new();
                each(terminal, None, |job| ids.push(job.id))?;
                only(part, ids)
            }
        }
    }
}

/// Calls `see` with every job, newest first.
fn each(terminal: &Terminal, repository: Option<String>, mut see: impl FnMut(JobSummary)) -> Result<(), Failure> {
    let mut params = StatusParams { job_id: None, repository, all: true, cursor: None, limit: Some(500) };
    loop {
        let page = terminal.jobs.list(&params)?;
        page.jobs.into_iter().for_each(&mut see);
        match page.next {
            Some(next) => params.cursor = Some(next),
            None => return Ok(()),
        }
    }
}

fn last(terminal: &Terminal) -> Result<JobId, Failure> {
    let mut params = StatusParams {
        job_id: None,
        repository: Some(place::repository(None)?),
        all: true,
        cursor: None,
        limit: Some(1),
    };
    let page = match terminal.jobs.list(&params) {
        Err(failure) if failure.code == FailureCode::NoRepository => {
            params.repository = None;
            terminal.jobs.list(&params)?
        }
        page => page?,
    };
    let id = page.jobs.first().and_then(|job| job.id.parse().ok());
    id.ok_or_else(|| {
        Failure::new(FailureCode::JobNotFound, "there is no job here yet", "start one with `pactify sub run`")
    })
}

fn only(part: &str, ids: Vec<String>) -> Result<JobId, Failure> {
    let fitting: Vec<String> =
        ids.into_iter().filter(|id| !part.is_empty() && (id.starts_with(part) || id.ends_with(part))).collect();
    match fitting.as_slice() {
        [only] => only.parse().map_err(|error| Failure::internal(format!("a job is listed by a bad id: {error}"))),
        [] => Err(Failure::new(
            FailureCode::JobNotFound,
            format!("no job's id begins or ends with {part:?}"),
            match part.contains(['.', '/']) {
                true => "name the job before the path; `last` is the newest one",
                false => "see the ids with `pactify sub list --all`",
            },
        )),
        several => Err(Failure::new(
            FailureCode::InvalidParams,
            format!("{} jobs' ids begin or end with {part:?}", several.len()),
            format!("name one of {}", several[..several.len().min(NAMED)].join(", ")),
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_unique_part_of_an_id_is_enough() {
        let ids = || ["20261129-154512-abcdef", "20261129-154513-abcxyz", "20261130-000000-abcdeg"].map(String::from);
        let found = |part| only(part, ids().to_vec());
        assert_eq!(found("def").unwrap().as_str(), "20261129-154512-abcdef");
        assert_eq!(found("20261130").unwrap().as_str(), "20261130-000000-abcdeg");
        assert_eq!(found("abc").unwrap_err().code, FailureCode::JobNotFound, "neither a beginning nor an end");
        assert_eq!(found("").unwrap_err().code, FailureCode::JobNotFound);
        assert!(found("src/a.rs").unwrap_err().next.contains("before the path"));
        let failure = found("20261129").unwrap_err();
        assert_eq!(failure.code, FailureCode::InvalidParams);
        assert!(failure.next.contains("20261129-154512-abcdef, 20261129-154513-abcxyz"), "{}", failure.next);
    }

    #[test]
    fn names_are_told_apart() {
        let name = |text: &str| text.parse::<JobName>().unwrap();
        assert_eq!(name("last"), JobName::Last);
        assert!(matches!(name("20261129-154512-abcdef"), JobName::Id(_)));
        assert_eq!(name("abcdef"), JobName::Part("abcdef".to_owned()));
    }
}
