//! What codex's failures mean: one stable code, codex's own sentence, one next step.
//!
//! Three sources, in the order of their worth: the message of `turn.failed`, the last `error` event of a run that
//! was cut off, and standard error of a run that never started. The sentences are those of codex 0.171 and may change;
//! an unknown one still becomes a failure, with a general code and the sentence in it.

use toml::Table;

use super::super::notices::one_line;
use super::super::tail::{QUOTED, quoted};
use super::super::{Preflight, Request};
use super::TESTED_VERSION;
use super::config::{self, Provider};
use crate::display;
use crate::job::event::ExitRecord;
use crate::{Failure, FailureCode};

use FailureCode as C;

/// What the words of a failure depend on.
#[derive(Clone, Debug, Default)]
pub(super) struct Context {
    pub(super) version: Option<String>,
    pub(super) settings: Table,
    pub(super) provider: Provider,
    pub(super) session: Option<String>,
}

impl Context {
    pub(super) fn of(request: &Request<'_>) -> Self {
        Self {
            version: request.version.map(str::to_owned),
            settings: request.settings.config.clone(),
            provider: config::provider(&request.settings.config),
            session: request.resume.map(|resume| resume.session.to_owned()),
        }
    }
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

/// Placeholder for the step that depends on where the key comes from.
const LOG_IN: &str = "";
const LATER: &str = "wait a little, then `pactify sub resume` or `retry` the job";
const NETWORK: &str = "check the network, a proxy, and the provider's `base_url`, then retry the job";
const MODEL: &str = "choose another model: the job's own, or `model` in [harnesses.codex] of the configuration";

/// The messages of a turn, first match wins.
const TURN: &[Rule] = &[
    rule(
        &["refresh token", "could not be refreshed", "log out and sign in again", "status 401"],
        C::LoginRequired,
        "codex's provider did not accept the login",
        LOG_IN,
    ),
    rule(
        &["usage limit", "quota exceeded", "insufficient_quota"],
        C::QuotaExceeded,
        "the provider's quota is used up",
        "wait until it is renewed, or see to the plan and billing; then retry the job",
    ),
    rule(
        &["status: 429", "status 429", "rate limit"],
        C::QuotaExceeded,
        "the provider limits the rate of requests",
        LATER,
    ),
    rule(
        &["context window"],
        C::ProviderRefused,
        "the task outgrew the model's context",
        "start a new job with a smaller task; a resumed session would meet the same limit",
    ),
    rule(
        &["incomplete response returned"],
        C::ProviderRefused,
        "the provider cut its answer off",
        "retry with a smaller task, or raise the provider's output limit",
    ),
    rule(
        &["status 403"],
        C::ProviderRefused,
        "the provider refused the request",
        "see to the account's permissions and region",
    ),
    rule(
        &["status 404", "model_not_found", "does not exist"],
        C::ProviderRefused,
        "the provider knows no such thing",
        MODEL,
    ),
    rule(
        &[
            "connection failed",
            "error sending request",
            "waiting for network",
            "failed to lookup address",
            "dns error",
            "failed to connect",
        ],
        C::ProviderUnreachable,
        "codex could not reach its provider",
        NETWORK,
    ),
    rule(&["idle timeout", "stream closed before"], C::ProviderUnreachable, "the provider's answer broke off", NETWORK),
    rule(
        &["high demand", "status 500", "status 502", "status 503", "status 504", "an error occurred while processing"],
        C::ProviderUnreachable,
        "the provider is in trouble",
        LATER,
    ),
    rule(
        &["unexpected status", "invalid_request_error", "unsupported_parameter", "stream disconnected"],
        C::ProviderRefused,
        "the provider refused the request",
        "see what it objects to; a custom provider may not understand what codex sends",
    ),
];

/// What is said on standard error by a run that never started, first match wins.
const START: &[Rule] = &[
    rule(
        &["no rollout found"],
        C::WrongState,
        "codex no longer has the session",
        "`pactify sub retry` the job: it starts anew, with the same brief",
    ),
    rule(
        &["is archived"],
        C::WrongState,
        "the session is archived",
        "`pactify sub retry` the job: it starts anew, with the same brief",
    ),
    rule(
        &["model provider `"],
        C::InvalidConfig,
        "`model_provider` names a provider that is not configured",
        "add it below [harnesses.codex.config.model_providers] in pactify's configuration",
    ),
    rule(
        &["no space left on device"],
        C::NoSpace,
        "codex found no space on the disk",
        "free some space, then retry the job",
    ),
    rule(
        &["not inside a trusted directory"],
        C::LaunchFailed,
        "codex does not see a git tree where the job works",
        "retry the job; if it happens again, run `pactify sub doctor`",
    ),
    rule(
        &["permission denied", "read-only file system", "no such file or directory", "error finding codex home"],
        C::LaunchFailed,
        "codex could not use the job's directories",
        "see that PACTIFY_HOME is writable and not below a temporary directory, then retry the job",
    ),
];

/// The failure behind the message of a failed turn.
pub(super) fn of_turn(message: &str, context: &Context) -> Failure {
    let said = sentence(message);
    if let Some(variable) =
        message.strip_prefix("Missing environment variable: `").and_then(|rest| rest.split('`').next())
    {
        let variable = display::headline(variable, 80);
        return Failure::new(
            C::LoginRequired,
            format!("the provider's key is read from {variable}, which is not set (`env_key` names it)"),
            format!("set {variable} where the editor or terminal that starts jobs can see it, then retry the job"),
        );
    }
    let Some(rule) = find(TURN, message) else {
        let code = if looks_like_an_answer(message) { C::ProviderRefused } else { C::HarnessFailed };
        return Failure::new(
            code,
            format!("codex's turn failed: {said}"),
            "see what it objects to, then retry the job",
        );
    };
    let next = if rule.next == LOG_IN { log_in(context) } else { rule.next.to_owned() };
    Failure::new(rule.code, format!("{}: {said}", rule.what), next)
}

/// The failure of a run that said its turn was complete, and then did not end well.
pub(super) fn of_late_exit(exit: ExitRecord, stderr: &str) -> Failure {
    let next = "see what it left with `pactify sub diff`; retry the job if that is not all";
    Failure::new(C::HarnessFailed, format!("codex completed its turn, then {}", ended(exit)), next)
        .quoting(&quoted(stderr.lines()))
}

/// The failure of a run that ended without a verdict, as far as standard error tells.
pub(super) fn of_exit(exit: ExitRecord, stderr: &str, context: &Context) -> Failure {
    if let Some(failure) = of_configuration(stderr, context).or_else(|| of_usage(exit, stderr, context)) {
        return failure;
    }
    if let Some(rule) = find(START, stderr) {
        let said = quoted(stderr.lines());
        let session = context.session.as_deref().filter(|_| rule.code == C::WrongState);
        let what = session.map_or(rule.what.to_owned(), |id| format!("{} {}", rule.what, display::headline(id, 60)));
        return Failure::new(rule.code, format!("{what}: {said}"), rule.next);
    }
    let ended = format!("codex {} before its turn was complete", ended(exit));
    let next = "retry the job; `pactify sub doctor` checks codex itself";
    Failure::new(C::HarnessFailed, ended, next).quoting(&quoted(stderr.lines()))
}

fn ended(exit: ExitRecord) -> String {
    match exit {
        ExitRecord::Code(101) => "crashed (exit code 101)".to_owned(),
        ExitRecord::Code(code) => format!("ended with exit code {code}"),
        ExitRecord::Signal(signal) => format!("was ended by signal {signal}"),
    }
}

/// The failure of a check before the launch.
pub(super) fn of_preflight(
    preflight: &Preflight,
    exit: Option<ExitRecord>,
    output: &str,
    context: &Context,
) -> Failure {
    of_configuration(output, context)
        .or_else(|| exit.and_then(|exit| of_usage(exit, output, context)))
        .unwrap_or_else(|| preflight.failure.clone().quoting(&quoted(output.lines())))
}

/// It answered, but knew nothing of what the job had done and said before.
pub(super) fn session_replaced() -> Failure {
    Failure::new(
        FailureCode::WrongState,
        "codex did not go on with the job's session, but opened another one",
        "`pactify sub retry` the job: it starts anew, with the same brief",
    )
}

/// The last edit or command of the turn was refused, and nothing after it went well: its closing words cannot be believed.
pub(super) fn refused(reason: &str) -> Failure {
    Failure::new(
        C::HarnessFailed,
        format!("codex completed its turn after a step of its agent was refused: {}", one_line(reason)),
        "see what it did with `pactify sub diff`, which can be applied; resume the job with a message, or retry it",
    )
}

/// There is no sandbox, and nothing may run without one.
pub(super) fn no_sandbox() -> Failure {
    Failure::new(
        C::SandboxUnavailable,
        "codex's sandbox does not work on this machine",
        "allow unprivileged user namespaces (in a container: a profile that permits them), then retry; \
         `pactify sub doctor` says whether the machine restricts them",
    )
}

/// `Error loading config.toml`: the person's settings, or a key that this version of codex does not know.
fn of_configuration(stderr: &str, context: &Context) -> Option<Failure> {
    let at = stderr.find("Error loading config.toml")?;
    let said = quoted(stderr[at..].lines().take(QUOTED));
    let theirs = backticked(&said).any(|key| mentions(&context.settings, key));
    Some(if theirs {
        Failure::new(
            C::InvalidConfig,
            format!("codex does not accept the settings of [harnesses.codex.config]: {said}"),
            "correct them in pactify's configuration; they are in codex's own terms",
        )
    } else {
        incompatible(&said, context)
    })
}

/// Exit code 2: codex does not know an argument.
fn of_usage(exit: ExitRecord, stderr: &str, context: &Context) -> Option<Failure> {
    let said = quoted(stderr.lines());
    let usage =
        ["unexpected argument", "invalid value", "unrecognized subcommand", "required arguments", "Usage: codex"];
    let refused = exit == ExitRecord::Code(2) && usage.iter().any(|words| stderr.contains(words));
    refused.then(|| incompatible(&said, context))
}

fn incompatible(said: &str, context: &Context) -> Failure {
    let version = context.version.as_deref().map_or("this codex".to_owned(), |version| format!("codex {version}"));
    Failure::new(
        C::HarnessIncompatible,
        format!("{version} does not understand what pactify asks of codex {TESTED_VERSION}: {said}"),
        format!("install codex {TESTED_VERSION} (`npm install -g @openai/codex@{TESTED_VERSION}`), or a newer pactify"),
    )
}

fn log_in(context: &Context) -> String {
    match context.provider.variables.first() {
        Some(variable) if !context.provider.uses_login => {
            format!("correct the key in {variable} (`env_key` of the provider names it), then retry the job")
        }
        _ => "run `codex login` in a terminal, then retry the job".to_owned(),
    }
}

fn find(rules: &'static [Rule], text: &str) -> Option<&'static Rule> {
    let text = text.to_lowercase();
    rules.iter().find(|rule| rule.needles.iter().any(|needle| text.contains(needle)))
}

/// codex's own sentence: the message inside a raw JSON error if it is one; one line, neutral, bounded.
fn sentence(message: &str) -> String {
    let parsed: Option<serde_json::Value> = serde_json::from_str(message).ok();
    let inner = parsed.as_ref().and_then(|value| value.pointer("/error/message")).and_then(serde_json::Value::as_str);
    one_line(inner.unwrap_or(message))
}

fn looks_like_an_answer(message: &str) -> bool {
    message.trim_start().starts_with('{') && message.contains("\"error\"")
}

fn backticked(text: &str) -> impl Iterator<Item = &str> {
    text.split('`').skip(1).step_by(2)
}

/// Whether `path` (dotted) or its last part is a key that the person's settings contain.
fn mentions(settings: &Table, path: &str) -> bool {
    let last = path.rsplit('.').next().unwrap_or(path);
    let has = |key: &str| settings.contains_key(key);
    has(path.split('.').next().unwrap_or(path)) || any_key(settings, last)
}

fn any_key(table: &Table, name: &str) -> bool {
    table.iter().any(|(key, value)| key == name || value.as_table().is_some_and(|below| any_key(below, name)))
}
