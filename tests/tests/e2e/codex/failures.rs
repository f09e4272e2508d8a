//! Providers that refuse, break off or say nothing; settings and machines on which codex can't work.
//!
//! Each ends as one stable code and a sentence that says what to do.

use std::net::Ipv4Addr;
use std::os::fd::OwnedFd;

use anyhow::{Context as _, Result, ensure};
use pactify_tests::editor::Editor;
use pactify_tests::lsp::Launch;
use pactify_tests::outside;
use rustix::net::{AddressFamily, SocketType, bind, getsockname, socket};
use serde_json::{Value, json};

use super::{IMPATIENT, KEYED, PATIENT, Stage};

/// A provider's behaviour and what a person is told of it.
struct Case {
    name: &'static str,
    steps: Value,
    code: &'static str,
    /// Words of the message or of the next step.
    says: &'static str,
}

fn case(name: &'static str, step: Value, code: &'static str, says: &'static str) -> Case {
    Case { name, steps: json!([step]), code, says }
}

pub(crate) fn error(status: u16, code: &str, message: &str) -> Value {
    json!({"status": status, "body": {"error": {"message": message, "type": code, "code": code}}})
}

#[test]
fn a_provider_that_refuses_is_named_and_so_is_the_way_out() -> Result<()> {
    check(&[
        case(
            "401",
            error(401, "invalid_api_key", "Incorrect API key."),
            "loginRequired",
            "correct the key in GATEWAY_KEY",
        ),
        case("403", error(403, "forbidden", "Not in your region."), "providerRefused", "permissions and region"),
        case(
            "404",
            error(404, "model_not_found", "The model `x` does not exist."),
            "providerRefused",
            "choose another model",
        ),
        case("429", error(429, "rate_limit_exceeded", "Slow down."), "quotaExceeded", "wait a little"),
        case("quota", error(429, "insufficient_quota", "Pay first."), "quotaExceeded", "plan and billing"),
        case(
            "context",
            json!({"failed": {"code": "context_length_exceeded", "message": "Too long."}}),
            "providerRefused",
            "smaller task",
        ),
    ])
}

#[test]
fn a_provider_in_trouble_is_named_and_so_is_the_way_out() -> Result<()> {
    check(&[
        case("500", error(500, "server_error", "Oops."), "providerUnreachable", "wait a little"),
        case("503", error(503, "overloaded", "Overloaded."), "providerUnreachable", "wait a little"),
        case(
            "malformed",
            json!({"raw": "event: response.created\ndata: {nonsense\n\n"}),
            "providerUnreachable",
            "broke off",
        ),
        case(
            "html",
            json!({"raw": "<html><body>Log in to the network</body></html>", "content_type": "text/html"}),
            "providerUnreachable",
            "provider's address",
        ),
        case("truncated", json!({"truncate": true}), "providerUnreachable", "broke off"),
        case("dropped", json!({"drop": true}), "providerUnreachable", "provider's address"),
        case("silent stream", json!({"hang_stream": 60}), "providerUnreachable", "broke off"),
    ])
}

/// Has every case played at once; each must end as it says, with nothing applied and nothing left running.
fn check(cases: &[Case]) -> Result<()> {
    let scripts: serde_json::Map<_, _> =
        cases.iter().map(|case| (case.name.replace(' ', "-"), json!({"steps": case.steps}))).collect();
    let stage = Stage::new(&scripts.into())?;
    let repository = stage.repository()?;
    let mut editor = Editor::open(&stage.sandbox, repository.path())?;
    for case in cases {
        let patience = if case.name == "silent stream" { IMPATIENT } else { PATIENT };
        stage.aim_with(&case.name.replace(' ', "-"), patience)?;
        let job = editor.delegate("Say hello.", &json!({}))?;
        let status = editor.until(&job, "finished")?;
        assert_eq!(status["outcome"], "failed", "{}: {status:#}", case.name);
        assert_failure(&status, case.code, case.says).context(case.name)?;
    }
    Ok(())
}

#[test]
fn retries_that_the_person_allows_are_told() -> Result<()> {
    let stage = Stage::new(&json!({"x": {"steps": [error(503, "overloaded", "Overloaded."), {"message": "There."}]}}))?;
    let patient = format!("{KEYED}\nrequest_max_retries = 0\nstream_max_retries = 1");
    stage.configure(&stage.provider.base_url("x"), "", &patient)?;
    let repository = stage.repository()?;
    let mut editor = Editor::open(&stage.sandbox, repository.path())?;
    let job = editor.delegate("Say hello.", &json!({}))?;
    let status = editor.until(&job, "finished")?;
    assert_eq!((&status["outcome"], &status["finalMessage"]), (&json!("noChanges"), &json!("There.")), "{status:#}");
    assert!(status["notices"].to_string().contains("Reconnecting... 1/1"), "{status:#}");
    Ok(())
}

#[test]
fn a_key_that_is_not_set_is_named() -> Result<()> {
    let mut stage = Stage::playing(&json!([{"message": "unreachable"}]))?;
    stage.sandbox.set("GATEWAY_KEY", "");
    let repository = stage.repository()?;
    let mut editor = Editor::open(&stage.sandbox, repository.path())?;
    let job = editor.delegate("Say hello.", &json!({}))?;
    let status = editor.until(&job, "finished")?;
    assert_failure(&status, "loginRequired", "GATEWAY_KEY, which is not set (`env_key` names it)")?;
    assert!(stage.provider.requests().is_empty());
    Ok(())
}

#[test]
fn a_setting_that_would_lift_the_sandbox_is_refused_by_name() -> Result<()> {
    let stage = Stage::new(&json!({"x": {"steps": [{"message": "unreachable"}]}}))?;
    stage.configure(&stage.provider.base_url("x"), "sandbox_mode = \"danger-full-access\"", KEYED)?;
    let repository = stage.repository()?;
    let mut editor = Editor::open(&stage.sandbox, repository.path())?;
    let refused = editor.refused("delegate", &json!({"brief": "Say hello."}))?;
    assert_eq!(refused.reason(), "invalidConfig");
    ensure!(refused.message.contains("`sandbox_mode`"), "{}", refused.message);
    assert!(stage.provider.requests().is_empty());
    Ok(())
}

#[test]
fn a_setting_that_codex_does_not_know_is_refused_in_its_own_words() -> Result<()> {
    let stage = Stage::new(&json!({"x": {"steps": [{"message": "unreachable"}]}}))?;
    stage.configure(&stage.provider.base_url("x"), "modle_verbosity = \"low\"", KEYED)?;
    let repository = stage.repository()?;
    let mut editor = Editor::open(&stage.sandbox, repository.path())?;
    let job = editor.delegate("Say hello.", &json!({}))?;
    let status = editor.until(&job, "finished")?;
    assert_failure(&status, "invalidConfig", "modle_verbosity")?;
    assert!(stage.provider.requests().is_empty());
    Ok(())
}

#[test]
fn without_user_namespaces_nothing_is_launched() -> Result<()> {
    let stage = Stage::playing(&json!([{"shell": "echo x > x"}, {"message": "Done."}]))?;
    let repository = stage.repository()?;
    // A machine that forbids them, for this server and all that it starts.
    let mut command = stage.sandbox.command("unshare");
    command.args(["--user", "--map-root-user", "sh", "-c"]);
    command.arg("echo 0 > /proc/sys/user/max_user_namespaces && exec \"$0\" --stdio");
    command.arg(outside::program("pactify-lsp")?);
    let mut editor = Editor::start(Launch::new(command), repository.path())?;
    let job = editor.delegate("Say hello.", &json!({}))?;
    let status = editor.until(&job, "finished")?;
    assert_failure(&status, "sandboxUnavailable", "user namespaces")?;
    assert_nothing_ran(&stage, &mut editor, &job)
}

#[test]
fn a_home_below_the_temporary_directory_is_no_obstacle() -> Result<()> {
    let mut stage = Stage::playing(&json!([{"shell": "echo x > x.txt"}, {"message": "Done."}]))?;
    stage.sandbox.set("PACTIFY_HOME", stage.sandbox.tmp().join("pactify"));
    let repository = stage.repository()?;
    let mut editor = Editor::open(&stage.sandbox, repository.path())?;
    let job = editor.delegate("Say hello.", &json!({}))?;
    let status = editor.until(&job, "finished")?;
    assert_eq!((&status["outcome"], &status["changes"]["files"]), (&json!("succeeded"), &json!(1)), "{status:#}");
    Ok(())
}

fn assert_failure(status: &Value, code: &str, says: &str) -> Result<()> {
    let error = &status["error"];
    let message = error["message"].as_str().with_context(|| format!("no message: {status:#}"))?;
    let next = error["next"].as_str().context("no next step")?;
    assert_eq!(error["code"], code, "{status:#}");
    assert!(!next.is_empty() && !message.is_empty(), "{status:#}");
    assert!(format!("{message}: {next}").contains(says), "{status:#}");
    Ok(())
}

fn assert_nothing_ran(stage: &Stage, editor: &mut Editor, job: &str) -> Result<()> {
    let launched = editor.events_of(job, "launched")?;
    assert!(launched.is_empty(), "{launched:?}");
    assert!(stage.provider.requests().is_empty());
    Ok(())
}

pub(crate) fn refusing_port() -> Result<(OwnedFd, u16)> {
    let holder = socket(AddressFamily::INET, SocketType::STREAM, None)?;
    bind(&holder, &std::net::SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0))?;
    let address = std::net::SocketAddrV4::try_from(getsockname(&holder)?)?;
    Ok((holder, address.port()))
}
