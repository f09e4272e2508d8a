//! Logins, as the terminal program shows them.

use jiff::Timestamp;

wire! {
    /// What `pactify sub login` lists.
    pub struct LoginList {
        /// Logins that could not be put where they belong, oldest first.
        pub quarantined: Vec<QuarantinedLogin>,
        /// Logins that jobs use, or used without being looked at afterwards.
        pub in_use: Vec<LoginInUse>,
    }

    /// A login that could not be put where it belongs.
    pub struct QuarantinedLogin {
        /// Its name in the quarantine.
        pub id: String,
        /// The harness that it is of.
        pub harness: String,
        /// The job that used it.
        pub job_id: String,
        /// The file where it belongs.
        pub login: String,
        /// When it came into the quarantine.
        #[cfg_attr(feature = "schema", schemars(with = "String"))]
        pub at: Timestamp,
        /// Why.
        pub why: String,
    }

    /// A login that a job uses.
    pub struct LoginInUse {
        /// The harness that it is of.
        pub harness: String,
        /// The job.
        pub job_id: String,
        /// The file.
        pub login: String,
    }

    /// A login that was put where it belongs.
    pub struct LoginRestored {
        /// Its name in the quarantine, where it no longer is.
        pub id: String,
        /// The file that it is in now.
        pub login: String,
        /// The name under which what stood there before is in the quarantine.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub replaced: Option<String>,
    }
}
