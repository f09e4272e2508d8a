//! Callers that mean no good, or mean something else than they say: every argument is refused by name or taken for
//! exactly what it says. What a job leaves behind is the subject of the module above.

use anyhow::{Context as _, Result};
use pactify_tests::agent::{brief, write};
use pactify_tests::editor::{Editor, scripted_sandbox, uri};
use serde_json::{Value, json};

use super::deceives;

/// Commands with arguments that are refused. `places` are a pipe, a folder, and the store.
fn refusals(job: &str, deep: &Value, [pipe, folder, store]: &[String; 3]) -> Vec<(&'static str, Value)> {
    vec![
        ("status", json!({"jobId": "../x"})),
        ("status", json!({"jobId": "20261129-154512-aaaaaa"})),
        ("status", json!({"jobId": 7})),
        ("status", json!({"cursor": "../../x"})),
        ("status", json!({"cursor": "\u{1b}[2J"})),
        ("status", json!({"limit": -1})),
        ("status", json!({"limit": 4_294_967_296_u64})),
        ("status", json!({"repository": "file:///etc/%00"})),
        ("status", json!({"repository": "http://example.org/"})),
        ("status", json!({"repository": "file:///nowhere/\u{1b}[2J%1b"})),
        ("events", json!({"jobId": "\u{1b}]0;x\u{7}"})),
        ("events", json!({"jobId": job, "after": -1})),
        ("diffPreview", json!({"jobId": job, "path": "../../etc/passwd"})),
        ("diffPreview", json!({"jobId": job, "path": "/etc/passwd"})),
        ("diffPreview", json!({"jobId": job, "path": "a\u{0}b"})),
        ("diffPreview", json!({"jobId": job, "path": ":(glob)**"})),
        ("diffPreview", json!({"jobId": job, "pathBytes": "%zz"})),
        ("diffPreview", json!({"jobId": job, "pathBytes": "..%2f..%2fetc"})),
        ("diffPreview", json!({"jobId": job, "cursor": "99999999999999999999999"})),
        ("content", json!({"jobId": job, "side": "result", "path": "/dev/zero"})),
        ("content", json!({"jobId": job, "side": "elsewhere", "path": "a.txt"})),
        ("apply", json!({"jobId": job, "changeSet": "\u{1b}[2J"})),
        ("apply", json!({"jobId": job, "changeSet": deep})),
        ("apply", json!({"jobId": "..", "changeSet": "x"})),
        ("export", json!({"jobId": job, "as": "branch", "name": "../../x"})),
        ("export", json!({"jobId": job, "as": "branch", "name": "--upload-pack=x"})),
        ("export", json!({"jobId": job, "as": "branch", "name": "@{-1}"})),
        ("export", json!({"jobId": job, "as": "branch", "name": "main"})),
        ("resume", json!({"jobId": job, "message": "x".repeat(300_000)})),
        ("resume", json!({"jobId": job, "message": "\u{0}"})),
        ("delegate", json!({"brief": {"uri": pipe}})),
        ("delegate", json!({"brief": {"uri": "file:///dev/zero"}})),
        ("delegate", json!({"brief": {"uri": "file:///proc/self/mem"}})),
        ("delegate", json!({"brief": {"uri": folder}})),
        ("delegate", json!({"brief": {"uri": "file://%2e%2e/x"}})),
        ("delegate", json!({"brief": "x".repeat(300_000)})),
        ("delegate", json!({"brief": " \n"})),
        ("delegate", json!({"brief": "x", "harness": "../codex"})),
        ("delegate", json!({"brief": "x", "repository": store})),
        ("delegate", json!({"brief": "x", "timeoutSeconds": 0})),
        ("delegate", json!({"brief": "x", "timeoutSeconds": -5})),
        ("doctor", json!({"harness": "\u{1b}[2J"})),
    ]
}

#[test]
fn arguments_that_no_honest_client_sends_are_refused_by_name() -> Result<()> {
    let sandbox = scripted_sandbox()?;
    let repository = sandbox.filled("one")?;
    let pipe = sandbox.root().join("pipe");
    rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, rustix::fs::Mode::RWXU, 0)?;
    let mut editor = Editor::open(&sandbox, repository.path())?;
    let job = editor.delegate(&brief(&json!([write("a.txt", "a\n")])), &json!({}))?;
    editor.until(&job, "finished")?;

    let deep = (0..120).fold(json!(1), |inner, _| json!([inner]));
    let places = [pipe.as_path(), repository.path(), &sandbox.pactify_home()].map(uri);
    let refusals = refusals(&job, &deep, &places);
    for (verb, argument) in &refusals {
        let shown = argument.to_string();
        let shown = &shown[..shown.len().min(120)];
        let refused = editor.refused(verb, argument).with_context(|| format!("{verb} {shown}"))?;
        assert_ne!(refused.reason(), "internal", "{verb} {shown}: {refused:?}");
        assert!(!refused.message.chars().any(deceives), "{verb} {shown}: {refused:?}");
        assert!(refused.message.contains(": "), "a next step is told: {verb} {shown}: {refused:?}");
    }
    assert_eq!(repository.git(&["branch", "--format=%(refname:short)"])?, "main");

    // What only the harness can judge ends the job, before it runs.
    let model = json!({"model": "--dangerously-bypass-approvals-and-sandbox"});
    let flag = editor.delegate(&brief(&json!([write("a.txt", "a\n")])), &model)?;
    let status = editor.until(&flag, "finished")?;
    assert_eq!(
        (&status["outcome"], &status["error"]["code"]),
        (&json!("failed"), &json!("invalidParams")),
        "{status:#}"
    );

    let accepted = [
        ("status", json!({"limit": 0})),
        ("status", json!({"limit": u32::MAX})),
        ("status", json!({"deep": deep, "x": "\u{1b}"})),
        ("events", json!({"jobId": job, "after": u64::MAX, "limit": 0})),
        ("diffPreview", json!({"jobId": job, "cursor": "4000000000", "limit": u32::MAX})),
    ];
    for (verb, argument) in &accepted {
        editor.run(verb, argument).with_context(|| format!("{verb} {argument}"))?;
    }
    Ok(())
}

#[test]
fn a_selection_means_the_paths_it_names_and_no_others() -> Result<()> {
    let sandbox = scripted_sandbox()?;
    let repository = sandbox.filled("one")?;
    let mut editor = Editor::open(&sandbox, repository.path())?;
    let list = json!([write(".vscode/tasks.json", "{}"), {"symlink": ["link", "/etc/passwd"]}, write("caf\u{e9}/a", "a"),
        write("b.txt", "b"), write("Makefile", "all:")]);
    let job = editor.delegate(&brief(&list), &json!({}))?;
    editor.until(&job, "finished")?;
    let preview = editor.run("diffPreview", &json!({"jobId": job}))?;
    let apply = |more: Value| {
        let mut argument = json!({"jobId": job, "changeSet": preview["changeSet"]});
        argument
            .as_object_mut()
            .into_iter()
            .for_each(|fields| fields.extend(more.as_object().cloned().unwrap_or_default()));
        argument
    };
    let named = |paths: &[&str]| paths.iter().map(|path| json!({"path": path})).collect::<Vec<Value>>();
    let before = repository.snapshot()?;
    for argument in [
        json!({}),
        json!({"confirmSensitive": named(&[".VSCODE/tasks.json", "link"])}),
        json!({"confirmSensitive": named(&[".vscode/./tasks.json", "link"])}),
        json!({"confirmSensitive": named(&[".vscode", "link"])}),
        json!({"confirmSensitive": named(&[".vscode/tasks.json"])}),
        json!({"confirmSensitive": named(&[".vscode/tasks.json", "link", "not-there"])}),
        json!({"select": named(&["cafe\u{301}/a"])}),
        json!({"select": named(&["b.txt", "not-there"])}),
        json!({"select": []}),
    ] {
        let refused = editor.refused("apply", &apply(argument.clone())).with_context(|| argument.to_string())?;
        assert!(matches!(refused.reason(), "applyConflict" | "invalidParams"), "{argument}: {refused:?}");
    }
    assert_eq!(before.changed_since(&repository.snapshot()?), Vec::<String>::new());

    let applied = editor.run("apply", &apply(json!({"select": named(&["b.txt", "b.txt"])})))?;
    assert_eq!(applied["applied"], json!([{"path": "b.txt"}]));
    assert_eq!(applied["disposition"], "partlyApplied");
    let again = editor.run("apply", &apply(json!({"select": named(&["b.txt"])})))?;
    assert_eq!((&again["applied"], &again["already"]), (&json!([]), &json!([{"path": "b.txt"}])), "{again:#}");
    assert_eq!(repository.read("b.txt")?, "b");
    Ok(())
}

#[test]
fn a_result_does_not_go_into_another_repository_or_into_none() -> Result<()> {
    let sandbox = scripted_sandbox()?;
    let repository = sandbox.filled("one")?;
    let mut editor = Editor::open(&sandbox, repository.path())?;
    let job = editor.delegate(&brief(&json!([write("a.txt", "a\n")])), &json!({}))?;
    editor.until(&job, "finished")?;
    let preview = editor.run("diffPreview", &json!({"jobId": job}))?;
    let apply = json!({"jobId": job, "changeSet": preview["changeSet"]});

    editor.left_alone(&job)?;
    let moved = sandbox.root().join("moved");
    std::fs::rename(repository.path(), &moved)?;
    let refused = editor.refused("apply", &apply)?;
    assert_ne!(refused.reason(), "internal", "{refused:?}");
    assert!(refused.message.contains("one"), "it names the repository: {refused:?}");

    let other = sandbox.repository("one")?;
    other.write("other.txt", "another repository\n")?;
    other.commit("another")?;
    let before = other.snapshot()?;
    let refused = editor.refused("apply", &apply)?;
    assert_ne!(refused.reason(), "internal", "{refused:?}");
    assert_eq!(before.changed_since(&other.snapshot()?), Vec::<String>::new());

    editor.run("discard", &json!({"jobId": job}))?;
    assert_eq!(before.changed_since(&other.snapshot()?), Vec::<String>::new());
    Ok(())
}
