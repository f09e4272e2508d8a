//! What the server has said: read and checked in a thread, kept until a test takes it.
//!
//! The reading is strict: anything but well-formed frames of JSON ends it, with the reason in every later wait.

use std::collections::VecDeque;
use std::io::Read;
use std::ops::Range;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;

use super::{Policy, Reply, Sender, lock};

#[derive(Default)]
pub(super) struct Inbox {
    state: Mutex<InboxState>,
    changed: Condvar,
}

#[derive(Default)]
struct InboxState {
    messages: VecDeque<Value>,
    reading: Reading,
    /// Why no further message can come.
    ended: Option<String>,
}

#[derive(Default, PartialEq, Eq)]
pub(super) enum Reading {
    #[default]
    On,
    Paused,
    Closed,
}

impl Inbox {
    /// Waits for the first message that `wanted` picks and takes it out.
    pub(super) fn take(&self, within: Duration, mut wanted: impl FnMut(&Value) -> bool) -> Result<Value> {
        let deadline = Instant::now() + within;
        let mut state = lock(&self.state);
        let mut looked_at = 0;
        loop {
            if let Some(at) = state.messages.iter().skip(looked_at).position(&mut wanted) {
                return state.messages.remove(looked_at + at).context("the message is gone");
            }
            looked_at = state.messages.len();
            if let Some(reason) = &state.ended {
                bail!("no further message: {reason}");
            }
            let left = deadline.saturating_duration_since(Instant::now());
            ensure!(!left.is_zero(), "the deadline has passed");
            state = self.changed.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    pub(super) fn drain(&self) -> Vec<Value> {
        lock(&self.state).messages.drain(..).collect()
    }

    pub(super) fn set(&self, reading: Reading) {
        lock(&self.state).reading = reading;
        self.changed.notify_all();
    }
}

/// Reads the server's output in a thread of its own.
pub(super) struct Receiver {
    pub(super) output: Box<dyn Read + Send>,
    pub(super) inbox: Arc<Inbox>,
    pub(super) input: Sender,
    pub(super) policy: Policy,
    pub(super) pause_at: Option<&'static str>,
}

impl Receiver {
    pub(super) fn run(mut self) {
        let reason = match self.receive() {
            Ok(reason) => reason,
            Err(error) => format!("the server broke the protocol: {error:#}"),
        };
        lock(&self.inbox.state).ended = Some(reason);
        self.inbox.changed.notify_all();
    }

    fn receive(&mut self) -> Result<String> {
        let mut bytes = Vec::new();
        let mut buffer = vec![0; 64 * 1024];
        loop {
            if !self.wait_until_reading() {
                return Ok("the client closed the server's output".to_owned());
            }
            let count = match self.output.read(&mut buffer) {
                Ok(0) => break,
                Ok(count) => count,
                Err(error) => return Ok(format!("the server's output cannot be read: {error}")),
            };
            bytes.extend_from_slice(&buffer[..count]);
            while let Some((body, rest)) = split_frame(&bytes)? {
                let message: Value = serde_json::from_slice(&bytes[body]).context("a body is not JSON")?;
                bytes.drain(..rest);
                self.deliver(message);
            }
        }
        ensure!(bytes.is_empty(), "the output ends inside a frame: {:?}", String::from_utf8_lossy(&bytes));
        Ok("the server closed its output".to_owned())
    }

    fn deliver(&mut self, message: Value) {
        let asked = message["method"].as_str().filter(|_| message.get("id").is_some());
        let reply = asked.map_or(Reply::Never, |method| (self.policy)(method, &message["params"]));
        let id = message["id"].clone();
        let mut state = lock(&self.inbox.state);
        if self.pause_at.is_some_and(|method| message["method"] == method) {
            state.reading = Reading::Paused;
        }
        state.messages.push_back(message);
        drop(state);
        self.inbox.changed.notify_all();
        // A server that has gone is noticed by the read.
        let _ = self.input.respond(id, reply);
    }

    fn wait_until_reading(&self) -> bool {
        let paused = |state: &mut InboxState| state.reading == Reading::Paused;
        let state = self.inbox.changed.wait_while(lock(&self.inbox.state), paused);
        state.unwrap_or_else(PoisonError::into_inner).reading == Reading::On
    }
}

/// The first frame's body as a range, and where the next frame starts. Strict: our server sends one header.
fn split_frame(bytes: &[u8]) -> Result<Option<(Range<usize>, usize)>> {
    const HEADER: &[u8] = b"Content-Length: ";
    let known = bytes.len().min(HEADER.len());
    ensure!(
        bytes[..known] == HEADER[..known],
        "not a header: {:?}",
        String::from_utf8_lossy(&bytes[..bytes.len().min(80)])
    );
    let Some(end) = bytes.windows(4).take(64).position(|window| window == b"\r\n\r\n") else {
        ensure!(bytes.len() < 64, "a header without an end");
        return Ok(None);
    };
    let length: usize = std::str::from_utf8(&bytes[HEADER.len()..end])?.parse()?;
    let body = end + 4..end + 4 + length;
    Ok((bytes.len() >= body.end).then_some((body.clone(), body.end)))
}
