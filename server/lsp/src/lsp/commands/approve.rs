//! `pactify.approve`: what the person decided about a text that a repository proposes.

use pactify_core::protocol::ApproveParams;

use super::super::arguments::Arguments;
use super::super::context::Context;
use super::{Answer, answer};

pub(super) const NAME: &str = "pactify.approve";

pub(super) async fn run(context: &Context, arguments: Arguments) -> Answer {
    let mut params: ApproveParams = arguments.read(NAME)?;
    if params.repository.is_none() {
        params.repository = Some(context.session().folders().await.repository(None)?);
    }
    answer(context.engine().work(move |jobs| jobs.approve(&params)).await?)
}
