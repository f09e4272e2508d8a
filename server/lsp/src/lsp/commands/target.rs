//! Which job a command means when it names none: the only one that it can mean.
//!
//! For commands that only look, and for a cancel: editors that cannot pass arguments still get these. What writes to
//! the checkout or gives a result up is always told which job.

use pactify_core::protocol::JobSummary;
use pactify_core::{Failure, FailureCode};

use super::super::arguments::Arguments;
use super::super::context::Context;
use super::super::survey::of_folders;

/// How many jobs a refusal names.
const NAMED: usize = 10;

/// The arguments with `jobId` filled in, when exactly one job of the workspace `fits`.
pub(super) async fn named(
    context: &Context,
    command: &str,
    arguments: Arguments,
    fits: fn(&JobSummary) -> bool,
) -> Result<Arguments, Failure> {
    if arguments.has("jobId") || matches!(arguments, Arguments::Unfit(_)) {
        return Ok(arguments);
    }
    let folders = context.session().folders().await;
    let mut jobs = context.engine().work(move |jobs| of_folders(jobs, folders.paths(), false)).await?;
    jobs.retain(fits);
    match jobs.as_slice() {
        [only] => Ok(arguments.with("jobId", only.id.clone())),
        several => Err(ambiguous(command, several)),
    }
}

fn ambiguous(command: &str, jobs: &[JobSummary]) -> Failure {
    let (what, next) = if jobs.is_empty() {
        ("and no job here fits", "delegate a task with pactify.delegate, or list jobs with pactify.status".to_owned())
    } else {
        let ids: Vec<&str> = jobs.iter().take(NAMED).map(|job| job.id.as_str()).collect();
        let more = if jobs.len() > NAMED { " …" } else { "" };
        ("and several jobs fit", format!("pass `jobId` as one of {}{more}", ids.join(", ")))
    };
    Failure::new(FailureCode::InvalidParams, format!("{command}: missing field `jobId`, {what}"), next)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_refusal_names_the_jobs_that_fit() {
        let job = |tail: &str| -> JobSummary {
            serde_json::from_value(json!({
                "id": format!("20261129-154512-{tail}"), "title": "t", "harness": "codex", "access": "write",
                "repository": "file:///r", "base": {"kind": "head", "commit": "a"}, "state": "running",
                "disposition": "pending", "createdAt": "2026-11-29T15:45:12Z",
            }))
            .unwrap()
        };
        let failure = ambiguous("pactify.cancel", &[job("aaaaaa"), job("bbbbbb")]);
        assert_eq!(failure.message, "pactify.cancel: missing field `jobId`, and several jobs fit");
        assert_eq!(failure.next, "pass `jobId` as one of 20261129-154512-aaaaaa, 20261129-154512-bbbbbb");
        assert!(ambiguous("pactify.cancel", &[]).message.contains("no job here fits"));
    }
}
