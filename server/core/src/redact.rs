//! Secrets taken out of text before it is recorded: a harness prints what it sees.
//!
//! A [`Redactor`] knows the values that a job's harness was given, and shapes: tokens of known services, keys,
//! credentials in URLs, headers and assignments. It is made for whole lines, *before* they are cut to a length (half a
//! secret has no shape) and before a driver reads them: a line of JSON stays JSON. What it cannot do: recognise a
//! secret that was never let through and looks like nothing, one that is spread over several lines, or one that was
//! encoded. Of lines that are pieces of a longer text only an [`outline`] is kept where lines are kept.

mod outline;
mod shape;

use std::borrow::Cow;
use std::fmt;

use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};

pub use outline::outline;

/// What stands where a secret stood.
pub const REDACTED: &str = "[redacted]";

/// Shorter values are not searched for: they would occur by chance everywhere.
const VALUE_MIN: usize = 6;
/// Nor are plain words shorter than this: an environment with `LOG=message` would make a harness's stream unreadable.
const WORD_MIN: usize = 12;

/// Takes secrets out of text; made once for a job.
#[derive(Default)]
pub struct Redactor {
    /// Every spelling of every value, longest first, so that a value which contains another one goes whole.
    values: Vec<String>,
}

impl Redactor {
    /// A redactor that knows `values`: those of the variables which were let through to the harness.
    pub fn new(values: impl IntoIterator<Item = String>) -> Self {
        let mut spellings: Vec<String> = values
            .into_iter()
            .map(|value| value.trim().to_owned())
            .filter(|value| value.len() >= if is_word(value) { WORD_MIN } else { VALUE_MIN })
            .flat_map(spellings)
            .collect();
        spellings.sort_by(|a, b| b.len().cmp(&a.len()).then_with(|| a.cmp(b)));
        spellings.dedup();
        Self { values: spellings }
    }

    /// `text` without its secrets; borrowed when there is none.
    pub fn redact<'t>(&self, text: &'t str) -> Cow<'t, str> {
        let mut text = Cow::Borrowed(text);
        for value in &self.values {
            if text.contains(value.as_str()) {
                text = Cow::Owned(text.replace(value.as_str(), REDACTED));
            }
        }
        for shape in shape::all() {
            if let Some(clean) = shape.redact(&text) {
                text = Cow::Owned(clean);
            }
        }
        text
    }
}

impl fmt::Debug for Redactor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Redactor({} spellings)", self.values.len())
    }
}

/// The values in a person's settings of a harness that must be recorded nowhere, by the names that they stand under.
pub fn secrets_in(settings: &toml::Table) -> Vec<String> {
    let mut found = Vec::new();
    for (key, value) in settings {
        collect(key, value, &mut found);
    }
    found
}

/// The same, of settings in JSON.
pub fn secrets_in_json(settings: &serde_json::Value) -> Vec<String> {
    match in_toml(settings) {
        Some(toml::Value::Table(settings)) => secrets_in(&settings),
        _ => Vec::new(),
    }
}

/// JSON in the terms of TOML, which has no null.
fn in_toml(value: &serde_json::Value) -> Option<toml::Value> {
    use serde_json::Value;
    Some(match value {
        Value::String(text) => toml::Value::String(text.clone()),
        Value::Array(values) => toml::Value::Array(values.iter().filter_map(in_toml).collect()),
        Value::Object(members) => {
            let members = members.iter().filter_map(|(name, value)| Some((name.clone(), in_toml(value)?)));
            toml::Value::Table(members.collect())
        }
        // Neither is a secret.
        Value::Null | Value::Bool(_) | Value::Number(_) => return None,
    })
}

fn collect(key: &str, value: &toml::Value, found: &mut Vec<String>) {
    match value {
        toml::Value::String(text) if may_name_a_secret(key) => {
            found.push(text.clone());
            // A header's value names its scheme first.
            found.extend(text.split_once(' ').map(|(_, credentials)| credentials.to_owned()));
        }
        toml::Value::Table(table) => {
            // What stands in a table of headers or of variables is as secret as they are.
            // codex's `env_http_headers` name variables.
            let key = plain(key);
            if key.starts_with("env") && key.ends_with("headers") {
                return;
            }
            let inherited = key.ends_with("headers") || matches!(key.as_str(), "env" | "environment");
            for (name, value) in table {
                collect(if inherited { "secret" } else { name }, value, found);
            }
        }
        toml::Value::Array(values) => values.iter().for_each(|value| collect(key, value, found)),
        _ => {}
    }
}

/// Whether a setting or a variable of this name holds what one logs in with, and not the name of a variable that does:
/// surely enough to refuse it.
pub fn names_a_secret(key: &str) -> bool {
    let key = plain(key);
    let endings =
        ["key", "token", "secret", "password", "passwd", "passphrase", "authorization", "credential", "credentials"];
    // codex's name for a variable.
    key != "envkey" && endings.iter().any(|end| key.ends_with(end))
}

/// Whether it may, so that what it holds is better not shown.
fn may_name_a_secret(key: &str) -> bool {
    let words = ["token", "secret", "password", "passphrase", "apikey", "accesskey", "authorization", "credential"];
    let plain = plain(key);
    let variable = plain.starts_with("env") || plain.ends_with("envvar") || plain.ends_with("env");
    !variable && (names_a_secret(key) || words.iter().any(|word| plain.contains(word)))
}

fn plain(key: &str) -> String {
    key.chars().filter(char::is_ascii_alphanumeric).map(|c| c.to_ascii_lowercase()).collect()
}

fn is_word(value: &str) -> bool {
    value.bytes().all(|byte| byte.is_ascii_alphabetic())
}

/// A value as it is, inside a JSON text, inside a JSON text within another one, and inside a URL.
fn spellings(value: String) -> Vec<String> {
    let quoted = |text: &str| {
        let json = serde_json::Value::from(text).to_string();
        json[1..json.len() - 1].to_owned()
    };
    let once = quoted(&value);
    let twice = quoted(&once);
    let encoded = utf8_percent_encode(&value, NON_ALPHANUMERIC).to_string();
    vec![value, once, twice, encoded]
}
