//! The wire: commands, their arguments and results, notifications.
//!
//! `docs/protocol.md` is the contract; these types are its source, and the clients' TypeScript and Lua types are
//! generated from them (`cargo xtask codegen`). Names are camelCase, ids are strings, times are RFC 3339 UTC. Shapes
//! only grow: clients ignore fields they don't know, and so do we ([`serde`] skips unknown input fields here).
//! Translating between these and the engine's values happens in [`view`] and in the front ends.

mod choices;
pub mod commands;
pub mod view;
pub mod words;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::change::sensitive::Tier;
use crate::change::{ChangeKind, EntryMode, Totals};
use crate::failure::{Conflict, Failure};
use crate::job::access::Access;
use crate::job::event::{Record, Usage};
use crate::job::outcome::{Disposition, Outcome};
use crate::job::state::SeenState;
use crate::job::{BaseKind, Isolation};
use crate::path::PathName;

pub use choices::{BriefSource, ExportForm, PreviewFormat, Severity, Side};
pub use words::{Ending, Tone};

macro_rules! wire {
    ($($(#[$meta:meta])* pub struct $name:ident { $($body:tt)* })*) => {$(
        $(#[$meta])*
        #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
        #[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
        #[serde(rename_all = "camelCase")]
        pub struct $name { $($body)* }
    )*};
}

wire! {
    /// Argument of `pactify.delegate`.
    pub struct DelegateParams {
        /// The task: a text, or a document to read it from.
        pub brief: BriefSource,
        /// The harness; the configured default when absent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub harness: Option<String>,
        /// Whether it may change files; the configured default when absent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub access: Option<Access>,
        /// What the job's tree starts as.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub base: Option<BaseKind>,
        /// A `file:` URI in the repository: the only workspace folder when absent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub repository: Option<String>,
        /// The model to ask for.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub model: Option<String>,
        /// How the tree is separated from the checkout.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub isolation: Option<Isolation>,
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
        /// Where its tree will be.
        pub worktree: String,
        /// What the person should know at once: uncommitted changes that are not part of the job, for one.
        pub notices: Vec<String>,
    }

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
        /// What the agent is doing, in a few words.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub activity: Option<String>,
        /// The open permission request.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub waiting: Option<WaitingView>,
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
        /// The job's tree as a `file:` URI, while there is one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub worktree: Option<String>,
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
        /// What went wrong, if something did.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub error: Option<Failure>,
        /// What to tell a person, once the job needs no more waiting.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub ending: Option<Ending>,
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
        /// When it was asked.
        #[cfg_attr(feature = "schema", schemars(with = "String"))]
        pub since: Timestamp,
    }

    /// Argument of `pactify.events`.
    pub struct EventsParams {
        /// The job.
        pub job_id: String,
        /// Only events after this position.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub after: Option<u64>,
        /// At most this many: 200 when absent, 1000 at most.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub limit: Option<u32>,
    }

    /// Result of `pactify.events`.
    pub struct EventList {
        /// The events, oldest first.
        pub events: Vec<EventView>,
        /// What to pass as `after` for those that follow.
        pub next: u64,
    }

    /// One event.
    pub struct EventView {
        /// Its position in the journal.
        pub seq: u64,
        /// When it was written.
        #[cfg_attr(feature = "schema", schemars(with = "String"))]
        pub at: Timestamp,
        /// The attempt it belongs to.
        pub attempt: u32,
        /// The event as it is recorded, tagged by `type` (`docs/protocol.md`).
        pub event: serde_json::Value,
    }

    /// Argument of `pactify.diffPreview`.
    pub struct PreviewParams {
        /// The job.
        pub job_id: String,
        /// Only this path.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub path: Option<String>,
        /// That path's exact bytes, percent-encoded, where its name needs it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub path_bytes: Option<String>,
        /// How much to tell.
        #[serde(default)]
        pub format: PreviewFormat,
        /// The `next` of the page before.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub cursor: Option<String>,
        /// At most this many files: 500 when absent, 5000 at most.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub limit: Option<u32>,
        /// Whether the server shows it as a patch document, where the client can show documents. For editors without
        /// a plugin; true when the command came without an argument.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        pub show: bool,
    }

    /// Result of `pactify.diffPreview`.
    pub struct Preview {
        /// The job.
        pub job_id: String,
        /// The result's name; an apply must repeat it.
        pub change_set: String,
        /// How much changed, over all pages.
        pub totals: Totals,
        /// The files of this page; sensitive ones come first.
        pub files: Vec<FileChange>,
        /// What the capture saw and left out, one sentence each.
        pub notes: Vec<String>,
        /// The cursor of the next page, if there is one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub next: Option<String>,
        /// With format `patch`: a patch that `git apply` takes.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub patch: Option<String>,
        /// Whether the patch or some hunks were cut short.
        #[serde(default)]
        pub truncated: bool,
    }

    /// One changed path.
    pub struct FileChange {
        /// Where.
        #[serde(flatten)]
        pub path: PathName,
        /// How it changed.
        pub kind: ChangeKind,
        /// The base side; absent when the path is new.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub old: Option<SideView>,
        /// The result side; absent when the path is gone.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub new: Option<SideView>,
        /// Whether either side is not text.
        pub binary: bool,
        /// Why it deserves a second look.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub tier: Option<Tier>,
        /// Why it can never be applied, if so.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub refused: Option<String>,
        /// With format `hunks`: the changed runs of lines.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub hunks: Option<Vec<HunkView>>,
    }

    /// One side of a changed path.
    pub struct SideView {
        /// What kind of entry it is.
        pub mode: EntryMode,
        /// Its size in bytes.
        pub size: u64,
    }

    /// A run of changed lines. Lines count from 1; an empty side names the line that it follows.
    pub struct HunkView {
        /// The first old line.
        pub old_start: u64,
        /// The old lines, without line feeds.
        pub old_lines: Vec<String>,
        /// The first new line.
        pub new_start: u64,
        /// The new lines, without line feeds.
        pub new_lines: Vec<String>,
    }

    /// Argument of `pactify.content`.
    pub struct ContentParams {
        /// The job.
        pub job_id: String,
        /// Which content.
        pub side: Side,
        /// Of which path.
        #[serde(flatten)]
        pub path: PathName,
    }

    /// Result of `pactify.content`: `text`, or `binary` with a size; neither when that side has no such file.
    pub struct Content {
        /// The text, exactly.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub text: Option<String>,
        /// Whether it is no text, or too large to show.
        #[serde(default)]
        pub binary: bool,
        /// Its size in bytes.
        pub size: u64,
        /// Whether there is such a file on that side.
        pub exists: bool,
    }

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

    /// Argument of commands that take one job.
    pub struct JobParams {
        /// The job.
        pub job_id: String,
    }

    /// Argument of `pactify.resume`.
    pub struct ResumeParams {
        /// The job: finished, and not discarded.
        pub job_id: String,
        /// What its session is told.
        pub message: String,
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

    /// Argument of `pactify.export`.
    pub struct ExportParams {
        /// The job.
        pub job_id: String,
        /// As what.
        #[serde(rename = "as")]
        pub form: ExportForm,
        /// The branch's name: `pactify/<job id>` when absent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub name: Option<String>,
    }

    /// Result of `pactify.export`.
    pub struct Exported {
        /// The patch, for a patch.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub patch: Option<String>,
        /// The branch made, for a branch.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub branch: Option<String>,
    }

    /// Result of `pactify.openWorktree`.
    pub struct Worktree {
        /// The job's tree as a `file:` URI.
        pub worktree: String,
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

    /// The notification `pactify/job/event`.
    pub struct JobEventParams {
        /// The job.
        pub job_id: String,
        /// What happened.
        #[serde(flatten)]
        pub event: EventView,
    }

    /// The notification `pactify/job/changed`.
    pub struct JobChangedParams {
        /// The job.
        pub job_id: String,
        /// Where it stands now.
        pub state: SeenState,
        /// How it ended, once it did.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub outcome: Option<Outcome>,
        /// What became of its result.
        pub disposition: Disposition,
    }

    /// `initializationOptions.pactify` of a thin client.
    pub struct ClientOptions {
        /// Whether the client wants `pactify/job/event` and `pactify/job/changed`.
        #[serde(default)]
        pub events: bool,
        /// Whether the server says by `window/showMessage` how a job ended: true when absent. A client that says it
        /// in its own way turns it off.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub messages: Option<bool>,
    }

    /// The `data` of a JSON-RPC error.
    pub struct ErrorData {
        /// Stable; see `docs/protocol.md`.
        pub code: crate::FailureCode,
        /// What went wrong, without the next step. (The error's own `message` has both, for clients that show only
        /// that.)
        pub message: String,
        /// What the person can do now.
        pub next: String,
        /// Every path concerned.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        pub conflicts: Vec<Conflict>,
    }
}

impl From<Failure> for ErrorData {
    fn from(failure: Failure) -> Self {
        let Failure { code, message, next, conflicts } = failure;
        Self { code, message, next, conflicts }
    }
}

impl From<&Record> for EventView {
    fn from(record: &Record) -> Self {
        Self {
            seq: record.seq.0,
            at: record.at,
            attempt: record.attempt.get(),
            event: serde_json::to_value(&record.event).unwrap_or_default(),
        }
    }
}
