//! `cargo xtask demo`: one job from the brief to the applied result, over the wire that editors use.
//!
//! [`stage`] sets it up the way a person behind a gateway would: the real codex, configured in pactify's own
//! configuration, talks to a scripted model provider on the loopback; without npm the scripted agent stands in for
//! codex. The session here is what an editor does, and prints what an editor would show. Nothing is touched outside a
//! temporary folder (and, for codex, the tools cache), and every wait has an end.

mod screen;
mod stage;

use std::time::{Duration, Instant};

use anyhow::{Context, bail, ensure};
use pactify_core::protocol::{JobDetail, JobEventParams, words};
use pactify_tests::editor::Editor;
use pactify_tests::sandbox::Repository;
use serde::Deserialize;
use serde_json::{Value, json};

use screen::Screen;
use stage::{BRIEF, EXPECTED, Harness, Stage};

pub(crate) use stage::build;

/// For the whole job, also on a busy machine.
const JOB: Duration = Duration::from_secs(180);
/// For the server to end when it is told to.
const END: Duration = Duration::from_secs(10);

/// Builds what it starts, and plays.
pub(crate) fn run() -> anyhow::Result<()> {
    stage::build()?;
    play()
}

/// The demo with what is built already.
pub(crate) fn play() -> anyhow::Result<()> {
    let screen = Screen::new();
    screen.heading("Preparing");
    let begun = Instant::now();
    let stage = Stage::new(&screen)?;
    let repository = stage.repository()?;
    screen.fact("repository", &repository.path().display().to_string());
    screen.fact("pactify home", &stage.sandbox.pactify_home().display().to_string());

    let mut editor = Editor::open(&stage.sandbox, repository.path())?;
    let job = perform(&screen, &mut editor, &repository)?;
    let client = editor.client();
    client.request("shutdown", Value::Null)?;
    client.notify("exit", Value::Null)?;
    ensure!(client.wait_for_exit(END)?.success(), "pactify-lsp did not end well");

    let agent = match &stage.harness {
        Harness::Codex(provider) => {
            format!("the real codex asked the scripted provider {} times", provider.requests().len())
        }
        Harness::Scripted => "the scripted agent stood in for codex".to_owned(),
    };
    screen.heading("Done");
    screen
        .good(&format!("job {job}: delegated, followed, previewed, applied in {:.1} s", begun.elapsed().as_secs_f64()));
    screen.good(&agent);
    screen.good("before the apply the checkout was as it had been; unfinished work in it was left alone");
    Ok(())
}

/// What a person does in an editor, with one job; returns its id.
fn perform(screen: &Screen, editor: &mut Editor, repository: &Repository<'_>) -> anyhow::Result<String> {
    screen.heading("Delegating (pactify.delegate)");
    screen.quote(BRIEF.said);
    let before = repository.snapshot()?;
    let delegated = editor.run("delegate", &json!({"brief": BRIEF.whole()?}))?;
    let job = delegated["jobId"].as_str().context("the server named no job")?.to_owned();
    screen.fact("job", &job);
    screen.fact("worktree", delegated["worktree"].as_str().unwrap_or_default());

    screen.heading("Working ($/progress and pactify/job/event)");
    if let Err(error) = follow(screen, editor) {
        // The job would go on without us.
        let _ = editor.run("cancel", &json!({"jobId": job}));
        return Err(error);
    }
    let status = editor.run("status", &json!({"jobId": job}))?["job"].take();
    let ending = words::ending(&JobDetail::deserialize(&status)?);
    ensure!(status["outcome"] == "succeeded", "the job {}: {}\n{status:#}", ending.what, ending.next);
    screen.good(&format!("{}: {}", ending.what, ending.next));
    let changed = || {
        let mut changed = repository.snapshot()?.changed_since(&before);
        // What keeps `git gc` from taking the job's base; it goes when the job is discarded.
        changed.retain(|path| !path.starts_with(".git/refs/pactify/keep/"));
        anyhow::Ok(changed)
    };
    ensure!(changed()?.is_empty(), "changed before the apply: {}", changed()?.join(", "));

    screen.heading("Previewing (pactify.diffPreview)");
    let preview = editor.run("diffPreview", &json!({"jobId": job, "format": "patch"}))?;
    screen.patch(preview["patch"].as_str().context("the preview has no patch")?);

    screen.heading("Applying (pactify.apply)");
    let applied = editor.run("apply", &json!({"jobId": job, "changeSet": preview["changeSet"]}))?;
    screen.fact("disposition", applied["disposition"].as_str().unwrap_or_default());
    for line in repository.status()?.lines() {
        screen.fact("git status", line);
    }
    ensure!(changed()? == EXPECTED.map(|(path, _)| path), "changed by the apply: {}", changed()?.join(", "));
    for (path, content) in EXPECTED {
        let found = repository.read(path)?;
        ensure!(found == content, "{path} holds {found:?} instead of {content:?}");
        screen.file(path, &found);
    }
    Ok(job)
}

/// Prints what comes until the job is over.
fn follow(screen: &Screen, editor: &mut Editor) -> anyhow::Result<()> {
    let deadline = Instant::now() + JOB;
    let is_shown = |message: &Value| {
        ["$/progress", "pactify/job/event", "pactify/job/changed"].iter().any(|method| message["method"] == *method)
    };
    let mut progress_is_open = false;
    let mut is_finished = false;
    // A finished job may still owe the end of its progress.
    while !is_finished || progress_is_open {
        let left = deadline.saturating_duration_since(Instant::now());
        let message = editor.client().take("news of the job", left, is_shown)?;
        let params = &message["params"];
        match message["method"].as_str() {
            Some("$/progress") => {
                let value = &params["value"];
                let text = ["title", "message"].into_iter().filter_map(|key| value[key].as_str()).collect::<Vec<_>>();
                progress_is_open = value["kind"] != "end";
                screen.progress(&text.join(" — "));
            }
            Some("pactify/job/event") => {
                if let Some(line) = words::event(&JobEventParams::deserialize(params)?.event) {
                    screen.event(&line);
                }
            }
            _ => match params["state"].as_str() {
                Some("finished") => is_finished = true,
                Some("lost") => bail!("the job's host is gone"),
                _ => {}
            },
        }
    }
    Ok(())
}
