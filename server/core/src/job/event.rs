//! What can happen to a job: the events of its journal.
//!
//! Tagged by `type`; an event that a newer build wrote is kept as it is ([`Event::Unknown`]) and shown by name, never
//! guessed. *Milestones* move the state ([`super::state`]) and wait for the disk; everything else is *chatter*,
//! synced in groups. How a record becomes a line of a file is the engine's business.

use std::borrow::Cow;

use jiff::Timestamp;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

use super::Isolation;
use super::outcome::{Deadline, Outcome};
use crate::change::Totals;
use crate::fingerprint::OutsideChange;
use crate::permission::PermissionOption;
use crate::{AbsPath, AttemptNo, ChangeSetId, Failure, FailureCode, ObjectId, Seq, display};

/// One event, with its place and time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Record {
    /// Its position in the journal.
    pub seq: Seq,
    /// When it was written (wall clock: for people; nothing is decided by it).
    pub at: Timestamp,
    /// The attempt it belongs to.
    pub attempt: AttemptNo,
    /// What happened.
    pub event: Event,
}

/// What happened.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Event {
    /// Known to this build.
    Known(Known),
    /// Written by a newer build; kept whole.
    Unknown(Value),
}

/// The events of this build. Fields only grow; a field's meaning never changes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum Known {
    /// A host took the job. Opens the attempt.
    AttemptStarted {
        /// Why there is one.
        reason: AttemptReason,
        /// Who works on it.
        host: HostRecord,
    },
    /// The tree is populated and ready to launch in.
    TreeReady {
        /// Where, and as which directory.
        tree: TreeRecord,
    },
    /// The harness runs.
    Launched {
        /// Its first process, which also leads its process group.
        leader: ProcessRecord,
        /// The version that it reports.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        harness_version: Option<String>,
    },
    /// The harness named its session; a resume will use it.
    SessionStarted {
        /// The harness's own id, opaque.
        session: String,
        /// The model it says it uses.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        model: Option<String>,
    },
    /// The agent said something.
    Message {
        /// Its words, bounded.
        text: String,
    },
    /// The agent summarised its reasoning.
    Reasoning {
        /// Its words, bounded.
        text: String,
    },
    /// The agent started a command.
    CommandStarted {
        /// The harness's id of this step.
        item: String,
        /// The command as the harness shows it, bounded and redacted.
        command: String,
    },
    /// A command of ours said something: the tree's setup.
    CommandOutput {
        /// The id of its start.
        item: String,
        /// Some lines, bounded and redacted.
        text: String,
    },
    /// A command ended.
    CommandEnded {
        /// The harness's id of this step.
        item: String,
        /// Its exit code, where there is one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        exit_code: Option<i64>,
        /// The end of its output, bounded and redacted.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        tail: String,
    },
    /// The agent says that it changed files. The truth is what the capture finds.
    FilesTouched {
        /// Paths as the harness names them.
        paths: Vec<String>,
    },
    /// The agent used another tool.
    ToolUsed {
        /// The tool's name.
        tool: String,
        /// Whether the harness counts it as failed.
        #[serde(default)]
        failed: bool,
    },
    /// The agent's plan, whole, as it stands now.
    Plan {
        /// Its steps, bounded.
        entries: Vec<PlanEntry>,
    },
    /// What the agent is doing, in a few words, once what it says and does is recorded no more.
    Activity {
        /// One line.
        text: String,
    },
    /// Something a person should know, and that is no failure of the job.
    Notice {
        /// A stable name for it.
        id: String,
        /// One sentence.
        text: String,
    },
    /// Tokens used so far in this attempt.
    Usage {
        /// Cumulative over the attempt.
        usage: Usage,
    },
    /// A permission is asked for; the job waits.
    PermissionRequested {
        /// The id that an answer names.
        request: String,
        /// One line for people.
        title: String,
        /// All of it, as far as it is known and was kept: a command, a diff, arguments. Nothing where the title says
        /// it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        detail: Option<String>,
        /// The answers that the harness takes, in its order.
        #[serde(default)]
        options: Vec<PermissionOption>,
    },
    /// A permission that was waited for was answered, or nobody did in time.
    PermissionAnswered {
        /// The request's id.
        request: String,
        /// The option chosen; `None` when it expired as denied.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        option: Option<String>,
    },
    /// A permission was asked for and answered at once, by the job's policy or its access mode: nobody waits.
    PermissionDecided {
        /// One line for people.
        title: String,
        /// Whether it was granted.
        granted: bool,
        /// The harness's option that was chosen; `None` where it has none that says so.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        option: Option<String>,
    },
    /// A person asked for the end.
    CancelRequested,
    /// A deadline passed; the host ends the harness.
    DeadlinePassed {
        /// Which.
        deadline: Deadline,
    },
    /// The harness's first process ended.
    HarnessExited {
        /// How.
        exit: ExitRecord,
    },
    /// The process tree was swept.
    Swept {
        /// How many processes had to be killed.
        killed: u32,
        /// Those that could not be ended, by pid and name. Nothing is captured while there are any.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        survivors: Vec<String>,
    },
    /// What the tree holds now was put into objects of our own.
    Captured {
        /// The result.
        result: ResultRecord,
    },
    /// The verification commands run.
    VerificationStarted,
    /// One of them ended. (A cancel in the middle of one leaves none.)
    Verified {
        /// The command.
        command: String,
        /// Whether it ended as it should.
        passed: bool,
        /// Its exit code, where there is one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        exit_code: Option<i64>,
        /// The end of its output, bounded and redacted.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        tail: String,
    },
    /// The checkout in which a read-only job will look around was looked at, before anything of the attempt ran.
    CheckoutGuarded {
        /// Which directory it is.
        checkout: CheckoutRecord,
        /// The digest of the record.
        digest: String,
    },
    /// It was looked at again, when everything was dead.
    CheckoutCompared {
        /// The attempt that the record is of: this one, or the one that a recovery repairs.
        of: AttemptNo,
        /// What is not as it was, whoever changed it, bounded.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        changed: Vec<String>,
        /// How many more there are.
        #[serde(default, skip_serializing_if = "is_zero")]
        more: u64,
    },
    /// The attempt is over. The first one of an attempt wins.
    AttemptEnded {
        /// How it ended.
        outcome: Outcome,
        /// What went wrong, if something did.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        failure: Option<Failure>,
        /// The agent's last words.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        final_message: Option<String>,
    },
    /// A result was put into the checkout.
    Applied {
        /// The apply's number within the job, from 1.
        apply: u32,
        /// Which result.
        change_set: ChangeSetId,
        /// Whether nothing of it is left to apply.
        complete: bool,
        /// The tree of what the person accepted so far: the base with every part that was ever applied. The next
        /// apply is checked against it. Its objects are in the job's own store of accepted objects.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        accepted: Option<ObjectId>,
        /// The paths written, as they are shown.
        paths: Vec<String>,
    },
    /// An apply was taken back.
    Undone {
        /// Its number.
        apply: u32,
        /// The tree of what is accepted now.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        accepted: Option<ObjectId>,
    },
    /// The person gave the result up; the tree goes.
    Discarded,
    /// The tree went to make room; the result stays.
    TreeRemoved,
    /// What the job shares with the person's checkout was looked at, before anything of the attempt ran.
    OutsideRecorded {
        /// The digest of the record.
        digest: String,
    },
    /// Something outside the job's tree changed while the attempt ran, whoever did it.
    OutsideChanges {
        /// The attempt that the records are of: this one, or the one that a recovery repairs.
        of: AttemptNo,
        /// What changed, worst first, bounded.
        changes: Vec<OutsideChange>,
        /// How many more changes there are.
        #[serde(default, skip_serializing_if = "is_zero")]
        more: u64,
        /// How many of those are dangerous.
        #[serde(default, skip_serializing_if = "is_zero")]
        more_dangerous: u64,
        /// The digest of the record of before.
        before: String,
        /// The digest of the record of after.
        after: String,
    },
    /// Changes outside were put back.
    OutsideRestored {
        /// Their ids.
        ids: Vec<String>,
    },
}

fn is_zero(count: &u64) -> bool {
    *count == 0
}

impl Known {
    /// Every text that a harness, or a program it ran, may have had a part in: what a redactor has to look at. Names
    /// that programs decide by are not among them.
    pub fn texts_mut(&mut self) -> Vec<&mut String> {
        match self {
            Self::Launched { harness_version, .. } => harness_version.iter_mut().collect(),
            Self::SessionStarted { session, model } => [session].into_iter().chain(model).collect(),
            Self::Message { text } | Self::Reasoning { text } | Self::Activity { text } | Self::Notice { text, .. } => {
                vec![text]
            }
            Self::CommandStarted { item, command } => vec![item, command],
            Self::CommandOutput { item, text } => vec![item, text],
            Self::CommandEnded { item, tail, .. } => vec![item, tail],
            Self::FilesTouched { paths } => paths.iter_mut().collect(),
            Self::ToolUsed { tool, .. } => vec![tool],
            Self::Plan { entries } => entries.iter_mut().map(|entry| &mut entry.text).collect(),
            Self::PermissionRequested { request, title, detail, options } => {
                let options = options.iter_mut().flat_map(|option| [&mut option.id, &mut option.name]);
                [request, title].into_iter().chain(detail).chain(options).collect()
            }
            Self::PermissionAnswered { request, option } => [request].into_iter().chain(option).collect(),
            Self::PermissionDecided { title, option, .. } => [title].into_iter().chain(option).collect(),
            Self::Verified { command, tail, .. } => vec![command, tail],
            Self::CheckoutCompared { changed, .. } => changed.iter_mut().collect(),
            Self::Swept { survivors, .. } => survivors.iter_mut().collect(),
            Self::AttemptEnded { failure, final_message, .. } => {
                let failure = failure.iter_mut().flat_map(|failure| [&mut failure.message, &mut failure.next]);
                failure.chain(final_message).collect()
            }
            // Values of the person's configuration, and names that a process chose.
            Self::OutsideChanges { changes, .. } => {
                changes.iter_mut().flat_map(|change| [&mut change.place, &mut change.what]).collect()
            }
            // Our own facts, ids and paths.
            Self::AttemptStarted { .. }
            | Self::TreeReady { .. }
            | Self::Usage { .. }
            | Self::CancelRequested
            | Self::DeadlinePassed { .. }
            | Self::HarnessExited { .. }
            | Self::Captured { .. }
            | Self::VerificationStarted
            | Self::CheckoutGuarded { .. }
            | Self::Applied { .. }
            | Self::Undone { .. }
            | Self::OutsideRecorded { .. }
            | Self::OutsideRestored { .. }
            | Self::Discarded
            | Self::TreeRemoved => Vec::new(),
        }
    }
}

/// One step of an agent's plan.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PlanEntry {
    /// Its words, one line.
    pub text: String,
    /// How far it is.
    pub status: PlanStatus,
}

/// How far a step of a plan is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum PlanStatus {
    /// Not begun.
    Pending,
    /// Being done.
    InProgress,
    /// Done.
    Completed,
    /// A word of a newer build.
    #[serde(other)]
    Unknown,
}

/// Why an attempt was opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum AttemptReason {
    /// The job's first run.
    Run,
    /// The session goes on with another message.
    Resume,
    /// The host of the attempt before died: sweep, capture, end.
    Recovery,
}

/// Who hosts an attempt.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct HostRecord {
    /// Its process.
    #[serde(flatten)]
    pub process: ProcessRecord,
    /// Its pactify version.
    pub version: String,
}

/// A process, named so that a reused pid cannot be taken for it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ProcessRecord {
    /// The process id.
    pub pid: u32,
    /// Its start, in clock ticks since boot (`/proc/<pid>/stat`, field 22).
    pub start_time: u64,
    /// The kernel's boot id (`/proc/sys/kernel/random/boot_id`).
    pub boot_id: String,
}

/// A job's tree, named so that another directory cannot be taken for it (threat T-01).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TreeRecord {
    /// Where it is.
    pub path: AbsPath,
    /// The device it lies on.
    pub device: u64,
    /// Its inode there.
    pub inode: u64,
    /// How it is separated from the checkout.
    pub isolation: Isolation,
}

/// The person's checkout, as the place of a read-only job, named so that another directory cannot be taken for it. It
/// is no [`TreeRecord`], and none can be made of it: what removes, captures or applies trees has nothing to take hold
/// of.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CheckoutRecord {
    /// Where it is.
    pub path: AbsPath,
    /// The device it lies on.
    pub device: u64,
    /// Its inode there.
    pub inode: u64,
}

/// What a capture found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ResultRecord {
    /// The result's name.
    pub change_set: ChangeSetId,
    /// The tree it is measured against.
    pub base_tree: ObjectId,
    /// How much changed.
    pub totals: Totals,
}

/// Tokens and cost, as the harness counts them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Usage {
    /// Tokens sent, cached ones included.
    pub input_tokens: u64,
    /// Of those, read from the provider's cache.
    pub cached_input_tokens: u64,
    /// Tokens received, reasoning included.
    pub output_tokens: u64,
    /// In US dollars, where the harness says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<f64>,
}

impl Usage {
    /// Both together.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        let cost = match (self.cost, other.cost) {
            (None, None) => None,
            (one, two) => Some(one.unwrap_or_default() + two.unwrap_or_default()),
        };
        Self {
            input_tokens: self.input_tokens.saturating_add(other.input_tokens),
            cached_input_tokens: self.cached_input_tokens.saturating_add(other.cached_input_tokens),
            output_tokens: self.output_tokens.saturating_add(other.output_tokens),
            cost,
        }
    }
}

/// How a process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum ExitRecord {
    /// By itself, with this code.
    Code(i32),
    /// By this signal.
    Signal(i32),
}

impl Event {
    /// The event's name, known or not.
    pub fn name(&self) -> String {
        let tag = |value: &Value| value.get("type").and_then(Value::as_str).unwrap_or("unknown").to_owned();
        match self {
            Self::Known(known) => serde_json::to_value(known).map(|value| tag(&value)).unwrap_or_default(),
            Self::Unknown(value) => tag(value),
        }
    }

    /// Whether it must be on disk before anyone is told: it moves the state, or work depends on it.
    pub fn is_milestone(&self) -> bool {
        match self {
            Self::Unknown(_) => false,
            Self::Known(known) => {
                !known.is_chatter()
                    && !matches!(known, Known::Notice { .. } | Known::OutsideRecorded { .. } | Known::Usage { .. })
            }
        }
    }
}

impl Known {
    /// Whether it tells what a harness says and does, and decides nothing.
    pub fn is_chatter(&self) -> bool {
        matches!(
            self,
            Self::Message { .. }
                | Self::Reasoning { .. }
                | Self::CommandStarted { .. }
                | Self::CommandOutput { .. }
                | Self::CommandEnded { .. }
                | Self::FilesTouched { .. }
                | Self::ToolUsed { .. }
                | Self::Plan { .. }
                | Self::Activity { .. }
        )
    }
}

impl Event {
    /// What the event means to the fold. An end of a shape that this build does not know is still an end: a job that a
    /// newer build finished must never be taken for lost, and repaired.
    pub fn meaning(&self) -> Option<Cow<'_, Known>> {
        match self {
            Self::Known(known) => Some(Cow::Borrowed(known)),
            Self::Unknown(value) => end_of_a_newer_build(value).map(Cow::Owned),
        }
    }
}

fn end_of_a_newer_build(value: &Value) -> Option<Known> {
    let text = |pointer| value.pointer(pointer).and_then(Value::as_str);
    if text("/type") != Some("attemptEnded") {
        return None;
    }
    let named = text("/outcome").unwrap_or_default();
    let outcome = value.get("outcome").and_then(|outcome| Outcome::deserialize(outcome).ok());
    let message = match (outcome, text("/failure/message")) {
        (Some(_), Some(said)) => said.to_owned(),
        (_, said) => {
            let ended = format!("a newer pactify ended the job as {:?}", display::headline(named, 40));
            said.map_or(ended.clone(), |said| format!("{ended}: {said}"))
        }
    };
    let next = text("/failure/next").unwrap_or("use the newer pactify for this job");
    Some(Known::AttemptEnded {
        outcome: outcome.unwrap_or(Outcome::Failed),
        failure: Some(Failure::new(FailureCode::StoreNewer, message, next)),
        final_message: text("/finalMessage").map(str::to_owned),
    })
}

impl From<Known> for Event {
    fn from(known: Known) -> Self {
        Self::Known(known)
    }
}

impl<'de> Deserialize<'de> for Event {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = Value::deserialize(deserializer)?;
        if value.get("type").and_then(Value::as_str).is_none() {
            return Err(serde::de::Error::custom("an event without a type"));
        }
        // A known name with fields that do not fit is from a newer build as well: kept, not guessed.
        Ok(Known::deserialize(&value).map_or(Self::Unknown(value), Self::Known))
    }
}

#[cfg(test)]
mod tests;
