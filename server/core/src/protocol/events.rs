//! What happened to a job, asked for or told.

use jiff::Timestamp;

use crate::job::event::Record;
use crate::job::outcome::{Disposition, Outcome};
use crate::job::state::SeenState;

wire! {
    /// Argument of `pactify.events`.
    pub struct EventsParams {
        /// The job.
        pub job_id: String,
        /// Only events after this position.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub after: Option<u64>,
        /// At most this many: 200 when absent, 1000 at most.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub limit: Option<u32>,
    }

    /// Result of `pactify.events`.
    pub struct EventList {
        /// The events, oldest first.
        pub events: Vec<EventView>,
        /// What to pass as `after` for those that follow.
        pub next: u64,
    }

    /// One event.
    pub struct EventView {
        /// Its position in the journal.
        pub seq: u64,
        /// When it was written.
        #[cfg_attr(feature = "schema", schemars(with = "String"))]
        pub at: Timestamp,
        /// The attempt it belongs to.
        pub attempt: u32,
        /// The event as it is recorded, tagged by `type` (`docs/protocol.md`).
        pub event: serde_json::Value,
        /// The event in one line for people, in the result of `pactify.events`; absent where only programs care.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub text: Option<String>,
    }

    /// The notification `pactify/job/event`.
    pub struct JobEventParams {
        /// The job.
        pub job_id: String,
        /// What happened.
        #[serde(flatten)]
        pub event: EventView,
    }

    /// The notification `pactify/job/changed`.
    pub struct JobChangedParams {
        /// The job.
        pub job_id: String,
        /// Where it stands now.
        pub state: SeenState,
        /// How it ended, once it did.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub outcome: Option<Outcome>,
        /// What became of its result.
        pub disposition: Disposition,
    }
}

impl EventView {
    /// The same event, with its [`text`](Self::text).
    #[must_use]
    pub fn in_words(self) -> Self {
        Self { text: super::words::event(&self), ..self }
    }
}

impl From<&Record> for EventView {
    fn from(record: &Record) -> Self {
        Self {
            seq: record.seq.0,
            at: record.at,
            attempt: record.attempt.get(),
            event: serde_json::to_value(&record.event).unwrap_or_default(),
            text: None,
        }
    }
}
