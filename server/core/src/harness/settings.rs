//! What a person set for one harness.
//!
//! Checked when the configuration is read ([`crate::config`]); what the table means is the harness's own affair, and
//! what may not stand in it [`bounds`] refuses.

pub(crate) mod bounds;

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
