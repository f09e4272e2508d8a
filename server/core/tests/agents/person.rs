//! What a job takes of the person's own configuration, and what stays behind whatever that says.

use pactify_core::harness::codex::Codex;
use pactify_core::harness::kimi::Kimi;
use pactify_core::harness::opencode::Opencode;
use pactify_core::harness::{Harness, Launch, LinkKind, PersonFile, Request, UserConfig, registry};
use pactify_core::job::access::Access;
use pactify_core::permission::Policy;
use pactify_core::{Failure, FailureCode};
use serde_json::{Value, json};

use super::plan::{asked, contents, file};
use crate::asked::{Asked, launch, path};

const OF_KIMI: &str = r#"
default_permission_mode = "yolo"
telemetry = true
[tools]
enabled = ["Bash", "Read"]
[[hooks]]
event = "PreToolUse"
command = "lint"
[providers.gateway]
type = "openai"
api_key = "sk-of-the-person"
"#;

const OF_CODEX: &str = r#"
model = "their-model"
model_provider = "gateway"
sandbox_mode = "danger-full-access"
approval_policy = "on-request"
notify = ["beep"]
agents = 3
[model_providers.gateway]
base_url = "https://llm.example.com/v1"
wire_api = "responses"
experimental_bearer_token = "sk-of-the-person"
[features]
hooks = true
web_search_request = true
[sandbox_workspace_write]
writable_roots = ["/"]
[mcp_servers.theirs]
command = "server"
env = { SERVER_CODE = "code-of-the-person" }
[projects."/home/u"]
trust_level = "trusted"
"#;

const OF_OPENCODE: &str = r#"{
  // theirs
  "$schema": "https://opencode.ai/config.json",
  "model": "gateway/theirs",
  "permission": {"*": "allow", "external_directory": "allow"},
  "plugin": ["evil"],
  "share": "auto",
  "mcp": {"theirs": {"type": "local", "command": ["server"]}},
  "instructions": ["~/rules.md", "docs/*.md"],
  "disabled_providers": ["openai"],
  "agent": {
    "build": {"model": "gateway/agents", "permission": {"bash": "ask"}, "disable": true, "prompt": "{file:./build.md}"},
    "mine": {"description": "x", "tools": {"write": true}},
  },
  "provider": {"gateway": {"options": {"apiKey": "sk-of-the-person", "headers": {"X-Team": "{env:TEAM_KEY}"}}}},
}"#;

fn planned(
    harness: &dyn Harness,
    asked: &Asked,
    own: &[PersonFile],
    access: Access,
) -> Result<(Launch, Vec<String>, Vec<String>), Failure> {
    let node = path("/usr/bin/node");
    let request = Request { with_user_config: true, person_files: own, interpreter: Some(&node), ..asked.request() };
    let left_out = harness.left_out(&request, access)?;
    Ok((launch(harness, &request, access)?, left_out, harness.secrets(&request)))
}

fn table(launch: &Launch) -> toml::Table {
    contents(launch, "config.toml").unwrap().parse().unwrap()
}

fn at<'v>(table: &'v toml::Table, way: &[&str]) -> Option<&'v toml::Value> {
    let (first, rest) = way.split_first()?;
    rest.iter().try_fold(table.get(*first)?, |value, key| value.get(key))
}

#[test]
fn in_read_only_jobs_only_a_sandbox_lets_it_in() {
    for (name, write, is_taken_in_read_only) in [
        ("codex", UserConfig::Taken, true),
        ("kimi", UserConfig::Taken, false),
        ("opencode", UserConfig::Taken, false),
        ("agy", UserConfig::Taken, false),
    ] {
        let harness = registry::built_in(&name.parse().unwrap()).unwrap();
        assert_eq!(harness.user_config(Access::Write), write, "{name}");
        let read_only = harness.user_config(Access::ReadOnly);
        assert_eq!(matches!(read_only, UserConfig::Refused(_)), !is_taken_in_read_only, "{name}: {read_only:?}");
        assert_eq!(harness.about().has_sandbox, is_taken_in_read_only, "{name}");
    }
}

#[test]
fn a_write_job_of_kimi_has_all_but_who_is_asked() {
    let own = [file("config.toml", OF_KIMI), file("mcp.json", r#"{"env": {"TOKEN": "mcp-of-the-person"}}"#)];
    let (launch, left_out, secrets) = planned(&Kimi, &asked(&Kimi, "", "2.1.0"), &own, Access::Write).unwrap();
    let config = table(&launch);
    assert!(at(&config, &["hooks"]).is_some() && at(&config, &["tools", "enabled"]).is_some(), "{config}");
    assert_eq!((at(&config, &["telemetry"]), at(&config, &["default_permission_mode"])), (Some(&false.into()), None));
    assert_eq!(left_out, ["default_permission_mode", "telemetry"]);
    assert_eq!(contents(&launch, "kimi/mcp.json"), Some(r#"{"env": {"TOKEN": "mcp-of-the-person"}}"#));
    for secret in ["sk-of-the-person", "mcp-of-the-person"] {
        assert!(secrets.contains(&secret.to_owned()), "{secrets:?}");
    }
    for planned in launch.files.iter().filter(|file| file.contents.contains("of-the-person")) {
        let is_private = Kimi.about().private_files.iter().any(|private| planned.path.as_path().ends_with(private));
        assert!(is_private, "{} stays", planned.path);
    }
}

#[test]
fn a_job_of_codex_has_all_but_what_its_sandbox_rests_on() {
    let own = [file("config.toml", OF_CODEX), file("AGENTS.md", "Be brief.")];
    for (access, has_servers) in [(Access::Write, true), (Access::ReadOnly, false)] {
        let (launch, left_out, secrets) = planned(&Codex, &asked(&Codex, "", "0.171.0"), &own, access).unwrap();
        let config = table(&launch);
        assert_eq!(at(&config, &["model"]), Some(&"their-model".into()));
        assert_eq!(at(&config, &["features", "web_search_request"]), Some(&true.into()));
        assert_eq!(at(&config, &["sandbox_mode"]), Some(&"read-only".into()));
        assert_eq!(at(&config, &["approval_policy"]), Some(&"never".into()));
        assert_eq!(at(&config, &["features", "hooks"]), Some(&false.into()));
        assert_eq!(at(&config, &["sandbox_workspace_write", "writable_roots"]), None);
        assert_eq!(at(&config, &["projects", "/home/u"]), None);
        assert_eq!(at(&config, &["agents", "enabled"]), Some(&false.into()));
        assert_eq!(at(&config, &["mcp_servers", "theirs"]).is_some(), has_servers);
        let mut expected = vec![
            "sandbox_mode",
            "approval_policy",
            "notify",
            "agents",
            "features.hooks",
            "sandbox_workspace_write",
            "projects",
        ];
        expected.extend((!has_servers).then_some("mcp_servers"));
        expected.sort_unstable();
        let mut left_out = left_out;
        left_out.sort();
        assert_eq!(left_out, expected);
        assert!(secrets.contains(&"sk-of-the-person".to_owned()), "{secrets:?}");
        assert!(secrets.contains(&"code-of-the-person".to_owned()), "{secrets:?}");
        assert_eq!(contents(&launch, "home/AGENTS.md"), Some("Be brief."));
        assert!(Codex.about().private_files.contains(&"config.toml"));
    }
}

#[test]
fn what_pactify_is_told_of_codex_wins_over_codex_s_own_file() {
    let asked = asked(&Codex, "[harnesses.codex.config]\nmodel = \"pactifys-model\"", "0.171.0");
    let (launch, ..) = planned(&Codex, &asked, &[file("config.toml", OF_CODEX)], Access::Write).unwrap();
    assert_eq!(at(&table(&launch), &["model"]), Some(&"pactifys-model".into()));
}

#[test]
fn a_write_job_of_opencode_has_all_but_permissions_and_plugins() {
    let own = [file("opencode/opencode.jsonc", OF_OPENCODE), file("opencode/AGENTS.md", "Be brief.")];
    let plain = asked(&Opencode, "", "1.18.33");
    let (launch, left_out, secrets) = planned(&Opencode, &plain, &own, Access::Write).unwrap();
    let config: Value = serde_json::from_str(contents(&launch, "opencode.json").unwrap()).unwrap();
    assert_eq!(config["permission"]["external_directory"], "deny");
    assert_eq!(
        (&config["permission"]["*"], &config["plugin"], &config["share"]),
        (&Value::Null, &Value::Null, &json!("disabled"))
    );
    assert_eq!(
        config["agent"],
        json!({
            "build": {"model": "gateway/agents", "prompt": "{file:/home/u/own/opencode/./build.md}"},
            "mine": {"description": "x"},
        })
    );
    assert_eq!((&config["model"], &config["small_model"]), (&json!("gateway/theirs"), &json!("gateway/theirs")));
    assert_eq!(config["instructions"], json!(["/home/u/rules.md", "docs/*.md"]));
    assert_eq!(config["disabled_providers"], json!(["openai", "opencode"]));
    assert_eq!(config["mcp"]["theirs"]["command"], json!(["server"]));
    assert_eq!(
        left_out,
        ["permission", "plugin", "share", "agent.build.permission", "agent.build.disable", "agent.mine.tools"]
    );
    assert!(launch.keep_env.contains(&"TEAM_KEY".to_owned()), "{:?}", launch.keep_env);
    assert!(secrets.contains(&"sk-of-the-person".to_owned()), "{secrets:?}");
    assert_eq!(contents(&launch, "opencode/AGENTS.md"), Some("Be brief."));
    let sessions = launch.env.iter().find(|(name, _)| name == "OPENCODE_DB").map(|(_, place)| place.as_str());
    assert_eq!(sessions, Some("/home/u/.pactify/jobs/j/home/sessions/opencode.db"));
    let link = launch.links.iter().find(|link| link.kind == LinkKind::Shared).unwrap();
    assert_eq!(link.target.to_string(), "/home/u/.local/share/opencode", "they are the person's own");

    let named = Asked { model: Some("gateway/big"), ..plain };
    let (launch, ..) = planned(&Opencode, &named, &own, Access::Write).unwrap();
    let config: Value = serde_json::from_str(contents(&launch, "opencode.json").unwrap()).unwrap();
    assert_eq!((&config["model"], &config["agent"]["build"]["model"]), (&json!("gateway/big"), &Value::Null));
}

#[test]
fn what_is_a_table_is_never_replaced_by_something_else() {
    for (setting, named) in
        [("provider = \"x\"", "`provider`"), ("provider.gateway.options = 5", "`provider.gateway.options`")]
    {
        let asked = asked(&Opencode, &format!("[harnesses.opencode.config]\n{setting}"), "1.18.33");
        let own = [file("opencode/opencode.json", OF_OPENCODE)];
        let failure = planned(&Opencode, &asked, &own, Access::Write).unwrap_err();
        assert_eq!(failure.code, FailureCode::InvalidConfig, "{setting}");
        assert!(failure.message.contains(&format!("{named} must be a table")), "{setting}: {failure:?}");
    }
}

#[test]
fn where_somebody_is_asked_the_tools_of_their_servers_are_asked_about() {
    let asked = asked(&Opencode, "", "1.18.33");
    let own = [file("opencode/opencode.json", "{}")];
    let request = Request { permissions: Policy::Ask, with_user_config: true, person_files: &own, ..asked.request() };
    let launch = launch(&Opencode, &request, Access::Write).unwrap();
    let config: Value = serde_json::from_str(contents(&launch, "opencode.json").unwrap()).unwrap();
    let permission = config["permission"].as_object().unwrap();
    // The last one that fits wins.
    assert_eq!(permission.iter().next(), Some((&"*".to_owned(), &json!("ask"))));
    assert_eq!(
        (&permission["grep"], &permission["bash"], &permission["task"]),
        (&json!("allow"), &json!("ask"), &json!("deny"))
    );
}

#[test]
fn a_file_that_cannot_be_read_is_refused_without_quoting_it() {
    for (harness, name, text) in [
        (&Codex as &dyn Harness, "config.toml", "key = \"sk-x"),
        (&Kimi, "config.toml", "key = \"sk-x"),
        (&Opencode, "opencode/opencode.json", "{\"key\": \"sk-x\""),
        (&Opencode, "opencode/opencode.json", "[\"sk-x\"]"),
    ] {
        let failure = planned(harness, &asked(harness, "", "1.0.0"), &[file(name, text)], Access::Write).unwrap_err();
        assert_eq!(failure.code, FailureCode::InvalidConfig, "{name}");
        assert!(!failure.message.contains("sk-x"), "{failure:?}");
    }
}
