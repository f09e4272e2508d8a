//! Agents that speak the Agent Client Protocol, from outside: how recorded runs are understood, what is sent, what
//! hostile agents do to it.

#![expect(clippy::unwrap_used, reason = "a test whose set-up fails has failed")]

#[path = "acp/agent.rs"]
mod agent;
#[expect(dead_code, reason = "what harnesses of all kinds need, and this one does not")]
#[path = "kit/asked.rs"]
mod asked;
#[path = "acp/conversation.rs"]
mod conversation;
#[path = "acp/hostile.rs"]
mod hostile;
#[path = "acp/missed.rs"]
mod missed;
#[path = "acp/replay.rs"]
mod replay;
#[path = "acp/schema.rs"]
mod schema;
