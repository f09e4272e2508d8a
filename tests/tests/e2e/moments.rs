//! What happens at moments that nobody hits by chance: between two steps of a job, which a git that waits keeps apart.

mod recoveries;

use std::fs::{self, File, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use pactify_tests::agent::{brief, write};
use pactify_tests::editor::{Editor, configure_more, limit, scripted_sandbox, uri};
use pactify_tests::rendezvous;
use pactify_tests::sandbox::{Repository, Sandbox, shell_program};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

const SOON: Duration = Duration::from_secs(60);

/// A sandbox whose git waits as long as a gate is there.
struct Stage {
    sandbox: Sandbox,
    gate: PathBuf,
    waits: PathBuf,
    /// What git was called for, a line each.
    calls: PathBuf,
    /// What setup and verification leave.
    marks: PathBuf,
}

impl Stage {
    fn new() -> Result<Self> {
        let mut sandbox = scripted_sandbox()?;
        let path = sandbox.environment().get(std::ffi::OsStr::new("PATH")).context("no PATH")?.clone();
        let folder = sandbox.root().join("bin");
        let [gate, waits, calls, marks] = ["gate", "waits", "calls", "marks"].map(|name| sandbox.root().join(name));
        fs::create_dir(&marks)?;
        let real = std::env::split_paths(&path).map(|folder| folder.join("git")).find(|git| git.is_file());
        let (gate_, waits_) = (gate.display(), waits.display());
        let script = format!(
            "echo \"$*\" >> '{}'\nif [ -e '{gate_}' ]; then : > '{waits_}'; while [ -e '{gate_}' ]; do /bin/sleep 0.02; done; fi\n\
             exec '{}' \"$@\"",
            calls.display(),
            real.context("no git")?.display()
        );
        shell_program(&folder.join("git"), &script)?;
        let all = std::env::join_paths(std::iter::once(folder).chain(std::env::split_paths(&path)))?;
        sandbox.set("PATH", all);
        let one = sandbox.root().join("repos/one");
        let tables = format!(
            "[repositories.{one:?}]\nsetup = \"touch '{marks}/setup'\"\nverify = [\"touch '{marks}/verified'\"]\n",
            marks = marks.display(),
        );
        configure_more(&sandbox, &tables)?;
        limit(&sandbox, "running-jobs", 1)?;
        Ok(Self { sandbox, gate, waits, calls, marks })
    }

    fn repository(&self) -> Result<Repository<'_>> {
        self.sandbox.filled("one")
    }

    /// An editor without a folder: the survey of one that has one calls git, which would stand at the gate as well.
    fn editor(&self) -> Result<Editor> {
        Editor::aside(&self.sandbox, None)
    }

    fn close(&self) -> Result<()> {
        Ok(fs::write(&self.gate, "")?)
    }

    /// Waits until somebody stands at the gate.
    fn await_git(&self) -> Result<()> {
        Ok(rendezvous::appears(&self.waits, SOON)?)
    }

    fn open(&self) -> Result<()> {
        Ok(fs::remove_file(&self.gate)?)
    }

    fn has(&self, mark: &str) -> bool {
        self.marks.join(mark).exists()
    }

    /// Holds the only slot for a job, so that the next one queues.
    fn slot(&self) -> Result<File> {
        let folder = self.sandbox.pactify_home().join("slots");
        fs::create_dir_all(&folder)?;
        fs::set_permissions(&folder, Permissions::from_mode(0o700))?;
        let lock = File::options().create(true).append(true).open(folder.join("0.lock"))?;
        lock.lock()?;
        Ok(lock)
    }
}

#[test]
fn a_cancel_before_the_setup_starts_nothing() -> Result<()> {
    let stage = Stage::new()?;
    let repository = stage.repository()?;
    let mut editor = stage.editor()?;
    let slot = stage.slot()?;
    let there = json!({"repository": uri(repository.path())});
    let job = editor.delegate(&brief(&json!([write("a.txt", "a\n")])), &there)?;
    stage.close()?;
    drop(slot);
    stage.await_git()?;
    assert_eq!(editor.status(&job)?["state"], "preparing");
    editor.run("cancel", &json!({"jobId": job}))?;
    editor.event(&job, "cancelRequested")?;
    stage.open()?;
    let status = editor.until(&job, "finished")?;
    assert_eq!((&status["outcome"], &status["error"]), (&json!("cancelled"), &Value::Null), "{status:#}");
    ensure!(!stage.has("setup"), "the setup ran");
    for never in ["commandStarted", "launched", "captured"] {
        ensure!(editor.events_of(&job, never)?.is_empty(), "{never}");
    }
    editor.run("discard", &json!({"jobId": job}))?;
    assert_eq!(repository.git(&["for-each-ref", "refs/pactify"])?, "");
    Ok(())
}

#[test]
fn a_cancel_before_the_verification_keeps_the_result_and_verifies_nothing() -> Result<()> {
    let stage = Stage::new()?;
    let repository = stage.repository()?;
    let mut editor = stage.editor()?;
    // The capture of what the agent leaves meets the gate.
    let close = format!(": > '{}'", stage.gate.display());
    let there = json!({"repository": uri(repository.path())});
    let job = editor.delegate(&brief(&json!([write("a.txt", "a\n"), {"say": "Done."}, {"run": close}])), &there)?;
    stage.await_git()?;
    assert_eq!(editor.events_of(&job, "harnessExited")?.len(), 1, "the agent is done");
    editor.run("cancel", &json!({"jobId": job}))?;
    editor.event(&job, "cancelRequested")?;
    stage.open()?;
    let status = editor.until(&job, "finished")?;
    assert_eq!((&status["outcome"], &status["changes"]["files"]), (&json!("cancelled"), &json!(1)), "{status:#}");
    ensure!(stage.has("setup") && !stage.has("verified"), "it was verified");
    ensure!(editor.events_of(&job, "verificationStarted")?.is_empty());
    editor.apply(&job)?;
    assert_eq!(repository.read("a.txt")?, "a\n");
    Ok(())
}

#[test]
fn a_configuration_that_breaks_before_a_turn_begins_fails_that_turn_and_loses_nothing() -> Result<()> {
    let stage = Stage::new()?;
    let repository = stage.repository()?;
    let mut editor = stage.editor()?;
    let there = json!({"repository": uri(repository.path())});
    let good = fs::read_to_string(stage.sandbox.config())?;
    let bad = format!("{good}\n[limits]\nrunning-jobs = \"hunter2\"\n");
    let task = brief(&json!([write("a.txt", "a\n"), {"say": "Done."}]));

    // Between the command's own look at it and the host's.
    stage.close()?;
    let job = std::thread::scope(|scope| {
        let editor = &mut editor;
        let delegated = scope.spawn(|| editor.delegate(&task, &there));
        let broken = stage.await_git().and_then(|()| Ok(fs::write(stage.sandbox.config(), &bad)?));
        stage.open()?;
        broken?;
        delegated.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })?;
    let status = editor.until(&job, "finished")?;
    assert_eq!((&status["outcome"], &status["error"]["code"]), (&json!("failed"), &json!("invalidConfig")));
    let named = status["error"].to_string();
    ensure!(named.contains("config.toml") && !named.contains("hunter2"), "{named}");
    ensure!(!stage.has("setup") && editor.events_of(&job, "launched")?.is_empty(), "something ran");

    fs::write(stage.sandbox.config(), &good)?;
    let again = editor.run("retry", &json!({"jobId": job}))?["jobId"].as_str().context("no id")?.to_owned();
    assert_eq!(editor.until(&again, "finished")?["outcome"], "succeeded");

    // A further turn: what the first one made stays, and can be taken or gone on with.
    fs::write(stage.sandbox.config(), &bad)?;
    let more = brief(&json!([write("b.txt", "b\n"), {"say": "And b."}]));
    editor.run("resume", &json!({"jobId": again, "message": more}))?;
    let status = editor.until(&again, "finished")?;
    assert_eq!((&status["attempt"], &status["error"]["code"]), (&json!(2), &json!("invalidConfig")), "{status:#}");
    assert_eq!(status["changes"]["files"], 1, "{status:#}");
    fs::write(stage.sandbox.config(), &good)?;
    editor.run("resume", &json!({"jobId": again, "message": more}))?;
    let status = editor.until(&again, "finished")?;
    assert_eq!((&status["outcome"], &status["changes"]["files"]), (&json!("succeeded"), &json!(2)), "{status:#}");
    editor.apply(&again)?;
    assert_eq!((repository.read("a.txt")?, repository.read("b.txt")?), ("a\n".into(), "b\n".into()));
    Ok(())
}

#[test]
fn what_a_job_is_held_against_is_on_the_disk_before_it_runs() -> Result<()> {
    let stage = Stage::new()?;
    let repository = stage.repository()?;
    let mut editor = Editor::open(&stage.sandbox, repository.path())?;
    // The agent's first act is to look.
    let seen = stage.sandbox.root().join("seen");
    let jobs = stage.sandbox.jobs();
    let look =
        format!("mkdir '{0}' && cp -r '{1}'/*/shared '{1}'/*/events.jsonl '{0}'", seen.display(), jobs.display());
    for more in [json!({"access": "readOnly", "inPlace": true}), json!({})] {
        let steps = brief(&json!(["ignoreSandbox", {"run": look}, {"say": "looked"}]));
        let job = editor.delegate(&steps, &more)?;
        editor.until(&job, "finished")?;
        let journal = fs::read_to_string(seen.join("events.jsonl"))?;
        let mut kinds = vec![("outsideRecorded", "1.before")];
        if more["inPlace"] == true {
            kinds.push(("checkoutGuarded", "1.checkout"));
        }
        for (kind, file) in kinds {
            let is_it = |event: &Value| event["type"] == kind;
            let mut lines = journal.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
            let event = lines.find_map(|line| [line.clone(), line["event"].clone()].into_iter().find(is_it));
            let digest = event.with_context(|| format!("no {kind} in {journal}"))?["digest"].clone();
            let kept = fs::read(seen.join("shared").join(file)).context(file)?;
            let found: String = Sha256::digest(&kept).iter().map(|byte| format!("{byte:02x}")).collect();
            assert_eq!(digest, found, "{kind}");
        }
        fs::remove_dir_all(&seen)?;
        repository.sub(&["discard", &job, "--yes"], "")?.success()?;
    }
    Ok(())
}

/// How often git compares a checkout with its HEAD is what a person waits for in a large one.
#[test]
fn the_checkout_is_compared_once_before_a_job_and_once_after_it() -> Result<()> {
    let stage = Stage::new()?;
    let without_setup = fs::read_to_string(stage.sandbox.config())?.replace("setup = ", "# setup = ");
    fs::write(stage.sandbox.config(), without_setup)?;
    let repository = stage.repository()?;
    repository.make_dirty()?;
    let mut editor = Editor::open(&stage.sandbox, repository.path())?;
    // Its verification is what is not confined.
    let edit = format!("echo mine > '{}'", repository.path().join("by-the-verification").display());
    let config = fs::read_to_string(stage.sandbox.config())?;
    let verify = config.lines().find(|line| line.starts_with("verify")).context("no verification")?;
    fs::write(stage.sandbox.config(), config.replace(verify, &format!("verify = [{edit:?}]")))?;
    fs::remove_file(&stage.calls)?;
    let job = editor.delegate(&brief(&json!([write("a.txt", "a\n"), {"say": "Done."}])), &json!({}))?;
    let status = editor.until(&job, "finished")?;
    assert_eq!(status["outcome"], "succeeded", "{status:#}");
    let calls = fs::read_to_string(&stage.calls)?;
    let compared = calls.lines().filter(|call| call.split(' ').any(|word| word == "status")).count();
    assert_eq!(compared, 2, "{calls}");
    let notices = status["notices"].to_string();
    ensure!(notices.contains("with uncommitted changes"), "{notices}");
    ensure!(
        notices.contains("1 file of your checkout changed") && notices.contains("by-the-verification"),
        "{notices}"
    );
    Ok(())
}
