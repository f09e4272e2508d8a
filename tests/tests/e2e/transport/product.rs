//! What the transport promises, of the program that people run.

use pactify_tests::lsp::frame;

use super::*;

/// What the start does is done by then, if the machine has time for it.
const STARTED: Duration = Duration::from_secs(1);
/// What the start does late falls into some of these windows, what never ends into all of them.
const WINDOWS: usize = 20;

impl Product {
    fn start(&self) -> Client {
        let mut client = self.launch().spawn().unwrap();
        client.initialize(json!({})).unwrap();
        client
    }
}

/// Fails unless it still lists its jobs, of which there are none.
fn assert_lists(client: &mut Client) {
    let listed = client.request("pactify/job/status", json!({})).unwrap();
    assert_eq!(listed["jobs"], json!([]));
}

/// How long the process has used a processor, in hundredths of a second (the unit of `/proc`, proc_pid_stat(5)).
fn used(client: &Client) -> u64 {
    let pid = client.pid().as_raw_nonzero();
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    // The name may hold blanks; after it, the times are the 12th and the 13th.
    let (_, fields) = stat.rsplit_once(')').unwrap();
    fields.split_whitespace().skip(11).take(2).map(|ticks| ticks.parse::<u64>().unwrap()).sum()
}

#[test]
fn the_end_of_input_is_noticed_at_every_byte_of_a_session() {
    let session = [
        frame(br#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"capabilities":{}}}"#),
        frame(br#"{"jsonrpc":"2.0","method":"initialized","params":{}}"#),
        frame(br#"{"jsonrpc":"2.0","id":2,"method":"pactify/job/status","params":{}}"#),
    ]
    .concat();
    let product = Product::new();
    for cut in 0..=session.len() {
        let mut client = product.launch().spawn().unwrap();
        client.send_raw(&session[..cut]).unwrap();
        client.close_input();
        let status = client.wait_for_exit(SOON).unwrap();
        assert_eq!(status.code(), Some(1), "cut at {cut}: {}", client.stderr());
    }
}

#[test]
fn messages_of_hostile_size_leave_it_small_and_serving() {
    let product = Product::new();
    let mut client = product.start();
    // Of the largest size that is read at all; its argument is longer than any brief may be.
    let (head, tail) = (r#"{"jsonrpc":"2.0","id":"big","method":"pactify/job/delegate","params":{"brief":""#, r#""}}"#);
    let body = [head.as_bytes(), &vec![b'x'; CAP - head.len() - tail.len()], tail.as_bytes()].concat();
    client.send_raw(&frame(&body)).unwrap();
    let answer = client.take("the answer", PATIENCE, |message| message["id"] == "big").unwrap();
    assert_eq!(answer["error"]["code"], -32602, "{answer}");
    assert_lists(&mut client);

    client.send_raw(&frame(&[&body[..], b" "].concat())).unwrap();
    assert_eq!(client.anonymous_error(PATIENCE).unwrap().code, -32600);
    assert_lists(&mut client);

    let header = format!("X-Junk: {}\r\nContent-Length: 2\r\n\r\n{{}}", "j".repeat(1 << 20));
    client.send_raw(header.as_bytes()).unwrap();
    assert_eq!(client.anonymous_error(SOON).unwrap().code, -32600);
    assert_lists(&mut client);

    assert!(resident_mib(&client) < 48, "{} MiB", resident_mib(&client));
}

#[test]
fn waiting_takes_no_time_of_a_processor() {
    let product = Product::new();
    let beginnings: [&[u8]; 4] = [
        b"",
        b"Content-Le",
        b"Content-Length: 100\r\n\r\n{\"jsonrpc\"",
        b"Content-Length: 9000000000000000000\r\n\r\n{}",
    ];
    for beginning in beginnings {
        let client = product.start();
        client.send_raw(beginning).unwrap();
        let _ = client.take("nothing", STARTED, |_| false);
        let mut windows = (0..WINDOWS).map(|_| {
            let before = used(&client);
            let _ = client.take("nothing", NEVER, |_| false);
            used(&client) - before
        });
        // In hundredths of a second.
        assert!(windows.any(|spent| spent <= 10), "no rest after {}", String::from_utf8_lossy(beginning));
    }
}
