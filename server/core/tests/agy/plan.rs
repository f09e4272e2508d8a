//! What is started, and which version is not.

use pactify_core::FailureCode;
use pactify_core::harness::{Launch, Stdin};
use pactify_core::job::access::Access;
use serde_json::{Value, json};

use super::agy;
use super::asked::{Asked, session};

fn file<'l>(launch: &'l Launch, end: &str) -> Option<&'l str> {
    launch.files.iter().find(|file| file.path.as_path().ends_with(end)).map(|file| file.contents.as_str())
}

#[test]
fn a_write_job_has_every_permission_and_a_private_home() {
    let asked =
        Asked { model: Some("gemini-3-pro"), resume: session("c-1"), ..agy("config.modelProvider = \"gemini\"") };
    let launch = asked.plan(Access::Write).unwrap();
    let args = "--input-format stream-json --output-format stream-json --print-timeout 240h --gemini_dir=/j/a home/gemini \
                --add-dir /j/tree --dangerously-skip-permissions --disable-slash-commands --model gemini-3-pro --conversation c-1";
    assert_eq!(launch.args.join(" "), args);
    assert_eq!(launch.stdin, Stdin::Driver, "the task is no argument");
    assert!(launch.env.contains(&("AGY_CLI_DISABLE_AUTO_UPDATE".to_owned(), "T".to_owned())));
    assert_eq!(file(&launch, "antigravity-cli/settings.json"), Some("{\"modelProvider\":\"gemini\"}"));
    assert_eq!(file(&launch, "config/hooks.json"), None);
    let link = &launch.links[0];
    assert_eq!(link.at.to_string(), "/j/a home/gemini/antigravity-cli/antigravity-oauth-token");
    assert_eq!(link.target.to_string(), "/home/u/.gemini/antigravity-cli/antigravity-oauth-token");
}

#[test]
fn with_the_person_s_configuration_it_works_in_their_home_and_writes_nothing_there() {
    let with = |keys| Asked { with_user_config: true, ..agy(keys) };
    let launch = with("").plan(Access::Write).unwrap();
    assert!(!launch.args.iter().any(|arg| arg.starts_with("--gemini_dir")), "{:?}", launch.args);
    assert!(launch.args.contains(&"--dangerously-skip-permissions".to_owned()));
    assert!(launch.files.is_empty() && launch.links.is_empty());
    let refused = with("config.modelProvider = \"gemini\"").plan(Access::Write).unwrap_err();
    assert_eq!(refused.code, FailureCode::InvalidConfig);
    assert!(with("").plan(Access::ReadOnly).is_err(), "it would have no hook");
}

#[test]
fn a_read_only_job_has_plan_mode_exact_commands_and_a_hook() {
    let launch = agy("").plan(Access::ReadOnly).unwrap();
    assert!(launch.args.join(" ").ends_with("--add-dir /j/tree --mode plan"), "{:?}", launch.args);
    assert!(!launch.args.iter().any(|arg| arg.contains("dangerously")));
    let settings: Value = serde_json::from_str(file(&launch, "antigravity-cli/settings.json").unwrap()).unwrap();
    assert_eq!(settings["toolPermission"], "request-review");
    let allowed = settings["permissions"]["allow"].as_array().unwrap();
    assert!(allowed.contains(&json!("read_file(*)")) && allowed.contains(&json!("command(git status)")), "{settings}");
    assert!(!settings.to_string().contains("command(*)"));
    assert_eq!(file(&launch, "config/config.json"), file(&launch, "antigravity-cli/settings.json"));
    let hooks: Value = serde_json::from_str(file(&launch, "config/hooks.json").unwrap()).unwrap();
    let command = "/bin/sh '/j/a home/guard/hook.sh' tool";
    assert_eq!(hooks["hooks"]["PreToolUse"][0]["hooks"][0]["command"], command);
    assert_eq!(file(&launch, "guard/calls"), Some(""), "nothing of an earlier turn counts");
}

#[test]
fn an_old_or_unknown_version_is_not_started() {
    let harness = agy("").harness;
    for (said, version) in [
        ("1.4.3\n", Some("1.4.3")),
        ("agy version v1.1.15 (abc)", Some("1.1.15")),
        ("Antigravity CLI 2.0.0-beta.1", Some("2.0.0-beta.1")),
        ("agy", None),
        ("1.4", None),
    ] {
        assert_eq!(harness.parse_version(said).as_deref(), version, "{said:?}");
    }
    for (version, is_taken) in [
        (Some("1.1.15"), true),
        (Some("1.2.0"), true),
        (Some("2.0.0-beta.1"), true),
        (Some("1.1.14"), false),
        (Some("0.9.99"), false),
        (None, false),
    ] {
        for access in [Access::Write, Access::ReadOnly] {
            let planned = Asked { version, ..agy("") }.plan(access);
            assert_eq!(planned.is_ok(), is_taken, "{version:?}");
            if let Err(failure) = planned {
                assert_eq!(failure.code, FailureCode::HarnessIncompatible);
            }
        }
    }
}

#[test]
fn what_makes_an_access_mode_cannot_be_configured_and_no_name_is_a_flag() {
    for key in [
        "permissions.allow = []",
        "toolPermission = \"always-proceed\"",
        "hooks = {}",
        "trustedWorkspaces = []",
        "model.apiKey = \"sk-x\"",
    ] {
        let asked = agy(&format!("config.{key}"));
        let beforehand = agy("").harness.check_settings(&asked.settings, Access::Write);
        let failure = asked.plan(Access::Write).unwrap_err();
        assert_eq!(failure.code, FailureCode::InvalidConfig, "{key}");
        assert!(!failure.message.contains("sk-x"), "{failure:?}");
        assert_eq!(beforehand, Err(failure), "{key}: said beforehand");
    }
    for asked in [Asked { model: Some("-x"), ..agy("") }, Asked { resume: session(""), ..agy("") }] {
        assert_eq!(asked.plan(Access::Write).unwrap_err().code, FailureCode::InvalidParams);
    }
}
