//! What dies when: every moment a host or a server that is alive is killed, each by its own id.

use std::path::Path;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use fastrand::Rng;
use pactify_tests::sandbox::Sandbox;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use super::{NEWS, Soak};
use crate::run::say;

/// Kills until no more jobs are started; reports until `settled` is closed.
pub(super) fn reign(soak: &Soak, mut rng: Rng, settled: &Receiver<()>) {
    let mut news = Instant::now() + NEWS;
    loop {
        let pause = Duration::from_millis(rng.u64(50..900));
        if let Err(RecvTimeoutError::Disconnected) = settled.recv_timeout(pause) {
            return;
        }
        if Instant::now() >= news {
            say(&soak.counts.line());
            news = Instant::now() + NEWS;
        }
        if soak.is_over() {
            continue;
        }
        let (victims, count) = match rng.u8(..3) {
            0 => (soak.servers().clone(), &soak.counts.servers_killed),
            _ => (hosts(&soak.sandbox), &soak.counts.hosts_killed),
        };
        if let Some(victim) = rng.choice(victims)
            && kill_process(victim, Signal::KILL).is_ok()
        {
            count.fetch_add(1, Relaxed);
        }
    }
}

/// The hosts that are alive, as the journals name them.
fn hosts(sandbox: &Sandbox) -> Vec<Pid> {
    let jobs = std::fs::read_dir(sandbox.jobs());
    jobs.into_iter().flatten().flatten().filter_map(|job| host(&job.path())).collect()
}

fn host(job: &Path) -> Option<Pid> {
    let journal = std::fs::read_to_string(job.join("events.jsonl")).ok()?;
    let started = journal.lines().rev().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let host = started.map(|record| record["event"]["host"].clone()).find(Value::is_object)?;
    let pid = i32::try_from(host["pid"].as_i64()?).ok()?;
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // Field 22, counted after the name, which may have spaces in it.
    let start: u64 = stat.rsplit_once(')')?.1.split_whitespace().nth(19)?.parse().ok()?;
    (host["startTime"].as_u64()? == start).then(|| Pid::from_raw(pid)).flatten()
}
