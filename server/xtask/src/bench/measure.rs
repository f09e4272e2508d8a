//! What is measured: one function for each promise. Whoever is compared takes turns.

use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use pactify_tests::agent::{Step, prompt};
use pactify_tests::editor::uri;
use pactify_tests::sandbox::Repository;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use serde_json::json;

use super::pipe::Piped;
use super::{Bench, Figure};
use crate::run::say;

const STARTS: usize = 300;
const ANSWERS: usize = 4000;
const BURST: usize = 100;
const SERVERS: usize = 7;
const DELEGATIONS: usize = 10;
/// Until a server that was just started has settled.
const SETTLED: Duration = Duration::from_secs(2);
/// For a job to end, its tree of many files included.
const JOB: Duration = Duration::from_secs(120);
/// Files of the two repositories, and of a folder.
const SMALL: usize = 1_000;
const LARGE: usize = 50_000;
const IN_FOLDER: usize = 100;

/// The names of what is measured here.
const NAMES: [&str; 4] = ["start", "status", "memory", "delegate"];

/// Whether something that is measured here has such a name.
pub(super) fn is_chosen(filter: &str) -> bool {
    NAMES.iter().any(|name| name.contains(filter))
}

pub(super) fn all(bench: &Bench, filter: &str) -> anyhow::Result<Vec<Figure>> {
    let small = repository(bench, "small", SMALL)?;
    let mut figures = Vec::new();
    for name in NAMES.into_iter().filter(|name| name.contains(filter)) {
        figures.push(match name {
            "start" => starts(bench, &small)?,
            "status" => on_one_processor(|| answers(bench, &small))?,
            "memory" => memory(bench, &small)?,
            _ => delegations(bench, &small, &repository(bench, "large", LARGE)?)?,
        });
    }
    Ok(figures)
}

/// From the start of the process to the answer to `initialize`.
fn starts(bench: &Bench, repository: &Repository<'_>) -> anyhow::Result<Figure> {
    say("measuring: start");
    let folder = uri(repository.path());
    let time = |command: Command| -> anyhow::Result<f64> {
        let begun = Instant::now();
        let mut server = Piped::start(command)?;
        server.initialize(&folder)?;
        // Its end is no part of it.
        Ok(milliseconds(begun.elapsed()))
    };
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for _ in 0..STARTS {
        ours.push(time(bench.pactify())?);
        theirs.push(time(bench.ruff())?);
    }
    Ok(Figure {
        what: "start to `initialize` answered".to_owned(),
        reference: "`ruff server`".to_owned(),
        unit: "ms".to_owned(),
        ours: median(ours),
        theirs: median(theirs),
        bar: Some(0.5),
    })
}

/// Keeps what is started from here on, and us, on one processor: otherwise a wake-up that crosses to an idle one, which
/// takes several times as long as an answer, falls on whom the scheduler likes.
fn on_one_processor<T>(work: impl FnOnce() -> anyhow::Result<T>) -> anyhow::Result<T> {
    let before = sched_getaffinity(None)?;
    let mut one = CpuSet::new();
    one.set((0..CpuSet::MAX_CPU).find(|cpu| before.is_set(*cpu)).context("there is no processor")?);
    sched_setaffinity(None, &one)?;
    let done = work();
    sched_setaffinity(None, &before)?;
    done
}

/// `pactify.status` of one finished job.
fn answers(bench: &Bench, repository: &Repository<'_>) -> anyhow::Result<Figure> {
    say("measuring: status");
    let mut server = Piped::start(bench.pactify())?;
    server.initialize(&uri(repository.path()))?;
    let (job, _) = delegate(&mut server, repository)?;
    finish(&mut server, &job)?;
    let mut echo = Piped::start(bench.sandbox.command(&bench.echo))?;
    let argument = json!({"jobId": job});
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for _ in 0..ANSWERS / BURST {
        // In bursts: after a pause, what is measured is how soon a sleeping core wakes up.
        for (piped, times) in [(&mut server, &mut ours), (&mut echo, &mut theirs)] {
            for _ in 0..BURST {
                times.push(1000.0 * milliseconds(piped.time("status", &argument)?));
            }
        }
    }
    server.run("discard", &argument)?;
    Ok(Figure {
        what: "`pactify.status` of a finished job".to_owned(),
        reference: "a bare echo over the same pipes".to_owned(),
        unit: "µs".to_owned(),
        ours: median(ours),
        theirs: median(theirs),
        bar: Some(3.0),
    })
}

/// Resident memory of a server that has nothing to do.
fn memory(bench: &Bench, repository: &Repository<'_>) -> anyhow::Result<Figure> {
    say("measuring: memory");
    let folder = uri(repository.path());
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for _ in 0..SERVERS {
        let mut pair = [Piped::start(bench.pactify())?, Piped::start(bench.ruff())?];
        for server in &mut pair {
            server.initialize(&folder)?;
        }
        std::thread::sleep(SETTLED);
        let [of_ours, of_theirs] = pair;
        ours.push(of_ours.memory()? as f64 / 1024.0);
        theirs.push(of_theirs.memory()? as f64 / 1024.0);
    }
    Ok(Figure {
        what: "resident memory when idle".to_owned(),
        reference: "`ruff server`".to_owned(),
        unit: "MiB".to_owned(),
        ours: median(ours),
        theirs: median(theirs),
        bar: Some(1.0),
    })
}

/// The answer to `pactify.delegate` in a large repository, against a small one.
fn delegations(bench: &Bench, small: &Repository<'_>, large: &Repository<'_>) -> anyhow::Result<Figure> {
    say("measuring: delegate");
    let mut server = Piped::start(bench.pactify())?;
    server.initialize(&uri(small.path()))?;
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for _ in 0..DELEGATIONS {
        for (repository, times) in [(large, &mut ours), (small, &mut theirs)] {
            let (job, took) = delegate(&mut server, repository)?;
            times.push(milliseconds(took));
            // The next one must not compete with this one's host.
            finish(&mut server, &job)?;
            server.run("discard", &json!({"jobId": job}))?;
        }
    }
    Ok(Figure {
        what: "`pactify.delegate` answered, 50,000 files".to_owned(),
        reference: "the same with 1,000 files".to_owned(),
        unit: "ms".to_owned(),
        ours: median(ours),
        theirs: median(theirs),
        bar: Some(1.5),
    })
}

/// Delegates a brief that is done at once; returns the job, and how long the answer took.
fn delegate(server: &mut Piped, repository: &Repository<'_>) -> anyhow::Result<(String, Duration)> {
    let say: Step = serde_json::from_value(json!({"say": "Done."}))?;
    let argument = json!({"brief": format!("Say so.\n\n{}", prompt(&[say])), "repository": uri(repository.path())});
    let begun = Instant::now();
    let delegated = server.run("delegate", &argument)?;
    let took = begun.elapsed();
    Ok((delegated["jobId"].as_str().context("the server named no job")?.to_owned(), took))
}

/// Waits for the job's end.
fn finish(server: &mut Piped, job: &str) -> anyhow::Result<()> {
    const LOOK: Duration = Duration::from_millis(50);
    let deadline = Instant::now() + JOB;
    loop {
        let status = server.run("status", &json!({"jobId": job}))?;
        if status["job"]["state"] == "finished" {
            ensure!(status["job"]["outcome"] == "noChanges", "the job went wrong: {status:#}");
            return Ok(());
        }
        ensure!(Instant::now() < deadline, "the job doesn't end: {status:#}");
        std::thread::sleep(LOOK);
    }
}

fn repository<'a>(bench: &'a Bench, name: &str, files: usize) -> anyhow::Result<Repository<'a>> {
    say(&format!("making a repository of {files} files"));
    let repository = bench.sandbox.repository(name)?;
    for at in 0..files {
        repository.write(&format!("folder{:03}/file{at:05}.txt", at / IN_FOLDER), format!("file {at}\n"))?;
    }
    repository.commit("Many files")?;
    Ok(repository)
}

impl Bench {
    fn pactify(&self) -> Command {
        let mut command = self.sandbox.command(&self.server);
        command.arg("--stdio");
        command
    }

    fn ruff(&self) -> Command {
        let mut command = self.sandbox.command(&self.ruff);
        command.arg("server");
        command
    }
}

fn milliseconds(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1000.0
}

pub(super) fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}
