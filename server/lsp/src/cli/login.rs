//! `pactify sub login`: logins in the quarantine, and those that pactify keeps itself.

use pactify_core::protocol::LoginList;
use pactify_core::{Failure, FailureCode};

use super::output::{CARE, FAINT, PLAIN, STRONG};
use super::{DONE, Ended, Terminal, place};

/// Log a harness in for jobs, or see to logins that could not be written back
#[derive(Debug, clap::Args)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "\
Jobs use the login that you have, where it is. Only a harness whose login cannot be shared
with a job needs one of its own: opencode 2.x. Naming it here runs its own login, in a home
that pactify keeps for it.

A login that a job refreshed, and that could not be written back to yours, is kept apart;
without arguments this lists what is there.

Examples:
  pactify sub login
  pactify sub login opencode
  pactify sub login restore 20261129T221500Z-20261129-221011-k3xq2a-codex"
)]
pub(super) struct Args {
    #[command(subcommand)]
    verb: Option<Verb>,
    /// The agent CLI to log in
    #[arg(add = super::candidates::harnesses())]
    harness: Option<String>,
    /// Print JSON
    #[arg(long, global = true)]
    pub(super) json: bool,
}

#[derive(Debug, clap::Subcommand)]
enum Verb {
    /// Put a login where it belongs; what stands there takes its place in the quarantine
    Restore {
        /// Its name, as the list has it
        id: String,
    },
    /// Remove a login from the quarantine for good
    Discard {
        /// Its name, as the list has it
        id: String,
        /// Don't ask
        #[arg(long, short)]
        yes: bool,
    },
}

impl Args {
    pub(super) fn run(self, terminal: &Terminal) -> Ended {
        let output = &terminal.output;
        match (self.verb, self.harness) {
            (Some(Verb::Restore { id }), _) => {
                let restored = terminal.jobs.restore_login(&id)?;
                if self.json {
                    output.json(&restored);
                } else {
                    output.text(&format!("{} is what it was in the quarantine", restored.login));
                    if let Some(replaced) = &restored.replaced {
                        output.note(&format!("what stood there is kept as {replaced}"));
                    }
                }
            }
            (Some(Verb::Discard { id, yes }), _) => {
                let question = "Remove this login for good?";
                let next = "pass --yes";
                if !yes && !output.confirm(question, "remove it", "nothing was removed", next)? {
                    return Ok(FailureCode::WrongState.exit_code());
                }
                terminal.jobs.discard_login(&id)?;
                output.note("removed");
            }
            (None, Some(_)) if self.json => {
                let message = "a login talks to you, and prints no JSON";
                return Err(Failure::new(FailureCode::InvalidParams, message, "leave --json out"));
            }
            (None, Some(harness)) => {
                if !terminal.jobs.log_in(&harness, place::repository(None).ok().as_deref())? {
                    output.note(&format!("{harness} did not end well: jobs have the login that they had"));
                    return Ok(1);
                }
            }
            (None, None) => {
                let list = terminal.jobs.logins()?;
                if self.json {
                    output.json(&list);
                } else {
                    tell(terminal, &list);
                }
            }
        }
        Ok(DONE)
    }
}

fn tell(terminal: &Terminal, list: &LoginList) {
    let output = &terminal.output;
    if list.quarantined.is_empty() {
        output.note("no login is in the quarantine");
    }
    for login in &list.quarantined {
        output.styled(&[(&login.id, STRONG), ("  ", PLAIN), (&login.login, PLAIN)]);
        output.styled(&[("  not written back, as ", CARE), (&login.why, CARE)]);
    }
    for login in &list.in_use {
        let line = format!("{} is in use by job {}", login.login, login.job_id);
        output.styled(&[(&line, FAINT)]);
    }
}
