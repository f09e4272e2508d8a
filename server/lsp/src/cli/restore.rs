//! `pactify sub restore`: puts back what changed outside a job's tree while it ran.

use anstyle::Style;
use pactify_core::fingerprint::{OutsideChange, Weight};
use pactify_core::protocol::{RestoreParams, RestoredOutside};
use pactify_core::{Failure, FailureCode};

use super::output::{BAD, CARE, FAINT, GOOD, Output, PLAIN};
use super::target::JobName;
use super::{DONE, Ended, Terminal};

/// Put back what changed outside a job's tree while it ran
#[derive(Debug, clap::Args)]
#[command(after_help = "\
While a job runs, git's configuration, hooks, refs, stash and worktrees of your
repository are watched. Without an id, everything listed that is more than
ordinary work is put back. What was changed again since is left alone.

Examples:
  pactify sub restore last --list
  pactify sub restore last 1-1 1-3 --yes
  pactify sub restore k3xq2a --yes")]
pub(super) struct Args {
    /// The job
    #[arg(add = super::candidates::jobs())]
    job: JobName,
    /// Ids of changes, as --list shows them
    id: Vec<String>,
    /// Only list what changed
    #[arg(long, conflicts_with_all = ["id", "yes"])]
    list: bool,
    /// Don't ask
    #[arg(long, short)]
    yes: bool,
    /// Print JSON; needs --list or --yes
    #[arg(long)]
    pub(super) json: bool,
}

impl Args {
    pub(super) fn run(self, terminal: &Terminal) -> Ended {
        let job = self.job.find(terminal)?;
        let output = &terminal.output;
        let outside = terminal.jobs.status(&job)?.outside;
        if self.list {
            match self.json {
                true => output.json(&outside),
                false if outside.is_empty() => output.text("nothing changed outside the worktree"),
                false => print_outside(output, &outside),
            }
            return Ok(DONE);
        }
        if self.json && !self.yes {
            let message = "--json needs --list or --yes";
            return Err(Failure::new(FailureCode::InvalidParams, message, "add one of them"));
        }
        if !self.yes {
            let wanted = |change: &&OutsideChange| match self.id.as_slice() {
                [] => change.restorable && change.weight != Weight::Ordinary,
                ids => ids.contains(&change.id),
            };
            let wanted: Vec<_> = outside.iter().filter(wanted).cloned().collect();
            print_outside(output, &wanted);
            let next = "look at --list, then pass --yes";
            if !output.confirm("Put these back?", "put them back", "nothing was put back", next)? {
                return Ok(FailureCode::WrongState.exit_code());
            }
        }
        let select = (!self.id.is_empty()).then_some(self.id);
        let restored = terminal.jobs.restore_outside(&RestoreParams { job_id: job.to_string(), select })?;
        match self.json {
            true => output.json(&restored),
            false => tell(output, &restored),
        }
        Ok(if restored.refused.is_empty() { DONE } else { FailureCode::ApplyConflict.exit_code() })
    }
}

fn tell(output: &Output, restored: &RestoredOutside) {
    for change in &restored.restored {
        output.styled(&[("put back ", GOOD), (&change.place, PLAIN)]);
        if let Some(note) = &change.note {
            output.note(&format!("note: {note}"));
        }
    }
    for change in &restored.refused {
        output.styled(&[("left ", BAD), (&change.place, PLAIN), (&format!(": {}", change.why), FAINT)]);
    }
}

/// The list of changes outside, for every command that shows it.
pub(super) fn print_outside(output: &Output, outside: &[OutsideChange]) {
    for change in outside {
        let (word, style): (&str, Style) = match change.weight {
            Weight::Dangerous => ("dangerous", BAD),
            Weight::Notable => ("changed", CARE),
            Weight::Ordinary => ("ordinary", FAINT),
        };
        let end = match (change.restored, change.restorable) {
            (true, _) => "  (was put back)",
            (false, true) => "",
            (false, false) => "  (cannot be put back)",
        };
        output.styled(&[
            (&format!("{:<6}", change.id), FAINT),
            (&format!("{word:<10}"), style),
            (&format!("{} ", change.place), PLAIN),
            (&change.what, PLAIN),
            (end, FAINT),
        ]);
    }
}
