//! The `config.toml` of a job: the base, what the person's own configuration says of providers and models, the settings
//! of `[harnesses.kimi.config]`, then what the job decides.
//!
//! Of the person's file only [`TAKEN`] is used: its hooks, tools and permissions are none of a job's business. A write
//! job that is to have the person's configuration takes all of it but [`LEFT_OUT`], and two files beside it. kimi drops
//! a section that it does not understand without a word that could be heard, so a read-only job does not rely on this
//! text: what was really offered is read from kimi's own records ([`super::records`]).

use toml::{Table, Value};

use super::super::settings::bounds::{Bounds, On, lock};
use super::super::{Request, SeenLogins};
use crate::job::access::Access;
use crate::{Failure, FailureCode, display, redact};

/// What is taken over from the person's own `config.toml`.
const TAKEN: &[&str] = &["default_model", "providers", "models", "thinking"];

/// The person's files: the settings, the servers of tools, the instructions.
pub(super) const FILE: &str = "config.toml";
pub(super) const SERVERS: &str = "mcp.json";
pub(super) const INSTRUCTIONS: &str = "AGENTS.md";

/// What no job takes over: who is asked is the job's to say, and so is whether there is a plan instead of work; and it
/// talks to its provider and to nobody else.
const LEFT_OUT: &[&str] =
    &["default_permission_mode", "default_plan_mode", "permission", "plan_mode", "telemetry", "yolo"];

/// What the model of a read-only job is offered, and nothing else.
pub(super) const READING: [&str; 3] = ["Read", "Grep", "Glob"];

/// What the person's settings are held against.
const BOUNDS: Bounds = Bounds {
    harness: "kimi",
    locks: &[
        lock(&["telemetry"], On::EveryJob, "a job talks to its provider and to nobody else"),
        lock(&["tools"], On::EveryJob, "the job's access mode decides it"),
        lock(&["hooks"], On::EveryJob, "they start programs whatever the access mode is"),
        lock(&["permission"], On::EveryJob, "kimi reads it and does not apply it; the job's access mode decides"),
        lock(&["mcp"], On::EveryJob, "it starts programs whatever the access mode is"),
    ],
    tightens: |_, _| false,
    names_variable: |_, _| false,
    instead: "kimi's own config.toml is the place for it, or the variable KIMI_MODEL_API_KEY",
};

/// The configuration's text.
pub(super) fn render(request: &Request<'_>, access: Access) -> Result<String, Failure> {
    let mut config = base();
    for (key, value) in own(request)? {
        let is_taken = match request.with_user_config {
            true => !LEFT_OUT.contains(&key.as_str()),
            false => TAKEN.contains(&key.as_str()),
        };
        if is_taken {
            config.insert(key, value);
        }
    }
    let mut config = BOUNDS.over(config, &request.settings.config, access)?;
    if let Some(model) = request.model.or(request.settings.model.as_deref()) {
        config.insert("default_model".to_owned(), model.into());
    }
    if access == Access::ReadOnly {
        config.insert("tools".to_owned(), Value::Table(reading()));
        config.insert("hooks".to_owned(), Value::Array(vec![Value::Table(blocker())]));
    }
    Ok(config.to_string())
}

/// The person's settings that a job which is to have them does without.
pub(super) fn left_out(request: &Request<'_>) -> Result<Vec<String>, Failure> {
    let own = own(request)?;
    Ok(LEFT_OUT.iter().filter(|key| own.contains_key(**key)).map(|key| (*key).to_owned()).collect())
}

/// What must be recorded nowhere: the keys of the person's own configuration.
pub(super) fn secrets(request: &Request<'_>) -> Vec<String> {
    let own = request.person_file(FILE).and_then(|own| own.parse::<Table>().ok()).unwrap_or_default();
    let servers = request.person_file(SERVERS).and_then(|own| serde_json::from_str(own).ok()).unwrap_or_default();
    [redact::secrets_in(&own), redact::secrets_in_json(&servers)].concat()
}

fn own(request: &Request<'_>) -> Result<Table, Failure> {
    request.person_file(FILE).map_or_else(|| Ok(Table::new()), read)
}

/// Whether somebody is logged in: by one of kimi's own logins, or by a key where it looks for keys. A provider that has
/// neither may need none, which only it knows.
pub(super) fn is_logged_in(seen: &SeenLogins<'_>) -> Option<bool> {
    if seen.has_login() || seen.has_any(["KIMI_MODEL_API_KEY"]) {
        return Some(true);
    }
    let own = seen.person_files.iter().find(|file| file.name == FILE);
    // What one that is broken names nobody knows.
    let own = own.map_or_else(|| Ok(Table::new()), |own| own.text.parse()).ok()?;
    let both = [&own, &seen.settings.config].map(|config| config.get("providers").and_then(Value::as_table));
    let providers = || both.into_iter().flatten().flat_map(Table::values);
    let has_key = |provider: &Value| provider.get("api_key").and_then(Value::as_str).is_some_and(|key| !key.is_empty());
    if providers().any(has_key) {
        return Some(true);
    }
    // Those that kimi logs in to itself name where it keeps the login.
    let need_one =
        providers().all(|provider| provider.get("oauth").is_some()) && !seen.has_any(["KIMI_MODEL_BASE_URL"]);
    need_one.then_some(false)
}

fn base() -> Table {
    // Ten attempts, the default, are two and a half minutes with a provider that is not there.
    let loop_control = Table::from_iter([("max_attempts_per_step".to_owned(), 3.into())]);
    Table::from_iter([("telemetry".to_owned(), false.into()), ("loop_control".to_owned(), Value::Table(loop_control))])
}

fn reading() -> Table {
    let names = READING.map(Value::from).to_vec();
    Table::from_iter([("enabled".to_owned(), Value::Array(names))])
}

/// The second lock: it blocks in every mode, though not when it crashes. A tool that nobody has heard of is none that
/// reads.
fn blocker() -> Table {
    Table::from_iter([
        ("event".to_owned(), "PreToolUse".into()),
        ("matcher".to_owned(), format!("^(?!(?:{})$)", READING.join("|")).into()),
        ("command".to_owned(), "echo 'this job is read-only' >&2; exit 2".into()),
        ("timeout".to_owned(), 5.into()),
    ])
}

/// The most settings that a sentence names, and how much of each name, in characters.
const NAMED: usize = 10;
const NAME_MAX: usize = 80;

/// What `kimi doctor config` says is wrong with a configuration, by the names of the settings alone: what they hold is
/// nobody's to see. `None` where it says something else.
pub(super) fn ignored(output: &str) -> Option<Failure> {
    let (_, issues) = output.split_once("Validation issues:")?;
    let mut names: Vec<String> = Vec::new();
    for line in issues.lines().map(str::trim) {
        let Some((name, _)) = line.split_once(": ") else { continue };
        let name = display::headline(name, NAME_MAX);
        if !names.contains(&name) {
            names.push(name);
        }
    }
    let more = names.len().saturating_sub(NAMED);
    names.truncate(NAMED);
    if more > 0 {
        names.push(format!("{more} more"));
    }
    let named = if names.is_empty() { "some that it does not name".to_owned() } else { names.join(", ") };
    Some(Failure::new(
        FailureCode::InvalidConfig,
        format!("kimi does not understand these settings, and goes on without their sections: {named}"),
        "correct them in kimi's own config.toml (`kimi doctor config` says how), or in [harnesses.kimi.config]",
    ))
}

fn read(own: &str) -> Result<Table, Failure> {
    own.parse().map_err(|error: toml::de::Error| {
        // The text around a mistake may be a key.
        Failure::new(
            FailureCode::InvalidConfig,
            format!("kimi's own config.toml is no TOML: {}", error.message()),
            "`kimi doctor` says where; correct it, then retry the job",
        )
    })
}

/// Whether `wanted`, the person's settings, are ones that a job of this access may have.
pub(super) fn check(wanted: &Table, access: Access) -> Result<(), Failure> {
    BOUNDS.over(base(), wanted, access).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_that_kimi_does_not_understand_are_named_and_not_quoted() {
        // As kimi 2.1 printed it.
        let told = "Kimi doctor found 1 issue.\n\nERROR config.toml  /j/home/kimi/config.toml\n  Invalid configuration in \
                    /j/home/kimi/config.toml.\n  Validation issues:\n    tools.enabled: Invalid input: expected array, \
                    received string\n    hooks[0]: Unrecognized key: \"bogus\"\n    hooks[0]: Invalid";
        let failure = ignored(told).unwrap();
        assert!(failure.message.ends_with("sections: tools.enabled, hooks[0]"), "{failure:?}");
        let many: String = (0..1000).map(|n| format!("\n    {n}{}: sk-secret", "x\u{1b}".repeat(500))).collect();
        let failure = ignored(&format!("Validation issues:{many}")).unwrap();
        assert!(failure.message.len() < 2000 && failure.message.ends_with(", 990 more"), "{failure:?}");
        assert!(!failure.message.contains("sk-secret") && !failure.message.contains('\u{1b}'), "{failure:?}");
        assert_eq!(ignored("error: unknown command 'doctor'"), None);
    }
}
