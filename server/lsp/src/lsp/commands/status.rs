//! `pactify.status`: one job, or a list of them.

use pactify_core::protocol::StatusParams;
use serde::Serialize;
use serde_json::value::RawValue;

use super::super::arguments::Arguments;
use super::super::context::Context;
use super::{Answer, answer, job_id};

pub(super) const NAME: &str = "pactify.status";

/// A [`pactify_core::protocol::JobStatus`] whose job is JSON already.
#[derive(Serialize)]
struct Told<'a> {
    job: &'a RawValue,
}

pub(super) async fn run(context: &Context, arguments: Arguments) -> Answer {
    let params: StatusParams = arguments.read(NAME)?;
    match &params.job_id {
        Some(job) => {
            let job = job_id(job)?;
            let job = context.engine().brief_work(move |jobs| jobs.status_json(&job)).await?;
            answer(Told { job: &job })
        }
        None => answer(context.engine().work(move |jobs| jobs.list(&params)).await?),
    }
}
