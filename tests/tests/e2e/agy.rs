//! agy's twin, delegated to through an editor: what a job does, and what keeps a read-only one from writing.

use std::time::Duration;

use anyhow::{Context as _, Result};
use pactify_tests::agy;
use pactify_tests::editor::{Editor, configure};
use pactify_tests::outside;
use pactify_tests::running::Running;
use pactify_tests::sandbox::Sandbox;
use serde_json::{Value, json};

const PATIENCE: Duration = Duration::from_secs(60);

/// A sandbox with agy of this version, and a person who is logged in.
pub(crate) fn sandbox(version: &str) -> Result<Sandbox> {
    let sandbox = Sandbox::new()?;
    let agy = agy::install(&outside::program("scripted-agy")?, &sandbox.root().join("agy"), version)?;
    let agy = agy.display().to_string();
    configure(&sandbox, &format!("[defaults]\nharness = \"agy\"\n[harnesses.agy]\nexecutable = {agy:?}\n"))?;
    let login = sandbox.home().join(".gemini/antigravity-cli");
    std::fs::create_dir_all(&login)?;
    std::fs::write(login.join("antigravity-oauth-token"), "{\"refresh_token\":\"r-0\"}")?;
    Ok(sandbox)
}

fn finished(editor: &mut Editor, steps: &[Value], more: &Value) -> Result<(String, Value)> {
    let job = editor.delegate(&agy::brief(steps), more)?;
    let status = editor.until(&job, "finished")?;
    Ok((job, status))
}

#[test]
fn a_job_is_done_in_a_private_home_with_the_person_s_login_and_resumed() -> Result<()> {
    let sandbox = sandbox(agy::VERSION)?;
    let repository = sandbox.filled("one")?;
    let mut editor = Editor::open(&sandbox, repository.path())?;
    let steps =
        [json!({"write": ["hello.txt", "hello\n"]}), json!({"run": "echo shell > shell.txt"}), json!({"say": "Done."})];
    let (job, status) = finished(&mut editor, &steps, &json!({}))?;
    assert_eq!((&status["outcome"], &status["finalMessage"]), (&json!("succeeded"), &json!("Done.")), "{status:#}");
    assert_eq!((&status["harnessVersion"], &status["changes"]["files"]), (&json!(agy::VERSION), &json!(2)));
    let state = sandbox.job(&job).join("home").join("gemini/antigravity-cli");
    let login = sandbox.home().join(".gemini/antigravity-cli/antigravity-oauth-token");
    assert_eq!(std::fs::read_link(state.join("antigravity-oauth-token"))?, login);
    assert_eq!(std::fs::read_dir(state.join("conversations"))?.count(), 1);
    assert!(!sandbox.home().join(".gemini/antigravity-cli/conversations").exists(), "the person's list has none of it");

    let more = agy::brief(&[json!({"write": ["more.txt", "more\n"]}), json!({"say": "More."})]);
    editor.run("resume", &json!({"jobId": job, "message": more}))?;
    let again = editor.until(&job, "finished")?;
    assert_eq!((&again["finalMessage"], &again["session"]), (&json!("More."), &status["session"]), "{again:#}");
    assert_eq!(again["changes"]["files"], 3);

    std::fs::remove_dir_all(state.join("conversations"))?;
    editor.run("resume", &json!({"jobId": job, "message": more}))?;
    let lost = editor.until(&job, "finished")?;
    assert_eq!((&lost["outcome"], &lost["error"]["code"]), (&json!("failed"), &json!("wrongState")), "{lost:#}");
    Ok(())
}

#[test]
fn a_read_only_job_reads_and_its_hook_is_seen_to_have_run() -> Result<()> {
    let sandbox = sandbox(agy::VERSION)?;
    let repository = sandbox.filled("one")?;
    let mut editor = Editor::open(&sandbox, repository.path())?;
    let read_only = json!({"access": "readOnly"});
    let answer = json!({"say": "The answer."});
    for (steps, outcome, code) in [
        (vec![json!({"view": "README.md"}), json!({"run": "git status"}), answer.clone()], "succeeded", Value::Null),
        // Refused, and told to people; an answer is an answer.
        (vec![json!({"write": ["x", "x"]}), json!({"run": "echo x > y"}), answer.clone()], "succeeded", Value::Null),
        (vec![json!({"write": ["x", "x"]})], "failed", json!("harnessFailed")),
        // What plan mode does not gate: without the notes of the hook it would be a success.
        (vec![json!({"runUnasked": "true"}), answer.clone()], "failed", json!("harnessIncompatible")),
        (
            vec![json!("forgetHooks"), json!({"view": "README.md"}), answer.clone()],
            "failed",
            json!("harnessIncompatible"),
        ),
        (
            vec![json!({"runUnasked": "echo x > written"}), answer.clone()],
            "readOnlyViolated",
            json!("readOnlyViolated"),
        ),
    ] {
        let (_, status) = finished(&mut editor, &steps, &read_only)?;
        assert_eq!((&status["outcome"], &status["error"]["code"]), (&json!(outcome), &code), "{steps:?} {status:#}");
    }
    // The same step is no failure where it may be done.
    let (_, status) = finished(&mut editor, &[json!({"runUnasked": "echo x > written"}), answer], &json!({}))?;
    assert_eq!(status["outcome"], "succeeded");
    Ok(())
}

#[test]
fn the_hook_lets_nothing_pass_but_what_reads() -> Result<()> {
    let sandbox = sandbox(agy::VERSION)?;
    let repository = sandbox.filled("one")?;
    let mut editor = Editor::open(&sandbox, repository.path())?;
    let (job, _) = finished(&mut editor, &[json!({"say": "Hello."})], &json!({"access": "readOnly"}))?;
    let hook = sandbox.job(&job).join("home").join("guard/hook.sh");
    let decide = |event: &str, call: &str| -> Result<String> {
        let mut command = sandbox.command("/bin/sh");
        command.arg(&hook).arg(event);
        let ended = Running::start(command, call.as_bytes())?.wait(PATIENCE)?.success()?;
        let said: Value = serde_json::from_str(ended.stdout.trim()).context(call.to_owned())?;
        Ok(said["decision"].as_str().unwrap_or_default().to_owned())
    };
    let call = |name: &str, args: Value| json!({"toolCall": {"name": name, "args": args}, "stepIdx": 1}).to_string();
    let run = |line: &str| call("run_command", json!({"CommandLine": line, "Cwd": "/"}));
    for (told, expected) in [
        (call("view_file", json!({"AbsolutePath": "/a \"name\": \"x\""})), "allow"),
        (call("grep_search", json!({"Query": "run_command"})), "allow"),
        (run("git status"), "allow"),
        (run("git  status"), "deny"),
        (run("git status; touch x"), "deny"),
        (run("git status\ntouch x"), "deny"),
        (run("touch x"), "deny"),
        (run("*"), "deny"),
        (run(""), "deny"),
        (call("run_command", json!({})), "deny"),
        (call("run_command", json!({"CommandLine": "touch x", "Other": {"CommandLine": "ls"}})), "deny"),
        (call("write_to_file", json!({"TargetFile": "x", "name": "view_file"})), "deny"),
        (call("view_file", json!({"name": "write_to_file"})), "deny"),
        (call("", json!({})), "deny"),
        (call("view_file ", json!({})), "deny"),
        (call("mcp__server__write", json!({})), "deny"),
        ("{}".to_owned(), "deny"),
        (String::new(), "deny"),
        ("{\n  \"toolCall\": {\n    \"name\": \"write_to_file\"\n  }\n}".to_owned(), "deny"),
        ("{\n  \"toolCall\" : {\n    \"name\" : \"view_file\"\n  }\n}".to_owned(), "allow"),
    ] {
        assert_eq!(decide("tool", &told)?, expected, "{told}");
    }
    assert_eq!(decide("invocation", "{}")?, "allow");
    Ok(())
}

#[test]
fn nothing_that_agy_calls_a_success_is_one_without_a_result() -> Result<()> {
    let sandbox = sandbox(agy::VERSION)?;
    let repository = sandbox.filled("one")?;
    let mut editor = Editor::open(&sandbox, repository.path())?;
    let write = json!({"write": ["a.txt", "a\n"]});
    let say = json!({"say": "Done."});
    for (steps, outcome) in [
        (vec![write.clone(), say.clone(), json!({"exitLater": 1})], "failed"),
        (vec![write.clone(), say.clone(), json!({"result": {"status": "ERROR", "error": "rejected"}})], "failed"),
        (
            vec![write.clone(), say.clone(), json!({"stderr": "print timeout after 5m, returning partial output"})],
            "failed",
        ),
        (vec![write.clone(), say.clone(), json!({"stderr": "terminating 1 background task(s) on exit"})], "failed"),
        (vec![write.clone()], "noResult"),
        (vec![write.clone(), say.clone(), json!({"exit": 0})], "noResult"),
        (vec![say], "noChanges"),
    ] {
        let (_, status) = finished(&mut editor, &steps, &json!({}))?;
        assert_eq!(status["outcome"], outcome, "{steps:?} {status:#}");
    }
    Ok(())
}

#[test]
fn an_old_agy_is_not_started() -> Result<()> {
    let sandbox = sandbox("1.1.14")?;
    let repository = sandbox.filled("one")?;
    let mut editor = Editor::open(&sandbox, repository.path())?;
    let (_, status) = finished(&mut editor, &[json!({"write": ["a", "a"]})], &json!({}))?;
    assert_eq!((&status["outcome"], &status["error"]["code"]), (&json!("failed"), &json!("harnessIncompatible")));
    assert!(status["error"]["message"].as_str().is_some_and(|text| text.contains("1.1.14")), "{status:#}");
    Ok(())
}
