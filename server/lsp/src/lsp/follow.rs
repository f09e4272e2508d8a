//! One job, followed until it is over: its progress in the editor, its events for thin clients, its end in words.
//!
//! A [`Follower`] is a loop of its own over one `enum Event`. It owns the job's progress, so that a follower that is
//! dropped (shutdown) still ends it. It reads what the engine says and asks it to cancel or to recover the job;
//! which jobs are followed is [`super::session`]'s business.

use std::pin::Pin;
use std::time::Duration;

use jiff::Timestamp;
use lsp_types::{MessageType, ShowMessageParams, WorkDoneProgressBegin, WorkDoneProgressReport, notification};
use pactify_core::job::outcome::{Disposition, Outcome};
use pactify_core::job::state::SeenState;
use pactify_core::protocol::commands::{JOB_CHANGED, JOB_EVENT};
use pactify_core::protocol::words::{self, Tone};
use pactify_core::protocol::{JobChangedParams, JobDetail, JobEventParams, JobMoved, JobSummary};
use pactify_core::{Failure, JobId, display};
use pactify_engine::jobs::Jobs;
use tokio::task::JoinHandle;

use super::asking::Asking;
use super::capabilities::ClientFeatures;
use super::context::Engine;
use crate::look::{Look, Next, Watch};
use crate::transport::{Outbox, Progress};

/// Time between two looks.
const PACE: Duration = Duration::from_millis(100);

/// Which of the events that exist already a thin client is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Replay {
    /// All: it asked for the job just now.
    All,
    /// None: it asks for what it wants of a job that it finds running.
    Nothing,
}

/// Follows one job.
pub(super) struct Follower {
    engine: Engine,
    outbox: Outbox,
    client: ClientFeatures,
    job: JobId,
    progress: Option<Progress>,
    shown: Option<String>,
    told: Option<Standing>,
    cancel: Cancel,
    asking: Asking,
    last: Option<JobDetail>,
}

/// The person's cancel of the progress; it can be pressed once.
enum Cancel {
    Possible,
    Asked(JoinHandle<Result<JobMoved, Failure>>),
    Answered,
}

/// What a client is told of by `pactify/job/changed`. A job may stand as it did and be another one: resumed and ended
/// between two looks, or applied a part at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Standing {
    state: SeenState,
    outcome: Option<Outcome>,
    disposition: Disposition,
    ended_at: Option<Timestamp>,
    decided_at: Option<Timestamp>,
}

/// A notification `pactify/job/event`.
enum JobEvent {}

/// A notification `pactify/job/changed`.
enum JobChanged {}

enum Event {
    Looked(Result<Box<Look>, Failure>),
    CancelPressed,
    CancelAnswered(Result<JobMoved, Failure>),
    QuestionDone(Result<(), Failure>),
}

type Looking = Pin<Box<dyn Future<Output = Result<Box<Look>, Failure>> + Send>>;

impl Follower {
    pub(super) fn new(engine: Engine, outbox: Outbox, client: ClientFeatures, job: JobId) -> Self {
        Self {
            engine,
            outbox,
            client,
            job,
            progress: None,
            shown: None,
            told: None,
            cancel: Cancel::Possible,
            asking: Asking::default(),
            last: None,
        }
    }

    /// Follows the job to its end; gives the job as it was seen last.
    pub(super) async fn run(mut self, replay: Replay) -> (JobId, Option<JobSummary>) {
        let mut looking = self.first_look(replay);
        let mut watch = Watch::default();
        loop {
            match self.next(&mut looking).await {
                Event::CancelPressed => self.ask_to_cancel(),
                Event::CancelAnswered(answer) => {
                    self.cancel = Cancel::Answered;
                    if let Err(failure) = answer {
                        self.say(MessageType::ERROR, &failure.message, &failure.next);
                    }
                }
                Event::QuestionDone(answered) => {
                    if let Err(failure) = answered {
                        self.say(MessageType::ERROR, &failure.message, &failure.next);
                    }
                    self.ask();
                }
                Event::Looked(Err(failure)) => {
                    tracing::warn!(job = %self.job, code = %failure.code.as_str(), "the job cannot be followed");
                    self.end_progress("cannot be followed any longer");
                    return (self.job, None);
                }
                Event::Looked(Ok(look)) => {
                    self.show(&look);
                    self.last = Some(look.job.clone());
                    self.ask();
                    let next = watch.next(look.job.summary.state);
                    if next == Next::Stop {
                        self.show_end(&look.job);
                        return (self.job, Some(look.job.summary));
                    }
                    looking = self.look(look.next, next);
                }
            }
        }
    }

    async fn next(&mut self, looking: &mut Looking) -> Event {
        let Self { cancel, progress, asking, .. } = self;
        tokio::select! {
            look = looking => Event::Looked(look),
            event = cancel.next(progress.as_ref()) => event,
            answered = asking.done() => Event::QuestionDone(answered),
        }
    }

    /// Asks what the job asks for, as it was seen last.
    fn ask(&mut self) {
        if let Some(last) = self.last.as_ref().filter(|_| self.client.asks) {
            self.asking.see(&last.summary, &last.requests, &self.engine, &self.outbox);
        }
    }

    fn first_look(&self, replay: Replay) -> Looking {
        let job = self.job.clone();
        self.looking(Duration::ZERO, move |jobs| {
            let mut look = Look::at(jobs, &job, 0, None)?;
            if replay == Replay::Nothing {
                look.events.clear();
            }
            Ok(look)
        })
    }

    fn look(&self, after: u64, next: Next) -> Looking {
        let job = self.job.clone();
        self.looking(PACE, move |jobs| Look::next(jobs, &job, after, next))
    }

    fn looking(&self, pause: Duration, look: impl FnOnce(&Jobs) -> Result<Look, Failure> + Send + 'static) -> Looking {
        let engine = self.engine.clone();
        Box::pin(async move {
            tokio::time::sleep(pause).await;
            engine.work(look).await.map(Box::new)
        })
    }

    fn show(&mut self, look: &Look) {
        let job = &look.job.summary;
        if self.client.events {
            for event in &look.events {
                let params = JobEventParams { job_id: job.id.clone(), event: event.clone() };
                self.outbox.notify::<JobEvent>(&params);
            }
        }
        if self.client.changes {
            let standing = standing(job);
            if self.told != Some(standing) {
                self.told = Some(standing);
                announce(&self.outbox, job);
            }
        }
        let activity = words::activity(job);
        match &self.progress {
            None if self.client.progress => {
                self.progress = Some(self.outbox.progress(WorkDoneProgressBegin {
                    title: words::title(job),
                    cancellable: Some(true),
                    message: Some(activity.clone()),
                    percentage: None,
                }));
            }
            // How it ended is the end's to say.
            Some(progress) if job.state != SeenState::Finished && self.shown.as_ref() != Some(&activity) => {
                let message = Some(activity.clone());
                progress.report(WorkDoneProgressReport { cancellable: Some(true), message, percentage: None });
            }
            _ => {}
        }
        self.shown = Some(activity);
    }

    fn show_end(&mut self, job: &JobDetail) {
        let ending = words::ending(job);
        self.end_progress(&ending.what);
        if self.client.messages {
            let tone = match ending.tone {
                Tone::Good | Tone::Plain => MessageType::INFO,
                Tone::Bad => MessageType::ERROR,
            };
            self.say(tone, &format!("{}: {}", words::title(&job.summary), ending.what), &ending.next);
        }
    }

    fn end_progress(&mut self, message: &str) {
        if let Some(progress) = self.progress.take() {
            progress.end(Some(message.to_owned()));
        }
    }

    fn ask_to_cancel(&mut self) {
        let (engine, job) = (self.engine.clone(), self.job.clone());
        self.cancel = Cancel::Asked(tokio::spawn(async move { engine.work(move |jobs| jobs.cancel(&job)).await }));
    }

    fn say(&self, tone: MessageType, what: &str, next: &str) {
        let message = display::neutral_block(&format!("{what}; {next}")).into_owned();
        self.outbox.notify::<notification::ShowMessage>(&ShowMessageParams { typ: tone, message });
    }
}

impl Cancel {
    /// The next thing that happens to it. Cancel-safe.
    async fn next(&mut self, progress: Option<&Progress>) -> Event {
        match (self, progress) {
            (Self::Asked(answer), _) => Event::CancelAnswered(answer.await.unwrap_or_else(broken)),
            (Self::Possible, Some(progress)) => {
                progress.cancelled().await;
                Event::CancelPressed
            }
            (Self::Possible | Self::Answered, _) => std::future::pending().await,
        }
    }
}

/// Where a job stands, as far as clients are told of changes.
pub(super) fn standing(job: &JobSummary) -> Standing {
    let JobSummary { state, outcome, disposition, ended_at, decided_at, .. } = *job;
    Standing { state, outcome, disposition, ended_at, decided_at }
}

/// Tells a thin client where a job stands now.
pub(super) fn announce(outbox: &Outbox, job: &JobSummary) {
    let JobSummary { state, outcome, disposition, .. } = *job;
    outbox.notify::<JobChanged>(&JobChangedParams { job_id: job.id.clone(), state, outcome, disposition });
}

fn broken(error: tokio::task::JoinError) -> Result<JobMoved, Failure> {
    Err(Failure::internal(format!("the cancel broke off: {error}")))
}

impl notification::Notification for JobEvent {
    type Params = JobEventParams;
    const METHOD: &'static str = JOB_EVENT;
}

impl notification::Notification for JobChanged {
    type Params = JobChangedParams;
    const METHOD: &'static str = JOB_CHANGED;
}
