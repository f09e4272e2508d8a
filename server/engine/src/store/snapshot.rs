//! What this process read of jobs, kept as long as their journals stand still.
//!
//! A snapshot is good as long as the journal is the same file of the same length: asking for a job again costs one
//! `stat`, and a job that goes on costs reading what is new. Nothing is held open in between.

use std::collections::HashMap;
use std::sync::atomic::Ordering;
use std::sync::{Arc, MutexGuard, OnceLock, PoisonError};

use pactify_core::JobId;
use pactify_core::job::JobSpec;
use pactify_core::job::state::{Host, JobState, Phase, SeenState};
use serde_json::value::RawValue;

use super::{Store, StoreError, journal_stamp};
use crate::job_dir::JobDir;
use crate::journal::summary::Summary;
use crate::journal::{Cursor, Damage, End, Reader, Stamp, Torn};

/// A job as its files had it at one moment.
#[derive(Clone, Debug)]
pub struct JobSnapshot {
    /// What was asked.
    pub spec: Arc<JobSpec>,
    /// What became of it: the fold of every intact record.
    pub state: JobState,
    /// Whether that is all there is.
    pub integrity: Integrity,
    /// The answer to a front end that asks for the job, as JSON: written when it is first asked for, if it is finished.
    pub(crate) told: OnceLock<Arc<RawValue>>,
    cursor: Cursor,
    /// What stood at the journal's name before it was read.
    stamp: Stamp,
}

/// Whether a journal is whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Integrity {
    /// It is.
    Whole,
    /// Its last line has no end: its writer is at it, or died at it.
    Torn(Torn),
    /// A line is not what was written; what follows was not read, and nobody may append.
    Damaged(Damage),
}

/// What the store remembers. Bounded: the rest is read again.
#[derive(Debug, Default)]
pub(super) struct Cache {
    snapshots: HashMap<JobId, (u64, Arc<JobSnapshot>)>,
    summaries: HashMap<JobId, Arc<Summary>>,
    clock: u64,
}

impl Store {
    /// A job's spec and state. Of a job whose journal stands still this costs one system call.
    pub fn state(&self, id: &JobId) -> Result<Arc<JobSnapshot>, StoreError> {
        let stamp = journal_stamp(&self.shared.jobs, id);
        let known = self.cache().snapshot(id);
        match (known, stamp) {
            (Some(known), Some(now)) if known.stamp == now => Ok(known),
            (known, now) => {
                let job = self.job(id)?;
                let snapshot = Arc::new(self.read(&job, now, known.as_deref())?);
                self.cache().remember(id, &snapshot);
                Ok(snapshot)
            }
        }
    }

    /// A job's spec and state, and what to tell a person. Only a job that is not finished is asked for its host.
    pub fn seen(&self, id: &JobId) -> Result<(Arc<JobSnapshot>, SeenState), StoreError> {
        let snapshot = self.state(id)?;
        if snapshot.state.phase == Phase::Finished {
            let seen = snapshot.state.seen(Host::Gone);
            return Ok((snapshot, seen));
        }
        let host = self.job(id)?.host()?;
        // A host that ended meanwhile wrote its last record first: look again before calling the job lost.
        let snapshot = if host == Host::Gone { self.state(id)? } else { snapshot };
        let seen = snapshot.state.seen(host);
        Ok((snapshot, seen))
    }

    pub(super) fn cache(&self) -> MutexGuard<'_, Cache> {
        // Every entry is checked against the disk before it is used, so one left by a panic does no harm.
        self.shared.snapshots.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn read(&self, job: &JobDir, stamp: Option<Stamp>, known: Option<&JobSnapshot>) -> Result<JobSnapshot, StoreError> {
        self.shared.journals_read.fetch_add(1, Ordering::Relaxed);
        let grown = known.filter(|known| known.stamp.file == known.cursor.stamp().file);
        if let Some(known) = grown
            && let Ok(mut reader) = Reader::resume(job, known.cursor)
        {
            let state = known.state.clone();
            return finish(&mut reader, Arc::clone(&known.spec), state, stamp);
        }
        let spec = Arc::new(job.spec()?);
        finish(&mut Reader::open(job)?, spec, JobState::default(), stamp)
    }
}

impl JobSnapshot {
    /// The snapshot in short.
    pub fn summary(&self) -> Summary {
        Summary::of(&self.spec, &self.state, self.cursor.stamp())
    }

    /// Where to read on.
    pub fn cursor(&self) -> Cursor {
        self.cursor
    }
}

impl Cache {
    const SNAPSHOTS: usize = 256;
    const SUMMARIES: usize = 16 * 1024;

    pub(super) fn summary(&self, id: &JobId, now: Stamp) -> Option<Arc<Summary>> {
        self.summaries.get(id).filter(|summary| summary.stamp() == now).cloned()
    }

    pub(super) fn remember_summary(&mut self, summary: &Arc<Summary>) {
        if self.summaries.len() >= Self::SUMMARIES {
            self.summaries.clear();
        }
        self.summaries.insert(summary.id.clone(), Arc::clone(summary));
    }

    fn snapshot(&mut self, id: &JobId) -> Option<Arc<JobSnapshot>> {
        self.clock += 1;
        let (used, snapshot) = self.snapshots.get_mut(id)?;
        *used = self.clock;
        Some(Arc::clone(snapshot))
    }

    fn remember(&mut self, id: &JobId, snapshot: &Arc<JobSnapshot>) {
        if self.snapshots.len() >= Self::SNAPSHOTS && !self.snapshots.contains_key(id) {
            let mut ages: Vec<u64> = self.snapshots.values().map(|(used, _)| *used).collect();
            let (_, median, _) = ages.select_nth_unstable(Self::SNAPSHOTS / 2);
            let median = *median;
            self.snapshots.retain(|_, (used, _)| *used > median);
        }
        self.snapshots.insert(id.clone(), (self.clock, Arc::clone(snapshot)));
    }
}

fn finish(
    reader: &mut Reader,
    spec: Arc<JobSpec>,
    mut state: JobState,
    stamp: Option<Stamp>,
) -> Result<JobSnapshot, StoreError> {
    let batch = reader.read(usize::MAX)?;
    batch.records.iter().for_each(|record| state.apply(record));
    let integrity = match batch.end {
        End::Clean | End::More => Integrity::Whole,
        End::Torn(torn) => Integrity::Torn(torn),
        End::Damaged(damage) => Integrity::Damaged(damage),
    };
    let cursor = reader.cursor();
    // The stamp was taken before the read: if the journal grew meanwhile, the next question reads on.
    Ok(JobSnapshot { spec, state, integrity, told: OnceLock::new(), cursor, stamp: stamp.unwrap_or(cursor.stamp()) })
}
