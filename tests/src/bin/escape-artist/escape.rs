//! The escapees, and the harness that starts them.

use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::bail;

use super::{RollCall, linger};

/// How many generations a storm has. At a millisecond each it outlasts the sweep that ends it.
const GENERATIONS: u32 = 20_000;

/// What a harness does: starts an escapee of the given shape, then waits for orders.
pub(super) fn leader(folder: &Path, artist: &str, shape: &str) -> anyhow::Result<()> {
    let path = folder.to_string_lossy();
    match shape {
        "nobody" | "deaf-leader" => {}
        "inner-job" => {
            let inner = format!("{path}/inner");
            command(artist, &["serve", &inner, "20261129-000000-inner2", "session,scrubbed"], false).spawn()?.wait()?;
        }
        "storm" | "storm,scrubbed" => {
            for _ in 0..4 {
                shaped(artist, &["relay", &path, artist, &GENERATIONS.to_string()], shape).spawn()?;
            }
        }
        _ if has(shape, "double-fork") => {
            let step = shaped(artist, &["step", &path, artist, shape], shape).spawn()?.wait()?;
            if !step.success() {
                bail!("the step in the middle ended with {step}");
            }
        }
        _ => drop(shaped(artist, &["escapee", &path, shape], shape).spawn()?),
    }
    let mut roll_call = RollCall::announce(folder, "leader")?;
    match roll_call.hear()?.strip_prefix("exit ") {
        Some(code) => std::process::exit(code.parse()?),
        None => Ok(()),
    }
}

/// Starts the escapee and ends, so that the escapee becomes an orphan.
pub(super) fn step(folder: &str, artist: &str, shape: &str) -> anyhow::Result<()> {
    shaped(artist, &["escapee", folder, shape], shape).spawn()?;
    Ok(())
}

pub(super) fn escapee(folder: &Path, shape: &str) -> anyhow::Result<()> {
    if has(shape, "session") {
        rustix::process::setsid()?;
    }
    let roll_call = RollCall::announce(folder, "escapee")?;
    if has(shape, "closed") {
        drop(roll_call);
    } else {
        // Keeps the connection until the end.
        Box::leak(Box::new(roll_call));
    }
    linger()
}

pub(super) fn relay(folder: &str, artist: &str, count: u32) -> anyhow::Result<()> {
    if count == 0 {
        std::fs::write(format!("{folder}/finished"), "")?;
        return Ok(());
    }
    rustix::process::setsid().ok();
    command(artist, &["relay", folder, artist, &(count - 1).to_string()], false).spawn()?;
    Ok(())
}

fn has(shape: &str, word: &str) -> bool {
    shape.split(',').any(|other| other == word)
}

fn shaped(artist: &str, arguments: &[&str], shape: &str) -> Command {
    let mut command = command(artist, arguments, has(shape, "deaf"));
    if has(shape, "scrubbed") {
        command.env_clear();
    }
    if has(shape, "output") {
        command.stdout(Stdio::inherit());
    }
    command
}

/// This program in another role. Ignored signals stay ignored across `exec`, which is how a child becomes deaf.
pub(super) fn command(artist: &str, arguments: &[&str], deaf: bool) -> Command {
    let script = if deaf { r#"trap '' INT TERM HUP; exec "$0" "$@""# } else { r#"exec "$0" "$@""# };
    let mut command = shell();
    command.args(["-c", script, artist]).args(arguments);
    command.stdin(Stdio::null()).stdout(Stdio::null());
    command
}

#[expect(clippy::disallowed_methods, reason = "escapees start each other; that is what they are for")]
fn shell() -> Command {
    Command::new("/bin/sh")
}
