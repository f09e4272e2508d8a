//! What a job starts from, end to end: a dirty checkout, an unsaved text, and what must not be touched meanwhile.

use anyhow::{Context as _, Result};
use pactify_tests::agent::brief;
use pactify_tests::editor::{Editor, scripted_sandbox, uri};
use serde_json::{Value, json};

fn notices(status: &Value) -> Vec<&str> {
    status["notices"].as_array().into_iter().flatten().filter_map(Value::as_str).collect()
}

#[test]
fn a_job_works_on_what_the_person_sees_and_its_result_goes_onto_that() -> Result<()> {
    let sandbox = scripted_sandbox()?;
    let repository = sandbox.filled("one")?;
    repository.make_dirty()?;
    let mut editor = Editor::open(&sandbox, repository.path())?;
    let mut other = Editor::open(&sandbox, repository.path())?;
    let readme = uri(&repository.path().join("README.md"));
    let open = |editor: &mut Editor, uri: &str, text: &str, unsaved: &str| -> Result<()> {
        let item = json!({"uri": uri, "languageId": "x", "version": 1, "text": text});
        editor.client().notify("textDocument/didOpen", json!({"textDocument": item}))?;
        let document = json!({"uri": uri, "version": 2});
        let change = json!({"textDocument": document, "contentChanges": [{"text": unsaved}]});
        editor.client().notify("textDocument/didChange", change)
    };
    open(&mut editor, &readme, &repository.read("README.md")?, "# Sample\n\nNot saved yet.\n")?;
    let run = uri(&repository.path().join("run.sh"));
    open(&mut other, &run, &repository.read("run.sh")?, "#!/bin/sh\n# in another editor\n")?;
    // An apply waits until everybody can see what is unsaved.
    other.refused("apply", &json!({"jobId": "20260101-000000-aaaaaa", "changeSet": "x"}))?;

    let before = repository.snapshot()?;
    let steps = json!([
        {"run": "cat README.md both.txt untracked.txt >seen.txt; ls data >>seen.txt 2>/dev/null; cat run.sh >>seen.txt"},
        {"write": {"path": "both.txt", "content": "staged, then changed\nand by the job\n"}},
        {"say": "done"},
    ]);
    let delegated = editor.run("delegate", &json!({"brief": brief(&steps), "base": "buffers"}))?;
    let job = delegated["jobId"].as_str().context("no job")?.to_owned();
    let status = editor.until(&job, "finished")?;
    assert_eq!(status["outcome"], "succeeded", "{status:#}");
    let mut changed = before.changed_since(&repository.snapshot()?);
    changed.retain(|path| !path.starts_with(".git/refs/pactify/keep/"));
    assert_eq!(changed, Vec::<String>::new());
    let told = notices(&status);
    assert!(told.iter().any(|notice| notice.contains("with the unsaved text of 1 file")), "{told:?}");
    assert!(told.iter().any(|notice| notice.contains("other editors") && notice.ends_with(": run.sh")), "{told:?}");
    assert_eq!(json!(told), delegated["notices"], "told at once, and kept");

    let preview = editor.run("diffPreview", &json!({"jobId": job}))?;
    let paths: Vec<&str> =
        preview["files"].as_array().into_iter().flatten().filter_map(|f| f["path"].as_str()).collect();
    assert_eq!(paths, ["both.txt", "seen.txt"], "measured against what it began with");
    editor.apply(&job)?;
    let seen = repository.read("seen.txt")?;
    assert!(seen.starts_with("# Sample\n\nNot saved yet.\nstaged, then changed\nmine\n"), "{seen}");
    assert!(!seen.contains("logo.bin") && !seen.contains("in another editor"), "{seen}");
    assert_eq!(repository.read("both.txt")?, "staged, then changed\nand by the job\n");
    assert_eq!(
        repository.read("README.md")?,
        "# Sample\n\nA small program, edited.\n",
        "nothing is saved for the person"
    );

    repository.write("untracked.txt", "newer\n")?;
    let again = editor.run("retry", &json!({"jobId": job}))?["jobId"].as_str().context("no job")?.to_owned();
    editor.until(&again, "finished")?;
    let content = editor.run("content", &json!({"jobId": again, "side": "result", "path": "seen.txt"}))?;
    assert!(content["text"].as_str().unwrap_or_default().contains("newer"), "a retry looks again: {content}");
    Ok(())
}

#[test]
fn a_terminal_starts_from_the_checkout_and_says_why_not_from_buffers() -> Result<()> {
    let sandbox = scripted_sandbox()?;
    let repository = sandbox.filled("one")?;
    repository.make_dirty()?;
    let brief = brief(&json!([{"run": "cat untracked.txt >copy.txt"}, {"say": "done"}]));
    let run = |arguments: &[&str]| repository.sub(&[&["run"], arguments].concat(), &brief);
    let ended = run(&["--base", "buffers"])?;
    assert!(ended.stderr.contains("workingTree"), "{}", ended.stderr);
    let ended = run(&["--base", "workingTree", "--linked"])?;
    assert!(ended.stderr.contains("private"), "{}", ended.stderr);
    let ended = run(&["--base", "nonsense"])?;
    assert!(ended.stderr.contains("head, working-tree"), "{}", ended.stderr);
    let ended = run(&["--base", "working-tree"])?;
    assert!(ended.stderr.contains("the job starts from your uncommitted changes"), "{}", ended.stderr);
    assert_eq!(ended.stderr.matches("the job starts from").count(), 1, "told once: {}", ended.stderr);
    Ok(())
}
