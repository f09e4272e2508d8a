//! The directories pactify works with: its home, the configuration file, the person's home.
//!
//! Only names them. Creating `PACTIFY_HOME` with the right modes is the store's work.

use std::path::{Path, PathBuf};

use super::{EnvError, Variables};

const PACTIFY_HOME: &str = "PACTIFY_HOME";

/// Absolute paths; none of them need exist.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Directories {
    home: PathBuf,
    pactify_home: PathBuf,
    config_file: PathBuf,
}

impl Directories {
    /// The platform's directories, with `PACTIFY_HOME` taken from the variables if it is set.
    pub(super) fn from_platform(variables: &Variables) -> Result<Self, EnvError> {
        let base = directories::BaseDirs::new().ok_or(EnvError::NoHome)?;
        Self::resolve(base.home_dir(), base.config_dir(), variables)
    }

    /// The default directories below a home directory. For tests and for tools that work on a home of their own.
    #[must_use]
    pub fn under(home: impl AsRef<Path>) -> Self {
        let home = home.as_ref();
        Self {
            pactify_home: home.join(".pactify"),
            config_file: config_file_in(&home.join(".config")),
            home: home.to_owned(),
        }
    }

    /// The same directories with another `PACTIFY_HOME`.
    #[must_use]
    pub fn with_pactify_home(self, pactify_home: impl Into<PathBuf>) -> Self {
        Self { pactify_home: pactify_home.into(), ..self }
    }

    /// The person's home directory.
    #[must_use]
    pub fn home(&self) -> &Path {
        &self.home
    }

    /// Where jobs, graphs and quarantined credentials live.
    #[must_use]
    pub fn pactify_home(&self) -> &Path {
        &self.pactify_home
    }

    /// The person's configuration (TOML).
    #[must_use]
    pub fn config_file(&self) -> &Path {
        &self.config_file
    }

    fn resolve(home: &Path, config: &Path, variables: &Variables) -> Result<Self, EnvError> {
        let pactify_home = match variables.get(std::ffi::OsStr::new(PACTIFY_HOME)).filter(|value| !value.is_empty()) {
            None => home.join(".pactify"),
            Some(value) if Path::new(value).is_absolute() => PathBuf::from(value),
            Some(value) => return Err(EnvError::RelativePactifyHome { path: value.into() }),
        };
        Ok(Self { home: home.to_owned(), pactify_home, config_file: config_file_in(config) })
    }
}

fn config_file_in(config: &Path) -> PathBuf {
    config.join("pactify").join("config.toml")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resolve(pactify_home: Option<&str>) -> Result<Directories, EnvError> {
        let variables = pactify_home.map(|value| (PACTIFY_HOME.into(), value.into())).into_iter().collect();
        Directories::resolve(Path::new("/home/a"), Path::new("/home/a/.config"), &variables)
    }

    #[test]
    fn pactify_home_defaults_below_home_and_can_be_moved() {
        for (value, expected) in
            [(None, "/home/a/.pactify"), (Some(""), "/home/a/.pactify"), (Some("/srv/p"), "/srv/p")]
        {
            assert_eq!(resolve(value).unwrap().pactify_home(), Path::new(expected), "{value:?}");
        }
        assert_eq!(resolve(None).unwrap(), Directories::under("/home/a"));
    }

    #[test]
    fn a_relative_pactify_home_is_refused() {
        for value in ["store", "./store", "../store", "~/store"] {
            let error = resolve(Some(value)).unwrap_err();
            assert_eq!(error.to_string(), format!("PACTIFY_HOME is not an absolute path: {value}"));
        }
    }
}
