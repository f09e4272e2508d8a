//! `pactify.events`: what happened to a job, page by page.

use pactify_core::protocol::{EventList, EventView, EventsParams};

use super::super::arguments::Arguments;
use super::super::context::Context;
use super::{Answer, answer, job_id, target};

pub(super) const NAME: &str = "pactify.events";

pub(super) async fn run(context: &Context, arguments: Arguments) -> Answer {
    let params: EventsParams = target::named(context, NAME, arguments, |_| true).await?.read(NAME)?;
    job_id(&params.job_id)?;
    let EventList { events, next } = context.engine().work(move |jobs| jobs.events(&params)).await?;
    answer(EventList { events: events.into_iter().map(EventView::in_words).collect(), next })
}
