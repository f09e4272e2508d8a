//! What an agent's refusals and endings mean: one stable code, its own sentence, one next step.
//!
//! The protocol has one number that means something everywhere (−32000: log in); for the rest there are only the agent's
//! words, which mostly quote the provider. An unknown sentence still becomes a failure, with a general code.

use serde_json::Value;

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

/// If the sentence contains one of `needles` (in lower case), it means this.
struct Rule {
    needles: &'static [&'static str],
    code: FailureCode,
    what: &'static str,
    next: &'static str,
}

const fn rule(needles: &'static [&'static str], code: FailureCode, what: &'static str, next: &'static str) -> Rule {
    Rule { needles, code, what, next }
}

/// The step that depends on the agent.
const LOG_IN: &str = "";
const LATER: &str = "wait a little, then `pactify sub resume` or `retry` the job";

/// What agents quote of their providers, first match wins.
const PROVIDER: &[Rule] = &[
    rule(
        &["insufficient_quota", "quota exceeded", "exceeded your current quota", "usage limit", "billing", "402"],
        C::QuotaExceeded,
        "the provider's quota is used up",
        "wait until it is renewed, or see to the plan and billing; then retry the job",
    ),
    rule(
        &["429", "rate limit", "rate_limit", "too many requests"],
        C::QuotaExceeded,
        "the provider limits the rate of requests",
        LATER,
    ),
    rule(
        &[
            "401",
            "unauthorized",
            "authentication",
            "invalid api key",
            "incorrect api key",
            "invalid_api_key",
            "not logged in",
        ],
        C::LoginRequired,
        "the provider did not accept the login",
        LOG_IN,
    ),
    rule(
        &["context length", "context_length", "context window", "prompt is too long"],
        C::ProviderRefused,
        "the task outgrew the model's context",
        "start a new job with a smaller task; a resumed session would meet the same limit",
    ),
    rule(
        &["403", "forbidden", "permission_error"],
        C::ProviderRefused,
        "the provider refused the request",
        "see to the account's permissions and region",
    ),
    rule(
        &["404", "model_not_found", "model not found", "unknown model"],
        C::ProviderRefused,
        "the provider knows no such thing",
        "choose another model: the job's own, or `model` of the harness in the configuration",
    ),
    rule(
        &[
            "econnrefused",
            "connection refused",
            "unable to connect",
            "enotfound",
            "fetch failed",
            "connection error",
            "dns",
        ],
        C::ProviderUnreachable,
        "the agent could not reach its provider",
        "check the network, a proxy and the provider's address, then retry the job",
    ),
    rule(
        &["500", "502", "503", "504", "529", "overloaded", "internal server error", "timed out", "timeout"],
        C::ProviderUnreachable,
        "the provider is in trouble",
        LATER,
    ),
    rule(
        &["json parsing failed", "end of json", "parse", "unexpected token", "400", "bad request"],
        C::ProviderRefused,
        "the provider's answer could not be understood",
        "see that the provider speaks what the agent expects, then retry the job",
    ),
];

/// The failure behind a refusal.
pub(super) fn of_error(agent: &str, log_in: &str, stage: Stage, error: &RpcError) -> Failure {
    let said = sentence(error);
    if error.code == AUTH_REQUIRED {
        return Failure::new(C::LoginRequired, format!("{agent} asks for a login: {said}"), log_in);
    }
    match stage {
        Stage::Initialize => incompatible(agent, &format!("it refused to begin: {said}")),
        Stage::Load => session_lost(agent, &said),
        Stage::Choose => Failure::new(
            C::InvalidConfig,
            format!("{agent} does not take the mode or model it was asked for: {said}"),
            "correct it in the job, or in the harness's section of the configuration",
        ),
        Stage::Authenticate => Failure::new(C::LoginRequired, format!("{agent} could not log in: {said}"), log_in),
        Stage::Open | Stage::Prompt => of_sentence(agent, log_in, &said),
    }
}

/// The failure behind an agent's sentence about its turn.
pub(in super::super) fn of_sentence(agent: &str, log_in: &str, said: &str) -> Failure {
    let lower = said.to_lowercase();
    let found = PROVIDER.iter().find(|rule| rule.needles.iter().any(|needle| contains(&lower, needle)));
    let Some(rule) = found else {
        return Failure::new(
            C::HarnessFailed,
            format!("{agent}'s turn failed: {said}"),
            "see what it objects to, then retry the job",
        );
    };
    let next = if rule.next == LOG_IN { log_in } else { rule.next };
    Failure::new(rule.code, format!("{}: {said}", rule.what), next)
}

/// A number is only a status when it stands by itself: an id or an address may hold any.
fn contains(text: &str, needle: &str) -> bool {
    if !needle.bytes().all(|b| b.is_ascii_digit()) {
        return text.contains(needle);
    }
    text.match_indices(needle).any(|(at, _)| {
        let goes_on = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_alphanumeric);
        let bytes = text.as_bytes();
        !goes_on(at.checked_sub(1).and_then(|before| bytes.get(before))) && !goes_on(bytes.get(at + needle.len()))
    })
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

/// The session to go on with is not there, or is another one.
pub(super) fn session_lost(agent: &str, how: &str) -> Failure {
    Failure::new(
        C::WrongState,
        format!("{agent} cannot go on with the job's session: {how}"),
        "`pactify sub retry` the job: it starts anew, with the same brief",
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
            "see what it did with `pactify sub events`, then retry the job",
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
    Failure::new(
        C::HarnessFailed,
        format!("{agent} completed its turn after a permission was refused, and nothing it tried then succeeded"),
        "see what it did with `pactify sub diff`, which can be applied; resume the job with a message, or retry it",
    )
}

/// A turn that brings nothing new.
pub(super) fn endless(agent: &str) -> Failure {
    Failure::new(
        C::HarnessFailed,
        format!("{agent} does the same over and over: its turn was ended"),
        "check the provider's state: an answer that breaks off makes some agents ask for ever; then retry",
    )
}

/// A process that ended badly: before its answer, or after it.
pub(super) fn of_exit(agent: &str, exit: ExitRecord, had_answered: bool, stderr: &str) -> Failure {
    let ended = match exit {
        ExitRecord::Code(code) => format!("ended with exit code {code}"),
        ExitRecord::Signal(signal) => format!("was ended by signal {signal}"),
    };
    let unknown = ["unknown option", "unknown argument", "unexpected argument", "unrecognized"];
    if !had_answered && unknown.iter().any(|words| stderr.to_lowercase().contains(words)) {
        return incompatible(agent, &format!("it {ended}, as it does not know how it was started: {stderr}"));
    }
    let (message, next) = if had_answered {
        let next = "see what it left with `pactify sub diff`; retry the job if that is not all";
        (format!("{agent} completed its turn, then {ended}"), next)
    } else {
        let next = "run its command in a terminal to see what is wrong with it, then retry the job";
        (format!("{agent} {ended} before its turn was complete"), next)
    };
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
            (Stage::Prompt, error(-32603, "HTTP 503", Value::Null), C::ProviderUnreachable, "in trouble"),
            (Stage::Prompt, error(-32603, "it took 1500 steps", Value::Null), C::HarnessFailed, "1500 steps"),
            (Stage::Prompt, error(-32603, "broken, request id req_a429f", Value::Null), C::HarnessFailed, "req_a429f"),
            (Stage::Prompt, error(-32603, "", Value::Null), C::HarnessFailed, "no reason"),
            (Stage::Load, error(-32602, "Unknown sessionId", Value::Null), C::WrongState, "Unknown sessionId"),
            (Stage::Initialize, error(-32601, "nope", Value::Null), C::HarnessIncompatible, "nope"),
            (Stage::Choose, error(-32602, "no such mode", Value::Null), C::InvalidConfig, "no such mode"),
        ] {
            let failure = of_error("agent", "log in", stage, &error);
            assert_eq!(failure.code, expected, "{error:?}");
            assert!(failure.message.contains(says), "{error:?}: {}", failure.message);
            assert!(!failure.next.is_empty());
        }
    }
}
