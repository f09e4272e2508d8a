//! The one value through which the outside world enters: environment variables, clock, randomness and directories.
//!
//! Code that needs any of these takes an [`Env`]; `clippy.toml` bans the std routes elsewhere. A test builds its own
//! value and is hermetic. `Env` decides nothing about what children may see: that is
//! [`crate::process::environment`]. Timeouts inside one function may use `std::time::Instant`; everything that is
//! recorded or compared across functions asks this value.

pub mod clock;
pub mod directories;
pub mod randomness;

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use jiff::Timestamp;
use pactify_core::AbsPath;
use pactify_core::path::AbsPathError;

pub use self::clock::{Clock, ManualClock, Moment};
pub use self::directories::Directories;
pub use self::randomness::Randomness;

/// The variables of one process, by name.
pub type Variables = BTreeMap<OsString, OsString>;

/// Everything a process knows about its surroundings.
#[derive(Clone)]
pub struct Env {
    variables: Variables,
    directories: Directories,
    clock: Clock,
    randomness: Randomness,
    /// What the login shell said, once it was asked; shared by all copies.
    login_path: Arc<OnceLock<Option<OsString>>>,
}

/// Without the variables: their values may be secrets.
impl fmt::Debug for Env {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Env").field("directories", &self.directories).finish_non_exhaustive()
    }
}

impl Env {
    /// Reads the real process. Call it once, at the start of `main`.
    ///
    /// # Errors
    /// When there is no home directory, or `PACTIFY_HOME` is not an absolute path.
    #[expect(clippy::disallowed_methods, reason = "this is the one place where the environment enters")]
    pub fn from_process() -> Result<Self, EnvError> {
        let variables: Variables = std::env::vars_os().collect();
        let directories = Directories::from_platform(&variables)?;
        Ok(Self::from_values(variables, directories))
    }

    /// An environment of given values, with the real clock and real randomness.
    #[must_use]
    pub fn from_values(variables: Variables, directories: Directories) -> Self {
        Self { variables, directories, clock: Clock::Real, randomness: Randomness::Kernel, login_path: Arc::default() }
    }

    /// The same environment under another clock.
    #[must_use]
    pub fn with_clock(self, clock: Clock) -> Self {
        Self { clock, ..self }
    }

    /// The same environment with another source of randomness.
    #[must_use]
    pub fn with_randomness(self, randomness: Randomness) -> Self {
        Self { randomness, ..self }
    }

    /// The value of a variable; an empty value counts as absent, as it does for most programs.
    #[must_use]
    pub fn variable(&self, name: impl AsRef<OsStr>) -> Option<&OsStr> {
        self.variables.get(name.as_ref()).map(OsString::as_os_str).filter(|value| !value.is_empty())
    }

    /// All variables, as inherited.
    #[must_use]
    pub fn variables(&self) -> &Variables {
        &self.variables
    }

    /// The directories pactify works with.
    #[must_use]
    pub fn directories(&self) -> &Directories {
        &self.directories
    }

    /// The time of day, for records.
    #[must_use]
    pub fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// A point on the monotonic clocks, for measuring durations.
    #[must_use]
    pub fn moment(&self) -> Moment {
        self.clock.moment()
    }

    /// `N` bytes nobody can guess.
    ///
    /// # Errors
    /// When the kernel refuses randomness.
    pub fn random<const N: usize>(&self) -> Result<[u8; N], EnvError> {
        self.randomness.bytes()
    }

    /// The absolute directories of `PATH`, in order.
    ///
    /// Empty and relative entries mean "the current directory", which a job may have written to, so they are dropped.
    #[must_use]
    pub fn search_path(&self) -> Vec<AbsPath> {
        let path = self.variable("PATH").unwrap_or_default();
        std::env::split_paths(path).filter_map(|entry| AbsPath::new(entry).ok()).collect()
    }

    /// The same environment, with this search path. An entry that no search path can hold is left out.
    #[must_use]
    pub fn searching(&self, directories: &[AbsPath]) -> Self {
        let possible =
            directories.iter().map(AbsPath::as_path).filter(|path| !path.as_os_str().as_bytes().contains(&b':'));
        self.with_path(std::env::join_paths(possible).unwrap_or_default())
    }

    /// The same environment, with this value of `PATH`.
    #[must_use]
    pub fn with_path(&self, path: impl Into<OsString>) -> Self {
        let mut other = self.clone();
        other.variables.insert("PATH".into(), path.into());
        other
    }

    /// The search path of the person's login shell, which `ask` finds out; asked once, also by copies of this value.
    pub fn login_path(&self, ask: impl FnOnce(&Self) -> Option<OsString>) -> Option<&OsStr> {
        self.login_path.get_or_init(|| ask(self)).as_deref()
    }

    /// Finds an executable by its bare name, or checks one that is given by its absolute path.
    ///
    /// # Errors
    /// When it is not there, not executable, or named by a relative path.
    pub fn find_executable(&self, name: impl AsRef<OsStr>) -> Result<AbsPath, EnvError> {
        let name = Path::new(name.as_ref());
        if name.file_name() != Some(name.as_os_str()) {
            AbsPath::new(name)?;
        }
        let directories = std::env::join_paths(self.search_path().iter().map(AbsPath::as_path)).unwrap_or_default();
        which::which_in_global(name, Some(directories))
            .ok()
            .and_then(|mut found| AbsPath::new(found.next()?).ok())
            .ok_or_else(|| EnvError::ExecutableNotFound { name: name.to_owned() })
    }
}

/// Why the surroundings cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum EnvError {
    /// Neither `HOME` nor the user database names a home directory.
    #[error("no home directory: neither HOME nor the user database names one")]
    NoHome,
    /// The platform reports a home directory that is not an absolute path.
    #[error("the home directory is unusable")]
    Home(#[source] AbsPathError),
    /// A relative `PACTIFY_HOME` would mean another store in every directory.
    #[error("PACTIFY_HOME is unusable")]
    PactifyHome(#[source] AbsPathError),
    /// A relative path to a program would depend on the working directory.
    #[error("a program is named by its bare name or its absolute path")]
    ExecutablePath(#[from] AbsPathError),
    /// No such program.
    #[error("{} is not an executable in any absolute directory of PATH", name.display())]
    ExecutableNotFound {
        /// What was looked for.
        name: PathBuf,
    },
    /// `getrandom` failed.
    #[error("the kernel gave no randomness")]
    Randomness(#[source] std::io::Error),
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    fn env(pairs: &[(&str, &str)]) -> Env {
        let variables = pairs.iter().map(|(name, value)| (name.into(), value.into())).collect();
        Env::from_values(variables, Directories::under(&AbsPath::new("/home/someone").unwrap()))
    }

    #[test]
    fn an_empty_variable_counts_as_absent() {
        let env = env(&[("SET", "x"), ("EMPTY", "")]);
        assert_eq!(env.variable("SET"), Some(OsStr::new("x")));
        assert_eq!(env.variable("EMPTY"), None);
        assert_eq!(env.variable("MISSING"), None);
    }

    #[test]
    fn the_current_directory_is_never_searched() {
        let env = env(&[("PATH", "/usr/bin::.:bin:/usr/../tmp:/bin:")]);
        assert_eq!(env.search_path(), ["/usr/bin", "/bin"].map(|path| AbsPath::new(path).unwrap()));
    }

    #[test]
    fn executables_are_found_by_bare_name_or_absolute_path_only() {
        let folder = tempfile::tempdir().unwrap();
        let tool = folder.path().join("tool");
        std::fs::write(&tool, "").unwrap();
        std::fs::set_permissions(&tool, std::fs::Permissions::from_mode(0o755)).unwrap();
        std::fs::write(folder.path().join("data"), "").unwrap();

        let env = env(&[("PATH", folder.path().to_str().unwrap())]);
        assert_eq!(env.find_executable("tool").unwrap().as_path(), tool);
        assert_eq!(env.find_executable(&tool).unwrap().as_path(), tool);
        for refused in ["./tool", "bin/tool", "../tool", "", ".", ".."] {
            assert!(env.find_executable(refused).is_err(), "{refused:?}");
        }
        assert!(matches!(env.find_executable("data"), Err(EnvError::ExecutableNotFound { .. })));
    }
}
