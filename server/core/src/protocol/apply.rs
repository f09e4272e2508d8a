//! Putting changes into the checkout.

use crate::change::group::GroupId;
use crate::job::outcome::Disposition;
use crate::path::PathName;

wire! {
    /// Argument of `pactify.apply`.
    pub struct ApplyParams {
        /// The job.
        pub job_id: String,
        /// The `changeSet` that the preview showed; another one is refused as stale.
        pub change_set: String,
        /// Only these paths, or parts of them; all of it when absent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub select: Option<Vec<Selected>>,
        /// Sensitive paths and links that the person looked at and wants.
        #[serde(default)]
        pub confirm_sensitive: Vec<PathName>,
        /// Merges that the person looked at and wants.
        #[serde(default)]
        pub confirm_merges: Vec<ShownMerge>,
        /// Whether the person looked at the dangerous changes outside the job's tree and wants the result all the same.
        #[serde(default)]
        pub confirm_outside: bool,
    }

    /// A chosen path.
    pub struct Selected {
        /// Which.
        #[serde(flatten)]
        pub path: PathName,
        /// Only these parts of its change, as the preview names them (`groups`); all of it when absent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub groups: Option<Vec<GroupId>>,
    }

    /// A merge that was shown.
    pub struct ShownMerge {
        /// Of which path.
        #[serde(flatten)]
        pub path: PathName,
        /// The merged content's id, as `pactify.content` and the conflict name it.
        pub object: String,
    }

    /// Result of `pactify.apply`.
    pub struct Applied {
        /// The apply's number within the job.
        pub apply: u32,
        /// The paths written or removed.
        pub applied: Vec<PathName>,
        /// Those of them that hold a merge: the checkout's own changes and the job's.
        pub merged: Vec<PathName>,
        /// Chosen paths that held what was chosen already.
        pub already: Vec<PathName>,
        /// What became of the job's result.
        pub disposition: Disposition,
    }

    /// Argument of `pactify.undo`.
    pub struct UndoParams {
        /// The job.
        pub job_id: String,
        /// The apply's number; the newest one that stands when absent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub apply_id: Option<u32>,
    }

    /// Result of `pactify.undo`.
    pub struct Undone {
        /// The apply's number within the job.
        pub apply: u32,
        /// The paths that hold again what they held before it.
        pub restored: Vec<PathName>,
        /// What became of the job's result.
        pub disposition: Disposition,
    }
}
