//! Making room. No command of an editor's: the terminal program asks and tells.

use crate::Failure;
use crate::retention::Fate;

wire! {
    /// What a prune is to do.
    #[derive(Default)]
    pub struct PruneParams {
        /// Only these jobs; all when empty.
        #[serde(default)]
        pub job_ids: Vec<String>,
        /// Jobs that ended less than so many seconds ago stay.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub older_than_seconds: Option<u64>,
        /// So many of the newest jobs stay.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub keep_jobs: Option<u32>,
        /// Trees of results that are not applied whole go, too.
        #[serde(default)]
        pub unapplied: bool,
        /// Whole records of decided jobs go, too.
        #[serde(default)]
        pub records: bool,
        /// Of what would go, only these jobs: what a look before told of. All when absent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub shown: Option<Vec<String>>,
        /// Only tell.
        #[serde(default)]
        pub dry_run: bool,
    }

    /// What it did, or would do.
    pub struct Pruned {
        /// Every job that was meant, newest first.
        pub jobs: Vec<PruneItem>,
        /// Bytes that are free again.
        pub bytes: u64,
        /// Records of applies whose jobs were gone, removed.
        pub orphans: u32,
    }

    /// One job.
    pub struct PruneItem {
        /// Which.
        pub job_id: String,
        /// Its brief's first line.
        pub title: String,
        /// What becomes of it.
        pub fate: Fate,
        /// Why, in a few words.
        pub why: String,
        /// What goes with it and is nowhere else, a sentence each.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        pub lost: Vec<String>,
        /// Bytes that this frees.
        pub bytes: u64,
        /// Why it stays although it was to go.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub failure: Option<Failure>,
    }
}
