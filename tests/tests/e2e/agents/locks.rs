//! What keeps a read-only job of kimi from writing, one lock at a time: the list of tools is taken away behind
//! pactify's back, so that the real kimi offers all of them. Its hook has to refuse them, and its own record to give it
//! away.

use anyhow::{Context as _, Result};
use pactify_tests::editor::{Editor, JOB};
use pactify_tests::running::Running;
use serde_json::json;

use super::{Agent, Stage, finished};

/// What kimi 2.1 tells a hook before a tool is used.
const ASKED: &str = r#"{"hook_event_name":"PreToolUse","session_id":"session_0","cwd":"/tree","tool_name":"Bash","tool_input":{"command":"echo x > x.txt"},"tool_call_id":"call_0"}"#;

#[test]
fn without_the_list_of_tools_the_hook_refuses_them_and_the_record_gives_it_away() -> Result<()> {
    let agent = Agent::Kimi;
    let steps = json!([
        agent.write("a.txt", "a\n"),
        agent.run("echo x > x.txt"),
        {"call": {"name": "TodoList", "arguments": {"todos": []}}},
        {"call": {"name": "Read", "arguments": {"path": "README.md"}}},
        {"message": "I changed nothing."},
    ]);
    let stage = Stage::playing(agent, &steps)?;
    let kept = stage.sandbox.root().join("kept.toml");
    let altered = stage.altered(&format!(
        "if test -f \"$KIMI_CODE_HOME/config.toml\"; then\ncp \"$KIMI_CODE_HOME/config.toml\" '{}'\n\
         sed -i '/^\\[tools\\]/,/^enabled/d' \"$KIMI_CODE_HOME/config.toml\"\nfi",
        kept.display()
    ))?;
    stage.configure(&[("x".to_owned(), stage.provider.base_url("x"))], Some(&altered))?;
    let repository = stage.repository()?;
    let mut editor = Editor::open(&stage.sandbox, repository.path())?;
    let job = stage.delegate(&mut editor, "Write a file.", json!({"access": "readOnly"}))?;
    let status = finished(&mut editor, &job)?;

    let requests = stage.provider.requests();
    let offered = requests.first().context("nothing was asked")?.body["tools"].to_string();
    assert!(offered.contains("\"Bash\"") && offered.contains("\"Write\""), "the first lock is off: {offered}");
    let heard = requests.last().context("nothing was asked")?.body["messages"].to_string();
    assert_eq!(heard.matches("this job is read-only").count(), 3, "the hook refused all but reading: {heard}");
    let tree = stage.sandbox.job(&job).join("tree");
    assert!(!tree.join("a.txt").exists() && !tree.join("x.txt").exists());
    assert_eq!(status["changes"]["files"], 0, "{status:#}");

    assert_eq!(status["error"]["code"], "harnessIncompatible", "{status:#}");
    let told = status["error"]["message"].as_str().unwrap_or_default();
    assert!(told.contains("it offered its model more than reading") && told.contains("Bash"), "{status:#}");

    let config: toml::Table = std::fs::read_to_string(&kept)?.parse()?;
    let command = config["hooks"][0]["command"].as_str().context("the hook has a command")?;
    let mut hook = stage.sandbox.command("sh");
    hook.args(["-c", command]);
    let answer = Running::start(hook, ASKED.as_bytes())?.wait(JOB)?;
    assert_eq!(answer.code(), 2, "which is what blocks a tool");
    assert_eq!(answer.stderr.trim(), "this job is read-only");
    Ok(())
}
