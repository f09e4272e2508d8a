//! `pactify.retry`: a new job from the brief of an older one.

use pactify_core::protocol::RetryParams;

use super::super::arguments::Arguments;
use super::super::context::Context;
use super::{Answer, answer};

pub(super) const NAME: &str = "pactify.retry";

pub(super) async fn run(context: &Context, arguments: Arguments) -> Answer {
    let params = arguments.read::<RetryParams>(NAME)?;
    context.session().unsaved_published().await?;
    let unsaved = context.session().unsaved_texts().await;
    let session = context.session().clone();
    let starting = session.starting();
    let work = context.engine().work(move |jobs| {
        let _starting = starting;
        let delegated = jobs.retry(&params, Some(&unsaved))?;
        if let Ok(job) = delegated.job_id.parse() {
            session.created(job);
        }
        Ok(delegated)
    });
    answer(work.await?)
}
