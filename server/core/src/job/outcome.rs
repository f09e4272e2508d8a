//! How an attempt ends, decided from what the host observed.
//!
//! [`conclude`] is the one place that turns observations into an outcome. Nothing that a harness prints can make it
//! a success by itself: a success needs the driver's verdict, a clean exit and, in read-only mode, an
//! unchanged tree.

use serde::{Deserialize, Serialize};

use super::access::Access;
use super::event::Usage;
use crate::display::headline;
use crate::{Failure, FailureCode};

/// How an attempt ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub enum Outcome {
    /// The harness finished its turn, and there is a result.
    Succeeded,
    /// The harness finished its turn and changed nothing (write jobs).
    NoChanges,
    /// Something went wrong; the failure says what.
    Failed,
    /// A person ended it.
    Cancelled,
    /// It took longer than its total time.
    TimedOut,
    /// It showed no sign of life for too long.
    Stalled,
    /// It used more tokens, or cost more, than the person allows.
    OverLimit,
    /// A read-only job changed something.
    ReadOnlyViolated,
    /// The harness ended without saying that its turn was complete.
    NoResult,
    /// The result did not pass its verification commands.
    VerificationFailed,
}

impl Outcome {
    /// The exit code of a command that waited for this outcome (`docs/protocol.md`).
    pub fn exit_code(self) -> u8 {
        match self {
            Self::Succeeded => 0,
            Self::NoChanges => 6,
            Self::Failed | Self::Cancelled | Self::NoResult | Self::VerificationFailed => 1,
            Self::ReadOnlyViolated => 7,
            Self::TimedOut | Self::Stalled | Self::OverLimit => 8,
        }
    }
}

/// What became of a job's result.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub enum Disposition {
    /// Nobody decided yet.
    #[default]
    Pending,
    /// All of it is in the checkout.
    Applied,
    /// Some of it is in the checkout.
    PartlyApplied,
    /// It was given up.
    Discarded,
}

impl Disposition {
    /// Whether there is still something to decide.
    pub fn is_open(self) -> bool {
        matches!(self, Self::Pending | Self::PartlyApplied)
    }
}

/// A limit that passed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Deadline {
    /// The job's whole time.
    Total,
    /// The time without a sign of life.
    Stall,
    /// Tokens, over all attempts of the job.
    Tokens,
    /// Cost, over all attempts of the job.
    Cost,
}

/// How much a job may use, where its harness says how much it does.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Ceilings {
    /// Tokens, sent and received together.
    pub tokens: Option<u64>,
    /// US dollars.
    pub cost: Option<f64>,
}

impl Ceilings {
    /// The ceiling that a job which used so much is beyond, if it is.
    pub fn passed(&self, used: Usage) -> Option<Deadline> {
        let tokens = used.input_tokens.saturating_add(used.output_tokens);
        if self.tokens.is_some_and(|most| tokens > most) {
            return Some(Deadline::Tokens);
        }
        let beyond = self.cost.zip(used.cost).is_some_and(|(most, cost)| cost > most);
        beyond.then_some(Deadline::Cost)
    }
}

/// What the driver made of the harness's own words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The harness said that its turn is complete.
    Completed,
    /// The harness said, or showed by how it ended, that it failed.
    Failed(Failure),
    /// It ended without a word.
    Silent,
}

/// Everything that an outcome is decided from.
#[derive(Clone, Debug)]
pub struct Observed {
    /// The mode of the job.
    pub access: Access,
    /// Whether a person asked for the end before the harness ended by itself.
    pub cancelled: bool,
    /// The deadline that passed, if one did.
    pub deadline: Option<Deadline>,
    /// A failure of our own steps (tree, launch, sweep, capture).
    pub own_failure: Option<Failure>,
    /// What the driver says.
    pub verdict: Verdict,
    /// How many changes the capture found; `None` when nothing was captured. Of a job that looked around in the
    /// checkout: 0 once that was compared.
    pub changes: Option<u64>,
    /// What is not as it was in the checkout in which it looked around.
    pub violation: Option<Failure>,
    /// What speaks against the result by its verification.
    pub verification: Option<Failure>,
}

/// The outcome, and what to tell the person when it is not a success.
///
/// A violated read-only promise outranks everything: it must never be hidden by a cancel or a time-out. A person's
/// cancel outranks a deadline, and both outrank what the dying harness said.
pub fn conclude(observed: Observed) -> (Outcome, Option<Failure>) {
    let Observed { access, cancelled, deadline, own_failure, verdict, changes, violation, verification } = observed;
    if violation.is_some() {
        return (Outcome::ReadOnlyViolated, violation);
    }
    if access == Access::ReadOnly && changes.is_some_and(|count| count > 0) {
        return (Outcome::ReadOnlyViolated, Some(violated(changes.unwrap_or_default())));
    }
    if cancelled {
        return (Outcome::Cancelled, own_failure);
    }
    // Nothing is captured while something still runs: that says more than why it was ended.
    let survived = own_failure.clone().filter(|failure| failure.code == FailureCode::ProcessesSurvived);
    match deadline {
        Some(Deadline::Total) => return (Outcome::TimedOut, Some(survived.unwrap_or_else(timed_out))),
        Some(Deadline::Stall) => return (Outcome::Stalled, Some(survived.unwrap_or_else(stalled))),
        // A turn that was completed all the same is a result that was paid for; a further turn is refused.
        Some(Deadline::Tokens | Deadline::Cost) if verdict == Verdict::Completed => {}
        Some(ceiling @ (Deadline::Tokens | Deadline::Cost)) => {
            return (Outcome::OverLimit, Some(survived.unwrap_or_else(|| over_limit(ceiling))));
        }
        None => {}
    }
    if let Some(failure) = own_failure {
        return (Outcome::Failed, Some(failure));
    }
    match (verdict, access, changes) {
        (Verdict::Failed(failure), ..) => (Outcome::Failed, Some(failure)),
        (Verdict::Silent, ..) => (Outcome::NoResult, Some(no_result())),
        (Verdict::Completed, _, None) => (Outcome::Failed, Some(Failure::internal("the result was not captured"))),
        (Verdict::Completed, Access::Write, Some(0)) => (Outcome::NoChanges, None),
        (Verdict::Completed, ..) => match verification {
            Some(failure) => (Outcome::VerificationFailed, Some(failure)),
            None => (Outcome::Succeeded, None),
        },
    }
}

/// How many changes of a checkout a sentence names.
const NAMED: usize = 5;

/// The first of several changes, and how many there are beside.
fn named(changed: &[String], more: u64) -> String {
    let mut named: Vec<String> = changed.iter().take(NAMED).map(|change| headline(change, 160)).collect();
    let more = more + changed.len().saturating_sub(NAMED) as u64;
    if more > 0 {
        named.push(format!("{more} more"));
    }
    named.join("; ")
}

/// The tree of a read-only job is not as it was, where no change set shows it.
pub fn tree_changed(changed: &[String], more: u64) -> Failure {
    Failure::new(
        FailureCode::ReadOnlyViolated,
        format!("a read-only job changed its tree: {}", named(changed, more)),
        "nothing of it was applied; look at the tree, then discard the job",
    )
}

/// Whether the tree of a read-only job is as it was cannot be told.
pub fn tree_unknown(why: &str) -> Failure {
    Failure::new(
        FailureCode::ReadOnlyViolated,
        format!("nobody can tell whether a read-only job changed its tree: {why}"),
        "nothing of it was applied; look at the tree, then discard the job",
    )
}

/// The checkout in which a read-only job looked around is not as it was.
pub fn checkout_changed(changed: &[String], more: u64) -> Failure {
    Failure::new(
        FailureCode::ReadOnlyViolated,
        format!("the job was to look around in your checkout only, which is not as it was: {}", named(changed, more)),
        "whoever made these changes, the job or you: look at them with `pactify sub show`, since nothing was taken back",
    )
}

/// How a recorded difference begins that says why nothing could be compared.
pub const NOT_COMPARED: &str = "could not be compared: ";

/// What a recorded comparison of the checkout comes to.
///
/// # Errors
/// When it found anything, or found nothing out.
pub fn checkout_as_recorded(changed: &[String], more: u64) -> Result<(), Failure> {
    match changed {
        [] if more == 0 => Ok(()),
        [only] if only.starts_with(NOT_COMPARED) => Err(checkout_unknown(&only[NOT_COMPARED.len()..])),
        changed => Err(checkout_changed(changed, more)),
    }
}

/// Whether it is as it was cannot be told, which counts as much.
pub fn checkout_unknown(why: &str) -> Failure {
    Failure::new(
        FailureCode::ReadOnlyViolated,
        format!("the job was to look around in your checkout only, and whether that is as it was is not known: {why}"),
        "look at your checkout with `git status`; without `--in-place` a job looks at a tree of its own",
    )
}

fn violated(changes: u64) -> Failure {
    Failure::new(
        FailureCode::ReadOnlyViolated,
        format!("the job was read-only and changed {changes} file(s) of its tree"),
        "look at the changes with `pactify sub diff`; nothing reached your checkout",
    )
}

fn timed_out() -> Failure {
    Failure::new(
        FailureCode::TimedOut,
        "the job took longer than its total time",
        "retry it with a longer `--timeout`, or split the brief",
    )
}

fn stalled() -> Failure {
    Failure::new(
        FailureCode::Stalled,
        "the harness showed no sign of life for too long",
        "check the provider's state, then retry; `--stall` sets how long silence may last",
    )
}

/// A job that is beyond a ceiling.
pub fn over_limit(ceiling: Deadline) -> Failure {
    let (what, key) = match ceiling {
        Deadline::Cost => ("cost more", "max-cost"),
        Deadline::Tokens | Deadline::Total | Deadline::Stall => ("used more tokens", "max-tokens"),
    };
    Failure::new(
        FailureCode::OverLimit,
        format!("the job {what} than [limits] {key} allows"),
        format!("look at what is there with `pactify sub diff`; raise or remove {key} in the configuration to go on"),
    )
}

fn no_result() -> Failure {
    Failure::new(
        FailureCode::NoResult,
        "the harness ended without completing its turn",
        "see what it said with `pactify sub events`, then retry",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn observed() -> Observed {
        Observed {
            access: Access::Write,
            cancelled: false,
            deadline: None,
            own_failure: None,
            verdict: Verdict::Completed,
            changes: Some(1),
            violation: None,
            verification: None,
        }
    }

    #[test]
    fn outcomes_follow_from_observations() {
        let broken = || Failure::internal("x");
        let cases = [
            (observed(), Outcome::Succeeded),
            (Observed { changes: Some(0), ..observed() }, Outcome::NoChanges),
            (Observed { changes: Some(0), access: Access::ReadOnly, ..observed() }, Outcome::Succeeded),
            (Observed { access: Access::ReadOnly, ..observed() }, Outcome::ReadOnlyViolated),
            (Observed { access: Access::ReadOnly, cancelled: true, ..observed() }, Outcome::ReadOnlyViolated),
            (Observed { cancelled: true, deadline: Some(Deadline::Total), ..observed() }, Outcome::Cancelled),
            (Observed { deadline: Some(Deadline::Total), ..observed() }, Outcome::TimedOut),
            (Observed { deadline: Some(Deadline::Stall), ..observed() }, Outcome::Stalled),
            (Observed { own_failure: Some(broken()), ..observed() }, Outcome::Failed),
            (Observed { verdict: Verdict::Failed(broken()), ..observed() }, Outcome::Failed),
            (Observed { deadline: Some(Deadline::Tokens), ..observed() }, Outcome::Succeeded),
            (Observed { deadline: Some(Deadline::Tokens), verdict: Verdict::Silent, ..observed() }, Outcome::OverLimit),
            (
                Observed { deadline: Some(Deadline::Cost), verdict: Verdict::Failed(broken()), ..observed() },
                Outcome::OverLimit,
            ),
            (Observed { verdict: Verdict::Silent, ..observed() }, Outcome::NoResult),
            (Observed { changes: None, ..observed() }, Outcome::Failed),
            (Observed { verification: Some(broken()), ..observed() }, Outcome::VerificationFailed),
            (Observed { verification: Some(broken()), cancelled: true, ..observed() }, Outcome::Cancelled),
            (Observed { violation: Some(broken()), cancelled: true, ..observed() }, Outcome::ReadOnlyViolated),
            (
                Observed { violation: Some(broken()), own_failure: Some(broken()), ..observed() },
                Outcome::ReadOnlyViolated,
            ),
        ];
        for (observed, expected) in cases {
            let shown = format!("{observed:?}");
            assert_eq!(conclude(observed).0, expected, "{shown}");
        }
    }

    #[test]
    fn that_something_still_runs_is_told_whatever_ended_the_job() {
        let survived = || Some(Failure::new(FailureCode::ProcessesSurvived, "x", "y"));
        for deadline in [None, Some(Deadline::Total), Some(Deadline::Stall), Some(Deadline::Tokens)] {
            for cancelled in [false, true] {
                let verdict = Verdict::Silent;
                let seen =
                    Observed { own_failure: survived(), changes: None, deadline, cancelled, verdict, ..observed() };
                assert_eq!(conclude(seen).1, survived(), "{deadline:?} {cancelled}");
            }
        }
    }

    #[test]
    fn a_ceiling_is_passed_by_more_than_it_and_only_by_what_is_known() {
        let used = |input_tokens, output_tokens, cost| Usage { input_tokens, output_tokens, cost, ..Usage::default() };
        let both = Ceilings { tokens: Some(100), cost: Some(0.5) };
        for (ceilings, used, expected) in [
            (both, used(60, 40, Some(0.5)), None),
            (both, used(60, 41, None), Some(Deadline::Tokens)),
            (both, used(u64::MAX, 1, Some(9.0)), Some(Deadline::Tokens)),
            (both, used(1, 1, Some(0.51)), Some(Deadline::Cost)),
            (Ceilings { tokens: None, cost: Some(0.5) }, used(1000, 1000, None), None),
            (Ceilings::default(), used(u64::MAX, u64::MAX, Some(f64::MAX)), None),
        ] {
            assert_eq!(ceilings.passed(used), expected, "{ceilings:?} {used:?}");
        }
    }

    #[test]
    fn a_changed_checkout_is_told_in_bounds() {
        let many: Vec<String> = (0..9).map(|number| format!("file{number}: is new")).collect();
        let failure = checkout_changed(&many, 3);
        assert!(failure.message.ends_with("file3: is new; file4: is new; 7 more"), "{}", failure.message);
        assert!(failure.next.contains("the job or you"), "{}", failure.next);
    }

    #[test]
    fn a_recorded_comparison_concludes_as_it_did_when_it_was_made() {
        assert_eq!(checkout_as_recorded(&[], 0), Ok(()));
        let found = ["a: is new".to_owned()];
        assert_eq!(checkout_as_recorded(&found, 2), Err(checkout_changed(&found, 2)));
        let unknown = [format!("{NOT_COMPARED}the clock was set")];
        assert_eq!(checkout_as_recorded(&unknown, 0), Err(checkout_unknown("the clock was set")));
    }

    #[test]
    fn everything_but_a_success_says_why() {
        for verdict in [Verdict::Silent, Verdict::Failed(Failure::internal("x"))] {
            assert!(conclude(Observed { verdict, ..observed() }).1.is_some());
        }
        assert!(conclude(Observed { deadline: Some(Deadline::Stall), ..observed() }).1.is_some());
    }
}
