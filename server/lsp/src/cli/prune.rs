//! `pactify sub prune`: makes room.

use pactify_core::display::counted;
use pactify_core::protocol::{PruneParams, Pruned};
use pactify_core::{Failure, FailureCode};

use super::output::{CARE, GOOD, PLAIN};
use super::target::JobName;
use super::{DONE, Ended, Terminal};

/// Remove trees of old jobs, and old records when asked to
#[derive(Debug, clap::Args)]
#[command(after_help = "\
First the trees of jobs about which nothing is left to decide: their records, results
and the way to undo stay, only a resume is no longer possible. With --records, all of
such a job goes. A result that is not applied keeps its tree unless you name the job
or pass --unapplied, and is never removed itself: discard it first. So does work that
no capture took in. What goes with a tree and is nowhere else is named. Without --older-than
and --keep, the configuration's [retention] decides, or 30 days.

Examples:
  pactify sub prune --dry-run
  pactify sub prune --older-than 7d --keep 20 --yes
  pactify sub prune k3xq2a --records")]
pub(super) struct Args {
    /// Only these jobs, whatever their age
    #[arg(add = super::candidates::jobs())]
    job: Vec<JobName>,
    /// Only jobs that ended longer ago than this: 30d, 12h
    #[arg(long, value_name = "TIME", value_parser = super::duration::age)]
    older_than: Option<u64>,
    /// Keep so many of the newest jobs
    #[arg(long, value_name = "N")]
    keep: Option<u32>,
    /// Trees of results that are not applied, and of work that is not captured, too
    #[arg(long)]
    unapplied: bool,
    /// Whole records of decided jobs, too
    #[arg(long)]
    records: bool,
    /// Only say what would go
    #[arg(long, short = 'n')]
    dry_run: bool,
    /// Don't ask
    #[arg(long, short)]
    yes: bool,
    /// Print JSON; needs --yes or --dry-run
    #[arg(long)]
    pub(super) json: bool,
}

impl Args {
    pub(super) fn run(self, terminal: &Terminal) -> Ended {
        let output = &terminal.output;
        let job_ids = self.job.iter().map(|job| Ok(job.find(terminal)?.to_string())).collect::<Result<_, Failure>>()?;
        let mut params = PruneParams {
            job_ids,
            older_than_seconds: self.older_than,
            keep_jobs: self.keep,
            unapplied: self.unapplied,
            records: self.records,
            dry_run: true,
            shown: None,
        };
        if self.json && !self.yes && !self.dry_run {
            let message = "with --json nobody is asked";
            return Err(Failure::new(FailureCode::InvalidParams, message, "pass --dry-run to look, then --yes"));
        }
        let plan = terminal.jobs.prune(&params)?;
        if !self.json {
            tell(terminal, &plan);
        }
        let going = plan.jobs.iter().filter(|item| item.fate.goes()).count();
        if self.dry_run {
            if self.json {
                output.json(&plan);
            } else {
                output.note(&format!("{}, {} would be free", counted(going as u64, "job"), amount(plan.bytes)));
            }
            return Ok(DONE);
        }
        if !self.yes && going > 0 {
            let question = format!("Remove this, {} together?", amount(plan.bytes));
            let next = "pass --dry-run to look, then --yes";
            if !output.confirm(&question, "remove it", "nothing was removed", next)? {
                return Ok(FailureCode::WrongState.exit_code());
            }
        }
        params.dry_run = false;
        // What became old while the question stood was not shown.
        let going = plan.jobs.iter().filter(|item| item.fate.goes());
        params.shown = Some(going.map(|item| item.job_id.clone()).collect());
        let pruned = terminal.jobs.prune(&params)?;
        if self.json {
            output.json(&pruned);
        } else {
            for item in &pruned.jobs {
                if let Some(failure) = &item.failure {
                    output.note_styled(&[(&item.job_id, CARE), (" stays: ", PLAIN), (&failure.message, PLAIN)]);
                }
            }
            output.note(&format!("{} are free again", amount(pruned.bytes)));
        }
        let failed = pruned.jobs.into_iter().find_map(|item| item.failure);
        Ok(failed.map_or(DONE, |failure| failure.code.exit_code()))
    }
}

fn tell(terminal: &Terminal, plan: &Pruned) {
    for item in &plan.jobs {
        let (style, bytes) = if item.fate.goes() { (GOOD, amount(item.bytes)) } else { (PLAIN, String::new()) };
        let line = format!(" {bytes:>9}  {}: {}", item.title, item.why);
        terminal.output.styled(&[(&item.job_id, style), (&line, PLAIN)]);
        for lost in &item.lost {
            terminal.output.styled(&[("  goes for good: ", CARE), (lost, PLAIN)]);
        }
    }
}

/// `12.3 MiB`.
fn amount(bytes: u64) -> String {
    let units = [("GiB", 1_u64 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)];
    match units.into_iter().find(|(_, size)| bytes >= *size) {
        Some((unit, size)) => format!("{}.{} {unit}", bytes / size, bytes % size * 10 / size),
        None => format!("{bytes} B"),
    }
}
