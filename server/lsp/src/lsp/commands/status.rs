//! `pactify.status`: one job, or a list of them.

use pactify_core::protocol::StatusParams;

use super::super::arguments::Arguments;
use super::super::context::Context;
use super::{Answer, answer, job_id, standing_in};
use crate::transport::written::stand_in_for;

pub(super) const NAME: &str = "pactify.status";

pub(super) async fn run(context: &Context, arguments: Arguments) -> Answer {
    let params: StatusParams = arguments.read(NAME)?;
    match &params.job_id {
        Some(job) => {
            let job = job_id(job)?;
            standing_in(stand_in_for(context.engine().brief_work(move |jobs| jobs.status_json(&job)).await?))
        }
        None => answer(context.engine().work(move |jobs| jobs.list(&params)).await?),
    }
}
