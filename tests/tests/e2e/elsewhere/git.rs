//! The person's repository while jobs run, and after they died.

use anyhow::{Result, ensure};
use pactify_tests::agent::{brief, write};
use pactify_tests::editor::{Editor, JOB, scripted_sandbox};
use pactify_tests::rendezvous;
use pactify_tests::sandbox::shell_program;
use rustix::process::{Signal, kill_process};
use serde_json::json;

/// Hooks that refuse every commit once made agents' work vanish.
#[test]
fn hooks_that_refuse_commits_keep_no_result_back() -> Result<()> {
    let sandbox = scripted_sandbox()?;
    let repository = sandbox.filled("one")?;
    for name in ["pre-commit", "commit-msg", "post-checkout", "reference-transaction"] {
        let hook = repository.path().join(".git/hooks").join(name);
        shell_program(&hook, "exit 1")?;
    }
    ensure!(repository.git(&["commit", "--allow-empty", "-m", "x"]).is_err(), "they refuse");
    let mut editor = Editor::open(&sandbox, repository.path())?;
    let job = editor.delegate(&brief(&json!([write("a.txt", "a\n"), write("b.txt", "b\n")])), &json!({}))?;
    let status = editor.until(&job, "finished")?;
    assert_eq!((&status["outcome"], &status["changes"]["files"]), (&json!("succeeded"), &json!(2)), "{status:#}");
    editor.run("export", &json!({"jobId": job, "as": "branch", "name": "result"}))?;
    assert_eq!(repository.git(&["ls-tree", "--name-only", "result", "a.txt", "b.txt"])?, "a.txt\nb.txt");
    editor.apply(&job)?;
    assert_eq!(repository.read("a.txt")?, "a\n");
    Ok(())
}

#[test]
fn what_the_person_does_meanwhile_is_no_part_of_the_result() -> Result<()> {
    let sandbox = scripted_sandbox()?;
    let repository = sandbox.filled("one")?;
    let mut editor = Editor::open(&sandbox, repository.path())?;
    let go = sandbox.root().join("go");
    let wait = json!({"waitFor": [go.display().to_string(), 600.0]});
    let job = editor.delegate(&brief(&json!([write("a.txt", "a\n"), wait, write("b.txt", "b\n")])), &json!({}))?;
    editor.event(&job, "filesTouched")?;
    repository.write("README.md", "mine\n")?;
    for number in 0..200 {
        repository.write(&format!("results/{number}.bin"), [0; 4096])?;
    }
    repository.write("committed.txt", "mine\n")?;
    repository.git(&["add", "committed.txt"])?;
    repository.git(&["commit", "-qm", "Mine"])?;
    std::fs::write(&go, "")?;
    let status = editor.until(&job, "finished")?;
    assert_eq!(status["changes"]["files"], 2, "{status:#}");
    let preview = editor.run("diffPreview", &json!({"jobId": job}))?;
    let paths: Vec<_> = preview["files"].as_array().into_iter().flatten().map(|file| file["path"].clone()).collect();
    assert_eq!(paths, ["a.txt", "b.txt"]);
    editor.apply(&job)?;
    assert_eq!((repository.read("README.md")?, repository.read("b.txt")?), ("mine\n".into(), "b\n".into()));
    Ok(())
}

#[test]
fn a_crash_leaves_branch_index_and_files_as_they_were() -> Result<()> {
    let sandbox = scripted_sandbox()?;
    let repository = sandbox.filled("one")?;
    repository.make_dirty()?;
    let before = repository.snapshot()?;
    let mut editor = Editor::open(&sandbox, repository.path())?;
    let steps =
        json!([write("a.txt", "a\n"), {"run": "git checkout -q -b theirs; git add -A"}, {"say": "here"}, "hang"]);
    let job = editor.delegate(&brief(&steps), &json!({}))?;
    editor.event(&job, "message")?;
    let host = editor.host(&job)?;
    editor.client().signal(Signal::KILL)?;
    kill_process(host, Signal::KILL)?;
    ensure!(rendezvous::ends(host, JOB)?);
    let keep = format!(".git/refs/pactify/keep/{job}");
    let changed = repository.snapshot()?.changed_since(&before);
    assert_eq!(changed, [keep.as_str()], "nothing but what keeps the base from gc");
    let mut editor = Editor::open(&sandbox, repository.path())?;
    assert_eq!(editor.until(&job, "finished")?["error"]["code"], "hostLost");
    let changed = repository.snapshot()?.changed_since(&before);
    assert_eq!(changed, [keep.as_str()], "nor by the repair");
    Ok(())
}
