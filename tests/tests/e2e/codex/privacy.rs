//! What codex is given of a person's secrets and what it gets to keep: keys, logins, homes.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use pactify_tests::editor::Editor;
use pactify_tests::provider::Kind;
use serde_json::{Value, json};

use super::{KEY, QUICK, Stage};

/// A ChatGPT login's access token (nobody's, unsigned) that ended in 2020, and one that ends in 2100.
const ENDED: &str = "eyJhbGciOiJub25lIiwidHlwIjoiSldUIn0.eyJleHAiOjE2MDAwMDAwMDAsImh0dHBzOi8vYXBpLm9wZW5haS5jb20vYXV0aCI6\
                     eyJjaGF0Z3B0X2FjY291bnRfaWQiOiJhY2N0IiwiY2hhdGdwdF9wbGFuX3R5cGUiOiJwbHVzIn19.c2ln";
const FRESH: &str = "eyJhbGciOiJub25lIiwidHlwIjoiSldUIn0.eyJleHAiOjQxMDI0NDQ4MDAsImh0dHBzOi8vYXBpLm9wZW5haS5jb20vYXV0aCI6\
                     eyJjaGF0Z3B0X2FjY291bnRfaWQiOiJhY2N0IiwiY2hhdGdwdF9wbGFuX3R5cGUiOiJwbHVzIn19.c2ln";

#[test]
fn the_key_reaches_the_provider_and_nothing_else() -> Result<()> {
    // The agent looks for it wherever a command can look.
    let look = "env; tr '\\0' '\\n' < /proc/self/environ; cat /proc/[0-9]*/environ | tr '\\0' '\\n'; echo looked";
    let stage = Stage::new(&json!({
        "looks": {"steps": [{"shell": look}, {"edit": {"path": "a.txt", "content": "a\n"}}, {"message": "Done."}]},
        "echoes": {"steps": [{"status": 401, "body": {"error": {
            "message": format!("Incorrect API key provided: {KEY}."), "type": "invalid_request_error", "code": "invalid_api_key",
        }}}]},
        "talks": {"steps": [{"shell": format!("echo {KEY}")}, {"message": format!("Your key is {KEY}.")}]},
    }))?;
    let repository = stage.repository()?;
    let mut editor = Editor::open(&stage.sandbox, repository.path())?;
    let mut said = Vec::new();
    let mut run = |script: &str| -> Result<(String, Value)> {
        stage.aim(script)?;
        let job = editor.delegate("Look around.", &json!({}))?;
        let status = editor.until(&job, "finished")?;
        for verb in ["events", "diffPreview"] {
            said.push(editor.run(verb, &json!({"jobId": job, "limit": 1000}))?);
        }
        said.push(editor.run("debugReport", &json!({}))?);
        said.extend(editor.client().drain());
        said.extend([status.clone(), editor.client().stderr().into()]);
        Ok((job, status))
    };

    let (job, status) = run("looks")?;
    assert_eq!(status["outcome"], "succeeded", "{status:#}");
    let asked = stage.provider.requests();
    assert_eq!(asked[0].headers["authorization"], format!("Bearer {KEY}"), "it is there to be found");
    let heard = asked[1].body.to_string();
    assert!(heard.contains("looked") && heard.contains(&format!("PACTIFY_JOB={job}")), "the command ran: {heard}");
    assert!(!heard.contains(KEY), "a command of the agent found the key");
    assert_eq!(holding(stage.sandbox.root(), KEY)?, Vec::<PathBuf>::new());

    let (echoed, status) = run("echoes")?;
    assert_eq!(status["error"]["code"], "loginRequired", "{status:#}");
    assert!(status["error"]["message"].to_string().contains("[redacted]"), "{status:#}");
    let (talked, status) = run("talks")?;
    assert_eq!(status["finalMessage"], "Your key is [redacted].", "{status:#}");
    // What the provider itself repeats is in codex's own session of the job, as codex needs it to go on.
    let own = [stage.sandbox.job(&echoed).join("home"), stage.sandbox.job(&talked).join("home")];
    let (kept, leaked): (Vec<_>, Vec<_>) =
        holding(stage.sandbox.root(), KEY)?.into_iter().partition(|path| own.iter().any(|home| path.starts_with(home)));
    assert!(!kept.is_empty(), "the key was there to be written down");
    assert_eq!(leaked, Vec::<PathBuf>::new());
    assert!(!said.iter().any(|message| message.to_string().contains(KEY)), "the editor was told the key");
    Ok(())
}

#[test]
fn a_key_that_only_the_provider_names_is_kept_back_as_well() -> Result<()> {
    let stage = Stage::playing(&json!([{"message": format!("Your key is {KEY}.")}]))?;
    let file = stage.sandbox.config();
    let text = fs::read_to_string(&file)?;
    fs::write(&file, text.replace("environment = [\"GATEWAY_KEY\", ", "environment = ["))?;
    let repository = stage.repository()?;
    let mut editor = Editor::open(&stage.sandbox, repository.path())?;
    let job = editor.delegate("Say it.", &json!({}))?;
    let status = editor.until(&job, "finished")?;
    assert_eq!(stage.provider.requests()[0].headers["authorization"], format!("Bearer {KEY}"));
    assert_eq!(status["finalMessage"], "Your key is [redacted].", "{status:#}");
    let own = stage.sandbox.job(&job).join("home");
    let leaked = holding(stage.sandbox.root(), KEY)?.into_iter().filter(|path| !path.starts_with(&own));
    assert_eq!(leaked.collect::<Vec<_>>(), Vec::<PathBuf>::new());
    Ok(())
}

#[test]
fn codex_works_in_a_home_of_the_job_and_leaves_the_persons_alone() -> Result<()> {
    let stage = Stage::playing(&json!([{"edit": {"path": "a.txt", "content": "a\n"}}, {"message": "Done."}]))?;
    let repository = stage.repository()?;
    let mut editor = Editor::open(&stage.sandbox, repository.path())?;
    let persons = stage.sandbox.home().join(".codex");
    let job = editor.delegate("Work.", &json!({}))?;
    assert_eq!(editor.until(&job, "finished")?["outcome"], "succeeded");
    let told = editor.run("harnesses", &json!({}))?;
    assert_eq!(told["harnesses"][0]["loggedIn"], true, "with the key of the gateway");
    assert!(!persons.exists(), "codex made itself a home");
    assert!(stage.sandbox.job(&job).join("home/sessions").is_dir(), "the session is in the job's own home");
    assert!(!stage.sandbox.job(&job).join("home/auth.json").is_symlink(), "there is no login to lead to");

    // With a home that codex could not even start with.
    fs::create_dir(&persons)?;
    fs::write(persons.join("config.toml"), "this is not = = TOML")?;
    fs::write(persons.join("AGENTS.md"), "Say mushroom.")?;
    let job = editor.delegate("Work again.", &json!({}))?;
    let status = editor.until(&job, "finished")?;
    assert_eq!(status["outcome"], "succeeded", "{status:#}");
    assert_eq!(names(&persons)?, ["AGENTS.md", "config.toml"]);
    let asked = stage.provider.requests().last().context("nothing was asked")?.body.to_string();
    assert!(!asked.contains("mushroom"), "what the job is told is in its own record only");
    Ok(())
}

/// A case of the conformance suite.
pub(crate) fn a_login_is_used_where_it_is_and_refreshed_there() -> Result<()> {
    let stage = Stage::new(&json!({"x": {
        "steps": [{"message": "Logged in."}],
        "oauth": {"body": {"id_token": FRESH, "access_token": FRESH, "refresh_token": "second"}},
    }}))?;
    let url = stage.provider.base_url("x");
    stage.configure(&url, "", &format!("requires_openai_auth = true\n{QUICK}"))?;
    let mut stage = stage;
    stage.sandbox.set("CODEX_REFRESH_TOKEN_URL_OVERRIDE", format!("{url}/oauth/token"));
    let login = stage.sandbox.home().join(".codex/auth.json");
    fs::create_dir(login.parent().context("no parent")?)?;
    let tokens = json!({"id_token": ENDED, "access_token": ENDED, "refresh_token": "first", "account_id": "acct"});
    let text = json!({"OPENAI_API_KEY": null, "tokens": tokens, "last_refresh": "2026-01-01T00:00:00Z"}).to_string();
    fs::write(&login, text)?;
    fs::set_permissions(&login, fs::Permissions::from_mode(0o600))?;

    let repository = stage.repository()?;
    let mut editor = Editor::open(&stage.sandbox, repository.path())?;
    let job = editor.delegate("Say hello.", &json!({}))?;
    let status = editor.until(&job, "finished")?;
    assert_eq!(status["finalMessage"], "Logged in.", "{status:#}");
    let refreshes = stage.provider.log().iter().filter(|entry| entry.kind == Kind::OAuth).count();
    assert_eq!(refreshes, 1);
    assert_eq!(stage.provider.requests()[0].headers["authorization"], format!("Bearer {FRESH}"));

    let link = stage.sandbox.job(&job).join("home/auth.json");
    assert_eq!(fs::read_link(&link)?, login, "the job has no copy");
    let refreshed: Value = serde_json::from_slice(&fs::read(&login)?)?;
    assert_eq!(refreshed["tokens"]["refresh_token"], "second", "the person's own file is the refreshed one");
    assert_eq!(fs::metadata(&login)?.permissions().mode() & 0o777, 0o600);

    editor.run("discard", &json!({"jobId": job}))?;
    assert!(!link.is_symlink() && login.is_file(), "a discard takes the link, not the login");
    Ok(())
}

/// The files below `root` that hold `secret`.
pub(crate) fn holding(root: &Path, secret: &str) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    let mut folders = vec![root.to_owned()];
    while let Some(folder) = folders.pop() {
        // What goes away meanwhile, as a job's temporary files do, holds nothing.
        for entry in fs::read_dir(&folder).into_iter().flatten() {
            let entry = entry?;
            let Ok(kind) = entry.file_type() else { continue };
            if kind.is_dir() {
                folders.push(entry.path());
            } else if kind.is_file() {
                let bytes = fs::read(entry.path()).unwrap_or_default();
                if bytes.windows(secret.len()).any(|window| window == secret.as_bytes()) {
                    found.push(entry.path());
                }
            }
        }
    }
    found.sort();
    Ok(found)
}

fn names(folder: &Path) -> Result<Vec<String>> {
    let mut names: Vec<String> = fs::read_dir(folder)?
        .map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned()))
        .collect::<Result<_>>()?;
    names.retain(|name| !name.ends_with(".lock"));
    names.sort();
    Ok(names)
}
