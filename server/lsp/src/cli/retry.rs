//! `pactify sub retry`: a new job from the brief of an older one.

use std::path::PathBuf;

use pactify_core::job::BaseKind;
use pactify_core::job::access::Access;
use pactify_core::permission::Policy;
use pactify_core::protocol::RetryParams;

use super::target::JobName;
use super::{Ended, Terminal, brief, candidates, run};

/// Run a job again, as a new job from what your repository holds now; what you don't say is as the job had it
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  pactify sub retry last
  pactify sub retry last --harness kimi
  pactify sub retry last --base working-tree --verify 'make test'
  pactify sub retry k3xq2a --detach")]
pub(super) struct Args {
    /// The job to repeat
    #[arg(add = super::candidates::jobs())]
    job: JobName,
    /// Another agent CLI than the job had
    #[arg(long, value_name = "NAME", add = super::candidates::harnesses())]
    harness: Option<String>,
    /// Let it change files
    #[arg(long, conflicts_with = "read_only")]
    write: bool,
    /// Let it look, and fail it if it changes anything
    #[arg(long)]
    read_only: bool,
    /// What it starts from: HEAD's commit, or that with your uncommitted changes
    #[arg(long, value_name = "BASE", value_parser = run::base())]
    base: Option<BaseKind>,
    /// A command that the result has to pass, instead of the job's; can be repeated
    #[arg(long, value_name = "COMMAND", conflicts_with = "no_verify")]
    verify: Vec<String>,
    /// Take the result unverified
    #[arg(long)]
    no_verify: bool,
    /// The model to ask for
    #[arg(long)]
    model: Option<String>,
    /// Give it your own configuration of the agent CLI, as far as the access mode lets it; a job that had it has it again,
    /// with the same agent CLI and access
    #[arg(long)]
    with_user_config: bool,
    /// Who answers what the agent asks for: `allow` grants everything, `ask` asks you
    #[arg(long, value_name = "WHO", value_parser = run::policy())]
    permissions: Option<Policy>,
    /// A file with another brief; - is standard input
    #[arg(long, value_name = "FILE", value_hint = candidates::LEFT_TO_THE_SHELL)]
    brief: Option<PathBuf>,
    /// Print the new job's id and leave it running
    #[arg(long)]
    detach: bool,
    /// Print JSON
    #[arg(long)]
    pub(super) json: bool,
}

impl Args {
    pub(super) fn run(self, terminal: &Terminal) -> Ended {
        let access = if self.write { Some(Access::Write) } else { self.read_only.then_some(Access::ReadOnly) };
        let brief = self.brief.as_deref().map(|file| brief::take(Some(file), terminal.env())).transpose()?;
        let brief = brief.map(|taken| taken.text);
        let params = RetryParams {
            job_id: self.job.find(terminal)?.to_string(),
            brief,
            harness: self.harness,
            access,
            base: self.base,
            model: self.model,
            with_user_config: self.with_user_config.then_some(true),
            in_place: None,
            verify: (self.no_verify || !self.verify.is_empty()).then_some(self.verify),
            permissions: self.permissions,
        };
        let delegated = terminal.jobs.retry(&params, None)?;
        run::follow(terminal, &delegated, self.detach, self.json)
    }
}
