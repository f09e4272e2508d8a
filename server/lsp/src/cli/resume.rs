//! `pactify sub resume`: another turn of a finished job's session.

use std::path::PathBuf;

use pactify_core::protocol::{Delegated, HarnessChoice, JobDetail, ResumeParams};

use super::target::JobName;
use super::{Ended, Terminal, brief, candidates, run};

/// Go on with a finished job: the same session and tree, another message
#[derive(Debug, clap::Args)]
#[command(after_help = "\
The message comes from --brief, else from standard input if something is piped in,
else from $VISUAL or $EDITOR.

Examples:
  echo 'Also cover the empty input' | pactify sub resume last
  pactify sub resume k3xq2a --brief more.md --detach")]
pub(super) struct Args {
    /// The job to go on with
    #[arg(add = super::candidates::jobs())]
    job: JobName,
    /// The file with the message; - is standard input
    #[arg(long, value_name = "FILE", value_hint = candidates::LEFT_TO_THE_SHELL)]
    brief: Option<PathBuf>,
    /// Print the job's id and leave it running
    #[arg(long)]
    detach: bool,
    /// Print JSON
    #[arg(long)]
    pub(super) json: bool,
}

impl Args {
    pub(super) fn run(self, terminal: &Terminal) -> Ended {
        let job = self.job.find(terminal)?;
        let message = brief::take(self.brief.as_deref(), terminal.env())?;
        let before = terminal.jobs.before_resume(&job)?.attempt;
        let resume = |message| terminal.jobs.resume(&ResumeParams { job_id: job.to_string(), message });
        let moved = message.give(resume)?;
        let JobDetail { summary, worktree, .. } = terminal.jobs.status(&job)?;
        let delegated = Delegated {
            job_id: moved.job_id,
            state: moved.state,
            worktree: worktree.unwrap_or(summary.repository),
            harness: summary.harness,
            harness_choice: HarnessChoice::Named,
            notices: Vec::new(),
        };
        run::follow(terminal, &delegated, before, self.detach, self.json)
    }
}
