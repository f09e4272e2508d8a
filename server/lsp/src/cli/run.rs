//! `pactify sub run`: a new job, watched to its end or left running.

use std::path::PathBuf;

use pactify_core::job::Isolation;
use pactify_core::job::access::Access;
use pactify_core::job::outcome::Outcome;
use pactify_core::job::state::SeenState;
use pactify_core::protocol::words::ending;
use pactify_core::protocol::{BriefSource, DelegateParams, Delegated, HarnessChoice, JobDetail, JobStatus, JobSummary};
use pactify_core::{Failure, FailureCode, JobId};

use super::asked::Asked;
use super::output::{FAINT, PLAIN, style_of};
use super::watch::{Watched, watch};
use super::{DONE, Ended, Terminal, brief, candidates, duration, place};

/// Run a job: an agent works on your brief in a tree of its own
#[derive(Debug, clap::Args)]
#[command(mut_arg("in_place", |arg| arg.requires("read_only")), after_help = "\
The brief comes from --brief, else from standard input if something is piped in,
else from $VISUAL or $EDITOR. The agent's last words go to standard output.
Ctrl-C asks the job to cancel; a second Ctrl-C leaves it running.
What you don't say is as your configuration says; where that says nothing, the job may change
files, starts from HEAD's commit, and is granted what its agent asks for.

Examples:
  echo 'Fix the failing test in src/parse.rs' | pactify sub run
  pactify sub run --read-only --brief question.md
  pactify sub run codex --model gpt-5.5 --timeout 30m --detach < task.md")]
pub(super) struct Args {
    /// The agent CLI to use [default: your configuration's, else the first found]
    #[arg(add = super::candidates::harnesses())]
    harness: Option<String>,
    #[command(flatten)]
    pub(super) asked: Asked,
    /// End it after this long: 90s, 30m, 2h
    #[arg(long, value_name = "DURATION", value_parser = duration::seconds)]
    timeout: Option<u64>,
    /// End it after this long without a sign of life
    #[arg(long, value_name = "DURATION", value_parser = duration::seconds)]
    stall: Option<u64>,
    /// Use a linked worktree of your repository instead of a private git directory
    #[arg(long, conflicts_with = "in_place")]
    linked: bool,
    /// Accepted for scripts; every job works in a worktree
    #[arg(long, hide = true)]
    worktree: bool,
    /// A directory in the repository to work on [default: the current one]
    #[arg(long, value_name = "DIR", value_hint = candidates::LEFT_TO_THE_SHELL)]
    repo: Option<PathBuf>,
}

impl Args {
    pub(super) fn run(self, terminal: &Terminal) -> Ended {
        let brief = brief::take(self.asked.brief.as_deref(), terminal.env())?;
        let delegate = |brief| {
            let params = self.params(brief)?;
            terminal.jobs.delegate(&params, None)
        };
        follow(terminal, &brief.give(delegate)?, None, self.asked.detach, self.asked.json)
    }

    fn params(&self, brief: String) -> Result<DelegateParams, Failure> {
        let asked = &self.asked;
        Ok(DelegateParams {
            brief: BriefSource::Text(brief),
            harness: self.harness.clone(),
            access: asked.read_only.then_some(Access::ReadOnly),
            base: asked.base,
            repository: Some(place::repository(self.repo.as_deref())?),
            model: asked.model.clone(),
            with_user_config: asked.with_user_config(),
            isolation: self.linked.then_some(Isolation::Linked),
            in_place: asked.in_place(),
            verify: asked.verify(),
            permissions: asked.permissions,
            timeout_seconds: self.timeout,
            stall_seconds: self.stall,
        })
    }
}

/// Watches a new job, or one that goes on after the attempt `before`, to its end, unless the person wants only its id.
pub(super) fn follow(
    terminal: &Terminal,
    delegated: &Delegated,
    before: Option<u32>,
    detach: bool,
    json: bool,
) -> Ended {
    let output = &terminal.output;
    if detach {
        for notice in &delegated.notices {
            output.note(&format!("note: {notice}"));
        }
        if json {
            output.json(delegated)
        } else {
            output.text(&delegated.job_id)
        }
        return Ok(DONE);
    }
    let by = format!(" by {}{}", delegated.harness, why(delegated.harness_choice));
    output.note_styled(&[("job ", FAINT), (&delegated.job_id, PLAIN), (&by, FAINT)]);
    let job: JobId = delegated.job_id.parse().map_err(|error| Failure::internal(format!("a bad job id: {error}")))?;
    match watch(terminal, &job, &delegated.notices, before)? {
        Watched::TakenBack => Err(Failure::new(
            FailureCode::WrongState,
            format!("job {job} does not go on: its resume was taken back, or its host ended"),
            format!("resume it again if that was not meant; `pactify sub logs {job}` may tell more"),
        )),
        Watched::Left => {
            output.note(&format!("{job} goes on by itself; see it with `pactify sub show {job}`"));
            Ok(DONE)
        }
        Watched::Over(detail) => Ok(tell_end(terminal, *detail, json)),
    }
}

/// Why the job's harness is the one that it is, where nobody named it.
fn why(choice: HarnessChoice) -> &'static str {
    match choice {
        HarnessChoice::Named => "",
        HarnessChoice::Configured => ", your default",
        HarnessChoice::FirstFound => ", the first harness that was found",
    }
}

/// The commands for a result that nobody has decided about.
pub(super) fn commands(job: &JobSummary) -> Option<String> {
    let has_changes = job.changes.is_some_and(|totals| totals.files > 0);
    let is_open = job.state == SeenState::Finished && job.disposition.is_open();
    (has_changes && is_open).then(|| format!("  pactify sub diff {0}\n  pactify sub apply {0}", job.id))
}

fn tell_end(terminal: &Terminal, detail: JobDetail, json: bool) -> u8 {
    let output = &terminal.output;
    output.end_status();
    let ending = ending(&detail);
    output.note_styled(&[(&ending.what, style_of(ending.tone)), ("; ", PLAIN), (&ending.next, PLAIN)]);
    let JobDetail { summary, final_message, .. } = &detail;
    if let Some(commands) = commands(summary) {
        output.note(&commands);
    }
    let code = match (summary.outcome, &detail.error) {
        // Why it failed says more than that it did.
        (Some(Outcome::Failed), Some(error)) => error.code.exit_code(),
        (Some(outcome), _) => outcome.exit_code(),
        // One that is lost for good.
        (None, _) => 1,
    };
    match final_message {
        _ if json => output.json(&JobStatus { job: detail }),
        Some(message) => output.text(message.trim_end()),
        None => {}
    }
    code
}
