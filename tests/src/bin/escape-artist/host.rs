//! A host with nothing but process control, made of the engine's parts, and the server that starts it.

use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, ensure};
use pactify_core::AbsPath;
use pactify_core::job::event::ProcessRecord;
use pactify_engine::env::Env;
use pactify_engine::process::detach::{self, HostStart};
use pactify_engine::process::{EnvPolicy, Invocation, JobTree, Marker, NotDead, Patience, reap};

use super::RollCall;

/// Starts a host like a server, with the lock held all the time.
pub(super) fn serve(folder: &Path, job: &str, shape: &str) -> anyhow::Result<()> {
    std::fs::create_dir_all(folder)?;
    let env = Env::from_process()?;
    let lock = File::create(folder.join("lock"))?;
    lock.try_lock().context("the lock is taken")?;
    let log = OpenOptions::new().create(true).append(true).open(folder.join("log"))?;
    // Where the binary was, should it be gone: the leader's program is named in the play.
    let artist = env.variable("ARTIST").context("ARTIST names this program")?.to_owned();
    let arguments = ["host".into(), folder.into(), job.into(), artist, shape.into()].to_vec();
    let host = detach::spawn_host(&env, HostStart { arguments, lock, log })?;
    writeln!(std::io::stdout(), "{}", serde_json::to_string(&ProcessRecord::from(&host))?)?;
    Ok(())
}

pub(super) fn host(folder: &Path, job: &str, artist: &str, shape: &str) -> anyhow::Result<()> {
    let detached = detach::become_host()?;
    let other = OpenOptions::new().write(true).open(folder.join("lock"))?;
    ensure!(other.try_lock().is_err(), "the lock was not handed over");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        detached.ignore_hangup()?;
        direct(folder, job, artist, shape).await
    })
}

/// Starts the leader, then does what the test says: `reap`, `wait`, or `sweep GRACE KILL` (milliseconds).
async fn direct(folder: &Path, job: &str, artist: &str, shape: &str) -> anyhow::Result<()> {
    let marker = Marker::of(&job.parse()?);
    let mut environment = EnvPolicy::harness([""; 0]).filter(Env::from_process()?.variables());
    environment.mark(&marker);
    let trap = if shape == "deaf-leader" { "trap '' INT TERM HUP; " } else { "" };
    let script = format!(r#"{trap}exec "$0" "$@""#);
    let invocation = Invocation::new(AbsPath::new("/bin/sh")?, AbsPath::new(folder)?, environment);
    let invocation = invocation.args(["-c", &script, artist, "leader", &folder.to_string_lossy(), artist, shape]);
    let (mut leader, pipes) = invocation.start()?;
    drop(pipes.stdin);

    let tree = JobTree::below_this_host(marker, Some(leader.identity().clone()));
    let mut roll_call = RollCall::announce(folder, "host")?;
    loop {
        let order = roll_call.hear()?;
        let answer = match *order.split(' ').collect::<Vec<_>>() {
            ["reap"] => serde_json::json!(reap::reap_orphans()?),
            ["wait"] => serde_json::json!(leader.wait().await?.to_string()),
            ["sweep", grace, kill] => {
                let tree = tree.clone();
                let patience = Patience { grace: milliseconds(grace)?, kill: milliseconds(kill)? };
                let sweep = tokio::task::spawn_blocking(move || tree.sweep(patience));
                // At the same time, as a host does: the sweep must not take the leader's status away.
                let (swept, status) = tokio::join!(sweep, leader.wait());
                let (dead, names) = match swept? {
                    Ok(dead) => (true, dead.ended().iter().map(|process| process.command.clone()).collect()),
                    Err(NotDead::Survivors { survivors, .. }) => {
                        (false, survivors.iter().map(ToString::to_string).collect::<Vec<_>>())
                    }
                    Err(error) => (false, vec![error.to_string()]),
                };
                serde_json::json!({ "dead": dead, "names": names, "leader": status?.to_string() })
            }
            _ => return Ok(()),
        };
        roll_call.say(&answer.to_string())?;
    }
}

fn milliseconds(text: &str) -> anyhow::Result<Duration> {
    Ok(Duration::from_millis(text.parse()?))
}
