//! What only the person can decide, decided once.

use crate::job::setup::{ApprovalKind, Decision};

wire! {
    /// Argument of `pactify.approve`.
    pub struct ApproveParams {
        /// A `file:` URI in the repository: the only workspace folder when absent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub repository: Option<String>,
        /// What it is about.
        pub kind: ApprovalKind,
        /// The exact text that the person was shown.
        pub text: String,
        /// What they decided.
        pub decision: Decision,
    }

    /// Result of `pactify.approve`.
    pub struct Approved {
        /// The repository, as a `file:` URI.
        pub repository: String,
        /// What it is about.
        pub kind: ApprovalKind,
        /// What holds from now on.
        pub decision: Decision,
    }
}
