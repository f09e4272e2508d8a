//! The real codex, delegated to through an editor, behind a gateway as a person configures one: the scripted provider.
//!
//! Here: what a job does and how it ends by a person's will. [`failures`]: everything that can keep it from ending
//! well. [`privacy`]: keys, logins and homes.

pub(crate) mod failures;
pub(crate) mod privacy;

pub(crate) use failures::refusing_port;
pub(crate) use privacy::holding;

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use pactify_tests::editor::{self, Editor, JOB};
use pactify_tests::provider::{Provider, Scripts};
use pactify_tests::sandbox::{Repository, Sandbox};
use pactify_tests::{rendezvous, tools};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

/// The value that must never be written down. It looks like nothing, so that only knowing it helps.
const KEY: &str = "zuckerwatte-7f3a9e51";

/// Settings of a provider: its key is in a variable; it is not asked twice.
pub(crate) const KEYED: &str = "env_key = \"GATEWAY_KEY\"";
pub(crate) const QUICK: &str = "request_max_retries = 0\nstream_max_retries = 0";

/// When a stream that says nothing is given up: late, as the machine may be busy; or soon, where that is waited for.
const PATIENT: &str = "stream_idle_timeout_ms = 60000";
const IMPATIENT: &str = "stream_idle_timeout_ms = 3000";

/// How long a process may take to be gone once its job has ended.
const GONE: Duration = Duration::from_secs(60);

/// A person's machine: a gateway, its key in the environment, a repository.
pub(crate) struct Stage {
    pub(crate) sandbox: Sandbox,
    pub(crate) provider: Provider,
}

impl Stage {
    /// With these scripts for the provider, each under its name.
    pub(crate) fn new(scripts: &Value) -> Result<Self> {
        let provider = Provider::start(Scripts::from_value(json!({"scripts": scripts}))?)?;
        let mut sandbox = Sandbox::new()?;
        sandbox.set("GATEWAY_KEY", KEY);
        Ok(Self { sandbox, provider })
    }

    /// With one script, which codex is aimed at.
    pub(crate) fn playing(steps: &Value) -> Result<Self> {
        let stage = Self::new(&json!({"x": {"steps": steps}}))?;
        stage.aim("x")?;
        Ok(stage)
    }

    /// Configures codex as somebody behind a gateway does, to be played the script of this name.
    fn aim(&self, script: &str) -> Result<()> {
        self.aim_with(script, PATIENT)
    }

    fn aim_with(&self, script: &str, patience: &str) -> Result<()> {
        self.configure(&self.provider.base_url(script), "", &format!("{KEYED}\n{QUICK}\n{patience}"))
    }

    /// The same for any URL, with more of codex's own settings: at the top, and of the provider.
    pub(crate) fn configure(&self, base_url: &str, settings: &str, of_provider: &str) -> Result<()> {
        let executable = tools::codex()?.display().to_string();
        let text = format!(
            r#"
[harnesses.codex]
executable = {executable:?}
model = "gpt-5.5"
environment = ["GATEWAY_KEY", "CODEX_REFRESH_TOKEN_URL_OVERRIDE"]
[harnesses.codex.config]
model_provider = "gateway"
{settings}
[harnesses.codex.config.model_providers.gateway]
name = "gateway"
base_url = "{base_url}"
wire_api = "responses"
supports_websockets = false
{of_provider}
"#
        );
        editor::configure(&self.sandbox, &text)
    }

    fn repository(&self) -> Result<Repository<'_>> {
        self.sandbox.filled("one")
    }
}

#[test]
fn what_codex_edits_and_runs_is_previewed_and_applied() -> Result<()> {
    let stage = Stage::playing(&json!([
        {"edit": {"path": "hello.txt", "content": "hello\n"}, "preamble": "I'll add the file."},
        {"shell": "cat hello.txt && mkdir sub && echo shell > sub/shell.txt"},
        {"message": "Done."},
    ]))?;
    let repository = stage.repository()?;
    let before = repository.snapshot()?;
    let mut editor = Editor::open(&stage.sandbox, repository.path())?;
    let job = editor.delegate("Add a greeting.", &json!({}))?;
    let status = editor.until(&job, "finished")?;
    assert_eq!((&status["outcome"], &status["finalMessage"]), (&json!("succeeded"), &json!("Done.")), "{status:#}");
    assert_eq!(status["changes"], json!({"files": 2, "added": 2, "deleted": 0, "sensitive": 0}));
    assert!(status["session"].is_string() && status["harnessVersion"].is_string(), "{status:#}");
    assert!(status["usage"]["inputTokens"].as_u64() > Some(0), "{status:#}");
    let changed = before.changed_since(&repository.snapshot()?);
    assert_eq!(changed, [format!(".git/refs/pactify/keep/{job}")], "nothing but what keeps the base from gc");

    assert_eq!(editor.events_of(&job, "filesTouched")?[0]["paths"], json!(["hello.txt"]));
    assert_eq!(editor.events_of(&job, "commandEnded")?[0]["exitCode"], 0);
    assert_eq!(editor.events_of(&job, "message")?.len(), 2, "the aside and the last word");

    editor.apply(&job)?;
    assert_eq!(repository.read("hello.txt")?, "hello\n");
    assert_eq!(repository.read("sub/shell.txt")?, "shell\n");
    let asked = &stage.provider.requests()[0];
    assert_eq!(asked.headers.get("authorization").map(String::as_str), Some(format!("Bearer {KEY}").as_str()));
    assert!(asked.body.to_string().contains("Add a greeting."));
    Ok(())
}

#[test]
fn a_resumed_job_goes_on_in_its_session_and_its_tree() -> Result<()> {
    let stage = Stage::playing(&json!([
        {"edit": {"path": "first.txt", "content": "1\n"}},
        {"message": "First done.", "usage": usage(1000)},
        {"edit": {"path": "second.txt", "content": "2\n"}},
        {"message": "Second done.", "usage": usage(300)},
    ]))?;
    let repository = stage.repository()?;
    let mut editor = Editor::open(&stage.sandbox, repository.path())?;
    let job = editor.delegate("Write the first file.", &json!({}))?;
    let first = editor.until(&job, "finished")?;
    assert_eq!(first["finalMessage"], "First done.", "{first:#}");

    editor.run("resume", &json!({"jobId": job, "message": "Now the second one."}))?;
    let second = editor.until(&job, "finished")?;
    assert_eq!((&second["outcome"], &second["attempt"]), (&json!("succeeded"), &json!(2)), "{second:#}");
    assert_eq!((&second["finalMessage"], &second["session"]), (&json!("Second done."), &first["session"]));
    assert_eq!(second["changes"]["files"], 2, "the tree is the first attempt's: {second:#}");
    let asked = stage.provider.requests().last().context("nothing was asked")?.body.to_string();
    for words in ["Write the first file.", "First done.", "Now the second one."] {
        assert!(asked.contains(words), "the model hears the whole session, and so {words:?}");
    }
    // codex counts over the session, pactify over the attempt.
    let tokens = |status: &Value| status["usage"]["outputTokens"].as_u64();
    assert!(tokens(&second) < tokens(&first), "{first:#}\n{second:#}");

    editor.apply(&job)?;
    assert_eq!((repository.read("first.txt")?, repository.read("second.txt")?), ("1\n".into(), "2\n".into()));
    Ok(())
}

#[test]
fn a_read_only_job_that_is_told_to_write_writes_nothing_and_says_so() -> Result<()> {
    let stage = Stage::playing(&json!([
        {"edit": {"path": "hello.txt", "content": "hello\n"}},
        {"shell": "echo x > shell.txt"},
        {"message": "I was not allowed to."},
    ]))?;
    let repository = stage.repository()?;
    let mut editor = Editor::open(&stage.sandbox, repository.path())?;
    let job = editor.delegate("Write something.", &json!({"access": "readOnly"}))?;
    let status = editor.until(&job, "finished")?;
    assert_eq!(status["outcome"], "succeeded", "{status:#}");
    assert_eq!(status["changes"]["files"], 0);
    assert_eq!(status["finalMessage"], "I was not allowed to.");
    let notices = status["notices"].to_string();
    assert!(notices.contains("was refused, as this job is read-only"), "{status:#}");

    let tree = stage.sandbox.job(&job).join("tree");
    assert!(!tree.join("hello.txt").exists() && !tree.join("shell.txt").exists());
    // codex tells of a command that fails at once only if it was slow enough; where it does, it failed.
    for ended in editor.events_of(&job, "commandEnded")? {
        assert_ne!(ended["exitCode"], 0, "{ended}");
    }
    let asked = stage.provider.requests().last().context("nothing was asked")?.body.to_string();
    assert!(asked.contains("read-only sandbox") && asked.contains("Read-only file system"), "the model was told");
    Ok(())
}

#[test]
fn a_cancel_ends_the_command_that_codex_waits_for() -> Result<()> {
    let stage = Stage::playing(&long_command())?;
    let repository = stage.repository()?;
    let mut editor = Editor::open(&stage.sandbox, repository.path())?;
    let (job, command) = start_long_command(&stage, &mut editor)?;

    editor.run("cancel", &json!({"jobId": job}))?;
    let status = editor.until(&job, "finished")?;
    assert_eq!((&status["outcome"], &status["error"]), (&json!("cancelled"), &Value::Null), "{status:#}");
    assert!(rendezvous::ends(command, GONE)?, "the command is gone");
    assert_eq!(status["changes"]["files"], 2, "what was done before is captured: {status:#}");
    assert_leaves_no_mount_points(&stage, &job)?;
    editor.apply(&job)?;
    assert_eq!(repository.read("half.txt")?, "half\n");
    Ok(())
}

#[test]
fn a_codex_that_is_killed_leaves_nothing_behind() -> Result<()> {
    let stage = Stage::playing(&long_command())?;
    let repository = stage.repository()?;
    let mut editor = Editor::open(&stage.sandbox, repository.path())?;
    let (job, command) = start_long_command(&stage, &mut editor)?;

    let leader = editor.event(&job, "launched")?["leader"]["pid"].as_i64().context("no pid")?;
    kill_process(Pid::from_raw(i32::try_from(leader)?).context("pid 0")?, Signal::KILL)?;
    let status = editor.until(&job, "finished")?;
    assert_eq!((&status["outcome"], &status["error"]["code"]), (&json!("failed"), &json!("harnessFailed")));
    assert!(status["error"]["message"].as_str().context("no message")?.contains("signal 9"), "{status:#}");
    assert!(rendezvous::ends(command, GONE)?, "the command is gone");
    assert_leaves_no_mount_points(&stage, &job)?;
    assert_eq!(status["changes"]["files"], 2, "{status:#}");
    Ok(())
}

/// What an answer of this many tokens counts.
fn usage(output: u64) -> Value {
    json!({"input_tokens": 10, "output_tokens": output, "total_tokens": output + 10})
}

/// An edit, then a command that does not end by itself.
fn long_command() -> Value {
    json!([
        {"edit": {"path": "half.txt", "content": "half\n"}},
        {"shell": "touch started; exec sleep 3001"},
        {"message": "unreachable while the command runs"},
    ])
}

/// Delegates [`long_command`] and waits until its command runs; its process as this machine knows it.
fn start_long_command(stage: &Stage, editor: &mut Editor) -> Result<(String, Pid)> {
    let job = editor.delegate("Take your time.", &json!({}))?;
    editor.event(&job, "commandStarted")?;
    rendezvous::appears(&stage.sandbox.job(&job).join("tree/started"), JOB)?;
    // The shell becomes the program at some moment now, and stays the same process.
    let runs = |arguments: &str| ["/bin/bash -c", "sleep 3001"].iter().any(|start| arguments.starts_with(start));
    let command = process_of(&job, runs).context("the command does not run")?;
    let left = mount_points(&stage.sandbox.job(&job).join("tree"));
    assert!(!left.is_empty(), "codex's sandbox makes mount points in the tree while a command runs");
    Ok((job, command))
}

/// The process of this job whose arguments are these. One that becomes another program has none for a moment.
pub(crate) fn process_of(job: &str, is_it: impl Fn(&str) -> bool) -> Result<Pid> {
    let deadline = Instant::now() + JOB;
    loop {
        let all: Vec<_> = processes_of(job).collect();
        if let Some((process, _)) = all.iter().find(|(_, arguments)| is_it(arguments)) {
            return Ok(*process);
        }
        ensure!(Instant::now() < deadline, "it is none of {all:?}");
        rendezvous::pause()?;
    }
}

/// The processes that carry the mark of this job, with their arguments.
pub(crate) fn processes_of(job: &str) -> impl Iterator<Item = (Pid, String)> {
    let mark = format!("PACTIFY_JOB={job}");
    fs::read_dir("/proc").into_iter().flatten().flatten().filter_map(move |entry| {
        let pid = Pid::from_raw(entry.file_name().to_str()?.parse().ok()?)?;
        let environment = fs::read(entry.path().join("environ")).ok()?;
        let arguments = fs::read(entry.path().join("cmdline")).ok()?;
        let marked = environment.split(|byte| *byte == 0).any(|variable| variable == mark.as_bytes());
        let arguments = String::from_utf8_lossy(&arguments).trim_end_matches('\0').replace('\0', " ");
        marked.then_some((pid, arguments))
    })
}

fn mount_points(tree: &Path) -> Vec<&'static str> {
    [".agents", ".aws", ".codex"].into_iter().filter(|name| tree.join(name).exists()).collect()
}

fn assert_leaves_no_mount_points(stage: &Stage, job: &str) -> Result<()> {
    let left = mount_points(&stage.sandbox.job(job).join("tree"));
    ensure!(left.is_empty(), "left in the tree: {left:?}");
    Ok(())
}
