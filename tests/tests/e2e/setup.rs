//! The command that makes a fresh tree ready: who may name it, when it runs, what becomes of what it leaves.

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, Result};
use pactify_tests::agent::{Step, prompt};
use pactify_tests::editor::{Editor, configure_more, limit, scripted_sandbox};
use pactify_tests::rendezvous;
use pactify_tests::sandbox::Sandbox;
use rustix::process::Pid;
use serde_json::{Value, json};

const GONE: Duration = Duration::from_secs(60);

fn brief() -> String {
    prompt(&[Step::write("by-the-job", "x\n"), Step::Say("Done.".to_owned())])
}

/// A sandbox whose configuration names this command for the repository `one`.
fn configured(command: &str, seconds: u32) -> Result<Sandbox> {
    let sandbox = scripted_sandbox()?;
    let repository = sandbox.root().join("repos/one");
    configure_more(&sandbox, &format!("[repositories.{repository:?}]\nsetup = '''{command}'''\n"))?;
    limit(&sandbox, "setup-seconds", seconds)?;
    Ok(sandbox)
}

/// The events of setups: each command's type, text or end.
fn setups(editor: &mut Editor, job: &str) -> Result<Vec<String>> {
    let events = editor.events(job)?;
    let own = events.iter().map(|event| &event["event"]).filter(|event| event["item"] == "setup");
    let told = own.map(|event| match event["type"].as_str() {
        Some("commandStarted") => format!("$ {}", event["command"].as_str().unwrap_or_default()),
        Some("commandOutput") => event["text"].as_str().unwrap_or_default().to_owned(),
        _ => format!("exit {}", event["exitCode"]),
    });
    Ok(told.collect())
}

fn lines(path: &Path) -> usize {
    std::fs::read_to_string(path).unwrap_or_default().lines().count()
}

#[test]
fn a_repository_s_own_command_runs_only_once_its_exact_text_is_approved() -> Result<()> {
    let sandbox = scripted_sandbox()?;
    let repository = sandbox.filled("one")?;
    let ran = sandbox.root().join("ran");
    let command = format!("echo ran >> {}", ran.display());
    let propose = |command: &str| -> Result<()> {
        repository.write("pactify.toml", format!("[tree]\nsetup = {command:?}\n"))?;
        repository.commit("setup")?;
        Ok(())
    };
    propose(&command)?;

    let mut editor = Editor::open(&sandbox, repository.path())?;
    let refused = editor.refused("delegate", &json!({"brief": brief()}))?.data.context("no data")?;
    assert_eq!(refused["code"], "approvalRequired");
    assert!(refused["message"].as_str().is_some_and(|text| text.contains(&command)), "{refused}");
    let asked =
        json!({"kind": "setup", "repository": format!("file://{}", repository.path().display()), "text": command});
    assert_eq!(refused["approval"], asked);
    assert_eq!((lines(&ran), std::fs::read_dir(sandbox.jobs())?.count()), (0, 0));

    let mut answer = asked.clone();
    answer["decision"] = "allow".into();
    let mut close = answer.clone();
    close["text"] = format!("{command} ").into();
    assert_eq!(editor.refused("approve", &close)?.data.context("no data")?["code"], "invalidParams");
    assert_eq!(editor.run("approve", &answer)?["decision"], "allow");
    let approvals: Vec<PathBuf> = std::fs::read_dir(sandbox.pactify_home().join("approvals"))?
        .map(|entry| entry.map(|entry| entry.path()))
        .collect::<Result<_, _>>()?;
    assert_eq!(std::fs::metadata(&approvals[0])?.permissions().mode() & 0o777, 0o600);
    let job = editor.delegate(&brief(), &json!({}))?;
    assert_eq!(editor.until(&job, "finished")?["outcome"], "succeeded");
    assert_eq!(lines(&ran), 1);
    assert_eq!(setups(&mut editor, &job)?, [format!("$ {command}"), "exit 0".to_owned()]);

    // In another checkout of the repository it is the same text.
    repository.git(&["worktree", "add", "-q", "--detach", "../linked"])?;
    let linked = format!("file://{}", sandbox.root().join("repos/linked").display());
    let elsewhere = editor.delegate(&brief(), &json!({"repository": linked}))?;
    editor.until(&elsewhere, "finished")?;
    assert_eq!(lines(&ran), 2);

    // Another text is another question; denied from a terminal, it is left out.
    propose(&format!("{command}; true"))?;
    assert_eq!(editor.refused("retry", &json!({"jobId": job}))?.data.context("no data")?["code"], "approvalRequired");
    let here = repository.path().to_str().context("a plain name")?;
    let denied = sandbox.start("pactify", &["sub", "approve", "--repo", here, "--deny"], b"")?;
    let denied = denied.wait(GONE)?.success()?;
    assert!(denied.stdout == "denied\n" && denied.stderr.contains("; true"), "{}{}", denied.stdout, denied.stderr);
    let delegated = editor.run("delegate", &json!({"brief": brief()}))?;
    let notice = delegated["notices"][0].as_str().context("no notice")?;
    assert!(notice.contains("not run, as you decided"), "{notice}");
    let job = delegated["jobId"].as_str().context("no id")?.to_owned();
    let status = editor.until(&job, "finished")?;
    assert_eq!(status["outcome"], "succeeded");
    assert!(status["notices"].to_string().contains("not run, as you decided"), "{status:#}");
    assert_eq!((lines(&ran), setups(&mut editor, &job)?.len()), (2, 0));
    Ok(())
}

#[test]
fn a_configured_command_runs_for_every_new_tree_and_no_resume_in_a_clean_environment() -> Result<()> {
    let mut sandbox =
        configured("env > ../seen; pwd >> ../seen; echo one >> ../../count; echo hello; echo oops >&2", 60)?;
    for (name, value) in [("GIT_DIR", "/nowhere"), ("NPM_TOKEN", "a-secret"), ("KEPT", "kept")] {
        sandbox.set(name, value);
    }
    let repository = filled_without(&sandbox)?;
    let count = sandbox.jobs().join("count");
    let mut editor = Editor::open(&sandbox, &repository)?;
    let job = editor.delegate(&brief(), &json!({}))?;
    assert_eq!(editor.until(&job, "finished")?["outcome"], "succeeded");
    let folder = sandbox.job(&job);
    let seen = std::fs::read_to_string(folder.join("seen"))?;
    for line in [
        "KEPT=kept".to_owned(),
        format!("PACTIFY_JOB={job}"),
        format!("TMPDIR={}", folder.join("tmp").display()),
        folder.join("tree").display().to_string(),
    ] {
        assert!(seen.lines().any(|seen| seen == line), "{line} is not in {seen}");
    }
    assert!(!seen.contains("GIT_DIR") && !seen.contains("a-secret"), "{seen}");
    let said = setups(&mut editor, &job)?.concat();
    assert!(said.contains("hello\n") && said.contains("oops\n") && said.ends_with("exit 0"), "{said}");
    assert_eq!(lines(&count), 1);

    editor.run("resume", &json!({"jobId": job, "message": prompt(&[Step::Say("again".to_owned())])}))?;
    editor.until(&job, "finished")?;
    assert_eq!(lines(&count), 1, "a resume goes on in the tree that is there");
    let again = editor.run("retry", &json!({"jobId": job}))?;
    editor.until(again["jobId"].as_str().context("no id")?, "finished")?;
    assert_eq!(lines(&count), 2);
    Ok(())
}

/// A repository that was made before variables redirected git.
fn filled_without(sandbox: &Sandbox) -> Result<PathBuf> {
    let path = sandbox.root().join("repos/one");
    let script = "mkdir -p repos && unset GIT_DIR && git init -q repos/one && cd repos/one && echo a > a && git add a \
                  && git commit -qm first";
    let mut command = sandbox.command("sh");
    command.args(["-c", script]);
    pactify_tests::running::Running::start(command, b"")?.wait(GONE)?.success()?;
    Ok(path)
}

#[test]
fn a_setup_that_fails_or_takes_too_long_ends_the_job_before_the_harness() -> Result<()> {
    for (command, seconds, says) in [
        ("echo the reason; exit 3", 60, &["exit code 3", "the reason"][..]),
        ("echo began; sleep 600 & sleep 600", 10, &["within 10 s", "began"]),
        ("kill -9 $$", 60, &["signal 9"]),
    ] {
        let sandbox = configured(&format!("echo $$ > ../pid; {command}"), seconds)?;
        let repository = sandbox.filled("one")?;
        let mut editor = Editor::open(&sandbox, repository.path())?;
        let job = editor.delegate(&brief(), &json!({}))?;
        let status = editor.until(&job, "finished")?;
        assert_eq!((&status["outcome"], &status["error"]["code"]), (&json!("failed"), &json!("setupFailed")));
        let message = status["error"]["message"].as_str().context("no message")?;
        assert!(says.iter().all(|words| message.contains(words)), "{message}");
        assert!(editor.events_of(&job, "launched")?.is_empty(), "the harness was started");
        let pid: i32 = std::fs::read_to_string(sandbox.job(&job).join("pid"))?.trim().parse()?;
        assert!(rendezvous::ends(Pid::from_raw(pid).context("pid 0")?, GONE)?);
    }
    Ok(())
}

#[test]
fn a_cancel_ends_a_setup_and_what_it_leaves_running_does_not_meet_the_harness() -> Result<()> {
    let sandbox = configured("echo $$ > ../pid; sleep 600", 600)?;
    let repository = sandbox.filled("one")?;
    let mut editor = Editor::open(&sandbox, repository.path())?;
    let job = editor.delegate(&brief(), &json!({}))?;
    editor.event(&job, "commandStarted")?;
    editor.run("cancel", &json!({"jobId": job}))?;
    assert_eq!(editor.until(&job, "finished")?["outcome"], "cancelled");

    let sandbox = configured("sleep 600 & echo $! > ../pid; setsid sleep 600 & true", 600)?;
    let repository = sandbox.filled("one")?;
    let mut editor = Editor::open(&sandbox, repository.path())?;
    let job = editor.delegate(&brief(), &json!({}))?;
    let status = editor.until(&job, "finished")?;
    assert_eq!(status["outcome"], "succeeded", "{status:#}");
    assert!(status["notices"].to_string().contains("left behind were ended: 2"), "{status:#}");
    Ok(())
}

#[test]
fn what_a_setup_changes_is_named_and_a_read_only_job_does_not_start_on_it() -> Result<()> {
    let command = "mkdir -p node_modules && echo x > node_modules/dependency && touch base.txt && echo y > generated";
    let sandbox = configured(command, 60)?;
    let repository = sandbox.repository("one")?;
    repository.write("base.txt", "base\n")?;
    repository.write(".gitignore", "node_modules/\n")?;
    repository.commit("base")?;
    let mut editor = Editor::open(&sandbox, repository.path())?;
    let job = editor.delegate(&brief(), &json!({}))?;
    let status = editor.until(&job, "finished")?;
    let notices = status["notices"].to_string();
    assert!(notices.contains("does not ignore: generated; they are part of the job's diff"), "{notices}");
    let preview = editor.run("diffPreview", &json!({"jobId": job}))?;
    let paths: Vec<&Value> =
        preview["files"].as_array().context("no files")?.iter().map(|file| &file["path"]).collect();
    assert_eq!(paths, ["by-the-job", "generated"]);

    let job = editor.delegate(&prompt(&[Step::Say("ok".to_owned())]), &json!({"access": "readOnly"}))?;
    let status = editor.until(&job, "finished")?;
    assert_eq!(status["error"]["code"], "setupFailed", "{status:#}");
    assert!(status["error"]["message"].as_str().is_some_and(|text| text.ends_with("generated")), "{status:#}");
    Ok(())
}
