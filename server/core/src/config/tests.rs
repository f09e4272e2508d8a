//! What a configuration file says, and what is refused in it.

use super::*;

#[test]
fn an_empty_file_is_the_default_configuration() {
    let settings = Settings::parse("").unwrap();
    assert_eq!(settings.harness, None);
    assert_eq!(settings.limits, Limits { total_seconds: 3600, stall_seconds: 600 });
    assert_eq!(settings, Settings::default());
}

#[test]
fn a_gateway_is_a_few_lines() {
    let settings = Settings::parse(
        r#"
        [harnesses.codex]
        model = "gpt-5.5"
        environment = ["GATEWAY_KEY"]
        [harnesses.codex.config]
        model_provider = "gateway"
        [harnesses.codex.config.model_providers.gateway]
        base_url = "https://llm.example.com/v1"
        env_key = "GATEWAY_KEY"
        "#,
    )
    .unwrap();
    let codex = settings.harness_settings(&registry::default_name());
    assert_eq!(codex.environment, ["GATEWAY_KEY"]);
    assert_eq!(codex.config["model_provider"].as_str(), Some("gateway"));
    let recorded = serde_json::to_string(&codex).unwrap();
    assert_eq!(serde_json::from_str::<HarnessSettings>(&recorded).unwrap(), codex);
}

#[test]
fn a_repository_has_settings_in_all_its_checkouts() {
    let text = "[defaults]\nlfs = \"pointers\"\n[repositories.\"/r\"]\nsetup = \" npm ci \"\n\
        [repositories.\"/linked\"]\nlfs = \"contents\"\nverify = [\" make check \", \"\"]\n[repositories.\"/none\"]\nsetup = \"\"";
    let settings = Settings::parse(text).unwrap();
    let path = |path: &str| AbsPath::new(path).unwrap();
    for (worktree, common, setup, lfs) in [
        ("/r", "/r/.git", Some("npm ci"), LfsPolicy::Pointers),
        ("/elsewhere", "/r/.git", Some("npm ci"), LfsPolicy::Pointers),
        ("/linked", "/r/.git", None, LfsPolicy::Contents),
        ("/none", "/none/.git", Some(""), LfsPolicy::Pointers),
        ("/other", "/other/.git", None, LfsPolicy::Pointers),
    ] {
        let common_dir = path(common);
        let record = RepositoryRecord {
            worktree: path(worktree),
            git_dir: common_dir.clone(),
            common_dir,
            prefix: String::new(),
        };
        let verify = if worktree == "/linked" { vec!["make check".to_owned()] } else { Vec::new() };
        let expected = RepositorySettings { setup: setup.map(str::to_owned), lfs, verify };
        assert_eq!(settings.repository(&record), expected, "{worktree}");
    }
}

#[test]
fn a_person_adds_a_program_of_their_own() {
    let text = r#"
        [defaults]
        harness = "mine"
        [harnesses.mine]
        command = "my-agent"
        args = ["--cd", "{root}", "--lang={lang}", "{prompt}"]
        read-only-args = ["--plan", "{prompt}"]
        resume-args = ["--resume", "{session}"]
        env = { MY_AGENT_HOME = "/opt/agent" }
        environment = ["MY_KEY"]
        protocol = "cli"
        output = "jsonl"
        "#;
    let settings = Settings::parse(text).unwrap().speaking("de_DE.UTF-8");
    let names: Vec<_> = settings.known_harnesses().iter().map(|(harness, _)| harness.name().to_string()).collect();
    assert_eq!((names[0].as_str(), names.last().map(String::as_str)), ("codex", Some("mine")));
    assert_eq!(names.len(), registry::all().len() + 1);
    let name = settings.harness.clone().unwrap();
    let mine = settings.harness_settings(&name);
    assert_eq!(mine.own.as_ref().unwrap().lang, "de");
    let found = registry::find(&name, &mine).unwrap();
    assert_eq!(found.modes(), [Access::Write, Access::ReadOnly]);
    let recorded = serde_json::to_string(&mine).unwrap();
    assert_eq!(serde_json::from_str::<HarnessSettings>(&recorded).unwrap(), mine, "{recorded}");
}

#[test]
fn a_person_adds_an_agent_that_speaks_acp() {
    let text = "[harnesses.gemini]\ncommand = \"gemini\"\nargs = [\"--acp\"]\nprotocol = \"acp\"\nmodel = \"pro\"\n";
    for (more, modes) in [
        ("", &[Access::Write][..]),
        // Among `args` may be one that lets it write.
        ("read-only-mode = \"plan\"", &[Access::Write]),
        ("read-only-mode = \"plan\"\nread-only-args = [\"--acp\"]", &[Access::Write, Access::ReadOnly]),
        ("read-only-args = [\"--acp\", \"--plan\"]", &[Access::Write, Access::ReadOnly]),
    ] {
        let settings = Settings::parse(&format!("{text}{more}")).unwrap();
        let name: HarnessName = "gemini".parse().unwrap();
        let gemini = settings.harness_settings(&name);
        assert_eq!(gemini.model.as_deref(), Some("pro"));
        let found = registry::find(&name, &gemini).unwrap();
        assert_eq!((found.modes(), found.about().can_ask), (modes, true), "{more}");
        let recorded = serde_json::to_string(&gemini).unwrap();
        assert_eq!(serde_json::from_str::<HarnessSettings>(&recorded).unwrap(), gemini, "{recorded}");
    }
}

#[test]
fn mistakes_in_a_program_of_ones_own_are_named() {
    for (keys, named) in [
        ("", "\"mine\" is not a harness of this build (codex, "),
        ("environment = [\"X\"]", "needs a `command`"),
        ("args = []", "needs a `command`"),
        ("command = \"./agent\"", "command: ./agent is not absolute"),
        ("command = \"agent\"\nmodel = \"m\"", "model: this key belongs"),
        ("command = \"agent\"\nexecutable = \"/x\"", "executable: this key belongs"),
        ("command = \"agent\"\nconfig.x = 1", "config: this key belongs"),
        ("command = \"agent\"\nargs = [\"{promt}\"]", "args: {promt} is no placeholder"),
        ("command = \"agent\"\nargs = [\"{session}\"]", "args: {session} belongs into `resume-args`"),
        ("command = \"agent\"\nresume-args = [\"-c\"]", "resume-args: {session} must be among them"),
        ("command = \"agent\"\nresume-args = [\"{session}\"]", "output = \"jsonl\""),
        ("command = \"agent\"\nenv = { GIT_DIR = \"/x\" }", "env: GIT_DIR steers git"),
        ("command = \"agent\"\nenv = { \"A=B\" = \"\" }", "env: \"A=B\" is not a variable"),
        ("command = \"agent\"\nprotocol = \"telnet\"", "telnet"),
        ("command = \"agent\"\noutput = \"xml\"", "xml"),
        ("command = \"agent\"\nmode = \"ask\"", "mode: a program of this `protocol` has no such key"),
        ("command = \"agent\"\nprotocol = \"acp\"\noutput = \"text\"", "output: a program of this"),
        ("command = \"agent\"\nprotocol = \"acp\"\nargs = [\"{prompt}\"]", "args: brief and session"),
    ] {
        let failure = Settings::parse(&format!("[harnesses.mine]\n{keys}")).unwrap_err();
        assert!(failure.message.contains(named), "{keys}: {}", failure.message);
    }
    let failure = Settings::parse("[harnesses.codex]\ncommand = \"mine\"").unwrap_err();
    assert!(failure.message.contains("codex is built in"), "{}", failure.message);
}

#[test]
fn mistakes_are_named() {
    for (text, named) in [
        ("limts = 1", "limts"),
        ("[limits]\ntotal-seconds = 0", "0 seconds"),
        ("[limits]\nrunning-jobs = 0", "running-jobs"),
        ("[defaults]\nharness = \"codx\"", "codx"),
        ("[harnesses.codex]\nexecutable = \"codex\"", "codex is not absolute"),
        ("[harnesses.codex]\nenvironment = [\"A=B\"]", "A=B"),
        ("[harnesses.\"../x\"]", "../x"),
        ("[limits]\nsetup-seconds = 0", "setup-seconds"),
        ("[limits]\nanswer-seconds = 0", "answer-seconds"),
        ("[limits]\nmax-tokens = 0", "max-tokens"),
        ("[limits]\nmax-cost = 0.0", "max-cost"),
        ("[limits]\nmax-cost = nan", "max-cost"),
        ("[limits]\nverify-seconds = 0", "verify-seconds"),
        ("[repositories.\"/r\"]\nverify = [\"a\\nb\"]", "one line"),
        ("[defaults]\npermissions = \"yolo\"", "yolo"),
        ("[repositories.here]\nsetup = \"x\"", "here is not absolute"),
        ("[repositories.\"/r\"]\nsetup = \"a\\u0007\"", "cannot be seen"),
        ("[defaults]\nlfs = \"some\"", "some"),
        ("[doctor]\nnetwork = \"example.com\"", "[doctor] network"),
    ] {
        let failure = Settings::parse(text).unwrap_err();
        assert!(failure.message.contains(named), "{text}: {}", failure.message);
    }
}

#[test]
fn a_broken_line_is_located_and_not_quoted() {
    let failure = Settings::parse("# keys\n[harnesses.mine]\nenv = { GATEWAY_KEY = \"geheim-4711 }\n").unwrap_err();
    assert!(failure.message.contains("line 3, column "), "{failure:?}");
    assert!(!failure.message.contains("geheim-4711"), "{failure:?}");
}
