//! `pactify.debugReport`: one redacted text for a bug report.

use pactify_engine::jobs::Jobs;

use super::super::arguments::Arguments;
use super::super::context::Context;
use super::{Answer, answer};

pub(super) const NAME: &str = "pactify.debugReport";

pub(super) async fn run(context: &Context, _: Arguments) -> Answer {
    answer(context.engine().work(Jobs::debug_report).await?)
}
