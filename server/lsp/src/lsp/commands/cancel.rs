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
    let session = context.session().clone();
    let work = context.engine().work(move |jobs| {
        let moved = jobs.cancel(&job)?;
        session.taken_back(job);
        Ok(moved)
    });
    answer(work.await?)
}
