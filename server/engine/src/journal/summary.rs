//! A job in short: what a list shows, kept beside the journal so that listing need not read it.
//!
//! The lock holder writes `summary.json` after each milestone. It is a cache: it says which journal it belongs to, and
//! how much of it ([`Stamp`]), it is sealed like a journal line, and one that does not fit or is damaged counts as
//! absent. Deleting it changes nothing but time.

use jiff::Timestamp;
use pactify_core::change::Totals;
use pactify_core::harness::HarnessName;
use pactify_core::job::access::Access;
use pactify_core::job::event::{ResultRecord, Usage};
use pactify_core::job::outcome::{Disposition, Outcome};
use pactify_core::job::state::{Host, JobState, Phase, SeenState, Waiting};
use pactify_core::job::{Base, Isolation, JobSpec, Place, RepositoryRecord};
use pactify_core::{AttemptNo, ChangeSetId, JobId};
use serde::{Deserialize, Serialize};

use super::line::{self, Sum};
use super::reader::Stamp;
use crate::disk::{DiskError, FileId};
use crate::job_dir::{JobDir, names};

/// The version of `summary.json`; another one counts as absent.
const SUMMARY_FORMAT: u32 = 3;
/// The longest summary that is read.
const MAX_BYTES: u64 = 256 * 1024;

/// What a list shows of a job.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Summary {
    format: u32,
    journal: StampRecord,
    /// The job.
    pub id: JobId,
    /// Its brief's first line.
    pub title: String,
    /// The harness.
    pub harness: HarnessName,
    /// The model that the harness says it uses, or else the one asked for.
    pub model: Option<String>,
    /// Whether it may change files.
    pub access: Access,
    /// What it works in.
    pub place: Place,
    /// How its tree is separated.
    pub isolation: Isolation,
    /// Where it works from.
    pub repository: RepositoryRecord,
    /// What its tree started as.
    pub base: Base,
    /// The job that this one repeats.
    pub retry_of: Option<JobId>,
    /// When it was asked for.
    pub created_at: Timestamp,
    /// When the harness was launched first.
    pub started_at: Option<Timestamp>,
    /// When the latest attempt ended.
    pub ended_at: Option<Timestamp>,
    /// When its result was last applied, given up, or an apply of it undone.
    pub decided_at: Option<Timestamp>,
    /// Where the latest attempt stands, as far as the journal says; [`Self::seen`] adds whether a host is alive.
    pub phase: Phase,
    /// The latest attempt.
    pub attempt: Option<AttemptNo>,
    /// How it ended.
    pub outcome: Option<Outcome>,
    /// What became of the result.
    pub disposition: Disposition,
    /// The newest captured result.
    pub change_set: Option<ChangeSetId>,
    /// How much it changes.
    pub totals: Option<Totals>,
    /// What the agent is doing, in a few words.
    pub activity: Option<String>,
    /// The oldest open permission request, without its detail: a list is read often.
    pub waiting: Option<Waiting>,
    /// How many more are open.
    pub waiting_more: u64,
    /// Tokens of the latest attempt.
    pub usage: Option<Usage>,
    /// What a person should know.
    pub notices: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct StampRecord {
    device: u64,
    inode: u64,
    length: u64,
}

impl Summary {
    /// The summary of a job whose journal, up to `stamp`, folds to `state`.
    pub fn of(spec: &JobSpec, state: &JobState, stamp: Stamp) -> Self {
        let attempt = state.attempt.as_ref();
        let model = attempt.and_then(|attempt| attempt.actual_model.clone());
        let oldest = attempt.and_then(|attempt| attempt.waiting.first());
        Self {
            format: SUMMARY_FORMAT,
            journal: stamp.into(),
            id: spec.id.clone(),
            title: spec.brief.title(),
            harness: spec.harness.clone(),
            model: model.or_else(|| spec.model.clone()).or_else(|| spec.settings.model.clone()),
            access: spec.access,
            place: spec.place,
            isolation: spec.isolation,
            repository: spec.repository.clone(),
            base: spec.base.clone(),
            retry_of: spec.retry_of.clone(),
            created_at: spec.created_at,
            started_at: state.started_at,
            ended_at: state.ended_at,
            decided_at: state.decided_at,
            phase: state.phase,
            attempt: attempt.map(|attempt| attempt.number),
            outcome: state.ended().map(|ended| ended.outcome),
            disposition: state.disposition,
            change_set: state.result.as_ref().map(|ResultRecord { change_set, .. }| change_set.clone()),
            totals: state.result.as_ref().map(|result| result.totals),
            activity: state.activity.clone(),
            waiting: oldest.map(|waiting| Waiting { detail: None, ..waiting.clone() }),
            waiting_more: attempt.map_or(0, |attempt| attempt.waiting.len().saturating_sub(1) as u64),
            usage: attempt.and_then(|attempt| attempt.usage),
            notices: state.notices.clone(),
        }
    }

    /// What a reader tells a person. Only a job that is not finished needs to know whether a host is alive.
    pub fn seen(&self, host: Host) -> SeenState {
        JobState { phase: self.phase, ..JobState::default() }.seen(host)
    }

    /// The journal that it belongs to.
    pub fn stamp(&self) -> Stamp {
        let StampRecord { device, inode, length } = self.journal;
        Stamp { file: FileId { device, inode }, length }
    }

    /// Puts it beside the journal. Only the lock holder does.
    pub(crate) fn write(&self, job: &JobDir) -> Result<(), DiskError> {
        let mut bytes = Vec::new();
        line::seal(&mut bytes, &line::json(self), Sum::default());
        job.dir().replace(names::SUMMARY, &bytes, false)
    }

    /// The summary beside the journal, if it is whole and belongs to the journal as it is now.
    pub fn read(job: &JobDir, now: Stamp) -> Option<Self> {
        let bytes = job.dir().read(names::SUMMARY, MAX_BYTES).ok()?;
        let body = bytes.strip_suffix(b"\n")?;
        line::check(body, Sum::default()).ok()?;
        let summary: Self = serde_json::from_slice(body).ok()?;
        (summary.format == SUMMARY_FORMAT && summary.stamp() == now && summary.id == *job.id()).then_some(summary)
    }
}

impl From<Stamp> for StampRecord {
    fn from(stamp: Stamp) -> Self {
        Self { device: stamp.file.device, inode: stamp.file.inode, length: stamp.length }
    }
}
