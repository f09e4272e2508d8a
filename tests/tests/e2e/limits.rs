//! How much a job may use: tokens, and turns at once.

use std::fs;
use std::path::PathBuf;

use anyhow::Result;
use pactify_tests::agent::{brief, write};
use pactify_tests::editor::{Editor, JOB, configure_more, limit, scripted_sandbox};
use pactify_tests::lsp::Launch;
use pactify_tests::outside;
use pactify_tests::running::Running;
use pactify_tests::sandbox::Sandbox;
use serde_json::{Value, json};

/// What codex prints at the end of a turn that used so many tokens.
fn completed(tokens: u64) -> Value {
    let usage = json!({"input_tokens": tokens, "cached_input_tokens": 0, "output_tokens": 1});
    json!({"emit": json!({"type": "turn.completed", "usage": usage}).to_string()})
}

#[test]
fn a_job_beyond_its_tokens_is_ended_and_takes_no_further_turn() -> Result<()> {
    let sandbox = scripted_sandbox()?;
    limit(&sandbox, "max-tokens", 1000)?;
    let repository = sandbox.filled("one")?;
    let mut editor = Editor::open(&sandbox, repository.path())?;

    let job = editor.delegate(&brief(&json!([write("a.txt", "a\n"), completed(1000), "hang"])), &json!({}))?;
    let status = editor.until(&job, "finished")?;
    assert_eq!(
        (&status["outcome"], &status["error"]["code"]),
        (&json!("overLimit"), &json!("overLimit")),
        "{status:#}"
    );
    assert!(status["error"]["message"].to_string().contains("max-tokens"), "{status:#}");
    assert_eq!(status["changes"]["files"], 1, "what it did so far is captured: {status:#}");
    assert_eq!(editor.event(&job, "deadlinePassed")?["deadline"], "tokens");

    // A turn that was completed all the same keeps its outcome; but there is no next one.
    let steps = json!([write("b.txt", "b\n"), {"say": "Done."}, completed(900), completed(1001), {"exit": 0}]);
    let job = editor.delegate(&brief(&steps), &json!({}))?;
    let status = editor.until(&job, "finished")?;
    assert_eq!(status["outcome"], "succeeded", "{status:#}");
    assert!(status["notices"].to_string().contains("max-tokens"), "{status:#}");
    editor.run("resume", &json!({"jobId": job, "message": brief(&json!([write("c.txt", "c\n")]))}))?;
    let status = editor.until(&job, "finished")?;
    assert_eq!((&status["attempt"], &status["error"]["code"]), (&json!(2), &json!("overLimit")), "{status:#}");

    let job = editor.delegate(&brief(&json!([write("d.txt", "d\n")])), &json!({}))?;
    let status = editor.until(&job, "finished")?;
    assert_eq!((&status["outcome"], &status["notices"]), (&json!("succeeded"), &json!([])), "150 are few: {status:#}");
    Ok(())
}

#[test]
fn a_job_that_costs_more_than_it_may_is_ended_and_takes_no_further_turn() -> Result<()> {
    let sandbox = scripted_sandbox()?;
    limit(&sandbox, "max-cost", 0.5)?;
    let program = outside::program("scripted-agent")?.display().to_string();
    let agent = format!("[harnesses.mine]\ncommand = {program:?}\nargs = [\"acp\"]\nprotocol = \"acp\"\n");
    configure_more(&sandbox, &agent)?;
    let repository = sandbox.filled("one")?;
    let mut editor = Editor::open(&sandbox, repository.path())?;
    // What the session cost so far, in all.
    let cost = |amount: f64| {
        json!({"acp": {"update": {"sessionUpdate": "usage_update", "used": 1, "size": 9,
            "cost": {"amount": amount, "currency": "USD"}}}})
    };
    let delegate = |editor: &mut Editor, steps: Value| editor.delegate(&brief(&steps), &json!({"harness": "mine"}));

    let job = delegate(&mut editor, json!([write("a.txt", "a\n"), cost(0.4), cost(0.6), "hang"]))?;
    let status = editor.until(&job, "finished")?;
    let ended = (&status["outcome"], &status["error"]["code"], &status["changes"]["files"]);
    assert_eq!(ended, (&json!("overLimit"), &json!("overLimit"), &json!(1)), "{status:#}");
    assert!(status["error"]["message"].to_string().contains("max-cost"), "{status:#}");
    assert_eq!(editor.event(&job, "deadlinePassed")?["deadline"], "cost");

    // Over all its turns: 0.4 of the first, and what the second adds.
    let job = delegate(&mut editor, json!([write("b.txt", "b\n"), cost(0.4), {"say": "Done."}]))?;
    let status = editor.until(&job, "finished")?;
    assert_eq!((&status["outcome"], &status["usage"]["cost"]), (&json!("succeeded"), &json!(0.4)), "{status:#}");
    let more = brief(&json!([write("c.txt", "c\n"), cost(0.7), "hang"]));
    editor.run("resume", &json!({"jobId": job, "message": more}))?;
    let status = editor.until(&job, "finished")?;
    assert_eq!((&status["attempt"], &status["outcome"]), (&json!(2), &json!("overLimit")), "{status:#}");
    editor.run("resume", &json!({"jobId": job, "message": more}))?;
    let status = editor.until(&job, "finished")?;
    assert_eq!((&status["attempt"], &status["error"]["code"]), (&json!(3), &json!("overLimit")), "{status:#}");
    assert_eq!(editor.events_of(&job, "launched")?.len(), 2, "the third is not begun");
    Ok(())
}

#[test]
fn no_turn_begins_where_too_little_room_would_remain() -> Result<()> {
    let sandbox = scripted_sandbox()?;
    let repository = sandbox.filled("one")?;
    let mut editor = Editor::open(&sandbox, repository.path())?;
    let steps = brief(&json!([write("a.txt", "a\n"), {"say": "Done."}]));
    let job = editor.delegate(&steps, &json!({}))?;
    assert_eq!(editor.until(&job, "finished")?["outcome"], "succeeded");
    limit(&sandbox, "free-bytes", 1_000_000_000_000_000_000_i64)?;
    // A new tree, a tree that is there, and a checkout.
    editor.run("resume", &json!({"jobId": job, "message": steps}))?;
    let new = editor.delegate(&steps, &json!({}))?;
    let beside = editor.delegate(&steps, &json!({"access": "readOnly", "inPlace": true}))?;
    for (job, attempt) in [(&job, 2), (&new, 1), (&beside, 1)] {
        let status = editor.until(job, "finished")?;
        let told = (&status["attempt"], &status["outcome"], &status["error"]["code"]);
        assert_eq!(told, (&json!(attempt), &json!("failed"), &json!("noSpace")), "{status:#}");
        assert!(status["error"]["next"].to_string().contains("free-bytes"), "{status:#}");
    }
    // With room again, the job goes on.
    limit(&sandbox, "free-bytes", 1)?;
    editor.run("resume", &json!({"jobId": job, "message": steps}))?;
    assert_eq!(editor.until(&job, "finished")?["outcome"], "succeeded");
    Ok(())
}

#[test]
fn a_job_that_fills_the_disk_is_ended_with_its_work() -> Result<()> {
    let sandbox = scripted_sandbox()?;
    limit(&sandbox, "free-bytes", 32 << 20)?;
    let repository = sandbox.filled("one")?;
    // A disk of its own, for this server and all that it starts.
    let mut command = sandbox.command("unshare");
    command.args(["--user", "--map-root-user", "--mount", "sh", "-c"]);
    command.arg("mkdir -p \"$1\" && mount -t tmpfs -o size=64m,mode=700 none \"$1\" && exec \"$0\" --stdio");
    command.arg(outside::program("pactify-lsp")?).arg(sandbox.pactify_home());
    let mut editor = Editor::start(Launch::new(command), repository.path())?;
    let fill = json!({"run": "head -c 40000000 /dev/zero > big"});
    let job = editor.delegate(&brief(&json!([write("a.txt", "a\n"), fill, "hang"])), &json!({}))?;
    let status = editor.until(&job, "finished")?;
    let told = (&status["outcome"], &status["error"]["code"], &status["changes"]["files"]);
    assert_eq!(told, (&json!("failed"), &json!("noSpace"), &json!(2)), "{status:#}");
    assert!(status["error"]["message"].to_string().contains("was ended: "), "{status:#}");
    assert!(status["error"]["next"].to_string().contains("free-bytes"), "{status:#}");
    Ok(())
}

#[test]
fn a_job_that_waits_for_its_turn_says_why() -> Result<()> {
    let sandbox = scripted_sandbox()?;
    limit(&sandbox, "running-jobs", 1)?;
    let repository = sandbox.filled("one")?;
    let mut editor = Editor::open(&sandbox, repository.path())?;
    let go = sandbox.root().join("go");
    let wait = json!({"waitFor": [go.display().to_string(), 600.0]});
    let first = editor.delegate(&brief(&json!([write("a.txt", "a\n"), wait])), &json!({}))?;
    editor.event(&first, "launched")?;
    let second = editor.delegate(&brief(&json!([write("b.txt", "b\n")])), &json!({}))?;
    let status = editor.status(&second)?;
    assert_eq!(status["state"], "queued", "{status:#}");
    let why = "waits for its turn: 1 job runs at once ([limits] running-jobs)";
    assert_eq!(status["activity"], why);
    let listed = editor.run("status", &json!({}))?;
    assert!(listed.to_string().contains(why), "{listed:#}");
    fs::write(&go, "")?;
    for job in [first, second] {
        assert_eq!(editor.until(&job, "finished")?["outcome"], "succeeded");
    }
    Ok(())
}

/// Has a job run until the file is there that this names.
fn take_the_place(sandbox: &Sandbox, editor: &mut Editor) -> Result<PathBuf> {
    let go = sandbox.root().join("go");
    let wait = json!([{"waitFor": [go.display().to_string(), 600.0]}]);
    let running = editor.delegate(&brief(&wait), &json!({}))?;
    editor.event(&running, "launched")?;
    Ok(go)
}

#[test]
fn a_resume_that_waits_for_its_turn_is_not_told_as_ended() -> Result<()> {
    let sandbox = scripted_sandbox()?;
    limit(&sandbox, "running-jobs", 1)?;
    let repository = sandbox.filled("one")?;
    let mut editor = Editor::open(&sandbox, repository.path())?;
    let resumed = editor.delegate(&brief(&json!([write("a.txt", "a\n")])), &json!({}))?;
    let ends = |editor: &mut Editor| {
        editor.client().take("the end", JOB, |message| {
            message["method"] == "window/showMessage" && message["params"].to_string().contains("changed ")
        })
    };
    ends(&mut editor)?;
    let go = take_the_place(&sandbox, &mut editor)?;
    let message = brief(&json!([write("b.txt", "b\n")]));
    let moved = editor.run("resume", &json!({"jobId": resumed, "message": message}))?;
    assert_eq!(moved["state"], "finished", "it waits: {moved:#}");
    let told = editor.client().drain();
    assert!(!told.iter().any(|message| message["method"] == "window/showMessage"), "{told:#?}");
    fs::write(&go, "")?;
    let told = ends(&mut editor)?;
    assert!(told["params"]["message"].to_string().contains("changed 2 files"), "{told:#}");
    Ok(())
}

#[test]
fn a_terminal_tells_the_end_of_the_turn_that_it_asked_for() -> Result<()> {
    let sandbox = scripted_sandbox()?;
    limit(&sandbox, "running-jobs", 1)?;
    let repository = sandbox.filled("one")?;
    let mut editor = Editor::open(&sandbox, repository.path())?;
    let resumed = editor.delegate(&brief(&json!([write("a.txt", "a\n")])), &json!({}))?;
    editor.until(&resumed, "finished")?;
    let go = take_the_place(&sandbox, &mut editor)?;
    let resume = |file: &str| -> Result<Running> {
        let sub = repository.start_sub(&["resume", &resumed], &brief(&json!([write(file, "b\n")])))?;
        sub.wait_for_error_line("goes on when its turn comes", JOB)?;
        Ok(sub)
    };
    let taken_back = resume("b.txt")?;
    editor.run("cancel", &json!({"jobId": resumed}))?;
    let ended = taken_back.wait(JOB)?;
    assert!(ended.stderr.contains("its resume was taken back"), "{}", ended.stderr);
    let waiting = resume("c.txt")?;
    fs::write(&go, "")?;
    let ended = waiting.wait(JOB)?.success()?;
    assert!(ended.stderr.contains("changed 2 files"), "{}", ended.stderr);
    Ok(())
}
