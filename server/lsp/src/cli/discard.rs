//! `pactify sub discard`: gives a result up.

use pactify_core::FailureCode;
use pactify_core::protocol::view::totals_line;

use super::target::JobName;
use super::{DONE, Ended, Terminal};

/// Give a job's changes up and remove its tree
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Your checkout is not touched, and the job's record stays. What no capture took in goes
with the tree; it is named before.

Examples:
  pactify sub discard last
  pactify sub discard k3xq2a --yes")]
pub(super) struct Args {
    /// The job
    #[arg(add = super::candidates::jobs())]
    job: JobName,
    /// Don't ask
    #[arg(long, short)]
    yes: bool,
    /// Print JSON; needs --yes
    #[arg(long, requires = "yes")]
    pub(super) json: bool,
}

impl Args {
    pub(super) fn run(self, terminal: &Terminal) -> Ended {
        let job = self.job.find(terminal)?;
        let output = &terminal.output;
        let detail = terminal.jobs.status(&job)?;
        let open = detail.summary.changes.filter(|totals| totals.files > 0 && detail.summary.disposition.is_open());
        let title = &detail.summary.title;
        let question = match open {
            Some(totals) => Some(format!("Give up {} of {title:?}?", totals_line(totals))),
            None if detail.only_in_tree.is_empty() => None,
            None => Some(format!("Give up what is only in the tree of {title:?}?")),
        };
        if let Some(question) = question.filter(|_| !self.yes) {
            detail.only_in_tree.iter().for_each(|lost| output.note(&format!("goes for good: {lost}")));
            let next = "look at the diff, or at the tree (`pactify sub show` says where), then pass --yes";
            if !output.confirm(&question, "give the changes up", "nothing was discarded", next)? {
                return Ok(FailureCode::WrongState.exit_code());
            }
        }
        let moved = terminal.jobs.discard(&job)?;
        if self.json {
            output.json(&moved);
        } else {
            output.text(&format!("discarded {job}"));
        }
        Ok(DONE)
    }
}
