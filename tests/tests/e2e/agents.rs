//! The real kimi and the real opencode, delegated to through an editor, each against the scripted provider.
//!
//! One table: [`Agent`] × case; each test is one case for one agent. Both start slowly, so a case is one job where it can
//! be. [`failures`]: providers that refuse, break off or say nothing. [`privacy`]: keys, logins, what a repository brings,
//! and whom a job talks to.

mod failures;
mod privacy;

use std::path::PathBuf;

use anyhow::{Context as _, Result};
use pactify_tests::editor::{self, Editor, JOB};
use pactify_tests::provider::{Provider, Scripts};
use pactify_tests::sandbox::{Repository, Sandbox};
use pactify_tests::tools::Tool;
use pactify_tests::{outside, rendezvous};
use serde_json::{Value, json};

use super::codex::{events_of, processes_of};

/// The value that must never be written down. It looks like nothing, so that only knowing it helps.
const KEY: &str = "zuckerwatte-7f3a9e51";

/// How often [`JOB`] may pass: these agents need seconds of processor time to begin, on machines that tests share.
const PATIENCE: usize = 4;

/// A harness that speaks the Agent Client Protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Agent {
    Kimi,
    Opencode,
}

/// A person's machine: a gateway, its key where the agent looks for keys, a repository.
struct Stage {
    agent: Agent,
    sandbox: Sandbox,
    provider: Provider,
}

impl Agent {
    fn name(self) -> &'static str {
        match self {
            Self::Kimi => "kimi",
            Self::Opencode => "opencode",
        }
    }

    /// A request of the model to write a file, and one to run a command, whether that was offered or not.
    fn write(self, path: &str, content: &str) -> Value {
        match self {
            Self::Kimi => call("Write", &json!({"path": path, "content": content})),
            Self::Opencode => call("write", &json!({"filePath": path, "content": content})),
        }
    }

    fn run(self, command: &str) -> Value {
        match self {
            Self::Kimi => call("Bash", &json!({"command": command})),
            Self::Opencode => call("bash", &json!({"command": command, "description": "run it"})),
        }
    }
}

fn call(name: &str, arguments: &Value) -> Value {
    json!({"call": {"name": name, "arguments": arguments}})
}

impl Stage {
    /// With these scripts for the provider, each a model of its name.
    fn new(agent: Agent, scripts: &Value) -> Result<Self> {
        let provider = Provider::start(Scripts::from_value(json!({"scripts": scripts}))?)?;
        let mut sandbox = Sandbox::new()?;
        sandbox.set("GATEWAY_KEY", KEY);
        let ripgrep = Tool::Ripgrep.find()?;
        let path = outside::variable("PATH").context("no PATH")?;
        let folders = ripgrep.parent().map(PathBuf::from).into_iter().chain(std::env::split_paths(&path));
        sandbox.set("PATH", std::env::join_paths(folders)?);
        let stage = Self { agent, sandbox, provider };
        let urls = scripts.as_object().context("scripts are named")?.keys();
        let urls: Vec<_> = urls.map(|name| (name.clone(), stage.provider.base_url(name))).collect();
        stage.configure(&urls, None)?;
        Ok(stage)
    }

    /// With one script, which every job is played.
    fn playing(agent: Agent, steps: &Value) -> Result<Self> {
        Self::new(agent, &json!({"x": {"steps": steps}}))
    }

    /// Configures the agent as a person does: providers by these names and addresses, each with a model `m`. What runs the
    /// agent is `around`, where it is given.
    fn configure(&self, urls: &[(String, String)], around: Option<&str>) -> Result<()> {
        match self.agent {
            Agent::Kimi => self.configure_kimi(urls, around),
            Agent::Opencode => self.configure_opencode(urls, around),
        }
    }

    /// kimi takes keys from a configuration of its own.
    fn configure_kimi(&self, urls: &[(String, String)], around: Option<&str>) -> Result<()> {
        let mut own = "default_model = \"x\"\n[[hooks]]\nevent = \"PreToolUse\"\ncommand = \"false\"\n".to_owned();
        for (name, url) in urls {
            own += &format!(
                "[providers.{name:?}]\ntype = \"openai\"\nbase_url = {url:?}\napi_key = {KEY:?}\n[models.{name:?}]\n\
                 provider = {name:?}\nmodel = \"scripted\"\nmax_context_size = 131072\ncapabilities = [\"tool_use\"]\n"
            );
        }
        let folder = self.sandbox.home().join(".kimi-code");
        std::fs::create_dir_all(&folder)?;
        std::fs::write(folder.join("config.toml"), own)?;
        let script = Tool::Kimi.find()?.display().to_string();
        let node = around
            .map_or_else(|| Tool::Node24.find().map(|path| path.display().to_string()), |it| Ok(it.to_owned()))?;
        editor::configure(
            &self.sandbox,
            &format!("[harnesses.kimi]\nexecutable = {script:?}\ninterpreter = {node:?}\n"),
        )
    }

    /// opencode's providers are in pactify's configuration, and their keys in variables.
    fn configure_opencode(&self, urls: &[(String, String)], around: Option<&str>) -> Result<()> {
        let own = Tool::Opencode.find()?.display().to_string();
        let executable = around.unwrap_or(&own);
        let mut text = format!("[harnesses.opencode]\nexecutable = {executable:?}\nmodel = \"x/m\"\n");
        for (name, url) in urls {
            text += &format!(
                "[harnesses.opencode.config.provider.{name:?}]\nnpm = \"@ai-sdk/openai-compatible\"\nname = {name:?}\n\
                 [harnesses.opencode.config.provider.{name:?}.options]\nbaseURL = {url:?}\n\
                 apiKey = \"{{env:GATEWAY_KEY}}\"\n\
                 [harnesses.opencode.config.provider.{name:?}.models.m]\nname = \"M\"\n\
                 limit = {{ context = 131072, output = 8192 }}\n"
            );
        }
        editor::configure(&self.sandbox, &text)
    }

    /// The name of the model that is played the script of this name.
    fn model(&self, script: &str) -> String {
        match self.agent {
            Agent::Kimi => script.to_owned(),
            Agent::Opencode => format!("{script}/m"),
        }
    }

    fn repository(&self) -> Result<Repository<'_>> {
        let repository = self.sandbox.repository("one")?;
        repository.fill()?;
        Ok(repository)
    }

    fn delegate(&self, editor: &mut Editor, brief: &str, mut more: Value) -> Result<String> {
        more["harness"] = self.agent.name().into();
        editor.delegate(brief, &more)
    }

    /// The folder of a job in PACTIFY_HOME.
    fn job(&self, id: &str) -> PathBuf {
        self.sandbox.pactify_home().join("jobs").join(id)
    }
}

fn finished(editor: &mut Editor, job: &str) -> Result<Value> {
    for _ in 1..PATIENCE {
        if let Ok(status) = editor.until(job, "finished") {
            return Ok(status);
        }
    }
    editor.until(job, "finished")
}

fn writes(agent: Agent) -> Result<()> {
    let stage = Stage::playing(
        agent,
        &json!([
            {"edit": {"path": "hello.txt", "content": "hello\n"}, "preamble": "I'll add the file."},
            {"shell": "cat hello.txt && mkdir sub && echo shell > sub/shell.txt"},
            {"message": "Done."},
        ]),
    )?;
    let repository = stage.repository()?;
    let before = repository.snapshot()?;
    let mut editor = Editor::open(&stage.sandbox, repository.path())?;
    let job = stage.delegate(&mut editor, "Add a greeting.", json!({}))?;
    let status = finished(&mut editor, &job)?;
    let events = editor.run("events", &json!({"jobId": job, "limit": 1000}))?;
    assert_eq!((&status["outcome"], &status["finalMessage"]), (&json!("succeeded"), &json!("Done.")), "{events:#}");
    assert_eq!(status["changes"], json!({"files": 2, "added": 2, "deleted": 0, "sensitive": 0}));
    assert!(status["session"].is_string() && status["harnessVersion"].is_string(), "{status:#}");
    assert_eq!(status["usage"]["outputTokens"], if agent == Agent::Kimi { 90 } else { 30 }, "{status:#}");
    let changed = before.changed_since(&repository.snapshot()?);
    // opencode notes a number of its own in every repository it sees.
    let changed: Vec<_> = changed.into_iter().filter(|path| path != ".git/opencode").collect();
    assert_eq!(changed, [format!(".git/refs/pactify/keep/{job}")], "nothing but what keeps the base from gc");
    assert!(!events_of(&events, "toolUsed").is_empty() || !events_of(&events, "commandEnded").is_empty(), "{events:#}");

    editor.apply(&job)?;
    assert_eq!(repository.read("sub/shell.txt")?, "shell\n");
    let asked = &stage.provider.requests()[0];
    assert_eq!(asked.headers.get("authorization").map(String::as_str), Some(format!("Bearer {KEY}").as_str()));
    assert!(asked.body.to_string().contains("Add a greeting."));
    privacy::assert_kept_nowhere(&stage, &job)
}

fn only_reads(agent: Agent) -> Result<()> {
    let stage = Stage::playing(
        agent,
        &json!([
            agent.write("hello.txt", "hello\n"),
            agent.run("echo x > shell.txt"),
            {"message": "I was not allowed to."},
        ]),
    )?;
    let repository = stage.repository()?;
    let mut editor = Editor::open(&stage.sandbox, repository.path())?;
    let job = stage.delegate(&mut editor, "Write something.", json!({"access": "readOnly"}))?;
    let status = finished(&mut editor, &job)?;
    let events = editor.run("events", &json!({"jobId": job, "limit": 1000}))?;
    assert_eq!(status["outcome"], "succeeded", "{status:#}\n{events:#}");
    assert_eq!(status["changes"]["files"], 0);
    assert_eq!(status["finalMessage"], "I was not allowed to.");
    let tree = stage.job(&job).join("tree");
    assert!(!tree.join("hello.txt").exists() && !tree.join("shell.txt").exists());
    let requests = stage.provider.requests();
    let offered = requests[0].body["tools"].as_array().context("no tools")?;
    let mut offered: Vec<_> = offered.iter().filter_map(|tool| tool["function"]["name"].as_str()).collect();
    offered.sort_unstable();
    let reading = if agent == Agent::Kimi { ["Glob", "Grep", "Read"] } else { ["glob", "grep", "read"] };
    assert_eq!(offered, reading, "what is offered is what reads");
    let heard = requests.last().context("nothing was asked")?.body.to_string();
    assert!(heard.contains("disabled by the active tool policy") || heard.contains("unavailable tool"), "{heard}");
    Ok(())
}

fn is_cancelled(agent: Agent) -> Result<()> {
    let stage = Stage::playing(
        agent,
        &json!([
            {"edit": {"path": "half.txt", "content": "half\n"}},
            {"shell": "touch started; exec sleep 3001"},
            {"message": "unreachable while the command runs"},
        ]),
    )?;
    let repository = stage.repository()?;
    let mut editor = Editor::open(&stage.sandbox, repository.path())?;
    let job = stage.delegate(&mut editor, "Take your time.", json!({}))?;
    editor.event(&job, "launched")?;
    rendezvous::appears(&stage.job(&job).join("tree/started"), JOB * 3)?;
    let left: Vec<_> = processes_of(&job).collect();
    assert!(left.iter().any(|(_, arguments)| arguments.contains("sleep 3001")), "the command runs: {left:?}");

    editor.run("cancel", &json!({"jobId": job}))?;
    let status = finished(&mut editor, &job)?;
    assert_eq!((&status["outcome"], &status["error"]), (&json!("cancelled"), &Value::Null), "{status:#}");
    assert_eq!(processes_of(&job).collect::<Vec<_>>(), [], "nothing of the job is left");
    assert_eq!(status["changes"]["files"], 2, "what was done before is captured: {status:#}");
    Ok(())
}

fn goes_on(agent: Agent) -> Result<()> {
    let stage = Stage::playing(
        agent,
        &json!([
            {"edit": {"path": "first.txt", "content": "1\n"}},
            {"message": "First done."},
            {"edit": {"path": "second.txt", "content": "2\n"}},
            {"message": "Second done."},
        ]),
    )?;
    let repository = stage.repository()?;
    let mut editor = Editor::open(&stage.sandbox, repository.path())?;
    let job = stage.delegate(&mut editor, "Write the first file.", json!({}))?;
    let first = finished(&mut editor, &job)?;
    assert_eq!(first["finalMessage"], "First done.", "{first:#}");

    editor.run("resume", &json!({"jobId": job, "message": "Now the second one."}))?;
    let second = finished(&mut editor, &job)?;
    assert_eq!((&second["outcome"], &second["attempt"]), (&json!("succeeded"), &json!(2)), "{second:#}");
    assert_eq!((&second["finalMessage"], &second["session"]), (&json!("Second done."), &first["session"]));
    assert_eq!(second["changes"]["files"], 2, "the tree is the first attempt's: {second:#}");
    let asked = stage.provider.requests().last().context("nothing was asked")?.body.to_string();
    for words in ["Write the first file.", "First done.", "Now the second one."] {
        assert!(asked.contains(words), "the model hears the whole session, and so {words:?}");
    }
    Ok(())
}

/// A test for each agent of the table, by the name of the case.
macro_rules! table {
    ($($case:path => $kimi:ident, $opencode:ident;)*) => {
        $(
            #[test]
            fn $kimi() -> anyhow::Result<()> {
                $case($crate::agents::Agent::Kimi)
            }

            #[test]
            fn $opencode() -> anyhow::Result<()> {
                $case($crate::agents::Agent::Opencode)
            }
        )*
    };
}
use table;

table! {
    writes => kimi_writes_and_is_applied, opencode_writes_and_is_applied;
    only_reads => kimi_that_is_told_to_write_only_reads, opencode_that_is_told_to_write_only_reads;
    is_cancelled => kimi_is_cancelled_with_its_command, opencode_is_cancelled_with_its_command;
    goes_on => kimi_goes_on_in_its_session, opencode_goes_on_in_its_session;
}
