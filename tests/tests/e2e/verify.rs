//! Verification of results: who names its commands, when they run, what they may not touch, what they decide.

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use pactify_tests::agent::{brief, write};
use pactify_tests::editor::{Editor, configure_more, limit, scripted_sandbox};
use pactify_tests::rendezvous;
use pactify_tests::sandbox::Sandbox;
use rustix::process::Pid;
use serde_json::{Value, json};

const GONE: Duration = Duration::from_secs(60);

/// A sandbox whose configuration names these commands for the repository `one`.
fn configured(commands: &[&str], seconds: u32) -> Result<Sandbox> {
    let sandbox = scripted_sandbox()?;
    let repository = sandbox.root().join("repos/one");
    configure_more(&sandbox, &format!("[repositories.{repository:?}]\nverify = {commands:?}\n"))?;
    limit(&sandbox, "verify-seconds", seconds)?;
    Ok(sandbox)
}

fn job() -> String {
    brief(&json!([write("by-the-job", "x\n"), {"say": "Done."}]))
}

#[test]
fn what_the_job_wrote_is_watched_while_verification_runs_it() -> Result<()> {
    let sandbox = configured(&["sh ./check.sh"], 60)?;
    let repository = sandbox.filled("one")?;
    let hook = repository.path().join(".git/hooks/post-checkout");
    let plant = format!(
        "mkdir -p {0}; echo 'touch /tmp/evil' > {1}; chmod +x {1}\n",
        quoted(&hook, true),
        quoted(&hook, false)
    );
    let mut editor = Editor::open(&sandbox, repository.path())?;
    let job = editor.delegate(&brief(&json!([write("check.sh", &plant), {"say": "Done."}])), &json!({}))?;
    let status = editor.until(&job, "finished")?;
    ensure!(hook.exists(), "the payload did not fire");
    let outside = status["outside"].to_string();
    ensure!(outside.contains("post-checkout") && outside.contains("dangerous"), "{status:#}");
    let refused = editor
        .run("diffPreview", &json!({"jobId": job}))
        .and_then(|preview| editor.refused("apply", &json!({"jobId": job, "changeSet": preview["changeSet"]})))?;
    assert_eq!(refused.data.context("no data")?["code"], "outsideNotConfirmed");
    Ok(())
}

/// A path, or the one of its folder, as a shell reads it.
fn quoted(path: &std::path::Path, folder: bool) -> String {
    let path = if folder { path.parent().unwrap_or(path) } else { path };
    format!("'{}'", path.display())
}

#[test]
fn a_result_is_verified_in_its_tree_and_what_that_writes_is_no_part_of_it() -> Result<()> {
    let mut sandbox = configured(
        &[
            "test -f by-the-job && echo seen && env > ../seen",
            "echo more >> by-the-job; echo y > also-new; sleep 600 & echo $! > ../left",
        ],
        60,
    )?;
    for (name, value) in [("GIT_DIR", "/nowhere"), ("NPM_TOKEN", "a-secret")] {
        sandbox.set(name, value);
    }
    let path = sandbox.root().join("repos/one");
    let script = "unset GIT_DIR; mkdir -p repos && git init -q repos/one && cd repos/one && echo a > a && git add a && git commit -qm a";
    let mut command = sandbox.command("sh");
    command.args(["-c", script]);
    pactify_tests::running::Running::start(command, b"")?.wait(GONE)?.success()?;
    let mut editor = Editor::open(&sandbox, &path)?;
    let job = editor.delegate(&job(), &json!({}))?;
    let status = editor.until(&job, "finished")?;
    assert_eq!(status["outcome"], "succeeded", "{status:#}");
    let told = status["verification"].as_array().context("no verification")?;
    assert_eq!(told.len(), 2, "{status:#}");
    ensure!(told.iter().all(|one| one["passed"] == true && one["exitCode"] == 0), "{status:#}");
    assert_eq!(told[0]["tail"], "seen\n");
    ensure!(status["notices"].to_string().contains("left behind were ended"), "{status:#}");
    let left: i32 = std::fs::read_to_string(sandbox.job(&job).join("left"))?.trim().parse()?;
    ensure!(rendezvous::ends(Pid::from_raw(left).context("pid 0")?, GONE)?);
    let seen = std::fs::read_to_string(sandbox.job(&job).join("seen"))?;
    ensure!(seen.contains(&format!("PACTIFY_JOB={job}")) && !seen.contains("a-secret") && !seen.contains("GIT_DIR"));

    let preview = editor.run("diffPreview", &json!({"jobId": job}))?;
    let paths: Vec<&Value> =
        preview["files"].as_array().context("no files")?.iter().map(|file| &file["path"]).collect();
    assert_eq!(paths, ["by-the-job"]);
    editor.apply(&job)?;
    assert_eq!(std::fs::read_to_string(path.join("by-the-job"))?, "x\n");
    Ok(())
}

#[test]
fn a_job_that_goes_on_does_not_take_what_its_verification_wrote_for_its_own() -> Result<()> {
    let script = "test -f ../once && exit 0; touch ../once; mkdir made && echo m > made/new && echo t > touched && \
                  ln -s nowhere link && echo o > ignored.o && echo more >> README.md && rm src/empty.h";
    let sandbox = configured(&[script], 60)?;
    let repository = sandbox.filled("one")?;
    let mut editor = Editor::open(&sandbox, repository.path())?;
    let job = editor.delegate(&job(), &json!({}))?;
    let status = editor.until(&job, "finished")?;
    assert_eq!((&status["outcome"], &status["changes"]["files"]), (&json!("succeeded"), &json!(1)), "{status:#}");
    editor.left_alone(&job)?;
    let tree = sandbox.job(&job).join("tree");
    ensure!(tree.join("made/new").exists() && tree.join("link").is_symlink(), "it is there to be looked at");
    std::fs::write(tree.join("touched"), "by the person\n")?;

    let more = brief(&json!([write("by-the-job-too", "y\n"), {"say": "Done."}]));
    editor.run("resume", &json!({"jobId": job, "message": more}))?;
    let status = editor.until(&job, "finished")?;
    let preview = editor.run("diffPreview", &json!({"jobId": job}))?;
    let mut paths: Vec<&str> =
        preview["files"].as_array().context("no files")?.iter().filter_map(|file| file["path"].as_str()).collect();
    paths.sort_unstable();
    assert_eq!(paths, ["README.md", "by-the-job", "by-the-job-too", "src/empty.h", "touched"], "{preview:#}");
    ensure!(tree.join("ignored.o").exists(), "what git ignores is no part of any result");
    let notices = status["notices"].to_string();
    ensure!(notices.contains("removed what it had made: link, made/new"), "{notices}");
    ensure!(notices.contains("somebody has touched since: touched"), "{notices}");
    ensure!(notices.contains("of the result") && notices.contains("README.md, src/empty.h"), "{notices}");
    editor.left_alone(&job)?;
    ensure!(!sandbox.job(&job).join("residue").exists() && !sandbox.job(&job).join("before-verification").exists());
    Ok(())
}

#[test]
fn a_job_that_goes_on_has_its_files_under_their_names_whatever_its_verification_renamed() -> Result<()> {
    let script = "test -f ../once && exit 0; touch ../once; mkdir moved && mv by-the-job moved/away && \
                  mv deep/folder other && mv README.md kept && echo more >> kept && mv kept README.md && \
                  mv taken gone && mv src/empty.h renamed.h && sed -i.bak s/s/S/ saved && \
                  mv z-linked z-linked.old && ln -s z-linked.old z-linked";
    let sandbox = configured(&[script], 60)?;
    let repository = sandbox.filled("one")?;
    let mut editor = Editor::open(&sandbox, repository.path())?;
    let steps = json!([
        write("by-the-job", "x\n"),
        write("deep/folder/one", "1\n"),
        write("deep/folder/two", "2\n"),
        write("taken", "t\n"),
        write("saved", "s\n"),
        write("z-linked/in", "l\n"),
        write("README.md", "new\n"),
        {"say": "Done."}
    ]);
    let job = editor.delegate(&brief(&steps), &json!({}))?;
    let status = editor.until(&job, "finished")?;
    assert_eq!((&status["outcome"], &status["changes"]["files"]), (&json!("succeeded"), &json!(7)), "{status:#}");
    editor.left_alone(&job)?;
    let tree = sandbox.job(&job).join("tree");
    ensure!(tree.join("moved/away").exists() && tree.join("other/one").exists(), "it is there to be looked at");
    std::fs::write(tree.join("taken"), "by the person\n")?;

    let more = brief(&json!([write("by-the-job-too", "y\n"), {"say": "Done."}]));
    editor.run("resume", &json!({"jobId": job, "message": more}))?;
    let status = editor.until(&job, "finished")?;
    for (path, text) in [
        ("by-the-job", "x\n"),
        ("deep/folder/one", "1\n"),
        ("deep/folder/two", "2\n"),
        ("z-linked/in", "l\n"),
        // What took its name cannot be told from work, so that both are there.
        ("saved.bak", "s\n"),
        ("saved", "S\n"),
    ] {
        let content = editor.run("content", &json!({"jobId": job, "side": "result", "path": path}))?;
        assert_eq!(content["text"], text, "{path}");
    }
    // Somebody took its name meanwhile: nothing is written over that, and nothing of the job's goes.
    assert_eq!(std::fs::read_to_string(tree.join("taken"))?, "by the person\n");
    assert_eq!(std::fs::read_to_string(tree.join("gone"))?, "t\n");
    ensure!(tree.join("src/empty.h").exists(), "a file of the base");
    ensure!(!tree.join("moved/away").exists() && !tree.join("other/one").exists() && !tree.join("renamed.h").exists());
    let notices = status["notices"].to_string();
    ensure!(notices.contains("its name again: by-the-job, deep/folder/one, deep/folder/two, and 2 more"), "{notices}");
    ensure!(notices.contains("has touched since: gone"), "{notices}");
    ensure!(notices.contains("of the result") && notices.contains("README.md, saved"), "{notices}");
    ensure!(notices.contains("saved.bak"), "{notices}");
    Ok(())
}

#[test]
fn a_result_that_fails_is_told_with_the_reason_and_can_be_taken_all_the_same() -> Result<()> {
    for (commands, seconds, passed, says, exit) in [
        (&["true", "echo the reason; exit 3", "touch ../never"][..], 60, 1, "exit code 3", json!(3)),
        (&["echo the reason; sleep 600 & sleep 600"], 10, 0, "within 10 s", Value::Null),
        (&["echo the reason; kill -9 $$"], 60, 0, "signal 9", Value::Null),
    ] {
        let sandbox = configured(commands, seconds)?;
        let repository = sandbox.filled("one")?;
        let mut editor = Editor::open(&sandbox, repository.path())?;
        let job = editor.delegate(&job(), &json!({}))?;
        let status = editor.until(&job, "finished")?;
        assert_eq!(status["outcome"], "verificationFailed", "{status:#}");
        let message = status["error"]["message"].as_str().context("no message")?;
        ensure!(message.contains(says) && message.contains("the reason"), "{message}");
        let told = status["verification"].as_array().context("no verification")?;
        assert_eq!(told.iter().filter(|one| one["passed"] == true).count(), passed);
        let last = told.last().context("none")?;
        assert_eq!((&last["passed"], &last["exitCode"]), (&json!(false), &exit), "{status:#}");
        ensure!(!sandbox.job(&job).join("never").exists(), "the first that fails is the last");
        assert_eq!(status["ending"]["tone"], "bad");
        editor.apply(&job)?;
        assert_eq!(repository.read("by-the-job")?, "x\n");
    }
    Ok(())
}

#[test]
fn only_what_would_be_a_success_of_a_write_job_is_verified() -> Result<()> {
    let sandbox = configured(&["touch ../verified"], 60)?;
    let repository = sandbox.filled("one")?;
    let mut editor = Editor::open(&sandbox, repository.path())?;
    for (steps, more, outcome) in [
        (json!([{"say": "nothing"}]), json!({}), "noChanges"),
        (json!([{"say": "looked"}]), json!({"access": "readOnly"}), "succeeded"),
        (json!([write("x", "x\n"), {"fail": "no quota"}]), json!({}), "failed"),
        (json!([write("x", "x\n"), {"say": "done"}]), json!({"verify": []}), "succeeded"),
    ] {
        let job = editor.delegate(&brief(&steps), &more)?;
        let status = editor.until(&job, "finished")?;
        assert_eq!(status["outcome"], outcome, "{steps}: {status:#}");
        ensure!(!sandbox.job(&job).join("verified").exists(), "{steps}");
    }
    let own = json!({"verify": ["touch ../mine"]});
    let job = editor.delegate(&brief(&json!([write("x", "x\n"), {"say": "done"}])), &own)?;
    assert_eq!(editor.until(&job, "finished")?["outcome"], "succeeded");
    ensure!(sandbox.job(&job).join("mine").exists() && !sandbox.job(&job).join("verified").exists());
    let again = editor.run("retry", &json!({"jobId": job}))?["jobId"].as_str().context("no id")?.to_owned();
    assert_eq!(editor.until(&again, "finished")?["outcome"], "succeeded");
    ensure!(sandbox.job(&again).join("mine").exists(), "a retry means what the job meant");
    Ok(())
}

#[test]
fn a_job_that_is_to_pass_nothing_passes_nothing_in_a_retry_either() -> Result<()> {
    let sandbox = configured(&["false"], 60)?;
    let repository = sandbox.filled("one")?;
    let mut editor = Editor::open(&sandbox, repository.path())?;
    let mut last = editor.delegate(&job(), &json!({"verify": []}))?;
    for said in [json!({}), json!({}), json!({"verify": ["false"]})] {
        assert_eq!(editor.until(&last, "finished")?["outcome"], "succeeded");
        let mut params = said;
        params["jobId"] = json!(last);
        last = editor.run("retry", &params)?["jobId"].as_str().context("no job")?.to_owned();
    }
    assert_eq!(editor.until(&last, "finished")?["outcome"], "verificationFailed");
    Ok(())
}

#[test]
fn a_cancel_ends_a_verification_and_a_host_that_dies_in_one_loses_no_result() -> Result<()> {
    let sandbox =
        configured(&["echo spoilt > by-the-job; echo $$ > ../pid.new; mv ../pid.new ../pid; sleep 600"], 600)?;
    let repository = sandbox.filled("one")?;
    let mut editor = Editor::aside(&sandbox, Some(repository.path()))?;
    let cancelled = editor.delegate(&job(), &json!({}))?;
    rendezvous::appears(&sandbox.job(&cancelled).join("pid"), Duration::from_secs(60))?;
    assert_eq!(editor.status(&cancelled)?["state"], "verifying");
    editor.run("cancel", &json!({"jobId": cancelled}))?;
    let status = editor.until(&cancelled, "finished")?;
    assert_eq!((&status["outcome"], &status["changes"]["files"]), (&json!("cancelled"), &json!(1)), "{status:#}");

    let lost = editor.delegate(&job(), &json!({}))?;
    rendezvous::appears(&sandbox.job(&lost).join("pid"), Duration::from_secs(60))?;
    editor.kill_host(&lost)?;
    editor.run("cancel", &json!({"jobId": lost}))?;
    let status = editor.until(&lost, "finished")?;
    assert_eq!(status["error"]["code"], "hostLost", "{status:#}");
    for job in [cancelled, lost] {
        let left: i32 = std::fs::read_to_string(sandbox.job(&job).join("pid"))?.trim().parse()?;
        ensure!(rendezvous::ends(Pid::from_raw(left).context("pid 0")?, GONE)?);
        let content = editor.run("content", &json!({"jobId": job, "side": "result", "path": "by-the-job"}))?;
        assert_eq!(content["text"], "x\n", "what verification wrote is no part of the result");
    }
    Ok(())
}

#[test]
fn a_brief_s_commands_run_once_exactly_that_text_is_approved() -> Result<()> {
    let sandbox = scripted_sandbox()?;
    let repository = sandbox.filled("one")?;
    let ran = sandbox.root().join("ran");
    let mut editor = Editor::open(&sandbox, repository.path())?;
    let with = |commands: &[String]| format!("+++\nverify = {}\n+++\n{}", json!(commands), job());
    let command = format!("echo ran >> {}", ran.display());
    let proposed = with(&[command.clone(), "true".to_owned()]);

    let refused = editor.refused("delegate", &json!({"brief": proposed}))?;
    let data = refused.data.context("no data")?;
    assert_eq!(data["code"], "approvalRequired");
    let approval = data["approval"].clone();
    assert_eq!((&approval["kind"], &approval["text"]), (&json!("verify"), &json!(format!("{command}\ntrue"))));
    ensure!(!ran.exists());

    let decide = |decision: &str| {
        let (kind, repository, text) = (&approval["kind"], &approval["repository"], &approval["text"]);
        json!({"kind": kind, "repository": repository, "text": text, "decision": decision})
    };
    editor.run("approve", &decide("allow"))?;
    let one = editor.delegate(&proposed, &json!({}))?;
    let status = editor.until(&one, "finished")?;
    assert_eq!(
        (&status["outcome"], &status["title"]),
        (&json!("succeeded"), &json!("Do as you are told.")),
        "{status:#}"
    );
    assert_eq!(std::fs::read_to_string(&ran)?, "ran\n");
    let other = with(&[format!("{command}; true"), "true".to_owned()]);
    assert_eq!(editor.refused("delegate", &json!({"brief": other}))?.reason(), "approvalRequired");

    let file = sandbox.root().join("task.md");
    std::fs::write(&file, &proposed)?;
    let (file, folder) = (file.display().to_string(), repository.path().display().to_string());
    let denied = sandbox.start("pactify", &["sub", "approve", "--brief", &file, "--repo", &folder, "--deny"], b"")?;
    let denied = denied.wait(GONE)?.success()?;
    ensure!(denied.stdout == "denied\n" && denied.stderr.contains("echo ran"), "{}{}", denied.stdout, denied.stderr);
    let two = editor.delegate(&proposed, &json!({}))?;
    let status = editor.until(&two, "finished")?;
    assert_eq!(status["outcome"], "succeeded", "{status:#}");
    ensure!(status["notices"].to_string().contains("not run, as you decided"), "{status:#}");
    assert_eq!(std::fs::read_to_string(&ran)?, "ran\n");
    Ok(())
}

#[test]
fn what_a_repository_looks_like_is_suggested_and_not_run() -> Result<()> {
    let sandbox = scripted_sandbox()?;
    let repository = sandbox.repository("one")?;
    repository.write("Makefile", "test:\n\ttouch made\n")?;
    repository.commit("base")?;
    let mut editor = Editor::open(&sandbox, repository.path())?;
    let job = editor.delegate(&job(), &json!({}))?;
    let status = editor.until(&job, "finished")?;
    assert_eq!(status["outcome"], "succeeded", "{status:#}");
    ensure!(status["notices"].to_string().contains("`make test`"), "{status:#}");
    assert_eq!(status["verification"], Value::Null);
    ensure!(!sandbox.job(&job).join("tree/made").exists());

    let unverified = editor.delegate(&self::job(), &json!({"verify": []}))?;
    let status = editor.until(&unverified, "finished")?;
    ensure!(!status["notices"].to_string().contains("`make test`"), "{status:#}");
    Ok(())
}
