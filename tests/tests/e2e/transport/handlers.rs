//! Handlers that are slow, panic, or wait for the client must not harm the session.

use pactify_tests::lsp::Reply;

use super::*;

fn silent(server: Server) -> Client {
    start(probe(server).answering(|_, _| Reply::Never))
}

/// Four handlers wait for the client, more requests than any queue holds follow, then the client answers.
fn answers_behind_waiting_handlers(server: Server, patience: Duration) -> usize {
    let mut client = silent(server);
    let mut ids: Vec<_> = (0..4).map(|_| client.send_request("probe/askClient", sleep_for(60_000)).unwrap()).collect();
    let asked: Vec<_> = (0..4).map(|_| client.server_request("probe/ask", SOON).unwrap().0).collect();
    ids.extend((0..110).map(|number| client.send_request("probe/echo", json!([number])).unwrap()));
    for id in asked {
        client.respond(id, Reply::Result(json!("well"))).unwrap();
    }
    ids.into_iter().take_while(|id| client.answer(*id, patience).is_ok()).count()
}

#[test]
fn handlers_that_wait_for_the_client_do_not_keep_its_answers_out() {
    assert_eq!(answers_behind_waiting_handlers(Server::Ours, SOON), 114);
}

#[test]
fn stock_deadlocks_when_handlers_wait_for_the_client() {
    assert_eq!(answers_behind_waiting_handlers(Server::Stock, NEVER), 0);
}

/// Cancels one of more slow requests than the stock server runs at once.
fn cancel_among_slow_ones(client: &mut Client, patience: Duration) -> anyhow::Result<RpcError> {
    let ids: Vec<_> = (0..5).map(|_| client.send_request("probe/sleep", sleep_for(60_000)).unwrap()).collect();
    client.notify("$/cancelRequest", json!({"id": ids[0]}))?;
    Ok(client.answer(ids[0], patience)?.expect_err("it slept through"))
}

#[test]
fn a_cancel_takes_effect_at_once() {
    let mut client = ours();
    assert_eq!(cancel_among_slow_ones(&mut client, SOON).unwrap().code, -32800);
    client.notify("$/cancelRequest", json!({"id": 4711})).unwrap();
    assert_serves(&mut client);
}

#[test]
fn stock_queues_a_cancel_behind_slow_handlers() {
    cancel_among_slow_ones(&mut stock(), NEVER).unwrap_err();
}

/// The client answers a request after the handler that made it has given up.
fn answer_late(client: &mut Client) {
    let answer = client.request("probe/askClient", sleep_for(20)).unwrap();
    assert_eq!(answer, json!("gave up"));
    let (id, _) = client.server_request("probe/ask", SOON).unwrap();
    client.respond(id, Reply::Result(json!("too late"))).unwrap();
}

/// The client cancels a handler that waits for it, and then answers.
fn answer_after_cancelling(client: &mut Client) {
    let id = client.send_request("probe/askClient", sleep_for(60_000)).unwrap();
    let (asked, _) = client.server_request("probe/ask", SOON).unwrap();
    client.notify("$/cancelRequest", json!({"id": id})).unwrap();
    assert_eq!(refusal(client, id).code, -32800);
    client.respond(asked, Reply::Result(json!("too late"))).unwrap();
}

#[test]
fn a_late_answer_of_the_client_is_survived() {
    let mut client = silent(Server::Ours);
    answer_late(&mut client);
    assert_serves(&mut client);
    answer_after_cancelling(&mut client);
    assert_serves(&mut client);
}

#[test]
fn stock_dies_of_a_late_answer() {
    for provoke in [answer_late, answer_after_cancelling] {
        let mut client = silent(Server::Stock);
        provoke(&mut client);
        assert_eq!(client.wait_for_exit(SOON).unwrap().code(), Some(101));
    }
}

#[test]
fn a_panic_costs_its_own_request_only() {
    let mut client = ours();
    let slow = client.send_request("probe/sleep", sleep_for(300)).unwrap();
    for ms in [0, 1] {
        let id = client.send_request("probe/panic", sleep_for(ms)).unwrap();
        let error = refusal(&client, id);
        assert_eq!((error.code, error.message.contains("as asked")), (-32603, true), "{error}");
    }
    client.notify("probe/panicNotification", json!({})).unwrap();
    assert_serves(&mut client);
    assert_eq!(client.answer(slow, SOON).unwrap().unwrap(), json!("slept"));
}

#[test]
fn the_id_of_a_request_that_panicked_can_be_used_again() {
    let client = ours();
    for method in ["probe/panic", "probe/panic", "probe/sleep"] {
        client.send(&json!({"jsonrpc": "2.0", "id": 77, "method": method, "params": {"ms": 1}})).unwrap();
        let answer = client.answer(77, SOON).unwrap();
        let code = answer.err().map_or(0, |error| error.code);
        assert_eq!(code, if method == "probe/panic" { -32603 } else { 0 });
    }
}

#[test]
fn stock_dies_of_a_panic() {
    let mut client = stock();
    client.send_request("probe/panic", sleep_for(0)).unwrap();
    assert_serves_no_more(&mut client);
    // Its main thread is dead, and waits for a read of the input.
    client.close_input();
    assert_eq!(client.wait_for_exit(SOON).unwrap().code(), Some(101));
}

#[test]
fn notifications_take_effect_in_order() {
    let mut client = ours();
    for number in 0..500 {
        client.notify("probe/append", json!({"number": number})).unwrap();
    }
    let appended = client.send_request("probe/appended", Value::Null).unwrap();
    let expected: Vec<u64> = (0..500).collect();
    assert_eq!(client.answer(appended, SOON).unwrap().unwrap(), json!(expected));
}

#[test]
fn quick_requests_are_answered_in_order_past_slow_ones() {
    let mut client = silent(Server::Ours);
    let slow = client.send_request("probe/askClient", sleep_for(60_000)).unwrap();
    let (asked, _) = client.server_request("probe/ask", SOON).unwrap();
    let quick: Vec<_> = (0..50).map(|_| client.send_request("probe/echo", json!({})).unwrap()).collect();
    client.answer(quick[49], SOON).unwrap().unwrap();
    let before: Vec<_> = client.drain().into_iter().filter_map(|message| message["id"].as_i64()).collect();
    assert_eq!(before, quick[..49]);
    client.respond(asked, Reply::Result(json!("well"))).unwrap();
    assert_eq!(client.answer(slow, SOON).unwrap().unwrap(), json!("well"));
}

#[test]
fn too_many_requests_at_once_are_refused() {
    let mut client = ours();
    let ids: Vec<_> = (0..1025).map(|_| client.send_request("probe/sleep", sleep_for(60_000)).unwrap()).collect();
    assert_eq!(refusal(&client, ids[1024]).code, -32803);
    client.notify("$/cancelRequest", json!({"id": ids[0]})).unwrap();
    assert_eq!(refusal(&client, ids[0]).code, -32800);
    assert_serves(&mut client);
}
