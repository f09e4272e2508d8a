//! The codex harness, from outside: what it plans, how it understands recorded runs, what hostile output does to it.

#![expect(clippy::unwrap_used, reason = "a test whose set-up fails has failed")]

#[path = "codex/hostile.rs"]
mod hostile;
#[path = "codex/plan.rs"]
mod plan;
#[path = "codex/replay.rs"]
mod replay;
#[path = "codex/request.rs"]
mod request;
