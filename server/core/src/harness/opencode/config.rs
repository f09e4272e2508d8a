//! The `opencode.json` of a job: the base, the settings of `[harnesses.opencode.config]`, then what the job decides.
//!
//! No permission is left at `ask` unless the person wants to be asked: those of its sub-agents never reach a client,
//! and the job would hang. The person's own `opencode.json` is not used unless the job is to have it ([`person`]),
//! because it may name programs; providers of their own go into pactify's configuration, with their keys as
//! `{env:NAME}`.

use serde_json::{Value, json};
use toml::Table;

use super::super::settings::bounds::{Bounds, Object, On, lock};
use super::super::{Request, SeenLogins, VendorKeys};
use super::{TESTED_VERSION, person};
use crate::Failure;
use crate::job::access::Access;
use crate::permission::Policy;

/// A configuration, ready to be written.
pub(super) struct Config {
    pub(super) text: String,
    /// Variables that it takes keys from.
    pub(super) variables: Vec<String>,
}

/// What the person's settings are held against.
const BOUNDS: Bounds = Bounds {
    harness: "opencode",
    locks: &[
        lock(&["permission"], On::EveryJob, "the job's access mode decides it"),
        lock(&["permissions"], On::EveryJob, "the job's access mode decides it"),
        lock(&["tools"], On::EveryJob, "the job's access mode decides it"),
        lock(&["agent"], On::EveryJob, "an agent of its own has permissions of its own"),
        lock(&["mode"], On::EveryJob, "an agent of its own has permissions of its own"),
        lock(&["default_agent"], On::EveryJob, "an agent of its own has permissions of its own"),
        lock(&["plugin"], On::EveryJob, "it runs code whatever the access mode is"),
        lock(&["mcp"], On::EveryJob, "it starts programs whatever the access mode is"),
        lock(&["lsp"], On::EveryJob, "it starts programs whatever the access mode is"),
        lock(&["formatter"], On::EveryJob, "it starts programs whatever the access mode is"),
        lock(&["share"], On::EveryJob, "a job's session is nobody else's"),
        lock(&["autoupdate"], On::EveryJob, "a job talks to its provider and to nobody else"),
        lock(&["snapshot"], On::EveryJob, "pactify captures what a job did"),
        lock(&["server"], On::EveryJob, "its server is the job's own"),
    ],
    tightens: |_, _| false,
    names_variable: |_, text| text.contains("{env:"),
    instead: "write \"{env:NAME}\", and set the variable",
};

/// Variables with which a cloud is logged in to that has more than models: let through where the job's provider is that
/// cloud. (opencode 1.18, by the names of its providers.)
const CLOUDS: &[(&str, &[&str])] = &[
    ("amazon-bedrock", &["AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"]),
    ("cloudflare-ai-gateway", &["CF_AIG_TOKEN", "CLOUDFLARE_API_TOKEN"]),
    ("cloudflare-workers-ai", &["CLOUDFLARE_API_KEY"]),
    ("github-copilot", &["GITHUB_TOKEN"]),
    ("gitlab", &["GITLAB_TOKEN"]),
    ("google-vertex", &["GOOGLE_APPLICATION_CREDENTIALS"]),
    ("google-vertex-anthropic", &["GOOGLE_APPLICATION_CREDENTIALS"]),
    ("huggingface", &["HF_TOKEN"]),
    ("sap-ai-core", &["AICORE_SERVICE_KEY"]),
];

/// The configuration of a job, or the person's setting that stands in its way.
pub(super) fn generate(request: &Request<'_>, access: Access) -> Result<Config, Failure> {
    let mut config = common(request, access)?;
    config["permission"] = permissions(access, request.permissions);
    if request.with_user_config && request.permissions == Policy::Ask {
        ask_for_the_rest(&mut config["permission"]);
    }
    if request.permissions == Policy::Ask {
        // Otherwise a no ends the turn at once.
        config[EXPERIMENTAL]["continue_loop_on_deny"] = true.into();
    }
    text(&config)
}

/// The configuration of a job of version 2, which has its permissions in a list.
pub(super) fn generate_second(request: &Request<'_>, permissions: Value) -> Result<Config, Failure> {
    let mut config = common(request, Access::Write)?;
    config["permissions"] = permissions;
    text(&config)
}

fn text(config: &Value) -> Result<Config, Failure> {
    let mut variables = Vec::new();
    collect_variables(config, &mut variables);
    variables.extend(cloud_variables(config, config["model"].as_str()).map(str::to_owned));
    let text = serde_json::to_string_pretty(config).map_err(|error| Failure::internal(error.to_string()))?;
    Ok(Config { text, variables })
}

/// A table, whatever the person's settings say: a job may have a decision below it.
const EXPERIMENTAL: &str = "experimental";

/// What the person's settings go over.
fn base() -> Object {
    let base = [
        ("$schema", "https://opencode.ai/config.json".into()),
        ("autoupdate", false.into()),
        ("share", "disabled".into()),
        ("snapshot", false.into()),
        (EXPERIMENTAL, json!({})),
    ];
    base.map(|(key, value)| (key.to_owned(), value)).into_iter().collect()
}

/// Those of the clouds that a configuration describes, or takes its model from.
fn cloud_variables<'c>(config: &'c Value, model: Option<&'c str>) -> impl Iterator<Item = &'static str> + 'c {
    let of_model = model.and_then(|model| model.split_once('/')).map(|(provider, _)| provider);
    let is_used = move |cloud: &str| of_model == Some(cloud) || config["provider"].get(cloud).is_some();
    CLOUDS.iter().filter(move |(cloud, _)| is_used(cloud)).flat_map(|(_, names)| names.iter().copied())
}

/// Everything but permissions.
fn common(request: &Request<'_>, access: Access) -> Result<Value, Failure> {
    let mut config = base();
    if request.with_user_config {
        person::merge(&mut config, person::take(request)?.config);
    }
    let mut config = BOUNDS.over(config, &request.settings.config, access)?;
    // Nothing is said of it where nobody has a setting below it.
    config.retain(|key, value| key != EXPERIMENTAL || *value != json!({}));
    let mut config = Value::Object(config);
    let model = request.model.or(request.settings.model.as_deref()).map(str::to_owned);
    let model = model.or_else(|| config.get("model")?.as_str().map(str::to_owned));
    if let Some(model) = &model {
        config["model"] = model.as_str().into();
        if config.get("small_model").is_none() {
            // Titles are made by it: by default a model of somebody else's.
            config["small_model"] = model.as_str().into();
        }
    }
    let uses_zen = model.as_deref().is_some_and(|model| model.starts_with("opencode/"));
    if !uses_zen && config.get("enabled_providers").is_none() {
        // Its own models are free, and would be taken where nobody is logged in.
        let disabled = config.get("disabled_providers").and_then(Value::as_array).cloned().unwrap_or_default();
        config["disabled_providers"] = disabled.into_iter().chain(["opencode".into()]).collect();
    }
    Ok(config)
}

/// Whether somebody is logged in: by opencode's own login, or by a key in a variable. A provider that names no
/// variable, and opencode's own free models, may need none; and what a variable is to it that the person lets through
/// nobody knows.
pub(super) fn is_logged_in(seen: &SeenLogins<'_>, keys: VendorKeys) -> Option<bool> {
    let own = serde_json::to_value(&seen.settings.config).unwrap_or_default();
    let mut variables = Vec::new();
    collect_variables(&own, &mut variables);
    let model = seen.settings.model.as_deref().or(own["model"].as_str());
    variables.extend(cloud_variables(&own, model).map(str::to_owned));
    let named = variables.iter().map(String::as_str).chain(keys.names().iter().copied());
    if seen.has_login() || seen.has_any(named) {
        return Some(true);
    }
    let model = seen.model.or_else(|| own.get("model")?.as_str());
    let may_be_free =
        model.is_some_and(|model| model.starts_with("opencode/")) || own.get("enabled_providers").is_some();
    let needs_no_key = |provider: &Value| {
        let mut named = Vec::new();
        collect_variables(provider, &mut named);
        named.is_empty()
    };
    let mut providers = own.get("provider").and_then(Value::as_object).into_iter().flat_map(Object::values);
    let is_let_through = seen.has_any(seen.settings.environment.iter().map(String::as_str));
    (!may_be_free && !is_let_through && !providers.any(needs_no_key)).then_some(false)
}

/// What the agent may do: everything, or what the person says yes to, or reading. Where somebody is asked there are no
/// sub-agents: what those ask for arrives nowhere.
fn permissions(access: Access, policy: Policy) -> Value {
    match access {
        Access::Write if policy == Policy::Ask => json!({
            "external_directory": "deny",
            "read": {"*": "allow"},
            "edit": "ask",
            "bash": "ask",
            "webfetch": "ask",
            "websearch": "ask",
            "task": "deny",
            "doom_loop": "deny",
            "question": "deny",
        }),
        Access::Write => json!({
            // Of file tools only: a shell is not confined.
            "external_directory": "deny",
            "read": {"*": "allow"},
            "doom_loop": "deny",
            "question": "deny",
        }),
        Access::ReadOnly => json!({
            "*": "deny",
            "read": {"*": "allow", "*.env": "deny", "*.env.*": "deny"},
            "glob": "allow",
            "grep": "allow",
            "list": "allow",
            "external_directory": "deny",
        }),
    }
}

/// Tools of the person's own servers are asked about as well; those that only read are not.
fn ask_for_the_rest(permissions: &mut Value) {
    let Value::Object(named) = permissions.take() else { return };
    let reading = ["glob", "grep", "list", "lsp", "skill", "todoread", "todowrite"];
    let first = [("*", "ask")].into_iter().chain(reading.map(|tool| (tool, "allow")));
    let first = first.map(|(tool, effect)| (tool.to_owned(), effect.into()));
    *permissions = Value::Object(first.chain(named).collect());
}

/// `package.json` of a config directory in which nothing has to be installed.
pub(super) fn package(version: Option<&str>) -> String {
    json!({"dependencies": {"@opencode-ai/plugin": version.unwrap_or(TESTED_VERSION)}}).to_string()
}

/// Its lock file.
pub(super) fn package_lock(version: Option<&str>) -> String {
    let dependencies = json!({"@opencode-ai/plugin": version.unwrap_or(TESTED_VERSION)});
    json!({"lockfileVersion": 3, "packages": {"": {"dependencies": dependencies}}}).to_string()
}

/// Whether `wanted`, the person's settings, are ones that a job of this access may have.
pub(super) fn check(wanted: &Table, access: Access) -> Result<(), Failure> {
    BOUNDS.over(base(), wanted, access).map(drop)
}

fn collect_variables(value: &Value, found: &mut Vec<String>) {
    match value {
        Value::String(text) => found.extend(text.split("{env:").skip(1).filter_map(|rest| {
            let name = rest.split('}').next()?.trim();
            let plain = !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
            plain.then(|| name.to_owned())
        })),
        Value::Array(values) => values.iter().for_each(|value| collect_variables(value, found)),
        Value::Object(members) => members.values().for_each(|value| collect_variables(value, found)),
        _ => {}
    }
}
