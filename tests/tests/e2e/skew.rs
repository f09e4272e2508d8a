//! Hosts and records of other versions. An older server goes on serving what it understands of a newer one's work, an
//! older host answers a newer server, and nobody touches what isn't understood.
//!
//! The other version is played by this process: it writes a job's files as they are documented, holds its lock, and
//! listens where a host listens.

mod foreign;

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, Result};
use pactify_tests::agent::{Step, prompt};
use pactify_tests::editor::{Editor, JOB, use_scripted_agent};
use pactify_tests::rendezvous;
use pactify_tests::sandbox::{Repository, Sandbox};
use serde_json::{Value, json};

use foreign::Foreign;

const NEWER: &str = "20991231-235959-nnnnnn";

/// A sandbox with one finished job of this version, whose id comes with it. The editor's server follows no job: it
/// would repair those whose host this process only plays.
fn stage(sandbox: &Sandbox) -> Result<(Editor, Repository<'_>, String)> {
    use_scripted_agent(sandbox, &[])?;
    let repository = sandbox.filled("one")?;
    let mut editor = Editor::aside(sandbox, Some(repository.path()))?;
    let job = delegate(&mut editor, &json!([{"say": "looked"}]), "readOnly")?;
    editor.until(&job, "finished")?;
    Ok((editor, repository, job))
}

fn delegate(editor: &mut Editor, steps: &Value, access: &str) -> Result<String> {
    let steps: Vec<Step> = serde_json::from_value(steps.clone())?;
    editor.delegate(&format!("Look.\n\n{}", prompt(&steps)), &json!({"access": access}))
}

fn ids(list: &Value) -> Vec<&str> {
    list["jobs"].as_array().into_iter().flatten().filter_map(|job| job["id"].as_str()).collect()
}

#[test]
fn a_job_of_a_newer_host_is_served_as_far_as_it_is_understood() -> Result<()> {
    let sandbox = Sandbox::new()?;
    let (mut editor, _repository, ours) = stage(&sandbox)?;
    let mut newer = Foreign::like(&sandbox, &ours, NEWER, |spec| {
        spec["writtenBy"] = "9.0.0".into();
        spec["swarm"] = json!({"size": 3});
    })?;
    let lock = newer.hold()?;
    newer.record(1, newer.started())?;
    newer.record(1, json!({"type": "teleported", "to": {"host": "elsewhere"}}))?;
    newer.record(1, json!({"type": "launched", "leader": foreign::process(), "sandbox": "new"}))?;
    newer.record(1, json!({"type": "message", "words": ["a", "newer", "shape"]}))?;
    newer.record(1, json!({"type": "message", "text": "Working.", "mood": "calm"}))?;

    let status = editor.status(NEWER)?;
    assert_eq!((&status["state"], &status["activity"]), (&json!("running"), &json!("Working.")), "{status:#}");
    let list = editor.run("status", &json!({}))?;
    assert_eq!(ids(&list), [NEWER, &ours], "{list:#}");
    assert!(list["unreadable"].is_null(), "{list:#}");
    let events = editor.run("events", &json!({"jobId": NEWER}))?;
    let shown: Vec<&Value> = events["events"].as_array().into_iter().flatten().map(|event| &event["event"]).collect();
    assert_eq!(shown[1], &json!({"type": "teleported", "to": {"host": "elsewhere"}}), "kept whole");
    assert_eq!(shown[3]["words"], json!(["a", "newer", "shape"]));

    newer.record(1, json!({"type": "attemptEnded", "outcome": "succeeded", "finalMessage": "Done.", "score": 1}))?;
    drop(lock);
    let status = editor.until(NEWER, "finished")?;
    assert_eq!((&status["outcome"], &status["finalMessage"]), (&json!("succeeded"), &json!("Done.")), "{status:#}");
    // An older pactify may add to the journal; what it can't read stays as it was.
    let before = newer.journal()?;
    assert_eq!(editor.run("discard", &json!({"jobId": NEWER}))?["disposition"], "discarded");
    let after = newer.journal()?;
    assert!(after.starts_with(&before) && after.len() > before.len());
    Ok(())
}

#[test]
fn a_host_that_cannot_be_asked_is_named_with_the_way_out() -> Result<()> {
    let sandbox = Sandbox::new()?;
    let (mut editor, _repository, ours) = stage(&sandbox)?;
    let mut other = Foreign::like(&sandbox, &ours, NEWER, |_| {})?;
    let _lock = other.hold()?;
    other.record(1, other.started())?;

    let host = other.listen(&[
        r#"{"reply":"unsupported"}"#,
        r#"{"reply":"rescheduled","until":"tomorrow"}"#,
        r#"{"reply":"hello","version":"9.0.0","protocol":9,"job":"x","mood":"calm"}"#,
        "cancelling…",
        "",
        r#"{"reply":"accepted","within":"5s"}"#,
    ])?;
    for _ in 0..5 {
        let refused = editor.refused("cancel", &json!({"jobId": NEWER}))?;
        let data = refused.data.context("no data")?;
        assert_eq!(data["code"], "hostUnreachable", "{data:#}");
        assert!(data["next"].as_str().is_some_and(|next| next.len() > 20), "{data:#}");
    }
    assert_eq!(editor.run("cancel", &json!({"jobId": NEWER}))?["state"], "preparing");
    let asked = host.join().ok().context("the host panicked")??;
    assert_eq!(asked, vec![json!({"request": "cancel"}); 6]);

    // Nobody listens, and the lock is held: the job is neither lost nor to be repaired.
    let refused = editor.refused("cancel", &json!({"jobId": NEWER}))?;
    assert_eq!(refused.data.context("no data")?["code"], "hostUnreachable");
    assert_eq!(editor.status(NEWER)?["state"], "preparing");
    Ok(())
}

#[test]
fn a_host_that_does_not_listen_yet_is_waited_for() -> Result<()> {
    let sandbox = Sandbox::new()?;
    let (mut editor, _repository, ours) = stage(&sandbox)?;
    let young = Foreign::like(&sandbox, &ours, NEWER, |_| {})?;
    let _lock = young.hold()?;
    let cancel = json!({"command": "pactify.cancel", "arguments": [{"jobId": NEWER}]});
    let asked = editor.client().send_request("workspace/executeCommand", cancel)?;
    assert!(editor.client().answer(asked, Duration::from_millis(300)).is_err(), "answered before anyone listened");
    let host = young.listen(&[r#"{"reply":"accepted"}"#])?;
    editor.client().answer(asked, JOB)??;
    assert_eq!(host.join().ok().context("the host panicked")??, [json!({"request": "cancel"})]);
    Ok(())
}

#[test]
fn an_end_of_a_kind_that_only_a_newer_build_knows_is_an_end() -> Result<()> {
    let sandbox = Sandbox::new()?;
    let (mut editor, repository, ours) = stage(&sandbox)?;
    let mut newer = Foreign::like(&sandbox, &ours, NEWER, |_| {})?;
    newer.record(1, newer.started())?;
    assert_eq!(editor.status(NEWER)?["state"], "lost", "an open attempt without a host");
    let failure = json!({"code": "solarFlare", "message": "the sun was too bright", "next": "wait for the night"});
    newer.record(1, json!({"type": "attemptEnded", "outcome": "rescheduled", "failure": failure}))?;

    let before = newer.journal()?;
    let status = editor.status(NEWER)?;
    assert_eq!((&status["state"], &status["outcome"]), (&json!("finished"), &json!("failed")), "{status:#}");
    let message = status["error"]["message"].as_str().context("no message")?;
    assert!(message.contains("rescheduled") && message.contains("the sun was too bright"), "{message}");
    assert_eq!(status["error"]["next"], "wait for the night");
    // Neither a command nor a server that starts takes it for a job to be repaired.
    assert_eq!(editor.run("cancel", &json!({"jobId": NEWER}))?["state"], "finished");
    let mut second = Editor::open(&sandbox, repository.path())?;
    let later = delegate(&mut second, &json!([{"say": "looked"}]), "readOnly")?;
    second.until(&later, "finished")?;
    assert_eq!(newer.journal()?, before);
    Ok(())
}

#[test]
fn jobs_of_newer_formats_are_listed_and_left_alone() -> Result<()> {
    let sandbox = Sandbox::new()?;
    let (mut editor, repository, ours) = stage(&sandbox)?;
    let spec = Foreign::like(&sandbox, &ours, NEWER, |spec| {
        *spec = json!({"format": 99, "task": "in another shape"});
    })?;
    let journal = Foreign::of_format(&sandbox, &ours, "20991231-235959-jjjjjj", 99)?;

    let list = editor.run("status", &json!({}))?;
    assert_eq!(ids(&list), [&ours], "{list:#}");
    let unreadable = list["unreadable"].as_array().context("no list")?;
    for (entry, id) in unreadable.iter().zip([NEWER, "20991231-235959-jjjjjj"]) {
        assert_eq!((&entry["jobId"], &entry["failure"]["code"]), (&json!(id), &json!("storeNewer")), "{list:#}");
        assert!(entry["failure"]["message"].as_str().context("no message")?.contains("format 99"), "{list:#}");
        let before = contents(&sandbox.job(id))?;
        for verb in ["status", "diffPreview", "cancel", "discard"] {
            let refused = editor.refused(verb, &json!({"jobId": id}))?;
            let data = refused.data.with_context(|| format!("{verb}: no data"))?;
            assert_eq!(data["code"], "storeNewer", "{verb} {id}: {data:#}");
        }
        assert_eq!(contents(&sandbox.job(id))?, before);
    }
    assert_eq!(unreadable.len(), 2, "{list:#}");
    drop((spec, journal));

    // A server that starts among them works as ever.
    let mut second = Editor::open(&sandbox, repository.path())?;
    let job = delegate(&mut second, &json!([{"say": "looked"}]), "readOnly")?;
    assert_eq!(second.until(&job, "finished")?["outcome"], "succeeded");
    Ok(())
}

#[test]
fn a_summary_of_another_format_counts_as_absent() -> Result<()> {
    let sandbox = Sandbox::new()?;
    let (mut editor, repository, job) = stage(&sandbox)?;
    // Its last act is to write the summary, after the job is seen as finished.
    assert!(rendezvous::ends(editor.host(&job)?, JOB)?);
    drop(editor);
    let file = sandbox.job(&job).join("summary.json");
    let title = |sandbox: &Sandbox| -> Result<Value> {
        // A new server each time: a running one remembers.
        let mut editor = Editor::open(sandbox, repository.path())?;
        Ok(editor.run("status", &json!({}))?["jobs"][0]["title"].take())
    };
    foreign::reseal(&file, |summary| summary["title"] = "From the summary".into())?;
    assert_eq!(title(&sandbox)?, "From the summary", "one that fits speaks for the job");
    foreign::reseal(&file, |summary| summary["format"] = 99.into())?;
    assert_eq!(title(&sandbox)?, "Look.", "one of another format does not");
    Ok(())
}

#[test]
fn a_host_answers_a_newer_server_as_far_as_it_understands() -> Result<()> {
    let sandbox = Sandbox::new()?;
    let (mut editor, _repository, _) = stage(&sandbox)?;
    let job = delegate(&mut editor, &json!(["hang"]), "readOnly")?;
    editor.event(&job, "launched")?;
    let socket = sandbox.job(&job).join("host.sock");

    let hello = ask(&socket, r#"{"request":"hello","version":"9.0.0","protocol":9}"#)?;
    assert_eq!((&hello["reply"], &hello["job"]), (&json!("hello"), &json!(job)));
    for request in [r#"{"request":"teleport","to":"x"}"#, r#"{"cancel":true}"#, "cancel", "[]"] {
        assert_eq!(ask(&socket, request)?, json!({"reply": "unsupported"}), "{request}");
    }
    assert_eq!(editor.status(&job)?["state"], "running", "what wasn't understood wasn't done");
    assert_eq!(ask(&socket, r#"{"request":"cancel","reason":"lunch"}"#)?, json!({"reply": "accepted"}));
    assert_eq!(editor.until(&job, "finished")?["outcome"], "cancelled");
    Ok(())
}

fn ask(socket: &Path, request: &str) -> Result<Value> {
    let stream = UnixStream::connect(socket)?;
    stream.set_read_timeout(Some(pactify_tests::lsp::DEADLINE))?;
    (&stream).write_all(format!("{request}\n").as_bytes())?;
    let mut answer = String::new();
    BufReader::new(stream).read_line(&mut answer)?;
    Ok(serde_json::from_str(&answer)?)
}

/// The files of a folder and what is in them.
fn contents(folder: &Path) -> Result<Vec<(String, Vec<u8>)>> {
    let mut all = Vec::new();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        if entry.file_type()?.is_file() {
            all.push((entry.file_name().to_string_lossy().into_owned(), fs::read(entry.path())?));
        }
    }
    all.sort();
    Ok(all)
}
