//! A thousand damaged sessions, the same ones every time.

use pactify_tests::lsp::frame;

use super::*;

/// Who is given the damaged sessions.
struct Subject {
    session: [&'static str; 5],
    /// A request that is answered, even if only with an error.
    request: &'static str,
    launch: Box<dyn Fn() -> Launch>,
}

/// The transport with handlers that sleep and ask the client.
fn the_probe() -> Subject {
    const SESSION: [&str; 5] = [
        r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"processId":null,"rootUri":null,"capabilities":{}}}"#,
        r#"{"jsonrpc":"2.0","method":"initialized","params":{}}"#,
        r#"{"jsonrpc":"2.0","id":2,"method":"probe/echo","params":{"text":"h\u00e9llo \"there\""}}"#,
        r#"{"jsonrpc":"2.0","id":"three","method":"probe/askOutbox","params":{"ms":50}}"#,
        r#"{"jsonrpc":"2.0","method":"$/cancelRequest","params":{"id":"three"}}"#,
    ];
    Subject { session: SESSION, request: "probe/echo", launch: Box::new(|| probe(Server::Ours)) }
}

/// What people run.
fn the_product() -> Subject {
    const SESSION: [&str; 5] = [
        r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"processId":null,"rootUri":"file:///nowhere","capabilities":{"window":{"workDoneProgress":true}}}}"#,
        r#"{"jsonrpc":"2.0","method":"initialized","params":{}}"#,
        r#"{"jsonrpc":"2.0","method":"textDocument/didOpen","params":{"textDocument":{"uri":"file:///nowhere/a.c","languageId":"c","version":1,"text":"h\u00e9llo \"there\""}}}"#,
        r#"{"jsonrpc":"2.0","id":"three","method":"workspace/executeCommand","params":{"command":"pactify.status","arguments":[{"limit":3}]}}"#,
        r#"{"jsonrpc":"2.0","method":"$/cancelRequest","params":{"id":"three"}}"#,
    ];
    let product = Product::new();
    Subject { session: SESSION, request: "pactify/job/status", launch: Box::new(move || product.launch()) }
}

/// Xorshift: the numbers only have to be many and always the same.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % limit as u64).unwrap()
    }

    fn byte(&mut self) -> u8 {
        u8::try_from(self.below(256)).unwrap()
    }
}

/// Damage inside the bodies leaves their lengths true, so the server must not lose its place.
fn damage_bodies(numbers: &mut Numbers, session: [&str; 5]) -> Vec<u8> {
    let mut bodies = session.map(|body| body.as_bytes().to_vec());
    for _ in 0..=numbers.below(4) {
        let body = &mut bodies[numbers.below(session.len())];
        let at = numbers.below(body.len());
        body[at] = numbers.byte();
    }
    bodies.map(|body| frame(&body)).concat()
}

fn damage_anything(numbers: &mut Numbers, session: [&str; 5]) -> Vec<u8> {
    let mut bytes = session.map(|body| frame(body.as_bytes())).concat();
    for _ in 0..=numbers.below(4) {
        let at = numbers.below(bytes.len());
        let end = (at + numbers.below(40)).min(bytes.len());
        match numbers.below(5) {
            0 => bytes[at] = numbers.byte(),
            1 => bytes.insert(at, numbers.byte()),
            2 => drop(bytes.drain(at..end)),
            3 => bytes.splice(at..at, bytes[at..end].to_vec()).for_each(drop),
            _ => bytes[at] ^= 1 << numbers.below(8),
        }
    }
    bytes
}

/// Fails unless the session ends in time, by itself, without a panic, and with nothing but frames on its output.
fn assert_ends_well(mut client: Client, what: &dyn Fn() -> String) {
    client.close_input();
    let status = client.wait_for_exit(SOON).unwrap_or_else(|error| panic!("{error:?}: {}", what()));
    assert!(matches!(status.code(), Some(0 | 1)), "{status}: {}: {}", what(), client.stderr());
    assert!(!client.stderr().contains("panicked"), "{}: {}", client.stderr(), what());
    let error = client.take("the end of output", SOON, |_| false).unwrap_err();
    assert!(!format!("{error:?}").contains("broke the protocol"), "{error:?}: {}", what());
}

fn damaged_bodies_are_survived(subject: &Subject) {
    let mut numbers = Numbers(0x70_61_63_74_69_66_79);
    for round in 0..500 {
        let bytes = damage_bodies(&mut numbers, subject.session);
        let what = || format!("round {round}: {}", String::from_utf8_lossy(&bytes));
        let client = (subject.launch)().spawn().unwrap();
        client.send_raw(&bytes).unwrap();
        client.send(&json!({"jsonrpc": "2.0", "id": "after", "method": subject.request, "params": {}})).unwrap();
        let answer = client.take("the answer after the damage", SOON, |message| message["id"] == "after");
        assert!(answer.is_ok(), "{answer:?}: {}", what());
        assert_ends_well(client, &what);
    }
}

fn any_damage_is_survived(subject: &Subject) {
    let mut numbers = Numbers(0x7472_616e_7370_6f72);
    for round in 0..500 {
        let bytes = damage_anything(&mut numbers, subject.session);
        let what = || format!("round {round}: {}", String::from_utf8_lossy(&bytes));
        let client = (subject.launch)().spawn().unwrap();
        client.send_raw(&bytes).unwrap();
        assert_ends_well(client, &what);
    }
}

#[test]
fn after_damaged_bodies_the_next_request_is_answered() {
    damaged_bodies_are_survived(&the_probe());
}

#[test]
fn after_damaged_bodies_the_product_answers_the_next_request() {
    damaged_bodies_are_survived(&the_product());
}

#[test]
fn after_any_damage_the_session_ends_well() {
    any_damage_is_survived(&the_probe());
}

#[test]
fn after_any_damage_the_session_with_the_product_ends_well() {
    any_damage_is_survived(&the_product());
}
