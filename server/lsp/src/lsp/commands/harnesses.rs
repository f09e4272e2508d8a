//! `pactify.harnesses`: which agent CLIs there are.

use pactify_engine::jobs::Jobs;

use super::super::arguments::Arguments;
use super::super::context::Context;
use super::{Answer, answer};

pub(super) const NAME: &str = "pactify.harnesses";

pub(super) async fn run(context: &Context, _: Arguments) -> Answer {
    answer(context.engine().work(Jobs::harnesses).await?)
}
