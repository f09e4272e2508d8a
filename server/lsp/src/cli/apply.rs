//! `pactify sub apply`: puts a result into the checkout, all that was chosen or nothing.

use std::ffi::OsString;

use pactify_core::path::PathName;
use pactify_core::protocol::{Applied, ApplyParams, PreviewFormat, Selected, words};
use pactify_core::{Failure, FailureCode};

use super::diff::{path_name, print_summary, whole};
use super::output::{GOOD, PLAIN};
use super::target::JobName;
use super::{DONE, Ended, Terminal};

/// Put a job's changes into your checkout: all of them, or none
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Shows what it will do and asks. If anything stands in the way, every conflict is
listed and nothing is written. Files that execute by themselves later (editor
tasks, hooks, agent configuration) are written only when they are named with
--path or --confirm.

Examples:
  pactify sub apply last
  pactify sub apply last --path src/parse.rs --path tests/parse.rs
  pactify sub apply k3xq2a --confirm .vscode/tasks.json --yes")]
pub(super) struct Args {
    /// The job
    job: JobName,
    /// Only this path; may be given several times
    #[arg(long, value_name = "PATH")]
    path: Vec<OsString>,
    /// A sensitive path that you looked at and want; may be given several times
    #[arg(long, value_name = "PATH")]
    confirm: Vec<OsString>,
    /// Apply everything although something dangerous changed outside the job's tree
    #[arg(long)]
    confirm_outside: bool,
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
        let chosen: Vec<PathName> = self.path.iter().map(path_name).collect::<Result<_, _>>()?;
        let confirm_sensitive: Vec<PathName> = self.confirm.iter().map(path_name).collect::<Result<_, _>>()?;
        let mut preview = whole(terminal, &job, None, PreviewFormat::Summary)?;
        if !chosen.is_empty() {
            preview.files.retain(|file| chosen.contains(&file.path));
        }
        if !self.json {
            print_summary(output, &preview);
        }
        if !self.yes {
            let count = preview.files.len();
            match output.ask(&format!("Write these {count} paths into the checkout?")) {
                Some(true) => {}
                Some(false) => {
                    output.note("nothing was written");
                    return Ok(FailureCode::WrongState.exit_code());
                }
                None => {
                    let message = "nobody can be asked whether to write into the checkout";
                    return Err(Failure::new(FailureCode::InvalidParams, message, "look at the diff, then pass --yes"));
                }
            }
        }
        let select = chosen.into_iter().map(|path| Selected { path, groups: None }).collect::<Vec<_>>();
        let select = (!select.is_empty()).then_some(select);
        let (job_id, change_set, confirm_merges) = (job.to_string(), preview.change_set, vec![]);
        let confirm_outside = self.confirm_outside;
        let params = ApplyParams { job_id, change_set, select, confirm_sensitive, confirm_merges, confirm_outside };
        let applied = terminal.jobs.apply(&params)?;
        if self.json {
            output.json(&applied);
        } else {
            tell(terminal, &applied);
        }
        Ok(DONE)
    }
}

fn tell(terminal: &Terminal, applied: &Applied) {
    let output = &terminal.output;
    for path in &applied.applied {
        output.styled(&[("wrote ", GOOD), (&path.path, PLAIN)]);
    }
    for path in &applied.already {
        output.styled(&[("had it already ", PLAIN), (&path.path, PLAIN)]);
    }
    let state = words::disposition(applied.disposition).unwrap_or("nothing was left to write");
    output.note(&format!("{state}; nothing was staged or committed"));
}
