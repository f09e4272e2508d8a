//! The codex harness, from outside: what it plans, how it understands recorded runs, what hostile output does to it.

#[path = "codex/plan.rs"]
mod plan;
#[path = "codex/request.rs"]
mod request;
