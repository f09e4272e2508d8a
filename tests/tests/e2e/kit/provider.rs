//! The scripted provider over real sockets.

use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::time::Duration;

use pactify_tests::provider::{Answer, Kind, Provider, Script, Scripts, Step};
use pactify_tests::running::Running;
use pactify_tests::sandbox::Sandbox;

const PATIENCE: Duration = Duration::from_secs(60);

fn send(provider: &Provider, head: &str, body: &str) -> io::Result<TcpStream> {
    let mut stream = TcpStream::connect(("127.0.0.1", provider.port()))?;
    stream.set_read_timeout(Some(PATIENCE))?;
    let length = body.len();
    write!(stream, "{head}\r\nHost: x\r\nConnection: close\r\nContent-Length: {length}\r\n\r\n{body}")?;
    Ok(stream)
}

fn ask(provider: &Provider, head: &str, body: &str) -> String {
    send(provider, head, body).and_then(io::read_to_string).expect("an answer")
}

fn post(script: &str, session: &str) -> String {
    format!("POST /s/{script}/v1/responses HTTP/1.1\r\nsession-id: {session}")
}

#[test]
fn each_session_is_played_the_script_from_its_start() {
    let scripts = Scripts::default().with("two", Script::of([Step::message("first"), Step::message("second")]));
    let provider = Provider::start(scripts).unwrap();
    for (session, expect) in [("a", "first"), ("a", "second"), ("b", "first"), ("a", "second")] {
        let answer = ask(&provider, &post("two", session), r#"{"model": "m"}"#);
        assert!(answer.starts_with("HTTP/1.1 200 OK"), "{answer}");
        assert!(answer.contains("event: response.completed") && answer.contains(expect), "{session}: {answer}");
    }
    let seen: Vec<_> = provider.requests().iter().map(|entry| format!("{} {}", entry.session, entry.turn)).collect();
    assert_eq!(seen, ["a 0", "a 1", "b 0", "a 2"]);
    assert_eq!(provider.requests()[0].body["model"], "m");
}

#[test]
fn a_chat_is_played_the_same_script_and_its_title_is_out_of_turn() {
    let scripts = Scripts::default().with("two", Script::of([Step::shell("ls"), Step::message("second")]));
    let provider = Provider::start(scripts).unwrap();
    let chat = "POST /s/two/v1/chat/completions HTTP/1.1";
    let tools = r#"{"tools": [{"type": "function", "function": {"name": "Bash", "parameters": {"properties":
        {"command": {"type": "string"}}}}}]}"#;
    for (body, expect) in
        [(tools, r#""finish_reason":"tool_calls""#), ("{}", r#""content":"itle""#), (tools, r#""content":"ond""#)]
    {
        let answer = ask(&provider, chat, body);
        assert!(answer.contains(expect) && answer.contains("data: [DONE]"), "{body}: {answer}");
    }
    assert_eq!(provider.requests().iter().map(|entry| entry.turn).collect::<Vec<_>>(), [0, 1]);
}

#[test]
fn what_it_cannot_serve_is_refused_with_a_reason() {
    let scripts = Scripts::from_value(serde_json::json!({"scripts": {
        "open": {"steps": [{"message": "ok"}]},
        "closed": {"steps": [{"message": "ok"}], "require_auth": "Bearer right"},
    }}));
    let provider = Provider::start(scripts.unwrap()).unwrap();
    let compressed = format!("{}\r\nContent-Encoding: zstd", post("open", "a"));
    let huge = "POST /s/open/v1/responses HTTP/1.1\r\nTransfer-Encoding: chunked";
    for (head, body, status, reason) in [
        (post("nonesuch", "a"), "{}", 404, "no script \\\"nonesuch\\\"; there are: closed, open"),
        (compressed, "x", 415, "zstd"),
        (post("closed", "a"), "{}", 401, "Incorrect API key"),
        ("GET /s/open/v1/models HTTP/1.1".to_owned(), "", 200, "scripted-model"),
        ("GET /s/open/v1/responses HTTP/1.1\r\nUpgrade: websocket".to_owned(), "", 426, "no WebSocket"),
        ("GET /s/open/v1/files HTTP/1.1".to_owned(), "", 404, "no route"),
    ] {
        let answer = ask(&provider, &head, body);
        assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")) && answer.contains(reason), "{head}: {answer}");
    }
    let mut stream = TcpStream::connect(("127.0.0.1", provider.port())).unwrap();
    let mebibyte = vec![b' '; 1 << 20];
    write!(stream, "{huge}\r\nHost: x\r\n\r\n").unwrap();
    let sent = (0..64).take_while(|_| {
        let chunk = stream.write_all(b"100000\r\n").and_then(|()| stream.write_all(&mebibyte));
        chunk.and_then(|()| stream.write_all(b"\r\n")).is_ok()
    });
    assert!(sent.count() < 64, "64 MiB were taken");
}

#[test]
fn broken_answers_break_as_scripted() {
    let steps = |answer| Script::of([Step::of(answer)]);
    let scripts = Scripts::default()
        .with("drop", steps(Answer::Drop))
        .with("truncate", steps(Answer::Truncate))
        .with("raw", steps(Answer::Raw("event: nonsense\n\n".to_owned(), "text/html".to_owned())))
        .with("quota", Script::of([Step::error(429, "insufficient_quota", "no money")]));
    let provider = Provider::start(scripts).unwrap();
    assert_eq!(ask(&provider, &post("drop", "a"), "{}"), "");
    let truncated = ask(&provider, &post("truncate", "a"), "{}");
    assert!(truncated.contains("Half a ") && !truncated.contains("response.completed"), "{truncated}");
    let raw = ask(&provider, &post("raw", "a"), "{}");
    assert!(raw.contains("text/html") && raw.contains("nonsense"), "{raw}");
    let quota = ask(&provider, &post("quota", "a"), "{}");
    assert!(quota.starts_with("HTTP/1.1 429") && quota.contains(r#""code":"insufficient_quota""#), "{quota}");
}

#[test]
fn a_client_that_leaves_a_silent_stream_is_noticed() {
    let hour = Duration::from_secs(3600);
    for answer in [Answer::Hang(hour), Answer::HangHeaders(hour), Answer::HangStream(hour)] {
        let provider = Provider::start(Scripts::default().with("x", Script::of([Step::of(answer.clone())]))).unwrap();
        let client = send(&provider, &post("x", "a"), "{}").unwrap();
        let has = |kind| move |log: &[pactify_tests::provider::Entry]| log.iter().any(|entry| entry.kind == kind);
        assert!(provider.wait_for(PATIENCE, has(Kind::Request)).is_some(), "{answer:?}");
        assert!(!has(Kind::ClientGone)(&provider.log()), "{answer:?}");
        client.shutdown(Shutdown::Both).unwrap();
        assert!(provider.wait_for(PATIENCE, has(Kind::ClientGone)).is_some(), "{answer:?}");
    }
}

#[test]
fn a_dropped_provider_cuts_its_connections() {
    let step = Step::of(Answer::HangHeaders(Duration::from_secs(3600)));
    let provider = Provider::start(Scripts::default().with("x", Script::of([step]))).unwrap();
    let mut client = send(&provider, &post("x", "a"), "{}").unwrap();
    provider.wait_for(PATIENCE, |log| !log.is_empty()).unwrap();
    drop(provider);
    // Reset or closed, but not silent.
    let ended = client.read_to_end(&mut Vec::new());
    assert!(ended.is_ok() || ended.is_err_and(|error| error.kind() == io::ErrorKind::ConnectionReset));
}

#[test]
fn as_a_process_it_prints_its_address_and_ends_with_its_input() -> anyhow::Result<()> {
    let sandbox = Sandbox::new()?;
    let script = sandbox.root().join("script.json");
    std::fs::write(&script, r#"{"steps": [{"message": "hi"}]}"#)?;
    let command = |arguments: &[&str]| {
        let mut command = sandbox.command(env!("CARGO_BIN_EXE_scripted-provider"));
        command.arg("--script").arg(&script).args(arguments);
        command
    };
    let ended = Running::start(command(&["--with-stdin", "--port-file", "port"]), b"")?.wait(PATIENCE)?.success()?;
    let port = std::fs::read_to_string(sandbox.root().join("port"))?;
    assert_eq!(ended.stdout, format!("http://127.0.0.1:{port}\n"));

    let running = Running::start(command(&[]), b"")?;
    let address = running.wait_for_line("http://", PATIENCE)?;
    let mut client = TcpStream::connect(address.trim_start_matches("http://"))?;
    client.write_all(
        b"GET /v1/models HTTP/1.1\r\nHost: x\r\n\r\nGET /__log HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n",
    )?;
    let answers = io::read_to_string(client)?;
    assert!(answers.contains(r#""path":"/v1/models""#), "{answers}");

    std::fs::write(&script, r#"{"steps": [{"mesage": "typo"}]}"#)?;
    let refused = Running::start(command(&[]), b"")?.wait(PATIENCE)?;
    assert!(refused.code() == 1 && refused.stderr.contains("unknown field `mesage`"), "{}", refused.stderr);
    Ok(())
}
