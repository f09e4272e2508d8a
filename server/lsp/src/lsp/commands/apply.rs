//! `pactify.apply`: puts a result into the checkout.

use pactify_core::protocol::ApplyParams;
use pactify_core::{Failure, FailureCode};

use super::super::arguments::Arguments;
use super::super::context::Context;
use super::{Answer, answer, job_id};

pub(super) const NAME: &str = "pactify.apply";

pub(super) async fn run(context: &Context, arguments: Arguments) -> Answer {
    if arguments.has("jobId") && !arguments.has("changeSet") {
        return Err(not_previewed(context, arguments).await);
    }
    let params: ApplyParams = arguments.read(NAME)?;
    let job = job_id(&params.job_id)?;
    // What the person typed a moment ago must be known before anything is written.
    context.session().unsaved_published().await?;
    let session = context.session().clone();
    let work = context.engine().work(move |jobs| {
        let applied = jobs.apply(&params)?;
        if let Ok(summary) = jobs.summary(&job) {
            session.moved(summary);
        }
        Ok(applied)
    });
    answer(work.await?)
}

/// Nothing is applied that was not shown: the refusal names the result that there is to look at.
async fn not_previewed(context: &Context, arguments: Arguments) -> Failure {
    let fields = match arguments.read::<pactify_core::protocol::JobParams>(NAME) {
        Ok(params) => job_id(&params.job_id),
        Err(failure) => Err(failure),
    };
    let job = match fields {
        Ok(job) => job,
        Err(failure) => return failure,
    };
    let shown = job.clone();
    match context.engine().brief_work(move |jobs| jobs.status(&job)).await {
        Err(failure) => failure,
        Ok(detail) => {
            let next = match detail.change_set {
                Some(id) => format!("look at it with pactify.diffPreview, then pass `changeSet`: \"{id}\""),
                None => format!("job {shown} has no result to apply yet; pactify.status tells where it stands"),
            };
            Failure::new(FailureCode::InvalidParams, format!("{NAME}: missing field `changeSet`"), next)
        }
    }
}
