//! The person's configuration: one TOML file, raw as it is written, settings as they are used.
//!
//! [`RawConfig`] is the file; [`Settings`] has every default filled in and every value checked. A repository's own
//! files never get here: they may not choose an executable or a command. Finding and reading the file is the
//! engine's work; the reference for people is `docs/configuration.md`, whose example is held against these
//! types by `cargo xtask tidy`.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::harness::{HarnessName, HarnessSettings, registry};
use crate::job::access::Access;
use crate::job::{BaseKind, Isolation, Limits, RepositoryRecord, setup};
use crate::lfs::LfsPolicy;
use crate::{AbsPath, Failure, FailureCode};

/// Free bytes that must remain where nobody says otherwise: 1 GiB.
const FREE_BYTES: u64 = 1 << 30;

/// How long a setup may take where nobody says otherwise: 15 minutes.
const SETUP_SECONDS: u64 = 900;

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
    /// The harness: `codex` when absent.
    pub harness: Option<String>,
    /// `write` (default) or `readOnly`.
    pub access: Option<Access>,
    /// `private` (default) or `linked`.
    pub isolation: Option<Isolation>,
    /// `head` (default), `workingTree` or `buffers`.
    pub base: Option<BaseKind>,
    /// `contents` (default) or `pointers`.
    pub lfs: Option<LfsPolicy>,
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
    /// Jobs that run at once; others queue. The number of cores when absent.
    pub running_jobs: Option<u32>,
    /// Free bytes that must remain on the disk of `PACTIFY_HOME`: 1 GiB when absent.
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
}

/// `[harnesses.<name>]`
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct RawHarness {
    /// The program, as an absolute path; looked up on the search path when absent.
    pub executable: Option<String>,
    /// The model to ask for when the job names none.
    pub model: Option<String>,
    /// Names of environment variables to let through to the harness (a provider's key).
    pub environment: Vec<String>,
    /// Settings in the harness's own terms, merged over the minimal configuration that pactify generates.
    #[cfg_attr(feature = "schema", schemars(with = "serde_json::Map<String, serde_json::Value>"))]
    pub config: toml::Table,
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
}

/// What the person wants for one repository.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RepositorySettings {
    /// The command that makes a fresh tree ready; empty for none.
    pub setup: Option<String>,
    /// What a tree holds for files in Git LFS.
    pub lfs: LfsPolicy,
}

/// The configuration in use: everything present and checked.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// The default harness.
    pub harness: HarnessName,
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
    /// How many jobs run at once; `None` means as many as there are cores.
    pub running_jobs: Option<u32>,
    /// Free bytes that must remain.
    pub free_bytes: u64,
    /// Days for which the tree of a decided job stays.
    pub retention_age_days: Option<u32>,
    /// How many of the newest jobs keep their trees.
    pub retention_keep_jobs: Option<u32>,
    harnesses: BTreeMap<HarnessName, HarnessSettings>,
    repositories: BTreeMap<AbsPath, RawRepository>,
}

impl Settings {
    /// Parses and checks a configuration file's text; the empty text is the default configuration.
    pub fn parse(text: &str) -> Result<Self, Failure> {
        let raw: RawConfig = toml::from_str(text).map_err(|error| invalid(error.to_string()))?;
        Self::resolve(raw)
    }

    /// The settings of the harness `name`.
    pub fn harness_settings(&self, name: &HarnessName) -> HarnessSettings {
        self.harnesses.get(name).cloned().unwrap_or_default()
    }

    /// The settings of a repository: those of its checkout, else those of the checkout that its other ones belong to.
    pub fn repository(&self, repository: &RepositoryRecord) -> RepositorySettings {
        let main = repository.common_dir.as_path().parent().and_then(|parent| AbsPath::new(parent).ok());
        let found = self.repositories.get(&repository.worktree).or_else(|| self.repositories.get(&main?));
        let RawRepository { setup, lfs } = found.cloned().unwrap_or_default();
        RepositorySettings { setup, lfs: lfs.unwrap_or(self.lfs) }
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
        if raw.limits.setup_seconds == Some(0) {
            return Err(invalid("[limits] setup-seconds: 0 would let no setup finish"));
        }
        let repositories = raw.repositories.into_iter().map(repository).collect::<Result<_, Failure>>()?;
        let harness = raw.defaults.harness.as_deref().map_or(Ok(default.harness), known_harness)?;
        let harnesses = raw
            .harnesses
            .into_iter()
            .map(|(name, raw)| Ok((known_harness(&name)?, harness_settings(&name, raw)?)))
            .collect::<Result<_, Failure>>()?;
        Ok(Self {
            harness,
            access: raw.defaults.access.unwrap_or_default(),
            isolation: raw.defaults.isolation.unwrap_or_default(),
            base: raw.defaults.base.unwrap_or_default(),
            limits,
            lfs: raw.defaults.lfs.unwrap_or_default(),
            setup_seconds: raw.limits.setup_seconds.unwrap_or(SETUP_SECONDS),
            running_jobs: raw.limits.running_jobs,
            free_bytes: raw.limits.free_bytes.unwrap_or(FREE_BYTES),
            retention_age_days: raw.retention.age_days,
            retention_keep_jobs: raw.retention.keep_jobs,
            harnesses,
            repositories,
        })
    }
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            harness: registry::default_name(),
            access: Access::default(),
            isolation: Isolation::default(),
            base: BaseKind::default(),
            limits: Limits::default(),
            lfs: LfsPolicy::default(),
            setup_seconds: SETUP_SECONDS,
            running_jobs: None,
            free_bytes: FREE_BYTES,
            retention_age_days: None,
            retention_keep_jobs: None,
            harnesses: BTreeMap::new(),
            repositories: BTreeMap::new(),
        }
    }
}

fn harness_settings(name: &str, raw: RawHarness) -> Result<HarnessSettings, Failure> {
    let executable = match raw.executable {
        None => None,
        Some(path) => {
            Some(AbsPath::new(path).map_err(|error| invalid(format!("[harnesses.{name}] executable: {error}")))?)
        }
    };
    for variable in &raw.environment {
        let plain = |b: u8| b.is_ascii_alphanumeric() || b == b'_';
        if variable.is_empty() || !variable.bytes().all(plain) || variable.as_bytes()[0].is_ascii_digit() {
            return Err(invalid(format!("[harnesses.{name}] environment: {variable:?} is not a variable's name")));
        }
    }
    Ok(HarnessSettings { executable, model: raw.model, environment: raw.environment, config: raw.config })
}

fn repository((path, raw): (String, RawRepository)) -> Result<(AbsPath, RawRepository), Failure> {
    let key = AbsPath::new(&path).map_err(|error| invalid(format!("[repositories.{path:?}]: {error}")))?;
    let checked = raw.setup.as_deref().map(setup::check).transpose();
    let setup = checked.map_err(|why| invalid(format!("[repositories.{path:?}] setup: {why}")))?;
    Ok((key, RawRepository { setup: setup.map(Option::unwrap_or_default), ..raw }))
}

fn known_harness(name: &str) -> Result<HarnessName, Failure> {
    let parsed: HarnessName = name.parse().map_err(|error| invalid(format!("{error}")))?;
    if registry::find(&parsed).is_some() {
        return Ok(parsed);
    }
    let known: Vec<_> = registry::all().iter().map(|harness| harness.name().to_string()).collect();
    Err(invalid(format!("{name:?} is not a harness of this build ({})", known.join(", "))))
}

fn invalid(message: impl Into<String>) -> Failure {
    Failure::new(
        FailureCode::InvalidConfig,
        message,
        "correct the configuration file; `pactify sub doctor` prints its place, docs/configuration.md its keys",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_file_is_the_default_configuration() {
        let settings = Settings::parse("").unwrap();
        assert_eq!(settings.harness.as_str(), "codex");
        assert_eq!(settings.limits, Limits { total_seconds: 3600, stall_seconds: 600 });
        assert_eq!(settings, Settings::default());
    }

    #[test]
    fn a_gateway_is_a_few_lines() {
        let settings = Settings::parse(
            r#"
            [harnesses.codex]
            model = "gpt-5.5"
            environment = ["GATEWAY_KEY"]
            [harnesses.codex.config]
            model_provider = "gateway"
            [harnesses.codex.config.model_providers.gateway]
            base_url = "https://llm.example.com/v1"
            env_key = "GATEWAY_KEY"
            "#,
        )
        .unwrap();
        let codex = settings.harness_settings(&settings.harness);
        assert_eq!(codex.environment, ["GATEWAY_KEY"]);
        assert_eq!(codex.config["model_provider"].as_str(), Some("gateway"));
        let recorded = serde_json::to_string(&codex).unwrap();
        assert_eq!(serde_json::from_str::<HarnessSettings>(&recorded).unwrap(), codex);
    }

    #[test]
    fn a_repository_has_settings_in_all_its_checkouts() {
        let text = "[defaults]\nlfs = \"pointers\"\n[repositories.\"/r\"]\nsetup = \" npm ci \"\n\
            [repositories.\"/linked\"]\nlfs = \"contents\"\n[repositories.\"/none\"]\nsetup = \"\"";
        let settings = Settings::parse(text).unwrap();
        let path = |path: &str| AbsPath::new(path).unwrap();
        for (worktree, common, setup, lfs) in [
            ("/r", "/r/.git", Some("npm ci"), LfsPolicy::Pointers),
            ("/elsewhere", "/r/.git", Some("npm ci"), LfsPolicy::Pointers),
            ("/linked", "/r/.git", None, LfsPolicy::Contents),
            ("/none", "/none/.git", Some(""), LfsPolicy::Pointers),
            ("/other", "/other/.git", None, LfsPolicy::Pointers),
        ] {
            let common_dir = path(common);
            let record = RepositoryRecord {
                worktree: path(worktree),
                git_dir: common_dir.clone(),
                common_dir,
                prefix: String::new(),
            };
            let expected = RepositorySettings { setup: setup.map(str::to_owned), lfs };
            assert_eq!(settings.repository(&record), expected, "{worktree}");
        }
    }

    #[test]
    fn mistakes_are_named() {
        for (text, named) in [
            ("limts = 1", "limts"),
            ("[limits]\ntotal-seconds = 0", "0 seconds"),
            ("[limits]\nrunning-jobs = 0", "running-jobs"),
            ("[defaults]\nharness = \"codx\"", "codx"),
            ("[harnesses.codex]\nexecutable = \"codex\"", "codex is not absolute"),
            ("[harnesses.codex]\nenvironment = [\"A=B\"]", "A=B"),
            ("[harnesses.\"../x\"]", "../x"),
            ("[limits]\nsetup-seconds = 0", "setup-seconds"),
            ("[repositories.here]\nsetup = \"x\"", "here is not absolute"),
            ("[repositories.\"/r\"]\nsetup = \"a\\u0007\"", "cannot be seen"),
            ("[defaults]\nlfs = \"some\"", "some"),
        ] {
            let failure = Settings::parse(text).unwrap_err();
            assert!(failure.message.contains(named), "{text}: {}", failure.message);
        }
    }
}
