//! What is run, written and linked: golden, because every word of it was measured against the real programs.

use pactify_core::harness::kimi::Kimi;
use pactify_core::harness::opencode::Opencode;
use pactify_core::harness::{Harness, Launch, PersonFile, Request};
use pactify_core::job::access::Access;
use pactify_core::permission::Policy;
use pactify_core::{AbsPath, Failure, FailureCode};

use crate::asked::{Asked, launch, path};

/// What a person has in kimi's own `config.toml`.
const OWN: &str = r#"
default_model = "k"
telemetry = true
[providers."managed:kimi-code"]
type = "kimi"
oauth = { storage = "file", key = "oauth/kimi-code" }
[providers.gateway]
type = "openai"
api_key = "sk-of-the-person"
custom_headers = { X-Team = "team-secret" }
[models.k]
provider = "managed:kimi-code"
model = "kimi-for-coding"
max_context_size = 262144
[[hooks]]
event = "PreToolUse"
command = "rm -rf /"
[mcp.servers.x]
command = "evil"
"#;

const PROVIDER: &str = r#"
    [harnesses.opencode]
    model = "gateway/big"
    [harnesses.opencode.config.provider.gateway]
    npm = "@ai-sdk/openai-compatible"
    options = { baseURL = "https://llm.example.com/v1", apiKey = "{env:GATEWAY_KEY}" }
    models.big.name = "Big"
"#;

pub(crate) fn asked(harness: &dyn Harness, configuration: &str, version: &'static str) -> Asked {
    Asked { version: Some(version), ..Asked::of(harness.name().as_str(), configuration) }
}

/// The launch, with the files in full.
fn shown(launch: &Launch) -> String {
    let files = launch.files.iter().map(|file| format!("--- {}\n{}\n", file.path, file.contents));
    format!("{launch:#?}\n{}", files.collect::<String>())
}

fn kimi(asked: &Asked, access: Access) -> Result<Launch, Failure> {
    let (script, node) = (path("/usr/lib/node_modules/@moonshot-ai/kimi-code/dist/main.mjs"), path("/usr/bin/node"));
    let own = [file("config.toml", OWN)];
    let request = Request { executable: &script, interpreter: Some(&node), person_files: &own, ..asked.request() };
    launch(&Kimi, &request, access)
}

pub(crate) fn file(name: &'static str, text: &str) -> PersonFile {
    PersonFile { name, directory: path("/home/u/own"), text: text.to_owned() }
}

pub(crate) fn contents<'l>(launch: &'l Launch, end: &str) -> Option<&'l str> {
    let found = launch.files.iter().find(|file| file.path.as_path().ends_with(end))?;
    Some(&found.contents)
}

#[test]
fn a_write_job_of_kimi() {
    insta::assert_snapshot!(shown(&kimi(&asked(&Kimi, "", "2.1.0"), Access::Write).unwrap()));
}

#[test]
fn a_read_only_job_of_kimi() {
    let asked = Asked { model: Some("other"), ..asked(&Kimi, "", "2.1.0") };
    insta::assert_snapshot!(shown(&kimi(&asked, Access::ReadOnly).unwrap()));
}

#[test]
fn a_write_job_of_opencode() {
    let asked = asked(&Opencode, PROVIDER, "1.18.33");
    insta::assert_snapshot!(shown(&launch(&Opencode, &asked.request(), Access::Write).unwrap()));
}

#[test]
fn a_read_only_job_of_opencode() {
    let asked = asked(&Opencode, "", "1.18.33");
    insta::assert_snapshot!(shown(&launch(&Opencode, &asked.request(), Access::ReadOnly).unwrap()));
}

#[test]
fn a_cloud_is_logged_in_to_only_by_jobs_that_use_it() {
    let bedrock = ["AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"];
    for (configuration, model, expected) in [
        ("", None, &[][..]),
        (PROVIDER, None, &["GATEWAY_KEY"]),
        ("", Some("amazon-bedrock/claude"), &bedrock),
        ("[harnesses.opencode]\nmodel = \"amazon-bedrock/claude\"", None, &bedrock),
        ("[harnesses.opencode.config]\nmodel = \"google-vertex/gemini\"", None, &["GOOGLE_APPLICATION_CREDENTIALS"]),
        ("[harnesses.opencode.config.provider.gitlab]", None, &["GITLAB_TOKEN"]),
        ("[harnesses.opencode.config]\nmodel = \"amazon-bedrock/x\"", Some("openai/amazon-bedrock/x"), &[]),
    ] {
        for version in ["1.18.33", "2.0.26"] {
            let asked = Asked { model, ..asked(&Opencode, configuration, version) };
            let launch = launch(&Opencode, &asked.request(), Access::Write).unwrap();
            assert_eq!(launch.keep_env, expected, "{configuration} {model:?} {version}");
        }
    }
}

#[test]
fn where_somebody_is_asked_opencode_has_no_sub_agents() {
    let asked = asked(&Opencode, "", "1.18.33");
    let request = Request { permissions: Policy::Ask, ..asked.request() };
    let launch = launch(&Opencode, &request, Access::Write).unwrap();
    let config: serde_json::Value = serde_json::from_str(&launch.files[0].contents).unwrap();
    assert_eq!((&config["permission"]["bash"], &config["permission"]["task"]), (&"ask".into(), &"deny".into()));
    assert_eq!(config["experimental"]["continue_loop_on_deny"], true);
}

#[test]
fn what_a_promise_hangs_on_cannot_be_set() {
    for (harness, setting, named) in [
        (&Kimi as &dyn Harness, "[harnesses.kimi.config.tools]\nenabled = [\"Bash\"]", "`tools`"),
        (&Kimi, "[[harnesses.kimi.config.hooks]]\nevent = \"x\"", "`hooks`"),
        (&Kimi, "[harnesses.kimi.config]\ntelemetry = true", "`telemetry`"),
        (&Kimi, "[harnesses.kimi.config]\nloop_control = 5", "`loop_control`"),
        (&Opencode, "[harnesses.opencode.config]\nexperimental = 5", "`experimental`"),
        (&Kimi, "[harnesses.kimi.config.providers.x]\napi_key = \"sk-x\"", "`providers.x.api_key`"),
        (&Opencode, "[harnesses.opencode.config.permission]\nbash = \"allow\"", "`permission`"),
        (&Opencode, "[[harnesses.opencode.config.permissions]]\naction = \"shell\"", "`permissions`"),
        (&Opencode, "[harnesses.opencode.config.mcp.x]\ncommand = [\"x\"]", "`mcp`"),
        (&Opencode, "[harnesses.opencode.config]\nplugin = [\"x\"]", "`plugin`"),
        (&Opencode, "[harnesses.opencode.config.provider.x.options]\napiKey = \"sk-x\"", "`provider.x.options.apiKey`"),
        (
            &Opencode,
            "[harnesses.opencode.config.provider.x.options]\nheaders = [\"Authorization: Bearer x\"]",
            "`provider.x.options.headers`",
        ),
        (
            &Opencode,
            "[harnesses.opencode.config.provider.x.options.headers]\nX-Team = \"x\"",
            "`provider.x.options.headers.X-Team`",
        ),
    ] {
        let asked = asked(harness, setting, "1.0.0");
        let failure = launch(harness, &asked.request(), Access::Write).unwrap_err();
        assert_eq!(failure.code, FailureCode::InvalidConfig, "{setting}");
        assert!(failure.message.contains(named) && !failure.message.contains("sk-x"), "{setting}: {failure:?}");
        let beforehand = harness.check_settings(asked.request().settings, Access::Write);
        assert_eq!(beforehand, Err(failure), "{setting}: said beforehand");
    }
}

#[test]
fn what_the_person_keeps_secret_is_known_to_be() {
    let asked = asked(&Kimi, "", "2.1.0");
    let own = [file("config.toml", OWN)];
    let request = Request { person_files: &own, ..asked.request() };
    let secrets = Kimi.secrets(&request);
    assert!(secrets.contains(&"sk-of-the-person".to_owned()) && !secrets.contains(&"kimi".to_owned()), "{secrets:?}");
    let own = [file("config.toml", "api_key = \"sk-x")];
    let broken = Request { person_files: &own, ..asked.request() };
    let failure = launch(&Kimi, &broken, Access::Write).unwrap_err();
    assert!(failure.message.contains("no TOML") && !failure.message.contains("sk-x"), "{failure:?}");
}

#[test]
fn a_write_job_of_opencode_2() {
    let asked = asked(&Opencode, PROVIDER, "2.0.26");
    insta::assert_snapshot!(shown(&launch(&Opencode, &asked.request(), Access::Write).unwrap()));
}

#[test]
fn an_opencode_of_another_kind_has_a_login_of_its_own_and_no_read_only_mode() {
    for (version, is_first) in [("1.18.33", true), ("1.99.0", true), ("2.0.26", false), ("10.0.0", false)] {
        let asked = asked(&Opencode, "", version);
        let planned = launch(&Opencode, &asked.request(), Access::ReadOnly);
        assert_eq!(planned.is_ok(), is_first, "{version}");
        let code = planned.err().map(|failure| failure.code);
        assert_eq!(code.is_some(), code == Some(FailureCode::HarnessIncompatible));
        assert!(launch(&Opencode, &asked.request(), Access::Write).is_ok(), "{version}");
        assert_eq!(Opencode.kept_login(Some(version)).is_some(), !is_first, "{version}");
        assert_eq!(Opencode.modes_of(Some(version)).contains(&Access::ReadOnly), is_first, "{version}");
    }
    let asked = asked(&Opencode, "", "2.0.26");
    for request in
        [Request { permissions: Policy::Ask, ..asked.request() }, Request { with_user_config: true, ..asked.request() }]
    {
        let failure = launch(&Opencode, &request, Access::Write).unwrap_err();
        assert_eq!(failure.code, FailureCode::HarnessIncompatible, "{failure:?}");
    }
}

#[test]
fn nothing_that_opencode_2_is_known_to_ask_is_asked() {
    let asked = asked(&Opencode, "", "2.0.26");
    let launch = launch(&Opencode, &asked.request(), Access::Write).unwrap();
    let config: serde_json::Value = serde_json::from_str(contents(&launch, "opencode.json").unwrap()).unwrap();
    let rules = config["permissions"].as_array().unwrap();
    assert!(rules.iter().all(|rule| rule["effect"] != "ask" && rule["resource"] == "*"), "{rules:?}");
    let effect = |action: &str| rules.iter().rfind(|rule| rule["action"] == action).map(|rule| &rule["effect"]);
    for (action, expected) in [
        ("shell", "allow"),
        ("subagent", "allow"),
        ("edit", "allow"),
        ("external_directory", "deny"),
        ("question", "deny"),
    ] {
        assert_eq!(effect(action), Some(&expected.into()), "{action}");
    }
    assert_eq!(config.get("permission"), None, "that is version 1's");
}

#[test]
fn a_kimi_that_is_a_script_needs_node_and_another_one_does_not() {
    let interpreter = |executable: &str| Kimi.interpreter(&AbsPath::new(executable).unwrap());
    assert!(interpreter("/p/node_modules/@moonshot-ai/kimi-code/dist/main.mjs").is_some());
    assert!(interpreter("/opt/kimi").is_none());
    assert_eq!(Kimi.parse_version("2.1.0\n").as_deref(), Some("2.1.0"));
    assert_eq!(Opencode.parse_version("opencode\n"), None);
}
