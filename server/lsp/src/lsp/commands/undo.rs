//! `pactify.undo`: takes an apply back.

use pactify_core::protocol::UndoParams;

use super::super::arguments::Arguments;
use super::super::context::Context;
use super::{Answer, answer, job_id};

pub(super) const NAME: &str = "pactify.undo";

pub(super) async fn run(context: &Context, arguments: Arguments) -> Answer {
    let params: UndoParams = arguments.read(NAME)?;
    let job = job_id(&params.job_id)?;
    // What the person typed a moment ago must be known before anything is written.
    context.session().unsaved_published().await?;
    let session = context.session().clone();
    let work = context.engine().work(move |jobs| {
        let undone = jobs.undo(&params)?;
        if let Ok(summary) = jobs.summary(&job) {
            session.moved(summary);
        }
        Ok(undone)
    });
    answer(work.await?)
}
