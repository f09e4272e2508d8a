//! An apply whose process dies anywhere: while it writes down what is accepted, while it writes to the checkout, and
//! before its record is in the journal. The next command finds all of it or nothing, and can take it back.
//!
//! The calls that write to the checkout are counted by the engine itself (its own tests kill there, before and after
//! each). Here the whole program is killed, before each of its system calls that changes a disk, as strace counts them.
//! (What opens a new file is not among them: that an empty one is there is what a kill before the next call leaves.)

use std::os::unix::process::ExitStatusExt as _;

use anyhow::{Context as _, Result, ensure};
use pactify_tests::agent::{brief, write};
use pactify_tests::editor::{Editor, JOB, scripted_sandbox};
use pactify_tests::outside;
use pactify_tests::running::Running;
use pactify_tests::sandbox::{Repository, Sandbox};
use pactify_tests::tools::Tool;
use serde_json::{Value, json};

/// The calls of an apply that change a disk. Each is counted by itself.
const CALLS: [&str; 15] = [
    "mkdir",
    "mkdirat",
    "write",
    "pwrite64",
    "link",
    "linkat",
    "rename",
    "renameat",
    "renameat2",
    "unlink",
    "unlinkat",
    "rmdir",
    "fsync",
    "fdatasync",
    "syncfs",
];

/// A finished job, and the checkout that it is for.
struct Stage<'a> {
    sandbox: &'a Sandbox,
    repository: Repository<'a>,
    job: String,
}

impl Stage<'_> {
    /// Applies `path`, unless that is killed at this call; whether it was.
    fn is_killed(&self, path: &str, call: &str, number: u32) -> Result<bool> {
        let mut command = self.sandbox.command(Tool::Strace.find()?);
        let inject = format!("inject={call}:signal=KILL:when={number}");
        let trace = format!("trace={call}");
        // Its own calls, not those of git: that dies by itself only where somebody kills it by itself.
        command.args(["-qq", "-o", "/dev/null", "-e", &trace, "-e", &inject]);
        command.arg(outside::program("pactify")?).args(["sub", "apply", &self.job, "--yes", "--path", path]);
        command.current_dir(self.repository.path());
        let ended = Running::start(command, b"")?.wait(JOB)?;
        match ended.status.signal() {
            Some(9) => Ok(true),
            _ => ended.success().map(|_| false),
        }
    }

    fn apply(&self, path: &str) -> Result<()> {
        self.repository.sub(&["apply", &self.job, "--yes", "--path", path], "")?.success().map(drop)
    }

    /// Nothing of `path` is there, and nobody is told otherwise.
    fn is_as_before(&self, path: &str, disposition: &Value) -> Result<()> {
        let status = self.status()?;
        ensure!(!self.holds(path) && status["disposition"] == *disposition, "{status:#}");
        ensure!(!status["notices"].to_string().contains("was cut off"), "{status:#}");
        Ok(())
    }

    fn status(&self) -> Result<Value> {
        let shown = self.repository.sub(&["show", &self.job, "--json"], "")?.success()?;
        Ok(serde_json::from_str::<Value>(&shown.stdout)?["job"].take())
    }

    fn holds(&self, path: &str) -> bool {
        self.repository.path().join(path).exists()
    }
}

/// What of the job stands in the checkout.
#[derive(Clone, Copy)]
enum Stands {
    Nothing,
    /// This file, from an apply before.
    First(&'static str),
}

/// Applies `path` with a kill before each call, then goes on as a person does; returns how many kills there were, and
/// after how many of them all of it was there.
fn kill_everywhere(stage: &Stage<'_>, path: &str, stands: Stands) -> Result<(u32, u32)> {
    let (mut kills, mut done) = (0, 0);
    let before = stage.status()?["disposition"].clone();
    for call in CALLS {
        for number in 1.. {
            let case = format!("{path}, killed at {call} {number}");
            let is_killed = stage.is_killed(path, call, number)?;
            // The next command that writes repairs and records; then it takes back what it finds.
            let undone = stage.repository.sub(&["undo", &stage.job], "")?;
            match stands {
                Stands::Nothing if undone.code() == 0 => done += u32::from(is_killed),
                Stands::Nothing => ensure!(undone.stderr.contains("nothing of job"), "{case}: {undone:?}"),
                Stands::First(first) => {
                    let undone = undone.success().context(case.clone())?;
                    ensure!(!stage.holds(path), "{case}: {undone:?}");
                    // Where nothing of this one was there, that before it is the one that was taken back.
                    if stage.holds(first) {
                        done += u32::from(is_killed);
                    } else {
                        stage.apply(first).context(case.clone())?;
                    }
                }
            }
            stage.is_as_before(path, &before).context(case.clone())?;
            if !is_killed {
                break;
            }
            kills += 1;
            if kills % 4 != 0 {
                continue;
            }
            stage.apply(path).context(case.clone())?;
            ensure!(stage.holds(path), "{case}: applied after the repair");
            stage.repository.sub(&["undo", &stage.job], "")?.success().context(case.clone())?;
            stage.is_as_before(path, &before).context(case)?;
        }
    }
    Ok((kills, done))
}

#[test]
fn an_apply_that_is_killed_anywhere_is_told_right_and_can_be_taken_back() -> Result<()> {
    let sandbox = scripted_sandbox()?;
    let repository = sandbox.filled("one")?;
    let mut editor = Editor::open(&sandbox, repository.path())?;
    let job = editor.delegate(&brief(&json!([write("a.txt", "a\n"), write("new/b.txt", "b\n")])), &json!({}))?;
    editor.until(&job, "finished")?;
    drop(editor);
    let before = repository.snapshot()?;
    let stage = Stage { sandbox: &sandbox, repository, job };

    // The first one makes the store of what is accepted.
    let (kills, done) = kill_everywhere(&stage, "a.txt", Stands::Nothing)?;
    println!("killed at {kills} calls of a first apply, {done} times all of it was there");
    ensure!(kills > 40 && done > 1 && done < kills, "{kills} kills, {done} in all");

    // A further one adds to it.
    stage.apply("a.txt")?;
    let (kills, done) = kill_everywhere(&stage, "new/b.txt", Stands::First("a.txt"))?;
    println!("killed at {kills} calls of a further apply, {done} times all of it was there");
    ensure!(kills > 20 && done > 1 && done < kills, "{kills} kills, {done} in all");
    stage.repository.sub(&["undo", &stage.job], "")?.success()?;

    stage.repository.sub(&["discard", &stage.job, "--yes"], "")?.success()?;
    let left = before.changed_since(&stage.repository.snapshot()?);
    assert_eq!(
        left,
        [format!(".git/refs/pactify/keep/{}", stage.job)],
        "and nothing stays, nor does what kept the base"
    );
    let applies = stage.sandbox.pactify_home().join("applies");
    assert_eq!(std::fs::read_dir(applies)?.count(), 0);
    Ok(())
}
