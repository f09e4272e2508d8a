//! What kimi's words over the protocol are worth.
//!
//! A turn whose provider refused ends as `end_turn`, without a word; a question to the person comes as a permission.
//! The verdict on a turn is therefore [`super::records`]'s: without them no turn of kimi's is believed.

use super::super::acp::{Ask, Dialect, Finding, Refusal};
use super::super::failure::{self, EVENTS, Speaker};
use super::super::notices::one_line;
use super::super::{Evidence, Reading, Request};
use super::config::READING;
use super::records::{self, Offered, Reader};
use super::{AGENT, STATE, TESTED_VERSION};
use crate::job::access::Access;
use crate::{Failure, FailureCode};

const SPEAKER: Speaker<'_> = Speaker {
    agent: AGENT,
    log_in: "run `kimi login` in a terminal, or see to the provider's key in kimi's own config.toml; then retry the job",
};

/// Measured: files that look like secrets and links out of the workspace, tools that are switched off, plan mode, a
/// hook that gives no reason.
const REFUSALS: &[Refusal] = &[
    Refusal("\"", "Access is blocked"),
    Refusal("Tool \"", "is disabled by the active tool policy"),
    Refusal("Tool \"", "not found"),
    Refusal("Plan mode is active.", ""),
    Refusal("Blocked by PreToolUse hook", ""),
];

/// The longest `wire.jsonl` that is read, in bytes: the prompts and answers of all turns of a session are in it.
const WIRE_MAX: u64 = 256 << 20;
/// The longest line of it that is read, in bytes: as long as one that kimi may print.
const WIRE_LINE: usize = 8 << 20;
const STATE_MAX: u64 = 1 << 20;

/// kimi, in one launch.
#[derive(Debug)]
pub(super) struct Kimi {
    access: Access,
    /// The model that was asked for.
    model: Option<String>,
    wire: Reader,
}

impl Kimi {
    pub(super) fn new(request: &Request<'_>, access: Access) -> Self {
        let model = request.model.or(request.settings.model.as_deref()).map(str::to_owned);
        Self { access, model, wire: Reader::new(&READING) }
    }

    fn of_state(contents: Option<&[u8]>) -> Vec<Finding> {
        match contents.and_then(records::last_turn).as_deref() {
            Some("completed") => Vec::new(),
            Some("failed") => vec![Finding::Contradiction(failed("its own record says that the turn failed"))],
            Some(other) => {
                let how = format!("its own record calls the turn {:?}", crate::display::headline(other, 40));
                vec![Finding::Contradiction(failed(&how))]
            }
            None => vec![Finding::Contradiction(failed("it left no record of how the turn ended"))],
        }
    }

    fn of_wire(&mut self, is_there: bool) -> Vec<Finding> {
        let wire = std::mem::replace(&mut self.wire, Reader::new(&READING)).end();
        if !is_there {
            return match self.access {
                Access::ReadOnly => vec![Finding::Contradiction(unverified("it left no record of its tools"))],
                Access::Write => Vec::new(),
            };
        }
        let mut findings: Vec<Finding> = wire.usage.map(Finding::Usage).into_iter().collect();
        if let Some(error) = &wire.error {
            findings.push(Finding::Contradiction(failure::of_sentence(SPEAKER, &one_line(error))));
        }
        if wire.is_cut {
            findings.push(Finding::Contradiction(Failure::new(
                FailureCode::ProviderUnreachable,
                "the provider's answer broke off, and kimi took what it had for all of it",
                "check the network and the provider, then retry the job",
            )));
        }
        let other = |wanted: &String| wire.models.iter().find(|model| *model != wanted);
        if let Some((wanted, actual)) = self.model.as_ref().and_then(|wanted| Some((wanted, other(wanted)?))) {
            findings.push(Finding::Contradiction(failure::other_model(AGENT, wanted, actual)));
        }
        if self.access == Access::ReadOnly {
            findings.extend(offered(wire.offered).map(Finding::Contradiction));
        }
        findings
    }
}

impl Dialect for Kimi {
    fn speaker(&self) -> Speaker<'_> {
        SPEAKER
    }

    fn chooses_model(&self) -> bool {
        false
    }

    fn is_question(&self, ask: &Ask) -> bool {
        ask.tool == "AskUserQuestion" || ask.has_several_answers()
    }

    fn refusals(&self) -> &'static [Refusal] {
        REFUSALS
    }

    fn evidence(&self, session: &str) -> Vec<Evidence> {
        let way = |below: &[&str], limit, reading| {
            let start = [STATE, "sessions", "*", session];
            Evidence { path: start.iter().chain(below).map(|&part| part.to_owned()).collect(), limit, reading }
        };
        let lines = Reading::Lines { longest: WIRE_LINE };
        // The second one knows more, so it is read first: the first contradiction counts.
        vec![way(&["agents", "main", "wire.jsonl"], WIRE_MAX, lines), way(&["state.json"], STATE_MAX, Reading::Whole)]
    }

    fn on_evidence_line(&mut self, _evidence: &Evidence, line: Option<&[u8]>) {
        self.wire.line(line);
    }

    fn on_evidence(&mut self, evidence: &Evidence, contents: Option<&[u8]>) -> Vec<Finding> {
        match evidence.path.last().map(String::as_str) {
            Some("state.json") => Self::of_state(contents),
            _ => self.of_wire(contents.is_some()),
        }
    }
}

fn offered(offered: Offered) -> Option<Failure> {
    match offered {
        Offered::AllowedOnly => None,
        Offered::Nothing => Some(unverified("its record names no request to a model")),
        Offered::Untold => Some(unverified("its record does not tell for every request which tools it offered")),
        Offered::Others(names) => {
            let names = crate::display::headline(&names.join(", "), 200);
            Some(unverified(&format!("it offered its model more than reading: {names}")))
        }
    }
}

fn unverified(why: &str) -> Failure {
    Failure::new(
        FailureCode::HarnessIncompatible,
        format!("nothing shows that kimi could only read: {why}"),
        format!("use kimi {TESTED_VERSION} for read-only jobs, or another harness"),
    )
}

fn failed(how: &str) -> Failure {
    Failure::new(FailureCode::HarnessFailed, format!("kimi calls its turn ended, but {how}"), EVENTS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn its_record_of_another_model_than_the_one_that_was_asked_for_is_believed() {
        let record = |model: Option<&str>, asked: &[&str]| {
            let model = model.map(str::to_owned);
            let mut kimi = Kimi { access: Access::Write, model, wire: Reader::new(&READING) };
            for alias in asked {
                let line = format!(r#"{{"type":"llm.request","toolsHash":"a","modelAlias":"{alias}"}}"#);
                kimi.wire.line(Some(line.as_bytes()));
            }
            kimi.of_wire(true)
        };
        assert_eq!(record(Some("big"), &["big", "big"]), []);
        assert_eq!(record(None, &["big", "small"]), []);
        let told = record(Some("big"), &["big", "small"]);
        let [Finding::Contradiction(failure)] = told.as_slice() else { panic!("{told:?}") };
        assert_eq!(failure.code, FailureCode::InvalidConfig);
        assert!(failure.message.contains("\"big\"") && failure.message.contains("\"small\""), "{failure:?}");
    }
}
