//! Processes that try to survive their host, and a host that tries to end them. For `tests/tests/processes`.
//!
//! Every process of a play has the play's folder among its arguments, which no scrubbing of its environment changes:
//! the test finds what is left by it. Every process that matters announces itself on the socket `roll-call` in that
//! folder and waits for an answer, so that the test knows it before it goes on. None lives longer than three minutes on
//! its own.
//!
//! | role | does |
//! | --- | --- |
//! | `serve FOLDER JOB SHAPE [replaced]` | starts a host as a server would, and ends; `replaced`: after deleting its own binary |
//! | `host FOLDER JOB ARTIST SHAPE` | becomes a host, starts a leader, sweeps when it is told to |
//! | `leader FOLDER ARTIST SHAPE` | starts an escapee of that shape, ends when it is told to |
//! | `step FOLDER ARTIST SHAPE` | is in the middle of a double fork |
//! | `escapee FOLDER SHAPE` | lives on |
//! | `relay FOLDER ARTIST COUNT` | starts its successor and ends, `COUNT` times |
//!
//! A shape is a list of words with commas: `double-fork`, `session`, `deaf`, `scrubbed`, `output`, `closed`, or one of
//! `nobody`, `storm` (also `storm,scrubbed`), `inner-job`, `deaf-leader`.

mod escape;
mod host;

use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, bail};
use rustix::event::Timespec;

/// How long any process of a play may live.
const LONGEST_LIFE: Duration = Duration::from_secs(180);

fn main() -> anyhow::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match *arguments {
        ["serve", folder, job, shape] => host::serve(Path::new(folder), job, shape),
        ["serve", folder, job, shape, "replaced"] => {
            std::fs::remove_file(std::env::current_exe()?)?;
            host::serve(Path::new(folder), job, shape)
        }
        ["host", folder, job, artist, shape] => host::host(Path::new(folder), job, artist, shape),
        ["leader", folder, artist, shape] => escape::leader(Path::new(folder), artist, shape),
        ["step", folder, artist, shape] => escape::step(folder, artist, shape),
        ["escapee", folder, shape] => escape::escapee(Path::new(folder), shape),
        ["relay", folder, artist, count] => escape::relay(folder, artist, count.parse()?),
        _ => bail!("unknown role: {arguments:?}"),
    }
}

/// The connection of an announced process to its test.
struct RollCall(BufReader<UnixStream>);

impl RollCall {
    /// Announces this process and waits until the test has taken note.
    fn announce(folder: &Path, role: &str) -> anyhow::Result<Self> {
        let stream = UnixStream::connect(folder.join("roll-call")).context("nobody calls the roll")?;
        stream.set_read_timeout(Some(LONGEST_LIFE))?;
        let mut roll_call = Self(BufReader::new(stream));
        roll_call.say(&format!("{role} {}", serde_json::to_string(&describe()?)?))?;
        roll_call.hear()?;
        Ok(roll_call)
    }

    fn say(&mut self, line: &str) -> anyhow::Result<()> {
        Ok(writeln!(self.0.get_mut(), "{line}")?)
    }

    /// The next line; empty when the test is over.
    fn hear(&mut self) -> anyhow::Result<String> {
        let mut line = String::new();
        self.0.read_line(&mut line)?;
        Ok(line.trim_end().to_owned())
    }
}

/// What a process sees of itself.
fn describe() -> anyhow::Result<serde_json::Value> {
    let mut descriptors = Vec::new();
    for entry in std::fs::read_dir("/proc/self/fd")? {
        let entry = entry?;
        // The descriptor of this very listing is gone when its link is read.
        if let Ok(target) = std::fs::read_link(entry.path()) {
            descriptors.push(format!("{} {}", entry.file_name().display(), target.display()));
        }
    }
    let environment = std::fs::read("/proc/self/environ")?;
    let entries = environment.split(|&byte| byte == 0).filter(|entry| !entry.is_empty());
    let variables: Vec<_> = entries.map(String::from_utf8_lossy).collect();
    let status = std::fs::read_to_string("/proc/self/status")?;
    let of_status = |name: &str| status.lines().find_map(|line| line.strip_prefix(name)).map(str::trim);
    let raw = |pid: rustix::process::Pid| pid.as_raw_nonzero().get();
    Ok(serde_json::json!({
        "group": raw(rustix::process::getpgrp()),
        "session": raw(rustix::process::getsid(None)?),
        "umask": of_status("Umask:"),
        "ignored": of_status("SigIgn:"),
        "blocked": of_status("SigBlk:"),
        "directory": std::env::current_dir()?,
        "descriptors": descriptors,
        "variables": variables,
    }))
}

/// Lives on for as long as any process of a play may.
fn linger() -> anyhow::Result<()> {
    rustix::event::poll(&mut [], Some(&Timespec::try_from(LONGEST_LIFE)?))?;
    Ok(())
}
