//! Recoveries of a job whose host was killed: one that dies itself, and several at once.

use std::fs::{self, File};
use std::process::Stdio;

use anyhow::{Context as _, Result, ensure};
use pactify_core::AbsPath;
use pactify_core::job::event::{AttemptReason, HostRecord, Known};
use pactify_engine::journal::Journal;
use pactify_engine::store::Store;
use pactify_tests::agent::{brief, write};
use pactify_tests::editor::{Editor, JOB, pid, uri};
use pactify_tests::outside;
use pactify_tests::rendezvous;
use pactify_tests::sandbox::Repository;
use serde_json::json;

use super::{SOON, Stage};

/// A job whose host was killed while its agent hung, with half of its work done.
fn lose(stage: &Stage, editor: &mut Editor, repository: &Repository<'_>) -> Result<String> {
    let there = json!({"repository": uri(repository.path())});
    let job = editor.delegate(&brief(&json!([write("half.txt", "half\n"), {"say": "here"}, "hang"])), &there)?;
    editor.event(&job, "message")?;
    editor.kill_host(&job)?;
    ensure!(stage.has("setup"));
    Ok(job)
}

#[test]
fn a_recovery_that_dies_is_followed_by_one_that_does_the_same() -> Result<()> {
    let stage = Stage::new()?;
    let repository = stage.repository()?;
    let mut editor = stage.editor()?;
    let job = lose(&stage, &mut editor, &repository)?;
    // What a recovery leaves that dies as soon as it began: its own host is no process that there is.
    let store = Store::open(&AbsPath::new(stage.sandbox.pactify_home())?)?;
    let mut journal = Journal::open(store.job(&job.parse()?)?.lock(SOON)?)?;
    let (state, began) = (journal.state().clone(), journal.state().attempt.clone().context("no attempt")?);
    let mut process = began.host.process.clone();
    process.start_time += 1;
    let host = HostRecord { process, version: began.host.version };
    let at = state.started_at.context("not started")?;
    journal.append(at, state.next_attempt(), Known::AttemptStarted { reason: AttemptReason::Recovery, host })?;
    drop(journal);
    assert_eq!(editor.status(&job)?["state"], "lost");

    let agent = pid(&editor.event(&job, "launched")?["leader"]["pid"])?;
    editor.run("cancel", &json!({"jobId": job}))?;
    ensure!(rendezvous::ends(agent, SOON)?, "its processes are swept");
    let status = editor.status(&job)?;
    assert_eq!((&status["attempt"], &status["error"]["code"]), (&json!(3), &json!("hostLost")), "{status:#}");
    editor.apply(&job)?;
    assert_eq!(repository.read("half.txt")?, "half\n");
    Ok(())
}

#[test]
fn a_job_that_was_recovered_is_recovered_once() -> Result<()> {
    let stage = Stage::new()?;
    let repository = stage.repository()?;
    let mut editor = stage.editor()?;
    let job = lose(&stage, &mut editor, &repository)?;
    let cancel = || stage.sandbox.start("pactify", &["sub", "cancel", &job], b"");
    for ended in [cancel()?, cancel()?, cancel()?].map(|running| running.wait(JOB)) {
        ended?.success()?;
    }
    let status = editor.until(&job, "finished")?;
    assert_eq!((&status["attempt"], &status["error"]["code"]), (&json!(2), &json!("hostLost")), "{status:#}");

    // Who saw it lost, and gets its lock only now, starts a host for it all the same.
    editor.left_alone(&job)?;
    let folder = stage.sandbox.job(&job);
    let journal = fs::read(folder.join("events.jsonl"))?;
    let lock = File::options().append(true).read(true).open(folder.join("lock"))?;
    lock.lock()?;
    let mut host = stage.sandbox.command(outside::program("pactify-lsp")?);
    let ended = host.args(["__host", "recover", &job]).stdin(Stdio::from(lock)).output()?;
    drop(host);
    ensure!(ended.status.success(), "{ended:?}");
    assert_eq!(fs::read(folder.join("events.jsonl"))?, journal, "nothing is added");
    let begun = editor.events_of(&job, "attemptStarted")?;
    assert_eq!(begun.iter().filter(|event| event["reason"] == "recovery").count(), 1, "{begun:?}");
    editor.apply(&job)?;
    assert_eq!(repository.read("half.txt")?, "half\n");
    Ok(())
}
