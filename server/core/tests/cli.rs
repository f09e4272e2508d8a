//! Programs of the person's own, from the configuration to the verdict.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test whose set-up fails has failed")]

#[path = "kit/asked.rs"]
mod asked;
#[path = "cli/plan.rs"]
mod plan;
#[path = "cli/verdict.rs"]
mod verdict;

use asked::Asked;

/// A request to a program with these keys beside its `command`.
fn mine(keys: &str) -> Asked {
    let asked = Asked::of("mine", &format!("[harnesses.mine]\ncommand = \"/opt/agent\"\n{keys}")).below_j("/j/home");
    Asked { brief: pactify_core::brief::Brief::new("Fix {root} and {{x}}.").unwrap(), ..asked }
}
