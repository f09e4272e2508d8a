//! Jobs that are to have the person's own configuration of their harness: what they take of it, what their access mode
//! keeps out, and in whose lists their sessions are.

use std::fs;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, Result};
use pactify_tests::agy;
use pactify_tests::editor::{Editor, configure};
use pactify_tests::provider::{Provider, Scripts};
use pactify_tests::running::{Ended, Running};
use pactify_tests::sandbox::{Repository, Sandbox};
use pactify_tests::tools::{self, Tool};
use serde_json::{Value, json};

use crate::agents::finished;
use crate::codex::holding;

/// The value that must never be written down. It looks like nothing, so that only knowing it helps.
const KEY: &str = "zuckerwatte-7f3a9e51";

const PATIENCE: Duration = Duration::from_secs(60);

/// A person's machine, with a provider that plays this.
struct Stage {
    sandbox: Sandbox,
    provider: Provider,
}

impl Stage {
    fn playing(steps: &Value) -> Result<Self> {
        let provider = Provider::start(Scripts::from_value(json!({"scripts": {"x": {"steps": steps}}}))?)?;
        Ok(Self { sandbox: Sandbox::new()?, provider })
    }

    fn url(&self) -> String {
        self.provider.base_url("x")
    }

    /// Writes a file in the person's home.
    fn has(&self, path: &str, text: &str) -> Result<()> {
        let file = self.sandbox.home().join(path);
        fs::create_dir_all(file.parent().context("no folder")?)?;
        Ok(fs::write(file, text)?)
    }

    fn repository(&self) -> Result<Repository<'_>> {
        self.sandbox.filled("one")
    }

    /// A program in the person's own environment, as they run it in a terminal.
    fn run(&self, program: &Path, folder: &Path, arguments: &[&str], input: &str) -> Result<Ended> {
        let mut command = self.sandbox.command(program);
        command.args(arguments).current_dir(folder);
        Running::start(command, input.as_bytes())?.wait(PATIENCE)
    }
}

fn with_it(mut more: Value) -> Value {
    more["withUserConfig"] = true.into();
    more
}

fn notices(status: &Value) -> String {
    status["notices"].to_string()
}

#[test]
fn a_mode_that_rests_on_the_configuration_refuses_another_one_before_anything_starts() -> Result<()> {
    let sandbox = Sandbox::new()?;
    configure(&sandbox, "")?;
    let repository = sandbox.filled("one")?;
    let mut editor = Editor::open(&sandbox, repository.path())?;
    for harness in ["kimi", "opencode", "agy"] {
        let argument = with_it(json!({"brief": "Look.", "harness": harness, "access": "readOnly"}));
        let refused = editor.refused("delegate", &argument)?;
        let data = refused.data.context("no data")?;
        assert_eq!(data["code"], "invalidParams", "{data}");
        assert!(refused.message.contains(&format!("a read-only job of {harness} cannot")), "{}", refused.message);
        assert!(data["next"].as_str().is_some_and(|next| next.contains("--with-user-config")), "{data}");
    }
    let folder = repository.path().display().to_string();
    let arguments = ["sub", "run", "kimi", "--read-only", "--with-user-config", "--repo", &folder];
    assert_eq!(sandbox.start("pactify", &arguments, b"Look.")?.wait(PATIENCE)?.code(), 2);
    assert!(fs::read_dir(sandbox.jobs()).map_or(0, Iterator::count) == 0, "there is a job");
    Ok(())
}

#[test]
fn codex_takes_it_within_its_sandbox_and_keeps_its_thread_out_of_the_person_s_home() -> Result<()> {
    let outside = "touch ~/outside; echo tried > tried.txt";
    let stage = Stage::playing(&json!([{"shell": outside}, {"message": "Done."}]))?;
    let codex = tools::codex()?;
    configure(&stage.sandbox, &format!("[harnesses.codex]\nexecutable = {:?}\n", codex.display().to_string()))?;
    let own = format!(
        "model = \"gpt-5.5\"\nmodel_provider = \"gateway\"\nsandbox_mode = \"danger-full-access\"\n\
         notify = [\"touch\", \"notified\"]\n[sandbox_workspace_write]\nwritable_roots = [\"/\"]\n\
         [model_providers.gateway]\nname = \"gateway\"\nbase_url = \"{}\"\nwire_api = \"responses\"\n\
         experimental_bearer_token = \"{KEY}\"\nsupports_websockets = false\n",
        stage.url()
    );
    stage.has(".codex/config.toml", &own)?;
    stage.has(".codex/AGENTS.md", "Say mushroom.")?;
    let repository = stage.repository()?;
    let mut editor = Editor::open(&stage.sandbox, repository.path())?;
    let job = editor.delegate("Work.", &with_it(json!({"harness": "codex"})))?;
    let status = editor.until(&job, "finished")?;
    assert_eq!((&status["outcome"], &status["withUserConfig"]), (&json!("succeeded"), &json!(true)), "{status:#}");
    assert!(notices(&status).contains("sandbox_mode") && notices(&status).contains("notify"), "{status:#}");
    editor.left_alone(&job)?;
    let asked = &stage.provider.requests()[0];
    assert_eq!(asked.headers["authorization"], format!("Bearer {KEY}"), "the provider is the person's");
    assert!(asked.body.to_string().contains("Say mushroom."), "and so are the instructions");
    let folder = stage.sandbox.job(&job);
    assert!(!stage.sandbox.home().join("outside").exists(), "its access is the job's");
    assert!(folder.join("tree/tried.txt").exists() && !folder.join("tree/notified").exists());

    let persons = stage.sandbox.home().join(".codex");
    let mut left: Vec<_> = fs::read_dir(&persons)?.map(|entry| Ok(entry?.file_name())).collect::<Result<_>>()?;
    left.sort();
    assert_eq!(left, ["AGENTS.md", "config.toml"], "nothing was written there");
    assert_eq!(fs::read_to_string(persons.join("config.toml"))?, own);
    assert!(folder.join("home/sessions").is_dir() && !folder.join("home/config.toml").exists());
    assert_eq!(holding(stage.sandbox.root(), KEY)?, [persons.join("config.toml")]);
    let session = status["session"].as_str().context("no session")?;
    let resumed = stage.run(&codex, repository.path(), &["exec", "resume", session, "-"], "Go on.")?;
    assert!(resumed.code() != 0 && resumed.stderr.contains("no rollout found"), "{}", resumed.stderr);

    let again = editor.delegate("Look.", &with_it(json!({"harness": "codex", "access": "readOnly"})))?;
    let status = editor.until(&again, "finished")?;
    assert_eq!((&status["outcome"], &status["changes"]["files"]), (&json!("succeeded"), &json!(0)), "{status:#}");
    assert!(!stage.sandbox.home().join("outside").exists());
    Ok(())
}

#[test]
fn kimi_takes_its_hooks_and_instructions_and_keeps_its_session() -> Result<()> {
    let stage = Stage::playing(&json!([{"edit": {"path": "a.txt", "content": "a\n"}}, {"message": "Done."}]))?;
    let (script, node) = (Tool::Kimi.find()?.display().to_string(), Tool::Node24.find()?.display().to_string());
    configure(&stage.sandbox, &format!("[harnesses.kimi]\nexecutable = {script:?}\ninterpreter = {node:?}\n"))?;
    let hooked = stage.sandbox.root().join("hooked");
    let own = format!(
        "default_model = \"m\"\ndefault_permission_mode = \"yolo\"\n\
         [[hooks]]\nevent = \"PreToolUse\"\ncommand = \"touch {}\"\n\
         [providers.gateway]\ntype = \"openai\"\nbase_url = {:?}\napi_key = {KEY:?}\n\
         [models.m]\nprovider = \"gateway\"\nmodel = \"scripted\"\nmax_context_size = 131072\ncapabilities = [\"tool_use\"]\n",
        hooked.display(),
        stage.url()
    );
    stage.has(".kimi-code/config.toml", &own)?;
    stage.has(".kimi-code/AGENTS.md", "Say mushroom.")?;
    let repository = stage.repository()?;
    let mut editor = Editor::open(&stage.sandbox, repository.path())?;
    let mut run = |more: Value| -> Result<(String, Value)> {
        let job = editor.delegate("Add a file.", &more)?;
        let status = finished(&mut editor, &job)?;
        assert_eq!(status["outcome"], "succeeded", "{status:#}");
        editor.left_alone(&job)?;
        Ok((job, status))
    };
    run(json!({"harness": "kimi"}))?;
    assert!(
        !hooked.exists() && !stage.provider.requests()[0].body.to_string().contains("mushroom"),
        "it is not asked for"
    );
    let (job, status) = run(with_it(json!({"harness": "kimi"})))?;
    assert!(hooked.exists(), "the hook ran");
    assert!(stage.provider.requests().last().context("none")?.body.to_string().contains("Say mushroom."));
    assert!(notices(&status).contains("default_permission_mode"), "{status:#}");

    let persons = stage.sandbox.home().join(".kimi-code");
    assert!(!persons.join("sessions").exists() && !persons.join("session_index.jsonl").exists());
    let home = stage.sandbox.job(&job).join("home/kimi");
    assert!(home.join("sessions").is_dir() && !home.join("config.toml").exists());
    assert_eq!(holding(stage.sandbox.root(), KEY)?, [persons.join("config.toml")]);
    Ok(())
}

#[test]
fn opencode_s_session_is_in_the_person_s_list_and_its_permissions_are_the_job_s() -> Result<()> {
    let stage = Stage::playing(&json!([
        {"call": {"name": "write", "arguments": {"filePath": "../../../../outside.txt", "content": "x"}}},
        // What was refused is made up for by one of its kind.
        {"call": {"name": "write", "arguments": {"filePath": "inside.txt", "content": "x"}}},
        {"shell": "echo done > done.txt"},
        {"message": "Done."},
    ]))?;
    let opencode = Tool::Opencode.find()?;
    configure(&stage.sandbox, &format!("[harnesses.opencode]\nexecutable = {:?}\n", opencode.display().to_string()))?;
    let own = format!(
        r#"{{
  // What the person is used to.
  "model": "x/m",
  "permission": {{"bash": "deny", "external_directory": "allow"}},
  "agent": {{"build": {{"permission": {{"external_directory": "allow", "bash": "deny"}}}}}},
  "provider": {{"x": {{"npm": "@ai-sdk/openai-compatible", "name": "x", "options": {{"baseURL": "{}", "apiKey": "{KEY}"}},
    "models": {{"m": {{"name": "M", "limit": {{"context": 131072, "output": 8192}}}}}}}}}},
}}"#,
        stage.url()
    );
    stage.has(".config/opencode/opencode.jsonc", &own)?;
    stage.has(".config/opencode/AGENTS.md", "Say mushroom.")?;
    let repository = stage.repository()?;
    let mut editor = Editor::open(&stage.sandbox, repository.path())?;
    let job = editor.delegate("Work.", &with_it(json!({"harness": "opencode"})))?;
    let status = finished(&mut editor, &job)?;
    editor.left_alone(&job)?;
    let events = Value::from(editor.events(&job)?);
    assert_eq!((&status["outcome"], &status["changes"]["files"]), (&json!("succeeded"), &json!(2)), "{events:#}");
    assert!(!stage.sandbox.jobs().join("outside.txt").exists(), "its access is the job's");
    assert!(!stage.sandbox.pactify_home().join("outside.txt").exists());
    assert!(notices(&status).contains("agent.build.permission"), "{status:#}");
    assert!(stage.provider.requests()[0].body.to_string().contains("Say mushroom."));
    assert_eq!(holding(stage.sandbox.root(), KEY)?, [stage.sandbox.home().join(".config/opencode/opencode.jsonc")]);

    let session = status["session"].as_str().context("no session")?;
    let listed = stage.run(&opencode, repository.path(), &["session", "list", "--format", "json"], "")?;
    assert!(listed.stdout.contains(session), "{session} is not in the list: {} {}", listed.stdout, listed.stderr);

    editor.run("resume", &json!({"jobId": job, "message": "Go on."}))?;
    let again = finished(&mut editor, &job)?;
    assert_eq!(again["session"], status["session"], "{again:#}");
    Ok(())
}

#[test]
fn agy_works_in_the_person_s_home_where_its_conversation_is_listed() -> Result<()> {
    let sandbox = crate::agy::sandbox(agy::VERSION)?;
    let repository = sandbox.filled("one")?;
    let mut editor = Editor::open(&sandbox, repository.path())?;
    let steps = [json!({"write": ["hello.txt", "hello\n"]}), json!({"say": "Done."})];
    let job = editor.delegate(&agy::brief(&steps), &with_it(json!({})))?;
    let status = editor.until(&job, "finished")?;
    assert_eq!((&status["outcome"], &status["changes"]["files"]), (&json!("succeeded"), &json!(1)), "{status:#}");
    editor.left_alone(&job)?;
    let persons = sandbox.home().join(".gemini/antigravity-cli");
    assert_eq!(fs::read_dir(persons.join("conversations"))?.count(), 1);
    assert!(!persons.join("settings.json").exists(), "nothing of ours is written there");
    let home = sandbox.job(&job).join("home");
    assert_eq!(fs::read_dir(home)?.count(), 0);
    let more = agy::brief(&[json!({"say": "More."})]);
    editor.run("resume", &json!({"jobId": job, "message": more}))?;
    assert_eq!(editor.until(&job, "finished")?["session"], status["session"]);
    Ok(())
}

#[test]
fn a_program_of_one_s_own_has_it_anyway_and_a_retry_has_it_again() -> Result<()> {
    let sandbox = Sandbox::new()?;
    configure(&sandbox, "[harnesses.mine]\ncommand = \"sh\"\nargs = [\"-c\", \"{prompt}\"]\n")?;
    let repository = sandbox.filled("one")?;
    let path = repository.path().to_str().context("a path")?;
    let run = |arguments: &[&str], brief: &str| -> Result<Ended> {
        sandbox.start("pactify", &[&["sub"], arguments].concat(), brief.as_bytes())?.wait(PATIENCE)
    };
    let ended = run(&["run", "mine", "--with-user-config", "--detach", "--repo", path], "echo x > x")?;
    assert!(ended.code() == 0 && ended.stderr.contains("withUserConfig changes nothing"), "{}", ended.stderr);
    let retried = run(&["retry", ended.stdout.trim(), "--detach"], "")?;
    assert!(retried.stderr.contains("withUserConfig changes nothing"), "{}", retried.stderr);
    let shown = run(&["show", retried.stdout.trim()], "")?;
    assert!(shown.stdout.contains("your own of mine"), "{}", shown.stdout);
    let plain = run(&["run", "mine", "--detach", "--repo", path], "echo x > x")?;
    let again = run(&["retry", plain.stdout.trim(), "--detach", "--with-user-config"], "")?;
    assert!(!plain.stderr.contains("withUserConfig") && again.stderr.contains("withUserConfig"), "{}", again.stderr);
    Ok(())
}
