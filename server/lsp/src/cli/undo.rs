//! `pactify sub undo`: takes an apply back, all of it or nothing.

use pactify_core::protocol::{UndoParams, words};

use super::output::{GOOD, PLAIN};
use super::target::JobName;
use super::{DONE, Ended, Terminal};

/// Take an apply back: your checkout holds again what it held before
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Possible while every path that was written is exactly as it was left; otherwise
all paths that are not are listed and nothing is changed.

Examples:
  pactify sub undo last
  pactify sub undo k3xq2a --apply 1")]
pub(super) struct Args {
    /// The job
    #[arg(add = super::candidates::jobs())]
    job: JobName,
    /// The number of the apply, as `pactify sub show` lists it; the newest one that stands when absent
    #[arg(long, value_name = "N")]
    apply: Option<u32>,
    /// Print JSON
    #[arg(long)]
    pub(super) json: bool,
}

impl Args {
    pub(super) fn run(self, terminal: &Terminal) -> Ended {
        let job = self.job.find(terminal)?;
        let output = &terminal.output;
        let undone = terminal.jobs.undo(&UndoParams { job_id: job.to_string(), apply_id: self.apply })?;
        if self.json {
            output.json(&undone);
            return Ok(DONE);
        }
        for path in &undone.restored {
            output.styled(&[("restored ", GOOD), (&path.path, PLAIN)]);
        }
        let state = words::disposition(undone.disposition).unwrap_or("nothing of this job is applied");
        output.note(&format!("apply {} was undone; {state}", undone.apply));
        Ok(DONE)
    }
}
