//! `pactify.harnesses`: which agent CLIs there are.

use pactify_core::protocol::HarnessesParams;

use super::super::arguments::Arguments;
use super::super::context::Context;
use super::{Answer, answer};

pub(super) const NAME: &str = "pactify.harnesses";

pub(super) async fn run(context: &Context, arguments: Arguments) -> Answer {
    let mut params: HarnessesParams = arguments.read(NAME)?;
    if params.repository.is_none() {
        // Without a folder, or with several, there is no repository to keep out of.
        params.repository = context.session().folders().await.repository(None).ok();
    }
    answer(context.engine().work(move |jobs| jobs.harnesses(&params)).await?)
}
