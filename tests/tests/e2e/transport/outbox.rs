//! What the server says on its own account, to clients that answer and to clients that don't.

use std::time::Instant;

use pactify_tests::lsp::{DEADLINE, Reply};

use super::*;

/// A client that answers the probe's own question, and each request for a progress token with `reply`.
fn answering(reply: Reply) -> Client {
    start(probe(Server::Ours).answering(move |method, _| match method {
        "probe/ask" => Reply::Result(json!("well")),
        _ => reply.clone(),
    }))
}

/// The values of the progress reports until its end.
fn progress_until_end(client: &Client) -> Vec<Value> {
    let mut values = Vec::new();
    while values.last().is_none_or(|value: &Value| value["kind"] != "end") {
        values.push(client.notification("$/progress", DEADLINE).unwrap()["value"].take());
    }
    values
}

fn assert_no_progress(client: &mut Client) {
    assert_serves(client);
    let progress: Vec<_> = client.drain().into_iter().filter(|message| message["method"] == "$/progress").collect();
    assert_eq!(progress, [] as [Value; 0]);
}

#[test]
fn a_request_of_the_server_is_answered() {
    let mut client = answering(Reply::Never);
    assert_eq!(client.request("probe/askOutbox", sleep_for(10_000)).unwrap(), json!("well"));
    assert_eq!(client.request("probe/askClient", sleep_for(10_000)).unwrap(), json!("well"));
}

#[test]
fn a_client_that_never_answers_costs_one_deadline() {
    let mut client = start(probe(Server::Ours).answering(|_, _| Reply::Never));
    let answer = client.request("probe/askOutbox", sleep_for(50)).unwrap();
    assert_eq!(answer, json!("the editor did not answer probe/ask within 50ms"));
    let (id, _) = client.server_request("probe/ask", SOON).unwrap();
    client.respond(id, Reply::Result(json!("too late"))).unwrap();
    assert_serves(&mut client);
}

#[test]
fn a_refusal_of_the_client_is_told_to_the_caller() {
    let mut client = start(probe(Server::Ours).answering(|_, _| Reply::Error(-32601, "no such thing")));
    let answer = client.request("probe/askOutbox", sleep_for(10_000)).unwrap();
    assert_eq!(answer, json!("the editor refused probe/ask: Method not found: no such thing"));
}

#[test]
fn progress_has_one_begin_few_reports_and_one_end() {
    let mut client = answering(Reply::Result(Value::Null));
    let started = Instant::now();
    // A thousand reports in about half a second.
    client.request("probe/progress", json!({"reports": 1000, "pause_us": 500})).unwrap();
    let values = progress_until_end(&client);
    let tenths = started.elapsed().as_millis() / 100;

    assert_eq!(values[0], json!({"kind": "begin", "title": "probe", "cancellable": true}));
    assert_eq!(values[values.len() - 1], json!({"kind": "end", "message": "done"}));
    let reports = &values[1..values.len() - 1];
    assert!(reports.iter().all(|value| value["kind"] == "report"), "{reports:?}");
    assert!((reports.len() as u128) <= tenths + 2, "{} reports in {tenths} tenths of a second", reports.len());
    assert_eq!(reports[reports.len() - 1]["percentage"], json!(1000), "the last one is always shown");
    assert_no_progress(&mut client);
}

#[test]
fn progress_can_be_cancelled() {
    let mut client = answering(Reply::Result(Value::Null));
    client.request("probe/progress", json!({"reports": 1_000_000, "pause_us": 10_000})).unwrap();
    let begin = client.notification("$/progress", SOON).unwrap();
    client.notify("window/workDoneProgress/cancel", json!({"token": begin["token"]})).unwrap();
    client.notify("window/workDoneProgress/cancel", json!({"token": "another's"})).unwrap();
    let values = progress_until_end(&client);
    assert_eq!(values[values.len() - 1], json!({"kind": "end", "message": "cancelled"}));
}

#[test]
fn without_an_accepted_token_there_is_no_progress() {
    for reply in [Reply::Never, Reply::Error(-32601, "what?")] {
        let mut client = answering(reply);
        client.request("probe/progress", json!({"reports": 3, "pause_us": 100, "wait": true})).unwrap();
        client.server_request("window/workDoneProgress/create", SOON).unwrap();
        assert_no_progress(&mut client);
    }
}

#[test]
fn progress_that_ended_before_the_token_was_accepted_still_begins_and_ends() {
    let mut client = answering(Reply::Never);
    client.request("probe/progress", json!({"reports": 3, "pause_us": 100, "wait": true})).unwrap();
    let (id, _) = client.server_request("window/workDoneProgress/create", SOON).unwrap();
    client.respond(id, Reply::Result(Value::Null)).unwrap();
    let kinds: Vec<_> = progress_until_end(&client).iter().map(|value| value["kind"].clone()).collect();
    assert_eq!(kinds, [json!("begin"), json!("report"), json!("end")]);
}

#[test]
fn progress_survives_a_client_that_does_not_read_for_a_while() {
    let mut client = answering(Reply::Result(Value::Null));
    client.request("probe/progress", json!({"reports": 20, "pause_us": 20_000})).unwrap();
    client.notification("$/progress", SOON).unwrap();
    client.stop_reading();
    client.send_request("probe/flood", json!({"count": 10_000, "bytes": 1000})).unwrap();
    let done = client.send_request("probe/sleep", sleep_for(700)).unwrap();
    client.read_on();
    client.answer(done, DEADLINE).unwrap().unwrap();
    let values = progress_until_end(&client);
    assert_eq!(values[values.len() - 1]["message"], json!("done"));
    assert_no_progress(&mut client);
}
