//! `pactify sub approve`: allows or refuses what a repository proposes to run.

use std::path::PathBuf;

use pactify_core::job::setup::{ApprovalKind, Decision, FILE};
use pactify_core::protocol::ApproveParams;
use pactify_core::{Failure, FailureCode};

use super::{DONE, Ended, Terminal, place};

/// Allow, or refuse, the command that a repository wants to run in new trees
#[derive(Debug, clap::Args)]
#[command(after_help = "\
The command is [tree] setup in the pactify.toml of the commit that you are on. What you
decide holds for exactly this text in this repository; another text is asked about again.

Examples:
  pactify sub approve
  pactify sub approve --deny")]
pub(super) struct Args {
    /// A directory in the repository [default: the current one]
    #[arg(long, value_name = "DIR")]
    repo: Option<PathBuf>,
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
        let Some(proposal) = terminal.jobs.proposal(&repository)? else {
            let message = format!("the repository has no {FILE} with a setup command in its present commit");
            return Err(Failure::new(FailureCode::InvalidParams, message, "there is nothing to decide"));
        };
        output.note(&format!("{} wants to run this in each new tree:", proposal.repository));
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
        let kind = ApprovalKind::Setup;
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
