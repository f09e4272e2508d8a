//! `pactify sub cancel`: ends a job that is not over.

use pactify_core::job::state::SeenState;

use super::target::JobName;
use super::{DONE, Ended, Terminal};

/// End a job that is not over; what it did so far is kept
#[derive(Debug, clap::Args)]
#[command(after_help = "\
A job whose host is gone is swept and captured instead.

Examples:
  pactify sub cancel last
  pactify sub cancel k3xq2a")]
pub(super) struct Args {
    /// The job
    #[arg(add = super::candidates::jobs())]
    job: JobName,
    /// Print JSON
    #[arg(long)]
    pub(super) json: bool,
}

impl Args {
    pub(super) fn run(self, terminal: &Terminal) -> Ended {
        let job = self.job.find(terminal)?;
        let before = terminal.jobs.status(&job)?;
        let moved = terminal.jobs.cancel(&job)?;
        let now = terminal.jobs.status(&job)?;
        if self.json {
            terminal.output.json(&moved);
        } else if before.summary.changes.is_none() && now.summary.changes.is_some() {
            terminal.output.text(&format!("captured what {job} left in its tree"));
        } else if before.summary.state == SeenState::Finished {
            terminal.output.note(&format!("{job} had ended before"));
        } else {
            terminal.output.text(&format!("cancelled {job}"));
        }
        Ok(DONE)
    }
}
