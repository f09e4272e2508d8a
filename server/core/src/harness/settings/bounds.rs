//! What the settings of `[harnesses.<name>.config]` may not say, and how they are put over what a job has anyway.
//!
//! They are in the harness's own terms, and merged key by key. A [`Lock`] names a key by which they could undo what
//! pactify promises about a job: setting it is refused by name, never ignored. So is a secret, as settings are copied
//! into every job's record. Which keys those are each harness says for itself, in its [`Bounds`].

use serde_json::Map;
use toml::{Table, Value};

use crate::job::access::Access;
use crate::redact::names_a_secret;
use crate::{Failure, FailureCode};

/// An object of JSON.
pub(crate) type Object = Map<String, serde_json::Value>;

/// What one harness's settings are held against.
#[derive(Debug)]
pub(crate) struct Bounds {
    /// The harness's name.
    pub(crate) harness: &'static str,
    pub(crate) locks: &'static [Lock],
    /// Whether what is written at a locked path asks for less than the job has.
    pub(crate) tightens: fn(&[&str], &Value) -> bool,
    /// Whether a text at this path is the name of a variable, and no secret, whatever it is called.
    pub(crate) names_variable: fn(&[&str], &str) -> bool,
    /// Where a secret belongs instead.
    pub(crate) instead: &'static str,
}

/// A key that a person's settings may not set, because a promise hangs on it.
#[derive(Debug)]
pub(crate) struct Lock {
    /// Its path. Everything below it is locked as well.
    path: &'static [&'static str],
    /// The jobs for which it is locked.
    on: On,
    /// What it would do.
    why: &'static str,
}

/// Jobs for which something holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum On {
    EveryJob,
    ReadOnlyJobs,
}

/// A row of a table of locks.
pub(crate) const fn lock(path: &'static [&'static str], on: On, why: &'static str) -> Lock {
    Lock { path, on, why }
}

impl Bounds {
    /// `planned`, what a job of this access has anyway, with `wanted`, the person's settings, over it. Refused are what
    /// a promise hangs on, unless `planned` says the same, what must not be in a job's record, and what
    /// [`Bounds::merge`] refuses.
    pub(crate) fn over<T: Tree>(&self, mut planned: T, wanted: &Table, access: Access) -> Result<T, Failure> {
        self.refuse_locked(wanted, Some(&planned), access, &mut Vec::new())?;
        let is_secret = |path: &[&str], text: &str| !(self.names_variable)(path, text) && leads_to_a_secret(path);
        if let Some(key) = secret_in(wanted, &is_secret) {
            let why = format!("a secret written here would be copied into every job's record; {}", self.instead);
            return Err(self.refused(&key, On::EveryJob, &why));
        }
        self.merge(&mut planned, wanted)?;
        Ok(planned)
    }

    /// The lock on a key, where a job of this access has one.
    pub(crate) fn locked(&self, path: &[&str], access: Access) -> Option<&'static Lock> {
        let matches = |lock: &Lock| {
            lock.path.len() <= path.len()
                && lock.path.iter().zip(path).all(|(want, have)| want.eq_ignore_ascii_case(have))
        };
        self.locks.iter().find(|lock| (lock.on == On::EveryJob || access == Access::ReadOnly) && matches(lock))
    }

    /// Puts `wanted` over `config`, table by table; a table is never replaced by something else.
    pub(crate) fn merge<T: Tree>(&self, config: &mut T, wanted: &Table) -> Result<(), Failure> {
        self.merge_at(config, wanted, &mut Vec::new())
    }

    fn merge_at<'a, T: Tree>(&self, config: &mut T, wanted: &'a Table, path: &mut Vec<&'a str>) -> Result<(), Failure> {
        for (key, value) in wanted {
            path.push(key);
            match (config.table_mut(key), value) {
                (Some(below), Value::Table(inner)) => self.merge_at(below, inner, path)?,
                (Some(_), _) => {
                    let (key, section) = (path.join("."), self.section());
                    return Err(Failure::new(
                        FailureCode::InvalidConfig,
                        format!("{section} `{key}` must be a table, not a {}", value.type_str()),
                        format!("correct `{key}` in {section} in pactify's configuration"),
                    ));
                }
                (None, _) => config.put(key, value),
            }
            path.pop();
        }
        Ok(())
    }

    /// `planned` is what a job has where `path` leads; nothing where it has no table there.
    fn refuse_locked<'a, T: Tree>(
        &self,
        wanted: &'a Table,
        planned: Option<&T>,
        access: Access,
        path: &mut Vec<&'a str>,
    ) -> Result<(), Failure> {
        for (key, value) in wanted {
            path.push(key);
            let same = planned.is_some_and(|planned| planned.says(key, value)) || (self.tightens)(path, value);
            let below = planned.and_then(|planned| planned.table(key));
            match (value, self.locked(path, access)) {
                _ if same => {}
                (Value::Table(inner), found) if found.is_none() || below.is_some() => {
                    self.refuse_locked(inner, below, access, path)?;
                }
                (_, Some(lock)) => return Err(self.refused(&path.join("."), lock.on, lock.why)),
                (_, None) => {}
            }
            path.pop();
        }
        Ok(())
    }

    fn refused(&self, key: &str, on: On, why: &str) -> Failure {
        let jobs = if on == On::ReadOnlyJobs { " for a read-only job" } else { "" };
        let section = self.section();
        Failure::new(
            FailureCode::InvalidConfig,
            format!("{section} may not set `{key}`{jobs}: {why}"),
            format!("take `{key}` out of {section} in pactify's configuration"),
        )
    }

    fn section(&self) -> String {
        format!("[harnesses.{}.config]", self.harness)
    }
}

/// A configuration as tables in tables, in the language that the harness reads.
pub(crate) trait Tree {
    /// What stands at `key`, if it is a table.
    fn table(&self, key: &str) -> Option<&Self>;
    /// The same, to be changed.
    fn table_mut(&mut self, key: &str) -> Option<&mut Self>;
    /// Whether just this stands at `key`.
    fn says(&self, key: &str, value: &Value) -> bool;
    /// Has this at `key`, and nothing else.
    fn put(&mut self, key: &str, value: &Value);
}

impl Tree for Table {
    fn table(&self, key: &str) -> Option<&Self> {
        self.get(key)?.as_table()
    }

    fn table_mut(&mut self, key: &str) -> Option<&mut Self> {
        self.get_mut(key)?.as_table_mut()
    }

    fn says(&self, key: &str, value: &Value) -> bool {
        self.get(key) == Some(value)
    }

    fn put(&mut self, key: &str, value: &Value) {
        self.insert(key.to_owned(), value.clone());
    }
}

impl Tree for Object {
    fn table(&self, key: &str) -> Option<&Self> {
        self.get(key)?.as_object()
    }

    fn table_mut(&mut self, key: &str) -> Option<&mut Self> {
        self.get_mut(key)?.as_object_mut()
    }

    fn says(&self, key: &str, value: &Value) -> bool {
        self.get(key) == Some(&json(value))
    }

    fn put(&mut self, key: &str, value: &Value) {
        self.insert(key.to_owned(), json(value));
    }
}

/// A setting as JSON has it.
fn json(value: &Value) -> serde_json::Value {
    serde_json::to_value(value).unwrap_or_default()
}

/// Where the first text in `settings` is that `is_secret` takes for one, given the names that lead to it.
fn secret_in(settings: &Table, is_secret: &dyn Fn(&[&str], &str) -> bool) -> Option<String> {
    fn find<'s>(path: &mut Vec<&'s str>, value: &'s Value, is_secret: &dyn Fn(&[&str], &str) -> bool) -> bool {
        match value {
            Value::String(text) => is_secret(path, text),
            Value::Array(values) => values.iter().any(|value| find(path, value, is_secret)),
            Value::Table(below) => below.iter().any(|(key, value)| {
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

/// Headers that say what a program is or wants, and never who one is. Of any other one nobody can tell by its name.
const PLAIN_HEADERS: &[&str] = &[
    "accept",
    "accept-language",
    "anthropic-beta",
    "anthropic-version",
    "content-type",
    "http-referer",
    "openai-beta",
    "openai-organization",
    "openai-project",
    "originator",
    "referer",
    "user-agent",
    "version",
    "x-title",
];

/// Whether what stands there is what one logs in with, by the name that it has, or as a header.
fn leads_to_a_secret(path: &[&str]) -> bool {
    let Some(name) = path.last() else { return false };
    let is_header = path.iter().any(|part| part.to_ascii_lowercase().ends_with("headers"));
    names_a_secret(name) || is_header && !PLAIN_HEADERS.iter().any(|plain| plain.eq_ignore_ascii_case(name))
}
