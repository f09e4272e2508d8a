//! `pactify.doctor`: looks at everything that jobs depend on.

use pactify_core::protocol::DoctorParams;

use super::super::arguments::Arguments;
use super::super::context::Context;
use super::{Answer, answer};

pub(super) const NAME: &str = "pactify.doctor";

pub(super) async fn run(context: &Context, arguments: Arguments) -> Answer {
    let params: DoctorParams = arguments.read(NAME)?;
    answer(context.engine().work(move |jobs| jobs.doctor(&params)).await?)
}
