//! `pactify.resume`: another turn of a finished job's session.

use pactify_core::job::state::SeenState;
use pactify_core::protocol::ResumeParams;

use super::super::arguments::Arguments;
use super::super::context::Context;
use super::{Answer, answer, job_id};

pub(super) const NAME: &str = "pactify.resume";

pub(super) async fn run(context: &Context, arguments: Arguments) -> Answer {
    let params = arguments.read::<ResumeParams>(NAME)?;
    let job = job_id(&params.job_id)?;
    let session = context.session().clone();
    let starting = session.starting();
    let work = context.engine().work(move |jobs| {
        let _starting = starting;
        let before = jobs.before_resume(&job)?.summary;
        let moved = jobs.resume(&params)?;
        if moved.state == SeenState::Finished {
            session.queued_again(before);
        } else {
            session.created(job);
        }
        Ok(moved)
    });
    answer(work.await?)
}
