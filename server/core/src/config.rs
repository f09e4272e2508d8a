//! The person's configuration: one TOML file, raw as it is written, settings as they are used.
//!
//! [`RawConfig`] is the file; [`Settings`] has every default filled in and every value checked. A repository's own
//! files never get here: they may not choose an executable or a command. Finding and reading the file is the
//! engine's work; the reference for people is `docs/configuration.md`, whose example is held against these
//! types by `cargo xtask tidy`.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::doctor::Address;
use crate::harness::own::{self, RawOwn, RawProtocol};
use crate::harness::{Harness, HarnessName, HarnessSettings, cli, registry};
use crate::job::access::Access;
use crate::job::outcome::Ceilings;
use crate::job::{BaseKind, Isolation, Limits, RepositoryRecord, setup, verify};
use crate::lfs::LfsPolicy;
use crate::permission::Policy;
use crate::{AbsPath, Failure, FailureCode};

/// Free bytes that must remain where nobody says otherwise: 1 GiB.
const FREE_BYTES: u64 = 1 << 30;

/// How long a setup may take where nobody says otherwise: 15 minutes.
const SETUP_SECONDS: u64 = 900;

/// How long one verification command may take where nobody says otherwise: 15 minutes.
const VERIFY_SECONDS: u64 = 900;

/// How long a permission request waits for a person where nobody says otherwise: 10 minutes.
const ANSWER_SECONDS: u64 = 600;

/// The configuration file as it is written.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct RawConfig {
    /// What a job gets when nobody says otherwise.
    pub defaults: RawDefaults,
    /// How long and how much.
    pub limits: RawLimits,
    /// What goes by itself to make room.
    pub retention: RawRetention,
    /// What the doctor tries.
    pub doctor: RawDoctor,
    /// Settings by harness name.
    pub harnesses: BTreeMap<String, RawHarness>,
    /// Settings by the absolute path of a repository's checkout.
    pub repositories: BTreeMap<String, RawRepository>,
}

/// `[defaults]`
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct RawDefaults {
    /// The harness; when absent, the first that is found of codex, kimi, opencode, agy and the person's own.
    pub harness: Option<String>,
    /// `write` (default) or `readOnly`.
    pub access: Option<Access>,
    /// `private` (default) or `linked`.
    pub isolation: Option<Isolation>,
    /// `head` (default), `workingTree` or `buffers`.
    pub base: Option<BaseKind>,
    /// `contents` (default) or `pointers`.
    pub lfs: Option<LfsPolicy>,
    /// `allow` (default) or `ask`: who answers what a write job's harness asks for.
    pub permissions: Option<Policy>,
}

/// `[limits]`
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct RawLimits {
    /// Seconds from launch to end: 3600 when absent.
    pub total_seconds: Option<u64>,
    /// Seconds without a sign of life: 600 when absent.
    pub stall_seconds: Option<u64>,
    /// Seconds that the command which sets a tree up may take: 900 when absent.
    pub setup_seconds: Option<u64>,
    /// Seconds that each command which verifies a result may take: 900 when absent.
    pub verify_seconds: Option<u64>,
    /// Seconds for which a permission request waits for an answer, then it is denied: 600 when absent.
    pub answer_seconds: Option<u64>,
    /// Jobs that run at once; others queue. The number of cores when absent.
    pub running_jobs: Option<u32>,
    /// Tokens that a job may use over all its attempts, sent and received together, where its harness says: no limit
    /// when absent.
    pub max_tokens: Option<u64>,
    /// US dollars that a job may cost over all its attempts, where its harness says: no limit when absent.
    pub max_cost: Option<f64>,
    /// Free bytes that must remain on the disk of `PACTIFY_HOME` for a turn to begin, and while its agent works: 1 GiB
    /// when absent.
    pub free_bytes: Option<u64>,
}

/// `[retention]`: nothing goes by itself where neither is there.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct RawRetention {
    /// Days for which the tree of a decided job stays after its end.
    pub age_days: Option<u32>,
    /// How many of the newest jobs keep their trees.
    pub keep_jobs: Option<u32>,
    /// Whether trees go that have files which git ignores and which are nowhere else.
    pub ignored_files: bool,
}

/// `[doctor]`
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct RawDoctor {
    /// The address by which `--probe` tries which jobs reach the network: `https://example.com` when absent.
    pub network: Option<String>,
}

/// `[harnesses.<name>]`
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct RawHarness {
    /// The program, as an absolute path; looked up on the search path when absent.
    pub executable: Option<String>,
    /// What runs the program where that is a script (kimi: Node.js), as an absolute path; looked for when absent.
    pub interpreter: Option<String>,
    /// The model to ask for when the job names none.
    pub model: Option<String>,
    /// Names of environment variables to let through to the harness (a provider's key).
    pub environment: Vec<String>,
    /// Settings in the harness's own terms, merged over the minimal configuration that pactify generates.
    #[cfg_attr(feature = "schema", schemars(with = "serde_json::Map<String, serde_json::Value>"))]
    pub config: toml::Table,
    /// A program of the person's own: its absolute path, or a plain name that is looked up on the search path.
    pub command: Option<String>,
    /// Its arguments, with `{prompt}`, `{root}` and `{lang}` filled in.
    pub args: Option<Vec<String>>,
    /// Its arguments instead of those in a read-only job; without them it has no such mode.
    pub read_only_args: Option<Vec<String>>,
    /// Further arguments where it goes on with `{session}`; without them its jobs cannot be resumed.
    pub resume_args: Option<Vec<String>>,
    /// Variables that are set for it.
    pub env: Option<BTreeMap<String, String>>,
    /// How it is spoken to: `cli` (default) or `acp`.
    pub protocol: Option<RawProtocol>,
    /// What it prints: `text` (default) or `jsonl`.
    pub output: Option<cli::Output>,
    /// The mode that its session is put into, by the agent's id of it (`acp`).
    pub mode: Option<String>,
    /// The mode instead of that in a read-only job; without it or `read-only-args` it has no such mode (`acp`).
    pub read_only_mode: Option<String>,
    /// The login that is asked for before there is a session, by the agent's id of it (`acp`).
    pub login_method: Option<String>,
}

/// `[repositories."<path>"]`
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct RawRepository {
    /// The command that makes a fresh tree ready; empty for none. The repository's own proposal is not looked at then.
    pub setup: Option<String>,
    /// What a tree holds for files in Git LFS: `contents` or `pointers`.
    pub lfs: Option<LfsPolicy>,
    /// The commands that each result has to pass.
    pub verify: Vec<String>,
}

/// What the person wants for one repository.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RepositorySettings {
    /// The command that makes a fresh tree ready; empty for none.
    pub setup: Option<String>,
    /// What a tree holds for files in Git LFS.
    pub lfs: LfsPolicy,
    /// The commands that each result has to pass.
    pub verify: Vec<String>,
}

/// The configuration in use: everything present and checked.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// The default harness, where the person chose one.
    pub harness: Option<HarnessName>,
    /// The default access mode.
    pub access: Access,
    /// The default isolation.
    pub isolation: Isolation,
    /// The default base.
    pub base: BaseKind,
    /// The default limits.
    pub limits: Limits,
    /// What trees hold for files in Git LFS.
    pub lfs: LfsPolicy,
    /// How long the command that sets a tree up may take, in seconds.
    pub setup_seconds: u64,
    /// How long one verification command may take, in seconds.
    pub verify_seconds: u64,
    /// Who answers what a write job's harness asks for.
    pub permissions: Policy,
    /// How long a permission request waits for an answer, in seconds of the machine being awake.
    pub answer_seconds: u64,
    /// How many jobs run at once; `None` means as many as there are cores.
    pub running_jobs: Option<u32>,
    /// How much a job may use.
    pub ceilings: Ceilings,
    /// Free bytes that must remain.
    pub free_bytes: u64,
    /// Days for which the tree of a decided job stays.
    pub retention_age_days: Option<u32>,
    /// How many of the newest jobs keep their trees.
    pub retention_keep_jobs: Option<u32>,
    /// Whether trees with ignored files go by themselves.
    pub retention_ignored_files: bool,
    /// By which address the doctor tries which jobs reach the network.
    pub network: Address,
    harnesses: BTreeMap<HarnessName, HarnessSettings>,
    repositories: BTreeMap<AbsPath, RawRepository>,
}

/// What is wrong, and where. Never the line itself, as toml would show it: it may hold a key.
fn located(text: &str, error: &toml::de::Error) -> String {
    let Some(before) = error.span().and_then(|span| text.get(..span.start)) else { return error.message().to_owned() };
    let line = before.matches('\n').count() + 1;
    let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
    format!("line {line}, column {column}: {}", error.message())
}

impl Settings {
    /// Parses and checks a configuration file's text; the empty text is the default configuration.
    pub fn parse(text: &str) -> Result<Self, Failure> {
        let raw: RawConfig = toml::from_str(text).map_err(|error| invalid(located(text, &error)))?;
        Self::resolve(raw)
    }

    /// Whether the person's configuration says anything about the harness `name`.
    pub fn configures(&self, name: &HarnessName) -> bool {
        self.harnesses.contains_key(name)
    }

    /// The settings of the harness `name`.
    pub fn harness_settings(&self, name: &HarnessName) -> HarnessSettings {
        self.harnesses.get(name).cloned().unwrap_or_default()
    }

    /// Every harness in the order in which people are shown them, those of the person's own last, with its settings.
    pub fn known_harnesses(&self) -> Vec<(Arc<dyn Harness>, HarnessSettings)> {
        let built_in = registry::all().into_iter().map(|harness| {
            let settings = self.harness_settings(&harness.name());
            (harness, settings)
        });
        let own = self
            .harnesses
            .iter()
            .filter_map(|(name, settings)| Some((settings.own.as_ref()?.harness(name), settings.clone())));
        built_in.chain(own).collect()
    }

    /// The same settings for a person whose locale this is.
    #[must_use]
    pub fn speaking(mut self, locale: &str) -> Self {
        for own in self.harnesses.values_mut().filter_map(|settings| settings.own.as_mut()) {
            own.lang = own::language(locale);
        }
        self
    }

    /// The settings of a repository: those of its checkout, else those of the checkout that its other ones belong to.
    pub fn repository(&self, repository: &RepositoryRecord) -> RepositorySettings {
        let main = repository.common_dir.as_path().parent().and_then(|parent| AbsPath::new(parent).ok());
        let found = self.repositories.get(&repository.worktree).or_else(|| self.repositories.get(&main?));
        let RawRepository { setup, lfs, verify } = found.cloned().unwrap_or_default();
        RepositorySettings { setup, lfs: lfs.unwrap_or(self.lfs), verify }
    }

    fn resolve(raw: RawConfig) -> Result<Self, Failure> {
        let default = Self::default();
        let limits = Limits {
            total_seconds: raw.limits.total_seconds.unwrap_or(default.limits.total_seconds),
            stall_seconds: raw.limits.stall_seconds.unwrap_or(default.limits.stall_seconds),
        };
        if limits.total_seconds == 0 || limits.stall_seconds == 0 {
            return Err(invalid("[limits]: a limit of 0 seconds would end every job at once"));
        }
        if raw.limits.running_jobs == Some(0) {
            return Err(invalid("[limits] running-jobs: 0 would let no job run"));
        }
        if raw.limits.max_tokens == Some(0) {
            return Err(invalid("[limits] max-tokens: 0 would end every job at its first word"));
        }
        if raw.limits.max_cost.is_some_and(|cost| !cost.is_finite() || cost <= 0.0) {
            return Err(invalid("[limits] max-cost: an amount of US dollars above 0"));
        }
        if raw.limits.setup_seconds == Some(0) {
            return Err(invalid("[limits] setup-seconds: 0 would let no setup finish"));
        }
        if raw.limits.verify_seconds == Some(0) {
            return Err(invalid("[limits] verify-seconds: 0 would let no verification finish"));
        }
        if raw.limits.answer_seconds == Some(0) {
            return Err(invalid("[limits] answer-seconds: 0 would deny every request before anybody sees it"));
        }
        let network = raw.doctor.network.map(|url| Address::parse(&url)).transpose();
        let network = network.map_err(|error| invalid(format!("[doctor] network: {error}")))?.unwrap_or_default();
        let repositories = raw.repositories.into_iter().map(repository).collect::<Result<_, Failure>>()?;
        let harnesses = raw
            .harnesses
            .into_iter()
            .map(|(name, raw)| Ok((harness_name(&name)?, harness_settings(&name, raw)?)))
            .collect::<Result<BTreeMap<_, _>, Failure>>()?;
        let harness = raw.defaults.harness.map(|name| default_harness(&name, &harnesses)).transpose()?;
        Ok(Self {
            harness,
            access: raw.defaults.access.unwrap_or_default(),
            isolation: raw.defaults.isolation.unwrap_or_default(),
            base: raw.defaults.base.unwrap_or_default(),
            limits,
            lfs: raw.defaults.lfs.unwrap_or_default(),
            setup_seconds: raw.limits.setup_seconds.unwrap_or(SETUP_SECONDS),
            verify_seconds: raw.limits.verify_seconds.unwrap_or(VERIFY_SECONDS),
            permissions: raw.defaults.permissions.unwrap_or_default(),
            answer_seconds: raw.limits.answer_seconds.unwrap_or(ANSWER_SECONDS),
            running_jobs: raw.limits.running_jobs,
            ceilings: Ceilings { tokens: raw.limits.max_tokens, cost: raw.limits.max_cost },
            free_bytes: raw.limits.free_bytes.unwrap_or(FREE_BYTES),
            retention_age_days: raw.retention.age_days,
            retention_keep_jobs: raw.retention.keep_jobs,
            retention_ignored_files: raw.retention.ignored_files,
            network,
            harnesses,
            repositories,
        })
    }
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            harness: None,
            access: Access::default(),
            isolation: Isolation::default(),
            base: BaseKind::default(),
            limits: Limits::default(),
            lfs: LfsPolicy::default(),
            setup_seconds: SETUP_SECONDS,
            verify_seconds: VERIFY_SECONDS,
            permissions: Policy::default(),
            answer_seconds: ANSWER_SECONDS,
            running_jobs: None,
            ceilings: Ceilings::default(),
            free_bytes: FREE_BYTES,
            retention_age_days: None,
            retention_keep_jobs: None,
            retention_ignored_files: false,
            network: Address::default(),
            harnesses: BTreeMap::new(),
            repositories: BTreeMap::new(),
        }
    }
}

fn harness_settings(name: &str, raw: RawHarness) -> Result<HarnessSettings, Failure> {
    let is_built_in = registry::built_in(&harness_name(name)?).is_some();
    let (raw, own) = raw.split();
    let own = if is_built_in {
        if let Some(key) = own.first_key() {
            let why = format!("[harnesses.{name}] {key}: {name} is built in, and what it is cannot be changed");
            return Err(invalid(format!("{why}; `executable` chooses its program")));
        }
        None
    } else {
        if own.first_key().is_none() {
            return Err(unknown_harness(name, "a harness of your own needs a `command`"));
        }
        let speaks_acp = own.protocol == Some(RawProtocol::Acp);
        if let Some(key) = raw.built_in_key(speaks_acp) {
            let why = format!("[harnesses.{name}] {key}: this key belongs to harnesses that are built in");
            return Err(invalid(format!("{why}; one of your own has `command`, `args` and `env`")));
        }
        Some(own.resolve().map_err(|why| invalid(format!("[harnesses.{name}] {why}")))?)
    };
    let absolute = |key: &str, path: Option<String>| {
        let told = |error| invalid(format!("[harnesses.{name}] {key}: {error}"));
        path.map(|path| AbsPath::new(path).map_err(told)).transpose()
    };
    let executable = absolute("executable", raw.executable)?;
    let interpreter = absolute("interpreter", raw.interpreter)?;
    for variable in &raw.environment {
        let plain = |b: u8| b.is_ascii_alphanumeric() || b == b'_';
        if variable.is_empty() || !variable.bytes().all(plain) || variable.as_bytes()[0].is_ascii_digit() {
            return Err(invalid(format!("[harnesses.{name}] environment: {variable:?} is not a variable's name")));
        }
    }
    let RawHarness { model, environment, config, .. } = raw;
    Ok(HarnessSettings { executable, interpreter, model, environment, config, own })
}

fn repository((path, raw): (String, RawRepository)) -> Result<(AbsPath, RawRepository), Failure> {
    let key = AbsPath::new(&path).map_err(|error| invalid(format!("[repositories.{path:?}]: {error}")))?;
    let checked = raw.setup.as_deref().map(setup::check).transpose();
    let setup = checked.map_err(|why| invalid(format!("[repositories.{path:?}] setup: {why}")))?;
    let verify = verify::check(&raw.verify).map_err(|why| invalid(format!("[repositories.{path:?}] verify: {why}")))?;
    Ok((key, RawRepository { setup: setup.map(Option::unwrap_or_default), verify, ..raw }))
}

impl RawHarness {
    /// The part for every harness, and the part that describes one of the person's own.
    fn split(self) -> (Self, RawOwn) {
        let Self {
            executable,
            interpreter,
            model,
            environment,
            config,
            command,
            args,
            read_only_args,
            resume_args,
            env,
            protocol,
            output,
            mode,
            read_only_mode,
            login_method,
        } = self;
        let own = RawOwn {
            command,
            args,
            env,
            protocol,
            output,
            read_only_args,
            resume_args,
            mode,
            read_only_mode,
            login_method,
        };
        (Self { executable, interpreter, model, environment, config, ..Self::default() }, own)
    }

    /// The first key that only harnesses of this build have. An agent that speaks ACP can be told a model.
    fn built_in_key(&self, speaks_acp: bool) -> Option<&'static str> {
        let keys = [
            (self.executable.is_some(), "executable"),
            (self.interpreter.is_some(), "interpreter"),
            (self.model.is_some() && !speaks_acp, "model"),
            (!self.config.is_empty(), "config"),
        ];
        keys.into_iter().find_map(|(is_there, key)| is_there.then_some(key))
    }
}

fn harness_name(name: &str) -> Result<HarnessName, Failure> {
    name.parse().map_err(|error| invalid(format!("{error}")))
}

fn default_harness(name: &str, own: &BTreeMap<HarnessName, HarnessSettings>) -> Result<HarnessName, Failure> {
    let parsed = harness_name(name)?;
    if registry::built_in(&parsed).is_some() || own.contains_key(&parsed) {
        return Ok(parsed);
    }
    Err(unknown_harness(name, &format!("one of your own has a `command` in [harnesses.{name}]")))
}

fn unknown_harness(name: &str, otherwise: &str) -> Failure {
    let known: Vec<_> = registry::all().iter().map(|harness| harness.name().to_string()).collect();
    invalid(format!("{name:?} is not a harness of this build ({}); {otherwise}", known.join(", ")))
}

fn invalid(message: impl Into<String>) -> Failure {
    Failure::new(
        FailureCode::InvalidConfig,
        message,
        "correct the configuration file; `pactify sub doctor` prints its place, docs/configuration.md its keys",
    )
}

#[cfg(test)]
mod tests;
