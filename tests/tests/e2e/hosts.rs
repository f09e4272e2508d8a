//! Jobs as their hosts run them, seen through an editor: ends of every kind, deaths of every process, repair.
//!
//! The scripted agent stands in for codex, because codex can't be made to ignore signals or to overrun a pipe.

use std::time::Instant;

use anyhow::{Context as _, Result};
use pactify_core::job::event::Known;
use pactify_core::job::outcome::Outcome;
use pactify_core::{AbsPath, Failure, FailureCode};
use pactify_engine::apply::RepositoryLock;
use pactify_engine::journal::Journal;
use pactify_engine::store::Store;
use pactify_tests::agent::{brief, write};
use pactify_tests::editor::{Editor, JOB, limit, pid, scripted_sandbox};
use pactify_tests::lsp::{Launch, RpcError};
use pactify_tests::outside;
use pactify_tests::rendezvous;
use pactify_tests::running::Running;
use pactify_tests::sandbox::Sandbox;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

#[test]
fn a_job_is_delegated_previewed_and_applied() -> Result<()> {
    let sandbox = scripted_sandbox()?;
    let repository = sandbox.filled("one")?;
    repository.write("mine.txt", "not committed\n")?;
    let before = repository.snapshot()?;

    let mut editor = Editor::open(&sandbox, repository.path())?;
    let job = editor.delegate(&brief(&json!([write("new/hello.txt", "hello\n"), {"say": "Done."}])), &json!({}))?;
    let status = editor.until(&job, "finished")?;
    assert_eq!((&status["outcome"], &status["disposition"]), (&json!("succeeded"), &json!("pending")), "{status:#}");
    assert_eq!(status["finalMessage"], "Done.");
    assert_eq!(status["changes"], json!({"files": 1, "added": 1, "deleted": 0, "sensitive": 0}));
    let changed = before.changed_since(&repository.snapshot()?);
    assert_eq!(changed, [format!(".git/refs/pactify/keep/{job}")], "nothing but what keeps the base from gc");

    let content = editor.run("content", &json!({"jobId": job, "side": "result", "path": "new/hello.txt"}))?;
    assert_eq!(content["text"], "hello\n");
    let stale = editor.refused("apply", &json!({"jobId": job, "changeSet": "a".repeat(40)}))?;
    assert_eq!(stale.data.context("no data")?["code"], "stalePreview");

    let applied = editor.apply(&job)?;
    assert_eq!(applied["applied"], json!([{"path": "new/hello.txt"}]));
    assert_eq!(repository.read("new/hello.txt")?, "hello\n");
    assert_eq!(repository.read("mine.txt")?, "not committed\n");
    assert_eq!(editor.status(&job)?["disposition"], "applied");

    let moved = editor.run("discard", &json!({"jobId": job}))?;
    assert_eq!(moved["disposition"], "discarded");
    assert_eq!(repository.git(&["for-each-ref", "refs/pactify"])?, "");
    assert_eq!(repository.git(&["worktree", "list", "--porcelain"])?.matches("worktree ").count(), 1);
    Ok(())
}

#[test]
fn a_job_outlives_its_server() -> Result<()> {
    let sandbox = scripted_sandbox()?;
    let repository = sandbox.filled("one")?;
    let go = sandbox.root().join("go");

    let mut first = Editor::open(&sandbox, repository.path())?;
    let wait = json!({"waitFor": [go.display().to_string(), 600.0]});
    let job = first.delegate(&brief(&json!([write("a.txt", "a\n"), wait, write("b.txt", "b\n")])), &json!({}))?;
    first.event(&job, "launched")?;
    first.client().signal(Signal::KILL)?;
    drop(first);
    std::fs::write(&go, "")?;

    let mut second = Editor::open(&sandbox, repository.path())?;
    let status = second.until(&job, "finished")?;
    assert_eq!(status["outcome"], "succeeded", "{status:#}");
    second.apply(&job)?;
    assert_eq!((repository.read("a.txt")?, repository.read("b.txt")?), ("a\n".into(), "b\n".into()));
    Ok(())
}

#[test]
fn a_host_holds_nothing_that_an_editor_left_open() -> Result<()> {
    let sandbox = scripted_sandbox()?;
    let repository = sandbox.filled("one")?;
    let leaked = sandbox.root().join("leaked");
    std::fs::write(&leaked, "")?;
    let mut shell = sandbox.command("/bin/sh");
    shell.args(["-c", r#"exec 7<"$1" 9>>"$1"; exec "$0" --stdio"#]);
    shell.arg(outside::program("pactify-lsp")?).arg(&leaked);
    let mut editor = Editor::start(Launch::new(shell), repository.path())?;
    let server = editor.client().pid();

    let job = editor.delegate(&brief(&json!(["hang"])), &json!({}))?;
    let host = editor.host(&job)?;
    let agent = pid(&editor.event(&job, "launched")?["leader"]["pid"])?;
    let holds = |process: Pid| -> Result<bool> {
        let open = std::fs::read_dir(format!("/proc/{}/fd", process.as_raw_nonzero()))?;
        // One that is closed meanwhile is none of these.
        Ok(open.flatten().filter_map(|entry| std::fs::read_link(entry.path()).ok()).any(|target| target == leaked))
    };
    assert!(holds(server)?, "nothing leaked: this proves nothing");
    assert!(!holds(host)? && !holds(agent)?);
    editor.run("cancel", &json!({"jobId": job}))?;
    editor.until(&job, "finished")?;
    Ok(())
}

#[test]
fn a_job_whose_host_dies_is_lost_then_swept_and_captured() -> Result<()> {
    let sandbox = scripted_sandbox()?;
    let repository = sandbox.filled("one")?;

    let mut editor = Editor::aside(&sandbox, Some(repository.path()))?;
    let job = editor.delegate(&brief(&json!([write("half.txt", "half\n"), "ignoreSignals", "hang"])), &json!({}))?;
    editor.event(&job, "filesTouched")?;
    let agent = pid(&editor.event(&job, "launched")?["leader"]["pid"])?;
    editor.kill_host(&job)?;
    assert_eq!(editor.status(&job)?["state"], "lost", "at the next look");

    // The next writer command repairs it.
    let moved = editor.run("cancel", &json!({"jobId": job}))?;
    assert_eq!(moved["state"], "finished");
    assert!(rendezvous::ends(agent, JOB)?, "its processes are swept");
    let status = editor.status(&job)?;
    assert_eq!((&status["outcome"], &status["error"]["code"]), (&json!("failed"), &json!("hostLost")), "{status:#}");
    editor.apply(&job)?;
    assert_eq!(repository.read("half.txt")?, "half\n");
    Ok(())
}

#[test]
fn a_server_that_starts_repairs_what_it_finds_lost() -> Result<()> {
    let sandbox = scripted_sandbox()?;
    let repository = sandbox.filled("one")?;

    let mut first = Editor::open(&sandbox, repository.path())?;
    let job = first.delegate(&brief(&json!([write("half.txt", "half\n"), "hang"])), &json!({}))?;
    first.event(&job, "filesTouched")?;
    let host = first.host(&job)?;
    first.client().signal(Signal::KILL)?;
    drop(first);
    kill_process(host, Signal::KILL)?;

    let mut second = Editor::open(&sandbox, repository.path())?;
    let status = second.until(&job, "finished")?;
    assert_eq!(status["error"]["code"], "hostLost", "{status:#}");
    assert_eq!(status["changes"]["files"], 1);
    Ok(())
}

#[test]
fn a_cancel_ends_even_what_does_not_want_to_end() -> Result<()> {
    let sandbox = scripted_sandbox()?;
    let repository = sandbox.filled("one")?;
    let escapee = sandbox.root().join("escapee.pid");

    let mut editor = Editor::open(&sandbox, repository.path())?;
    let escape =
        json!({"escape": {"how": ["doubleFork", "setsid", "ignoreSignals"], "pidFile": escapee.display().to_string()}});
    let list = json!([write("half.txt", "half\n"), escape, {"say": "escaped"}, "ignoreSignals", "hang"]);
    let job = editor.delegate(&brief(&list), &json!({}))?;
    editor.event(&job, "message")?;
    let escapee = pid(&std::fs::read_to_string(&escapee)?.trim().parse::<i64>()?.into())?;
    editor.run("cancel", &json!({"jobId": job}))?;
    let status = editor.until(&job, "finished")?;
    assert_eq!(status["outcome"], "cancelled", "{status:#}");
    assert_eq!(status["changes"]["files"], 1, "what was done is captured");
    assert!(rendezvous::ends(escapee, JOB)?);
    Ok(())
}

#[test]
fn jobs_end_as_they_deserve() -> Result<()> {
    let sandbox = scripted_sandbox()?;
    let repository = sandbox.filled("one")?;
    let mut editor = Editor::open(&sandbox, repository.path())?;

    let read_only = json!({"access": "readOnly"});
    let cases = [
        (json!([{"say": "nothing to do"}]), json!({}), "noChanges", Value::Null),
        (json!([{"say": "looked"}]), read_only.clone(), "succeeded", Value::Null),
        (json!(["ignoreSandbox", write("x", "x\n")]), read_only, "readOnlyViolated", json!("readOnlyViolated")),
        (json!([{"exit": 0}]), json!({}), "noResult", json!("noResult")),
        (json!([{"die": 9}]), json!({}), "failed", json!("harnessFailed")),
        (json!([write("x", "x\n"), "hang"]), json!({"timeoutSeconds": 2}), "timedOut", json!("timedOut")),
        (json!([write("x", "x\n"), "hang"]), json!({"stallSeconds": 2}), "stalled", json!("stalled")),
        (json!([{"longLine": 20_000_000}, write("x", "x\n"), {"say": "Done."}]), json!({}), "succeeded", Value::Null),
        (json!([{"emitBytes": "ff00fe0a"}, write("x", "x\n")]), json!({}), "succeeded", Value::Null),
        (json!([{"flood": 5000}, write("x", "x\n")]), json!({}), "succeeded", Value::Null),
    ];
    for (list, more, outcome, code) in cases {
        let job = editor.delegate(&brief(&list), &more)?;
        let status = editor.until(&job, "finished")?;
        assert_eq!(status["outcome"], outcome, "{list}: {status:#}");
        assert_eq!(status["error"]["code"], code, "{list}: {status:#}");
    }
    Ok(())
}

#[test]
fn a_job_is_refused_inside_a_job_and_without_a_repository() -> Result<()> {
    let mut sandbox = scripted_sandbox()?;
    let plain = sandbox.root().join("plain");
    std::fs::create_dir(&plain)?;
    let mut editor = Editor::open(&sandbox, &plain)?;
    let refused = editor.refused("delegate", &json!({"brief": "x"}))?;
    assert_eq!(refused.data.context("no data")?["code"], "noRepository");
    drop(editor);

    sandbox.set("PACTIFY_JOB", "20261129-154512-aaaaaa");
    let repository = sandbox.filled("one")?;
    let mut editor = Editor::open(&sandbox, repository.path())?;
    let refused = editor.refused("delegate", &json!({"brief": "x"}))?;
    assert_eq!(refused.data.context("no data")?["code"], "refusedInsideJob");
    Ok(())
}

#[test]
fn a_finished_job_goes_on_in_its_session_and_tree() -> Result<()> {
    let sandbox = scripted_sandbox()?;
    let repository = sandbox.filled("one")?;
    let mut editor = Editor::open(&sandbox, repository.path())?;
    let job = editor.delegate(&brief(&json!([write("a.txt", "a\n")])), &json!({}))?;
    let first = editor.until(&job, "finished")?;

    let more = brief(&json!([write("b.txt", "b\n"), {"say": "And b."}]));
    editor.run("resume", &json!({"jobId": job, "message": more}))?;
    let second = editor.until(&job, "finished")?;
    assert_eq!((&second["attempt"], &second["outcome"]), (&json!(2), &json!("succeeded")), "{second:#}");
    assert_eq!(second["session"], first["session"]);
    assert_eq!(second["changes"]["files"], 2);
    editor.apply(&job)?;
    assert_eq!((repository.read("a.txt")?, repository.read("b.txt")?), ("a\n".into(), "b\n".into()));

    editor.run("discard", &json!({"jobId": job}))?;
    let refused = editor.refused("resume", &json!({"jobId": job, "message": "again"}))?;
    assert_eq!(refused.data.context("no data")?["code"], "wrongState");
    Ok(())
}

#[test]
fn no_harness_is_started_where_there_is_no_tree_for_it() -> Result<()> {
    let sandbox = scripted_sandbox()?;
    limit(&sandbox, "running-jobs", 1)?;
    let repository = sandbox.filled("one")?;
    let mut editor = Editor::open(&sandbox, repository.path())?;
    let busy = editor.delegate(&brief(&json!([{"say": "busy"}, "hang"])), &json!({}))?;
    editor.event(&busy, "message")?;
    let mark = sandbox.root().join("ran");
    let job = editor.delegate(&brief(&json!([{"run": format!("touch '{}'", mark.display())}])), &json!({}))?;
    // Something is in the way of the tree by the time that it is the job's turn.
    let tree = sandbox.job(&job).join("tree");
    std::fs::create_dir(&tree)?;
    std::fs::write(tree.join("somebody's"), "x")?;
    editor.run("cancel", &json!({"jobId": busy}))?;
    let status = editor.until(&job, "finished")?;
    assert_eq!((&status["outcome"], &status["error"]["code"]), (&json!("failed"), &json!("worktreeCreateFailed")));
    assert!(!mark.exists() && editor.events_of(&job, "launched")?.is_empty());
    assert_eq!(std::fs::read_to_string(tree.join("somebody's"))?, "x");
    Ok(())
}

/// Applies the job, and does so again while it is told that another one is being applied.
fn apply_in_turn(editor: &mut Editor, job: &str) -> Result<Value> {
    let deadline = Instant::now() + JOB;
    loop {
        let applied = editor.apply(job);
        let refused = applied.as_ref().err().and_then(|error| error.downcast_ref::<RpcError>());
        if refused.is_none_or(|refused| refused.reason() != "storeBusy") || Instant::now() >= deadline {
            return applied;
        }
    }
}

#[test]
fn two_editors_that_apply_at_once_take_turns_and_are_told_who_is_busy() -> Result<()> {
    let sandbox = scripted_sandbox()?;
    let repository = sandbox.filled("one")?;
    let (mut one, mut other) = (Editor::open(&sandbox, repository.path())?, Editor::open(&sandbox, repository.path())?);
    let mut jobs = Vec::new();
    for path in ["a.txt", "b.txt"] {
        let job = one.delegate(&brief(&json!([write(path, "new\n")])), &json!({}))?;
        one.until(&job, "finished")?;
        jobs.push(job);
    }
    let store = Store::open(&AbsPath::new(sandbox.pactify_home())?)?;
    let spec = store.job(&jobs[0].parse()?)?.spec()?;
    let lock = RepositoryLock::acquire(&store, &spec.repository, JOB)?;
    let change_set = one.status(&jobs[0])?["changeSet"].clone();
    let refused = one.refused("apply", &json!({"jobId": jobs[0], "changeSet": change_set}))?;
    assert_eq!(refused.reason(), "storeBusy", "{refused:?}");
    assert!(!repository.path().join("a.txt").exists());
    drop(lock);
    let both = std::thread::scope(|scope| {
        let first = scope.spawn(|| apply_in_turn(&mut one, &jobs[0]));
        let second = apply_in_turn(&mut other, &jobs[1]);
        [first.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)), second]
    });
    for applied in both {
        applied?;
    }
    assert_eq!((repository.read("a.txt")?, repository.read("b.txt")?), ("new\n".into(), "new\n".into()));
    Ok(())
}

#[test]
fn an_editor_hears_of_everything_that_another_one_does_with_a_result() -> Result<()> {
    let sandbox = scripted_sandbox()?;
    let repository = sandbox.filled("one")?;
    let (mut one, mut other) = (Editor::open(&sandbox, repository.path())?, Editor::open(&sandbox, repository.path())?);
    let go = sandbox.root().join("go");
    let wait = json!({"waitFor": [go.display().to_string(), 600.0]});
    let steps = json!([wait, write("a", "new\n"), write("b", "new\n"), write("c", "new\n")]);
    let job = one.delegate(&brief(&steps), &json!({}))?;
    let is_of_job = |message: &Value| message["method"] == "pactify/job/changed" && message["params"]["jobId"] == job;
    // A job that ended before an editor's first look is no news to it.
    other.client().take("the job that runs", JOB, is_of_job)?;
    std::fs::write(&go, "")?;
    one.until(&job, "finished")?;
    let mut hears = |disposition: &str| {
        other.client().take(disposition, JOB, |message| {
            let params = &message["params"];
            is_of_job(message) && params["state"] == "finished" && params["disposition"] == disposition
        })
    };
    hears("pending")?;
    let change_set = one.status(&job)?["changeSet"].clone();
    let apply = |one: &mut Editor, path: &str| {
        one.run("apply", &json!({"jobId": job, "changeSet": change_set, "select": [{"path": path}]}))
    };
    apply(&mut one, "a")?;
    hears("partlyApplied")?;
    // It stands as it did, and is another one.
    apply(&mut one, "b")?;
    hears("partlyApplied")?;
    one.run("undo", &json!({"jobId": job}))?;
    hears("partlyApplied")?;
    apply(&mut one, "b")?;
    apply(&mut one, "c")?;
    hears("applied")?;
    one.run("discard", &json!({"jobId": job}))?;
    hears("discarded").map(drop)
}

#[test]
fn a_tree_that_could_not_be_captured_is_told_kept_and_captured_by_a_cancel() -> Result<()> {
    let sandbox = scripted_sandbox()?;
    let repository = sandbox.filled("one")?;
    let mut editor = Editor::open(&sandbox, repository.path())?;
    let job = editor.delegate(&brief(&json!([write("half.txt", "half\n"), "hang"])), &json!({}))?;
    editor.event(&job, "filesTouched")?;
    let directory = sandbox.job(&job);
    std::fs::rename(directory.join("manifest"), directory.join("away"))?;
    editor.run("cancel", &json!({"jobId": job}))?;
    let status = editor.until(&job, "finished")?;
    assert_eq!(status["error"]["code"], "captureFailed", "{status:#}");
    assert!(status["error"]["next"].to_string().contains("pactify sub cancel"), "{status:#}");
    assert!(status["onlyInTree"].to_string().contains("not captured"), "{status:#}");

    let pactify = |arguments: &[&str]| sandbox.start("pactify", arguments, b"")?.wait(JOB);
    for asking in [&["sub", "discard", &job][..], &["sub", "prune", &job]] {
        let told = pactify(asking)?;
        assert!(told.code() != 0 && format!("{told:?}").contains("not captured"), "{told:?}");
    }
    let pruned = pactify(&["sub", "prune", "--older-than", "0s", "--records", "--yes"])?.success()?;
    assert!(pruned.stdout.contains("only in its tree"), "{pruned:?}");
    let refused = editor.refused("diffPreview", &json!({"jobId": job}))?;
    assert!(refused.data.context("no data")?["next"].to_string().contains("pactify sub cancel"));

    std::fs::rename(directory.join("away"), directory.join("manifest"))?;
    editor.run("cancel", &json!({"jobId": job}))?;
    let status = editor.status(&job)?;
    assert_eq!((&status["state"], &status["changes"]["files"]), (&json!("finished"), &json!(1)), "{status:#}");
    assert_eq!(status.get("onlyInTree"), None, "{status:#}");
    assert!(status["error"]["message"].to_string().contains("it is now"), "{status:#}");
    editor.apply(&job)?;
    assert_eq!(repository.read("half.txt")?, "half\n");
    Ok(())
}

#[test]
fn what_runs_inside_a_job_decides_nothing_about_another_one() -> Result<()> {
    let mut sandbox = scripted_sandbox()?;
    let path = sandbox.repository("one")?.path().to_owned();
    sandbox.filled("one")?;
    let mut editor = Editor::open(&sandbox, &path)?;
    let job = editor.delegate(&brief(&json!([write("a.txt", "a\n")])), &json!({}))?;
    editor.until(&job, "finished")?;
    drop(editor);
    let applied: &[&str] = &["sub", "apply", &job, "--yes"];
    let verbs: [&[&str]; 9] = [
        applied,
        &["sub", "undo", &job],
        &["sub", "discard", &job, "--yes"],
        &["sub", "restore", &job, "any", "--yes"],
        &["sub", "prune", &job, "--yes"],
        &["sub", "export", &job, "--branch", "taken"],
        &["sub", "resume", &job, "--brief", "README.md"],
        &["sub", "retry", &job],
        &["sub", "answer", &job, "yes", "--request", "one"],
    ];
    let inside = |sandbox: &Sandbox, verb: &[&str]| {
        let mut command = sandbox.command(outside::program("pactify")?);
        command.args(verb).current_dir(&path);
        Running::start(command, b"")?.wait(JOB)
    };
    sandbox.set("PACTIFY_JOB", "20261129-101112-aaaaaa");
    for verb in verbs {
        let ended = inside(&sandbox, verb)?;
        assert!(ended.code() == 3 && ended.stderr.contains("inside job 20261129-101112-aaaaaa"), "{verb:?}: {ended:?}");
    }
    assert!(!path.join("a.txt").exists() && sandbox.job(&job).join("tree").exists());
    sandbox.set("PACTIFY_JOB", "");
    inside(&sandbox, applied)?.success()?;
    assert!(path.join("a.txt").exists());
    Ok(())
}

/// Records what a host records that could not end everything, while everything of its job still runs.
fn survived(sandbox: &Sandbox, job: &str) -> Result<()> {
    let store = Store::open(&AbsPath::new(sandbox.pactify_home())?)?;
    let mut journal = Journal::open(store.job(&job.parse()?)?.lock(JOB)?)?;
    let attempt = journal.state().attempt.as_ref().context("no attempt")?.number;
    let failure = Failure::new(FailureCode::ProcessesSurvived, "1 process survived", "see to it");
    let ended = Known::AttemptEnded { outcome: Outcome::Failed, failure: Some(failure), final_message: None };
    let at = journal.state().started_at.context("not started")?;
    journal.append(at, attempt, ended)?;
    Ok(())
}

#[test]
fn a_job_that_was_outlived_is_captured_by_a_cancel_and_not_removed_or_gone_on_with_before() -> Result<()> {
    let sandbox = scripted_sandbox()?;
    let repository = sandbox.filled("one")?;
    let mut editor = Editor::aside(&sandbox, Some(repository.path()))?;
    let job = editor.delegate(&brief(&json!([write("half.txt", "half\n"), "hang"])), &json!({}))?;
    editor.event(&job, "filesTouched")?;
    let agent = pid(&editor.event(&job, "launched")?["leader"]["pid"])?;
    editor.kill_host(&job)?;
    survived(&sandbox, &job)?;
    assert_eq!(editor.status(&job)?["state"], "finished");

    for (verb, more) in [
        ("discard", json!({})),
        ("resume", json!({"message": "go on"})),
        ("apply", json!({"changeSet": "any"})),
        ("undo", json!({})),
        ("restoreOutside", json!({})),
    ] {
        let mut params = json!({"jobId": job});
        params.as_object_mut().context("no object")?.extend(more.as_object().cloned().unwrap_or_default());
        let refused = editor.refused(verb, &params)?;
        assert!(refused.message.contains("may still run"), "{verb}: {refused:?}");
        let next = refused.data.context("no data")?["next"].to_string();
        assert!(next.contains("pactify sub cancel"), "{verb}: {next}");
    }
    let pruned = repository.sub(&["prune", &job, "--yes", "--json"], "")?;
    assert!(pruned.stdout.contains("may still run") && pruned.stdout.contains("pactify sub cancel"), "{pruned:?}");
    assert!(sandbox.job(&job).join("tree/half.txt").exists());

    editor.run("cancel", &json!({"jobId": job}))?;
    assert!(rendezvous::ends(agent, JOB)?, "its processes are swept");
    let status = editor.status(&job)?;
    assert_eq!((&status["state"], &status["changes"]["files"]), (&json!("finished"), &json!(1)), "{status:#}");
    assert!(status["error"]["message"].to_string().contains("outlived"), "{status:#}");
    editor.apply(&job)?;
    assert_eq!(repository.read("half.txt")?, "half\n");
    editor.run("discard", &json!({"jobId": job}))?;
    Ok(())
}
