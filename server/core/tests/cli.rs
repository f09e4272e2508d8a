//! Programs of the person's own, from the configuration to the verdict.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test whose set-up fails has failed")]

#[path = "cli/asked.rs"]
mod asked;
#[path = "cli/plan.rs"]
mod plan;
#[path = "cli/verdict.rs"]
mod verdict;
