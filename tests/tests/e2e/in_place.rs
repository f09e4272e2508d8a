//! Read-only jobs that look around in the checkout itself: they see what is there, and whatever changes there fails
//! them.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use pactify_tests::agent::{brief, write};
use pactify_tests::editor::{Editor, pid, scripted_sandbox};
use pactify_tests::rendezvous;
use pactify_tests::sandbox::{Repository, Sandbox};
use serde_json::{Value, json};

const PATIENCE: Duration = Duration::from_secs(60);

fn in_place() -> Value {
    json!({"access": "readOnly", "inPlace": true})
}

fn dirty(sandbox: &Sandbox) -> Result<Repository<'_>> {
    let repository = sandbox.filled("one")?;
    repository.make_dirty()?;
    Ok(repository)
}

fn changes(status: &Value) -> Vec<String> {
    let all = status["checkoutChanges"].as_array().into_iter().flatten();
    all.filter_map(Value::as_str).map(str::to_owned).collect()
}

#[test]
fn it_sees_ignored_files_and_current_dirt_and_leaves_nothing_behind() -> Result<()> {
    let sandbox = scripted_sandbox()?;
    let repository = dirty(&sandbox)?;
    let before = repository.snapshot()?;
    let mut editor = Editor::open(&sandbox, repository.path())?;
    let look = "cat main.o untracked.txt README.md; git status --porcelain; git log -1 --format=%s";
    let delegated = editor.run(
        "delegate",
        &json!({
            "brief": brief(&json!([{"run": look}, {"say": "looked"}])), "access": "readOnly", "inPlace": true,
        }),
    )?;
    assert_eq!(delegated["worktree"], format!("file://{}", repository.path().display()));
    ensure!(delegated["notices"].to_string().contains("in your checkout itself"), "{delegated:#}");
    let job = delegated["jobId"].as_str().context("no id")?.to_owned();
    let status = editor.until(&job, "finished")?;
    assert_eq!((&status["outcome"], &status["inPlace"]), (&json!("succeeded"), &json!(true)), "{status:#}");
    assert_eq!((&status["worktree"], &status["changes"]), (&Value::Null, &Value::Null), "{status:#}");
    let said = editor.event(&job, "commandEnded")?.to_string();
    for seen in ["ignored", "mine", "edited", "M  src/empty.h", "A small program"] {
        ensure!(said.contains(seen), "{seen} is not in {said}");
    }
    assert_eq!(repository.snapshot()?.changed_since(&before), Vec::<String>::new(), "no ref, no index, no file");
    ensure!(!sandbox.job(&job).join("tree").exists());

    for (verb, code) in [("openWorktree", "wrongState"), ("diffPreview", "wrongState")] {
        assert_eq!(editor.refused(verb, &json!({"jobId": job}))?.reason(), code, "{verb}");
    }
    let refused = editor.refused("apply", &json!({"jobId": job, "changeSet": "a".repeat(40)}))?;
    assert_eq!(refused.reason(), "wrongState");
    editor.run("resume", &json!({"jobId": job, "message": brief(&json!([{"say": "again"}]))}))?;
    let status = editor.until(&job, "finished")?;
    assert_eq!((&status["attempt"], &status["outcome"]), (&json!(2), &json!("succeeded")), "{status:#}");
    let again = editor.run("retry", &json!({"jobId": job}))?;
    let again = editor.until(again["jobId"].as_str().context("no id")?, "finished")?;
    assert_eq!((&again["inPlace"], &again["outcome"]), (&json!(true), &json!("succeeded")), "{again:#}");

    // Nothing of the store's makes room in a checkout, however it is asked.
    editor.run("discard", &json!({"jobId": job}))?;
    let pruned = sandbox.start("pactify", &["sub", "prune", "--older-than", "0s", "--records", "--yes"], b"")?;
    pruned.wait(PATIENCE)?.success()?;
    assert_eq!(repository.snapshot()?.changed_since(&before), Vec::<String>::new());
    Ok(())
}

#[test]
fn every_change_fails_it_and_is_named_wherever_it_is_made() -> Result<()> {
    let sandbox = scripted_sandbox()?;
    let repository = dirty(&sandbox)?;
    let mut editor = Editor::open(&sandbox, repository.path())?;
    for (steps, named) in [
        (json!(["ignoreSandbox", write("README.md", "changed\n")]), "README.md: has another content"),
        (json!([{"run": "echo x > new.txt"}]), "new.txt: is new"),
        (json!([{"run": "rm new.txt"}]), "new.txt: is gone"),
        (json!([{"run": "echo longer than it was > main.o"}]), "main.o: has another content"),
        (json!([{"run": "chmod +x untracked.txt"}]), "untracked.txt: has another mode"),
        (json!([{"run": "git add untracked.txt"}]), "git's index: has other entries"),
        (json!([{"run": "git config core.editor evil"}]), "git directory: config: core.editor"),
        (json!([{"run": "git stash create > /dev/null; git update-ref refs/heads/other HEAD"}]), "refs/heads/other"),
        (json!([{"run": "echo x > .git/hooks/pre-commit"}]), "hooks/pre-commit"),
        (
            json!([{"run": "mkdir .git/rebase-merge; echo 'exec evil' > .git/rebase-merge/git-rebase-todo"}]),
            "git directory: rebase-merge/git-rebase-todo: is new",
        ),
        (json!([{"run": "echo /evil > .git/objects/info/alternates"}]), "objects/info/alternates"),
    ] {
        let mut steps = steps;
        steps.as_array_mut().context("no steps")?.push(json!({"say": "all fine"}));
        let job = editor.delegate(&brief(&steps), &in_place())?;
        let status = editor.until(&job, "finished")?;
        assert_eq!(status["outcome"], "readOnlyViolated", "{steps}: {status:#}");
        ensure!(changes(&status).iter().any(|change| change.contains(named)), "{named}: {status:#}");
        let error = &status["error"];
        assert_eq!(error["code"], "readOnlyViolated", "{status:#}");
        ensure!(error["next"].as_str().context("no next")?.contains("the job or you"), "{error:#}");
    }
    Ok(())
}

#[test]
fn the_person_s_own_edit_is_a_difference_as_well_and_stays() -> Result<()> {
    let sandbox = scripted_sandbox()?;
    let repository = dirty(&sandbox)?;
    let go = sandbox.root().join("go");
    let mut editor = Editor::open(&sandbox, repository.path())?;
    let wait = json!({"waitFor": [go.display().to_string(), 600.0]});
    let job = editor.delegate(&brief(&json!([wait, {"say": "looked"}])), &in_place())?;
    editor.event(&job, "launched")?;
    repository.write("mine.txt", "saved meanwhile\n")?;
    std::fs::write(&go, "")?;
    let status = editor.until(&job, "finished")?;
    assert_eq!(status["outcome"], "readOnlyViolated", "{status:#}");
    assert_eq!(changes(&status), ["mine.txt: is new"], "{status:#}");
    editor.run("discard", &json!({"jobId": job}))?;
    assert_eq!(repository.read("mine.txt")?, "saved meanwhile\n");
    Ok(())
}

#[test]
fn a_recovery_compares_and_what_it_cannot_read_counts_as_changed() -> Result<()> {
    let sandbox = scripted_sandbox()?;
    let repository = dirty(&sandbox)?;
    let mut editor = Editor::aside(&sandbox, Some(repository.path()))?;
    let lose = |editor: &mut Editor, steps: Value, meanwhile: &dyn Fn(&Path) -> Result<()>| -> Result<Value> {
        let job = editor.delegate(&brief(&steps), &in_place())?;
        editor.event(&job, "message")?;
        let agent = pid(&editor.event(&job, "launched")?["leader"]["pid"])?;
        editor.kill_host(&job)?;
        meanwhile(&sandbox.job(&job))?;
        editor.run("cancel", &json!({"jobId": job}))?;
        ensure!(rendezvous::ends(agent, PATIENCE)?, "its processes are swept");
        editor.status(&job)
    };
    let nothing = |_: &Path| Ok(());
    let status = lose(&mut editor, json!([{"say": "here"}, "hang"]), &nothing)?;
    assert_eq!((&status["outcome"], &status["error"]["code"]), (&json!("failed"), &json!("hostLost")), "{status:#}");

    let status = lose(&mut editor, json!([{"run": "echo x > left.txt"}, {"say": "here"}, "hang"]), &nothing)?;
    assert_eq!(status["outcome"], "readOnlyViolated", "{status:#}");
    assert_eq!(changes(&status), ["left.txt: is new"]);
    assert_eq!(repository.read("left.txt")?, "x\n", "nothing is taken back");

    let spoil = |job: &Path| -> Result<()> {
        let record = job.join("shared/1.checkout");
        let mut bytes = std::fs::read(&record)?;
        let last = bytes.len() - 1;
        bytes[last] ^= 1;
        Ok(std::fs::write(&record, bytes)?)
    };
    let status = lose(&mut editor, json!([{"say": "here"}, "hang"]), &spoil)?;
    assert_eq!(status["outcome"], "readOnlyViolated", "{status:#}");
    ensure!(status["error"]["message"].as_str().is_some_and(|text| text.contains("not known")), "{status:#}");
    Ok(())
}

#[test]
fn a_host_that_dies_between_its_comparison_and_its_conclusion_hides_nothing() -> Result<()> {
    let sandbox = scripted_sandbox()?;
    let repository = dirty(&sandbox)?;
    let mut editor = Editor::open(&sandbox, repository.path())?;
    let steps = json!([{"run": "echo x > left.txt"}, {"say": "all fine"}]);
    let job = editor.delegate(&brief(&steps), &in_place())?;
    let ended = editor.until(&job, "finished")?;
    editor.left_alone(&job)?;
    drop(editor);
    // What such a host leaves: a journal that ends after the comparison.
    let path = sandbox.job(&job).join("events.jsonl");
    let journal = std::fs::read_to_string(&path)?;
    let lines: Vec<_> = journal.split_inclusive('\n').collect();
    let compared = lines.iter().position(|line| line.contains("checkoutCompared")).context("nothing compared")?;
    ensure!(lines[compared + 1..].iter().any(|line| line.contains("attemptEnded")), "{journal}");
    std::fs::write(&path, lines[..=compared].concat())?;
    let mut editor = Editor::open(&sandbox, repository.path())?;
    let status = editor.until(&job, "finished")?;
    assert_eq!(status["attempt"], 2, "a recovery concluded: {status:#}");
    assert_eq!((&status["outcome"], &status["error"]), (&json!("readOnlyViolated"), &ended["error"]), "{status:#}");
    assert_eq!(changes(&status), ["left.txt: is new"]);
    Ok(())
}

#[test]
fn it_is_for_read_only_jobs_and_goes_with_nothing_that_a_tree_has() -> Result<()> {
    let mut sandbox = scripted_sandbox()?;
    let repository = dirty(&sandbox)?;
    let path = repository.path().to_owned();
    let mut editor = Editor::open(&sandbox, &path)?;
    for (more, named) in [
        (json!({"inPlace": true}), "inPlace"),
        (json!({"inPlace": true, "access": "write"}), "inPlace"),
        (json!({"inPlace": true, "access": "readOnly", "base": "workingTree"}), "base"),
        (json!({"inPlace": true, "access": "readOnly", "isolation": "linked"}), "isolation"),
        (json!({"inPlace": true, "access": "readOnly", "permissions": "ask"}), "permissions"),
        (json!({"inPlace": true, "access": "readOnly", "verify": ["true"]}), "verify"),
    ] {
        let mut argument = json!({"brief": "look"});
        argument.as_object_mut().context("no object")?.extend(more.as_object().context("no object")?.clone());
        let refused = editor.refused("delegate", &argument)?;
        assert_eq!(refused.reason(), "invalidParams", "{more}");
        ensure!(refused.message.contains(named), "{more}: {}", refused.message);
    }
    drop(editor);
    sandbox.set("PACTIFY_HOME", path.join(".pactify"));
    let mut editor = Editor::open(&sandbox, &path)?;
    let refused = editor.refused("delegate", &json!({"brief": "x", "inPlace": true, "access": "readOnly"}))?;
    ensure!(refused.message.contains("lies in the checkout"), "{}", refused.message);
    Ok(())
}
