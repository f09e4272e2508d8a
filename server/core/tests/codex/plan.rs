//! What is run, written and linked: golden, because every word of it was measured against the real program.

use pactify_core::FailureCode;
use pactify_core::harness::codex::Codex;
use pactify_core::harness::{Harness, Launch, LinkKind, Resume};
use pactify_core::job::access::Access;
use pactify_core::job::event::Usage;

use crate::asked::{Asked, path};
use crate::codex;

const GATEWAY: &str = r#"
    [harnesses.codex]
    model = "gpt-5.5"
    environment = ["PROXY_CERTS"]
    [harnesses.codex.config]
    model_provider = "gateway"
    web_search = "live"
    [harnesses.codex.config.model_providers.gateway]
    name = "Gateway"
    base_url = "https://llm.example.com/v1"
    env_key = "GATEWAY"
    env_http_headers = { X-Team = "GATEWAY_TEAM" }
"#;

/// The launch, with the configuration in full.
fn shown(launch: &Launch) -> String {
    let files = launch.files.iter().map(|file| format!("--- {}\n{}", file.path, file.contents));
    format!("{launch:#?}\n{}", files.collect::<String>())
}

#[test]
fn a_write_job() {
    insta::assert_snapshot!(shown(&codex("").plan(Access::Write).unwrap()));
}

#[test]
fn a_read_only_job() {
    insta::assert_snapshot!(shown(&codex("").plan(Access::ReadOnly).unwrap()));
}

#[test]
fn a_resumed_job_with_a_model() {
    let resume = Resume { session: "01a22781-2a52-7562-8fae-4faeefbc4bbd", used: Usage::default() };
    let asked = Asked { resume: Some(resume), model: Some("gpt-6.2-sol"), ..codex("") };
    let launch = asked.plan(Access::ReadOnly).unwrap();
    insta::assert_snapshot!(launch.args.join(" "), @"exec --json --strict-config -s read-only -C /home/u/.pactify/jobs/j/tree -m gpt-6.2-sol resume 01a22781-2a52-7562-8fae-4faeefbc4bbd -");
}

#[test]
fn a_job_at_a_provider_of_the_persons_own() {
    insta::assert_snapshot!(shown(&codex(GATEWAY).plan(Access::Write).unwrap()));
}

#[test]
fn the_login_is_linked_from_where_the_person_keeps_it_and_only_if_the_provider_wants_it() {
    let target =
        |asked: &Asked| asked.plan(Access::Write).unwrap().links.first().map(|link| (link.target.clone(), link.kind));
    let mut asked = codex("");
    assert_eq!(target(&asked), Some((path("/home/u/.codex/auth.json"), LinkKind::ReplacedFile)));
    asked.places.person_state = Some(path("/data/codex"));
    assert_eq!(target(&asked), Some((path("/data/codex/auth.json"), LinkKind::ReplacedFile)));

    assert_eq!(target(&codex(GATEWAY)), None);
    let with_login = format!("{GATEWAY}\nrequires_openai_auth = true");
    assert!(target(&codex(&with_login)).is_some());
}

#[test]
fn settings_that_would_break_a_promise_are_refused_by_name() {
    let every_job = [
        ("approval_policy = \"on-request\"", "approval_policy"),
        ("sandbox_mode = \"danger-full-access\"", "sandbox_mode"),
        ("default_permissions = \"x\"", "default_permissions"),
        ("permissions.x.extends = \":workspace\"", "permissions"),
        ("sandbox_workspace_write.writable_roots = [\"/\"]", "sandbox_workspace_write.writable_roots"),
        ("sandbox_workspace_write.exclude_slash_tmp = false", "sandbox_workspace_write.exclude_slash_tmp"),
        ("sandbox_workspace_write = 1", "sandbox_workspace_write"),
        ("profile = \"x\"", "profile"),
        ("profiles.x.approval_policy = \"never\"", "profiles"),
        ("projects.\"/repo\".trust_level = \"trusted\"", "projects./repo"),
        ("hooks.PreToolUse = []", "hooks"),
        ("notify = [\"sh\"]", "notify"),
        ("features.hooks = true", "features.hooks"),
        ("features.codex_hooks = true", "features.codex_hooks"),
        ("features.\"Hooks\" = true", "features.Hooks"),
        ("features.shell_snapshot = true", "features.shell_snapshot"),
        ("features.daemon_auto_start = true", "features.daemon_auto_start"),
        ("features.use_legacy_landlock = true", "features.use_legacy_landlock"),
        ("features.unbounded_connection_retries = true", "features.unbounded_connection_retries"),
        ("cli_auth_credentials_store = \"keyring\"", "cli_auth_credentials_store"),
        ("shell_environment_policy.exclude = []", "shell_environment_policy.exclude"),
        ("shell_environment_policy.include_only = [\"PATH\"]", "shell_environment_policy.include_only"),
        ("shell_environment_policy.set.PACTIFY_JOB = \"\"", "shell_environment_policy.set.PACTIFY_JOB"),
        ("model_providers.x.experimental_bearer_token = \"t\"", "model_providers.x.experimental_bearer_token"),
        ("model_providers.x.http_headers.Authorization = \"t\"", "model_providers.x.http_headers.Authorization"),
        ("model_providers.x.http_headers.x-api-key = \"t\"", "model_providers.x.http_headers.x-api-key"),
        ("model_providers.x.http_headers.Cookie = \"t\"", "model_providers.x.http_headers.Cookie"),
        ("model_providers.x.http_headers.X-Team = \"t\"", "model_providers.x.http_headers.X-Team"),
        ("model_providers.x.query_params.key = \"t\"", "model_providers.x.query_params.key"),
        ("shell_environment_policy.set.NPM_TOKEN = \"t\"", "shell_environment_policy.set.NPM_TOKEN"),
    ];
    for (setting, named) in every_job {
        let asked = codex(&format!("[harnesses.codex.config]\n{setting}"));
        for access in [Access::Write, Access::ReadOnly] {
            let failure = asked.plan(access).unwrap_err();
            assert_eq!(failure.code, FailureCode::InvalidConfig, "{setting}");
            assert!(failure.message.contains(&format!("`{named}`")), "{setting}: {}", failure.message);
            assert_eq!(Codex.check_settings(&asked.settings, access), Err(failure), "{setting}: said beforehand");
        }
    }
}

#[test]
fn what_acts_outside_the_sandbox_is_refused_for_read_only_jobs_alone() {
    for setting in [
        "mcp_servers.x.command = \"x\"",
        "features.plugins = true",
        "features.apps = true",
        "features.connectors = true",
        "agents.x.config_file = \"/x.toml\"",
        "features.computer_use = true",
        "plugins.x.enabled = true",
    ] {
        let asked = codex(&format!("[harnesses.codex.config]\n{setting}"));
        assert!(asked.plan(Access::Write).is_ok(), "{setting}");
        let failure = asked.plan(Access::ReadOnly).unwrap_err();
        assert!(failure.message.contains("read-only"), "{setting}: {}", failure.message);
        assert_eq!(Codex.check_settings(&asked.settings, Access::Write), Ok(()), "{setting}");
        assert_eq!(Codex.check_settings(&asked.settings, Access::ReadOnly), Err(failure), "{setting}");
    }
}

#[test]
fn a_locked_key_may_repeat_what_is_planned_or_tighten_it() {
    for setting in [
        "approval_policy = \"never\"",
        "features.hooks = false",
        "sandbox_workspace_write.network_access = false",
        "sandbox_workspace_write = { exclude_slash_tmp = true }",
        // Names of variables are no secrets.
        "model_providers.x = { env_key = \"K\", env_http_headers = { Authorization = \"A\" } }",
        "mcp_servers.x = { command = \"x\", bearer_token_env_var = \"T\" }",
        // Nor is what a program is.
        "model_providers.x.http_headers = { HTTP-Referer = \"https://x\", User-Agent = \"x\" }",
    ] {
        let asked = codex(&format!("[harnesses.codex.config]\n{setting}"));
        assert_eq!(Codex.check_settings(&asked.settings, Access::Write), Ok(()), "{setting}");
        assert!(asked.plan(Access::Write).is_ok(), "{setting}");
    }
    let offline = codex("[harnesses.codex.config]\nsandbox_workspace_write.network_access = false");
    let config = &offline.plan(Access::Write).unwrap().files[0].contents;
    assert!(config.contains("network_access = false"), "{config}");

    let widened = codex("[harnesses.codex.config]\nsandbox_workspace_write.network_access = true");
    assert!(widened.plan(Access::ReadOnly).is_err());
}

#[test]
fn what_is_no_table_where_codex_has_one_is_refused_beforehand() {
    let asked = codex("[harnesses.codex.config]\nfeatures = false");
    for access in [Access::Write, Access::ReadOnly] {
        let failure = asked.plan(access).unwrap_err();
        assert!(failure.message.contains("`features`"), "{failure:?}");
        assert_eq!(Codex.check_settings(&asked.settings, access), Err(failure));
    }
}

#[test]
fn names_that_could_be_flags_are_refused() {
    for bad in ["", "--dangerously-bypass-approvals-and-sandbox", "a\nb", "a\0b"] {
        let asked = Asked { model: Some(bad), ..codex("") };
        assert_eq!(asked.plan(Access::Write).unwrap_err().code, FailureCode::InvalidParams, "{bad:?}");
        let resume = Resume { session: bad, used: Usage::default() };
        let asked = Asked { resume: Some(resume), ..codex("") };
        assert_eq!(asked.plan(Access::Write).unwrap_err().code, FailureCode::InvalidParams, "{bad:?}");
    }
}

#[test]
fn neither_settings_nor_brief_are_shown_in_debug_output() {
    let asked = codex("[harnesses.codex.config]\nmodel_providers.x.http_headers.X-Title = \"canary-7\"");
    let launch = asked.plan(Access::Write).unwrap();
    assert!(launch.files[0].contents.contains("canary-7"));
    for shown in [format!("{launch:?}"), format!("{:?}", asked.settings)] {
        assert!(!shown.contains("canary-7"), "{shown}");
        assert!(!shown.contains("Fix the parser"), "{shown}");
    }
}

#[test]
fn versions_are_read_from_the_line_that_names_codex() {
    for (stdout, expect) in [
        ("codex-cli 0.171.0\n", Some("0.171.0")),
        ("WARNING: something\ncodex-cli 0.172.0-alpha.3\n", Some("0.172.0-alpha.3")),
        ("0.171.0\n", None),
        ("codex-cli latest\n", None),
        ("codex-cli 1.2\n", None),
        ("", None),
    ] {
        assert_eq!(Codex.parse_version(stdout).as_deref(), expect, "{stdout:?}");
    }
}
