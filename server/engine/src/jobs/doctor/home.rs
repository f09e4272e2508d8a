//! `PACTIFY_HOME`, and what jobs left there that somebody should see to.

use pactify_core::doctor::{ok, warning};
use pactify_core::job::state::SeenState;
use pactify_core::protocol::Finding;
use pactify_core::{Failure, JobId};

use super::super::Jobs;
use crate::apply;
use crate::logins::quarantine::Quarantine;
use crate::logins::{LoginError, Logins};
use crate::store::Listed;

/// How many jobs are looked at.
const JOBS: usize = 1000;

/// How many are named.
const NAMED: usize = 5;

impl Jobs {
    pub(super) fn check_home(&self) -> Vec<Finding> {
        let mut findings = vec![self.check_modes()];
        findings.extend(self.check_jobs());
        findings.push(self.check_applies());
        findings.extend(self.check_quarantine());
        findings.extend(self.check_logins());
        findings
    }

    /// Nobody else may read what is in it, whatever a restore from a backup did to it.
    fn check_modes(&self) -> Finding {
        let home = self.store().home();
        match self.store().open_to_others() {
            Ok(open) if open.is_empty() => ok("home", format!("nobody else can read {home}")),
            Ok(open) => {
                let title = format!("others have rights to {} in {home}", open.join(", "));
                warning("home", title, format!("run `chmod -R go-rwx {home}`"))
            }
            Err(error) => unknown("home", &error.into()),
        }
    }

    fn check_jobs(&self) -> Vec<Finding> {
        let jobs = match self.store().list(None, JOBS) {
            Ok(page) => page.jobs,
            Err(error) => return vec![unknown("jobs", &error.into())],
        };
        let (mut lost, mut damaged) = (Vec::new(), Vec::new());
        for job in jobs {
            match job {
                Listed::Job { summary, seen: SeenState::Lost } => lost.push(summary.id.clone()),
                Listed::Damaged { id, .. } => damaged.push(id),
                Listed::Job { .. } | Listed::Newer { .. } => {}
            }
        }
        let mut findings = Vec::new();
        if let Some(first) = lost.first() {
            let next = format!("`pactify sub cancel {first}` ends what it left running, and captures what it did");
            findings.push(warning("jobs.lost", format!("the host of {} is gone", named(&lost)), next));
        }
        if let Some(first) = damaged.first() {
            let next = format!("`pactify sub show {first}` says what is wrong; restore it from a backup, or remove it");
            findings.push(warning("jobs.damaged", format!("the record of {} is damaged", named(&damaged)), next));
        }
        if findings.is_empty() {
            findings.push(ok("jobs", "no job was left without its host"));
        }
        findings
    }

    /// Applies that were cut off: the checkout may hold a part of them.
    fn check_applies(&self) -> Finding {
        match apply::interrupted(self.store()) {
            Ok(interrupted) if interrupted.is_empty() => ok("applies", "no apply was cut off"),
            Ok(interrupted) => {
                let jobs: Vec<JobId> = interrupted.iter().map(|apply| apply.job.clone()).collect();
                let title = format!("an apply of {} was cut off: the checkout may hold a part of it", named(&jobs));
                warning("applies", title, "the next apply, undo or discard in that repository takes it back")
            }
            Err(error) => unknown("applies", &error.into()),
        }
    }

    fn check_quarantine(&self) -> Vec<Finding> {
        let kept = match Quarantine::open(self.store()).and_then(|quarantine| quarantine.list()) {
            Ok(kept) => kept,
            Err(error) => return vec![unknown("logins.quarantine", &error.into())],
        };
        let finding = |(id, kept): &(String, crate::logins::quarantine::Kept)| {
            let title = format!("a login of {} is in the quarantine, as {}", kept.harness, kept.why);
            let next = format!(
                "`pactify sub login restore {id}` puts it into {}, `pactify sub login discard` removes it",
                kept.login
            );
            warning("logins.quarantine", title, next)
        };
        kept.iter().map(finding).collect()
    }

    /// Logins in use: by jobs that run, and by those after which nobody looked.
    fn check_logins(&self) -> Vec<Finding> {
        let looked = || -> Result<Vec<Finding>, LoginError> {
            let logins = Logins::open(self.store())?;
            let mut findings = Vec::new();
            for using in logins.uses_of(None)? {
                let (job, login) = (&using.job, &using.login);
                let seen = self.store().describe(job)?;
                if let Some(Listed::Job { seen, .. }) = seen
                    && !matches!(seen, SeenState::Lost | SeenState::Finished)
                {
                    if !logins.is_linked(&using) {
                        let title = format!("job {job} has a login of its own in place of the link to {login}");
                        findings.push(warning("logins.link", title, "it is looked at when the job ends"));
                    }
                } else {
                    let title = format!("nobody looked at the login {login} after job {job}");
                    let next = format!("`pactify sub cancel {job}` looks, and repairs the job where its host is gone");
                    findings.push(warning("logins.unsettled", title, next));
                }
            }
            Ok(findings)
        };
        looked().unwrap_or_else(|error| vec![unknown("logins", &error.into())])
    }
}

/// A look that failed is no reason to say that jobs cannot run.
fn unknown(id: &str, failure: &Failure) -> Finding {
    warning(id, failure.message.clone(), failure.next.clone())
}

/// `job a`, or `jobs a, b and 3 more`.
fn named(jobs: &[JobId]) -> String {
    let shown: Vec<_> = jobs.iter().take(NAMED).map(ToString::to_string).collect();
    let more = jobs.len().saturating_sub(NAMED);
    let word = if jobs.len() == 1 { "job" } else { "jobs" };
    let tail = if more > 0 { format!(" and {more} more") } else { String::new() };
    format!("{word} {}{tail}", shown.join(", "))
}
