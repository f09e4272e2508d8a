//! `pactify sub events`: what happened to a job, as it was recorded.

use pactify_core::Failure;
use pactify_core::job::state::SeenState;
use pactify_core::protocol::{EventView, words};

use super::output::{FAINT, PLAIN};
use super::target::JobName;
use super::{DONE, Ended, Terminal};
use crate::look::{Look, Next};

/// Print what happened to a job
#[derive(Debug, clap::Args)]
#[command(after_help = "\
With --json each line is one event of docs/protocol.md.

Examples:
  pactify sub events
  pactify sub events last --follow
  pactify sub events k3xq2a --json | jq -r 'select(.event.type == \"message\").event.text'")]
pub(super) struct Args {
    /// The job
    #[arg(default_value = "last", add = super::candidates::jobs())]
    job: JobName,
    /// Go on until the job is over
    #[arg(long, short)]
    follow: bool,
    /// Print JSON, one event a line
    #[arg(long)]
    pub(super) json: bool,
}

impl Args {
    pub(super) fn run(self, terminal: &Terminal) -> Ended {
        let job = self.job.find(terminal)?;
        let mut look = Look::at(&terminal.jobs, &job, 0, None)?;
        loop {
            look.events.iter().for_each(|event| self.print(terminal, event));
            let over = matches!(look.job.summary.state, SeenState::Finished | SeenState::Lost);
            if over && self.follow && look.job.summary.state == SeenState::Lost {
                return Err(lost(&job.to_string()));
            }
            if over || !self.follow {
                return Ok(DONE);
            }
            look = Look::next(&terminal.jobs, &job, look.next, Next::Await)?;
        }
    }

    fn print(&self, terminal: &Terminal, event: &EventView) {
        if self.json {
            terminal.output.json(&event.clone().in_words());
        } else if let Some(line) = words::event(event) {
            let at = event.at.strftime("%H:%M:%S").to_string();
            terminal.output.styled(&[(&format!("{at}  "), FAINT), (&line, PLAIN)]);
        }
    }
}

fn lost(job: &str) -> Failure {
    Failure::new(
        pactify_core::FailureCode::HostUnreachable,
        format!("the host of {job} is gone"),
        format!("`pactify sub cancel {job}` captures what it left"),
    )
}
