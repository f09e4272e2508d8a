//! A job: what was asked ([`JobSpec`]), what happened ([`event`]), what follows from it ([`state`], [`outcome`]).
//!
//! The spec is written once; everything that changes is the fold of the journal. Storing and running jobs is the
//! engine's work.

pub mod access;
pub mod event;
pub mod outcome;
pub mod setup;
pub mod state;
pub mod verify;

use std::time::Duration;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::brief::Brief;
use crate::harness::{HarnessName, HarnessSettings};
use crate::lfs::LfsPolicy;
use crate::permission::Policy;
use crate::{AbsPath, JobId, ObjectId};
use access::Access;
use setup::Setup;
use verify::Check;

/// The version of `job.json` that this build writes.
pub const SPEC_FORMAT: u32 = 1;

/// What was asked: written once, at creation, and never changed. Fields that a newer build added are kept.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct JobSpec {
    /// [`SPEC_FORMAT`] at the time of writing.
    pub format: u32,
    /// The job's own name.
    pub id: JobId,
    /// When it was asked for.
    pub created_at: Timestamp,
    /// The task.
    pub brief: Brief,
    /// Which harness does it.
    pub harness: HarnessName,
    /// The harness's executable, resolved once, when the job was created (threat T-11).
    pub executable: AbsPath,
    /// What runs the executable, where that is a script: resolved at the same time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interpreter: Option<AbsPath>,
    /// The search path under which it was found, and under which the job works, where that is not the one of the
    /// process that started the job: the person's login shell knew more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub search_path: Option<String>,
    /// The person's settings for this harness, as they were then.
    pub settings: HarnessSettings,
    /// The model to ask for, instead of the harness's default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Whether it has the person's own configuration of the harness, as far as its access lets it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub with_user_config: bool,
    /// Whether it may change files.
    pub access: Access,
    /// What it works in.
    #[serde(default)]
    pub place: Place,
    /// How its tree is separated from the checkout.
    pub isolation: Isolation,
    /// Where it works from.
    pub repository: RepositoryRecord,
    /// What its tree starts as.
    pub base: Base,
    /// What its tree holds for files in Git LFS.
    #[serde(default)]
    pub lfs: LfsPolicy,
    /// The command that makes its tree ready, and whether that may run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub setup: Option<Setup>,
    /// The commands that its result has to pass, and whether they may run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub verify: Vec<Check>,
    /// Whether the person wanted it to pass none, whatever is configured.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub no_verify: bool,
    /// Who answers what its harness asks for.
    #[serde(default)]
    pub permissions: Policy,
    /// How long it may take.
    pub limits: Limits,
    /// The job that this one repeats.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_of: Option<JobId>,
    /// The pactify version that wrote this.
    pub written_by: String,
    /// Unknown fields of a newer build.
    #[serde(flatten)]
    pub unknown: serde_json::Map<String, serde_json::Value>,
}

/// The repository of a job, as absolute facts recorded at creation. Later steps use these, never a discovery that
/// starts inside a tree which a job has written (threat T-08).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RepositoryRecord {
    /// The top of the checkout that results are applied to.
    pub worktree: AbsPath,
    /// That checkout's own git directory.
    pub git_dir: AbsPath,
    /// The git directory shared by all worktrees of the repository.
    pub common_dir: AbsPath,
    /// The folder below `worktree` in which the editor was opened, repo-relative; empty at the top.
    #[serde(default)]
    pub prefix: String,
}

/// The state that a job's tree starts as, and that its changes are measured against.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Base {
    /// What the person chose.
    pub kind: BaseKind,
    /// The commit: the one HEAD named when the job was created, or one made for the job on top of it.
    pub commit: ObjectId,
    /// That commit's tree.
    pub tree: ObjectId,
    /// The commit HEAD named, where `commit` was made for the job: then it lies in the job's private storage, and the
    /// person's repository knows nothing of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<ObjectId>,
}

impl Base {
    /// The newest commit of it that the person's repository has.
    pub fn public_commit(&self) -> &ObjectId {
        self.parent.as_ref().unwrap_or(&self.commit)
    }
}

/// Which state of the repository a job starts from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub enum BaseKind {
    /// The commit that HEAD names.
    #[default]
    Head,
    /// That commit with the checkout's uncommitted changes.
    WorkingTree,
    /// Those with the unsaved text of open editors.
    Buffers,
}

/// What a job works in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Place {
    /// A tree of its own, which pactify makes and removes.
    #[default]
    Tree,
    /// The person's checkout, which it may only look at, and which pactify neither makes, changes nor removes.
    Checkout,
}

/// How a job's tree is separated from the checkout.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub enum Isolation {
    /// A git directory of the job's own: nothing of the person's is reachable through git.
    #[default]
    Private,
    /// A linked worktree of the person's repository, as `git worktree add --detach` makes it.
    Linked,
}

/// How long a job may take, in whole seconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Limits {
    /// From launch to end.
    pub total_seconds: u64,
    /// Without any sign of life from the harness; time in which the machine slept does not count.
    pub stall_seconds: u64,
}

impl Limits {
    /// The whole time a job may run.
    pub fn total(self) -> Duration {
        Duration::from_secs(self.total_seconds)
    }

    /// The time it may be silent.
    pub fn stall(self) -> Duration {
        Duration::from_secs(self.stall_seconds)
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self { total_seconds: 60 * 60, stall_seconds: 10 * 60 }
    }
}
