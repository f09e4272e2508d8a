//! `pactify.openWorktree`: where a job's tree is.

use pactify_core::job::outcome::Disposition;
use pactify_core::protocol::JobParams;

use super::super::arguments::Arguments;
use super::super::context::Context;
use super::{Answer, answer, job_id, target};

pub(super) const NAME: &str = "pactify.openWorktree";

pub(super) async fn run(context: &Context, arguments: Arguments) -> Answer {
    let arguments = target::named(context, NAME, arguments, |job| job.disposition != Disposition::Discarded).await?;
    let job = job_id(&arguments.read::<JobParams>(NAME)?.job_id)?;
    answer(context.engine().work(move |jobs| jobs.worktree(&job)).await?)
}
