//! `pactify sub retry`: a new job from the brief of an older one.

use pactify_core::job::access::Access;
use pactify_core::protocol::RetryParams;

use super::asked::Asked;
use super::target::JobName;
use super::{Ended, Terminal, brief, run};

/// Run a job again, as a new job from what your repository holds now; what you don't say is as the job had it
#[derive(Debug, clap::Args)]
#[command(after_help = "\
A job that had your own configuration of its agent CLI has it again, with the same agent CLI
and access; the model goes over to the same agent CLI.

Examples:
  pactify sub retry last
  pactify sub retry last --harness kimi
  pactify sub retry last --base working-tree --verify 'make test'
  pactify sub retry last --read-only --in-place
  pactify sub retry k3xq2a --detach")]
pub(super) struct Args {
    /// The job to repeat
    #[arg(add = super::candidates::jobs())]
    job: JobName,
    /// Another agent CLI than the job had
    #[arg(long, value_name = "NAME", add = super::candidates::harnesses())]
    harness: Option<String>,
    /// Let it change files
    #[arg(long, conflicts_with_all = ["read_only", "in_place"])]
    write: bool,
    #[command(flatten)]
    pub(super) asked: Asked,
}

impl Args {
    pub(super) fn run(self, terminal: &Terminal) -> Ended {
        let asked = &self.asked;
        let access = if self.write { Some(Access::Write) } else { asked.read_only.then_some(Access::ReadOnly) };
        let brief = asked.brief.as_deref().map(|file| brief::take(Some(file), terminal.env())).transpose()?;
        let params = RetryParams {
            job_id: self.job.find(terminal)?.to_string(),
            brief: brief.map(|taken| taken.text),
            harness: self.harness,
            access,
            base: asked.base,
            model: asked.model.clone(),
            with_user_config: asked.with_user_config(),
            in_place: asked.in_place(),
            verify: asked.verify(),
            permissions: asked.permissions,
        };
        let delegated = terminal.jobs.retry(&params, None)?;
        run::follow(terminal, &delegated, None, asked.detach, asked.json)
    }
}
