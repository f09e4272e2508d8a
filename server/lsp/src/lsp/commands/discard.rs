//! `pactify.discard`: gives a result up.

use pactify_core::protocol::JobParams;

use super::super::arguments::Arguments;
use super::super::context::Context;
use super::{Answer, answer, job_id};

pub(super) const NAME: &str = "pactify.discard";

pub(super) async fn run(context: &Context, arguments: Arguments) -> Answer {
    let job = job_id(&arguments.read::<JobParams>(NAME)?.job_id)?;
    let session = context.session().clone();
    let work = context.engine().work(move |jobs| {
        let moved = jobs.discard(&job)?;
        if let Ok(summary) = jobs.summary(&job) {
            session.moved(summary);
        }
        Ok(moved)
    });
    answer(work.await?)
}
