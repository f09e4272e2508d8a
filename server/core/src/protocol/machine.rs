//! What this machine has: harnesses, findings, a report.

use super::Severity;
use crate::Failure;
use crate::job::access::Access;

wire! {
    /// Argument of `pactify.harnesses`.
    pub struct HarnessesParams {
        /// A folder of the repository that jobs would start in: no program in there is found. Without it, the one that
        /// a client has open, if it is the only one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub repository: Option<String>,
    }

    /// Result of `pactify.harnesses`.
    pub struct HarnessList {
        /// Every harness of this build.
        pub harnesses: Vec<HarnessView>,
    }

    /// One harness.
    pub struct HarnessView {
        /// Its name.
        pub name: String,
        /// Whether it is used when nobody names one.
        pub default: bool,
        /// The program found.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub executable: Option<String>,
        /// Its version.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub version: Option<String>,
        /// The access modes it has.
        pub access: Vec<Access>,
        /// The access modes whose jobs can take over the person's own configuration of it.
        #[serde(default)]
        pub user_config: Vec<Access>,
        /// Whether its write jobs can ask (`permissions: ask`); one that cannot is refused such a job.
        #[serde(default)]
        pub asks: bool,
        /// Whether the operating system confines its commands.
        pub sandbox: bool,
        /// Whether a login was found: absent when that is known only to the provider.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub logged_in: Option<bool>,
        /// Why it cannot be used, and what to do.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub failure: Option<Failure>,
    }

    /// Argument of `pactify.doctor`.
    pub struct DoctorParams {
        /// Only this harness.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub harness: Option<String>,
        /// Whether each harness in use is asked to write, in a job of each access mode: that costs tokens.
        #[serde(default)]
        pub probe: bool,
        /// A folder of the repository that jobs would start in: no program in there is found. Without it, the one that
        /// a client has open, if it is the only one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub repository: Option<String>,
    }

    /// Result of `pactify.doctor`.
    pub struct Findings {
        /// What was looked at, worst first.
        pub findings: Vec<Finding>,
    }

    /// One thing that was looked at.
    pub struct Finding {
        /// A stable name.
        pub id: String,
        /// How bad it is.
        pub severity: Severity,
        /// What was found, in one line.
        pub title: String,
        /// More, where there is more.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        pub detail: String,
        /// What to do, where there is something.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        pub next: String,
    }

    /// Result of `pactify.debugReport`.
    pub struct DebugReport {
        /// One redacted text for a bug report.
        pub text: String,
    }
}
