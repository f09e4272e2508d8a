//! Messages and queues of hostile size.

use std::sync::mpsc;
use std::thread;

use pactify_tests::lsp::{DEADLINE, frame};

use super::*;

/// A request whose body has exactly this many bytes.
fn request_of(length: usize) -> Vec<u8> {
    let (head, tail) = (r#"{"jsonrpc":"2.0","id":"big","method":"probe/length","params":[""#, r#""]}"#);
    let mut body = head.as_bytes().to_vec();
    body.resize(length - tail.len(), b'x');
    body.extend_from_slice(tail.as_bytes());
    frame(&body)
}

#[test]
fn a_message_of_the_largest_size_is_served() {
    let mut client = ours();
    client.send_raw(&request_of(CAP)).unwrap();
    let answer = client.take("the answer", PATIENCE, |message| message["id"] == "big").unwrap();
    assert!(answer["result"].as_u64().is_some_and(|length| length > CAP as u64 - 100));
    assert_serves(&mut client);
    assert!(resident_mib(&client) < 32, "{} MiB", resident_mib(&client));
}

#[test]
fn a_message_over_the_largest_size_is_refused_and_skipped() {
    let mut client = ours();
    client.send_raw(&request_of(CAP + 1)).unwrap();
    assert_eq!(client.anonymous_error(DEADLINE).unwrap().code, -32600);
    assert_serves(&mut client);
    assert!(resident_mib(&client) < 32, "{} MiB", resident_mib(&client));
}

#[test]
fn a_header_of_a_mebibyte_is_refused_and_skipped() {
    let mut client = ours();
    let junk = "j".repeat(1 << 20);
    client.send_raw(format!("X-Junk: {junk}\r\nContent-Length: 2\r\n\r\n{{}}").as_bytes()).unwrap();
    assert_eq!(client.anonymous_error(SOON).unwrap().code, -32600);
    assert_serves(&mut client);
    assert!(resident_mib(&client) < 32, "{} MiB", resident_mib(&client));
}

#[test]
fn a_header_without_an_end_costs_no_memory() {
    let mut client = ours();
    for _ in 0..64 {
        client.send_raw(&vec![b'j'; 1 << 20]).unwrap();
    }
    assert!(resident_mib(&client) < 32, "{} MiB", resident_mib(&client));
    client.close_input();
    client.wait_for_exit(SOON).unwrap();
}

#[test]
fn an_absurd_length_is_refused_and_allocates_nothing() {
    let mut client = ours();
    client.send_raw(b"Content-Length: 9000000000000000000\r\n\r\n{}").unwrap();
    assert_eq!(client.anonymous_error(SOON).unwrap().code, -32600);
    assert!(resident_mib(&client) < 32, "{} MiB", resident_mib(&client));
    client.close_input();
    client.wait_for_exit(SOON).unwrap();
}

#[test]
fn a_client_that_does_not_read_is_left_waiting_and_then_served() {
    const COUNT: i64 = 20_000;
    let client = ours();
    client.stop_reading();
    let (done, sent) = mpsc::channel();
    let sender = client.sender();
    thread::spawn(move || {
        let filler = "x".repeat(1000);
        for id in 0..COUNT {
            let id = 1_000_000 + id;
            sender.send(&json!({"jsonrpc": "2.0", "id": id, "method": "probe/echo", "params": [filler]})).unwrap();
        }
        done.send(()).unwrap();
    });
    sent.recv_timeout(NEVER).expect_err("the server took everything");
    assert!(resident_mib(&client) < 32, "{} MiB", resident_mib(&client));
    client.read_on();
    sent.recv_timeout(PATIENCE).unwrap();
    client.answer(1_000_000 + COUNT - 1, PATIENCE).unwrap().unwrap();
    let answered = client.drain().iter().filter(|message| message.get("result").is_some()).count();
    assert_eq!(answered as i64, COUNT - 1);
}

#[test]
fn a_client_that_neither_reads_nor_sends_any_more_is_given_up() {
    let mut client = start(probe(Server::Ours).reading_until("probe/tick"));
    client.send_request("probe/flood", json!({"count": 10_000, "bytes": 1000})).unwrap();
    // Nothing is written before the flood is complete.
    client.notification("probe/tick", DEADLINE).unwrap();
    // The server leaves these in the pipe, with the end of input behind them.
    for _ in 0..200 {
        client.send_request("probe/echo", json!({})).unwrap();
    }
    client.close_input();
    client.wait_for_exit(SOON).unwrap();
}

#[test]
fn notifications_to_a_client_that_does_not_read_are_dropped_and_counted() {
    let mut client = ours();
    client.stop_reading();
    let flood = client.send_request("probe/flood", json!({"count": 100_000, "bytes": 1000})).unwrap();
    let diagnose = client.send_request("probe/diagnose", json!({"count": 1000, "bytes": 0})).unwrap();
    client.read_on();
    let notice = client.notification("window/logMessage", DEADLINE).unwrap();
    let counts = client.answer(flood, DEADLINE).unwrap().unwrap();
    let (queued, dropped) = (counts["queued"].as_u64().unwrap(), counts["dropped"].as_u64().unwrap());
    assert!(queued > 1000 && dropped > 50_000, "{counts}");
    assert!(resident_mib(&client) < 48, "{} MiB", resident_mib(&client));
    client.answer(diagnose, DEADLINE).unwrap().unwrap();
    assert_serves(&mut client);
    let ticks: Vec<_> = client.drain().into_iter().filter(|message| message["method"] == "probe/tick").collect();
    assert_eq!(ticks.len() as u64, queued);
    // The diagnostics were dropped too, except that the first is not in the queue's way if it had room.
    let told: u64 = notice["message"].as_str().unwrap().split(' ').find_map(|word| word.parse().ok()).unwrap();
    assert!(told >= dropped, "{notice}");
}
