//! Harnesses of the person's own: programs that the configuration describes, instead of this build.
//!
//! [`OwnHarness`] is what `[harnesses.<name>]` came to, recorded with each job, so that a job means the same when it is
//! recovered or resumed. How such a program is driven is its [`Protocol`]'s affair: [`super::cli`], [`super::acp`].

pub mod template;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::acp::{AcpProtocol, OwnAgent};
use super::cli::{self, CliProtocol};
use super::{Harness, HarnessName};
use crate::AbsPath;
use template::Template;

/// The most arguments that a configuration may name.
const ARGS_MAX: usize = 256;

/// A program of the person's own, and how it is spoken to.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct OwnHarness {
    /// The program.
    pub command: Command,
    /// Variables that it gets on top of the filtered environment.
    #[serde(default)]
    pub env: BTreeMap<String, String>,
    /// The person's language, for programs that are told it: the first part of a language tag.
    pub lang: String,
    /// How it is spoken to.
    pub protocol: Protocol,
}

/// A program, as a person names it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Command {
    /// At this place.
    Path(AbsPath),
    /// Looked up on the search path by this bare name.
    Name(String),
}

/// How a program is spoken to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Protocol {
    /// Arguments in, text or lines of JSON out, an exit code.
    Cli(CliProtocol),
    /// The Agent Client Protocol, over standard input and output.
    Acp(AcpProtocol),
}

/// `protocol` in `[harnesses.<name>]`
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum RawProtocol {
    /// Arguments in, text or lines of JSON out, an exit code.
    #[default]
    Cli,
    /// The Agent Client Protocol, over standard input and output.
    Acp,
}

/// The keys of `[harnesses.<name>]` that describe a program of the person's own.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RawOwn {
    /// `command`
    pub command: Option<String>,
    /// `args`
    pub args: Option<Vec<String>>,
    /// `env`
    pub env: Option<BTreeMap<String, String>>,
    /// `protocol`
    pub protocol: Option<RawProtocol>,
    /// `output`
    pub output: Option<cli::Output>,
    /// `read-only-args`
    pub read_only_args: Option<Vec<String>>,
    /// `resume-args`
    pub resume_args: Option<Vec<String>>,
    /// `mode`
    pub mode: Option<String>,
    /// `read-only-mode`
    pub read_only_mode: Option<String>,
    /// `login-method`
    pub login_method: Option<String>,
}

impl RawOwn {
    /// The first key that is there.
    pub fn first_key(&self) -> Option<&'static str> {
        let keys = [
            (self.command.is_some(), "command"),
            (self.args.is_some(), "args"),
            (self.env.is_some(), "env"),
            (self.protocol.is_some(), "protocol"),
            (self.output.is_some(), "output"),
            (self.read_only_args.is_some(), "read-only-args"),
            (self.resume_args.is_some(), "resume-args"),
            (self.mode.is_some(), "mode"),
            (self.read_only_mode.is_some(), "read-only-mode"),
            (self.login_method.is_some(), "login-method"),
        ];
        keys.into_iter().find_map(|(is_there, key)| is_there.then_some(key))
    }

    /// The first key that a program of this protocol does not have.
    fn foreign_key(&self) -> Option<&'static str> {
        let keys = match self.protocol.unwrap_or_default() {
            RawProtocol::Cli => [
                (self.mode.is_some(), "mode"),
                (self.read_only_mode.is_some(), "read-only-mode"),
                (self.login_method.is_some(), "login-method"),
            ],
            RawProtocol::Acp => {
                [(self.output.is_some(), "output"), (self.resume_args.is_some(), "resume-args"), (false, "")]
            }
        };
        keys.into_iter().find_map(|(is_there, key)| is_there.then_some(key))
    }

    /// Checks and parses everything; an error names the key.
    pub fn resolve(self) -> Result<OwnHarness, String> {
        if let Some(key) = self.foreign_key() {
            return Err(format!("{key}: a program of this `protocol` has no such key"));
        }
        let command = self.command.ok_or("a harness of your own needs a `command`")?;
        let command = Command::try_from(command).map_err(|why| format!("command: {why}"))?;
        let env = self.env.unwrap_or_default();
        env.iter().try_for_each(variable).map_err(|why| format!("env: {why}"))?;
        let list = |key, args: Option<Vec<String>>| args.map(|args| templates(key, args)).transpose();
        let protocol = match self.protocol.unwrap_or_default() {
            RawProtocol::Cli => {
                let cli = CliProtocol {
                    args: list("args", self.args)?.unwrap_or_default(),
                    read_only_args: list("read-only-args", self.read_only_args)?,
                    resume_args: list("resume-args", self.resume_args)?,
                    output: self.output.unwrap_or_default(),
                };
                cli.check()?;
                Protocol::Cli(cli)
            }
            RawProtocol::Acp => {
                let acp = AcpProtocol {
                    args: list("args", self.args)?.unwrap_or_default(),
                    read_only_args: list("read-only-args", self.read_only_args)?,
                    mode: self.mode,
                    read_only_mode: self.read_only_mode,
                    login_method: self.login_method,
                };
                acp.check()?;
                Protocol::Acp(acp)
            }
        };
        Ok(OwnHarness { command, env, lang: language(""), protocol })
    }
}

impl OwnHarness {
    /// The harness called `name` that these settings describe.
    pub fn harness(&self, name: &HarnessName) -> Arc<dyn Harness> {
        match &self.protocol {
            Protocol::Cli(protocol) => Arc::new(cli::Cli::new(name.clone(), self.clone(), protocol.clone())),
            Protocol::Acp(protocol) => Arc::new(OwnAgent::new(name.clone(), self.clone(), protocol.clone())),
        }
    }

    /// The variables that it is started with: its temporary directory, plain text, and what the person set.
    pub(super) fn environment(&self, tmp: &AbsPath) -> Vec<(String, String)> {
        let mut env = vec![("TMPDIR".to_owned(), tmp.to_string())];
        env.extend([("NO_COLOR", "1"), ("TERM", "dumb")].map(|(name, value)| (name.to_owned(), value.to_owned())));
        env.extend(self.env.clone());
        env
    }
}

impl Command {
    /// What is looked up: an absolute path or a bare name.
    pub fn as_str(&self) -> &str {
        match self {
            // Parsed from text, so it is text.
            Self::Path(path) => path.as_path().to_str().unwrap_or_default(),
            Self::Name(name) => name,
        }
    }
}

impl TryFrom<String> for Command {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        if text.is_empty() || text.chars().any(char::is_control) {
            return Err(format!("{text:?} names no program"));
        }
        if !text.contains('/') && !matches!(text.as_str(), "." | "..") {
            return Ok(Self::Name(text));
        }
        let why = "a program is named by an absolute path, or by a plain name that is looked up on the search path";
        AbsPath::new(&text).map(Self::Path).map_err(|error| format!("{error}: {why}"))
    }
}

impl From<Command> for String {
    fn from(command: Command) -> Self {
        command.as_str().to_owned()
    }
}

/// Values of variables may be secrets.
impl fmt::Debug for OwnHarness {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OwnHarness")
            .field("command", &self.command)
            .field("env", &self.env.keys().collect::<Vec<_>>())
            .field("lang", &self.lang)
            .field("protocol", &self.protocol)
            .finish()
    }
}

/// The language of a POSIX locale (`de_AT.UTF-8` → `de`); `en` where it names none (`C`, `POSIX`, nothing).
pub fn language(locale: &str) -> String {
    let language = locale.split(['_', '.', '@', '-']).next().unwrap_or_default();
    let is_language = (2..=3).contains(&language.len()) && language.bytes().all(|b| b.is_ascii_alphabetic());
    if is_language { language.to_ascii_lowercase() } else { "en".to_owned() }
}

fn templates(key: &str, args: Vec<String>) -> Result<Vec<Template>, String> {
    if args.len() > ARGS_MAX {
        return Err(format!("{key}: {} arguments are more than {ARGS_MAX}", args.len()));
    }
    args.into_iter().map(|arg| Template::try_from(arg).map_err(|why| format!("{key}: {why}"))).collect()
}

fn variable((name, value): (&String, &String)) -> Result<(), String> {
    let plain = |b: u8| b.is_ascii_alphanumeric() || b == b'_';
    if name.is_empty() || !name.bytes().all(plain) || name.as_bytes()[0].is_ascii_digit() {
        return Err(format!("{name:?} is not a variable's name"));
    }
    if name.starts_with("GIT_") || name.starts_with("PACTIFY_") {
        return Err(format!("{name} steers git or pactify, and is not set for a harness"));
    }
    if value.contains('\0') {
        return Err(format!("{name} contains a NUL byte"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_a_plain_name_or_an_absolute_path() {
        let check = |text: &str, expected: Option<Command>| {
            assert_eq!(Command::try_from(text.to_owned()).ok(), expected, "{text:?}");
        };
        check("agent", Some(Command::Name("agent".into())));
        check("/opt/agent", Some(Command::Path(AbsPath::new("/opt/agent").unwrap())));
        for refused in ["", ".", "..", "./agent", "bin/agent", "../agent", "/opt/../agent", "~/agent", "a\nb"] {
            check(refused, None);
        }
    }

    #[test]
    fn a_locale_names_a_language() {
        for (locale, expected) in
            [("de_AT.UTF-8", "de"), ("pt-BR", "pt"), ("fil_PH", "fil"), ("C.UTF-8", "en"), ("POSIX", "en"), ("", "en")]
        {
            assert_eq!(language(locale), expected, "{locale}");
        }
    }

    #[test]
    fn values_of_variables_are_never_shown() {
        let env = BTreeMap::from([("KEY".to_owned(), "hunter2".to_owned())]);
        let raw = RawOwn { command: Some("agent".to_owned()), env: Some(env), ..RawOwn::default() };
        let shown = format!("{:?}", raw.resolve().unwrap());
        assert!(shown.contains("KEY") && !shown.contains("hunter2"), "{shown}");
    }
}
