//! `pactify sub answer`: answers what a job's harness asks for.

use pactify_core::permission::{PermissionOption, grant, refusal};
use pactify_core::protocol::{AnswerParams, WaitingView, words};
use pactify_core::{Failure, FailureCode, JobId};

use super::output::{FAINT, PLAIN, STRONG};
use super::target::JobName;
use super::{DONE, Ended, Terminal};

/// Answer what a job asks for; without an answer, show what it asks
#[derive(Debug, clap::Args)]
#[command(after_help = "\
A job asks where it was started with `--permissions ask`. What nobody answers in time is denied.

Examples:
  pactify sub answer last
  pactify sub answer last --allow
  pactify sub answer k3xq2a allow-always --request 7")]
pub(super) struct Args {
    /// The job
    #[arg(add = super::candidates::jobs())]
    job: JobName,
    /// The id of the answer
    #[arg(value_name = "ANSWER", conflicts_with_all = ["allow", "deny"])]
    option: Option<String>,
    /// Yes, this time where that is possible
    #[arg(long, conflicts_with = "deny")]
    allow: bool,
    /// No, this time where that is possible
    #[arg(long)]
    deny: bool,
    /// Which request, where several are open
    #[arg(long, value_name = "ID")]
    request: Option<String>,
    /// Print JSON
    #[arg(long)]
    pub(super) json: bool,
}

impl Args {
    pub(super) fn run(self, terminal: &Terminal) -> Ended {
        let job = self.job.find(terminal)?;
        let open = terminal.jobs.status(&job)?.requests;
        if self.option.is_none() && !self.allow && !self.deny {
            if self.json {
                terminal.output.json(&serde_json::json!({"requests": open}));
            } else {
                show(terminal, &job, &open);
            }
            return Ok(DONE);
        }
        let request_id = match (&self.request, open.as_slice()) {
            (Some(id), _) => id.clone(),
            (None, [only]) => only.request_id.clone(),
            (None, []) => return Err(none(&job)),
            (None, several) => return Err(which(several)),
        };
        let option_id = self.chosen(open.iter().find(|waiting| waiting.request_id == request_id))?;
        let params = AnswerParams { job_id: job.to_string(), request_id, option_id };
        let moved = terminal.jobs.answer(&params)?;
        if self.json {
            terminal.output.json(&moved);
        } else {
            terminal.output.text(&format!("answered {job}"));
        }
        Ok(DONE)
    }

    fn chosen(&self, waiting: Option<&WaitingView>) -> Result<String, Failure> {
        if let Some(option) = &self.option {
            return Ok(option.clone());
        }
        // Of a request that is not open there is nothing to choose; the engine says so.
        let Some(waiting) = waiting else { return Ok(String::new()) };
        let pick: fn(&[PermissionOption]) -> Option<&PermissionOption> = if self.allow { grant } else { refusal };
        pick(&waiting.options).map(|option| option.id.clone()).ok_or_else(|| {
            let message = format!("the request has no answer that means {}", if self.allow { "yes" } else { "no" });
            Failure::new(FailureCode::InvalidParams, message, "name one of its answers, or cancel the job")
        })
    }
}

fn show(terminal: &Terminal, job: &JobId, open: &[WaitingView]) {
    let output = &terminal.output;
    if open.is_empty() {
        output.note(&format!("{job} waits for no answer"));
    }
    for waiting in open {
        let since = format!(" ({})", words::age(terminal.env().now(), waiting.since));
        output.styled(&[(&waiting.title, STRONG), (&since, FAINT)]);
        detail(waiting, |line| output.text(line));
        for (name, option) in words::choices(waiting) {
            let command = format!("pactify sub answer {job} {} --request {}", option.id, waiting.request_id);
            output.styled(&[("  ", PLAIN), (&name, PLAIN), ("  ", PLAIN), (&command, FAINT)]);
        }
    }
}

/// All that is asked for, line by line, where that is more than the title.
pub(super) fn detail(waiting: &WaitingView, show: impl Fn(&str)) {
    waiting.detail.iter().flat_map(|detail| detail.lines()).for_each(|line| show(&format!("    {line}")));
}

fn none(job: &JobId) -> Failure {
    let next = "`pactify sub show` tells what it does";
    Failure::new(FailureCode::RequestNotOpen, format!("job {job} waits for no answer"), next)
}

fn which(open: &[WaitingView]) -> Failure {
    let ids: Vec<&str> = open.iter().map(|waiting| waiting.request_id.as_str()).collect();
    let message = format!("{} requests are open: {}", ids.len(), ids.join(", "));
    Failure::new(
        FailureCode::InvalidParams,
        message,
        "name one with --request; without an answer the command shows them",
    )
}
