//! `pactify sub harnesses`: which agent CLIs there are.

use pactify_core::job::access::Access;
use pactify_core::protocol::{HarnessView, HarnessesParams};

use super::output::{BAD, FAINT, GOOD, PLAIN, STRONG};
use super::{DONE, Ended, Terminal, place};

/// List the agent CLIs that pactify can use, and what is installed
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Example:
  pactify sub harnesses --json | jq '.harnesses[] | select(.failure == null).name'")]
pub(super) struct Args {
    /// Print JSON
    #[arg(long)]
    pub(super) json: bool,
}

impl Args {
    pub(super) fn run(self, terminal: &Terminal) -> Ended {
        let list = terminal.jobs.harnesses(&HarnessesParams { repository: place::repository(None).ok() })?;
        if self.json {
            terminal.output.json(&list);
        } else {
            list.harnesses.iter().for_each(|harness| print(terminal, harness));
        }
        Ok(DONE)
    }
}

fn print(terminal: &Terminal, harness: &HarnessView) {
    let output = &terminal.output;
    let default = if harness.default { " (default)" } else { "" };
    let (state, style) = match (&harness.failure, &harness.version) {
        (Some(failure), _) => (failure.message.clone(), BAD),
        (None, Some(version)) => (version.clone(), GOOD),
        (None, None) => ("installed".to_owned(), GOOD),
    };
    output.styled(&[(&harness.name, STRONG), (default, FAINT), ("  ", PLAIN), (&state, style)]);
    let access: Vec<&str> =
        harness.access.iter().map(|access| if *access == Access::Write { "write" } else { "read-only" }).collect();
    let login = match harness.logged_in {
        Some(true) => ", logged in",
        Some(false) => ", not logged in",
        None => "",
    };
    let sandbox = if harness.sandbox { ", sandboxed" } else { ", no sandbox of the operating system" };
    output.styled(&[(&format!("  {}{sandbox}{login}", access.join(" and ")), FAINT)]);
    if let Some(executable) = &harness.executable {
        output.styled(&[(&format!("  {executable}"), FAINT)]);
    }
    if let Some(failure) = &harness.failure {
        output.text(&format!("  {}", failure.next));
    }
}
