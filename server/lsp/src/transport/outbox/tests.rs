//! The outbox's rules on their own: order, gating, deadlines, bounds.

use lsp_types::notification::{LogMessage, PublishDiagnostics, ShowMessage};
use lsp_types::request::{CodeLensRefresh, ShowDocument};
use lsp_types::{LogMessageParams, MessageType, PublishDiagnosticsParams, ShowDocumentParams, ShowMessageParams, Url};
use serde_json::{Value, json};

use super::progress::INTERVAL;
use super::*;
use crate::transport::frame::{Decoder, Event};

const SMALL: Limits = Limits { messages: 3, bytes: 10_000 };

/// Everything that can be written at this time.
fn written(outbox: &Outbox, now: Instant) -> Vec<Value> {
    let mut decoder = Decoder::default();
    let mut values = Vec::new();
    loop {
        let batch = outbox.lock().take(now);
        if batch.is_empty() {
            return values;
        }
        let mut bytes = &batch[..];
        while let Some(Event::Body(body)) = decoder.next(&mut bytes) {
            values.push(serde_json::from_slice(&body).unwrap());
        }
    }
}

fn log(outbox: &Outbox, text: &str) -> Delivery {
    outbox.notify::<LogMessage>(&LogMessageParams { typ: MessageType::INFO, message: text.to_owned() })
}

fn show_document() -> ShowDocumentParams {
    let uri = Url::parse("file:///f").unwrap();
    ShowDocumentParams { uri, external: None, take_focus: None, selection: None }
}

fn answer(outbox: &Outbox, id: &Value, result: Result<Value, jsonrpc::Error>) -> bool {
    outbox.answer(&serde_json::from_value(id.clone()).unwrap(), result)
}

/// `kind` and what else matters of each progress value.
fn progress(values: &[Value]) -> Vec<String> {
    let text = |value: &Value| match value {
        Value::Null => String::new(),
        value => format!(" {value}"),
    };
    let values = values.iter().filter(|value| value["method"] == "$/progress").map(|value| &value["params"]["value"]);
    values
        .map(|v| format!("{}{}{}", v["kind"].as_str().unwrap(), text(&v["percentage"]), text(&v["message"])))
        .collect()
}

fn begin() -> WorkDoneProgressBegin {
    WorkDoneProgressBegin { title: "job".to_owned(), ..Default::default() }
}

fn percent(percentage: u32) -> WorkDoneProgressReport {
    WorkDoneProgressReport { percentage: Some(percentage), ..Default::default() }
}

/// Opens progress whose token the client has accepted.
fn accepted(outbox: &Outbox, now: Instant) -> Progress {
    let progress = outbox.progress(begin());
    let asked = written(outbox, now);
    assert_eq!(asked[0]["method"], "window/workDoneProgress/create");
    assert!(answer(outbox, &asked[0]["id"], Ok(Value::Null)));
    progress
}

#[test]
fn messages_are_written_in_order_and_without_null_parameters() {
    let outbox = Outbox::default();
    assert_eq!(log(&outbox, "a"), Delivery::Queued);
    drop(outbox.request::<CodeLensRefresh>((), Duration::from_secs(1)));
    outbox.notify::<ShowMessage>(&ShowMessageParams { typ: MessageType::INFO, message: "b".to_owned() });
    assert_eq!(
        written(&outbox, Instant::now()),
        [
            json!({"jsonrpc": "2.0", "method": "window/logMessage", "params": {"type": 3, "message": "a"}}),
            json!({"jsonrpc": "2.0", "id": "pactify-1", "method": "workspace/codeLens/refresh"}),
            json!({"jsonrpc": "2.0", "method": "window/showMessage", "params": {"type": 3, "message": "b"}}),
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn a_request_ends_with_an_answer_a_refusal_nonsense_or_its_deadline() {
    let within = Duration::from_secs(5);
    let method = "window/showDocument";
    let error = jsonrpc::Error::method_not_found();
    let cases = [
        (Some(Ok(json!({"success": true}))), Ok(true)),
        (Some(Err(error.clone())), Err(ClientError::Refused { method, error })),
        (
            Some(Ok(Value::Null)),
            Err(ClientError::Unreadable {
                method,
                detail: "invalid type: null, expected struct ShowDocumentResult".to_owned(),
            }),
        ),
        (None, Err(ClientError::Unanswered { method, within })),
    ];
    let outbox = Outbox::default();
    for (reply, expected) in cases {
        let result = outbox.request::<ShowDocument>(show_document(), within);
        let id = written(&outbox, Instant::now())[0]["id"].clone();
        let is_answered = reply.is_some_and(|reply| answer(&outbox, &id, reply));
        let result = result.await.map(|result| result.success);
        assert_eq!(result, expected);
        assert!(!answer(&outbox, &id, Ok(Value::Null)), "a late answer is nobody's (answered: {is_answered})");
    }
}

#[tokio::test]
async fn the_end_of_the_session_ends_every_wait() {
    let outbox = Outbox::default();
    let result = outbox.request::<ShowDocument>(show_document(), Duration::from_secs(3600));
    outbox.close();
    let closed = ClientError::Closed { method: "window/showDocument" };
    assert_eq!(result.await.unwrap_err(), closed);
    let later = outbox.request::<ShowDocument>(show_document(), Duration::from_secs(3600));
    assert_eq!(later.await.unwrap_err(), closed);
    assert_eq!(log(&outbox, "too late"), Delivery::Closed);
    assert!(outbox.next_batch().await.is_some(), "what was queued may still be written");
    assert_eq!(outbox.next_batch().await, None);
}

#[tokio::test]
async fn a_deaf_client_is_sent_nothing_more_and_told_how_much_it_missed() {
    let outbox = Outbox::new(SMALL);
    let deliveries: Vec<_> = (0..10).map(|number| log(&outbox, &number.to_string())).collect();
    let queued = deliveries.iter().filter(|delivery| **delivery == Delivery::Queued).count();
    assert_eq!((queued, outbox.is_congested()), (4, true));
    let refused = outbox.request::<ShowDocument>(show_document(), Duration::from_secs(1)).await;
    assert_eq!(refused.unwrap_err(), ClientError::Deaf { method: "window/showDocument" });
    let silent = outbox.progress(begin());
    silent.report(percent(1));
    silent.end(None);

    let read = written(&outbox, Instant::now());
    let texts: Vec<_> = read.iter().map(|message| message["params"]["message"].as_str().unwrap()).collect();
    let notice = "pactify: 6 notifications were dropped because the editor did not read them";
    assert_eq!(texts, ["0", "1", "2", "3", notice]);
    assert!(!outbox.is_congested());
    assert_eq!(written(&outbox, Instant::now()), [] as [Value; 0], "it is told once");
}

#[test]
fn bytes_count_too() {
    let outbox = Outbox::new(SMALL);
    assert_eq!(log(&outbox, &"x".repeat(20_000)), Delivery::Queued);
    assert_eq!(log(&outbox, "y"), Delivery::Dropped);
}

#[test]
fn only_the_newest_state_waits() {
    let diagnostics = |outbox: &Outbox, name: &str, version| {
        let uri = Url::parse(&format!("file:///{name}")).unwrap();
        let params = PublishDiagnosticsParams { uri, diagnostics: Vec::new(), version: Some(version) };
        outbox.notify_latest::<PublishDiagnostics>(name, &params)
    };
    let outbox = Outbox::new(SMALL);
    for version in 1..100 {
        assert_eq!(diagnostics(&outbox, "a", version), Delivery::Queued);
        assert_eq!(diagnostics(&outbox, "b", version), Delivery::Queued);
    }
    log(&outbox, "1");
    log(&outbox, "2");
    assert!(outbox.is_congested());
    assert_eq!(diagnostics(&outbox, "a", 100), Delivery::Queued, "it takes no more room than it had");
    assert_eq!(diagnostics(&outbox, "c", 1), Delivery::Dropped);
    let read = written(&outbox, Instant::now());
    let versions: Vec<_> = read[..2].iter().map(|message| message["params"]["version"].as_i64()).collect();
    assert_eq!(versions, [Some(100), Some(99)]);
    assert_eq!(outbox.lock().take(Instant::now()), b"");
}

#[tokio::test]
async fn reports_replace_each_other_until_their_turn_and_the_end_waits_for_the_last() {
    let outbox = Outbox::default();
    let mut now = Instant::now();
    let job = accepted(&outbox, now);
    job.report(percent(1));
    job.report(percent(2));
    assert_eq!(progress(&written(&outbox, now)), ["begin", "report 2"]);
    job.report(percent(3));
    job.report(percent(4));
    assert_eq!(progress(&written(&outbox, now)), [] as [&str; 0]);
    assert_eq!(outbox.lock().progress.due(), Some(now + INTERVAL));
    job.end(Some("done".to_owned()));
    assert_eq!(progress(&written(&outbox, now)), [] as [&str; 0]);
    now += INTERVAL;
    assert_eq!(progress(&written(&outbox, now)), ["report 4", "end \"done\""]);
    assert_eq!(outbox.lock().progress.due(), None);
}

#[tokio::test]
async fn an_end_without_a_waiting_report_is_sent_at_once() {
    let outbox = Outbox::default();
    let now = Instant::now();
    drop(accepted(&outbox, now));
    assert_eq!(progress(&written(&outbox, now)), ["begin", "end"]);
}

#[tokio::test]
async fn a_token_that_is_refused_or_never_accepted_is_not_used() {
    let outbox = Outbox::default();
    let now = Instant::now();
    for is_refused in [true, false] {
        let job = outbox.progress(begin());
        let id = written(&outbox, now)[0]["id"].clone();
        let expiry = outbox.lock().progress.due().unwrap();
        if is_refused {
            assert!(answer(&outbox, &id, Err(jsonrpc::Error::method_not_found())));
        } else {
            assert_eq!(written(&outbox, expiry), [] as [Value; 0]);
            assert!(!answer(&outbox, &id, Ok(Value::Null)), "too late");
        }
        job.report(percent(1));
        job.end(None);
        assert_eq!(written(&outbox, expiry + INTERVAL), [] as [Value; 0]);
        assert_eq!(outbox.lock().progress.due(), None, "nothing is remembered");
    }
}

#[tokio::test]
async fn a_cancel_reaches_its_own_progress_only() {
    let outbox = Outbox::default();
    let jobs = [accepted(&outbox, Instant::now()), accepted(&outbox, Instant::now())];
    let token = jobs[0].token.clone().unwrap();
    assert!(outbox.cancel_progress(&token));
    jobs[0].cancelled().await;
    assert!(futures_util::FutureExt::now_or_never(jobs[1].cancelled()).is_none());
    assert!(!outbox.cancel_progress(&NumberOrString::Number(1)));
}

#[tokio::test(start_paused = true)]
async fn the_writer_is_woken_when_a_report_is_due() {
    let outbox = Outbox::default();
    let job = accepted(&outbox, Instant::now());
    job.report(percent(1));
    outbox.next_batch().await.unwrap();
    job.report(percent(2));
    let before = Instant::now();
    outbox.next_batch().await.unwrap();
    assert_eq!(before.elapsed(), INTERVAL);
}
