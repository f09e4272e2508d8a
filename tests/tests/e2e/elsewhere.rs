//! What went wrong in other programs of this kind, and happens here in none of the jobs that no other test is about.
//!
//! `docs/evidence.md` has all of it, with the test of each.

mod git;
mod processes;
mod sessions;

use std::path::PathBuf;

use anyhow::{Context as _, Result, ensure};
use pactify_tests::agent::{brief, write};
use pactify_tests::editor::{Editor, JOB, scripted_sandbox, use_scripted_agent};
use pactify_tests::outside;
use pactify_tests::sandbox::{Sandbox, shell_program};
use serde_json::{Value, json};

/// Has the job run this command, and gives what came of it: its exit code and the end of its output.
fn run_in_a_job(editor: &mut Editor, command: &str) -> Result<(i64, String)> {
    let job = editor.delegate(&brief(&json!([{"run": command}, {"say": "Done."}])), &json!({}))?;
    // The command may be a whole test.
    editor.until_within(&job, "finished", 4 * JOB)?;
    let ended = editor.events_of(&job, "commandEnded")?.pop().context("no command")?;
    let told = ended["tail"].as_str().or(ended["output"].as_str()).unwrap_or_default();
    Ok((ended["exitCode"].as_i64().context("no exit code")?, told.to_owned()))
}

#[test]
fn a_harness_that_starts_jobs_or_the_doctor_is_refused_unless_it_takes_off_its_mark() -> Result<()> {
    let sandbox = scripted_sandbox()?;
    let repository = sandbox.filled("one")?;
    let mut editor = Editor::open(&sandbox, repository.path())?;
    let program = outside::program("pactify")?.display().to_string();
    let at = repository.path().display();
    for command in [
        format!("echo x | '{program}' sub run --repo '{at}'"),
        format!("'{program}' sub doctor"),
        format!("sh -c \"sh -c \\\"'{program}' sub doctor --probe\\\"\""),
    ] {
        let (code, said) = run_in_a_job(&mut editor, &command)?;
        assert_eq!(code, 3, "{command}: {said}");
        ensure!(said.contains("inside job"), "{command}: {said}");
    }
    // A guard against accidents, and no boundary: docs/security.md says so.
    let home = sandbox.pactify_home();
    let (code, said) = run_in_a_job(
        &mut editor,
        &format!("env -u PACTIFY_JOB PACTIFY_HOME='{}' '{program}' sub doctor codex", home.display()),
    )?;
    assert_eq!(code, 0, "{said}");
    let security = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/security.md"))?;
    ensure!(security.contains("a job can unset it"));
    Ok(())
}

/// Another program's tests, run by an agent, once emptied the record of the very job that ran them.
#[test]
fn our_own_tests_run_by_a_job_touch_nothing_of_the_person_s() -> Result<()> {
    let sandbox = scripted_sandbox()?;
    let repository = sandbox.filled("one")?;
    let mut editor = Editor::open(&sandbox, repository.path())?;
    let root = sandbox.root().parent().context("no folder of sandboxes")?;
    let tests = std::env::current_exe()?;
    let inner = "hosts::a_job_is_delegated_previewed_and_applied";
    let (code, said) = run_in_a_job(
        &mut editor,
        &format!("PACTIFY_TEST_ROOT='{}' '{}' --exact {inner}", root.display(), tests.display()),
    )?;
    ensure!(code == 0 && said.contains("1 passed"), "{said}");
    let jobs = std::fs::read_dir(sandbox.jobs())?.count();
    assert_eq!(jobs, 1, "the person has the one job that they started");
    assert_eq!(repository.status()?, "");
    Ok(())
}

#[test]
fn a_job_without_changes_has_nothing_to_apply() -> Result<()> {
    let sandbox = scripted_sandbox()?;
    let repository = sandbox.filled("one")?;
    let mut editor = Editor::open(&sandbox, repository.path())?;
    let job = editor.delegate(&brief(&json!([{"say": "All done, the file is written."}])), &json!({}))?;
    assert_eq!(editor.until(&job, "finished")?["outcome"], "noChanges");
    let preview = editor.run("diffPreview", &json!({"jobId": job}))?;
    let refused = editor.refused("apply", &json!({"jobId": job, "changeSet": preview["changeSet"]}))?;
    assert_eq!(refused.reason(), "nothingToApply", "{refused:?}");
    Ok(())
}

#[test]
fn what_was_used_and_said_outlives_the_tree() -> Result<()> {
    let sandbox = scripted_sandbox()?;
    let repository = sandbox.filled("one")?;
    let mut editor = Editor::open(&sandbox, repository.path())?;
    let job = editor.delegate(&brief(&json!([write("a.txt", "a\n"), {"say": "Done."}])), &json!({}))?;
    let before = editor.until(&job, "finished")?;
    editor.run("discard", &json!({"jobId": job}))?;
    ensure!(!sandbox.job(&job).join("tree").exists());
    let after = editor.status(&job)?;
    ensure!(before["usage"]["outputTokens"].as_u64() > Some(0), "{before:#}");
    assert_eq!((&after["usage"], &after["finalMessage"]), (&before["usage"], &json!("Done.")));
    assert_eq!(editor.events_of(&job, "message")?.len(), 1);
    ensure!(std::fs::read_to_string(sandbox.job(&job).join("wire.log"))?.contains("turn.completed"));
    Ok(())
}

/// A program that reads its standard input is given the end of it, whatever its arguments are.
#[test]
fn a_harness_that_reads_does_not_wait_for_ever() -> Result<()> {
    let sandbox = Sandbox::new()?;
    let text = "[harnesses.mine]\ncommand = \"sh\"\nargs = [\"-c\", \"{prompt}\"]\n";
    pactify_tests::editor::configure(&sandbox, text)?;
    let repository = sandbox.filled("one")?;
    let mut editor = Editor::open(&sandbox, repository.path())?;
    let job = editor.delegate("cat; echo read > read.txt; echo Done.", &json!({"harness": "mine"}))?;
    let status = editor.until(&job, "finished")?;
    assert_eq!((&status["outcome"], &status["changes"]["files"]), (&json!("succeeded"), &json!(1)), "{status:#}");
    Ok(())
}

#[test]
fn arguments_that_a_harness_no_longer_knows_are_called_so() -> Result<()> {
    let sandbox = Sandbox::new()?;
    let codex = use_scripted_agent(&sandbox, &[])?;
    let old = sandbox.root().join("old-codex");
    let script = format!(
        "case \"$1\" in exec) echo \"error: unexpected argument '--strict-config' found\" >&2; exit 2;; esac\n\
         exec '{}' \"$@\"",
        codex.display()
    );
    shell_program(&old, &script)?;
    let old = old.display().to_string();
    pactify_tests::editor::configure(&sandbox, &format!("[harnesses.codex]\nexecutable = {old:?}\n"))?;
    let repository = sandbox.filled("one")?;
    let mut editor = Editor::open(&sandbox, repository.path())?;
    let job = editor.delegate("Work.", &json!({}))?;
    let status = editor.until(&job, "finished")?;
    assert_eq!(status["error"]["code"], "harnessIncompatible", "{status:#}");
    ensure!(status["error"]["message"].to_string().contains("--strict-config"), "{status:#}");
    ensure!(status["harnessVersion"].is_string(), "the version that it was is recorded: {status:#}");
    Ok(())
}

/// Instructions for several agents are often one file and links to it.
#[test]
fn a_link_between_instructions_stays_a_link() -> Result<()> {
    let sandbox = scripted_sandbox()?;
    let repository = sandbox.repository("one")?;
    repository.write("CLAUDE.md", "Be kind.\n")?;
    std::os::unix::fs::symlink("CLAUDE.md", repository.path().join("AGENTS.md"))?;
    repository.commit("Instructions")?;
    let before = repository.snapshot()?;
    let mut editor = Editor::open(&sandbox, repository.path())?;
    let job = editor.delegate(&brief(&json!([write("a.txt", "a\n")])), &json!({}))?;
    assert_eq!(editor.until(&job, "finished")?["outcome"], "succeeded");
    editor.apply(&job)?;
    editor.run("discard", &json!({"jobId": job}))?;
    assert_eq!(repository.snapshot()?.changed_since(&before), ["a.txt"]);
    assert_eq!(std::fs::read_link(repository.path().join("AGENTS.md"))?, PathBuf::from("CLAUDE.md"));
    Ok(())
}

#[test]
fn two_starts_at_once_are_two_jobs_and_one_that_died_keeps_nobody_from_starting() -> Result<()> {
    let sandbox = scripted_sandbox()?;
    let repository = sandbox.filled("one")?;
    let (mut one, mut two) = (Editor::open(&sandbox, repository.path())?, Editor::open(&sandbox, repository.path())?);
    let start = |editor: &mut Editor, file: &str| -> Result<i64> {
        let argument = json!({"brief": brief(&json!([write(file, "x\n")]))});
        let params = json!({"command": "pactify.delegate", "arguments": [argument]});
        editor.client().send_request("workspace/executeCommand", params)
    };
    // A double click in one editor, and another editor at the same moment.
    let [first, second] = [start(&mut one, "a.txt")?, start(&mut one, "b.txt")?];
    let third = start(&mut two, "c.txt")?;
    let started = |editor: &mut Editor, id: i64| -> Result<String> {
        let started = editor.client().answer(id, JOB)?.map_err(|error| anyhow::anyhow!("{error:?}"))?;
        Ok(started["jobId"].as_str().context("no id")?.to_owned())
    };
    let jobs = [started(&mut one, first)?, started(&mut one, second)?, started(&mut two, third)?];
    for (job, file) in jobs.iter().zip(["a.txt", "b.txt", "c.txt"]) {
        assert_eq!(one.until(job, "finished")?["outcome"], "succeeded");
        let preview = one.run("diffPreview", &json!({"jobId": job}))?;
        assert_eq!(preview["files"][0]["path"], file, "each has its own tree: {preview:#}");
    }

    let job = one.delegate(&brief(&json!([{"say": "here"}, "hang"])), &json!({}))?;
    one.event(&job, "message")?;
    let host = one.host(&job)?;
    one.client().signal(rustix::process::Signal::KILL)?;
    rustix::process::kill_process(host, rustix::process::Signal::KILL)?;
    ensure!(pactify_tests::rendezvous::ends(host, JOB)?);
    let job = two.delegate(&brief(&json!([write("d.txt", "x\n")])), &json!({}))?;
    assert_eq!(two.until(&job, "finished")?["outcome"], "succeeded");
    Ok(())
}

/// What git was called with by any process of ours, with these words first.
fn words(log: &std::path::Path) -> Result<Vec<Vec<String>>> {
    let text = std::fs::read_to_string(log)?;
    Ok(text.lines().map(|line| line.split(' ').map(str::to_owned).collect()).collect())
}

#[test]
fn git_is_never_asked_for_the_network() -> Result<()> {
    let mut sandbox = scripted_sandbox()?;
    let (folder, log) = (sandbox.root().join("recorded"), sandbox.root().join("calls"));
    let path = outside::variable("PATH").context("no PATH")?;
    let git = std::env::split_paths(&path).map(|folder| folder.join("git")).find(|git| git.is_file());
    let git = git.context("no git")?;
    let (log_, git_) = (log.display(), git.display());
    let script = format!("printf '%s ' \"$@\" >> '{log_}'\necho >> '{log_}'\nexec '{git_}' \"$@\"");
    shell_program(&folder.join("git"), &script)?;
    let folders = std::iter::once(folder).chain(std::env::split_paths(&path));
    sandbox.set("PATH", std::env::join_paths(folders)?);
    let repository = sandbox.filled("one")?;
    repository.git(&["remote", "add", "origin", "https://example.invalid/one.git"])?;
    std::fs::write(&log, "")?;

    let mut editor = Editor::open(&sandbox, repository.path())?;
    let job = editor.delegate(&brief(&json!([write("a.txt", "a\n")])), &json!({"base": "workingTree"}))?;
    assert_eq!(editor.until(&job, "finished")?["outcome"], "succeeded");
    for (verb, more) in [
        ("diffPreview", json!({"format": "patch"})),
        ("export", json!({"as": "patch"})),
        ("export", json!({"as": "branch"})),
    ] {
        let mut argument = json!({"jobId": job});
        argument.as_object_mut().context("no object")?.extend(more.as_object().cloned().unwrap_or_default());
        editor.run(verb, &argument)?;
    }
    editor.apply(&job)?;
    editor.run("undo", &json!({"jobId": job}))?;
    editor.run("resume", &json!({"jobId": job, "message": brief(&json!([write("b.txt", "b\n")]))}))?;
    editor.until(&job, "finished")?;
    editor.run("discard", &json!({"jobId": job}))?;
    editor.run("doctor", &json!({}))?;
    sandbox
        .start("pactify", &["sub", "prune", "--older-than", "0s", "--records", "--yes"], b"")?
        .wait(JOB)?
        .success()?;
    let calls = words(&log)?;
    ensure!(calls.len() > 3, "it is called, and that is seen: {calls:?}");
    const NETWORK: [&str; 7] = ["fetch", "pull", "push", "clone", "ls-remote", "remote", "submodule"];
    for call in &calls {
        let asks = call.iter().find(|word| NETWORK.contains(&word.as_str()));
        ensure!(asks.is_none(), "{call:?}");
    }
    Ok(())
}

/// The text of a status that a job's notices make.
fn notices(status: &Value) -> String {
    status["notices"].to_string()
}
