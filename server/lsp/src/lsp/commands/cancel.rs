//! `pactify.cancel`: ends a job that is not over.

use pactify_core::job::state::SeenState;
use pactify_core::protocol::JobParams;

use super::super::arguments::Arguments;
use super::super::context::Context;
use super::{Answer, answer, job_id, target};

pub(super) const NAME: &str = "pactify.cancel";

pub(super) async fn run(context: &Context, arguments: Arguments) -> Answer {
    let arguments = target::named(context, NAME, arguments, |job| job.state != SeenState::Finished).await?;
    let job = job_id(&arguments.read::<JobParams>(NAME)?.job_id)?;
    answer(context.engine().work(move |jobs| jobs.cancel(&job)).await?)
}
