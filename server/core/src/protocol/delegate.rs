//! Starting a job, and moving one on.

use crate::job::access::Access;
use crate::job::outcome::Disposition;
use crate::job::state::SeenState;
use crate::job::{BaseKind, Isolation};
use crate::permission::Policy;

use super::{BriefSource, HarnessChoice};

wire! {
    /// Argument of `pactify.delegate`.
    pub struct DelegateParams {
        /// The task: a text, or a document to read it from.
        pub brief: BriefSource,
        /// The harness; when absent the configured default, else the first that is found.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub harness: Option<String>,
        /// Whether it may change files; the configured default when absent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub access: Option<Access>,
        /// What the job's tree starts as; the configured default when absent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub base: Option<BaseKind>,
        /// A `file:` URI in the repository: the only workspace folder when absent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub repository: Option<String>,
        /// The model to ask for.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub model: Option<String>,
        /// Whether the job has the person's own configuration of the harness, as far as its access lets it; only what
        /// pactify's configuration says of it when absent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub with_user_config: Option<bool>,
        /// How the tree is separated from the checkout.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub isolation: Option<Isolation>,
        /// Whether a read-only job looks around in the checkout itself: at ignored files, and at what is not committed.
        /// Anything that changes there meanwhile fails it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub in_place: Option<bool>,
        /// The commands that the result of a write job has to pass, instead of those that the configuration and the
        /// brief name; none when it is empty.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub verify: Option<Vec<String>>,
        /// Who answers what the harness of a write job asks for; the configured default when absent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub permissions: Option<Policy>,
        /// Seconds from launch to end.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub timeout_seconds: Option<u64>,
        /// Seconds without a sign of life.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub stall_seconds: Option<u64>,
    }

    /// Result of `pactify.delegate` and `pactify.retry`.
    pub struct Delegated {
        /// The new job.
        pub job_id: String,
        /// Its state: `queued`, unless its host was quick.
        pub state: SeenState,
        /// Where it will work: its tree, or the checkout.
        pub worktree: String,
        /// Who does it.
        pub harness: String,
        /// Why that one.
        pub harness_choice: HarnessChoice,
        /// What the person should know at once: what of the uncommitted changes is part of the job, for one.
        pub notices: Vec<String>,
    }

    /// Argument of `pactify.retry`: what is absent is as the job had it. What belongs to something that is another now
    /// is not had again: a model to its harness, the person's own configuration to harness and access, a verification
    /// and who answers to a job that writes.
    pub struct RetryParams {
        /// The job.
        pub job_id: String,
        /// Another task, as a text.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub brief: Option<String>,
        /// The harness.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub harness: Option<String>,
        /// Whether it may change files.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub access: Option<Access>,
        /// What the job's tree starts as, from what is there now; with one, a job that looked around in the checkout
        /// gets a tree.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub base: Option<BaseKind>,
        /// The model to ask for.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub model: Option<String>,
        /// As for `pactify.delegate`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub with_user_config: Option<bool>,
        /// As for `pactify.delegate`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub in_place: Option<bool>,
        /// As for `pactify.delegate`; when absent, the commands that the person named for the older job, and where they
        /// named none, what the configuration and the brief name now.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub verify: Option<Vec<String>>,
        /// As for `pactify.delegate`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub permissions: Option<Policy>,
    }

    /// Argument of `pactify.resume`.
    pub struct ResumeParams {
        /// The job: finished, and not discarded.
        pub job_id: String,
        /// What its session is told.
        pub message: String,
    }

    /// Argument of commands that take one job.
    pub struct JobParams {
        /// The job.
        pub job_id: String,
    }

    /// Result of commands that move one job.
    pub struct JobMoved {
        /// The job.
        pub job_id: String,
        /// Where it stands now.
        pub state: SeenState,
        /// What became of its result.
        pub disposition: Disposition,
    }
}
