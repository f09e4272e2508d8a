//! The language server transport, against a probe whose handlers sleep, panic, print and wait for the client.
//!
//! Where a check is about a defect of `tower_lsp::Server`, a test of the same module runs the same steps against the
//! probe on that server and shows that they fail, so that ours cannot pass by looking at nothing.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on says where")]

mod endings;
mod handlers;
mod limits;
mod malformed;
mod mutations;
mod outbox;

use std::process::Command;
use std::time::Duration;

use pactify_tests::lsp::{Client, Launch, RpcError};
use serde_json::{Value, json};

/// What the product promises about the end of a session.
const SOON: Duration = Duration::from_secs(1);
/// Long enough for a server that works to have done it, short enough to wait for one that never will.
const NEVER: Duration = Duration::from_millis(1500);

/// What the probe's handlers stand on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Server {
    Ours,
    /// tower-lsp's own.
    Stock,
}

#[expect(clippy::disallowed_methods, reason = "the probe looks at no file and no variable")]
fn probe(server: Server) -> Launch {
    let mut command = Command::new(env!("CARGO_BIN_EXE_transport-probe"));
    command.env_clear();
    if server == Server::Stock {
        command.arg("--stock");
    }
    Launch::new(command)
}

fn ours() -> Client {
    start(probe(Server::Ours))
}

fn stock() -> Client {
    start(probe(Server::Stock))
}

fn start(launch: Launch) -> Client {
    let mut client = launch.spawn().unwrap();
    client.initialize(json!({})).unwrap();
    client
}

/// Fails unless the server still answers.
fn assert_serves(client: &mut Client) {
    assert_eq!(client.request("probe/echo", json!({"still": "there"})).unwrap(), json!({"still": "there"}));
}

/// Fails if the server answers once more.
fn assert_serves_no_more(client: &mut Client) {
    let answer = client.send_request("probe/echo", json!({})).and_then(|id| client.answer(id, NEVER));
    assert!(answer.is_err(), "it answered {answer:?}");
}

fn refusal(client: &Client, id: i64) -> RpcError {
    client.answer(id, SOON).unwrap().expect_err("the request succeeded")
}

fn sleep_for(ms: u64) -> Value {
    json!({"ms": ms})
}
