//! The real agents where the person is asked, and a retry with them.

use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use pactify_tests::editor::{Editor, JOB};
use serde_json::{Value, json};

use super::{Agent, PATIENCE, Stage, finished};

/// The one request that waits for the person.
fn asked(editor: &mut Editor, job: &str) -> Result<Value> {
    let deadline = Instant::now() + JOB * PATIENCE;
    loop {
        let status = editor.status(job)?;
        if let Some([request]) = status["requests"].as_array().map(Vec::as_slice) {
            return Ok(request.clone());
        }
        ensure!(status["state"] != "finished" && Instant::now() < deadline, "nothing is asked: {status:#}");
        let _ = editor.client().notification("pactify/job/event", Duration::from_millis(200));
    }
}

/// Answers with the option of this kind.
fn answer(editor: &mut Editor, job: &str, request: &Value, kind: &str) -> Result<()> {
    let options = request["options"].as_array().context("no options")?;
    let option = options.iter().find(|option| option["kind"].as_str().is_some_and(|found| found == kind));
    let option = option.with_context(|| format!("no {kind}: {request:#}"))?;
    let argument = json!({"jobId": job, "requestId": request["requestId"], "optionId": option["id"]});
    editor.run("answer", &argument).map(drop)
}

/// What the notices of a kimi that asks say.
const UNASKED: &str = "files of the tree without asking";

fn does_what_the_person_says(agent: Agent) -> Result<()> {
    // kimi shows the first 50 characters of a command where it asks.
    let long = format!("echo {} > a.txt; touch the-end-of-it", "a".repeat(500));
    let steps = json!([agent.run(&long), agent.run("echo b > b.txt"), {"message": "Done."}]);
    let stage = Stage::playing(agent, &steps)?;
    let repository = stage.repository()?;
    let mut editor = Editor::open(&stage.sandbox, repository.path())?;
    let job = stage.delegate(&mut editor, "Write two files.", json!({"permissions": "ask"}))?;
    let first = asked(&mut editor, &job)?;
    let tree = stage.sandbox.job(&job).join("tree");
    ensure!(!tree.join("a.txt").exists(), "nothing is done before the answer");
    ensure!(first["detail"].as_str().is_some_and(|detail| detail.contains(&long)), "all of it is shown: {first:#}");
    answer(&mut editor, &job, &first, "allow_once")?;
    let second = asked(&mut editor, &job)?;
    assert_ne!(first["requestId"], second["requestId"]);
    answer(&mut editor, &job, &second, "reject_once")?;
    let status = finished(&mut editor, &job)?;
    assert_eq!((&status["outcome"], &status["finalMessage"]), (&json!("succeeded"), &json!("Done.")), "{status:#}");
    ensure!(tree.join("a.txt").exists() && !tree.join("b.txt").exists(), "{status:#}");
    // Whoever wants to be asked is told what they are not asked about.
    assert_eq!(status["notices"].to_string().contains(UNASKED), agent == Agent::Kimi, "{status:#}");
    Ok(())
}

#[test]
fn kimi_edits_its_tree_unasked_and_says_so() -> Result<()> {
    let stage = Stage::playing(Agent::Kimi, &json!([Agent::Kimi.write("a.txt", "a\n"), {"message": "Done."}]))?;
    let repository = stage.repository()?;
    let mut editor = Editor::open(&stage.sandbox, repository.path())?;
    let job = stage.delegate(&mut editor, "Write a file.", json!({"permissions": "ask"}))?;
    let status = finished(&mut editor, &job)?;
    assert_eq!((&status["outcome"], &status["changes"]["files"]), (&json!("succeeded"), &json!(1)), "{status:#}");
    ensure!(status["notices"].to_string().contains(UNASKED), "{status:#}");
    let events = editor.run("events", &json!({"jobId": job, "limit": 1000}))?.to_string();
    ensure!(!events.contains("permissionRequested"), "a newer kimi asks: then the notice is wrong");
    let job = stage.delegate(&mut editor, "Write a file.", json!({}))?;
    let status = finished(&mut editor, &job)?;
    ensure!(!status["notices"].to_string().contains(UNASKED), "nobody wants to be asked: {status:#}");
    Ok(())
}

#[test]
fn opencode_s_edits_are_shown_before_they_are_allowed() -> Result<()> {
    let stage =
        Stage::playing(Agent::Opencode, &json!([Agent::Opencode.write("a.txt", "first\n"), {"message": "Done."}]))?;
    let repository = stage.repository()?;
    let mut editor = Editor::open(&stage.sandbox, repository.path())?;
    let job = stage.delegate(&mut editor, "Write a file.", json!({"permissions": "ask"}))?;
    let request = asked(&mut editor, &job)?;
    let detail = request["detail"].as_str().context("no detail")?;
    ensure!(detail.contains("a.txt\n@@\n+first"), "{detail}");
    answer(&mut editor, &job, &request, "allow_once")?;
    assert_eq!(finished(&mut editor, &job)?["outcome"], "succeeded");
    Ok(())
}

#[test]
fn kimi_does_what_the_person_says() -> Result<()> {
    does_what_the_person_says(Agent::Kimi)
}

#[test]
fn opencode_does_what_the_person_says() -> Result<()> {
    does_what_the_person_says(Agent::Opencode)
}

/// From what the repository holds by then, in a session of its own.
fn a_retry_begins_anew(agent: Agent) -> Result<()> {
    let stage = Stage::playing(agent, &json!([agent.write("a.txt", "a\n"), {"message": "Done."}]))?;
    let repository = stage.repository()?;
    let mut editor = Editor::open(&stage.sandbox, repository.path())?;
    let job = stage.delegate(&mut editor, "Write a file, please.", json!({}))?;
    let first = finished(&mut editor, &job)?;
    assert_eq!(first["outcome"], "succeeded", "{first:#}");
    let retried = editor.run("retry", &json!({"jobId": job}))?;
    let again = finished(&mut editor, retried["jobId"].as_str().context("no jobId")?)?;
    assert_eq!((&again["outcome"], &again["harness"]), (&json!("succeeded"), &json!(agent.name())), "{again:#}");
    assert_eq!(again["changes"]["files"], 1, "{again:#}");
    assert_ne!(again["session"], first["session"]);
    let last = stage.provider.requests().pop().context("nothing was asked")?.body.to_string();
    assert_eq!(
        last.matches("Write a file, please.").count(),
        1,
        "it hears the brief, and nothing of the first: {last}"
    );
    Ok(())
}

#[test]
fn a_retry_with_kimi_begins_anew() -> Result<()> {
    a_retry_begins_anew(Agent::Kimi)
}

#[test]
fn a_retry_with_opencode_begins_anew() -> Result<()> {
    a_retry_begins_anew(Agent::Opencode)
}
