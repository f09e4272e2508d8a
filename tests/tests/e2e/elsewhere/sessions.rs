//! Sessions of the person's own, and of jobs.

use std::fs;

use anyhow::{Context as _, Result, ensure};
use pactify_tests::agent::{brief, write};
use pactify_tests::editor::{Editor, scripted_sandbox};
use serde_json::json;

#[test]
fn the_person_s_sessions_stay_and_a_job_s_go_with_it() -> Result<()> {
    let sandbox = scripted_sandbox()?;
    let repository = sandbox.filled("one")?;
    // One of the same repository, whose name begins like one of the job's.
    let own = sandbox.home().join(".codex/sessions/2026/11/29");
    fs::create_dir_all(&own)?;
    let own = own.join("rollout-2026-11-29T10-00-00-01a2.jsonl");
    let kept = json!({"cwd": repository.path().display().to_string()}).to_string();
    fs::write(&own, &kept)?;
    let mut editor = Editor::open(&sandbox, repository.path())?;
    let jobs = [(); 2].map(|()| editor.delegate(&brief(&json!([write("a.txt", "a\n")])), &json!({})));
    let [one, other] = jobs;
    let (one, other) = (one?, other?);
    for job in [&one, &other] {
        assert_eq!(editor.until(job, "finished")?["outcome"], "succeeded");
    }
    let of = |job: &str| -> Result<usize> { Ok(crate::hostile::files_below(&sandbox.job(job).join("home"))?.len()) };
    ensure!(of(&one)? > 0 && of(&other)? > 0, "each has its session in a home of its own");
    editor.run("discard", &json!({"jobId": one}))?;
    ensure!(of(&other)? > 0, "the other job's session is its own");
    ensure!(!sandbox.job(&one).join("home").exists(), "a session goes with its job");
    editor.run("resume", &json!({"jobId": other, "message": brief(&json!([write("b.txt", "b\n")]))}))?;
    assert_eq!(editor.until(&other, "finished")?["outcome"], "succeeded", "and can go on");
    assert_eq!(fs::read_to_string(&own)?, kept);
    assert_eq!(fs::read_dir(own.parent().context("no folder")?)?.count(), 1, "nothing was added to the person's own");
    Ok(())
}

#[test]
fn a_retry_begins_a_session_of_its_own() -> Result<()> {
    let sandbox = scripted_sandbox()?;
    let repository = sandbox.filled("one")?;
    let mut editor = Editor::open(&sandbox, repository.path())?;
    let report = sandbox.root().join("report.json");
    let steps = json!([write("a.txt", "a\n"), {"report": report.display().to_string()}]);
    let job = editor.delegate(&brief(&steps), &json!({}))?;
    let first = editor.until(&job, "finished")?;
    let again = editor.run("retry", &json!({"jobId": job}))?["jobId"].as_str().context("no job")?.to_owned();
    let second = editor.until(&again, "finished")?;
    assert_eq!(second["outcome"], "succeeded", "{second:#}");
    ensure!(second["session"].is_string() && second["session"] != first["session"], "{first:#}\n{second:#}");
    let told = fs::read_to_string(&report)?;
    let session = first["session"].as_str().context("no session")?;
    ensure!(!told.contains("resume") && !told.contains(session), "it was not led to the other's: {told}");
    Ok(())
}
