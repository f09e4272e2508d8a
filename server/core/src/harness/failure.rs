//! What an agent's words about its provider mean, and how a process ended: one stable code, the agent's own sentence,
//! one next step.
//!
//! Tables of [`Rule`]s, first match wins. What providers and the libraries that speak to them say to everybody is here
//! ([`PROVIDER`], [`MALFORMED`]); the sentences of one program are its own rows, before or after these. An unknown
//! sentence still becomes a failure, with a general code.

use crate::job::event::ExitRecord;
use crate::{Failure, FailureCode, display};

use FailureCode as C;

/// If a sentence contains one of `needles` (in lower case), it means this.
#[derive(Debug)]
pub(crate) struct Rule {
    needles: &'static [&'static str],
    code: FailureCode,
    /// `{agent}` stands for the program.
    what: &'static str,
    next: Next,
}

/// What the person can do now.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Next {
    /// Log in, the way the program has.
    LogIn,
    /// Choose another model for it.
    Model,
    /// This.
    Do(&'static str),
}

/// A row of a table.
pub(crate) const fn rule(needles: &'static [&'static str], code: FailureCode, what: &'static str, next: Next) -> Rule {
    Rule { needles, code, what, next }
}

/// Next steps that several rows and programs share.
pub(crate) const LATER: &str = "wait a little, then `pactify sub resume` or `retry` the job";
pub(crate) const NETWORK: &str = "check the network, a proxy and the provider's address, then retry the job";
pub(crate) const ANEW: &str = "`pactify sub retry` the job: it starts anew, with the same brief";
pub(crate) const EVENTS: &str = "see what it did with `pactify sub events`, then retry the job";
const OBJECTS: &str = "see what it objects to, then retry the job";

/// What providers say, and what is said of those that cannot be reached.
pub(crate) const PROVIDER: &[Rule] = &[
    rule(
        &["insufficient_quota", "quota exceeded", "exceeded your current quota", "usage limit", "billing", "402"],
        C::QuotaExceeded,
        "the provider's quota is used up",
        Next::Do("wait until it is renewed, or see to the plan and billing; then retry the job"),
    ),
    rule(
        &["429", "rate limit", "rate_limit", "too many requests"],
        C::QuotaExceeded,
        "the provider limits the rate of requests",
        Next::Do(LATER),
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
        "{agent}'s provider did not accept the login",
        Next::LogIn,
    ),
    rule(
        &["context length", "context_length", "context window", "prompt is too long"],
        C::ProviderRefused,
        "the task outgrew the model's context",
        Next::Do("start a new job with a smaller task; a resumed session would meet the same limit"),
    ),
    rule(
        &["403", "forbidden", "permission_error"],
        C::ProviderRefused,
        "the provider refused the request",
        Next::Do("see to the account's permissions and region"),
    ),
    rule(
        &["404", "model_not_found", "model not found", "unknown model"],
        C::ProviderRefused,
        "the provider knows no such thing",
        Next::Model,
    ),
    rule(
        &[
            "econnrefused",
            "connection refused",
            "connection failed",
            "connection error",
            "unable to connect",
            "failed to connect",
            "enotfound",
            "failed to lookup address",
            "dns",
            "fetch failed",
            "error sending request",
            "waiting for network",
        ],
        C::ProviderUnreachable,
        "{agent} could not reach its provider",
        Next::Do(NETWORK),
    ),
    rule(
        &["500", "502", "503", "504", "529", "overloaded", "internal server error", "timed out", "timeout"],
        C::ProviderUnreachable,
        "the provider is in trouble",
        Next::Do(LATER),
    ),
];

/// What is said of an answer, or of a request, that made no sense to the other side.
pub(crate) const MALFORMED: &[Rule] = &[rule(
    &["json parsing failed", "end of json", "parse", "unexpected token", "400", "bad request"],
    C::ProviderRefused,
    "the provider's answer could not be understood",
    Next::Do("see that the provider speaks what the agent expects, then retry the job"),
)];

/// Whose words they are.
#[derive(Clone, Copy, Debug)]
pub struct Speaker<'a> {
    /// The program, as sentences call it; its section of the configuration has the same name.
    pub agent: &'a str,
    /// What a person does who has no login: one step.
    pub log_in: &'a str,
}

/// What a sentence means.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Meaning {
    pub(crate) code: FailureCode,
    pub(crate) what: String,
    pub(crate) next: String,
}

impl Rule {
    /// What it says of the one who speaks.
    pub(crate) fn meaning(&self, speaker: Speaker<'_>) -> Meaning {
        let Speaker { agent, log_in } = speaker;
        let next = match self.next {
            Next::LogIn => log_in.to_owned(),
            Next::Model => {
                format!("choose another model: the job's own, or `model` in [harnesses.{agent}] of the configuration")
            }
            Next::Do(step) => step.to_owned(),
        };
        Meaning { code: self.code, what: self.what.replace("{agent}", agent), next }
    }
}

impl Meaning {
    /// The failure that has `said` for its reason: a neutral line.
    pub(crate) fn failure(self, said: &str) -> Failure {
        Failure::new(self.code, format!("{}: {said}", self.what), self.next)
    }
}

/// The first row of these tables that `text` matches.
pub(crate) fn find(tables: &[&'static [Rule]], text: &str) -> Option<&'static Rule> {
    let text = text.to_lowercase();
    let says = |needle: &&str| match status(&text).filter(|_| is_number(needle)) {
        Some(status) => status == *needle,
        None => contains(&text, needle),
    };
    tables.iter().flat_map(|table| table.iter()).find(|rule| rule.needles.iter().any(&says))
}

/// The failure behind an agent's sentence about its turn: a neutral line.
pub(crate) fn of_sentence(speaker: Speaker<'_>, said: &str) -> Failure {
    match find(&[PROVIDER, MALFORMED], said) {
        Some(rule) => rule.meaning(speaker).failure(said),
        None => turn_failed(C::HarnessFailed, speaker.agent, said),
    }
}

/// What happened, for a reason that it gave in words of which this row is `known`; `said` is a neutral line, or
/// nothing.
pub(crate) fn with_reason(speaker: Speaker<'_>, known: Option<&Rule>, what: &str, said: &str) -> Failure {
    let (code, next) = match known.map(|rule| rule.meaning(speaker)) {
        Some(Meaning { code, next, .. }) => (code, next),
        None => (C::HarnessFailed, EVENTS.to_owned()),
    };
    Failure::new(code, if said.is_empty() { what.to_owned() } else { format!("{what}: {said}") }, next)
}

/// A turn that failed, for a reason that no table knows.
pub(crate) fn turn_failed(code: FailureCode, agent: &str, said: &str) -> Failure {
    Failure::new(code, format!("{agent}'s turn failed: {said}"), OBJECTS)
}

/// The session to go on with is not there, or cannot be used.
pub(crate) fn session_lost(agent: &str, how: &str) -> Failure {
    Failure::new(C::WrongState, format!("{agent} cannot go on with the job's session: {how}"), ANEW)
}

/// It answered, but knew nothing of what the job had done and said before.
pub(crate) fn session_replaced(agent: &str) -> Failure {
    let message = format!("{agent} did not go on with the job's session, but opened another one");
    Failure::new(C::WrongState, message, ANEW)
}

/// It called its turn complete after `what` was not let happen, and nothing after that made up for it: its closing
/// words cannot be believed.
pub(crate) fn refused(agent: &str, what: &str) -> Failure {
    Failure::new(
        C::HarnessFailed,
        format!("{agent} completed its turn after {what}"),
        "see what it did with `pactify sub diff`, which can be applied; resume the job with a message, or retry it",
    )
}

/// A turn that brings nothing new.
pub(crate) fn endless(agent: &str) -> Failure {
    Failure::new(
        C::HarnessFailed,
        format!("{agent} does the same over and over: its turn was ended"),
        "check the provider's state: an answer that breaks off makes some agents ask for ever; then retry",
    )
}

/// It was to work with one model, and works with another one: a smaller one may be called a success as well.
pub(crate) fn other_model(agent: &str, wanted: &str, actual: &str) -> Failure {
    let (wanted, actual) = (display::headline(wanted, 80), display::headline(actual, 80));
    Failure::new(
        C::InvalidConfig,
        format!("{agent} was given the model {wanted:?}, and works with {actual:?}"),
        format!("ask for {actual:?}, or for none: in the job, or as `model` of the harness in the configuration"),
    )
}

/// A run that called its turn complete, and then did not end well: `ended` says how, `said` what it said about that.
pub(crate) fn late_exit(agent: &str, ended: &str, said: &str) -> Failure {
    let next = "see what it left with `pactify sub diff`; retry the job if that is not all";
    Failure::new(C::HarnessFailed, format!("{agent} completed its turn, then {ended}"), next).quoting(said)
}

/// How a process ended, as the end of a sentence about it.
pub(crate) fn ended(exit: ExitRecord) -> String {
    match exit {
        ExitRecord::Code(code) => format!("ended with exit code {code}"),
        ExitRecord::Signal(signal) => format!("was ended by signal {signal}"),
    }
}

/// The number that `text` calls a status: no other one is, then.
fn status(text: &str) -> Option<&str> {
    text.match_indices("status").find_map(|(at, word)| {
        let rest = text[at + word.len()..].trim_start_matches(" code").trim_start_matches([' ', ':', '=']);
        let number = &rest[..rest.find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(rest.len())];
        (number.len() == 3 && is_number(number)).then_some(number)
    })
}

fn is_number(text: &str) -> bool {
    text.bytes().all(|b| b.is_ascii_digit())
}

/// A number is only a status when it stands by itself: an id or an address may hold any.
fn contains(text: &str, needle: &str) -> bool {
    if !is_number(needle) {
        return text.contains(needle);
    }
    text.match_indices(needle).any(|(at, _)| {
        let goes_on = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_alphanumeric);
        let bytes = text.as_bytes();
        !goes_on(at.checked_sub(1).and_then(|before| bytes.get(before))) && !goes_on(bytes.get(at + needle.len()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sentences_about_providers_have_codes() {
        for (said, code, next) in [
            ("insufficient_quota: 429", C::QuotaExceeded, "billing"),
            ("429 slow down", C::QuotaExceeded, "wait a little"),
            ("AI_APICallError: mock says 401", C::LoginRequired, "log in there"),
            ("This model's maximum context length is 8", C::ProviderRefused, "smaller task"),
            ("HTTP 403", C::ProviderRefused, "region"),
            ("unknown model m", C::ProviderRefused, "[harnesses.one]"),
            ("connect ECONNREFUSED 127.0.0.1:40429", C::ProviderUnreachable, "network"),
            ("status: 503", C::ProviderUnreachable, "wait a little"),
            ("unexpected status 400 Bad Request: Invalid 'input[402].content'", C::ProviderRefused, "speaks what"),
            ("no status of 7, but 429", C::QuotaExceeded, "wait a little"),
            ("Unexpected token '<'", C::ProviderRefused, "speaks what"),
            ("it took 1500 steps", C::HarnessFailed, "objects to"),
            ("broken, request id req_a429f", C::HarnessFailed, "objects to"),
        ] {
            let failure = of_sentence(Speaker { agent: "one", log_in: "log in there" }, said);
            assert_eq!(failure.code, code, "{said}");
            assert!(failure.message.contains(said) && failure.next.contains(next), "{said}: {failure:?}");
        }
    }
}
