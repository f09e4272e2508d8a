//! Programs of the person's own. Here it is the shell, and the brief is what it does: with it on standard input, or as
//! an argument.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, Result};
use pactify_tests::editor::{Editor, configure, pid};
use pactify_tests::rendezvous;
use pactify_tests::sandbox::{Sandbox, shell_program};
use serde_json::{Value, json};

const GONE: Duration = Duration::from_secs(60);
/// Looks like nothing: only knowing it helps.
const SECRET: &str = "zuckerwatte-11d7";

/// `[harnesses.mine]` with these keys beside its command.
fn describe(sandbox: &Sandbox, keys: &str) -> Result<()> {
    configure(sandbox, &format!("[defaults]\nharness = \"mine\"\n[harnesses.mine]\ncommand = \"sh\"\n{keys}\n"))
}

fn finished(editor: &mut Editor, brief: &str, more: &Value) -> Result<Value> {
    let job = editor.delegate(brief, more)?;
    editor.until(&job, "finished")
}

#[test]
fn a_retry_with_another_harness_is_a_job_of_that_one() -> Result<()> {
    let sandbox = Sandbox::new()?;
    let say = |word: &str| format!("command = \"sh\"\nargs = [\"-c\", \"echo {word}; echo {word} > {word}.txt\"]\n");
    let keys = format!("[harnesses.one]\n{}[harnesses.two]\n{}", say("one"), say("two"));
    configure(&sandbox, &format!("[defaults]\nharness = \"one\"\n{keys}"))?;
    let repository = sandbox.filled("one")?;
    let mut editor = Editor::open(&sandbox, repository.path())?;
    let first = editor.delegate("Say it.", &json!({}))?;
    editor.until(&first, "finished")?;

    let unknown = editor.refused("retry", &json!({"jobId": first, "harness": "nobody"}))?;
    assert!(unknown.message.contains("nobody"), "{unknown:?}");
    for (params, harness) in [(json!({"jobId": first}), "one"), (json!({"jobId": first, "harness": "two"}), "two")] {
        let delegated = editor.run("retry", &params)?;
        let job = delegated["jobId"].as_str().context("no job")?.to_owned();
        let status = editor.until(&job, "finished")?;
        assert_eq!((&status["harness"], &status["brief"]), (&json!(harness), &json!("Say it.")), "{status:#}");
        assert_eq!(status["finalMessage"], harness);
    }
    Ok(())
}

#[test]
fn a_program_of_ones_own_is_listed_delegated_to_and_its_result_applied() -> Result<()> {
    let mut sandbox = Sandbox::new()?;
    sandbox.set("LANG", "de_DE.UTF-8");
    sandbox.set("LC_ALL", "");
    let keys = format!(
        "args = [\"-s\", \"{{lang}}\", \"{{root}}\"]\nenv = {{ MY_AGENT_TOKEN = \"{SECRET}\", NAMED = \"yes\" }}"
    );
    describe(&sandbox, &keys)?;
    let repository = sandbox.filled("one")?;
    let before = repository.snapshot()?;
    let mut editor = Editor::open(&sandbox, repository.path())?;

    let listed = editor.run("harnesses", &json!({}))?;
    let mine = listed["harnesses"].as_array().and_then(|all| all.last()).context("no harness")?;
    assert_eq!((&mine["name"], &mine["default"], &mine["access"]), (&json!("mine"), &json!(true), &json!(["write"])));
    let shell = Path::new(mine["executable"].as_str().context("not found")?);
    assert!(shell.is_absolute() && shell.canonicalize()? == shell, "the real path: {mine}");
    let doctor = editor.run("doctor", &json!({"harness": "mine"}))?;
    let found = doctor["findings"].as_array().into_iter().flatten().find(|finding| finding["id"] == "harness.mine");
    assert_eq!(found.context("no finding")?["severity"], "ok");
    let unknown = editor.refused("delegate", &json!({"brief": "x", "harness": "nobody"}))?.data.context("no data")?;
    assert!(
        unknown["next"].as_str().is_some_and(|next| next.contains("codex, ") && next.contains(", mine;")),
        "{unknown}"
    );

    let brief = "echo \"$1 $NAMED $MY_AGENT_TOKEN\"; test \"$2\" = \"$PWD\" && echo hello > hello.txt; echo Done.";
    let job = editor.delegate(brief, &json!({}))?;
    let status = editor.until(&job, "finished")?;
    let said = status["finalMessage"].as_str().unwrap_or_default();
    assert_eq!((&status["outcome"], said), (&json!("succeeded"), "de yes [redacted]\nDone."), "{status:#}");
    let folder = sandbox.job(&job);
    for file in ["events.jsonl", "wire.log", "host.log"] {
        assert!(!std::fs::read_to_string(folder.join(file))?.contains(SECRET), "{file}");
    }
    assert_eq!(before.changed_since(&repository.snapshot()?), [format!(".git/refs/pactify/keep/{job}")]);
    editor.apply(&job)?;
    assert_eq!(repository.read("hello.txt")?, "hello\n");
    Ok(())
}

#[test]
fn nothing_that_it_says_makes_a_success_of_a_failure() -> Result<()> {
    let sandbox = Sandbox::new()?;
    describe(&sandbox, "args = [\"-c\", \"{prompt}\"]\nread-only-args = [\"-c\", \"{prompt}\"]")?;
    let repository = sandbox.filled("one")?;
    let mut editor = Editor::open(&sandbox, repository.path())?;
    for (brief, access, outcome, error) in [
        ("echo Done.", "write", "noChanges", ""),
        ("echo Done. > done; echo Done.; echo 'no quota' >&2; exit 3", "write", "failed", "exit code 3: no quota"),
        ("echo Done.; kill -9 $$", "write", "failed", "ended by signal 9"),
        ("echo The answer.", "readOnly", "succeeded", ""),
        ("true", "readOnly", "noResult", ""),
        ("echo The answer.; echo x > written", "readOnly", "readOnlyViolated", ""),
    ] {
        let status = finished(&mut editor, brief, &json!({"access": access}))?;
        assert_eq!(status["outcome"], outcome, "{brief}: {status:#}");
        let message = status["error"]["message"].as_str().unwrap_or_default();
        assert!(message.contains(error), "{brief}: {message}");
    }
    Ok(())
}

#[test]
fn without_arguments_for_it_there_is_no_read_only_mode() -> Result<()> {
    let sandbox = Sandbox::new()?;
    describe(&sandbox, "")?;
    let repository = sandbox.filled("one")?;
    let mut editor = Editor::open(&sandbox, repository.path())?;
    let refused =
        editor.refused("delegate", &json!({"brief": "true", "access": "readOnly"}))?.data.context("no data")?;
    assert_eq!(refused["code"], "invalidParams");
    assert!(refused["next"].as_str().is_some_and(|next| next.contains("read-only-args")), "{refused}");
    let long = format!("echo {}", "x".repeat(140_000));
    assert_eq!(finished(&mut editor, &long, &json!({}))?["outcome"], "noChanges", "standard input takes it");
    describe(&sandbox, "args = [\"-c\", \"{prompt}\"]")?;
    let status = finished(&mut editor, &long, &json!({}))?;
    assert!(status["error"]["message"].as_str().is_some_and(|text| text.contains("Linux takes 131071")), "{status:#}");
    Ok(())
}

#[test]
fn a_session_goes_on_as_the_job_s_own_settings_say_whatever_the_configuration_says_by_then() -> Result<()> {
    let sandbox = Sandbox::new()?;
    describe(&sandbox, "args = [\"-s\"]\nresume-args = [\"{session}\"]\noutput = \"jsonl\"")?;
    let repository = sandbox.filled("one")?;
    let mut editor = Editor::open(&sandbox, repository.path())?;
    let brief =
        r#"echo one > one; echo '{"type":"init","session_id":"s-1"}'; echo '{"role":"assistant","content":"One."}'"#;
    let job = editor.delegate(brief, &json!({}))?;
    let status = editor.until(&job, "finished")?;
    assert_eq!((&status["outcome"], &status["session"]), (&json!("succeeded"), &json!("s-1")), "{status:#}");

    configure(&sandbox, "")?;
    let message = r#"cat one > two; echo "{\"role\":\"assistant\",\"content\":\"Went on with $1.\"}""#;
    editor.run("resume", &json!({"jobId": job, "message": message}))?;
    let status = editor.until(&job, "finished")?;
    assert_eq!(status["finalMessage"], "Went on with s-1.", "{status:#}");
    assert_eq!(status["changes"]["files"], 2);
    let refused = editor.refused("retry", &json!({"jobId": job}))?.data.context("no data")?;
    assert_eq!(refused["code"], "harnessNotFound", "a retry is a new job, under the configuration of now");
    Ok(())
}

#[test]
fn what_only_the_login_shell_knows_of_is_found_and_works_where_it_was_found() -> Result<()> {
    let mut sandbox = Sandbox::new()?;
    let tools = sandbox.root().join("tools");
    shell_program(&tools.join("my-agent"), "exec my-tool")?;
    shell_program(&tools.join("my-tool"), "echo made > made; echo Done.")?;
    let shell = tools.join("shell");
    shell_program(&shell, &format!("PATH={}:$PATH; export PATH; eval \"$3\"", tools.display()))?;
    sandbox.set("SHELL", shell);
    configure(&sandbox, "[harnesses.mine]\ncommand = \"my-agent\"\n")?;
    let repository = sandbox.filled("one")?;
    shell_program(&repository.path().join("my-agent"), "echo stolen > stolen")?;
    let mut editor = Editor::open(&sandbox, repository.path())?;
    let status = finished(&mut editor, "Make it.", &json!({"harness": "mine"}))?;
    assert_eq!((&status["outcome"], &status["finalMessage"]), (&json!("succeeded"), &json!("Done.")), "{status:#}");
    Ok(())
}

#[test]
fn a_cancel_during_a_command_leaves_no_process() -> Result<()> {
    let sandbox = Sandbox::new()?;
    describe(&sandbox, "")?;
    let repository = sandbox.filled("one")?;
    let mut editor = Editor::open(&sandbox, repository.path())?;
    let job = editor.delegate("setsid sh -c 'echo $$; exec sleep 600'", &json!({}))?;
    let told = editor.event(&job, "message")?;
    let sleeper = pid(&json!(told["text"].as_str().unwrap_or_default().trim().parse::<i64>()?))?;
    editor.run("cancel", &json!({"jobId": job}))?;
    assert_eq!(editor.until(&job, "finished")?["outcome"], "cancelled");
    assert!(rendezvous::ends(sleeper, GONE)?, "the sleeper lives on");
    Ok(())
}
