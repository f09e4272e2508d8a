//! Everything the server sends to the client on its own account: requests, notifications, progress.
//!
//! An [`Outbox`] is a cloneable handle that never blocks and never fails to return: a client that does not read makes
//! notifications be dropped (and counted, see [`Delivery`]), never memory grow. Every request has a deadline, because
//! some editors never answer one. **A request handler must not await the client**: start a task that does.
//!
//! Doesn't look at the client's capabilities: callers ask for what the client said it can do. The queue itself, with
//! its limits, is [`queue`]; reports of progress are [`progress`].

use std::future::poll_fn;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Poll;
use std::time::Duration;

use lsp_types::notification::Notification;
use lsp_types::request::Request;
use lsp_types::{NumberOrString, WorkDoneProgressBegin, WorkDoneProgressEnd, WorkDoneProgressReport};
use serde::Serialize;
use serde_json::Value;
use serde_json::value::RawValue;
use tokio::sync::{Notify, oneshot, watch};
use tokio::time::Instant;
use tower_lsp::jsonrpc::{self, Id, Response};

pub use queue::{Delivery, Limits};
use queue::{Queue, Waiter};

pub(super) mod progress;
pub(super) mod queue;

/// Bytes that an answer takes beside its result.
const AROUND_RESULT: usize = 64;
/// How long the client may take to accept a progress token before that progress is given up.
const TOKEN_DEADLINE: Duration = Duration::from_secs(10);

/// Why a request of ours has no answer.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum ClientError {
    /// The client did not answer in time.
    #[error("the editor did not answer {method} within {within:?}")]
    Unanswered {
        /// What was asked.
        method: &'static str,
        /// The time it had.
        within: Duration,
    },
    /// The client answered with an error.
    #[error("the editor refused {method}: {error}")]
    Refused {
        /// What was asked.
        method: &'static str,
        /// What it said.
        error: jsonrpc::Error,
    },
    /// The client's answer is not what the protocol says.
    #[error("the editor's answer to {method} cannot be read: {detail}")]
    Unreadable {
        /// What was asked.
        method: &'static str,
        /// Where it went wrong.
        detail: String,
    },
    /// Too much is waiting to be read by the client; nothing was sent.
    #[error("the editor does not read what it is sent, so {method} was not sent")]
    Deaf {
        /// What would have been asked.
        method: &'static str,
    },
    /// The session is over.
    #[error("the session ended before {method} was answered")]
    Closed {
        /// What was asked.
        method: &'static str,
    },
}

/// The way to the client.
#[derive(Debug, Clone)]
pub struct Outbox {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    queue: Mutex<Queue>,
    /// Something can be written.
    filled: Notify,
    /// Something was written.
    drained: Notify,
}

impl Default for Outbox {
    fn default() -> Self {
        Self::new(Limits::default())
    }
}

impl Outbox {
    /// An outbox whose queue keeps within `limits`.
    pub fn new(limits: Limits) -> Self {
        let queue = Mutex::new(Queue::new(limits));
        Self { shared: Arc::new(Shared { queue, filled: Notify::new(), drained: Notify::new() }) }
    }

    /// Sends a request at once; the future is its answer. Dropping the future gives the answer up.
    pub fn request<R: Request>(
        &self,
        params: R::Params,
        within: Duration,
    ) -> impl Future<Output = Result<R::Result, ClientError>> + Send + 'static + use<R> {
        let (sender, answer) = oneshot::channel();
        let sent = self.with_queue(|queue| queue.request(R::METHOD, &params, Waiter::Caller(sender)));
        let guard = sent.as_ref().ok().map(|id| Unwanted { id: id.clone(), outbox: self.clone() });
        async move {
            let method = R::METHOD;
            sent.map_err(|delivery| match delivery {
                Delivery::Closed => ClientError::Closed { method },
                _ => ClientError::Deaf { method },
            })?;
            let answer = tokio::time::timeout(within, answer).await;
            drop(guard);
            let result = answer
                .map_err(|_| ClientError::Unanswered { method, within })?
                .map_err(|_| ClientError::Closed { method })?
                .map_err(|error| ClientError::Refused { method, error })?;
            serde_json::from_value(result)
                .map_err(|error| ClientError::Unreadable { method, detail: error.to_string() })
        }
    }

    /// Sends a notification, unless the client is deaf.
    pub fn notify<N: Notification>(&self, params: &N::Params) -> Delivery {
        self.with_queue(|queue| queue.notify(N::METHOD, params))
    }

    /// Sends a notification of which only the newest per `key` matters, such as the diagnostics of one document. It
    /// takes the place of an older one that still waits, so a client that wakes up is told the present state.
    pub fn notify_latest<N: Notification>(&self, key: &str, params: &N::Params) -> Delivery {
        self.with_queue(|queue| queue.notify_latest(N::METHOD, key, params))
    }

    /// Opens progress under a token of ours. The client sees exactly one begin and one end if it accepts the token,
    /// and nothing if it refuses it, stays silent or is deaf. Needs `window.workDoneProgress`.
    pub fn progress(&self, begin: WorkDoneProgressBegin) -> Progress {
        let (sender, cancelled) = watch::channel(false);
        let expires = Instant::now() + TOKEN_DEADLINE;
        let token = self.with_queue(|queue| queue.open_progress(begin, sender, expires));
        Progress { token, cancelled, outbox: self.clone() }
    }

    /// Queues the answer to a request of the client. Never dropped; the reader stops instead. Wakes nobody: the loop
    /// that calls this goes on to poll the writer.
    pub(super) fn respond(&self, response: &Response) {
        self.lock().push(response);
    }

    /// The same for a result that is JSON already.
    pub(super) fn respond_written(&self, id: &Id, result: &RawValue) {
        let about = result.get().len() + AROUND_RESULT;
        self.lock().push_sized(&Written { jsonrpc: "2.0", result, id }, about);
    }

    /// Queues a request that came through tower-lsp's own `Client`.
    pub(super) fn forward(&self, request: &jsonrpc::Request) {
        self.with_queue(|queue| queue.push(request));
    }

    /// Hands an answer to whoever asked. Says whether the request was ours and still open.
    pub(super) fn answer(&self, id: &Id, result: Result<Value, jsonrpc::Error>) -> bool {
        self.with_queue(|queue| queue.answer(id, result))
    }

    /// The person pressed cancel. Says whether the token is ours.
    pub(super) fn cancel_progress(&self, token: &NumberOrString) -> bool {
        self.with_queue(|queue| queue.progress.cancel(token))
    }

    /// Whether so much waits to be read by the client that no more of its requests should be taken.
    pub(super) fn is_congested(&self) -> bool {
        self.lock().is_congested()
    }

    /// Waits until the client has read something.
    pub(super) async fn drained(&self) {
        self.shared.drained.notified().await;
    }

    /// Waits for bytes to write; `None` once the outbox is closed and empty.
    pub(super) async fn next_batch(&self) -> Option<Vec<u8>> {
        loop {
            let (batch, due) = {
                let mut queue = self.lock();
                let batch = queue.take(Instant::now());
                if batch.is_empty() && queue.is_closed() {
                    return None;
                }
                (batch, queue.progress.due())
            };
            if !batch.is_empty() {
                self.shared.drained.notify_one();
                return Some(batch);
            }
            match due {
                Some(due) => tokio::select! {
                    () = self.filled() => {}
                    () = tokio::time::sleep_until(due) => {}
                },
                None => self.filled().await,
            }
        }
    }

    /// Waits until something can be written: looks at every poll, and is woken by whoever queues from elsewhere.
    async fn filled(&self) {
        let mut notified = pin!(self.shared.filled.notified());
        poll_fn(|context| match self.lock().is_empty() {
            true => notified.as_mut().poll(context),
            false => Poll::Ready(()),
        })
        .await;
    }

    /// Ends every wait for an answer; what is queued may still be written.
    pub(super) fn close(&self) {
        self.with_queue(Queue::close);
    }

    fn with_queue<T>(&self, change: impl FnOnce(&mut Queue) -> T) -> T {
        let value = change(&mut self.lock());
        self.shared.filled.notify_one();
        value
    }

    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.shared.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// An answer whose result is JSON already.
#[derive(Serialize)]
struct Written<'a> {
    jsonrpc: &'static str,
    result: &'a RawValue,
    id: &'a Id,
}

/// Progress shown by the editor. Dropping it ends it.
#[derive(Debug)]
pub struct Progress {
    token: Option<NumberOrString>,
    cancelled: watch::Receiver<bool>,
    outbox: Outbox,
}

impl Progress {
    /// Shows a newer state; at most ten a second are sent, the newest always.
    pub fn report(&self, report: WorkDoneProgressReport) {
        if let Some(token) = &self.token {
            self.outbox.with_queue(|queue| queue.progress.report(token, report));
        }
    }

    /// Ends it with a last message.
    pub fn end(mut self, message: Option<String>) {
        self.finish(message);
    }

    /// A future that completes when the person presses cancel, and never otherwise.
    pub fn cancelled(&self) -> impl Future<Output = ()> + Send + 'static + use<> {
        let mut cancelled = self.cancelled.clone();
        async move {
            if cancelled.wait_for(|cancelled| *cancelled).await.is_err() {
                std::future::pending::<()>().await;
            }
        }
    }

    fn finish(&mut self, message: Option<String>) {
        if let Some(token) = self.token.take() {
            self.outbox.with_queue(|queue| queue.progress.end(&token, WorkDoneProgressEnd { message }));
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.finish(None);
    }
}

/// Forgets a request whose answer nobody waits for any more, so that a client that never answers costs no memory.
struct Unwanted {
    id: String,
    outbox: Outbox,
}

impl Drop for Unwanted {
    fn drop(&mut self) {
        self.outbox.lock().forget(&self.id);
    }
}

#[cfg(test)]
mod tests;
