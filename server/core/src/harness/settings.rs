//! What a person set for one harness.
//!
//! Checked when the configuration is read ([`crate::config`]); what the table means is the harness's own affair.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::AbsPath;

/// One harness's settings. Recorded with each job, so that a job means the same when it is recovered.
#[derive(Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct HarnessSettings {
    /// The program, where the person chose one.
    pub executable: Option<AbsPath>,
    /// The model, where the person chose one.
    pub model: Option<String>,
    /// Variables to let through.
    pub environment: Vec<String>,
    /// Settings in the harness's own terms.
    pub config: toml::Table,
}

impl fmt::Debug for HarnessSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HarnessSettings")
            .field("executable", &self.executable)
            .field("model", &self.model)
            .field("environment", &self.environment)
            // A provider's settings may hold what no log should.
            .field("config", &self.config.keys().collect::<Vec<_>>())
            .finish()
    }
}
