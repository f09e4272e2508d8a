//! The agy harness, from outside: what it plans, and what it makes of a turn.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test whose set-up fails has failed")]

#[path = "kit/asked.rs"]
mod asked;
#[path = "agy/plan.rs"]
mod plan;
#[path = "agy/verdict.rs"]
mod verdict;

use asked::Asked;

/// A request to agy with these settings of `[harnesses.agy]`.
fn agy(keys: &str) -> Asked {
    let asked = Asked::of("agy", &format!("[harnesses.agy]\n{keys}")).below_j("/j/a home");
    Asked { executable: asked::path("/opt/agy"), version: Some("1.5.7"), ..asked }
}
