//! Putting changes into the checkout.

use crate::job::outcome::Disposition;
use crate::path::PathName;

wire! {
    /// Argument of `pactify.apply`.
    pub struct ApplyParams {
        /// The job.
        pub job_id: String,
        /// The `changeSet` that the preview showed; another one is refused as stale.
        pub change_set: String,
        /// Only these paths; all of them when absent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub select: Option<Vec<PathName>>,
        /// Sensitive paths and links that the person looked at and wants.
        #[serde(default)]
        pub confirm_sensitive: Vec<PathName>,
    }

    /// Result of `pactify.apply`.
    pub struct Applied {
        /// The apply's number within the job.
        pub apply: u32,
        /// The paths written or removed.
        pub applied: Vec<PathName>,
        /// Chosen paths that held their result already.
        pub already: Vec<PathName>,
        /// What became of the job's result.
        pub disposition: Disposition,
    }
}
