//! The directories pactify works with: its home, the configuration file, the person's home.
//!
//! Only names them. Creating `PACTIFY_HOME` with the right modes is the store's work.

use std::ffi::OsStr;

use pactify_core::AbsPath;

use super::{EnvError, Variables};

const PACTIFY_HOME: &str = "PACTIFY_HOME";

/// Where things are; none of it need exist.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Directories {
    home: AbsPath,
    pactify_home: AbsPath,
    config_file: AbsPath,
}

impl Directories {
    /// The platform's directories, with `PACTIFY_HOME` taken from the variables if it is set.
    pub(super) fn from_platform(variables: &Variables) -> Result<Self, EnvError> {
        let base = directories::BaseDirs::new().ok_or(EnvError::NoHome)?;
        let home = AbsPath::new(base.home_dir()).map_err(EnvError::Home)?;
        let config = AbsPath::new(base.config_dir()).map_err(EnvError::Home)?;
        Self::resolve(home, &config, variables)
    }

    /// The default directories below a home directory. For tests and for tools that work on a home of their own.
    #[must_use]
    pub fn under(home: &AbsPath) -> Self {
        Self {
            home: home.clone(),
            pactify_home: home.join(".pactify"),
            config_file: config_file_in(&home.join(".config")),
        }
    }

    /// The same directories with another `PACTIFY_HOME`.
    #[must_use]
    pub fn with_pactify_home(self, pactify_home: AbsPath) -> Self {
        Self { pactify_home, ..self }
    }

    /// The person's home directory.
    #[must_use]
    pub fn home(&self) -> &AbsPath {
        &self.home
    }

    /// Where jobs and everything about them live.
    #[must_use]
    pub fn pactify_home(&self) -> &AbsPath {
        &self.pactify_home
    }

    /// The person's configuration (TOML).
    #[must_use]
    pub fn config_file(&self) -> &AbsPath {
        &self.config_file
    }

    fn resolve(home: AbsPath, config: &AbsPath, variables: &Variables) -> Result<Self, EnvError> {
        let pactify_home = match variables.get(OsStr::new(PACTIFY_HOME)).filter(|value| !value.is_empty()) {
            None => home.join(".pactify"),
            Some(value) => AbsPath::new(value).map_err(EnvError::PactifyHome)?,
        };
        Ok(Self { home, pactify_home, config_file: config_file_in(config) })
    }
}

fn config_file_in(config: &AbsPath) -> AbsPath {
    config.join("pactify").join("config.toml")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(path: &str) -> AbsPath {
        AbsPath::new(path).unwrap()
    }

    fn resolve(pactify_home: Option<&str>) -> Result<Directories, EnvError> {
        let variables = pactify_home.map(|value| (PACTIFY_HOME.into(), value.into())).into_iter().collect();
        Directories::resolve(path("/home/a"), &path("/home/a/.config"), &variables)
    }

    #[test]
    fn pactify_home_defaults_below_home_and_can_be_moved() {
        for (value, expected) in
            [(None, "/home/a/.pactify"), (Some(""), "/home/a/.pactify"), (Some("/srv/p"), "/srv/p")]
        {
            assert_eq!(resolve(value).unwrap().pactify_home(), &path(expected), "{value:?}");
        }
        assert_eq!(resolve(None).unwrap(), Directories::under(&path("/home/a")));
    }

    #[test]
    fn a_relative_pactify_home_is_refused() {
        for value in ["store", "./store", "../store", "~/store", "/srv/../store"] {
            let refused = resolve(Some(value));
            assert!(matches!(refused, Err(EnvError::PactifyHome(_))), "{value}: {refused:?}");
        }
    }
}
