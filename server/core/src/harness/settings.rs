//! What a person set for one harness.
//!
//! Checked when the configuration is read ([`crate::config`]); what the table means is the harness's own affair.

use std::ffi::OsStr;
use std::fmt;

use serde::{Deserialize, Serialize};

use super::own::OwnHarness;
use crate::AbsPath;

/// One harness's settings. Recorded with each job, so that a job means the same when it is recovered.
#[derive(Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct HarnessSettings {
    /// The program, where the person chose one.
    pub executable: Option<AbsPath>,
    /// What runs the program, where that is a script and the person chose something.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interpreter: Option<AbsPath>,
    /// The model, where the person chose one.
    pub model: Option<String>,
    /// Variables to let through.
    pub environment: Vec<String>,
    /// Settings in the harness's own terms.
    pub config: toml::Table,
    /// The program itself, where it is one of the person's own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub own: Option<OwnHarness>,
}

impl HarnessSettings {
    /// The program that the person chose, as an absolute path or a bare name, and the key that says so.
    pub fn chosen(&self) -> Option<(&'static str, &OsStr)> {
        match (&self.own, &self.executable) {
            (Some(own), _) => Some(("command", OsStr::new(own.command.as_str()))),
            (None, Some(path)) => Some(("executable", path.as_path().as_os_str())),
            (None, None) => None,
        }
    }
}

/// Where the first text in `settings` is that `is_secret` takes for one, given the names that lead to it.
pub(super) fn secret_in(settings: &toml::Table, is_secret: &dyn Fn(&[&str], &str) -> bool) -> Option<String> {
    fn find<'s>(path: &mut Vec<&'s str>, value: &'s toml::Value, is_secret: &dyn Fn(&[&str], &str) -> bool) -> bool {
        match value {
            toml::Value::String(text) => is_secret(path, text),
            toml::Value::Array(values) => values.iter().any(|value| find(path, value, is_secret)),
            toml::Value::Table(below) => below.iter().any(|(key, value)| {
                path.push(key);
                let found = find(path, value, is_secret);
                if !found {
                    path.pop();
                }
                found
            }),
            _ => false,
        }
    }
    settings.iter().find_map(|(key, value)| {
        let mut path = vec![key.as_str()];
        find(&mut path, value, is_secret).then(|| path.join("."))
    })
}

/// Whether what stands under this name is what one logs in with, and not the name of a variable that is.
pub(super) fn names_a_secret(key: &str) -> bool {
    let key: String = key.chars().filter(char::is_ascii_alphanumeric).map(|c| c.to_ascii_lowercase()).collect();
    let endings = ["key", "token", "secret", "password", "passphrase", "authorization"];
    // codex's name for a variable.
    key != "envkey" && endings.iter().any(|end| key.ends_with(end))
}

impl fmt::Debug for HarnessSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HarnessSettings")
            .field("executable", &self.executable)
            .field("interpreter", &self.interpreter)
            .field("model", &self.model)
            .field("environment", &self.environment)
            // A provider's settings may hold what no log should.
            .field("config", &self.config.keys().collect::<Vec<_>>())
            .field("own", &self.own)
            .finish()
    }
}
