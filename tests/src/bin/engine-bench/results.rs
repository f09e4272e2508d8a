//! Showing a result of many changes, and applying it.

use std::fs;
use std::path::Path;

use anyhow::ensure;
use pactify_core::AttemptNo;
use pactify_core::job::Isolation;
use pactify_core::job::event::{AttemptReason, HostRecord, Known, ProcessRecord, ResultRecord};
use pactify_core::job::outcome::Outcome;
use pactify_core::protocol::{ApplyParams, Preview, PreviewFormat, PreviewParams};
use pactify_engine::jobs::Jobs;
use pactify_engine::journal::Journal;

use crate::world::{Job, World, dead, text};
use crate::{Figure, median, time};

const CHANGES: usize = 5_000;
const LISTINGS: usize = 7;
const APPLIES: usize = 5;

/// A job that changed many files and ended.
struct Landed {
    id: String,
    /// The result's git directory, and its two trees.
    capture: String,
    base: String,
    result: String,
    record: ResultRecord,
}

/// Listing the changes, and all of them with their lines.
pub(crate) fn listing(world: &World) -> anyhow::Result<Vec<Figure>> {
    let landed = land(world)?;
    let jobs = Jobs::open(world.env.clone())?;
    let (base, result) = (landed.base.as_str(), landed.result.as_str());
    let git = |arguments: &[&str]| {
        let in_capture = [&["--git-dir", landed.capture.as_str()], arguments, &[base, result]].concat();
        world.git(world.sandbox.root(), &in_capture)
    };
    let mut times: [Vec<f64>; 4] = Default::default();
    for _ in 0..LISTINGS {
        times[0].push(time(|| show(&jobs, &landed, PreviewFormat::Summary))?.0);
        times[1].push(time(|| git(&["diff-tree", "-r", "--raw", "-M"]))?.0);
        times[2].push(time(|| show(&jobs, &landed, PreviewFormat::Hunks))?.0);
        times[3].push(time(|| git(&["diff", "--raw", "-M"]).and_then(|_| git(&["diff", "-M"])))?.0);
    }
    let [list, raw, all, patch] = times.map(median);
    let figure = |what: &str, reference: &str, ours, theirs, bar| Figure {
        what: format!("{what} of {CHANGES} changes"),
        reference: reference.to_owned(),
        unit: "ms",
        ours,
        theirs,
        bar: Some(bar),
    };
    Ok(vec![
        figure("the list", "`git diff-tree --raw -M`", list, raw, 1.2),
        figure("all hunks", "`git diff --raw -M` and `git diff -M`", all, patch, 0.8),
    ])
}

/// Applying them, with every check, durably.
pub(crate) fn apply(world: &World) -> anyhow::Result<Vec<Figure>> {
    let landed = land(world)?;
    let arguments = ["--git-dir", &landed.capture, "diff", "--binary", "--no-renames", &landed.base, &landed.result];
    let patch = world.sandbox.root().join("patch");
    fs::write(&patch, world.git(world.sandbox.root(), &arguments)?)?;
    let patch = patch.display().to_string();
    let reset = || {
        world.git(&world.repository, &["reset", "--quiet", "--hard"])?;
        world.git(&world.repository, &["clean", "--quiet", "-dff"])?;
        world.git(&world.repository, &["status"])
    };
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for _ in 0..APPLIES {
        let again = again(world, &landed)?;
        let jobs = Jobs::open(world.env.clone())?;
        reset()?;
        settle();
        let params = ApplyParams {
            job_id: again,
            change_set: landed.result.clone(),
            ..serde_json::from_value(serde_json::json!({"jobId": "", "changeSet": ""}))?
        };
        let (took, applied) = time(|| Ok(jobs.apply(&params)?))?;
        ensure!(applied.applied.len() == CHANGES, "{} paths were applied", applied.applied.len());
        ours.push(took);
        reset()?;
        settle();
        theirs.push(time(|| world.git(&world.repository, &["apply", "--index", &patch]))?.0);
    }
    reset()?;
    Ok(vec![Figure {
        what: format!("the apply of {CHANGES} changes, {} files", world.files),
        reference: "`git apply --index`".to_owned(),
        unit: "ms",
        ours: median(ours),
        theirs: median(theirs),
        bar: Some(0.8),
    }])
}

/// Asks for all pages, as a client does.
fn show(jobs: &Jobs, landed: &Landed, format: PreviewFormat) -> anyhow::Result<()> {
    let params = serde_json::json!({"jobId": landed.id, "format": format, "limit": CHANGES});
    let mut params: PreviewParams = serde_json::from_value(params)?;
    let mut listed = 0;
    loop {
        let page: Preview = jobs.preview(&params)?;
        let sent = serde_json::to_vec(&page)?;
        ensure!(sent.len() > page.files.len(), "nothing is told of a change");
        listed += page.files.len();
        params.cursor = page.next;
        if params.cursor.is_none() {
            break;
        }
    }
    ensure!(listed == CHANGES, "{listed} changes are listed");
    Ok(())
}

/// Changes, adds and deletes files, most of all changes, and captures that.
fn land(world: &World) -> anyhow::Result<Landed> {
    let job = world.job()?;
    let prepared = world.prepare(&job, Isolation::Private)?;
    let tree = prepared.tree.path.as_path();
    for number in 0..CHANGES {
        let at = number * (world.files / CHANGES);
        let path = tree.join(World::path(at));
        match number % 10 {
            8 => fs::write(path.with_extension("new"), text(at + 3))?,
            9 => fs::remove_file(path)?,
            _ => fs::write(path, edited(at))?,
        }
    }
    let proof = dead(&job.places)?;
    let Job { places, lock, .. } = job;
    let captured =
        world.git.capture(&proof, &places, &world.examined.repository, &world.examined.head, &prepared.tree)?;
    record(world, Journal::open(lock)?, &captured.result, Some(prepared.tree))?;
    fs::remove_dir_all(places.tree())?;
    Ok(Landed {
        id: places.job().to_string(),
        capture: places.capture().to_string(),
        base: captured.result.base_tree.to_string(),
        result: captured.result.change_set.to_string(),
        record: captured.result,
    })
}

/// What was written before is no part of what is measured: an apply waits for all of its file system.
fn settle() {
    rustix::fs::sync();
}

/// Another job with the same result.
fn again(world: &World, landed: &Landed) -> anyhow::Result<String> {
    let Job { places, lock, .. } = world.job()?;
    let from = Path::new(&landed.capture);
    copy(from, places.capture().as_path())?;
    fs::copy(from.with_file_name("manifest"), places.manifest())?;
    record(world, Journal::open(lock)?, &landed.record, None)?;
    Ok(places.job().to_string())
}

fn record(
    world: &World,
    mut journal: Journal,
    result: &ResultRecord,
    tree: Option<pactify_core::job::event::TreeRecord>,
) -> anyhow::Result<()> {
    let process = ProcessRecord { pid: 1, start_time: 2, boot_id: "boot".into() };
    let host = HostRecord { process, version: "0".into() };
    let started = Known::AttemptStarted { reason: AttemptReason::Run, host };
    let ended = Known::AttemptEnded { outcome: Outcome::Succeeded, failure: None, final_message: None };
    let ready = tree.map(|tree| Known::TreeReady { tree });
    let events = [started].into_iter().chain(ready).chain([Known::Captured { result: result.clone() }, ended]);
    for event in events {
        journal.append(world.env.now(), AttemptNo::FIRST, event)?;
    }
    Ok(())
}

/// Some lines of the text are others, here and there.
fn edited(number: usize) -> String {
    let text = text(number);
    let line = |(at, line): (usize, &str)| match at % 40 {
        7 => format!("{line} and more\n"),
        23 => String::new(),
        31 => format!("{line}\nanother line\n"),
        _ => format!("{line}\n"),
    };
    text.lines().enumerate().map(line).collect()
}

fn copy(from: &Path, to: &Path) -> anyhow::Result<()> {
    fs::create_dir(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let place = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            copy(&entry.path(), &place)?
        } else {
            fs::copy(entry.path(), place).map(drop)?
        }
    }
    Ok(())
}
