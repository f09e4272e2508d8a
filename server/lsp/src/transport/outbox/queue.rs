//! What waits to be written to the client, and which requests wait for its answer. Pure: the time comes in.
//!
//! Owns the bounds. Up to [`Limits`] everything queues in order; above them the client counts as *deaf*:
//! notifications are dropped and counted, requests refused. Answers to the client's own requests are never dropped;
//! they stay bounded because the reader takes no further message while the queue is over its limits. Progress is not
//! queued at all: [`super::progress`] keeps one state per token and is asked when there is room.

use std::collections::{HashMap, VecDeque};

use lsp_types::notification::{LogMessage, Notification, Progress};
use lsp_types::request::{Request, WorkDoneProgressCreate};
use lsp_types::{LogMessageParams, MessageType, NumberOrString, WorkDoneProgressBegin, WorkDoneProgressCreateParams};
use serde::Serialize;
use serde_json::Value;
use serde_json::value::{RawValue, to_raw_value};
use tokio::sync::{oneshot, watch};
use tokio::time::Instant;
use tower_lsp::jsonrpc::{Error, Id};

use super::progress::Progresses;
use crate::transport::frame;

/// One write takes about this much at most.
const BATCH: usize = 256 * 1024;
/// Ours are strings, so that they can't be taken for the numbers that tower-lsp's `Client` uses.
const ID_PREFIX: &str = "pactify-";
/// What a message starts with room for, whose size nobody knows.
const SMALL_BODY: usize = 128;

/// How much may wait for a client that does not read.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Messages.
    pub messages: usize,
    /// Bytes of message bodies.
    pub bytes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { messages: 4096, bytes: 4 * 1024 * 1024 }
    }
}

/// What became of a notification.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Delivery {
    /// It will be written in its turn.
    Queued,
    /// The client is deaf: dropped. When it reads again a `window/logMessage` tells it how many were.
    Dropped,
    /// The session is over.
    Closed,
}

/// Who wants an answer of the client.
#[derive(Debug)]
pub(super) enum Waiter {
    /// A task.
    Caller(oneshot::Sender<Result<Value, Error>>),
    /// Progress that may begin once its token is accepted.
    Token(NumberOrString),
}

#[derive(Debug)]
enum Message {
    Body(Vec<u8>),
    /// The place in the order of the newest body under this key.
    Latest(String),
}

#[derive(Debug)]
pub(super) struct Queue {
    pub(super) progress: Progresses,
    limits: Limits,
    messages: VecDeque<Message>,
    latest: HashMap<String, Vec<u8>>,
    bytes: usize,
    waiters: HashMap<String, Waiter>,
    next_id: u64,
    dropped: u64,
    closed: bool,
}

impl Queue {
    pub(super) fn new(limits: Limits) -> Self {
        Self {
            progress: Progresses::default(),
            limits,
            messages: VecDeque::new(),
            latest: HashMap::new(),
            bytes: 0,
            waiters: HashMap::new(),
            next_id: 0,
            dropped: 0,
            closed: false,
        }
    }

    pub(super) fn is_congested(&self) -> bool {
        self.messages.len() > self.limits.messages || self.bytes > self.limits.bytes
    }

    /// Whether no message waits; progress may.
    pub(super) fn is_empty(&self) -> bool {
        self.messages.is_empty()
    }

    pub(super) fn is_closed(&self) -> bool {
        self.closed
    }

    /// Queues a message whatever the limits say.
    pub(super) fn push(&mut self, message: &impl Serialize) {
        self.push_body(|| to_body(message));
    }

    /// The same for a message that takes `about` so many bytes.
    pub(super) fn push_sized(&mut self, message: &impl Serialize, about: usize) {
        self.push_body(|| to_sized_body(message, about));
    }

    /// Queues a request and gives its id.
    pub(super) fn request(
        &mut self,
        method: &str,
        params: &impl Serialize,
        waiter: Waiter,
    ) -> Result<String, Delivery> {
        if self.closed {
            return Err(Delivery::Closed);
        }
        if self.is_congested() {
            return Err(Delivery::Dropped);
        }
        self.next_id += 1;
        let id = format!("{ID_PREFIX}{}", self.next_id);
        self.push(&Call::new(Some(&id), method, params));
        self.waiters.insert(id.clone(), waiter);
        Ok(id)
    }

    pub(super) fn notify(&mut self, method: &str, params: &impl Serialize) -> Delivery {
        if let Some(refused) = self.refuse() {
            return refused;
        }
        self.push(&Call::new(None, method, params));
        Delivery::Queued
    }

    pub(super) fn notify_latest(&mut self, method: &str, key: &str, params: &impl Serialize) -> Delivery {
        let key = format!("{method} {key}");
        let replaced = self.latest.get(&key).map(Vec::len);
        if let (None, Some(refused)) = (replaced, self.refuse()) {
            return refused;
        }
        let body = to_body(&Call::new(None, method, params));
        self.bytes = self.bytes + body.len() - replaced.unwrap_or(0);
        if replaced.is_none() {
            self.messages.push_back(Message::Latest(key.clone()));
        }
        self.latest.insert(key, body);
        Delivery::Queued
    }

    /// Asks the client for a progress token; `None` where it cannot be asked.
    pub(super) fn open_progress(
        &mut self,
        begin: WorkDoneProgressBegin,
        cancelled: watch::Sender<bool>,
        expires: Instant,
    ) -> Option<NumberOrString> {
        let token = NumberOrString::String(format!("{ID_PREFIX}progress-{}", self.next_id + 1));
        let params = WorkDoneProgressCreateParams { token: token.clone() };
        self.request(WorkDoneProgressCreate::METHOD, &params, Waiter::Token(token.clone())).ok()?;
        self.progress.open(token.clone(), begin, cancelled, expires);
        Some(token)
    }

    pub(super) fn answer(&mut self, id: &Id, result: Result<Value, Error>) -> bool {
        let Id::String(id) = id else { return false };
        match self.waiters.remove(id) {
            Some(Waiter::Caller(sender)) => {
                // The caller may have given up between the answer and now.
                let _ = sender.send(result);
            }
            Some(Waiter::Token(token)) => match result {
                Ok(_) => self.progress.accept(&token),
                Err(_) => self.progress.refuse(&token),
            },
            None => return false,
        }
        true
    }

    pub(super) fn forget(&mut self, id: &str) {
        self.waiters.remove(id);
    }

    /// Takes the next bytes to write. Called when the previous ones are out, so never while the client is deaf.
    pub(super) fn take(&mut self, now: Instant) -> Vec<u8> {
        if self.progress.expire(now) {
            let Self { waiters, progress, .. } = self;
            waiters.retain(|_, waiter| !matches!(waiter, Waiter::Token(token) if !progress.knows(token)));
        }
        let mut batch = Vec::new();
        while batch.len() < BATCH
            && let Some(message) = self.messages.pop_front()
        {
            let body = match message {
                Message::Body(body) => body,
                Message::Latest(key) => self.latest.remove(&key).unwrap_or_default(),
            };
            self.bytes -= body.len();
            frame::encode(&body, &mut batch);
        }
        if self.messages.is_empty() {
            // Gives back what a burst made the buffer grow to.
            self.messages.shrink_to(64);
            self.tell_what_was_dropped(&mut batch);
        }
        for params in self.progress.collect(now) {
            frame::encode(&to_body(&Call::new(None, Progress::METHOD, &params)), &mut batch);
        }
        batch
    }

    pub(super) fn close(&mut self) {
        self.closed = true;
        self.waiters.clear();
        self.progress = Progresses::default();
    }

    fn refuse(&mut self) -> Option<Delivery> {
        if self.closed {
            return Some(Delivery::Closed);
        }
        if self.is_congested() {
            self.dropped += 1;
            return Some(Delivery::Dropped);
        }
        None
    }

    fn push_body(&mut self, body: impl FnOnce() -> Vec<u8>) {
        if !self.closed {
            let body = body();
            self.bytes += body.len();
            self.messages.push_back(Message::Body(body));
        }
    }

    fn tell_what_was_dropped(&mut self, batch: &mut Vec<u8>) {
        let count = std::mem::take(&mut self.dropped);
        if count == 0 {
            return;
        }
        let message = format!("pactify: {count} notifications were dropped because the editor did not read them");
        let params = LogMessageParams { typ: MessageType::WARNING, message };
        frame::encode(&to_body(&Call::new(None, LogMessage::METHOD, &params)), batch);
    }
}

/// A request or notification of ours as it is written.
#[derive(Serialize)]
struct Call<'a> {
    jsonrpc: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<&'a str>,
    method: &'a str,
    /// Left out where there are none: some clients refuse `null`.
    #[serde(skip_serializing_if = "Option::is_none")]
    params: Option<Box<RawValue>>,
}

impl<'a> Call<'a> {
    fn new(id: Option<&'a str>, method: &'a str, params: &impl Serialize) -> Self {
        let params = to_raw_value(params)
            .inspect_err(|error| tracing::error!(%error, method, "the parameters cannot be written as JSON"));
        Self { jsonrpc: "2.0", id, method, params: params.ok().filter(|params| params.get() != "null") }
    }
}

/// Protocol types are always JSON; should one not be, the client is sent an empty body and says so.
fn to_body(message: &impl Serialize) -> Vec<u8> {
    to_sized_body(message, SMALL_BODY)
}

fn to_sized_body(message: &impl Serialize, about: usize) -> Vec<u8> {
    let mut body = Vec::with_capacity(about);
    match serde_json::to_writer(&mut body, message) {
        Ok(()) => body,
        Err(error) => {
            tracing::error!(%error, "a message cannot be written as JSON");
            Vec::new()
        }
    }
}
