//! Agents that speak the Agent Client Protocol (ACP, version 1), over their standard input and output.
//!
//! One driver for all of them ([`AcpDriver`]): a process, a session, a prompt. What an agent has of its own is its
//! [`Dialect`]; kimi and opencode are dialects, and any other agent is [`Plain`]. The protocol's shapes are read
//! loosely ([`wire`]); tests hold what is sent against the official schema (`docs/decisions/`, "Agents that speak
//! ACP").
//!
//! Read next: [`driver`] (the conversation), [`turn`] (what is told of the work), [`ask`] (what is asked).

mod ask;
mod detail;
mod driver;
mod failure;
mod own;
mod session;
mod tool;
mod turn;
mod wire;

use serde_json::Value;

use super::Evidence;
use crate::Failure;
use crate::job::event::Usage;

pub use super::failure::Speaker;
pub use ask::Ask;
pub use driver::AcpDriver;
pub use failure::Stage;
pub use own::{AcpProtocol, OwnAgent};
pub use wire::RpcError;

/// What one agent has of its own. Made for one launch, so it knows the job's mode.
pub trait Dialect: Send {
    /// The agent, and how a person logs in with it.
    fn speaker(&self) -> Speaker<'_>;

    /// The agent, as sentences call it.
    fn agent(&self) -> &str {
        self.speaker().agent
    }

    /// Whether it is offered to read and write the tree's files through us.
    fn offers_files(&self) -> bool {
        false
    }

    /// The login method that it must be asked for before a session, by its id.
    fn login_method(&self) -> Option<&str> {
        None
    }

    /// The mode that the session is to be in, by its id.
    fn mode(&self) -> Option<&str> {
        None
    }

    /// Whether the model is chosen over the protocol. Where it is not, the launch has chosen it.
    fn chooses_model(&self) -> bool {
        true
    }

    /// Whether the model that it names `actual` is the one of this name, `wanted`.
    fn is_model(&self, wanted: &str, actual: &str) -> bool {
        wanted == actual
    }

    /// Whether what it asks is no permission: then nobody answers it.
    fn is_question(&self, ask: &Ask) -> bool {
        ask.has_several_answers()
    }

    /// What a refusal means, where this agent's words say more than the general rules know.
    fn failure(&self, _stage: Stage, _error: &RpcError) -> Option<Failure> {
        None
    }

    /// What an end without an answer means, given the end of what it said on standard error.
    fn exit_failure(&self, _stderr: &str) -> Option<Failure> {
        None
    }

    /// The words with which it refuses a call by itself.
    fn refusals(&self) -> &'static [Refusal] {
        &[]
    }

    /// What follows from an update (`session/update`) beside what every agent's means.
    fn on_update(&mut self, _update: &Value) -> Vec<Finding> {
        Vec::new()
    }

    /// What follows from a tool that it used, whatever came of that, by the tool's name.
    fn on_tool(&mut self, _name: &str) -> Vec<Finding> {
        Vec::new()
    }

    /// What follows from a line of standard error.
    fn on_stderr(&mut self, _line: &str) -> Vec<Finding> {
        Vec::new()
    }

    /// Its own records that tell how the session really ended.
    fn evidence(&self, _session: &str) -> Vec<Evidence> {
        Vec::new()
    }

    /// A line of one that is read by lines; `None` for one that is too long.
    fn on_evidence_line(&mut self, _evidence: &Evidence, _line: Option<&[u8]>) {}

    /// What follows from one of them; `None` when it is not there, or longer than its limit.
    fn on_evidence(&mut self, _evidence: &Evidence, _contents: Option<&[u8]>) -> Vec<Finding> {
        Vec::new()
    }
}

/// Something that only a dialect knows.
#[derive(Clone, Debug, PartialEq)]
pub enum Finding {
    /// A person should know it.
    Notice {
        /// A stable name for it.
        id: &'static str,
        /// One sentence.
        text: String,
    },
    /// The turn did not end as the agent says. Can only make a success a failure; the first one counts.
    Contradiction(Failure),
    /// The turn will never end by itself: it is ended now, for this reason.
    GiveUp(Failure),
    /// The tokens of this attempt, by its own records.
    Usage(Usage),
}

/// How an agent words that it did not let a call happen: what came of the call begins with the one and has the other in
/// it.
#[derive(Clone, Copy, Debug)]
pub struct Refusal(pub &'static str, pub &'static str);

impl Refusal {
    /// Whether this is one.
    fn is_in(&self, output: &str) -> bool {
        output.starts_with(self.0) && output.contains(self.1)
    }
}

/// An agent without quirks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plain {
    /// The agent, as sentences call it.
    pub agent: String,
    /// What a person does who has no login: one step.
    pub log_in: String,
    /// The mode that the session is to be in.
    pub mode: Option<String>,
    /// The login method to ask for.
    pub login_method: Option<String>,
}

impl Plain {
    /// The agent of this name, of which nothing else is known.
    pub fn named(agent: &str) -> Self {
        let log_in = format!("log {agent} in, as it does in a terminal, then retry the job");
        Self { agent: agent.to_owned(), log_in, mode: None, login_method: None }
    }
}

impl Dialect for Plain {
    fn speaker(&self) -> Speaker<'_> {
        Speaker { agent: &self.agent, log_in: &self.log_in }
    }

    fn offers_files(&self) -> bool {
        true
    }

    fn login_method(&self) -> Option<&str> {
        self.login_method.as_deref()
    }

    fn mode(&self) -> Option<&str> {
        self.mode.as_deref()
    }
}
