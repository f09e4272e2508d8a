//! Jobs' trees against real git: made, captured, told from their base, removed.
#![expect(clippy::unwrap_used, reason = "all of it is test code, the support included")]

mod checkout;
mod contents;
mod covered;
mod environment;
mod formats;
mod hostile;
mod landed;
mod oracle;
mod ordinary;
mod outside;
mod parts;
mod populate;
mod refusals;
mod removal;
mod reports;
mod room;
mod shapes;
mod snapshot;
mod support;
mod threats;
