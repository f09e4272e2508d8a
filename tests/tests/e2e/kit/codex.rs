//! The real codex against the scripted provider: proof that the provider speaks what codex reads, and that the sandbox
//! is a world in which codex's own sandbox works.

use std::time::Duration;

use pactify_tests::provider::{Answer, Entry, Item, Kind, Provider, Script, Scripts, Step};
use pactify_tests::running::Running;
use pactify_tests::sandbox::{Repository, Sandbox};
use pactify_tests::tools;
use rustix::process::Signal;
use serde_json::Value;

/// codex needs under a second when the machine is idle.
const PATIENCE: Duration = Duration::from_secs(60);

/// A sandbox in which codex is aimed at a provider with this one script.
struct Stage {
    sandbox: Sandbox,
    provider: Provider,
}

impl Stage {
    fn new(steps: impl IntoIterator<Item = Step>) -> anyhow::Result<Self> {
        let provider = Provider::start(Scripts::default().with("x", Script::of(steps)))?;
        let mut sandbox = Sandbox::new()?;
        let home = sandbox.root().join("codex-home");
        std::fs::create_dir(&home)?;
        std::fs::write(home.join("config.toml"), config(&provider.base_url("x")))?;
        sandbox.set("CODEX_HOME", home);
        sandbox.set("SCRIPTED_KEY", "not-a-secret");
        Ok(Self { sandbox, provider })
    }

    fn repository(&self) -> anyhow::Result<Repository<'_>> {
        let repository = self.sandbox.filled("r")?;
        Ok(repository)
    }

    fn start(&self, mode: &str, repository: &Repository<'_>) -> anyhow::Result<Running> {
        let mut command = self.sandbox.command(tools::codex()?);
        command.args(["exec", "--json", "--strict-config", "-s", mode, "-C"]).arg(repository.path()).arg("-");
        Running::start(command, b"Do as scripted.")
    }
}

/// The minimal configuration, aimed at the provider and impatient with it.
fn config(base_url: &str) -> String {
    format!(
        r#"
model = "gpt-5.5"
model_provider = "scripted"
approval_policy = "never"
sandbox_mode = "read-only"
check_for_update_on_startup = false
allow_login_shell = false
[model_providers.scripted]
name = "scripted"
base_url = "{base_url}"
wire_api = "responses"
env_key = "SCRIPTED_KEY"
request_max_retries = 0
stream_max_retries = 0
supports_websockets = false
[agents]
enabled = false
[analytics]
enabled = false
[feedback]
enabled = false
[history]
persistence = "none"
[skills.bundled]
enabled = false
[features]
unbounded_connection_retries = false
apps = false
plugins = false
remote_plugin = false
shell_snapshot = false
hooks = false
[sandbox_workspace_write]
network_access = true
exclude_slash_tmp = true
"#
    )
}

fn items(events: &[Value]) -> Vec<String> {
    let completed = events.iter().filter(|event| event["type"] == "item.completed");
    let short = |event: &Value| {
        let item = &event["item"];
        let parts = ["type", "status", "text", "aggregated_output"].map(|key| item[key].as_str());
        parts.into_iter().flatten().map(str::trim_end).collect::<Vec<_>>().join(" ")
    };
    completed.map(short).collect()
}

#[test]
fn a_scripted_edit_and_a_scripted_command_happen() -> anyhow::Result<()> {
    let edit = Item::Edit { path: "hello.txt".to_owned(), content: "hello\n".to_owned() };
    let aside = Item::Message { text: "Editing.".to_owned(), commentary: true };
    let stage = Stage::new([
        Step::items([Item::Reasoning("**Plan**".to_owned()), aside, edit]),
        Step::shell("cat hello.txt; echo shell > shell.txt"),
        Step::message("Done."),
    ])?;
    let repository = stage.repository()?;
    let ended = stage.start("workspace-write", &repository)?.wait(PATIENCE)?.success()?;
    assert_eq!(
        items(&ended.json_lines()?),
        [
            "reasoning **Plan**",
            "agent_message Editing.",
            "file_change completed",
            "command_execution completed hello",
            "agent_message Done.",
        ]
    );
    assert_eq!(repository.status()?, "?? hello.txt\n?? shell.txt");
    assert_eq!(repository.read("hello.txt")?, "hello\n");

    let requests = stage.provider.requests();
    assert_eq!(requests.iter().map(|entry| entry.turn).collect::<Vec<_>>(), [0, 1, 2]);
    let header = |name: &str| requests[0].headers.get(name).map(String::as_str);
    assert_eq!(header("authorization"), Some("Bearer not-a-secret"));
    // The provider reads no compressed bodies, and codex sends none to a provider of this kind.
    assert_eq!(header("content-encoding"), None);
    assert!(requests[0].body.to_string().contains("Do as scripted."));
    Ok(())
}

#[test]
fn a_read_only_turn_that_is_told_to_write_writes_nothing() -> anyhow::Result<()> {
    let write = "echo x > shell.txt";
    let stage = Stage::new([
        Step::edit("hello.txt", "hello\n"),
        Step::shell(write),
        Step::shell(&format!("{write}; true")),
        Step::message("Tried."),
    ])?;
    let repository = stage.repository()?;
    let before = repository.snapshot()?;
    let ended = stage.start("read-only", &repository)?.wait(PATIENCE)?.success()?;
    // The refused patch is no event. A command that fails for the sandbox's sake is one only if it took long enough: of
    // a quick one only the model hears.
    let denied = "/bin/bash: line 1: shell.txt: Read-only file system";
    let mut seen = items(&ended.json_lines()?);
    seen.retain(|item| *item != format!("command_execution failed {denied}"));
    assert_eq!(seen, [&format!("command_execution completed {denied}"), "agent_message Tried."]);
    assert!(ended.stderr.contains("writing is blocked by read-only sandbox"), "{}", ended.stderr);
    let told = stage.provider.requests().pop().map(|entry| entry.body["input"].to_string()).unwrap_or_default();
    assert!(told.contains("patch rejected") && told.matches("Read-only file system").count() == 2, "{told}");
    assert_eq!(repository.snapshot()?.changed_since(&before), [""; 0]);
    Ok(())
}

#[test]
fn scripted_failures_reach_codex_as_the_failures_they_stand_for() -> anyhow::Result<()> {
    for (step, expect) in [
        (Step::error(401, "invalid_api_key", "Incorrect key."), "unexpected status 401 Unauthorized: Incorrect key."),
        (Step::error(429, "insufficient_quota", "No money."), "Quota exceeded. Check your plan and billing details."),
        (Step::error(503, "overloaded", "Busy."), "unexpected status 503 Service Unavailable: Busy."),
        (Step::of(Answer::Truncate), "stream closed before response.completed"),
        (Step::of(Answer::Drop), "stream disconnected before completion"),
        (Step::of(Answer::Raw("<html>".to_owned(), "text/html".to_owned())), "stream closed before response.completed"),
        (
            Step::of(Answer::Incomplete(Vec::new(), "max_output_tokens".to_owned())),
            "Incomplete response returned, reason: max_output_tokens",
        ),
    ] {
        let stage = Stage::new([step.clone()])?;
        let repository = stage.repository()?;
        let ended = stage.start("read-only", &repository)?.wait(PATIENCE)?;
        assert_eq!(ended.code(), 1, "{step:?}: {}", ended.stdout);
        let last = ended.json_lines()?.pop().unwrap_or_default();
        assert_eq!(last["type"], "turn.failed", "{step:?}");
        assert!(last["error"]["message"].as_str().is_some_and(|text| text.contains(expect)), "{step:?}: {last}");
    }
    Ok(())
}

#[test]
fn an_interrupted_codex_leaves_its_silent_provider_at_once() -> anyhow::Result<()> {
    let stage = Stage::new([Step::of(Answer::Hang(Duration::from_secs(3600)))])?;
    let repository = stage.repository()?;
    let codex = stage.start("workspace-write", &repository)?;
    let has = |kind| move |log: &[Entry]| log.iter().any(|entry| entry.kind == kind);
    assert!(stage.provider.wait_for(PATIENCE, has(Kind::Request)).is_some(), "{codex}");
    codex.signal(Signal::INT)?;
    assert_eq!(codex.wait(PATIENCE)?.code(), 1);
    assert!(stage.provider.wait_for(PATIENCE, has(Kind::ClientGone)).is_some());
    Ok(())
}
