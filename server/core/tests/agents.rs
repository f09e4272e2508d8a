//! kimi and opencode, from outside: what they plan, who is logged in with them, which model a session has. How they are
//! understood is the ACP driver's, and tested with it; what their records and logs are worth is tested beside the code
//! that reads them.

#![expect(clippy::unwrap_used, reason = "a test whose set-up fails has failed")]

#[expect(dead_code, reason = "what harnesses of all kinds need, and this one does not")]
#[path = "kit/asked.rs"]
mod asked;
#[path = "agents/logins.rs"]
mod logins;
#[path = "agents/person.rs"]
mod person;
#[path = "agents/plan.rs"]
mod plan;
#[path = "agents/session.rs"]
mod session;
