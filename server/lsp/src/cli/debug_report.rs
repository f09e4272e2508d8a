//! `pactify sub debug-report`: one redacted text for a bug report.

use super::{DONE, Ended, Terminal};

/// Print one redacted text to attach to a bug report
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Read it before you share it.

Example:
  pactify sub debug-report > report.txt")]
pub(super) struct Args {}

impl Args {
    pub(super) fn run(self, terminal: &Terminal) -> Ended {
        let Self {} = self;
        terminal.output.text(terminal.jobs.debug_report()?.text.trim_end());
        Ok(DONE)
    }
}
