//! `pactify.content`: one side of one changed path.

use pactify_core::protocol::ContentParams;

use super::super::arguments::Arguments;
use super::super::context::Context;
use super::{Answer, answer, job_id};

pub(super) const NAME: &str = "pactify.content";

pub(super) async fn run(context: &Context, arguments: Arguments) -> Answer {
    let params: ContentParams = arguments.read(NAME)?;
    job_id(&params.job_id)?;
    answer(context.engine().work(move |jobs| jobs.content(&params)).await?)
}
