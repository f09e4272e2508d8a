//! The codex harness, from outside: what it plans, how it understands recorded runs, what hostile output does to it.

#![expect(clippy::unwrap_used, reason = "a test whose set-up fails has failed")]

#[expect(dead_code, reason = "what harnesses of all kinds need, and this one does not")]
#[path = "kit/asked.rs"]
mod asked;
#[path = "codex/hostile.rs"]
mod hostile;
#[path = "codex/plan.rs"]
mod plan;
#[path = "codex/replay.rs"]
mod replay;

use asked::Asked;

/// A request to codex with these settings, as they are written in the configuration file.
fn codex(configuration: &str) -> Asked {
    let executable = asked::path("/opt/codex/bin/codex");
    Asked { executable, version: Some("0.171.0"), ..Asked::of("codex", configuration) }
}
