//! Putting back what changed outside a job's tree.

wire! {
    /// Argument of `pactify.restoreOutside`.
    pub struct RestoreParams {
        /// The job.
        pub job_id: String,
        /// The ids of changes in `outside`; all that can be put back and are more than ordinary when absent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub select: Option<Vec<String>>,
    }

    /// Result of `pactify.restoreOutside`.
    pub struct RestoredOutside {
        /// What is as it was before the job: put back now, or already.
        pub restored: Vec<RestoredChange>,
        /// What was left alone.
        pub refused: Vec<RefusedChange>,
    }

    /// A change that was put back.
    pub struct RestoredChange {
        /// Its id.
        pub id: String,
        /// Where.
        pub place: String,
        /// What the person has to know about it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub note: Option<String>,
    }

    /// A change that was left alone.
    pub struct RefusedChange {
        /// Its id.
        pub id: String,
        /// Where.
        pub place: String,
        /// Why.
        pub why: String,
    }
}
