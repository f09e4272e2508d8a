//! `pactify.restoreOutside`: puts back what changed outside a job's tree.

use pactify_core::protocol::RestoreParams;

use super::super::arguments::Arguments;
use super::super::context::Context;
use super::{Answer, answer, job_id};

pub(super) const NAME: &str = "pactify.restoreOutside";

pub(super) async fn run(context: &Context, arguments: Arguments) -> Answer {
    let params: RestoreParams = arguments.read(NAME)?;
    job_id(&params.job_id)?;
    answer(context.engine().work(move |jobs| jobs.restore_outside(&params)).await?)
}
