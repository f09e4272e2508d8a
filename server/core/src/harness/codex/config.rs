//! The `config.toml` of a job: the base, the person's settings over it, then what the job decides.
//!
//! A job that is to have the person's own `config.toml` has it between the base and the settings, without what
//! [`LOCKS`] names and what is no table where the base has one: [`Config::left_out`].
//!
//! Which file the text goes to, and the arguments beside it, are [`super`]'s business.

use toml::{Table, Value};

use super::super::Request;
use super::super::settings::bounds::{Bounds, Lock, On, lock};
use crate::job::access::Access;
use crate::{Failure, FailureCode, JobId, redact};

const BASE: &str = include_str!("base.toml");

/// What the configuration is generated for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Job<'a> {
    pub(super) request: &'a Request<'a>,
    pub(super) tree: &'a str,
    pub(super) access: Access,
    pub(super) network: bool,
}

/// The provider that a configuration chooses, as far as the launch must know it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Provider {
    /// Variables that hold its key or headers.
    pub(super) variables: Vec<String>,
    /// Whether it uses the person's codex login.
    pub(super) uses_login: bool,
}

/// A configuration, ready to be written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Config {
    pub(super) text: String,
    pub(super) provider: Provider,
    /// What the person's own `config.toml` has, and the job has not.
    pub(super) left_out: Vec<String>,
}

/// The person's own settings.
pub(super) const FILE: &str = "config.toml";

const MODE: &str = "the job's access mode decides it";
const OUTSIDE: &str = "it starts programs outside codex's sandbox";
const ENVIRONMENT: &str = "it keeps keys and pactify's mark in order in the environment of the agent's commands";

const LOCKS: &[Lock] = &[
    lock(&["approval_policy"], On::EveryJob, "nobody is there to be asked, and an approval lifts the sandbox"),
    lock(&["approvals_reviewer"], On::EveryJob, "nobody is there to be asked, and an approval lifts the sandbox"),
    lock(&["sandbox_mode"], On::EveryJob, MODE),
    lock(&["default_permissions"], On::EveryJob, MODE),
    lock(&["permissions"], On::EveryJob, MODE),
    lock(&["sandbox_workspace_write"], On::EveryJob, MODE),
    lock(&["profile"], On::EveryJob, "a profile can replace every other setting"),
    lock(&["profiles"], On::EveryJob, "a profile can replace every other setting"),
    lock(&["projects"], On::EveryJob, "a trusted project's own configuration starts programs outside the sandbox"),
    lock(&["hooks"], On::EveryJob, OUTSIDE),
    lock(&["notify"], On::EveryJob, OUTSIDE),
    lock(&["features", "hooks"], On::EveryJob, OUTSIDE),
    // An older name of `hooks`.
    lock(&["features", "codex_hooks"], On::EveryJob, OUTSIDE),
    lock(&["features", "shell_snapshot"], On::EveryJob, OUTSIDE),
    lock(&["features", "daemon_auto_start"], On::EveryJob, "a daemon would outlive the job"),
    lock(&["features", "use_legacy_landlock"], On::EveryJob, "it replaces the sandbox that the preflight checked"),
    lock(&["features", "unbounded_connection_retries"], On::EveryJob, "a job without a provider would never end"),
    lock(&["cli_auth_credentials_store"], On::EveryJob, "the job's home links to the person's login file"),
    lock(&["sqlite_home"], On::EveryJob, "the job's state belongs in its private home"),
    lock(&["log_dir"], On::EveryJob, "the job's state belongs in its private home"),
    lock(&["shell_environment_policy", "exclude"], On::EveryJob, ENVIRONMENT),
    lock(&["shell_environment_policy", "ignore_default_excludes"], On::EveryJob, ENVIRONMENT),
    lock(&["shell_environment_policy", "include_only"], On::EveryJob, ENVIRONMENT),
    lock(&["shell_environment_policy", "set", "PACTIFY_JOB"], On::EveryJob, ENVIRONMENT),
    lock(&["mcp_servers"], On::ReadOnlyJobs, OUTSIDE),
    lock(&["plugins"], On::ReadOnlyJobs, OUTSIDE),
    lock(&["marketplaces"], On::ReadOnlyJobs, OUTSIDE),
    lock(&["agents"], On::ReadOnlyJobs, "a role brings settings of its own, which start programs outside the sandbox"),
    // An older name of `apps`.
    lock(&["features", "connectors"], On::ReadOnlyJobs, "its tools act outside codex's sandbox"),
    lock(&["features", "apps"], On::ReadOnlyJobs, "its tools act outside codex's sandbox"),
    lock(&["features", "plugins"], On::ReadOnlyJobs, OUTSIDE),
    lock(&["features", "remote_plugin"], On::ReadOnlyJobs, OUTSIDE),
    lock(&["features", "browser_use"], On::ReadOnlyJobs, "its tools act outside codex's sandbox"),
    lock(&["features", "computer_use"], On::ReadOnlyJobs, "its tools act outside codex's sandbox"),
];

/// What the person's settings are held against.
const BOUNDS: Bounds = Bounds {
    harness: "codex",
    locks: LOCKS,
    tightens: |path, value| path == ["sandbox_workspace_write", "network_access"] && value.as_bool() == Some(false),
    names_variable: |path, _| path.iter().any(|part| part.eq_ignore_ascii_case("env_http_headers")),
    instead: "name a variable with `env_key` or `env_http_headers` instead",
};

/// Whether `wanted`, the person's settings, are ones that a job of this access may have.
pub(super) fn check(wanted: &Table, access: Access) -> Result<(), Failure> {
    BOUNDS.over(base(access == Access::Write)?, wanted, access).map(drop)
}

fn base(network: bool) -> Result<Table, Failure> {
    let mut config: Table =
        BASE.parse().map_err(|error| Failure::internal(format!("codex's base configuration: {error}")))?;
    BOUNDS.merge(&mut config, &nest("sandbox_workspace_write", "network_access", network.into()))?;
    Ok(config)
}

/// The configuration of `job`, or the person's setting that stands in its way.
pub(super) fn generate(job: Job<'_>) -> Result<Config, Failure> {
    let mut config = base(job.network)?;
    let mut left_out = Vec::new();
    if job.request.with_user_config {
        let mut own = own(job.request)?;
        leave_out(&mut own, &config, job.access, &mut Vec::new(), &mut left_out);
        BOUNDS.merge(&mut config, &own)?;
    }

    let mut config = BOUNDS.over(config, &job.request.settings.config, job.access)?;
    let provider = provider(&config);
    for decided in [mark(job.request.job), hidden(&config, job.request, &provider), untrusted(job.tree)] {
        BOUNDS.merge(&mut config, &decided)?;
    }
    Ok(Config { text: config.to_string(), provider, left_out })
}

/// What must be recorded nowhere of the person's own settings.
pub(super) fn secrets(request: &Request<'_>) -> Vec<String> {
    own(request).map(|own| redact::secrets_in(&own)).unwrap_or_default()
}

fn own(request: &Request<'_>) -> Result<Table, Failure> {
    let text = request.person_file(FILE).unwrap_or_default();
    text.parse().map_err(|error: toml::de::Error| {
        Failure::new(
            FailureCode::InvalidConfig,
            // The text around a mistake may be a key.
            format!("codex's own {FILE} is no TOML: {}", error.message()),
            "correct it, or leave `withUserConfig` out; then retry the job",
        )
    })
}

/// Takes out of `own` what does not hold in a job, and notes it.
fn leave_out(own: &mut Table, planned: &Table, access: Access, path: &mut Vec<String>, noted: &mut Vec<String>) {
    own.retain(|key, value| {
        path.push(key.to_owned());
        let keys: Vec<&str> = path.iter().map(String::as_str).collect();
        let below = planned.get(key);
        let stays = BOUNDS.locked(&keys, access).is_none() && (value.is_table() || !below.is_some_and(Value::is_table));
        if !stays {
            noted.push(path.join("."));
        } else if let Value::Table(inner) = value {
            let none = Table::new();
            leave_out(inner, below.and_then(Value::as_table).unwrap_or(&none), access, path, noted);
        }
        path.pop();
        stays
    });
}

/// The mark that keeps a job from starting jobs: set here, it survives every other environment policy.
fn mark(job: &JobId) -> Table {
    let set = nest("set", "PACTIFY_JOB", job.as_str().into());
    Table::from_iter([("shell_environment_policy".to_owned(), Value::Table(set))])
}

/// Keeps what is let through to codex from the agent's commands: a key's name need not match a pattern of the base.
fn hidden(config: &Table, request: &Request<'_>, provider: &Provider) -> Table {
    let policy = config.get("shell_environment_policy").and_then(|policy| policy.get("exclude"));
    let patterns = policy.and_then(Value::as_array).into_iter().flatten().cloned();
    let names = request.settings.environment.iter().chain(&provider.variables);
    let mut exclude: Vec<Value> = patterns.collect();
    for name in names.map(|name| Value::from(name.as_str())) {
        if !exclude.contains(&name) {
            exclude.push(name);
        }
    }
    nest("shell_environment_policy", "exclude", exclude.into())
}

/// Otherwise the repository's own `.codex/config.toml` could start MCP servers outside the sandbox.
fn untrusted(tree: &str) -> Table {
    let project = Table::from_iter([("trust_level".to_owned(), "untrusted".into())]);
    nest("projects", tree, Value::Table(project))
}

fn nest(outer: &str, inner: &str, value: Value) -> Table {
    let below = Table::from_iter([(inner.to_owned(), value)]);
    Table::from_iter([(outer.to_owned(), Value::Table(below))])
}

/// The provider that `config` chooses.
pub(super) fn provider(config: &Table) -> Provider {
    let chosen = config.get("model_provider").and_then(Value::as_str).unwrap_or("openai");
    let Some(provider) = config.get("model_providers").and_then(|all| all.get(chosen)) else {
        return Provider { variables: Vec::new(), uses_login: chosen == "openai" };
    };
    let key = provider.get("env_key").and_then(Value::as_str);
    let headers = provider.get("env_http_headers").and_then(Value::as_table);
    let headers = headers.into_iter().flat_map(|table| table.values().filter_map(Value::as_str));
    Provider {
        variables: key.into_iter().chain(headers).map(str::to_owned).collect(),
        uses_login: provider.get("requires_openai_auth").and_then(Value::as_bool).unwrap_or(false),
    }
}
