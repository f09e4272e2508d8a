//! Providers that refuse, break off or say nothing. Both agents hide most of it: kimi calls such a turn ended, opencode
//! tries again for ever. No job may succeed by that.

use anyhow::Result;
use pactify_tests::editor::Editor;
use serde_json::{Value, json};

use super::super::codex::refusing_port;
use super::{Agent, Stage, finished, table};

/// So many jobs run at once: each is half a gigabyte, and seconds of processor time.
const AT_ONCE: usize = 5;

fn error(status: u16, code: &str, message: &str) -> Value {
    json!({"steps": [{"status": status, "body": {"error": {"message": message, "type": code, "code": code}}}]})
}

fn raw(text: &str, kind: &str) -> Value {
    json!({"steps": [{"raw": text, "content_type": kind}]})
}

fn provider_fails(agent: Agent) -> Result<()> {
    let after = json!({"steps": [{"status": 429, "headers": {"retry-after": "1"},
        "body": {"error": {"message": "Rate limit reached.", "type": "rate_limit", "code": "rate_limit"}}}]});
    let scripts = json!({
        "e401": error(401, "invalid_api_key", "Incorrect API key."),
        "e429": error(429, "rate_limit_exceeded", "Rate limit reached."),
        "e429after": after,
        "e500": error(500, "server_error", "Oops."),
        "malformed": raw("data: {\"id\": \"x\", \"choices\": [ {\"delta\": \n\ndata: [DONE]\n\n", "text/event-stream"),
        "html": raw("<html>gateway</html>", "text/html"),
        "empty": raw("data: [DONE]\n\n", "text/event-stream"),
        "cut": json!({"steps": [{"truncate": true}]}),
        "hang": json!({"steps": [{"hang": 600}]}),
    });
    let stage = Stage::new(agent, &scripts)?;
    let (refusing, port) = refusing_port()?;
    let mut urls: Vec<_> = scripts
        .as_object()
        .into_iter()
        .flatten()
        .map(|(name, _)| (name.clone(), stage.provider.base_url(name)))
        .collect();
    urls.push(("refused".to_owned(), format!("http://127.0.0.1:{port}/v1")));
    stage.configure(&urls, None)?;
    let repository = stage.repository()?;
    let mut editor = Editor::open(&stage.sandbox, repository.path())?;
    let any = ["providerRefused", "providerUnreachable", "harnessFailed"];
    let expected: &[(&str, &[&str])] = &[
        ("e401", &["loginRequired"]),
        ("e429", &["quotaExceeded"]),
        ("e429after", &["quotaExceeded"]),
        ("e500", &["providerUnreachable"]),
        ("refused", &["providerUnreachable"]),
        ("malformed", &any),
        ("html", &any),
        ("empty", &any),
        ("cut", &any),
        ("hang", &["stalled"]),
    ];
    let mut wrong = Vec::new();
    for some in expected.chunks(AT_ONCE) {
        let mut jobs = Vec::new();
        for (script, codes) in some {
            // The start of an agent is silence, too.
            let stall = if *script == "hang" { 40 } else { 200 };
            let more = json!({"model": stage.model(script), "stallSeconds": stall});
            jobs.push((script, codes, stage.delegate(&mut editor, "Say hello.", more)?));
        }
        for (script, codes, job) in jobs {
            let status = finished(&mut editor, &job)?;
            let told =
                (status["outcome"].as_str().unwrap_or_default(), status["error"]["code"].as_str().unwrap_or_default());
            let is_right = told.0 != "succeeded" && codes.contains(&told.1);
            let next = status["error"]["next"].as_str().unwrap_or_default();
            if !is_right || next.is_empty() {
                wrong.push(format!("{script}: {told:?}: {}", status["error"]));
            }
        }
    }
    drop(refusing);
    assert_eq!(wrong, Vec::<String>::new());
    Ok(())
}

table! {
    provider_fails => kimi_whose_provider_fails_never_succeeds, opencode_whose_provider_fails_never_succeeds;
}
