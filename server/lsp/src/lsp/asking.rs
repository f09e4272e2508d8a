//! What a job asks for, asked in the editor: one question at a time, the oldest first.
//!
//! Other editors and terminals ask the same; the first answer counts, for the job's host as well. A question whose
//! request is no longer open is given up: whatever is chosen in it then means nothing. A person who closes it without
//! an answer is not asked again here; the request stays open until somebody answers, or nobody did in time.

use std::collections::HashSet;
use std::time::Duration;

use lsp_types::request::ShowMessageRequest;
use lsp_types::{MessageActionItem, MessageType, ShowMessageRequestParams};
use pactify_core::protocol::{AnswerParams, JobSummary, WaitingView, words};
use pactify_core::{Failure, FailureCode};
use tokio::task::JoinHandle;

use super::context::Engine;
use crate::transport::Outbox;

/// How long the editor may take: longer than requests commonly stay open, and never for ever.
const PATIENCE: Duration = Duration::from_secs(60 * 60);

/// The questions of one job.
#[derive(Default)]
pub(super) struct Asking {
    open: Vec<WaitingView>,
    /// Open requests that the person was asked about.
    asked: HashSet<String>,
    question: Option<Question>,
}

/// The question in front of the person. Dropping it gives it up.
struct Question {
    request: String,
    answer: JoinHandle<Result<(), Failure>>,
}

impl Asking {
    /// These requests of the job are open now.
    pub(super) fn see(&mut self, job: &JobSummary, open: &[WaitingView], engine: &Engine, outbox: &Outbox) {
        self.open = open.to_vec();
        let is_open = |id: &String| open.iter().any(|waiting| waiting.request_id == *id);
        self.asked.retain(is_open);
        if self.question.as_ref().is_some_and(|question| !is_open(&question.request)) {
            self.question = None;
        }
        if self.question.is_some() {
            return;
        }
        let Some(waiting) = self.open.iter().find(|waiting| !self.asked.contains(&waiting.request_id)) else { return };
        self.asked.insert(waiting.request_id.clone());
        let answer = tokio::spawn(ask(job.clone(), waiting.clone(), engine.clone(), outbox.clone()));
        self.question = Some(Question { request: waiting.request_id.clone(), answer });
    }

    /// Completes when the question is done with; never while there is none. What it gives is worth telling only if it
    /// is a failure. Cancel-safe.
    pub(super) async fn done(&mut self) -> Result<(), Failure> {
        let Some(question) = &mut self.question else { return std::future::pending().await };
        let answered = (&mut question.answer).await;
        self.question = None;
        match answered {
            Ok(answered) => answered,
            Err(error) => Err(Failure::internal(format!("asking broke off: {error}"))),
        }
    }
}

impl Drop for Question {
    fn drop(&mut self) {
        self.answer.abort();
    }
}

async fn ask(job: JobSummary, waiting: WaitingView, engine: Engine, outbox: Outbox) -> Result<(), Failure> {
    let choices: Vec<(String, String)> =
        words::choices(&waiting).into_iter().map(|(name, option)| (name, option.id.clone())).collect();
    let action = |title: &String| MessageActionItem { title: title.clone(), properties: Default::default() };
    let params = ShowMessageRequestParams {
        typ: MessageType::WARNING,
        // VS Code would make a link of `[…](command:…)`, which are an agent's words.
        message: words::question(&job, &waiting, engine.env().now()).replace("](", "]\u{2060}("),
        actions: Some(choices.iter().map(|(title, _)| action(title)).collect()),
    };
    let chosen = match outbox.request::<ShowMessageRequest>(params, PATIENCE).await {
        Ok(chosen) => chosen,
        Err(error) => {
            tracing::info!(job = %job.id, %error, "the editor gives no answer to a permission request");
            None
        }
    };
    let option = chosen.and_then(|chosen| choices.into_iter().find(|(title, _)| *title == chosen.title));
    let Some((_, option_id)) = option else { return Ok(()) };
    let params = AnswerParams { job_id: job.id, request_id: waiting.request_id, option_id };
    match engine.work(move |jobs| jobs.answer(&params)).await {
        // Somebody else was faster, or it expired just now.
        Err(failure) if failure.code == FailureCode::RequestNotOpen => Ok(()),
        answered => answered.map(drop),
    }
}
