//! The verbs: one file each, a line each in [`RUN`].
//!
//! A verb reads its arguments, fills in what the editor's state says (folder, open brief, the only job that can be
//! meant), and lets the engine do the rest off the loop. The typed requests run the same code.

mod answer;
mod apply;
mod approve;
mod cancel;
mod content;
mod debug_report;
mod delegate;
mod diff_preview;
mod discard;
mod doctor;
mod events;
mod export;
mod harnesses;
mod open_worktree;
mod restore_outside;
mod resume;
mod retry;
mod status;
mod target;
mod undo;

use futures_util::future::BoxFuture;
use pactify_core::{Failure, FailureCode, JobId};
use serde::Serialize;
use serde_json::Value;

use super::arguments::Arguments;
use super::context::Context;
use crate::transport::written::stand_in;

/// What a verb answers.
type Answer = Result<Value, Failure>;

type Run = for<'a> fn(&'a Context, Arguments) -> BoxFuture<'a, Answer>;

/// Every verb, by its command's name.
const RUN: &[(&str, Run)] = &[
    (answer::NAME, |context, arguments| Box::pin(answer::run(context, arguments))),
    (apply::NAME, |context, arguments| Box::pin(apply::run(context, arguments))),
    (approve::NAME, |context, arguments| Box::pin(approve::run(context, arguments))),
    (cancel::NAME, |context, arguments| Box::pin(cancel::run(context, arguments))),
    (content::NAME, |context, arguments| Box::pin(content::run(context, arguments))),
    (debug_report::NAME, |context, arguments| Box::pin(debug_report::run(context, arguments))),
    (delegate::NAME, |context, arguments| Box::pin(delegate::run(context, arguments))),
    (diff_preview::NAME, |context, arguments| Box::pin(diff_preview::run(context, arguments))),
    (discard::NAME, |context, arguments| Box::pin(discard::run(context, arguments))),
    (doctor::NAME, |context, arguments| Box::pin(doctor::run(context, arguments))),
    (events::NAME, |context, arguments| Box::pin(events::run(context, arguments))),
    (export::NAME, |context, arguments| Box::pin(export::run(context, arguments))),
    (harnesses::NAME, |context, arguments| Box::pin(harnesses::run(context, arguments))),
    (open_worktree::NAME, |context, arguments| Box::pin(open_worktree::run(context, arguments))),
    (restore_outside::NAME, |context, arguments| Box::pin(restore_outside::run(context, arguments))),
    (resume::NAME, |context, arguments| Box::pin(resume::run(context, arguments))),
    (retry::NAME, |context, arguments| Box::pin(retry::run(context, arguments))),
    (status::NAME, |context, arguments| Box::pin(status::run(context, arguments))),
    (undo::NAME, |context, arguments| Box::pin(undo::run(context, arguments))),
];

/// Runs the verb of the command `name`.
pub(super) async fn run(context: &Context, name: &'static str, arguments: Arguments) -> Answer {
    match RUN.iter().find(|(known, _)| *known == name) {
        Some((_, run)) => run(context, arguments).await,
        None => Err(Failure::internal(format!("{name} has no code"))),
    }
}

fn job_id(text: &str) -> Result<JobId, Failure> {
    text.parse().map_err(|error| {
        Failure::new(
            FailureCode::InvalidParams,
            format!("`jobId`: {error}"),
            "pass an id as pactify.status or pactify.delegate gives it",
        )
    })
}

fn answer(result: impl Serialize) -> Answer {
    standing_in(stand_in(&result))
}

fn standing_in(result: serde_json::Result<Value>) -> Answer {
    result.map_err(|error| Failure::internal(format!("the answer cannot be written: {error}")))
}

#[cfg(test)]
mod tests {
    use pactify_core::protocol::commands::ALL;

    use super::*;

    #[test]
    fn every_command_of_the_wire_has_code() {
        let mut wire: Vec<&str> = ALL.iter().map(|command| command.name).collect();
        wire.sort_unstable();
        let mut code: Vec<&str> = RUN.iter().map(|(name, _)| *name).collect();
        code.sort_unstable();
        assert_eq!(code, wire);
    }

    #[test]
    fn what_is_no_job_id_is_refused_by_name() {
        let failure = job_id("../../etc").unwrap_err();
        assert_eq!(failure.code, FailureCode::InvalidParams);
        assert!(failure.message.starts_with("`jobId`"), "{}", failure.message);
    }
}
