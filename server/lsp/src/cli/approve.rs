//! `pactify sub approve`: allows or refuses what a repository or a brief proposes to run.

use std::path::PathBuf;

use pactify_core::job::setup::{ApprovalKind, Decision, FILE};
use pactify_core::protocol::ApproveParams;
use pactify_core::{Failure, FailureCode};

use super::{DONE, Ended, Terminal, brief, candidates, place};

/// Allow, or refuse, commands that a repository or a brief wants to run
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Without --brief it is [tree] setup in the pactify.toml of the commit that you are on. What you
decide holds for exactly this text in this repository; another text is asked about again.

Examples:
  pactify sub approve
  pactify sub approve --deny
  pactify sub approve --brief task.md")]
pub(super) struct Args {
    /// A directory in the repository [default: the current one]
    #[arg(long, value_name = "DIR", value_hint = candidates::LEFT_TO_THE_SHELL)]
    repo: Option<PathBuf>,
    /// Decide about the verification that this brief proposes in its front matter, instead
    #[arg(long, value_name = "FILE", value_hint = candidates::LEFT_TO_THE_SHELL)]
    brief: Option<PathBuf>,
    /// Run jobs without it
    #[arg(long)]
    deny: bool,
    /// Don't ask
    #[arg(long, short, conflicts_with = "deny")]
    yes: bool,
    /// Print JSON; needs --yes or --deny
    #[arg(long)]
    pub(super) json: bool,
}

impl Args {
    pub(super) fn run(self, terminal: &Terminal) -> Ended {
        let output = &terminal.output;
        let repository = place::repository(self.repo.as_deref())?;
        let (kind, proposal) = match &self.brief {
            None => (ApprovalKind::Setup, terminal.jobs.proposal(&repository)?),
            Some(file) => {
                let brief = brief::take(Some(file), terminal.env())?.text;
                (ApprovalKind::Verify, terminal.jobs.proposal_of(&brief, &repository)?)
            }
        };
        let Some(proposal) = proposal else {
            let message = match kind {
                ApprovalKind::Setup => {
                    format!("the repository has no {FILE} with a setup command in its present commit")
                }
                ApprovalKind::Verify => "the brief proposes no verification that you did not name yourself".to_owned(),
            };
            return Err(Failure::new(FailureCode::InvalidParams, message, "there is nothing to decide"));
        };
        output.note(&match kind {
            ApprovalKind::Setup => format!("{} wants to run this in each new tree:", proposal.repository),
            ApprovalKind::Verify => format!("the brief wants results for {} verified by:", proposal.repository),
        });
        for line in proposal.text.lines() {
            output.note(&format!("  {line}"));
        }
        let asked = (!self.deny && !self.yes && !self.json).then(|| output.ask("Allow it?")).flatten();
        let decision = match (self.deny, self.yes, asked) {
            (true, ..) => Decision::Deny,
            (_, true, _) | (_, _, Some(true)) => Decision::Allow,
            (_, _, Some(false)) => {
                output.note("nothing was decided; --deny runs jobs without it");
                return Ok(FailureCode::WrongState.exit_code());
            }
            (_, _, None) => {
                let message = "nobody can be asked whether to allow it";
                return Err(Failure::new(FailureCode::InvalidParams, message, "pass --yes or --deny"));
            }
        };
        let params = ApproveParams { repository: Some(repository), kind, text: proposal.text, decision };
        let approved = terminal.jobs.approve(&params)?;
        match decision {
            _ if self.json => output.json(&approved),
            Decision::Allow => output.text("allowed"),
            Decision::Deny => output.text("denied"),
        }
        Ok(DONE)
    }
}
