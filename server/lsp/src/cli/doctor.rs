//! `pactify sub doctor`: looks at everything that jobs depend on.

use pactify_core::protocol::{DoctorParams, Severity};

use super::output::{BAD, CARE, GOOD, PLAIN};
use super::{DONE, Ended, Terminal, place};

/// Check everything that jobs depend on, and say what to do about it
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Ends with 1 if something keeps jobs from running. With --json it prints the same findings.

Examples:
  pactify sub doctor
  pactify sub doctor codex --probe")]
pub(super) struct Args {
    /// Only this agent CLI
    #[arg(add = super::candidates::harnesses())]
    harness: Option<String>,
    /// Also have each agent CLI in use try to write, in a short job of each access mode: that costs tokens
    #[arg(long)]
    probe: bool,
    /// Print JSON
    #[arg(long)]
    pub(super) json: bool,
}

impl Args {
    pub(super) fn run(self, terminal: &Terminal) -> Ended {
        let found = terminal.jobs.doctor(&DoctorParams {
            harness: self.harness,
            probe: self.probe,
            repository: place::repository(None).ok(),
        })?;
        let output = &terminal.output;
        if self.json {
            output.json(&found);
        } else {
            for finding in &found.findings {
                let (mark, style) = match finding.severity {
                    Severity::Error => ("error    ", BAD),
                    Severity::Warning => ("warning  ", CARE),
                    Severity::Ok => ("ok       ", GOOD),
                };
                output.styled(&[(mark, style), (&finding.title, PLAIN)]);
                for more in [&finding.detail, &finding.next].into_iter().filter(|text| !text.is_empty()) {
                    more.lines().for_each(|line| output.text(&format!("         {line}")));
                }
            }
        }
        let is_broken = found.findings.iter().any(|finding| finding.severity == Severity::Error);
        Ok(if is_broken { 1 } else { DONE })
    }
}
