//! How a session ends: by whom, how fast, with which exit code.

use std::fs::File;
use std::process::Stdio;

use pactify_tests::lsp::{Streams, frame};
use rustix::process::Signal;

use super::*;

#[test]
fn shutdown_then_exit_ends_it_with_code_0_though_the_input_stays_open() {
    for streams in [Streams::Pipes, Streams::Sockets] {
        let mut client = start(probe(Server::Ours).streams(streams));
        assert_serves(&mut client);
        client.request("shutdown", Value::Null).unwrap();
        client.notify("exit", Value::Null).unwrap();
        assert_eq!(client.wait_for_exit(SOON).unwrap().code(), Some(0), "{streams:?}");
    }
}

#[test]
fn stock_outlives_shutdown_and_exit() {
    let mut client = stock();
    client.send(&json!({"jsonrpc": "2.0", "id": 99, "method": "shutdown"})).unwrap();
    client.answer(99, SOON).unwrap().unwrap();
    client.send(&json!({"jsonrpc": "2.0", "method": "exit"})).unwrap();
    client.wait_for_exit(NEVER).unwrap_err();
}

#[test]
fn exit_alone_ends_it_with_code_1() {
    let mut client = ours();
    client.notify("exit", Value::Null).unwrap();
    assert_eq!(client.wait_for_exit(SOON).unwrap().code(), Some(1));
}

#[test]
fn exit_before_initialize_ends_it_with_code_1() {
    let mut client = probe(Server::Ours).spawn().unwrap();
    client.notify("exit", Value::Null).unwrap();
    assert_eq!(client.wait_for_exit(SOON).unwrap().code(), Some(1));
}

#[test]
fn shutdown_may_have_null_parameters() {
    let mut client = ours();
    client.request("shutdown", Value::Null).unwrap();
    let id = client.send_request("probe/echo", json!({})).unwrap();
    assert_eq!(refusal(&client, id).code, -32600, "a request after shutdown");
}

#[test]
fn stock_refuses_shutdown_with_null_parameters() {
    let mut client = stock();
    let id = client.send_request("shutdown", Value::Null).unwrap();
    assert_eq!(refusal(&client, id).code, -32602);
}

#[test]
fn the_end_of_input_ends_it() {
    for streams in [Streams::Pipes, Streams::Sockets] {
        let mut client = start(probe(Server::Ours).streams(streams));
        client.close_input();
        assert_eq!(client.wait_for_exit(SOON).unwrap().code(), Some(1), "{streams:?}");
    }
}

#[test]
fn the_end_of_input_after_shutdown_is_an_orderly_end() {
    let mut client = ours();
    client.request("shutdown", Value::Null).unwrap();
    client.close_input();
    assert_eq!(client.wait_for_exit(SOON).unwrap().code(), Some(0));
}

#[test]
fn the_end_of_input_does_not_wait_for_a_handler() {
    let mut client = ours();
    client.send_request("probe/sleep", sleep_for(60_000)).unwrap();
    assert_serves(&mut client);
    client.close_input();
    client.wait_for_exit(SOON).unwrap();
}

#[test]
fn stock_waits_for_a_handler_at_the_end_of_input() {
    let mut client = stock();
    client.send_request("probe/sleep", sleep_for(60_000)).unwrap();
    assert_serves(&mut client);
    client.close_input();
    client.wait_for_exit(NEVER).unwrap_err();
}

#[test]
fn the_end_does_not_wait_for_the_blocking_pool() {
    let mut client = ours();
    client.request("probe/block", sleep_for(60_000)).unwrap();
    client.close_input();
    client.wait_for_exit(SOON).unwrap();
}

#[test]
fn stock_waits_for_the_blocking_pool() {
    let mut client = stock();
    client.request("probe/block", sleep_for(60_000)).unwrap();
    client.close_input();
    client.wait_for_exit(NEVER).unwrap_err();
}

#[test]
fn what_was_asked_before_the_end_of_input_is_answered() {
    let mut client = ours();
    let ids: Vec<_> = (0..200).map(|number| client.send_request("probe/echo", json!([number])).unwrap()).collect();
    client.close_input();
    for (number, id) in ids.into_iter().enumerate() {
        assert_eq!(client.answer(id, SOON).unwrap().unwrap(), json!([number]));
    }
    client.wait_for_exit(SOON).unwrap();
}

#[test]
fn the_end_of_input_is_noticed_at_every_byte_of_a_session() {
    let session = [
        frame(br#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"capabilities":{}}}"#),
        frame(br#"{"jsonrpc":"2.0","method":"initialized","params":{}}"#),
        frame(br#"{"jsonrpc":"2.0","id":2,"method":"probe/sleep","params":{"ms":60000}}"#),
    ]
    .concat();
    for cut in 0..=session.len() {
        let mut client = probe(Server::Ours).spawn().unwrap();
        client.send_raw(&session[..cut]).unwrap();
        client.close_input();
        let status = client.wait_for_exit(SOON).unwrap();
        assert_eq!(status.code(), Some(1), "cut at {cut}: {}", client.stderr());
    }
}

#[test]
fn a_closed_output_ends_it_without_a_panic() {
    let mut client = ours();
    client.close_output();
    // The first answer lets the reading thread see that it is to stop; the others find nobody.
    while client.notify("probe/append", json!({"number": 1})).is_ok()
        && client.send_request("probe/echo", json!({})).is_ok()
    {}
    assert_eq!(client.wait_for_exit(SOON).unwrap().code(), Some(1), "{}", client.stderr());
    assert!(!client.stderr().contains("panicked"), "{}", client.stderr());
}

#[test]
fn stock_panics_when_its_output_is_closed() {
    let mut client = stock();
    client.close_output();
    while client.send_request("probe/echo", json!({})).is_ok() {}
    assert_eq!(client.wait_for_exit(SOON).unwrap().code(), Some(101));
}

#[test]
fn a_hang_up_ends_it() {
    let mut client = ours();
    client.signal(Signal::HUP).unwrap();
    client.wait_for_exit(SOON).unwrap();
}

#[test]
fn the_death_of_the_editor_ends_it_though_the_input_stays_open() {
    assert!(outlived_editor(Server::Ours, SOON).is_none());
}

#[test]
fn stock_outlives_the_editor() {
    assert!(outlived_editor(Server::Stock, NEVER).is_some());
}

/// Kills the process that `initialize` named, and gives the server if it is still there after `patience`.
#[expect(clippy::disallowed_methods, reason = "a process that stands for the editor")]
fn outlived_editor(server: Server, patience: Duration) -> Option<Client> {
    let mut editor = Command::new("sleep").arg("600").spawn().unwrap();
    let mut client = probe(server).spawn().unwrap();
    client.initialize_with(json!({"processId": editor.id(), "capabilities": {}})).unwrap();
    client.send_request("probe/sleep", sleep_for(60_000)).unwrap();
    assert_serves(&mut client);
    editor.kill().unwrap();
    editor.wait().unwrap();
    match client.wait_for_exit(patience) {
        Ok(status) => {
            assert_eq!(status.code(), Some(1));
            None
        }
        Err(_) => Some(client),
    }
}

#[test]
fn an_editor_that_cannot_be_found_is_not_taken_for_dead() {
    for process in [json!(i32::MAX), json!(-1), json!(0), json!(null), json!("1"), json!(1u64 << 40)] {
        let mut client = probe(Server::Ours).spawn().unwrap();
        let _ = client.initialize_with(json!({"processId": process, "capabilities": {}}));
        assert_serves_or_refuses(&mut client);
    }
}

/// Some of the ids above are no integers, so that tower-lsp refuses to initialize; the session lives on.
fn assert_serves_or_refuses(client: &mut Client) {
    let id = client.send_request("probe/echo", json!({})).unwrap();
    client.answer(id, SOON).unwrap().ok();
}

#[test]
#[expect(clippy::disallowed_methods, reason = "standard streams that no editor would give")]
fn a_session_can_come_from_a_file_and_go_to_one() {
    let folder = tempfile::tempdir().unwrap();
    let (input, output) = (folder.path().join("in"), folder.path().join("out"));
    let session = [
        frame(br#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"capabilities":{}}}"#),
        frame(br#"{"jsonrpc":"2.0","id":2,"method":"shutdown"}"#),
        frame(br#"{"jsonrpc":"2.0","method":"exit"}"#),
    ]
    .concat();
    std::fs::write(&input, session).unwrap();
    let status = Command::new(env!("CARGO_BIN_EXE_transport-probe"))
        .stdin(File::open(&input).unwrap())
        .stdout(File::create(&output).unwrap())
        .stderr(Stdio::null())
        .status()
        .unwrap();
    assert_eq!(status.code(), Some(0));
    let expected = [
        frame(br#"{"jsonrpc":"2.0","result":{"capabilities":{}},"id":1}"#),
        frame(br#"{"jsonrpc":"2.0","result":null,"id":2}"#),
    ]
    .concat();
    assert_eq!(String::from_utf8(std::fs::read(output).unwrap()).unwrap(), String::from_utf8(expected).unwrap());
}
