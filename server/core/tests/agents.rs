//! kimi and opencode, from outside: what they plan. How they are understood is the ACP driver's, and tested with it; what
//! their records and logs are worth is tested beside the code that reads them.

#![expect(clippy::unwrap_used, reason = "a test whose set-up fails has failed")]

#[path = "agents/plan.rs"]
mod plan;
#[expect(dead_code, reason = "it is codex's, too")]
#[path = "codex/request.rs"]
mod request;
