//! Messages that are not what they should be: refused, and the session goes on.

use pactify_tests::lsp::frame;

use super::*;

/// Sends bytes that hold one bad message and gives the error that comes back without an id.
fn complaint(client: &Client, bytes: &[u8]) -> i64 {
    client.send_raw(bytes).unwrap();
    client.anonymous_error(SOON).unwrap().code
}

const NOT_JSON: &[u8] = b"{\"jsonrpc\":\"2.0\",";
const NOT_UTF_8: &[u8] = b"{\"jsonrpc\":\"2.0\",\"method\":\"\xff\xfe\"}";
const BATCH: &[u8] = br#"[{"jsonrpc":"2.0","id":1,"method":"probe/echo"}]"#;
const NO_OBJECT: &[u8] = b"42";
const SHAPELESS: &[u8] = br#"{"jsonrpc":"2.0","neither":"request nor answer"}"#;

#[test]
fn a_malformed_message_is_refused_and_the_session_goes_on() {
    let deep = [b"[".repeat(1 << 20), b"]".repeat(1 << 20)].concat();
    let deep_params = format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"probe/echo","params":{}{}}}"#,
        r#"{"a":"#.repeat(100_000),
        "}".repeat(100_000)
    );
    let cases: [(&[u8], i64); 11] = [
        (NOT_JSON, -32700),
        (b"", -32700),
        (NOT_UTF_8, -32700),
        (&deep, -32700),
        (deep_params.as_bytes(), -32700),
        (BATCH, -32600),
        (SHAPELESS, -32600),
        (NO_OBJECT, -32600),
        (br#"{"jsonrpc":"1.0","method":"probe/echo"}"#, -32600),
        (br#"{"jsonrpc":"2.0","id":{},"method":"probe/echo"}"#, -32600),
        (br#"{"jsonrpc":"2.0","method":"probe/append","params":7}"#, -32600),
    ];
    let mut client = ours();
    for (body, code) in cases {
        let shown = String::from_utf8_lossy(&body[..body.len().min(80)]).into_owned();
        assert_eq!(complaint(&client, &frame(body)), code, "{shown}");
        assert_serves(&mut client);
    }
}

#[test]
fn stock_ends_at_a_malformed_message() {
    for body in [NOT_JSON, NOT_UTF_8, BATCH, NO_OBJECT] {
        let mut client = stock();
        client.send_raw(&frame(body)).unwrap();
        assert_serves_no_more(&mut client);
    }
}

#[test]
fn headers_are_read_tolerantly() {
    let body = r#"{"jsonrpc":"2.0","id":"t","method":"probe/echo","params":["hi"]}"#;
    let length = body.len();
    let client = ours();
    for header in [
        format!("content-length: {length}\r\n"),
        format!("CONTENT-LENGTH:{length}\r\nContent-Type: application/vscode-jsonrpc; charset=utf8\r\n"),
        format!("X-One: 1\r\nX-Two: 2\r\nContent-Length: {length}\r\n"),
        format!("Content-Length: {length}\n"),
    ] {
        client.send_raw(format!("{header}\r\n{body}").as_bytes()).unwrap();
        let answer = client.take(&header, SOON, |message| message["id"] == "t").unwrap();
        assert_eq!(answer["result"], json!(["hi"]), "{header}");
    }
}

#[test]
fn stock_ends_at_a_header_it_does_not_know() {
    let body = r#"{"jsonrpc":"2.0","id":50,"method":"probe/echo","params":["hi"]}"#;
    let length = body.len();
    for header in
        [format!("content-length: {length}\r\n"), format!("X-One: 1\r\nX-Two: 2\r\nContent-Length: {length}\r\n")]
    {
        let client = stock();
        client.send_raw(format!("{header}\r\n{body}").as_bytes()).unwrap();
        assert!(client.answer(50, NEVER).is_err(), "{header}");
    }
}

#[test]
fn a_header_without_a_length_costs_its_own_message_only() {
    let mut client = ours();
    for header in ["X: 1", "Content-Length: many", "Content-Length: -1", "Content-Length: 1\r\nContent-Length: 2"] {
        let code = complaint(&client, format!("{header}\r\n\r\n{{\"jsonrpc\":\"2.0\"}}").as_bytes());
        assert_eq!(code, -32700, "{header}");
        assert_serves(&mut client);
    }
}

#[test]
fn an_unknown_method_is_refused_and_an_unknown_notification_ignored() {
    let mut client = ours();
    client.notify("probe/nothing", json!({})).unwrap();
    for method in ["probe/nothing", "$/nothing"] {
        let id = client.send_request(method, json!({})).unwrap();
        assert_eq!(refusal(&client, id).code, -32601, "{method}");
    }
}

#[test]
fn answers_that_nobody_asked_for_are_dropped() {
    let mut client = ours();
    for id in [json!(0), json!(1), json!("pactify-1"), json!("x"), json!(null)] {
        client.send(&json!({"jsonrpc": "2.0", "id": id, "error": {"code": 1, "message": "?"}})).unwrap();
        client.send(&json!({"jsonrpc": "2.0", "id": id, "error": "not even an error"})).unwrap();
    }
    assert_serves(&mut client);
    assert_eq!(client.drain(), [] as [Value; 0]);
}

#[test]
fn a_stray_print_does_not_reach_the_client() {
    let mut client = ours();
    client.request("probe/print", json!({})).unwrap();
    assert_serves(&mut client);
    client.close_input();
    client.wait_for_exit(SOON).unwrap();
    assert!(client.stderr().contains("a stray print"), "{}", client.stderr());
}

#[test]
fn stock_lets_a_stray_print_corrupt_the_stream() {
    let mut client = stock();
    let error = client.request("probe/print", json!({})).unwrap_err();
    assert!(format!("{error:?}").contains("broke the protocol"), "{error:?}");
}
