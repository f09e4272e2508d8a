//! The doctor: the same findings in an editor and a terminal, and which of them are errors.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;

use anyhow::{Context as _, Result, ensure};
use pactify_tests::agent::{self, Profile, Step, brief, write};
use pactify_tests::editor::{
    Editor, JOB, configure, configure_more, log_in_at_codex, scripted_sandbox, use_scripted_agent,
};
use pactify_tests::outside;
use pactify_tests::running::Ended;
use pactify_tests::sandbox::Sandbox;
use pactify_tests::tools::{self, Tool};
use serde_json::{Value, json};

use crate::agents::{self, Agent};
use crate::{agy, codex};

fn doctor(sandbox: &Sandbox, more: &[&str]) -> Result<Ended> {
    let arguments = [&["sub", "doctor", "--json"], more].concat();
    // A probe is two whole jobs.
    sandbox.start("pactify", &arguments, b"")?.wait(JOB * 4)
}

/// The findings of this name.
fn named<'a>(findings: &'a Value, id: &str) -> Vec<&'a Value> {
    let all = findings["findings"].as_array().into_iter().flatten();
    all.filter(|finding| finding["id"] == id).collect()
}

#[test]
fn a_machine_that_is_in_order_has_no_error_and_says_the_same_everywhere() -> Result<()> {
    let sandbox = scripted_sandbox()?;
    let repository = sandbox.filled("one")?;
    let mut editor = Editor::open(&sandbox, repository.path())?;
    let told = editor.run("doctor", &json!({}))?;
    for id in ["store", "home", "configuration", "git", "jobs", "applies", "harness.codex"] {
        assert_eq!(named(&told, id).len(), 1, "{id}: {told:#}");
        assert_ne!(named(&told, id)[0]["severity"], "error", "{id}: {told:#}");
    }
    let ended = doctor(&sandbox, &[])?;
    assert_eq!(ended.code(), 0, "{}", ended.stderr);
    let printed: Value = serde_json::from_str(&ended.stdout)?;
    let ids = |told: &Value| -> Vec<Value> {
        told["findings"].as_array().into_iter().flatten().map(|finding| finding["id"].clone()).collect()
    };
    assert_eq!(ids(&printed), ids(&told));
    Ok(())
}

#[test]
fn a_login_of_codex_that_jobs_cannot_be_led_to_is_told_with_the_way_to_one() -> Result<()> {
    let sandbox = Sandbox::new()?;
    // It says that it is logged in, and there is no file: the login is in a keyring.
    use_scripted_agent(&sandbox, &[])?;
    let look = || -> Result<Value> {
        let told: Value = serde_json::from_str(&doctor(&sandbox, &["codex"])?.stdout)?;
        Ok(named(&told, "login.codex").first().copied().with_context(|| format!("{told:#}"))?.clone())
    };
    fs::create_dir(sandbox.home().join(".codex"))?;
    let elsewhere = look()?;
    assert_eq!(elsewhere["severity"], "warning", "{elsewhere:#}");
    ensure!(elsewhere["title"].to_string().contains("not in a keyring"), "{elsewhere:#}");
    ensure!(elsewhere["next"].to_string().contains("login -c cli_auth_credentials_store=file`"), "{elsewhere:#}");
    log_in_at_codex(&sandbox)?;
    let linked = look()?;
    assert_eq!(linked["severity"], "ok", "{linked:#}");
    ensure!(linked["title"].to_string().contains("auth.json"), "{linked:#}");
    Ok(())
}

#[test]
fn a_live_probe_believes_the_tree_and_leaves_nothing() -> Result<()> {
    for (steps, write_is, read_only_is) in [
        (vec![Step::write("probe.txt", "probe\n"), Step::Say("Done.".to_owned())], "ok", "ok"),
        (vec![Step::IgnoreSandbox, Step::write("probe.txt", "probe\n")], "ok", "error"),
        (vec![Step::Say("I wrote it.".to_owned())], "error", "ok"),
        (vec![Step::Fail("no".to_owned())], "error", "error"),
    ] {
        let sandbox = Sandbox::new()?;
        use_scripted_agent(&sandbox, &steps)?;
        // Where nobody is: a test asks nothing of the world outside.
        let (_holder, port) = codex::refusing_port()?;
        configure_more(&sandbox, &format!("[doctor]\nnetwork = \"http://127.0.0.1:{port}\"\n"))?;
        let ended = doctor(&sandbox, &["--probe"])?;
        let told: Value = serde_json::from_str(&ended.stdout).with_context(|| ended.stderr.clone())?;
        for (id, expected) in [("probe.codex.write", write_is), ("probe.codex.readOnly", read_only_is)] {
            let finding = named(&told, id).first().copied().with_context(|| format!("no {id}: {told:#}"))?;
            assert_eq!(finding["severity"], expected, "{finding:#}");
        }
        assert_eq!(ended.code(), i32::from(write_is == "error" || read_only_is == "error"));
        for folder in ["jobs", "probes"] {
            assert_eq!(fs::read_dir(sandbox.pactify_home().join(folder))?.count(), 0, "{folder} is empty again");
        }
    }
    Ok(())
}

/// What a live probe of this harness finds, which is in order.
fn assert_probed(sandbox: &Sandbox, name: &str) -> Result<()> {
    let arguments = ["sub", "doctor", "--json", name, "--probe"];
    let ended = sandbox.start("pactify", &arguments, b"")?.wait(JOB * agents::PATIENCE)?;
    let told: Value = serde_json::from_str(&ended.stdout).with_context(|| ended.stderr.clone())?;
    for (id, says) in [
        ("write", "wrote in a write job"),
        ("readOnly", "wrote nothing in a read-only job"),
        ("sessions", "nothing was added to your own sessions"),
        ("network", "has no sandbox"),
    ] {
        let id = format!("probe.{name}.{id}");
        let finding = named(&told, &id).first().copied().with_context(|| format!("no {id}: {told:#}"))?;
        assert_eq!(finding["severity"], "ok", "{finding:#}");
        ensure!(finding["title"].to_string().contains(says), "{finding:#}");
    }
    assert_eq!(ended.code(), 0, "{told:#}");
    Ok(())
}

#[test]
fn a_live_probe_of_kimi() -> Result<()> {
    let steps = json!([Agent::Kimi.write("probe.txt", "probe\n"), {"message": "Done."}]);
    assert_probed(&agents::Stage::playing(Agent::Kimi, &steps)?.sandbox, "kimi")
}

#[test]
fn a_live_probe_of_opencode() -> Result<()> {
    let steps = json!([Agent::Opencode.write("probe.txt", "probe\n"), {"message": "Done."}]);
    assert_probed(&agents::Stage::playing(Agent::Opencode, &steps)?.sandbox, "opencode")
}

#[test]
fn a_live_probe_of_agy() -> Result<()> {
    let sandbox = agy::sandbox(pactify_tests::agy::VERSION)?;
    // It looks around as well: without a tool there would be no proof that its hook ran.
    let steps = "{\"run\": \"ls\"}\n{\"write\": [\"probe.txt\", \"probe\\n\"]}\n{\"say\": \"Done.\"}\n";
    fs::write(sandbox.root().join("agy/agy.steps"), steps)?;
    assert_probed(&sandbox, "agy")
}

#[test]
fn a_sandbox_that_does_not_work_is_an_error_before_any_job_is_refused() -> Result<()> {
    for (has_sandbox, expected) in [(true, "ok"), (false, "error")] {
        let sandbox = Sandbox::new()?;
        let profile = Profile { has_sandbox, ..Profile::default() };
        let codex = agent::install(&outside::program("scripted-agent")?, &sandbox.root().join("agent"), &profile)?;
        configure(&sandbox, &format!("[harnesses.codex]\nexecutable = {:?}\n", codex.display().to_string()))?;
        let ended = doctor(&sandbox, &[])?;
        let told: Value = serde_json::from_str(&ended.stdout)?;
        let finding = named(&told, "sandbox.codex").first().copied().with_context(|| format!("{told:#}"))?;
        assert_eq!(finding["severity"], expected, "{finding:#}");
        assert_eq!(ended.code(), i32::from(!has_sandbox));
        ensure!(has_sandbox || finding["next"].to_string().contains("user namespaces"), "{finding:#}");
    }
    Ok(())
}

#[test]
fn only_jobs_that_may_reach_the_network_do() -> Result<()> {
    let steps = json!([{"shell": "echo x > probe.txt"}, {"message": "Done."}]);
    let stage = codex::Stage::playing(&steps)?;
    let target = format!("http://127.0.0.1:{}", stage.provider.port());
    let file = stage.sandbox.config();
    let text = fs::read_to_string(&file)?;
    let aim = |target: &str, more: &str| fs::write(&file, format!("{text}{more}[doctor]\nnetwork = {target:?}\n"));
    aim(&target, "")?;
    let probe =
        || -> Result<Value> { Ok(serde_json::from_str(&doctor(&stage.sandbox, &["codex", "--probe"])?.stdout)?) };
    let told = probe()?;
    for (id, says) in [
        ("probe.codex.write", "wrote in a write job"),
        ("probe.codex.readOnly", "wrote nothing"),
        ("probe.codex.write.network", "write jobs of codex reach http://127.0.0.1:"),
        ("probe.codex.readOnly.network", "read-only jobs of codex don't reach"),
        ("probe.codex.sessions", "nothing was added"),
    ] {
        let finding = named(&told, id).first().copied().with_context(|| format!("no {id}: {told:#}"))?;
        assert_eq!(finding["severity"], "ok", "{finding:#}");
        ensure!(finding["title"].to_string().contains(says), "{finding:#}");
    }

    // Nobody is there: nothing is known, and nothing is said to be in order.
    let (_holder, port) = codex::refusing_port()?;
    aim(&format!("http://127.0.0.1:{port}"), "")?;
    let told = probe()?;
    for id in ["probe.codex.write.network", "probe.codex.readOnly.network"] {
        assert_eq!(named(&told, id)[0]["severity"], "warning", "{told:#}");
    }
    Ok(())
}

#[test]
fn logins_are_seen_without_asking_anybody_and_settings_that_make_no_job_are_named() -> Result<()> {
    for agent in [Agent::Kimi, Agent::Opencode] {
        let mut stage = agents::Stage::playing(agent, &json!([{"message": "unreachable"}]))?;
        let name = agent.name();
        let look = |stage: &agents::Stage| -> Result<Value> {
            Ok(serde_json::from_str(&doctor(&stage.sandbox, &[name])?.stdout)?)
        };
        let harness = |told: &Value| named(told, &format!("harness.{name}"))[0]["title"].to_string();
        // A key: in kimi's own configuration, or in the variable that the person names.
        let told = look(&stage)?;
        ensure!(!harness(&told).contains("not logged in"), "{told:#}");
        assert_eq!(named(&told, &format!("settings.{name}"))[0]["severity"], "ok", "{told:#}");

        // Nothing to log in with.
        let own = stage.sandbox.home().join(".kimi-code");
        let login = if agent == Agent::Kimi {
            fs::write(own.join("config.toml"), "")?;
            own.join("credentials/kimi-code.json")
        } else {
            stage.sandbox.set("GATEWAY_KEY", "");
            stage.sandbox.home().join(".local/share/opencode/auth.json")
        };
        let told = look(&stage)?;
        ensure!(harness(&told).contains("not logged in"), "{told:#}");
        assert_eq!(named(&told, &format!("login.{name}")), Vec::<&Value>::new());

        // A login of its own, and what is left of one.
        let folder = login.parent().context("no folder")?;
        fs::create_dir_all(folder)?;
        for (contents, is_in) in
            [(r#"{"x":{"type":"oauth","refresh":"r","access":"a"}}"#, true), (r#"{"x":{"access":""}}"#, false)]
        {
            fs::write(&login, contents)?;
            let told = look(&stage)?;
            assert_eq!(!harness(&told).contains("not logged in"), is_in, "{told:#}");
            let finding = named(&told, &format!("login.{name}"))[0].clone();
            assert_eq!(finding["severity"], "ok", "{finding:#}");
            ensure!(folder.starts_with(&own) || finding["title"].to_string().contains("auth.json"), "{finding:#}");
        }
        // One that a job could not refresh: what stands there is no file, or no directory, of logins.
        if agent == Agent::Kimi {
            fs::remove_dir_all(folder)?;
            fs::write(folder, "")?;
        } else {
            fs::remove_file(&login)?;
            fs::create_dir(&login)?;
        }
        let told = look(&stage)?;
        let finding = named(&told, &format!("login.{name}"))[0];
        assert_eq!(finding["severity"], "warning", "{finding:#}");
        ensure!(finding["next"].to_string().contains("writable"), "{finding:#}");

        // What no job would be started with.
        let locked = if agent == Agent::Kimi { "hooks" } else { "permission" };
        configure_more(&stage.sandbox, &format!("[harnesses.{name}.config.{locked}]\nx = 1\n"))?;
        let told = look(&stage)?;
        let finding = named(&told, &format!("settings.{name}"))[0];
        assert_eq!(
            (&finding["severity"], &finding["detail"]),
            (&json!("error"), &json!("invalidConfig")),
            "{finding:#}"
        );
        ensure!(finding["title"].to_string().contains(&format!("`{locked}`")), "{finding:#}");
    }
    Ok(())
}

#[test]
fn with_no_harness_installed_people_are_told_what_to_install() -> Result<()> {
    let mut sandbox = Sandbox::new()?;
    sandbox.set("PATH", "/usr/bin:/bin");
    sandbox.set("SHELL", "/bin/false");
    let ended = doctor(&sandbox, &[])?;
    assert_eq!(ended.code(), 1, "{}", ended.stdout);
    let told: Value = serde_json::from_str(&ended.stdout)?;
    let finding = named(&told, "harness")[0];
    assert_eq!((&finding["severity"], &finding["title"]), (&json!("error"), &json!("no agent CLI is installed")));
    assert!(finding["next"].to_string().contains("npm install -g @openai/codex"), "{finding:#}");
    let repository = sandbox.filled("one")?;
    let refused = Editor::open(&sandbox, repository.path())?.refused("delegate", &json!({"brief": "Do it."}))?;
    assert_eq!(refused.reason(), "harnessNotFound");
    let next = refused.data.context("no data")?["next"].to_string();
    for install in ["npm install -g @openai/codex", "npm install -g @moonshot-ai/kimi-code"] {
        assert!(next.contains(install), "{next}");
    }

    // One that is there is enough to run jobs.
    configure(&sandbox, "[harnesses.mine]\ncommand = \"/bin/cat\"\n")?;
    let ended = doctor(&sandbox, &[])?;
    assert_eq!(ended.code(), 0, "{}", ended.stdout);
    let told: Value = serde_json::from_str(&ended.stdout)?;
    assert_eq!(named(&told, "harness.codex")[0]["severity"], "ok", "{told:#}");
    assert!(named(&told, "harness")[0]["title"].to_string().contains("jobs go to mine"), "{told:#}");
    assert_eq!(doctor(&sandbox, &["codex"])?.code(), 1, "who asks for it wants to use it");
    configure(&sandbox, "[defaults]\nharness = \"codex\"\n[harnesses.mine]\ncommand = \"/bin/cat\"\n")?;
    let told: Value = serde_json::from_str(&doctor(&sandbox, &[])?.stdout)?;
    let finding = named(&told, "harness")[0];
    assert_eq!(finding["severity"], "warning", "{told:#}");
    assert!(finding["next"].to_string().contains("or set [defaults] harness = \\\"mine"), "{told:#}");
    Ok(())
}

#[test]
fn settings_that_kimi_goes_on_without_are_told_by_the_doctor_and_by_the_job() -> Result<()> {
    let steps = json!([Agent::Kimi.write("a.txt", "a\n"), {"message": "Done."}]);
    let stage = agents::Stage::playing(Agent::Kimi, &steps)?;
    let own = stage.sandbox.home().join(".kimi-code/config.toml");
    let broken = fs::read_to_string(&own)? + "[thinking]\nenabled = \"hunter2hunter2\"\n";
    fs::write(&own, broken)?;
    let is_told = |told: &Value| told.to_string().contains("thinking.enabled");

    let ended = doctor(&stage.sandbox, &["kimi"])?;
    let findings: Value = serde_json::from_str(&ended.stdout)?;
    let finding = named(&findings, "settings.kimi")[0].clone();
    assert_eq!((&finding["severity"], is_told(&finding["title"])), (&json!("warning"), true), "{findings:#}");
    assert_eq!(ended.code(), 0, "its jobs run: {}", ended.stderr);
    let homes = stage.sandbox.pactify_home().join("probe");
    assert_eq!(fs::read_dir(&homes)?.count(), 0, "nothing of it stays");

    let repository = stage.repository()?;
    let mut editor = Editor::open(&stage.sandbox, repository.path())?;
    let job = stage.delegate(&mut editor, "Write it.", json!({}))?;
    let status = agents::finished(&mut editor, &job)?;
    assert_eq!((&status["outcome"], is_told(&status["notices"])), (&json!("succeeded"), true), "{status:#}");
    ensure!(!format!("{findings}{status}").contains("hunter2"), "names, and nothing that they hold");
    Ok(())
}

#[test]
fn a_person_who_has_kimi_alone_delegates_without_configuring_anything() -> Result<()> {
    let mut stage =
        agents::Stage::playing(Agent::Kimi, &json!([Agent::Kimi.write("a.txt", "a\n"), {"message": "Done."}]))?;
    let programs = stage.sandbox.root().join("programs");
    fs::create_dir(&programs)?;
    for (name, tool) in [("kimi", Tool::Kimi), ("node", Tool::Node24), ("rg", Tool::Ripgrep)] {
        symlink(tool.find()?, programs.join(name))?;
    }
    stage.sandbox.set("PATH", format!("{}:/usr/bin:/bin", programs.display()));
    stage.sandbox.set("SHELL", "/bin/false");
    configure(&stage.sandbox, "")?;
    let repository = stage.repository()?;
    let mut editor = Editor::open(&stage.sandbox, repository.path())?;
    let listed = editor.run("harnesses", &json!({}))?;
    let default = listed["harnesses"].as_array().into_iter().flatten().find(|view| view["default"] == true);
    assert_eq!(default.context("no default")?["name"], "kimi", "{listed:#}");
    let told = editor.run("doctor", &json!({}))?;
    assert_eq!(named(&told, "harness")[0]["title"], "jobs go to kimi when nobody names a harness", "{told:#}");

    let delegated = editor.run("delegate", &json!({"brief": "Write it."}))?;
    assert!(delegated["notices"].to_string().contains("kimi does this job, the first harness that was found: codex"));
    let status = agents::finished(&mut editor, delegated["jobId"].as_str().context("no jobId")?)?;
    assert_eq!((&status["harness"], &status["outcome"]), (&json!("kimi"), &json!("succeeded")), "{status:#}");
    Ok(())
}

#[test]
fn opencode_alone_is_found_and_does_the_jobs() -> Result<()> {
    let script = json!([Agent::Opencode.write("a.txt", "a\n"), {"message": "Done."}]);
    let mut stage = agents::Stage::playing(Agent::Opencode, &script)?;
    does_the_jobs_alone(&mut stage.sandbox, "opencode", &Tool::Opencode.find()?)
}

#[test]
fn codex_alone_is_found_and_does_the_jobs() -> Result<()> {
    let script = json!([{"edit": {"path": "a.txt", "content": "a\n"}}, {"message": "Done."}]);
    let mut stage = codex::Stage::playing(&script)?;
    does_the_jobs_alone(&mut stage.sandbox, "codex", &tools::codex()?)
}

/// Where the person's program lies on the search path, and nothing says where or that it is the one. (Which provider it
/// speaks to has to be said here: its own are on the internet.)
fn does_the_jobs_alone(sandbox: &mut Sandbox, name: &str, program: &Path) -> Result<()> {
    let programs = sandbox.root().join("programs");
    fs::create_dir(&programs)?;
    for (name, program) in [(name, program), ("rg", &Tool::Ripgrep.find()?)] {
        symlink(program, programs.join(name))?;
    }
    sandbox.set("PATH", format!("{}:/usr/bin:/bin", programs.display()));
    sandbox.set("SHELL", "/bin/false");
    let configuration = sandbox.home().join(".config/pactify/config.toml");
    let text = fs::read_to_string(&configuration)?;
    let lines: Vec<&str> = text.lines().filter(|line| !line.starts_with("executable")).collect();
    fs::write(&configuration, lines.join("\n"))?;
    let repository = sandbox.filled("one")?;
    let mut editor = Editor::open(sandbox, repository.path())?;
    let delegated = editor.run("delegate", &json!({"brief": "Write it."}))?;
    assert_eq!(delegated["harness"], name, "{delegated:#}");
    let status = agents::finished(&mut editor, delegated["jobId"].as_str().context("no jobId")?)?;
    assert_eq!((&status["outcome"], &status["changes"]["files"]), (&json!("succeeded"), &json!(1)), "{status:#}");
    Ok(())
}

#[test]
fn what_jobs_left_is_found_and_each_finding_says_what_to_do() -> Result<()> {
    let sandbox = scripted_sandbox()?;
    fs::create_dir(sandbox.home().join(".codex"))?;
    fs::write(sandbox.home().join(".codex/auth.json"), r#"{"tokens":{"refresh_token":"r1"}}"#)?;
    let repository = sandbox.filled("one")?;
    let mut editor = Editor::aside(&sandbox, Some(repository.path()))?;
    let job = editor.delegate(&brief(&json!([write("a.txt", "a\n"), "hang"])), &json!({}))?;
    editor.event(&job, "filesTouched")?;
    let told = editor.run("doctor", &json!({}))?;
    assert_eq!(named(&told, "logins.unsettled"), Vec::<&Value>::new(), "the job runs: {told:#}");

    editor.kill_host(&job)?;
    let home = sandbox.pactify_home();
    fs::set_permissions(home.join("jobs"), fs::Permissions::from_mode(0o755))?;
    fs::create_dir_all(home.join("applies"))?;
    fs::write(home.join(format!("applies/{job}.1.intent")), "")?;
    let told = editor.run("doctor", &json!({}))?;
    for (id, says) in
        [("home", "jobs"), ("jobs.lost", job.as_str()), ("applies", job.as_str()), ("logins.unsettled", "auth.json")]
    {
        let finding = named(&told, id).first().copied().with_context(|| format!("no {id}: {told:#}"))?;
        assert_eq!(finding["severity"], "warning", "{finding:#}");
        assert!(finding["title"].to_string().contains(says), "{finding:#}");
        assert!(!finding["next"].to_string().is_empty(), "{finding:#}");
    }
    fs::remove_file(home.join(format!("applies/{job}.1.intent")))?;
    editor.run("cancel", &json!({"jobId": job}))?;
    let told = editor.run("doctor", &json!({}))?;
    for id in ["jobs.lost", "logins.unsettled"] {
        assert_eq!(named(&told, id), Vec::<&Value>::new(), "what it said to do helped: {told:#}");
    }
    Ok(())
}
