//! The person's logins around real jobs: refreshed where no harness should leave them, emptied, changed meanwhile.
//!
//! The scripted agent stands in for codex with commands that do what was measured of other harnesses, and what only a
//! hostile job does.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context as _, Result};
use pactify_tests::agent::{brief, write};
use pactify_tests::editor::{Editor, scripted_sandbox};
use pactify_tests::rendezvous;
use pactify_tests::running::Ended;
use pactify_tests::sandbox::{Repository, Sandbox};
use serde_json::{Value, json};

/// Tokens that look like nothing: only knowing them helps.
const OLD: &str = "himbeer eis mit sahne";
const NEW: &str = "zitronen sorbet ohne alles";

const PATIENCE: Duration = Duration::from_secs(60);

/// A person who is logged in.
struct Stage {
    sandbox: Sandbox,
}

impl Stage {
    fn new() -> Result<Self> {
        let sandbox = scripted_sandbox()?;
        fs::create_dir(sandbox.home().join(".codex"))?;
        let stage = Self { sandbox };
        stage.log_in(OLD)?;
        Ok(stage)
    }

    fn login(&self) -> PathBuf {
        self.sandbox.home().join(".codex/auth.json")
    }

    fn log_in(&self, token: &str) -> Result<()> {
        Ok(fs::write(self.login(), login(token))?)
    }

    fn token(&self) -> Result<String> {
        let login: Value = serde_json::from_slice(&fs::read(self.login())?)?;
        Ok(login["tokens"]["refresh_token"].as_str().context("no token")?.to_owned())
    }

    fn repository(&self) -> Result<Repository<'_>> {
        self.sandbox.filled("one")
    }

    fn pactify(&self, arguments: &[&str]) -> Result<Ended> {
        self.sandbox.start("pactify", &[&["sub"], arguments].concat(), b"")?.wait(PATIENCE)
    }

    /// Nothing of a login in use is left, but its lock.
    fn is_forgotten(&self) -> Result<bool> {
        let folder = fs::read_dir(self.sandbox.pactify_home().join("logins"))?;
        let names: Vec<_> = folder.map(|entry| Ok(entry?.file_name())).collect::<Result<_>>()?;
        Ok(names.iter().all(|name| name.to_string_lossy().ends_with(".lock")))
    }
}

fn login(token: &str) -> String {
    json!({"OPENAI_API_KEY": null, "tokens": {"access_token": token, "refresh_token": token}}).to_string()
}

/// Puts a private login in place of the link, as a harness does that refreshes by rename.
fn refresh(token: &str) -> Value {
    json!({"run": format!("cd $CODEX_HOME && printf '%s' '{}' > fresh && mv fresh auth.json", login(token))})
}

#[test]
fn a_login_that_was_refreshed_in_the_jobs_home_is_the_persons_again_also_after_a_crash() -> Result<()> {
    let stage = Stage::new()?;
    let repository = stage.repository()?;
    let mut editor = Editor::aside(&stage.sandbox, Some(repository.path()))?;
    let job = editor.delegate(&brief(&json!([refresh(NEW), write("a.txt", "a\n")])), &json!({}))?;
    let status = editor.until(&job, "finished")?;
    assert_eq!(status["outcome"], "succeeded", "{status:#}");
    assert!(status["notices"].to_string().contains("was written back to"), "{status:#}");
    assert_eq!(stage.token()?, NEW);
    assert_eq!(fs::metadata(stage.login())?.permissions().mode() & 0o777, 0o600);
    editor.left_alone(&job)?;
    assert!(stage.is_forgotten()?, "the copy that was kept meanwhile is gone");

    let job = editor.delegate(&brief(&json!([refresh(OLD), write("b.txt", "b\n"), "hang"])), &json!({}))?;
    editor.event(&job, "filesTouched")?;
    editor.kill_host(&job)?;
    assert!(!stage.is_forgotten()?, "nobody has looked yet");
    editor.run("cancel", &json!({"jobId": job}))?;
    assert_eq!(stage.token()?, OLD, "the repair wrote it back");
    editor.left_alone(&job)?;
    assert!(stage.is_forgotten()?);
    Ok(())
}

#[test]
fn the_doctor_names_a_login_that_is_no_link_any_more_while_its_job_runs() -> Result<()> {
    let stage = Stage::new()?;
    let repository = stage.repository()?;
    let go = stage.sandbox.root().join("go");
    let mut editor = Editor::open(&stage.sandbox, repository.path())?;
    let (wait, done) = (json!({"waitFor": [go.display().to_string(), 600.0]}), stage.sandbox.root().join("done"));
    let steps =
        json!([write("a.txt", "a\n"), wait, refresh(NEW), {"run": format!("touch {}", done.display())}, "hang"]);
    let job = editor.delegate(&brief(&steps), &json!({}))?;
    editor.event(&job, "filesTouched")?;
    let mut links = || -> Result<Vec<Value>> {
        let told = editor.run("doctor", &json!({}))?;
        let all = told["findings"].as_array().context("no findings")?;
        Ok(all.iter().filter(|finding| finding["id"] == "logins.link").cloned().collect())
    };
    assert_eq!(links()?, [Value::Null; 0], "it is a link yet");
    fs::write(&go, "")?;
    rendezvous::appears(&done, PATIENCE)?;
    let found = links()?;
    let title = found.first().and_then(|finding| finding["title"].as_str()).context("nothing is found")?;
    assert!(title.contains(&job) && title.contains(&stage.login().display().to_string()), "{title}");
    assert_eq!((found.len(), &found[0]["severity"]), (1, &json!("warning")), "{found:?}");
    assert!(found[0]["next"].as_str().is_some_and(|next| next.contains("when the job ends")), "{found:?}");
    editor.run("cancel", &json!({"jobId": job}))?;
    editor.until(&job, "finished")?;
    assert_eq!(stage.token()?, NEW, "it was looked at");
    Ok(())
}

#[test]
fn a_newer_login_of_the_person_stays_and_the_jobs_is_kept_apart() -> Result<()> {
    let stage = Stage::new()?;
    let repository = stage.repository()?;
    let go = stage.sandbox.root().join("go");
    let mut editor = Editor::open(&stage.sandbox, repository.path())?;
    let wait = json!({"waitFor": [go.display().to_string(), 600.0]});
    let job = editor.delegate(&brief(&json!([write("a.txt", "a\n"), wait, refresh(NEW)])), &json!({}))?;
    editor.event(&job, "filesTouched")?;
    stage.log_in("logged in again meanwhile")?;
    fs::write(&go, "")?;
    let status = editor.until(&job, "finished")?;
    assert_eq!(status["outcome"], "succeeded", "{status:#}");
    assert!(status["notices"].to_string().contains("pactify sub login restore"), "{status:#}");
    assert_eq!(stage.token()?, "logged in again meanwhile");

    let list: Value = serde_json::from_str(&stage.pactify(&["login", "--json"])?.success()?.stdout)?;
    let kept = &list["quarantined"][0];
    assert_eq!((&kept["harness"], &kept["jobId"]), (&json!("codex"), &json!(job)), "{list:#}");
    assert_eq!(kept["login"], stage.login().display().to_string());
    assert_eq!(list["inUse"], json!([]));
    let id = kept["id"].as_str().context("no id")?;
    let restored: Value = serde_json::from_str(&stage.pactify(&["login", "restore", id, "--json"])?.success()?.stdout)?;
    assert_eq!(stage.token()?, NEW);
    let other = restored["replaced"].as_str().context("what stood there is gone")?;
    stage.pactify(&["login", "discard", other, "--yes"])?.success()?;
    let list: Value = serde_json::from_str(&stage.pactify(&["login", "--json"])?.success()?.stdout)?;
    assert_eq!(list["quarantined"], json!([]));
    assert_eq!(stage.pactify(&["login", "restore", id])?.code(), 2, "it is not there any more");
    Ok(())
}

/// A job that refreshed its login while the person's directory was away, and ended.
fn unsettled(stage: &Stage, editor: &mut Editor, file: &str) -> Result<String> {
    let go = stage.sandbox.root().join(format!("go-{file}"));
    let wait = json!({"waitFor": [go.display().to_string(), 600.0]});
    let job = editor.delegate(&brief(&json!([write(file, "a\n"), wait, refresh(NEW)])), &json!({}))?;
    editor.event(&job, "filesTouched")?;
    fs::rename(stage.sandbox.home().join(".codex"), stage.sandbox.home().join("away"))?;
    fs::write(&go, "")?;
    let status = editor.until(&job, "finished")?;
    assert!(status["notices"].to_string().contains("is not known"), "{status:#}");
    editor.left_alone(&job)?;
    Ok(job)
}

#[test]
fn a_login_that_could_not_be_settled_is_settled_by_a_cancel_and_kept_by_a_discard_and_a_resume() -> Result<()> {
    let stage = Stage::new()?;
    let repository = stage.repository()?;
    let mut editor = Editor::open(&stage.sandbox, repository.path())?;
    let back = || fs::rename(stage.sandbox.home().join("away"), stage.sandbox.home().join(".codex"));
    let job = unsettled(&stage, &mut editor, "a.txt")?;
    back()?;
    editor.run("cancel", &json!({"jobId": job}))?;
    assert_eq!(stage.token()?, NEW, "the cancel wrote it back");
    assert!(stage.is_forgotten()?);

    let kept = |count: usize| -> Result<()> {
        let list: Value = serde_json::from_str(&stage.pactify(&["login", "--json"])?.success()?.stdout)?;
        assert_eq!(list["quarantined"].as_array().map(Vec::len), Some(count), "{list:#}");
        assert_eq!(list["inUse"], json!([]));
        Ok(())
    };
    stage.log_in(OLD)?;
    let job = unsettled(&stage, &mut editor, "b.txt")?;
    editor.run("discard", &json!({"jobId": job}))?;
    back()?;
    kept(2)?;

    let job = unsettled(&stage, &mut editor, "c.txt")?;
    editor.run("resume", &json!({"jobId": job, "message": brief(&json!([write("d.txt", "d\n")]))}))?;
    let status = editor.until(&job, "finished")?;
    assert!(status["notices"].to_string().contains("it is kept"), "{status:#}");
    kept(4)
}

#[test]
fn a_login_that_a_harness_emptied_comes_back() -> Result<()> {
    let stage = Stage::new()?;
    let repository = stage.repository()?;
    let mut editor = Editor::open(&stage.sandbox, repository.path())?;
    // Through the link, as kimi does when its refresh is refused.
    let empty = json!({"run": format!("cat $CODEX_HOME/auth.json > /dev/null && printf '%s' '{}' > $CODEX_HOME/auth.json", login(""))});
    let job = editor.delegate(&brief(&json!([empty, {"run": "cat $CODEX_HOME/auth.json"}])), &json!({}))?;
    let status = editor.until(&job, "finished")?;
    assert!(status["notices"].to_string().contains("is back in"), "{status:#}");
    assert_eq!(stage.token()?, OLD);
    editor.left_alone(&job)?;
    assert!(stage.is_forgotten()?);
    Ok(())
}

#[test]
fn a_job_cannot_see_to_logins() -> Result<()> {
    let mut stage = Stage::new()?;
    stage.sandbox.set("PACTIFY_JOB", "20261129-101112-aaaaaa");
    for verb in [&["login", "codex"][..], &["login", "restore", "x"], &["login", "discard", "x", "--yes"]] {
        let ended = stage.pactify(verb)?;
        assert_eq!(ended.code(), 3, "{verb:?}: {}", ended.stderr);
        assert!(ended.stderr.contains("inside job"), "{}", ended.stderr);
    }
    stage.sandbox.set("PACTIFY_JOB", "");
    let ended = stage.pactify(&["login", "codex"])?;
    assert_eq!(ended.code(), 2);
    assert!(ended.stderr.contains("jobs use yours"), "{}", ended.stderr);
    Ok(())
}
