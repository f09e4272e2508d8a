//! Work-done progress per token: one begin, the newest report at most ten times a second, one end. Pure.
//!
//! Owns the order of a token's life. A token is asked for first (the queue does that); until the client accepts it,
//! reports only replace each other. A refused or expired token is forgotten, and nothing is ever sent under it.

use std::time::Duration;

use lsp_types::{
    NumberOrString, ProgressParams, ProgressParamsValue, WorkDoneProgress, WorkDoneProgressBegin, WorkDoneProgressEnd,
    WorkDoneProgressReport,
};
use tokio::sync::watch;
use tokio::time::Instant;

/// Time between two reports under one token.
pub(super) const INTERVAL: Duration = Duration::from_millis(100);

#[derive(Debug, Default)]
pub(super) struct Progresses {
    /// In the order they were opened; there are as many as running jobs.
    entries: Vec<Entry>,
}

#[derive(Debug)]
struct Entry {
    token: NumberOrString,
    stage: Stage,
    report: Option<WorkDoneProgressReport>,
    end: Option<WorkDoneProgressEnd>,
    cancelled: watch::Sender<bool>,
}

#[derive(Debug)]
enum Stage {
    /// The client was asked for the token.
    Asked { begin: WorkDoneProgressBegin, expires: Instant },
    /// It agreed.
    Accepted { begin: WorkDoneProgressBegin },
    /// The begin is out; the next report may follow at this time.
    Begun { next: Instant },
}

impl Progresses {
    pub(super) fn open(
        &mut self,
        token: NumberOrString,
        begin: WorkDoneProgressBegin,
        cancelled: watch::Sender<bool>,
        expires: Instant,
    ) {
        let stage = Stage::Asked { begin, expires };
        self.entries.push(Entry { token, stage, report: None, end: None, cancelled });
    }

    pub(super) fn accept(&mut self, token: &NumberOrString) {
        let Some(entry) = self.find(token) else { return };
        if let Stage::Asked { begin, .. } = &entry.stage {
            entry.stage = Stage::Accepted { begin: begin.clone() };
        }
    }

    pub(super) fn refuse(&mut self, token: &NumberOrString) {
        self.entries.retain(|entry| entry.token != *token);
    }

    pub(super) fn report(&mut self, token: &NumberOrString, report: WorkDoneProgressReport) {
        if let Some(entry) = self.find(token) {
            entry.report = Some(report);
        }
    }

    pub(super) fn end(&mut self, token: &NumberOrString, end: WorkDoneProgressEnd) {
        if let Some(entry) = self.find(token) {
            entry.end = Some(end);
        }
    }

    /// Passes on that the person pressed cancel. Says whether the token is known.
    pub(super) fn cancel(&mut self, token: &NumberOrString) -> bool {
        self.find(token).is_some_and(|entry| {
            entry.cancelled.send_replace(true);
            true
        })
    }

    pub(super) fn knows(&self, token: &NumberOrString) -> bool {
        self.entries.iter().any(|entry| entry.token == *token)
    }

    /// Gives up tokens that the client was too slow to accept. Says whether there were any.
    pub(super) fn expire(&mut self, now: Instant) -> bool {
        let before = self.entries.len();
        self.entries.retain(|entry| !matches!(entry.stage, Stage::Asked { expires, .. } if expires <= now));
        self.entries.len() < before
    }

    /// What may be sent now.
    pub(super) fn collect(&mut self, now: Instant) -> Vec<ProgressParams> {
        let mut out = Vec::new();
        self.entries.retain_mut(|entry| entry.collect(now, &mut out));
        out
    }

    /// When [`Self::collect`] or [`Self::expire`] has something to do next.
    pub(super) fn due(&self) -> Option<Instant> {
        let due = |entry: &Entry| match entry.stage {
            Stage::Asked { expires, .. } => Some(expires),
            Stage::Begun { next } if entry.report.is_some() => Some(next),
            // Whatever is not held back by the clock is taken by the collect that follows the change.
            Stage::Accepted { .. } | Stage::Begun { .. } => None,
        };
        self.entries.iter().filter_map(due).min()
    }

    fn find(&mut self, token: &NumberOrString) -> Option<&mut Entry> {
        self.entries.iter_mut().find(|entry| entry.token == *token)
    }
}

impl Entry {
    /// Says whether the entry lives on.
    fn collect(&mut self, now: Instant, out: &mut Vec<ProgressParams>) -> bool {
        let mut send = |value| {
            out.push(ProgressParams { token: self.token.clone(), value: ProgressParamsValue::WorkDone(value) });
        };
        if let Stage::Accepted { begin } = &self.stage {
            send(WorkDoneProgress::Begin(begin.clone()));
            self.stage = Stage::Begun { next: now };
        }
        let Stage::Begun { next } = &mut self.stage else { return true };
        if *next <= now
            && let Some(report) = self.report.take()
        {
            send(WorkDoneProgress::Report(report));
            *next = now + INTERVAL;
        }
        // The last report is always shown, so the end waits for its turn.
        if self.report.is_none()
            && let Some(end) = self.end.take()
        {
            send(WorkDoneProgress::End(end));
            return false;
        }
        true
    }
}
