//! `pactify sub list`: jobs, newest first.

use std::path::PathBuf;

use pactify_core::FailureCode;
use pactify_core::protocol::view::totals_line;
use pactify_core::protocol::{JobList, StatusParams, words};

use super::output::{BAD, FAINT, GOOD, PLAIN, STRONG};
use super::{DONE, Ended, Terminal, candidates, place};

/// List jobs, newest first
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Shows the jobs of the repository you are in that are not decided yet; outside of
one, those of all repositories.

Examples:
  pactify sub list
  pactify sub list --all --everywhere
  pactify sub list --json | jq '.jobs[].id'")]
pub(super) struct Args {
    /// Also jobs that were applied or discarded
    #[arg(long)]
    all: bool,
    /// Of every repository
    #[arg(long, conflicts_with = "repo")]
    everywhere: bool,
    /// A directory in the repository [default: the current one]
    #[arg(long, value_name = "DIR", value_hint = candidates::LEFT_TO_THE_SHELL)]
    repo: Option<PathBuf>,
    /// At most this many
    #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=500))]
    limit: u32,
    /// Print JSON
    #[arg(long)]
    pub(super) json: bool,
}

impl Args {
    pub(super) fn run(self, terminal: &Terminal) -> Ended {
        let repository = if self.everywhere { None } else { Some(place::repository(self.repo.as_deref())?) };
        let mut params =
            StatusParams { job_id: None, repository, all: self.all, cursor: None, limit: Some(self.limit) };
        let list = match terminal.jobs.list(&params) {
            Err(failure) if failure.code == FailureCode::NoRepository && self.repo.is_none() => {
                params.repository = None;
                terminal.jobs.list(&params)?
            }
            list => list?,
        };
        if self.json {
            terminal.output.json(&list);
        } else {
            print(terminal, &list);
        }
        Ok(DONE)
    }
}

fn print(terminal: &Terminal, list: &JobList) {
    let output = &terminal.output;
    let now = terminal.env().now();
    for job in &list.jobs {
        let state = words::state(job);
        let style = match state {
            "succeeded" => GOOD,
            "failed" | "lost" | "timed out" | "stalled" | "read-only violated" | "no result" => BAD,
            _ => PLAIN,
        };
        let mut details = vec![words::age(now, job.created_at), job.harness.clone()];
        details.extend(job.changes.map(totals_line));
        details.extend(words::disposition(job.disposition).map(str::to_owned));
        output.styled(&[
            (&job.id, STRONG),
            ("  ", PLAIN),
            (&format!("{state:<12}"), style),
            (&format!(" {}  ", job.title), PLAIN),
            (&details.join(", "), FAINT),
        ]);
    }
    for job in &list.unreadable {
        output.note(&format!("{}  cannot be shown: {}: {}", job.job_id, job.failure, job.failure.next));
    }
    if list.jobs.is_empty() && list.unreadable.is_empty() {
        output.note("no jobs here; `pactify sub list --all --everywhere` lists every one");
    }
    if list.next.is_some() {
        output.note("there are more: raise --limit");
    }
}
