//! A canary for each kind of secret that a job has, and every place where pactify tells or keeps anything.
//!
//! The values look like nothing, so that no pattern helps: only knowing them does.

use std::fs;

use anyhow::{Context as _, Result};
use pactify_tests::agent::{brief, write};
use pactify_tests::editor::{Editor, configure, pid, use_scripted_agent};
use pactify_tests::outside;
use pactify_tests::sandbox::Sandbox;
use rustix::process::Pid;
use serde_json::{Value, json};

/// In a variable that is let through, in a header of the few that may be written out, in the login.
const VARIABLE: &str = "himbeer eis mit sahne";
const HEADER: &str = "zitronen sorbet ohne alles";
const LOGIN: &str = "pflaumen kuchen vom blech";
const CANARIES: [&str; 3] = [VARIABLE, HEADER, LOGIN];

#[test]
fn no_secret_of_a_job_is_in_any_sink() -> Result<()> {
    let mut sandbox = Sandbox::new()?;
    let codex = use_scripted_agent(&sandbox, &[])?;
    let settings = format!(
        r#"
[harnesses.codex]
executable = {:?}
environment = ["SPECIAL"]
[harnesses.codex.config]
model_provider = "gateway"
[harnesses.codex.config.model_providers.gateway]
name = "gateway"
base_url = "http://127.0.0.1:9/v1"
requires_openai_auth = true
http_headers = {{ X-Title = "{HEADER}" }}
"#,
        codex.display().to_string()
    );
    configure(&sandbox, &settings)?;
    sandbox.set("SPECIAL", VARIABLE);
    sandbox.set("PACTIFY_LOG", "trace");
    fs::create_dir(sandbox.home().join(".codex"))?;
    let login = json!({"tokens": {"access_token": LOGIN, "refresh_token": LOGIN}}).to_string();
    fs::write(sandbox.home().join(".codex/auth.json"), login)?;

    let repository = sandbox.filled("one")?;
    let mut editor = Editor::open(&sandbox, repository.path())?;
    // The agent finds all of them, and says them wherever it can. Their values are not in its brief.
    let find = "echo \"$SPECIAL\"; cat \"$CODEX_HOME/config.toml\" \"$CODEX_HOME/auth.json\"";
    let said = sandbox.root().join("said");
    let ended = sandbox.root().join("go");
    let repeat = format!("({find}) | tee {} >&2; ({find})", said.display());
    let wait = json!({"waitFor": [ended.display().to_string(), 600.0]});
    let steps =
        json!([{"run": repeat}, write("a.txt", "a\n"), wait, {"run": format!("{find}; exit 3")}, {"say": "Done."}]);
    let job = editor.delegate(&brief(&steps), &json!({}))?;
    editor.event(&job, "filesTouched")?;
    let agent = pid(&editor.event(&job, "launched")?["leader"]["pid"])?;
    let host = editor.host(&job)?;
    let mut sinks: Vec<(String, String)> = Vec::new();
    for (name, process) in [("agent", agent), ("host", host)] {
        sinks.push((format!("argv of the {name}"), command_line(process)?));
    }
    fs::write(&ended, "")?;
    let status = editor.until(&job, "finished")?;
    assert_eq!(status["outcome"], "succeeded", "{status:#}");
    let found = fs::read_to_string(&said)?;
    assert!(CANARIES.iter().all(|canary| found.contains(canary)), "they are there to be told: {found}");

    let events = editor.run("events", &json!({"jobId": job, "limit": 1000}))?;
    assert!(events.to_string().matches("[redacted]").count() >= 3, "it did say them: {events:#}");
    sinks.push(("status".to_owned(), status.to_string()));
    sinks.push(("events".to_owned(), events.to_string()));
    for (verb, argument) in [
        ("debugReport", json!({})),
        ("doctor", json!({})),
        ("harnesses", json!({})),
        ("diffPreview", json!({"jobId": job, "format": "patch"})),
        ("export", json!({"jobId": job, "as": "patch"})),
    ] {
        sinks.push((verb.to_owned(), editor.run(verb, &argument)?.to_string()));
    }
    for message in editor.client().drain() {
        sinks.push(("a notification".to_owned(), message.to_string()));
    }
    sinks.push(("the server's standard error".to_owned(), editor.client().stderr()));
    editor.left_alone(&job)?;
    // What the job itself is given is what the secrets are for: its settings, and its home.
    let folder = sandbox.job(&job);
    let given = [folder.join("job.json"), folder.join("home/config.toml")];
    for path in super::hostile::files_below(&sandbox.pactify_home())? {
        if !given.contains(&path) {
            sinks.push((path.display().to_string(), String::from_utf8_lossy(&fs::read(&path)?).into_owned()));
        }
    }
    for (log, says_something) in [("wire.log", true), ("host.log", false), ("events.jsonl", true), ("logs/", true)] {
        let is_there = |(name, text): &(String, String)| name.contains(log) && (!text.is_empty() || !says_something);
        assert!(sinks.iter().any(is_there), "{log} is among them");
    }
    for (name, text) in &sinks {
        for canary in CANARIES {
            assert!(!text.contains(canary), "{canary:?} in {name}: {text}");
        }
    }
    Ok(())
}

#[test]
fn a_secret_is_in_no_sink_of_a_job_that_is_repaired() -> Result<()> {
    let mut sandbox = Sandbox::new()?;
    let codex = use_scripted_agent(&sandbox, &[])?;
    let executable = codex.display().to_string();
    configure(&sandbox, &format!("[harnesses.codex]\nexecutable = {executable:?}\nenvironment = [\"SPECIAL\"]\n"))?;
    sandbox.set("SPECIAL", VARIABLE);
    let repository = sandbox.filled("one")?;
    let mut editor = Editor::aside(&sandbox, Some(repository.path()))?;
    let steps = json!([{"run": "echo \"$SPECIAL\""}, write("a.txt", "a\n"), "hang"]);
    let job = editor.delegate(&brief(&steps), &json!({}))?;
    editor.event(&job, "filesTouched")?;
    editor.kill_host(&job)?;
    editor.run("cancel", &json!({"jobId": job}))?;
    let told = Value::from(editor.events(&job)?);
    assert!(told.to_string().contains("[redacted]"), "{told:#}");
    editor.left_alone(&job)?;
    for path in super::hostile::files_below(&sandbox.pactify_home())? {
        let text = String::from_utf8_lossy(&fs::read(&path)?).into_owned();
        assert!(!text.contains(VARIABLE), "{}", path.display());
    }
    Ok(())
}

/// A value of which no piece may be in a sink either, as an agent says it piece by piece.
const SPELT: &str = "quittenbrotmitwalnusskernen";

#[test]
fn a_secret_that_is_said_in_pieces_is_in_no_sink() -> Result<()> {
    let mut sandbox = Sandbox::new()?;
    let program = outside::program("scripted-agent")?.display().to_string();
    let settings = format!(
        "[harnesses.mine]\ncommand = {program:?}\nargs = [\"acp\"]\nprotocol = \"acp\"\nenvironment = [\"SPECIAL\"]\n"
    );
    configure(&sandbox, &settings)?;
    sandbox.set("SPECIAL", SPELT);
    sandbox.set("PACTIFY_LOG", "trace");
    let repository = sandbox.filled("one")?;
    let mut editor = Editor::open(&sandbox, repository.path())?;
    let spell = |pieces: usize| json!({"acp": {"spell": {"variable": "SPECIAL", "pieces": pieces}}});
    let steps = json!([spell(1), spell(2), spell(3), spell(9), write("a.txt", "a\n"), spell(2), {"say": "Done."}]);
    let job = editor.delegate(&brief(&steps), &json!({"harness": "mine"}))?;
    let status = editor.until(&job, "finished")?;
    assert_eq!(status["outcome"], "succeeded", "{status:#}");
    let events = editor.run("events", &json!({"jobId": job, "limit": 1000}))?.to_string();
    assert!(events.matches("[redacted]").count() >= 8, "it did say it: {events}");
    let mut sinks = vec![("events".to_owned(), events), ("status".to_owned(), status.to_string())];
    for message in editor.client().drain() {
        sinks.push(("a notification".to_owned(), message.to_string()));
    }
    editor.left_alone(&job)?;
    for path in super::hostile::files_below(&sandbox.pactify_home())? {
        sinks.push((path.display().to_string(), String::from_utf8_lossy(&fs::read(&path)?).into_owned()));
    }
    let wire =
        |(name, text): &(String, String)| name.ends_with("wire.log") && text.matches("tool_call_update").count() > 15;
    assert!(sinks.iter().any(wire), "the events of the protocol are in its log");
    for (name, text) in &sinks {
        for piece in ["quitten", "brotmit", "walnuss", "kernen"] {
            assert!(!text.contains(piece), "{piece:?} in {name}: {text}");
        }
    }
    Ok(())
}

/// What stands in a setting, and must be in no file but the one of the person's.
const WRITTEN: &str = "rhabarber kompott mit zimt";

#[test]
fn settings_that_no_job_may_have_are_refused_before_anything_is_written() -> Result<()> {
    let sandbox = Sandbox::new()?;
    let codex = use_scripted_agent(&sandbox, &[])?.display().to_string();
    let program = |name: &str| format!("[harnesses.{name}]\nexecutable = {codex:?}\n");
    let repository = sandbox.filled("one")?;
    let mut editor = Editor::open(&sandbox, repository.path())?;
    let good = editor.delegate(&brief(&json!([write("a.txt", "a\n"), {"say": "Done."}])), &json!({}))?;
    assert_eq!(editor.until(&good, "finished")?["outcome"], "succeeded");
    editor.left_alone(&good)?;
    let jobs = || super::hostile::files_below(&sandbox.jobs()).map(|files| files.len());
    let before = jobs()?;
    for (name, setting) in [
        ("codex", format!("model_providers.x.experimental_bearer_token = \"{WRITTEN}\"")),
        ("codex", format!("notify = [\"{WRITTEN}\"]")),
        ("kimi", format!("providers.x.api_key = \"{WRITTEN}\"")),
        ("opencode", format!("provider.x.options.apiKey = \"{WRITTEN}\"")),
        ("agy", format!("model.apiKey = \"{WRITTEN}\"")),
    ] {
        configure(&sandbox, &format!("{}[harnesses.{name}.config]\n{setting}\n", program(name)))?;
        for (verb, argument) in [
            ("delegate", json!({"brief": "Do it.", "harness": name})),
            ("retry", json!({"jobId": good, "harness": name})),
        ] {
            let refused = editor.refused(verb, &argument)?;
            assert!(refused.reason() == "invalidConfig", "{name}: {refused:?}");
            assert!(refused.message.contains(&format!("[harnesses.{name}.config]")), "{refused:?}");
            let next = refused.data.as_ref().map(|data| data["next"].to_string()).unwrap_or_default();
            assert!(next.contains("take `") || next.contains("remove the key"), "says what to do: {refused:?}");
        }
    }
    assert_eq!(jobs()?, before, "nothing of a job was begun");
    for path in super::hostile::files_below(&sandbox.pactify_home())? {
        let text = String::from_utf8_lossy(&fs::read(&path)?).into_owned();
        assert!(!text.contains(WRITTEN), "{}", path.display());
    }

    // A job of a version that did not look goes no further either.
    let record = sandbox.job(&good).join("job.json");
    let mut spec: Value = serde_json::from_str(&fs::read_to_string(&record)?)?;
    spec["settings"]["config"] = json!({"notify": ["x"]});
    fs::write(&record, spec.to_string())?;
    let refused = editor.refused("resume", &json!({"jobId": good, "message": "Go on."}))?;
    assert!(refused.reason() == "invalidConfig" && refused.message.contains("`notify`"), "{refused:?}");
    assert_eq!(editor.until(&good, "finished")?["attempt"], 1);
    Ok(())
}

/// The command line of a process.
fn command_line(process: Pid) -> Result<String> {
    let path = format!("/proc/{}/cmdline", process.as_raw_nonzero());
    Ok(String::from_utf8_lossy(&fs::read(&path).with_context(|| format!("no {path}"))?).into_owned())
}
