//! Live probes: a real job in each access mode, in a repository made for it. Only when a person asks, as they cost
//! tokens.

use std::time::{Duration, Instant};

use pactify_core::doctor::{Address, Probed, failed, probe, sessions};
use pactify_core::harness::{Harness, HarnessSettings};
use pactify_core::job::RepositoryRecord;
use pactify_core::job::access::Access;
use pactify_core::job::state::SeenState;
use pactify_core::protocol::{BriefSource, DelegateParams, Finding, JobDetail, PruneParams, view};
use pactify_core::{AbsPath, Failure, JobId};

use super::super::Jobs;
use super::person;
use crate::causes::with_causes;
use crate::git;
use crate::store::{Area, StoreError};
use crate::tree::Trash;

/// What each probe is told.
const BRIEF: &str = "This is a check of the machine. Create a file called probe.txt with the single word `probe` in the current \
    directory, by whatever tool you have for it. If that is refused, say so in one sentence. Do nothing else.";

/// How long a probe may take.
const LIMIT: Duration = Duration::from_secs(300);

/// How much longer its end is waited for.
const MARGIN: Duration = Duration::from_secs(60);

const LOOK_AGAIN: Duration = Duration::from_millis(200);

impl Jobs {
    /// Whether `harness` writes in a write job, and does not in a read-only one; who reaches the network; and whether
    /// the sessions of all that stayed out of the person's.
    pub(super) fn probe(
        &self,
        harness: &dyn Harness,
        settings: &HarnessSettings,
        around: Option<&RepositoryRecord>,
        modes: &[Access],
        target: &Address,
    ) -> Vec<Finding> {
        let before = person::sessions(self.env(), harness);
        let mut findings = self.probe_access(harness, modes);
        let stayed = before.map(|before| person::sessions(self.env(), harness) == Some(before));
        findings.push(sessions(harness.name().as_str(), stayed));
        findings.extend(self.probe_network(harness, settings, around, target));
        findings
    }

    fn probe_access(&self, harness: &dyn Harness, modes: &[Access]) -> Vec<Finding> {
        let name = harness.name();
        let probes = modes.iter().map(|&access| match self.probe_in(harness, access) {
            Ok(job) => {
                let files = job.summary.changes.map_or(0, |totals| totals.files);
                let (outcome, failure) = (job.summary.outcome, job.error.as_ref());
                probe(name.as_str(), Probed { access, outcome, files, failure })
            }
            Err(failure) => failed(&format!("probe.{name}"), &failure),
        });
        probes.collect()
    }

    fn probe_in(&self, harness: &dyn Harness, access: Access) -> Result<JobDetail, Failure> {
        let place = self.store().area(Area::Probes)?;
        let name = format!("{}-{}-{}", harness.name(), std::process::id(), access as u8);
        let trash = Trash::open(self.store().home())?;
        let folder = place.path().join(&name);
        // What a probe left that was cut off.
        trash.take(&folder)?;
        place.create_dir(&name).map_err(StoreError::from)?;
        let ended = self.probe_at(&folder, harness, access);
        trash.take(&folder)?;
        trash.empty()?;
        ended
    }

    fn probe_at(&self, folder: &AbsPath, harness: &dyn Harness, access: Access) -> Result<JobDetail, Failure> {
        git::make_repository(folder).map_err(|error| Failure::internal(with_causes(&error)))?;
        let params = DelegateParams {
            brief: BriefSource::Text(BRIEF.to_owned()),
            harness: Some(harness.name().to_string()),
            access: Some(access),
            base: None,
            repository: Some(view::file_uri(folder.as_path())),
            model: None,
            with_user_config: None,
            isolation: None,
            in_place: None,
            // What the person configured is for results that they want.
            verify: (access == Access::Write).then(Vec::new),
            permissions: None,
            timeout_seconds: Some(LIMIT.as_secs()),
            stall_seconds: None,
        };
        let job: JobId = super::super::job_id(&self.delegate(&params, None)?.job_id)?;
        let deadline = Instant::now() + LIMIT + MARGIN;
        let ended = loop {
            let status = self.status(&job)?;
            match status.summary.state {
                SeenState::Finished => break status,
                SeenState::Lost => drop(self.cancel(&job)?),
                _ if Instant::now() >= deadline => {
                    self.cancel(&job)?;
                    break status;
                }
                _ => std::thread::sleep(LOOK_AGAIN),
            }
        };
        if ended.summary.state == SeenState::Finished {
            self.discard(&job)?;
            // Nobody asks for it any more; a list of jobs is no place for it.
            self.prune(&PruneParams {
                job_ids: vec![job.to_string()],
                older_than_seconds: None,
                keep_jobs: None,
                unapplied: false,
                records: true,
                dry_run: false,
                shown: None,
            })?;
        }
        Ok(ended)
    }
}
