//! Jobs, as lists and details show them.

use jiff::Timestamp;

use super::Ending;
use crate::Failure;
use crate::change::Totals;
use crate::fingerprint::OutsideChange;
use crate::job::BaseKind;
use crate::job::access::Access;
use crate::job::event::Usage;
use crate::job::outcome::{Disposition, Outcome};
use crate::job::state::SeenState;
use crate::permission::PermissionOption;

wire! {
    /// Argument of `pactify.status`.
    pub struct StatusParams {
        /// One job, in detail.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub job_id: Option<String>,
        /// Only jobs of the repository that holds this `file:` URI.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub repository: Option<String>,
        /// Jobs that are over and decided, too.
        #[serde(default)]
        pub all: bool,
        /// The `next` of the page before.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub cursor: Option<String>,
        /// At most this many: 50 when absent, 500 at most.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub limit: Option<u32>,
    }

    /// Result of `pactify.status` with a `jobId`.
    pub struct JobStatus {
        /// The job.
        pub job: JobDetail,
    }

    /// Result of `pactify.status` without one: newest first.
    pub struct JobList {
        /// One page of jobs.
        pub jobs: Vec<JobSummary>,
        /// The cursor of the next page, if there is one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub next: Option<String>,
        /// Jobs that cannot be shown, each with the reason.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        pub unreadable: Vec<UnreadableJob>,
    }

    /// A job whose record is damaged, or from a newer pactify.
    pub struct UnreadableJob {
        /// Its id.
        pub job_id: String,
        /// Why it cannot be shown.
        pub failure: Failure,
    }

    /// One job in a list.
    pub struct JobSummary {
        /// Its id.
        pub id: String,
        /// The brief's first line.
        pub title: String,
        /// The harness.
        pub harness: String,
        /// The model that the harness says it uses, or else the one asked for.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub model: Option<String>,
        /// Whether it may change files.
        pub access: Access,
        /// Whether it looks around in the checkout itself: then it has no tree and no result.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        pub in_place: bool,
        /// The checkout that results are applied to, as a `file:` URI.
        pub repository: String,
        /// What its tree started as.
        pub base: BaseView,
        /// Where it stands.
        pub state: SeenState,
        /// How it ended, once it did.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub outcome: Option<Outcome>,
        /// What became of its result.
        pub disposition: Disposition,
        /// When it was asked for.
        #[cfg_attr(feature = "schema", schemars(with = "String"))]
        pub created_at: Timestamp,
        /// When its harness was first launched.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[cfg_attr(feature = "schema", schemars(with = "Option<String>"))]
        pub started_at: Option<Timestamp>,
        /// When its latest attempt ended.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[cfg_attr(feature = "schema", schemars(with = "Option<String>"))]
        pub ended_at: Option<Timestamp>,
        /// When its result was last applied, given up, or an apply of it undone.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[cfg_attr(feature = "schema", schemars(with = "Option<String>"))]
        pub decided_at: Option<Timestamp>,
        /// What the agent is doing, in a few words.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub activity: Option<String>,
        /// The oldest open permission request, without its `detail`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub waiting: Option<WaitingView>,
        /// How many more are open.
        #[serde(default, skip_serializing_if = "is_zero")]
        pub waiting_more: u64,
        /// How much changed, once it was captured.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub changes: Option<Totals>,
        /// Tokens used.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub usage: Option<Usage>,
        /// What a person should know.
        #[serde(default)]
        pub notices: Vec<String>,
    }

    /// One job, whole.
    pub struct JobDetail {
        /// Everything that a list shows.
        #[serde(flatten)]
        pub summary: JobSummary,
        /// The whole brief.
        pub brief: String,
        /// Whether it has the person's own configuration of the harness, as far as its access lets it.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        pub with_user_config: bool,
        /// The job's tree as a `file:` URI, while there is one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub worktree: Option<String>,
        /// What that has and nothing else, a sentence each: it goes with the tree.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        pub only_in_tree: Vec<String>,
        /// The harness's session.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub session: Option<String>,
        /// The harness's version.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub harness_version: Option<String>,
        /// The model that the harness says it used.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub actual_model: Option<String>,
        /// The latest attempt's number.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub attempt: Option<u32>,
        /// The name of the captured result; an apply must repeat it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub change_set: Option<String>,
        /// The agent's last words.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub final_message: Option<String>,
        /// How the result fared in its verification, command by command up to the first that failed.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        pub verification: Vec<VerificationView>,
        /// What was not as it was in the checkout after a job that looked around there, whoever changed it.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        pub checkout_changes: Vec<String>,
        /// How many more there were.
        #[serde(default, skip_serializing_if = "is_zero")]
        pub checkout_changes_more: u64,
        /// Every open permission request, oldest first.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        pub requests: Vec<WaitingView>,
        /// What went wrong, if something did.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub error: Option<Failure>,
        /// What changed outside its tree while it ran, whoever did it: worst first.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        pub outside: Vec<OutsideChange>,
        /// Its applies that wrote something, oldest first.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        pub applies: Vec<ApplyView>,
        /// What to tell a person, once the job needs no more waiting.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub ending: Option<Ending>,
    }

    /// One apply that wrote something.
    pub struct ApplyView {
        /// Its number within the job, by which `pactify.undo` takes it.
        pub apply: u32,
        /// When it was recorded.
        #[cfg_attr(feature = "schema", schemars(with = "String"))]
        pub at: Timestamp,
        /// The first paths that it wrote, as they are shown.
        pub paths: Vec<String>,
        /// How many more there were.
        #[serde(default, skip_serializing_if = "is_zero")]
        pub paths_more: u64,
        /// Whether it was taken back.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        pub undone: bool,
    }

    /// One verification command that ended.
    pub struct VerificationView {
        /// The command.
        pub command: String,
        /// Whether it ended as it should.
        pub passed: bool,
        /// Its exit code, where there is one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub exit_code: Option<i64>,
        /// The end of its output.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        pub tail: String,
    }

    /// A job's base.
    pub struct BaseView {
        /// What the person chose.
        pub kind: BaseKind,
        /// The commit's id.
        pub commit: String,
    }

    /// An open permission request.
    pub struct WaitingView {
        /// The id that an answer names.
        pub request_id: String,
        /// One line for people.
        pub title: String,
        /// All of it, where that is more than the title, as lines to be shown: a command, a diff, or a tool's
        /// arguments.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub detail: Option<String>,
        /// When it was asked.
        #[cfg_attr(feature = "schema", schemars(with = "String"))]
        pub since: Timestamp,
        /// The answers that it takes, in the harness's order. Nothing in their names deceives when it is shown.
        #[serde(default)]
        pub options: Vec<PermissionOption>,
    }
}

fn is_zero(count: &u64) -> bool {
    *count == 0
}
