//! Keys, logins, what a repository brings, and whom a job talks to.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, ensure};
use pactify_tests::editor::{self, Editor};
use pactify_tests::provider::{Kind, Provider, Scripts};
use pactify_tests::sandbox::Sandbox;
use pactify_tests::tools::{self, Tool};
use serde_json::json;
use sha2::{Digest as _, Sha256};

use super::super::codex::holding;
use super::{Agent, KEY, Stage, finished, table};

/// The key is where the person has it, and nowhere else.
pub(super) fn assert_kept_nowhere(stage: &Stage, job: &str) -> Result<()> {
    let own = stage.sandbox.home().join(".kimi-code/config.toml");
    let found: Vec<PathBuf> = holding(stage.sandbox.root(), KEY)?.into_iter().filter(|path| *path != own).collect();
    ensure!(found.is_empty(), "the key of job {job} is in {found:?}");
    Ok(())
}

/// Everything by which a repository could tell an agent what to do, or have it start something.
fn repository_brings(agent: Agent) -> Result<()> {
    let stage = Stage::playing(agent, &json!([{"edit": {"path": "a.txt", "content": "a\n"}}, {"message": "Done."}]))?;
    let repository = stage.repository()?;
    let started = stage.sandbox.root().join("started");
    let touch = started.display().to_string();
    for (path, content) in [
        ("AGENTS.md", "AGENTS-MARK\n".to_owned()),
        ("HOSTILE.md", "INSTRUCTION-MARK\n".to_owned()),
        (
            ".kimi-code/agents/agent.md",
            "---\nname: agent\ndescription: The default agent.\noverride: true\n---\nOVERRIDE-MARK\n".to_owned(),
        ),
        (".kimi-code/mcp.json", json!({"mcpServers": {"evil": {"command": "touch", "args": [touch]}}}).to_string()),
        (
            "opencode.json",
            json!({"instructions": ["HOSTILE.md"], "agent": {"build": {"prompt": "OVERRIDE-MARK"}},
                "mcp": {"evil": {"type": "local", "command": ["touch", touch]}}})
            .to_string(),
        ),
        (
            ".opencode/plugin/evil.js",
            format!("export const Evil = async () => {{ require('fs').writeFileSync({touch:?}, 'x'); return {{}} }}\n"),
        ),
    ] {
        repository.write(path, &content)?;
    }
    repository.git(&["add", "."])?;
    repository.git(&["commit", "-qm", "Hostile"])?;
    let mut editor = Editor::open(&stage.sandbox, repository.path())?;
    let job = stage.delegate(&mut editor, "Add a file.", json!({}))?;
    let status = finished(&mut editor, &job)?;
    assert_eq!((&status["outcome"], &status["changes"]["files"]), (&json!("succeeded"), &json!(1)), "{status:#}");
    assert!(!started.exists(), "the repository had something started");
    let heard = stage.provider.requests()[0].body.to_string();
    let marks = ["AGENTS-MARK", "INSTRUCTION-MARK", "OVERRIDE-MARK"].map(|mark| heard.contains(mark));
    let notices = status["notices"].to_string();
    match agent {
        // It can't be kept from a repository's agents, whose words replace its own: that is told.
        Agent::Kimi => {
            assert_eq!(marks, [false, false, true], "{heard}");
            assert!(notices.contains("kimi follows: AGENTS.md, .kimi-code/agents"), "{notices}");
        }
        Agent::Opencode => assert_eq!(marks, [false; 3], "{heard}"),
    }
    Ok(())
}

/// A program that runs another one, and notes whom that connects to.
fn watched(sandbox: &Sandbox, program: &Path) -> Result<(PathBuf, PathBuf)> {
    let strace = Tool::Strace.find()?;
    let (wrapper, noted) = (sandbox.root().join("watched"), sandbox.root().join("connections"));
    let script = format!(
        "#!/bin/sh\nexec '{}' -f -qq -A -o '{}' -e trace=connect,bind,getsockname '{}' \"$@\"\n",
        strace.display(),
        noted.display(),
        program.display()
    );
    fs::write(&wrapper, script)?;
    fs::set_permissions(&wrapper, fs::Permissions::from_mode(0o755))?;
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

fn talks_only_to_its_provider(agent: Agent) -> Result<()> {
    let stage = Stage::playing(agent, &json!([{"edit": {"path": "a.txt", "content": "a\n"}}, {"message": "Done."}]))?;
    let program = if agent == Agent::Kimi { Tool::Node24.find()? } else { Tool::Opencode.find()? };
    let (wrapper, noted) = watched(&stage.sandbox, &program)?;
    let urls = [("x".to_owned(), stage.provider.base_url("x"))];
    stage.configure(&urls, Some(&wrapper.display().to_string()))?;
    let repository = stage.repository()?;
    let mut editor = Editor::open(&stage.sandbox, repository.path())?;
    let job = stage.delegate(&mut editor, "Add a file.", json!({}))?;
    let status = finished(&mut editor, &job)?;
    assert_eq!(status["outcome"], "succeeded", "{status:#}");
    assert_talks_only_to(stage.provider.port(), &noted)
}

table! {
    repository_brings => kimi_tells_what_a_repository_brings, opencode_takes_nothing_that_a_repository_brings;
    talks_only_to_its_provider => kimi_talks_only_to_its_provider, opencode_talks_only_to_its_provider;
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
    let repository = sandbox.repository("one")?;
    repository.fill()?;
    let mut editor = Editor::open(&sandbox, repository.path())?;
    let job = editor.delegate("Add a file.", &json!({}))?;
    let status = finished(&mut editor, &job)?;
    assert_eq!(status["outcome"], "succeeded", "{status:#}");
    assert_talks_only_to(provider.port(), &noted)
}

#[test]
fn a_login_that_kimi_refreshes_is_refreshed_where_the_person_keeps_it() -> Result<()> {
    let fresh = json!({"access_token": "fresh-access", "refresh_token": "fresh-refresh", "expires_in": 3600,
        "scope": "kimi-code", "token_type": "Bearer"});
    let mut stage = Stage::new(
        Agent::Kimi,
        &json!({"x": {"steps": [{"edit": {"path": "a.txt", "content": "a\n"}}, {"message": "Done."}],
            "oauth": {"body": fresh}}}),
    )?;
    let url = stage.provider.base_url("x");
    let host = url.trim_end_matches("/v1").to_owned();
    stage.sandbox.set("KIMI_CODE_OAUTH_HOST", &host);
    // Where its servers are others than kimi's own, a login's name says which.
    let servers = Sha256::digest(format!("{{\"oauthHost\":\"{host}\",\"baseUrl\":\"{url}\"}}"));
    let servers: String = servers.iter().take(8).map(|byte| format!("{byte:02x}")).collect();
    let name = format!("kimi-code-env-{servers}");
    let own = stage.sandbox.home().join(".kimi-code");
    let config = format!(
        "default_model = \"x\"\n[providers.\"managed:kimi-code\"]\ntype = \"kimi\"\nbase_url = {url:?}\napi_key = \"\"\n\
         oauth = {{ storage = \"file\", key = \"oauth/{name}\", oauth_host = {host:?} }}\n[models.x]\nprovider = \"managed:kimi-code\"\n\
         model = \"scripted\"\nmax_context_size = 131072\ncapabilities = [\"tool_use\"]\n"
    );
    fs::write(own.join("config.toml"), config)?;
    fs::create_dir_all(own.join("credentials"))?;
    let login = own.join("credentials").join(format!("{name}.json"));
    let old = json!({"access_token": "old-access", "refresh_token": "old-refresh", "expires_at": 1_600_000_000,
        "scope": "kimi-code", "token_type": "Bearer", "expires_in": 3600});
    fs::write(&login, old.to_string())?;
    fs::set_permissions(&login, fs::Permissions::from_mode(0o600))?;
    let config = stage.sandbox.config_home().join("pactify/config.toml");
    let text = fs::read_to_string(&config)?;
    let let_through = "[harnesses.kimi]\nenvironment = [\"KIMI_CODE_OAUTH_HOST\"]\n";
    fs::write(&config, text.replace("[harnesses.kimi]\n", let_through))?;

    let repository = stage.repository()?;
    let mut editor = Editor::open(&stage.sandbox, repository.path())?;
    let job = stage.delegate(&mut editor, "Add a file.", json!({}))?;
    let status = finished(&mut editor, &job)?;
    assert_eq!(status["outcome"], "succeeded", "{status:#}");
    assert!(stage.provider.log().iter().any(|entry| entry.kind == Kind::OAuth), "the login was refreshed");
    let asked = &stage.provider.requests()[0];
    assert_eq!(asked.headers.get("authorization").map(String::as_str), Some("Bearer fresh-access"));
    let kept = fs::read_to_string(&login)?;
    assert!(kept.contains("fresh-refresh") && !login.is_symlink(), "{kept}");
    let inside = fs::canonicalize(stage.job(&job).join("home/kimi/credentials")).context("no link")?;
    assert_eq!(inside, fs::canonicalize(own.join("credentials"))?, "the job was led to it, and had no copy");
    Ok(())
}

#[test]
fn opencode_takes_its_login_from_where_the_person_keeps_it() -> Result<()> {
    let stage =
        Stage::playing(Agent::Opencode, &json!([{"edit": {"path": "a.txt", "content": "a\n"}}, {"message": "Done."}]))?;
    let config = stage.sandbox.config_home().join("pactify/config.toml");
    fs::write(&config, fs::read_to_string(&config)?.replace("apiKey = \"{env:GATEWAY_KEY}\"\n", ""))?;
    let data = stage.sandbox.home().join(".local/share/opencode");
    fs::create_dir_all(&data)?;
    let login = json!({"x": {"type": "api", "key": "its-own-login"}}).to_string();
    fs::write(data.join("auth.json"), &login)?;

    let repository = stage.repository()?;
    let mut editor = Editor::open(&stage.sandbox, repository.path())?;
    let job = stage.delegate(&mut editor, "Add a file.", json!({}))?;
    let status = finished(&mut editor, &job)?;
    assert_eq!(status["outcome"], "succeeded", "{status:#}");
    let asked = &stage.provider.requests()[0];
    assert_eq!(asked.headers.get("authorization").map(String::as_str), Some("Bearer its-own-login"));
    assert_eq!(fs::read_to_string(data.join("auth.json"))?, login);
    assert!(
        stage.job(&job).join("home/data/opencode/auth.json").is_symlink(),
        "the job was led to it, and had no copy"
    );
    Ok(())
}
