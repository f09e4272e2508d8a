//! The wire: commands, their arguments and results, notifications.
//!
//! `docs/protocol.md` is the contract; these types are its source, and the clients' TypeScript and Lua types are
//! generated from them (`cargo xtask codegen`). Names are camelCase, ids are strings, times are RFC 3339 UTC. Shapes
//! only grow: clients ignore fields they don't know, and so do we ([`serde`] skips unknown input fields here).
//! Translating between these and the engine's values happens in [`view`] and in the front ends.

use crate::failure::{Conflict, Failure};
use crate::job::setup::Approval;

/// Gives each type of the wire the same derives.
macro_rules! wire {
    ($($(#[$meta:meta])* pub struct $name:ident { $($body:tt)* })*) => {$(
        $(#[$meta])*
        #[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
        #[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
        #[serde(rename_all = "camelCase")]
        pub struct $name { $($body)* }
    )*};
}

mod answer;
mod apply;
mod approve;
mod choices;
pub mod commands;
mod delegate;
mod events;
mod login;
mod machine;
mod outside;
mod preview;
mod prune;
mod status;
pub mod view;
pub mod words;

pub use answer::*;
pub use apply::*;
pub use approve::*;
pub use choices::{BriefSource, ExportForm, HarnessChoice, OutlookKind, PreviewFormat, Severity, Side};
pub use delegate::*;
pub use events::*;
pub use login::*;
pub use machine::*;
pub use outside::*;
pub use preview::*;
pub use prune::*;
pub use status::*;
pub use words::{Ending, Tone};

wire! {
    /// `initializationOptions.pactify` of a thin client.
    pub struct ClientOptions {
        /// Whether the client wants `pactify/job/event` and `pactify/job/changed`.
        #[serde(default)]
        pub events: bool,
        /// Whether the client wants `pactify/job/changed` alone: a job can have thousands of events a second.
        #[serde(default)]
        pub changes: bool,
        /// Whether the server says by `window/showMessage` how a job ended, and by `window/showMessageRequest` what
        /// it asks: true when absent. A client that does both in its own way turns it off.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub messages: Option<bool>,
    }

    /// The `data` of a JSON-RPC error.
    pub struct ErrorData {
        /// Stable; see `docs/protocol.md`.
        pub code: crate::FailureCode,
        /// What went wrong, without the next step. (The error's own `message` has both, for clients that show only
        /// that.)
        pub message: String,
        /// What the person can do now.
        pub next: String,
        /// Every path concerned.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        pub conflicts: Vec<Conflict>,
        /// With `approvalRequired`: what the person is asked. `pactify.approve` takes the answer.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub approval: Option<Box<Approval>>,
    }
}

impl From<Failure> for ErrorData {
    fn from(failure: Failure) -> Self {
        let Failure { code, message, next, conflicts, approval } = failure;
        Self { code, message, next, conflicts, approval }
    }
}
