//! What codex's failures mean: one stable code, codex's own sentence, one next step.
//!
//! Three sources, in the order of their worth: the message of `turn.failed`, the last `error` event of a run that
//! was cut off, and standard error of a run that never started. The sentences are those of codex 0.171 and may change;
//! an unknown one still becomes a failure, with a general code and the sentence in it.

use toml::Table;

use super::super::failure::{self, ANEW, LATER, NETWORK, Next, PROVIDER, Rule, Speaker, find, rule};
use super::super::notices::one_line;
use super::super::tail::{QUOTED, quoted};
use super::super::{Preflight, Request};
use super::config::{self, Provider};
use super::{AGENT, LOGIN, TESTED_VERSION};
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

/// The messages of a turn that codex has of its own, before those of every provider.
const TURN: &[Rule] = &[
    rule(
        &["refresh token", "could not be refreshed", "log out and sign in again"],
        C::LoginRequired,
        "{agent}'s provider did not accept the login",
        Next::LogIn,
    ),
    rule(
        &["incomplete response returned"],
        C::ProviderRefused,
        "the provider cut its answer off",
        Next::Do("retry with a smaller task, or raise the provider's output limit"),
    ),
    rule(
        &["idle timeout", "stream closed before"],
        C::ProviderUnreachable,
        "the provider's answer broke off",
        Next::Do(NETWORK),
    ),
];

/// And after them: what says less.
const REST: &[Rule] = &[
    rule(&["does not exist"], C::ProviderRefused, "the provider knows no such thing", Next::Model),
    rule(
        &["high demand", "an error occurred while processing"],
        C::ProviderUnreachable,
        "the provider is in trouble",
        Next::Do(LATER),
    ),
    rule(
        &["unexpected status", "invalid_request_error", "unsupported_parameter", "stream disconnected"],
        C::ProviderRefused,
        "the provider refused the request",
        Next::Do("see what it objects to; a custom provider may not understand what codex sends"),
    ),
];

/// What is said on standard error by a run that never started, first match wins.
const START: &[Rule] = &[
    rule(&["no rollout found"], C::WrongState, "codex no longer has the session", Next::Do(ANEW)),
    rule(&["is archived"], C::WrongState, "the session is archived", Next::Do(ANEW)),
    rule(
        &["model provider `"],
        C::InvalidConfig,
        "`model_provider` names a provider that is not configured",
        Next::Do("add it below [harnesses.codex.config.model_providers] in pactify's configuration"),
    ),
    rule(
        &["no space left on device"],
        C::NoSpace,
        "codex found no space on the disk",
        Next::Do("free some space, then retry the job"),
    ),
    rule(
        &["not inside a trusted directory"],
        C::LaunchFailed,
        "codex does not see a git tree where the job works",
        Next::Do("retry the job; if it happens again, run `pactify sub doctor`"),
    ),
    rule(
        &["permission denied", "read-only file system", "no such file or directory", "error finding codex home"],
        C::LaunchFailed,
        "codex could not use the job's directories",
        Next::Do("see that PACTIFY_HOME is writable and not below a temporary directory, then retry the job"),
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
    let log_in = log_in(context);
    match find(&[TURN, PROVIDER, REST], message) {
        Some(rule) => rule.meaning(Speaker { agent: AGENT, log_in: &log_in }).failure(&said),
        None => {
            let code = if looks_like_an_answer(message) { C::ProviderRefused } else { C::HarnessFailed };
            failure::turn_failed(code, AGENT, &said)
        }
    }
}

/// The failure of a run that said its turn was complete, and then did not end well.
pub(super) fn of_late_exit(exit: ExitRecord, stderr: &str) -> Failure {
    failure::late_exit(AGENT, &ended(exit), &quoted(stderr.lines()))
}

/// The failure of a run that ended without a verdict, as far as standard error tells.
pub(super) fn of_exit(exit: ExitRecord, stderr: &str, context: &Context) -> Failure {
    if let Some(failure) = of_configuration(stderr, context).or_else(|| of_usage(exit, stderr, context)) {
        return failure;
    }
    if let Some(rule) = find(&[START], stderr) {
        let mut meaning = rule.meaning(Speaker { agent: AGENT, log_in: &log_in(context) });
        if let Some(id) = context.session.as_deref().filter(|_| meaning.code == C::WrongState) {
            meaning.what = format!("{} {}", meaning.what, display::headline(id, 60));
        }
        return meaning.failure(&quoted(stderr.lines()));
    }
    let ended = format!("codex {} before its turn was complete", ended(exit));
    let next = "retry the job; `pactify sub doctor` checks codex itself";
    Failure::new(C::HarnessFailed, ended, next).quoting(&quoted(stderr.lines()))
}

fn ended(exit: ExitRecord) -> String {
    match exit {
        ExitRecord::Code(101) => "crashed (exit code 101)".to_owned(),
        other => failure::ended(other),
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
    failure::session_replaced(AGENT)
}

/// The last edit or command of the turn was refused, and nothing after it went well.
pub(super) fn refused(reason: &str) -> Failure {
    failure::refused(AGENT, &format!("a step of its agent was refused: {}", one_line(reason)))
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
        _ => format!("run `{LOGIN}` in a terminal, then retry the job"),
    }
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
