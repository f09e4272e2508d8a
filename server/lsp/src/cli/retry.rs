//! `pactify sub retry`: a new job from the brief of an older one.

use pactify_core::protocol::RetryParams;

use super::target::JobName;
use super::{Ended, Terminal, run};

/// Run a job's brief again, as a new job from what your repository holds now
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  pactify sub retry last
  pactify sub retry last --harness kimi
  pactify sub retry k3xq2a --detach")]
pub(super) struct Args {
    /// The job to repeat
    job: JobName,
    /// Another agent CLI than the job had
    #[arg(long, value_name = "NAME")]
    harness: Option<String>,
    /// The model to ask for
    #[arg(long)]
    model: Option<String>,
    /// Give it your own configuration of the agent CLI, as far as the access mode lets it; a job that had it has it again
    #[arg(long)]
    with_user_config: bool,
    /// Print the new job's id and leave it running
    #[arg(long)]
    detach: bool,
    /// Print JSON
    #[arg(long)]
    pub(super) json: bool,
}

impl Args {
    pub(super) fn run(self, terminal: &Terminal) -> Ended {
        let params = RetryParams {
            job_id: self.job.find(terminal)?.to_string(),
            harness: self.harness,
            model: self.model,
            with_user_config: self.with_user_config.then_some(true),
        };
        let delegated = terminal.jobs.retry(&params, None)?;
        run::follow(terminal, &delegated, self.detach, self.json)
    }
}
