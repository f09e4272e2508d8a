//! Refusals in the terminal's own terms.
//!
//! The engine names an argument as the wire calls it, and so do its sentences about them. Here each has an option, and
//! what describes them all is `--help`.

use std::borrow::Cow;

use pactify_core::{Failure, FailureCode};

/// Arguments of the wire, and what a person types for them.
const ARGUMENTS: &[(&str, &str)] = &[
    ("access", "--read-only"),
    ("base", "--base"),
    ("brief", "the task"),
    ("confirmMerges", "--merge"),
    ("confirmSensitive", "--confirm"),
    ("isolation", "--linked"),
    ("jobId", "the job"),
    ("message", "the message"),
    ("optionId", "the answer"),
    ("path", "--path"),
    ("permissions", "--permissions"),
    ("repository", "--repo"),
    ("verify", "--verify"),
];

/// What the engine says of any argument that is wrong.
const OF_THE_WIRE: &str = "docs/protocol.md";

/// The failure, as a person is told of it who typed a command.
pub(super) fn in_terminal(failure: &Failure) -> Cow<'_, Failure> {
    if failure.code != FailureCode::InvalidParams {
        return Cow::Borrowed(failure);
    }
    let mut told = failure.clone();
    if let Some((argument, rest)) = failure.message.split_once(": ")
        && let Some((_, option)) = ARGUMENTS.iter().find(|(name, _)| *name == argument.trim_matches('`'))
    {
        told.message = format!("{option}: {rest}");
    }
    if failure.next.contains(OF_THE_WIRE) {
        told.next = "correct it; `--help` after the command describes each option".to_owned();
    }
    Cow::Owned(told)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_typed_is_named_as_it_was_typed() {
        let wire = "correct the argument; docs/protocol.md describes it";
        let help = "correct it; `--help` after the command describes each option";
        let invalid = FailureCode::InvalidParams;
        for (code, said, next, told) in [
            (invalid, "isolation: a job has no tree", wire, ("--linked: a job has no tree", help)),
            (invalid, "`jobId`: no id", "look", ("the job: no id", "look")),
            (invalid, "a limit of 0 seconds", wire, ("a limit of 0 seconds", help)),
            (invalid, "src/a.rs: no such part", "look", ("src/a.rs: no such part", "look")),
            (FailureCode::WrongState, "base: it is gone", "look", ("base: it is gone", "look")),
        ] {
            let failure = Failure::new(code, said, next);
            let shown = in_terminal(&failure);
            assert_eq!((shown.message.as_str(), shown.next.as_str()), told, "{said}");
        }
    }
}
