//! What an agent's refusals and endings mean: one stable code, its own sentence, one next step.
//!
//! The protocol has one number that means something everywhere (−32000: log in); for the rest there are only the
//! agent's words, which mostly quote the provider ([`failure`]).

use serde_json::Value;

use super::super::failure::{self, EVENTS, Speaker};
use super::super::notices::one_line;
use super::wire::RpcError;
use crate::job::event::ExitRecord;
use crate::{Failure, FailureCode};

use FailureCode as C;

/// The protocol's "authentication required".
const AUTH_REQUIRED: i64 = -32000;

/// What the agent was asked when it refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// To speak the protocol.
    Initialize,
    /// For a login of the person's configuration.
    Authenticate,
    /// For a new session.
    Open,
    /// For the session of an earlier attempt.
    Load,
    /// For a mode or a model.
    Choose,
    /// To do the work.
    Prompt,
}

/// The failure behind a refusal.
pub(super) fn of_error(speaker: Speaker<'_>, stage: Stage, error: &RpcError) -> Failure {
    let Speaker { agent, log_in } = speaker;
    let said = sentence(error);
    if error.code == AUTH_REQUIRED {
        return Failure::new(C::LoginRequired, format!("{agent} asks for a login: {said}"), log_in);
    }
    match stage {
        Stage::Initialize => incompatible(agent, &format!("it refused to begin: {said}")),
        Stage::Load => failure::session_lost(agent, &said),
        Stage::Choose => Failure::new(
            C::InvalidConfig,
            format!("{agent} does not take the mode or model it was asked for: {said}"),
            "correct it in the job, or in the harness's section of the configuration",
        ),
        Stage::Authenticate => Failure::new(C::LoginRequired, format!("{agent} could not log in: {said}"), log_in),
        Stage::Open | Stage::Prompt => failure::of_sentence(speaker, &said),
    }
}

/// The agent's own words for a refusal: the data's, where the message is but the number's name.
fn sentence(error: &RpcError) -> String {
    let told = ["details", "message", "error"].iter().find_map(|key| error.data.get(key).and_then(Value::as_str));
    let more = told.or(error.data.as_str()).unwrap_or_default();
    let message = if error.message.is_empty() { "no reason given" } else { &error.message };
    one_line(&if more.is_empty() || message.contains(more) { message.to_owned() } else { format!("{message}: {more}") })
}

/// The agent speaks another protocol, or none.
pub(super) fn incompatible(agent: &str, how: &str) -> Failure {
    Failure::new(
        C::HarnessIncompatible,
        format!("{agent} does not speak version 1 of the Agent Client Protocol as pactify does: {how}"),
        "see that the command is the agent's ACP mode, and that agent and pactify are new enough",
    )
}

/// A turn that ended for a reason which is none to end well.
pub(super) fn of_stop(agent: &str, reason: &str) -> Failure {
    let (code, what, next) = match reason {
        "max_tokens" => (
            C::ProviderRefused,
            "ran into its limit of output".to_owned(),
            "resume the job to let it go on, or retry it with a smaller task",
        ),
        "max_turn_requests" => (
            C::HarnessFailed,
            "made as many requests as one turn may".to_owned(),
            "resume the job to let it go on, or raise the agent's own limit",
        ),
        "refusal" => {
            (C::ProviderRefused, "refused the task".to_owned(), "word the task differently, or use another model")
        }
        "cancelled" => {
            (C::HarnessFailed, "calls its turn cancelled, and nobody had asked for that".to_owned(), "retry the job")
        }
        other => (
            C::HarnessFailed,
            format!("ended its turn for a reason that this pactify does not know: {:?}", one_line(other)),
            EVENTS,
        ),
    };
    Failure::new(code, format!("{agent} {what}"), next)
}

/// A turn that was called complete without a closing word.
pub(super) fn empty_answer(agent: &str) -> Failure {
    Failure::new(
        C::NoResult,
        format!("{agent} calls its turn complete and gave no answer: its provider may have failed"),
        "see what it did with `pactify sub events` and `pactify sub diff`; resume or retry the job",
    )
}

/// A turn in which nothing succeeded after it was refused what it asked for, or a part of that.
pub(super) fn refused(agent: &str, refused: u32, granted: u32) -> Failure {
    let how = match granted {
        0 => format!("asked for {refused} permission(s), was refused them all"),
        _ => format!("was refused {refused} of the {} permissions that it asked for", granted.saturating_add(refused)),
    };
    Failure::new(
        C::HarnessFailed,
        format!("{agent} {how}, and nothing it tried succeeded"),
        "retry the job and grant what it needs, or let it do what it wants (`--permissions allow`)",
    )
}

/// What it wanted to do last it was not let do, and nothing after that went well.
pub(super) fn stopped(agent: &str) -> Failure {
    failure::refused(agent, "a permission was refused, and nothing it tried then succeeded")
}

/// A process that ended badly: before its answer, or after it.
pub(super) fn of_exit(agent: &str, exit: ExitRecord, had_answered: bool, stderr: &str) -> Failure {
    let ended = failure::ended(exit);
    if had_answered {
        return failure::late_exit(agent, &ended, stderr);
    }
    let unknown = ["unknown option", "unknown argument", "unexpected argument", "unrecognized"];
    if unknown.iter().any(|words| stderr.to_lowercase().contains(words)) {
        return incompatible(agent, &format!("it {ended}, as it does not know how it was started: {stderr}"));
    }
    let message = format!("{agent} {ended} before its turn was complete");
    let next = "run its command in a terminal to see what is wrong with it, then retry the job";
    Failure::new(C::HarnessFailed, message, next).quoting(stderr)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn refusals_have_codes() {
        let error = |code, message: &str, data| RpcError { code, message: message.to_owned(), data };
        for (stage, error, expected, says) in [
            (
                Stage::Prompt,
                error(-32000, "Authentication required: 401 x", Value::Null),
                C::LoginRequired,
                "asks for a login",
            ),
            (Stage::Open, error(-32000, "Auth", Value::Null), C::LoginRequired, "asks for a login"),
            (
                Stage::Prompt,
                error(-32603, "Internal error: mock says 401", json!({"service": "session"})),
                C::LoginRequired,
                "mock says 401",
            ),
            (
                Stage::Prompt,
                error(-32603, "Internal error", json!({"details": "429 slow"})),
                C::QuotaExceeded,
                "429 slow",
            ),
            (Stage::Prompt, error(-32603, "", Value::Null), C::HarnessFailed, "no reason"),
            (Stage::Load, error(-32602, "Unknown sessionId", Value::Null), C::WrongState, "Unknown sessionId"),
            (Stage::Initialize, error(-32601, "nope", Value::Null), C::HarnessIncompatible, "nope"),
            (Stage::Choose, error(-32602, "no such mode", Value::Null), C::InvalidConfig, "no such mode"),
        ] {
            let failure = of_error(Speaker { agent: "agent", log_in: "log in" }, stage, &error);
            assert_eq!(failure.code, expected, "{error:?}");
            assert!(failure.message.contains(says), "{error:?}: {}", failure.message);
            assert!(!failure.next.is_empty());
        }
    }
}
