//! What a turn of agy came to: its own status, its exit code, and everything that contradicts them.
//!
//! Neither is worth much alone. Publicly reported: exit 0 with an error, and after work that was done; SUCCESS after a
//! time-out, after a refused tool, after background tasks were killed, and with an old quota error for an answer.

use super::super::failure::{
    EVENTS, MALFORMED, Next, PROVIDER, Rule, Speaker, ended, endless, find, late_exit, other_model, rule,
    session_replaced, with_reason,
};
use super::super::notices::one_line;
use super::super::tail::Tail;
use super::AGENT;
use crate::job::access::Access;
use crate::job::event::ExitRecord;
use crate::job::outcome::Verdict;
use crate::{Failure, FailureCode};

use FailureCode as C;

/// Everything that a verdict is made from.
#[derive(Debug)]
pub(super) struct Turn<'a> {
    pub(super) access: Access,
    pub(super) exit: ExitRecord,
    /// agy's closing words, if it had any.
    pub(super) result: Option<&'a TurnResult>,
    /// How many of them came: it should be one.
    pub(super) results: u32,
    /// Whether another conversation was opened than the one that was asked for.
    pub(super) was_replaced: bool,
    /// Whether it did the same over and over, and was ended for that.
    pub(super) is_endless: bool,
    /// The model that was asked for, and the one that it says it uses instead.
    pub(super) other_model: Option<(&'a str, &'a str)>,
    /// Why nobody can say that a read-only job was kept from writing.
    pub(super) doubt: Option<&'a str>,
    /// Whether a tool was used.
    pub(super) worked: bool,
    pub(super) stderr: &'a Tail,
    /// Lines of standard error that contradict a success.
    pub(super) confession: Option<&'a str>,
}

/// `result`, agy's last event of a turn.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct TurnResult {
    pub(super) status: String,
    pub(super) response: String,
    pub(super) error: Option<String>,
    /// How many actions were refused.
    pub(super) denied: usize,
}

/// A line of standard error that takes a success back. That an action was refused is what a read-only job is for.
pub(super) fn confesses(line: &str, access: Access) -> bool {
    let told = ["returning partial output", "print timeout after", "background task(s) on exit", "no output produced"];
    told.iter().any(|words| line.contains(words)) || (access == Access::Write && line.contains("auto-denied"))
}

pub(super) fn of(turn: &Turn<'_>) -> Verdict {
    let failed = |message: String| Verdict::Failed(Failure::new(C::HarnessFailed, message, EVENTS));
    if let Some(doubt) = turn.doubt {
        let message = format!("nothing shows that agy was kept from writing: {doubt}");
        let next = "use another harness for read-only jobs, or agy in a write job";
        return Verdict::Failed(Failure::new(C::HarnessIncompatible, message, next));
    }
    if turn.was_replaced {
        return Verdict::Failed(session_replaced(AGENT));
    }
    if turn.is_endless {
        return Verdict::Failed(endless(AGENT));
    }
    let Some(result) = turn.result else {
        return match turn.exit {
            ExitRecord::Code(0) => Verdict::Silent,
            _ => Verdict::Failed(trouble(&format!("agy {} without a result", ended(turn.exit)), &turn.stderr.quoted())),
        };
    };
    let said = [result.error.as_deref(), Some(result.response.as_str())].into_iter().flatten();
    let said = said.map(str::trim).find(|words| !words.is_empty()).unwrap_or_default();
    if result.status != "SUCCESS" || result.error.is_some() {
        return Verdict::Failed(trouble(&format!("agy's turn ended as {}", one_line(&result.status)), said));
    }
    if turn.exit != ExitRecord::Code(0) {
        return Verdict::Failed(late_exit(AGENT, &ended(turn.exit), &turn.stderr.quoted()));
    }
    if let Some(line) = turn.confession {
        return failed(format!("agy called its turn a success that it was not: {line}"));
    }
    if !turn.worked && is_quota(&result.response) && result.response.len() < 1_000 {
        return Verdict::Failed(trouble("agy answered with an error", &result.response));
    }
    if let Some((wanted, actual)) = turn.other_model {
        return Verdict::Failed(other_model(AGENT, wanted, actual));
    }
    if turn.results > 1 {
        return failed("agy ended its turn more than once".to_owned());
    }
    match (result.response.trim().is_empty(), result.denied, turn.access) {
        (true, 0, _) => Verdict::Silent,
        (true, ..) | (false, 1.., Access::Write) => {
            failed(format!("agy refused its agent {} action(s), and called the turn a success", result.denied))
        }
        _ => Verdict::Completed,
    }
}

const SPEAKER: Speaker<'_> = Speaker {
    agent: AGENT,
    log_in: "log in by running `agy` in a terminal, or set GEMINI_API_KEY; then retry the job",
};

/// agy's own sentences.
const OWN: &[Rule] = &[
    rule(
        &["log in", "sign in", "unauthenticated", "invalid_grant", "api key"],
        C::LoginRequired,
        "{agent} is not logged in",
        Next::LogIn,
    ),
    rule(
        &["flag provided but not defined", "unknown flag", "flag needs an argument"],
        C::HarnessIncompatible,
        "{agent} does not know an argument",
        Next::Do("run `agy update`, or use a newer pactify: its arguments have changed"),
    ),
];

/// What [`is_quota`] tells.
const QUOTA: Rule = rule(
    &[],
    C::QuotaExceeded,
    "{agent}'s quota is used up",
    Next::Do("wait until it is renewed, then retry the job; a resumed conversation may repeat the error"),
);

/// A failure in agy's own words, by what they are about.
fn trouble(what: &str, said: &str) -> Failure {
    let said = one_line(said);
    let known = if is_quota(&said) { Some(&QUOTA) } else { find(&[OWN, PROVIDER, MALFORMED], &said) };
    with_reason(SPEAKER, known, what, &said)
}

fn is_quota(text: &str) -> bool {
    let text = text.to_lowercase();
    text.contains("resource_exhausted")
        || text.contains("quota") && (text.contains("reset") || text.contains("exceeded"))
}
