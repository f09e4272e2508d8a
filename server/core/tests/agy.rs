//! The agy harness, from outside: what it plans, and what it makes of a turn.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test whose set-up fails has failed")]

#[path = "agy/asked.rs"]
mod asked;
#[path = "agy/plan.rs"]
mod plan;
#[path = "agy/verdict.rs"]
mod verdict;
