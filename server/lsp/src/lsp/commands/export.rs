//! `pactify.export`: a result as a patch, or as a branch.

use pactify_core::protocol::ExportParams;

use super::super::arguments::Arguments;
use super::super::context::Context;
use super::{Answer, answer, job_id};

pub(super) const NAME: &str = "pactify.export";

pub(super) async fn run(context: &Context, arguments: Arguments) -> Answer {
    let params: ExportParams = arguments.read(NAME)?;
    job_id(&params.job_id)?;
    answer(context.engine().work(move |jobs| jobs.export(&params)).await?)
}
