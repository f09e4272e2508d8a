//! `pactify sub export`: a result as a patch, or as a branch.

use pactify_core::protocol::{ExportForm, ExportParams};

use super::diff::incomplete;
use super::target::JobName;
use super::{DONE, Ended, Terminal};

/// Print a job's changes as a patch, or make a branch of them
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  pactify sub export last > change.patch
  pactify sub export last --branch
  pactify sub export k3xq2a --branch fix/parser")]
pub(super) struct Args {
    /// The job
    #[arg(default_value = "last", add = super::candidates::jobs())]
    job: JobName,
    /// Make a branch in your repository instead [default name: pactify/<job id>]
    #[arg(long, value_name = "NAME", num_args = 0..=1)]
    branch: Option<Option<String>>,
    /// Print JSON
    #[arg(long)]
    pub(super) json: bool,
}

impl Args {
    pub(super) fn run(self, terminal: &Terminal) -> Ended {
        let job = self.job.find(terminal)?;
        let (form, name) = match self.branch {
            None => (ExportForm::Patch, None),
            Some(name) => (ExportForm::Branch, name),
        };
        if let (ExportForm::Patch, false) = (form, self.json) {
            let (patch, lacks) = terminal.jobs.patch(&job, None)?;
            terminal.output.exact(&patch);
            return incomplete(lacks);
        }
        let exported = terminal.jobs.export(&ExportParams { job_id: job.to_string(), form, name })?;
        if self.json {
            terminal.output.json(&exported);
            return Ok(DONE);
        }
        if let Some(branch) = &exported.branch {
            terminal.output.text(branch);
        }
        Ok(DONE)
    }
}
