//! A job, watched until it is over: one changing line on a terminal, plain lines elsewhere.
//!
//! What it asks for is asked here, where a person can answer ([`super::question`]).
//! Ctrl-C asks the job to cancel and goes on watching it end; a second one leaves the job alone. The job never
//! depends on who watches.

use std::pin::Pin;
use std::time::Duration;

use pactify_core::protocol::words;
use pactify_core::protocol::{JobDetail, JobSummary};
use pactify_core::{Failure, JobId};
use tokio::signal::unix::{SignalKind, signal};
use tokio::time::{MissedTickBehavior, interval};

use super::Terminal;
use super::output::FAINT;
use super::question::Questions;
use crate::look::{Look, Next, Watch};

/// Time between two looks at a lost job.
const RECOVERY_PACE: Duration = Duration::from_millis(100);

/// How watching ended.
pub(super) enum Watched {
    /// The job is over, or lost for good.
    Over(Box<JobDetail>),
    /// The person left it running.
    Left,
    /// It was to go on, and does not.
    TakenBack,
}

enum Event {
    Looked(Result<Box<Look>, Failure>),
    Tick,
    Interrupt,
    Line(String),
}

type Looking = Pin<Box<dyn Future<Output = Result<Box<Look>, Failure>>>>;

/// Watches `job` from its first event on. `notices` are told at once, and not again among the events. The end of the
/// attempt `before` is not the one that is waited for: the job is to go on, perhaps once it is its turn.
pub(super) fn watch(
    terminal: &Terminal,
    job: &JobId,
    notices: &[String],
    before: Option<u32>,
) -> Result<Watched, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| Failure::internal(format!("no event loop: {error}")))?;
    let watched = runtime.block_on(watch_on(terminal, job, notices, before));
    // A look may still wait for the job; nothing is lost with it.
    runtime.shutdown_background();
    watched
}

async fn watch_on(
    terminal: &Terminal,
    job: &JobId,
    notices: &[String],
    before: Option<u32>,
) -> Result<Watched, Failure> {
    let told: Vec<String> = notices.iter().map(|notice| words::notice(notice)).collect();
    told.iter().for_each(|line| terminal.output.note_styled(&[(line, FAINT)]));
    // One for the whole time: a Ctrl-C between two of them would be lost.
    let mut interrupted = signal(SignalKind::interrupt())
        .map_err(|error| Failure::internal(format!("Ctrl-C cannot be listened for: {error}")))?;
    let mut clock = interval(Duration::from_secs(1));
    clock.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut looking = look(terminal, job, 0, None);
    let mut watching = Watch::default();
    let mut shown: Option<JobSummary> = None;
    let (mut interrupts, mut queues) = (0, false);
    let mut questions = Questions::default();
    loop {
        let event = tokio::select! {
            looked = &mut looking => Event::Looked(looked),
            _ = clock.tick() => Event::Tick,
            Some(()) = interrupted.recv() => Event::Interrupt,
            line = questions.line() => Event::Line(line),
        };
        match event {
            Event::Tick => {}
            Event::Line(line) => questions.take(terminal, job, &line),
            Event::Interrupt if interrupts == 0 => {
                interrupts = 1;
                terminal.output.note(&format!("cancelling {job}; press Ctrl-C again to leave it running"));
                ask_to_cancel(terminal, job);
            }
            Event::Interrupt => return Ok(Watched::Left),
            Event::Looked(looked) => {
                let Look { job: detail, events, next } = *looked?;
                for line in events.iter().filter_map(words::event).filter(|line| !told.contains(line)) {
                    terminal.output.note_styled(&[(&line, FAINT)]);
                }
                let mut then = watching.next(detail.summary.state);
                if then == Next::Stop {
                    if before.is_none() || detail.attempt != before {
                        return Ok(Watched::Over(Box::new(detail)));
                    }
                    if !terminal.jobs.is_held(job)? && terminal.jobs.status(job)?.attempt == before {
                        return Ok(Watched::TakenBack);
                    }
                    if !std::mem::replace(&mut queues, true) {
                        terminal.output.note(&format!("{job} goes on when its turn comes"));
                    }
                    then = Next::Await;
                }
                questions.see(terminal, &detail.requests);
                shown = Some(detail.summary);
                looking = look(terminal, job, next, Some(then));
            }
        }
        // What the person types must not be overwritten.
        if let Some(job) = shown.as_ref().filter(|_| !questions.is_open()) {
            terminal.output.status(&status(job, terminal));
        }
    }
}

/// The first look, or the next one.
fn look(terminal: &Terminal, job: &JobId, after: u64, next: Option<Next>) -> Looking {
    let (jobs, job) = (terminal.jobs.clone(), job.clone());
    Box::pin(async move {
        if let Some(Next::Recover | Next::Look) = next {
            tokio::time::sleep(RECOVERY_PACE).await;
        }
        let looked = tokio::task::spawn_blocking(move || {
            let look = match next {
                None => Look::at(&jobs, &job, after, None),
                Some(next) => Look::next(&jobs, &job, after, next),
            };
            look.map(Box::new)
        });
        looked.await.unwrap_or_else(|error| Err(Failure::internal(format!("a look at the job broke off: {error}"))))
    })
}

fn ask_to_cancel(terminal: &Terminal, job: &JobId) {
    let (jobs, output, job) = (terminal.jobs.clone(), terminal.output.clone(), job.clone());
    tokio::task::spawn_blocking(move || {
        if let Err(failure) = jobs.cancel(&job) {
            output.note(&format!("the job cannot be cancelled: {failure}: {}", failure.next));
        }
    });
}

fn status(job: &JobSummary, terminal: &Terminal) -> String {
    let seconds = terminal.env().now().duration_since(job.started_at.unwrap_or(job.created_at)).as_secs().max(0);
    format!("{} · {}:{:02} · {}", words::title(job), seconds / 60, seconds % 60, words::activity(job))
}
