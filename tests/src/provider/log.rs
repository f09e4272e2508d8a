//! What the provider was asked, in order, and a way to wait for it. Bounded: old entries make room for new ones.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use serde::Serialize;
use serde_json::Value;

/// As many entries are kept …
const MOST_ENTRIES: usize = 2_000;
/// … and as many bytes of request bodies.
const MOST_BYTES: usize = 128 << 20;

/// One thing that happened.
#[derive(Clone, Debug, Serialize)]
pub struct Entry {
    /// Since the provider started.
    #[serde(rename = "millis", serialize_with = "as_millis")]
    pub at: Duration,
    /// What it was.
    pub kind: Kind,
    /// HTTP method.
    pub method: String,
    /// Path and query as sent.
    pub path: String,
    /// The script it belongs to.
    pub script: String,
    /// The session it belongs to (`-` without one).
    pub session: String,
    /// Which request of its session it is, from 0.
    pub turn: usize,
    /// Header names in lower case; values that aren't text are left out.
    pub headers: BTreeMap<String, String>,
    /// The body, `Null` if there was none; text that isn't JSON as a string.
    pub body: Value,
    #[serde(skip)]
    pub(super) bytes: usize,
}

/// What an [`Entry`] reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// A request for a model's answer.
    Request,
    /// One that lacked the `Authorization` which its script requires.
    Unauthorized,
    /// The client closed the connection before the answer of that request was complete.
    ClientGone,
    /// A refresh of a login.
    OAuth,
    /// Anything else, such as a look at the list of models, or a request for a title.
    Other,
}

pub(super) struct Log {
    start: Instant,
    kept: Mutex<Kept>,
    grown: Condvar,
}

#[derive(Default)]
struct Kept {
    entries: VecDeque<Entry>,
    bytes: usize,
}

impl Log {
    pub(super) fn new() -> Self {
        Self { start: Instant::now(), kept: Mutex::default(), grown: Condvar::new() }
    }

    pub(super) fn push(&self, mut entry: Entry) {
        entry.at = self.start.elapsed();
        let mut kept = self.kept();
        kept.bytes += entry.bytes;
        kept.entries.push_back(entry);
        while kept.entries.len() > MOST_ENTRIES || kept.bytes > MOST_BYTES {
            let Some(oldest) = kept.entries.pop_front() else { break };
            kept.bytes -= oldest.bytes;
        }
        drop(kept);
        self.grown.notify_all();
    }

    pub(super) fn entries(&self) -> Vec<Entry> {
        self.kept().entries.iter().cloned().collect()
    }

    pub(super) fn clear(&self) {
        *self.kept() = Kept::default();
    }

    pub(super) fn wait_for(
        &self,
        patience: Duration,
        mut is_reached: impl FnMut(&[Entry]) -> bool,
    ) -> Option<Vec<Entry>> {
        let (mut kept, timeout) = self
            .grown
            .wait_timeout_while(self.kept(), patience, |kept| !is_reached(kept.entries.make_contiguous()))
            .unwrap_or_else(PoisonError::into_inner);
        (!timeout.timed_out()).then(|| kept.entries.make_contiguous().to_vec())
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        // A predicate of a test may panic while it looks; the log itself is never left half-changed.
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn as_millis<S: serde::Serializer>(at: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_u64(u64::try_from(at.as_millis()).unwrap_or(u64::MAX))
}
