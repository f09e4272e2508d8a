//! `pactify.answer`: a person's answer to a permission request.

use pactify_core::protocol::AnswerParams;

use super::super::arguments::Arguments;
use super::super::context::Context;
use super::{Answer, answer};

pub(super) const NAME: &str = "pactify.answer";

pub(super) async fn run(context: &Context, arguments: Arguments) -> Answer {
    let params: AnswerParams = arguments.read(NAME)?;
    answer(context.engine().work(move |jobs| jobs.answer(&params)).await?)
}
