//! opencode 2, by its twin: the real one cannot be run here.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::time::Duration;

use anyhow::{Context as _, Result};
use pactify_tests::agent::{brief, write};
use pactify_tests::editor::{Editor, configure};
use pactify_tests::running::Ended;
use pactify_tests::sandbox::{Repository, Sandbox};
use pactify_tests::{opencode, outside};
use serde_json::{Value, json};

const PATIENCE: Duration = Duration::from_secs(60);

struct Stage {
    sandbox: Sandbox,
}

impl Stage {
    fn new() -> Result<Self> {
        let sandbox = Sandbox::new()?;
        let program = outside::program("scripted-opencode")?;
        let opencode = opencode::install(&program, &sandbox.root().join("opencode"), opencode::VERSION)?;
        let opencode = opencode.display().to_string();
        configure(
            &sandbox,
            &format!("[defaults]\nharness = \"opencode\"\n[harnesses.opencode]\nexecutable = {opencode:?}\n"),
        )?;
        Ok(Self { sandbox })
    }

    fn log_in(&self, key: &str) -> Result<Ended> {
        self.sandbox.start("pactify", &["sub", "login", "opencode"], format!("{key}\n").as_bytes())?.wait(PATIENCE)
    }

    fn repository(&self) -> Result<Repository<'_>> {
        self.sandbox.filled("one")
    }
}

fn finished(editor: &mut Editor, steps: &Value, more: &Value) -> Result<Value> {
    let job = editor.delegate(&brief(steps), more)?;
    editor.until(&job, "finished")
}

#[test]
fn a_login_of_its_own_is_made_kept_and_used_by_jobs() -> Result<()> {
    let stage = Stage::new()?;
    let repository = stage.repository()?;
    let mut editor = Editor::open(&stage.sandbox, repository.path())?;
    let steps = json!([write("hello.txt", "hello\n"), {"say": "Done."}]);
    let status = finished(&mut editor, &steps, &json!({}))?;
    assert_eq!(status["error"]["code"], "loginRequired", "{status:#}");
    let next = status["error"]["next"].as_str().context("no next step")?;
    assert!(next.contains("`pactify sub login opencode`"), "{next}");

    let ended = stage.log_in("a-key-of-the-person")?.success()?;
    assert!(ended.stderr.contains("Key: "), "its own login talks to the person: {}", ended.stderr);
    let kept = stage.sandbox.pactify_home().join("kept");
    let database = kept.join("opencode/data/opencode/opencode.db");
    assert_eq!(fs::read_to_string(&database)?, "a-key-of-the-person");
    for folder in [kept.clone(), kept.join("opencode"), kept.join("opencode/data")] {
        assert_eq!(fs::metadata(&folder)?.permissions().mode() & 0o777, 0o700, "{}", folder.display());
    }

    let first = finished(&mut editor, &steps, &json!({}))?;
    assert_eq!((&first["outcome"], &first["harnessVersion"]), (&json!("succeeded"), &json!(opencode::VERSION)));
    assert!(first["notices"].to_string().contains("may say things"), "{first:#}");
    let job = first["id"].as_str().context("no id")?.to_owned();
    editor
        .run("resume", &json!({"jobId": job, "message": brief(&json!([write("b.txt", "b\n"), {"say": "More."}]))}))?;
    let second = editor.until(&job, "finished")?;
    assert_eq!((&second["finalMessage"], &second["session"]), (&json!("More."), &first["session"]), "{second:#}");
    assert_eq!(second["changes"]["files"], 2);
    editor.apply(&job)?;
    assert_eq!(repository.read("hello.txt")?, "hello\n");

    editor.left_alone(&job)?;
    let theirs = stage.sandbox.home().join(".local/share/opencode");
    assert!(!theirs.exists(), "the person's own has no part in it");
    let home = stage.sandbox.job(&job).join("home");
    assert!(!home.join("config/opencode/opencode.json").exists(), "its settings went with the job");
    assert!(!home.join("data").exists(), "the job has no copy");
    Ok(())
}

#[test]
fn what_nothing_known_of_it_shows_is_refused_with_its_reason() -> Result<()> {
    let stage = Stage::new()?;
    stage.log_in("k")?.success()?;
    let repository = stage.repository()?;
    let mut editor = Editor::open(&stage.sandbox, repository.path())?;
    let steps = json!([write("hello.txt", "hello\n"), {"say": "Done."}]);
    for (more, said) in [
        (json!({"access": "readOnly"}), "no read-only mode here"),
        (json!({"permissions": "ask"}), "no `permissions: ask` here"),
        (json!({"withUserConfig": true}), "no `withUserConfig` here"),
    ] {
        let status = finished(&mut editor, &steps, &more)?;
        let error = &status["error"];
        assert_eq!((&status["outcome"], &error["code"]), (&json!("failed"), &json!("harnessIncompatible")), "{more}");
        assert!(error["message"].as_str().is_some_and(|text| text.contains(said)), "{error}");
        assert_eq!(status["changes"]["files"].as_u64().unwrap_or_default(), 0);
    }
    Ok(())
}

#[test]
fn the_doctor_knows_what_it_has_and_what_it_has_not() -> Result<()> {
    let stage = Stage::new()?;
    let repository = stage.repository()?;
    let mut editor = Editor::open(&stage.sandbox, repository.path())?;
    let found = editor.run("doctor", &json!({"harness": "opencode"}))?;
    let finding = |id: &str| found["findings"].as_array()?.iter().find(|finding| finding["id"] == id).cloned();
    assert_eq!(finding("settings.opencode").context("no finding")?["severity"], "ok", "{found:#}");
    let itself = finding("harness.opencode").context("no finding")?;
    assert!(itself["title"].as_str().is_some_and(|title| title.contains("was not made for")), "{itself}");
    let listed = editor.run("harnesses", &json!({}))?;
    let listed =
        listed["harnesses"].as_array().and_then(|all| all.iter().find(|one| one["name"] == "opencode")).cloned();
    let listed = listed.context("not listed")?;
    assert_eq!((&listed["access"], &listed["asks"]), (&json!(["write"]), &json!(false)), "{listed:#}");
    Ok(())
}

#[test]
fn a_version_that_links_its_login_has_none_kept() -> Result<()> {
    let stage = Stage::new()?;
    opencode::install(&outside::program("scripted-opencode")?, &stage.sandbox.root().join("first"), "1.18.33")?;
    let first = stage.sandbox.root().join("first/opencode").display().to_string();
    configure(&stage.sandbox, &format!("[harnesses.opencode]\nexecutable = {first:?}\n"))?;
    let ended = stage.log_in("k")?;
    assert!(ended.code() == 2 && ended.stderr.contains("jobs use yours"), "{}", ended.stderr);
    Ok(())
}
