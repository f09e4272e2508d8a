//! How anything is refused: one stable code, one sentence that names the thing, one next step.
//!
//! Effect modules have error enums of their own; at the edge each becomes a [`Failure`], which the front ends map
//! once to a JSON-RPC error, an exit code and JSON. Codes only grow (`docs/protocol.md`).

use serde::{Deserialize, Serialize};

use crate::RepoPath;
use crate::display;
use crate::job::setup::Approval;
use crate::path::PathName;

/// A refusal or an error, ready to be shown.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
#[error("{message}")]
pub struct Failure {
    /// Stable; programs decide by it.
    pub code: FailureCode,
    /// A lower-case fragment that names the thing.
    pub message: String,
    /// What the person can do now.
    pub next: String,
    /// With [`FailureCode::ApplyConflict`] and its kin: every path concerned, not the first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conflicts: Vec<Conflict>,
    /// With [`FailureCode::ApprovalRequired`]: the question.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approval: Option<Box<Approval>>,
}

impl Failure {
    /// A failure without conflicting paths.
    pub fn new(code: FailureCode, message: impl Into<String>, next: impl Into<String>) -> Self {
        Self { code, message: message.into(), next: next.into(), conflicts: Vec::new(), approval: None }
    }

    /// The same failure, naming the paths concerned.
    #[must_use]
    pub fn with_conflicts(mut self, conflicts: Vec<Conflict>) -> Self {
        self.conflicts = conflicts;
        self
    }

    /// The same failure, with what the person is asked.
    #[must_use]
    pub fn asking(mut self, approval: Approval) -> Self {
        self.approval = Some(Box::new(approval));
        self
    }

    /// The same failure, with the last lines of what a program said about it: neutralised, bounded.
    #[must_use]
    pub fn quoting(mut self, output: &str) -> Self {
        let said = display::neutral_block(display::tail(output.trim(), 400));
        if !said.is_empty() {
            self.message = format!("{}: {}", self.message, said.replace('\n', " · "));
        }
        self
    }

    /// A defect of pactify itself, or a machine that does what no machine should.
    pub fn internal(message: impl Into<String>) -> Self {
        Self::new(
            FailureCode::Internal,
            message,
            "run `pactify sub doctor`, and attach `pactify sub debug-report` if you report it",
        )
    }
}

/// One path that stands in the way of an apply.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Conflict {
    /// The path, as it is called in the change set.
    #[serde(flatten)]
    pub path: PathName,
    /// What kind of obstacle it is.
    pub kind: ConflictKind,
    /// One sentence for people.
    pub detail: String,
    /// With [`ConflictKind::MergeNotShown`]: the merged content's id, which confirms the merge.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub object: Option<String>,
}

impl Conflict {
    /// An obstacle at `path`.
    pub fn new(path: &RepoPath, kind: ConflictKind, detail: impl Into<String>) -> Self {
        Self { path: path.clone().into(), kind, detail: detail.into(), object: None }
    }
}

/// The kinds of obstacle an apply can meet at a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub enum ConflictKind {
    /// The checkout's content differs from the base and from the result, and the two do not merge.
    ContentDiffers,
    /// The checkout's content and the job's merge, and nobody has looked at what comes out yet.
    MergeNotShown,
    /// The job adds a file where the checkout has another one (tracked, untracked or ignored).
    AlreadyExists,
    /// The job changes a file that the checkout no longer has.
    Missing,
    /// A directory is where a file would go, or a file where a directory would.
    DirectoryInTheWay,
    /// A symbolic link, a device, a pipe or a socket is at the path or on the way to it.
    NotARegularFile,
    /// An attached editor holds unsaved text for it.
    UnsavedText,
    /// Its name is one that is never written.
    NameRefused,
    /// Two names of the set, or one of the set and one of the checkout, are the same on a folding file system.
    NameCollides,
    /// A kind of change that is never written: a nested repository, a special file, a link that leaves the tree.
    KindRefused,
    /// A symbolic link, written only when it is named.
    SymlinkNotNamed,
    /// A file that executes by itself later, written only when it is named or confirmed.
    SensitiveNotConfirmed,
    /// The file system refused: permission, space, read-only.
    FileSystem,
}

/// Stable names of everything that can be refused or go wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
#[expect(missing_docs, reason = "each code is one line of `exit_code` and of docs/protocol.md")]
pub enum FailureCode {
    InvalidParams,
    InvalidConfig,
    NoRepository,
    UnbornHead,
    HeadNamesNothing,
    BareRepository,
    UnsupportedRepository,
    ObjectsMissing,
    GitMissing,
    GitTooOld,
    GitFailed,
    NoSpace,
    HarnessNotFound,
    HarnessIncompatible,
    HarnessFailed,
    LoginRequired,
    ProviderRefused,
    ProviderUnreachable,
    QuotaExceeded,
    SandboxUnavailable,
    RefusedInsideJob,
    ApprovalRequired,
    WorktreeCreateFailed,
    SetupFailed,
    LaunchFailed,
    ProcessesSurvived,
    CaptureFailed,
    TimedOut,
    Stalled,
    OverLimit,
    NoResult,
    ReadOnlyViolated,
    VerificationFailed,
    JobNotFound,
    WrongState,
    RequestNotOpen,
    StalePreview,
    ApplyConflict,
    NothingToApply,
    OutsideNotConfirmed,
    UnsavedBuffers,
    PathRefused,
    StoreBusy,
    StoreNewer,
    StoreDamaged,
    StoreUnavailable,
    HostUnreachable,
    HostLost,
    Internal,
}

impl FailureCode {
    /// The exit code of the terminal program (`docs/protocol.md`).
    pub fn exit_code(self) -> u8 {
        use FailureCode as C;
        match self {
            C::InvalidParams | C::InvalidConfig | C::JobNotFound => 2,
            C::NoRepository
            | C::UnbornHead
            | C::HeadNamesNothing
            | C::BareRepository
            | C::UnsupportedRepository
            | C::ObjectsMissing
            | C::GitMissing
            | C::GitTooOld
            | C::RefusedInsideJob
            | C::ApprovalRequired
            | C::WrongState
            | C::RequestNotOpen
            | C::StalePreview
            | C::OutsideNotConfirmed
            | C::StoreBusy
            | C::StoreNewer
            | C::SandboxUnavailable => 3,
            C::HarnessNotFound | C::HarnessIncompatible | C::LoginRequired => 4,
            C::ApplyConflict | C::UnsavedBuffers | C::PathRefused => 5,
            C::NothingToApply => 6,
            C::ReadOnlyViolated => 7,
            C::TimedOut | C::Stalled | C::OverLimit => 8,
            C::HarnessFailed
            | C::ProviderRefused
            | C::ProviderUnreachable
            | C::QuotaExceeded
            | C::NoResult
            | C::VerificationFailed
            | C::LaunchFailed
            | C::WorktreeCreateFailed
            | C::SetupFailed
            | C::ProcessesSurvived
            | C::HostLost
            | C::CaptureFailed
            | C::NoSpace
            | C::GitFailed => 1,
            C::StoreDamaged | C::StoreUnavailable | C::HostUnreachable | C::Internal => 70,
        }
    }

    /// The code as programs see it.
    pub fn as_str(self) -> String {
        serde_json::to_value(self).ok().and_then(|v| v.as_str().map(str::to_owned)).unwrap_or_default()
    }
}
