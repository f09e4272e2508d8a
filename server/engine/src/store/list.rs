//! Listing jobs: newest first, in pages, and without reading journals that their summaries speak for.

use std::sync::Arc;

use pactify_core::JobId;
use pactify_core::job::state::{Host, Phase, SeenState};

use super::snapshot::Integrity;
use super::{Store, StoreError, journal_stamp};
use crate::job_dir::{JobDir, SpecError};
use crate::journal::JournalError;
use crate::journal::summary::Summary;

/// A part of the list.
#[derive(Debug)]
pub struct Page {
    /// Newest first.
    pub jobs: Vec<Listed>,
    /// Where the next page starts, if there is one: hand it to [`Store::list`] as `after`.
    pub next: Option<JobId>,
}

/// A job in a list. One bad job never hides the others.
#[derive(Debug)]
pub enum Listed {
    /// A job.
    Job {
        /// What to show.
        summary: Arc<Summary>,
        /// Where it stands.
        seen: SeenState,
    },
    /// A job that a newer pactify wrote; nothing about it is guessed.
    Newer {
        /// Which.
        id: JobId,
        /// The format that it has.
        format: u64,
    },
    /// A job whose files are not what pactify wrote, or cannot be reached.
    Damaged {
        /// Which.
        id: JobId,
        /// What its intact records say, if its spec can be read.
        summary: Option<Arc<Summary>>,
        /// What is wrong, naming the file.
        reason: String,
    },
}

impl Listed {
    /// Which job it is.
    pub fn id(&self) -> &JobId {
        match self {
            Self::Job { summary, .. } => &summary.id,
            Self::Newer { id, .. } | Self::Damaged { id, .. } => id,
        }
    }
}

impl Store {
    /// Lists up to `limit` jobs that are older than `after`, newest first.
    pub fn list(&self, after: Option<&JobId>, limit: usize) -> Result<Page, StoreError> {
        let names = self.shared.jobs.names()?;
        let mut ids: Vec<JobId> = names.iter().filter_map(|name| name.parse().ok()).collect();
        ids.retain(|id| after.is_none_or(|after| id < after));
        ids.sort_unstable_by(|a, b| b.cmp(a));
        let more = ids.len() > limit;
        ids.truncate(limit);
        let next = if more { ids.last().cloned() } else { None };
        // A job that went away since its name was read is no longer in the list.
        let jobs = ids.iter().filter_map(|id| self.describe(id).transpose()).collect::<Result<_, _>>()?;
        Ok(Page { jobs, next })
    }

    /// One job as a list shows it; `None` if there is none.
    pub fn describe(&self, id: &JobId) -> Result<Option<Listed>, StoreError> {
        match self.describe_intact(id) {
            Ok(listed) => Ok(Some(listed)),
            Err(StoreError::JobNotFound { .. }) => Ok(None),
            Err(
                StoreError::Journal(
                    JournalError::Newer { format, .. } | JournalError::Spec(SpecError::Newer { format, .. }),
                )
                | StoreError::Spec(SpecError::Newer { format, .. }),
            ) => Ok(Some(Listed::Newer { id: id.clone(), format })),
            Err(error) => Ok(Some(Listed::Damaged { id: id.clone(), summary: None, reason: error.to_string() })),
        }
    }

    fn describe_intact(&self, id: &JobId) -> Result<Listed, StoreError> {
        if let Some(summary) = self.short(id)? {
            let host = if summary.phase == Phase::Finished { Host::Gone } else { self.job(id)?.host()? };
            // A host that ended since then wrote its last record first: what is shown must be of one moment.
            if summary.phase == Phase::Finished || journal_stamp(&self.shared.jobs, id) == Some(summary.stamp()) {
                let seen = summary.seen(host);
                return Ok(Listed::Job { summary, seen });
            }
        }
        let (snapshot, seen) = self.seen(id)?;
        let summary = Arc::new(snapshot.summary());
        match &snapshot.integrity {
            Integrity::Damaged(damage) => {
                Ok(Listed::Damaged { id: id.clone(), summary: Some(summary), reason: damage.to_string() })
            }
            Integrity::Whole | Integrity::Torn(_) => Ok(Listed::Job { summary, seen }),
        }
    }

    /// The summary that speaks for a job's journal as it is now, without reading the journal.
    fn short(&self, id: &JobId) -> Result<Option<Arc<Summary>>, StoreError> {
        let Some(now) = journal_stamp(&self.shared.jobs, id) else { return Ok(None) };
        if let Some(known) = self.cache().summary(id, now) {
            return Ok(Some(known));
        }
        let job: JobDir = self.job(id)?;
        let Some(summary) = Summary::read(&job, now).map(Arc::new) else { return Ok(None) };
        self.cache().remember_summary(&summary);
        Ok(Some(summary))
    }
}
