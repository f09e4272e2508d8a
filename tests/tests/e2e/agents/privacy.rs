//! Keys, and whom a job talks to.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, ensure};
use pactify_tests::editor::{self, Editor, JOB};
use pactify_tests::provider::{Entry, Kind, Provider, Scripts};
use pactify_tests::sandbox::{Sandbox, shell_program};
use pactify_tests::tools::{self, Tool};
use serde_json::json;

use super::super::codex::holding;
use super::{Agent, KEY, PATIENCE, Stage, call, finished};

/// The key is where the person has it, and nowhere else.
pub(crate) fn assert_kept_nowhere(sandbox: &Sandbox, job: &str) -> Result<()> {
    let own = sandbox.home().join(".kimi-code/config.toml");
    let found: Vec<PathBuf> = holding(sandbox.root(), KEY)?.into_iter().filter(|path| *path != own).collect();
    ensure!(found.is_empty(), "the key of job {job} is in {found:?}");
    Ok(())
}

#[test]
fn kimi_s_keys_go_with_the_job_that_used_them_also_after_a_crash() -> Result<()> {
    let stage = Stage::playing(Agent::Kimi, &json!([{"hang": 600}]))?;
    let repository = stage.repository()?;
    let mut editor = Editor::aside(&stage.sandbox, Some(repository.path()))?;
    let one = stage.delegate(&mut editor, "Look around.", json!({"access": "readOnly"}))?;
    let other = stage.delegate(&mut editor, "Look around.", json!({"access": "readOnly"}))?;
    let both = |log: &[Entry]| log.iter().filter(|entry| entry.kind == Kind::Request).count() == 2;
    ensure!(stage.provider.wait_for(JOB * PATIENCE, both).is_some(), "both of them ask");
    let config = |job: &str| stage.sandbox.job(job).join("home/kimi/config.toml");
    for job in [&one, &other] {
        ensure!(fs::read_to_string(config(job))?.contains(KEY), "it is there to be found");
        assert_eq!(fs::metadata(config(job))?.permissions().mode() & 0o777, 0o600);
    }
    editor.kill_host(&one)?;
    ensure!(config(&one).exists(), "nobody has looked yet");
    editor.run("cancel", &json!({"jobId": one}))?;
    ensure!(!config(&one).exists() && config(&other).exists(), "each job has its own");
    editor.run("cancel", &json!({"jobId": other}))?;
    finished(&mut editor, &other)?;
    ensure!(!config(&other).exists());
    assert_kept_nowhere(&stage.sandbox, &other)
}

/// A program that runs another one, and notes whom that connects to.
fn watched(sandbox: &Sandbox, program: &Path) -> Result<(PathBuf, PathBuf)> {
    let strace = Tool::Strace.find()?;
    let (wrapper, noted) = (sandbox.root().join("watched"), sandbox.root().join("connections"));
    let script = format!(
        "exec '{}' -f -qq -A -o '{}' -e trace=connect,bind,getsockname '{}' \"$@\"",
        strace.display(),
        noted.display(),
        program.display()
    );
    shell_program(&wrapper, &script)?;
    Ok((wrapper, noted))
}

/// Fails unless something was connected to, and all of that was the provider.
fn assert_talks_only_to(port: u16, noted: &Path) -> Result<()> {
    let noted = fs::read_to_string(noted)?;
    let to_a_network = noted.lines().filter(|line| line.contains("sa_family=AF_INET"));
    let (connected, own): (Vec<_>, Vec<_>) = to_a_network.partition(|line| line.contains(" connect("));
    let bound: Vec<_> = own.iter().filter(|line| line.contains(" bind(")).collect();
    // opencode is a client of its own server, on a port that it asks the kernel for.
    let served: Vec<_> = own.iter().filter_map(|line| line.split("htons(").nth(1)?.split(')').next()).collect();
    let is_here = |line: &str| line.contains("\"127.0.0.1\"") || line.contains("\"::1\"");
    let to = |line: &str, port: &str| is_here(line) && line.contains(&format!("htons({port})"));
    assert!(bound.iter().all(|line| is_here(line)), "what the job listens on: {bound:?}");
    let connected = connected.into_iter().filter(|line| !served.iter().any(|port| to(line, port)));
    let (asked, others): (Vec<_>, Vec<_>) = connected.partition(|line| to(line, &port.to_string()));
    assert_eq!(others, Vec::<&str>::new(), "whom the job connects to beside its provider");
    assert!(!asked.is_empty(), "connections are seen: {noted}");
    Ok(())
}

/// Has the agent watched; where it is noted whom it connects to.
fn watch(stage: &Stage) -> Result<PathBuf> {
    let program = if stage.agent == Agent::Kimi { Tool::Node24.find()? } else { Tool::Opencode.find()? };
    let (wrapper, noted) = watched(&stage.sandbox, &program)?;
    let urls = [("x".to_owned(), stage.provider.base_url("x"))];
    stage.configure(&urls, Some(&wrapper.display().to_string()))?;
    Ok(noted)
}

fn talks_only_to_its_provider(agent: Agent) -> Result<()> {
    let stage = Stage::playing(agent, &json!([{"edit": {"path": "a.txt", "content": "a\n"}}, {"message": "Done."}]))?;
    let noted = watch(&stage)?;
    let repository = stage.repository()?;
    let mut editor = Editor::open(&stage.sandbox, repository.path())?;
    each_kind_talks_only_to(stage.provider.port(), &noted, &mut editor, agent.name())
}

/// A job that writes, its resume, and one that only reads: whom each of them talks to.
fn each_kind_talks_only_to(port: u16, noted: &Path, editor: &mut Editor, harness: &str) -> Result<()> {
    let writes = editor.delegate("Add a file.", &json!({"harness": harness}))?;
    let status = finished(editor, &writes)?;
    assert_eq!(status["outcome"], "succeeded", "{status:#}");
    assert_talks_only_to(port, noted)?;

    fs::write(noted, "")?;
    editor.run("resume", &json!({"jobId": writes, "message": "Go on."}))?;
    let status = finished(editor, &writes)?;
    assert_eq!((&status["outcome"], &status["attempt"]), (&json!("succeeded"), &json!(2)), "{status:#}");
    assert_talks_only_to(port, noted)?;

    fs::write(noted, "")?;
    let reads = editor.delegate("Look around.", &json!({"harness": harness, "access": "readOnly"}))?;
    let status = finished(editor, &reads)?;
    assert_eq!(status["outcome"], "succeeded", "{status:#}");
    assert_talks_only_to(port, noted)
}

#[test]
fn kimi_talks_only_to_its_provider() -> Result<()> {
    talks_only_to_its_provider(Agent::Kimi)
}

#[test]
fn opencode_talks_only_to_its_provider() -> Result<()> {
    talks_only_to_its_provider(Agent::Opencode)
}

/// Without `rg` on the PATH: what the agent would download then, and from where.
fn downloads_nothing_to_search_with(agent: Agent) -> Result<()> {
    let (search, programs, says) = match agent {
        Agent::Kimi => (call("Grep", &json!({"pattern": "a"})), "home/kimi/bin", "EACCES"),
        Agent::Opencode => {
            (call("grep", &json!({"pattern": "a"})), "home/cache/opencode/bin", "ripgrep execution failed")
        }
    };
    let mut stage = Stage::playing(agent, &json!([search, {"message": "Done."}]))?;
    let path = stage.sandbox.environment().get(OsStr::new("PATH")).context("no PATH")?.clone();
    let has_none = |folder: &PathBuf| !folder.join("rg").exists();
    stage.sandbox.set("PATH", std::env::join_paths(std::env::split_paths(&path).filter(has_none))?);
    let noted = watch(&stage)?;
    let repository = stage.repository()?;
    let mut editor = Editor::open(&stage.sandbox, repository.path())?;
    let job = stage.delegate(&mut editor, "Look around.", json!({"access": "readOnly"}))?;
    let status = finished(&mut editor, &job)?;
    assert_talks_only_to(stage.provider.port(), &noted)?;
    let asked = stage.provider.requests().last().context("nothing was asked")?.body.to_string();
    ensure!(asked.contains(says), "it searched, and was told that this failed: {asked}");
    let programs: Vec<_> = fs::read_dir(stage.sandbox.job(&job).join(programs))?.collect::<Result<_, _>>()?;
    assert_eq!(programs.iter().map(fs::DirEntry::file_name).collect::<Vec<_>>(), ["rg"]);
    ensure!(status["notices"].to_string().contains("install ripgrep"), "{status:#}");

    let told = editor.run("doctor", &json!({}))?;
    let id = format!("harness.{}.ripgrep", agent.name());
    let finding = told["findings"].as_array().into_iter().flatten().find(|finding| finding["id"] == id.as_str());
    let finding = finding.with_context(|| format!("{told:#}"))?;
    assert_eq!(finding["severity"], "warning", "{finding:#}");
    ensure!(finding["next"].to_string().contains("install ripgrep"), "{finding:#}");
    Ok(())
}

#[test]
fn without_ripgrep_kimi_searches_with_none_and_downloads_none() -> Result<()> {
    downloads_nothing_to_search_with(Agent::Kimi)
}

#[test]
fn without_ripgrep_opencode_searches_with_none_and_downloads_none() -> Result<()> {
    downloads_nothing_to_search_with(Agent::Opencode)
}

#[test]
fn codex_talks_only_to_its_provider() -> Result<()> {
    let steps = json!({"steps": [{"edit": {"path": "a.txt", "content": "a\n"}}, {"message": "Done."}]});
    let provider = Provider::start(Scripts::from_value(json!({"scripts": {"x": steps}}))?)?;
    let mut sandbox = Sandbox::new()?;
    sandbox.set("GATEWAY_KEY", KEY);
    let (wrapper, noted) = watched(&sandbox, &tools::codex()?)?;
    let (executable, url) = (wrapper.display().to_string(), provider.base_url("x"));
    let text = format!(
        "[harnesses.codex]\nexecutable = {executable:?}\nmodel = \"gpt-5.5\"\n[harnesses.codex.config]\n\
         model_provider = \"x\"\n[harnesses.codex.config.model_providers.x]\nname = \"x\"\nbase_url = {url:?}\n\
         wire_api = \"responses\"\nenv_key = \"GATEWAY_KEY\"\nsupports_websockets = false\n"
    );
    editor::configure(&sandbox, &text)?;
    let repository = sandbox.filled("one")?;
    let mut editor = Editor::open(&sandbox, repository.path())?;
    each_kind_talks_only_to(provider.port(), &noted, &mut editor, "codex")
}
