//! The language server transport, against a probe whose handlers sleep, panic, print and wait for the client; what
//! comes from outside ([`mutations`], [`product`]) against the product, too.
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
mod product;

use std::process::Command;
use std::time::Duration;

use pactify_tests::lsp::{Client, Launch, RpcError};
use pactify_tests::outside;
use pactify_tests::sandbox::Sandbox;
use serde_json::{Value, json};

/// For what our server does at once, and what a stock one does at all, on a busy machine.
const SOON: Duration = Duration::from_secs(20);
/// Long enough to show what a server does not do, short enough to wait for; no limit for what it has to do.
const NEVER: Duration = Duration::from_millis(1500);

/// The largest message.
const CAP: usize = 64 * 1024 * 1024;
/// For what takes seconds on an idle machine: these tests are about size.
const PATIENCE: Duration = Duration::from_secs(120);

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

/// `pactify-lsp` in a world of its own.
struct Product(Sandbox);

impl Product {
    fn new() -> Self {
        Self(Sandbox::new().unwrap())
    }

    fn launch(&self) -> Launch {
        Launch::new(self.0.command(outside::program("pactify-lsp").unwrap())).arg("--stdio")
    }
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

/// Resident memory of the server.
fn resident_mib(client: &Client) -> usize {
    let pid = client.pid().as_raw_nonzero();
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<usize>().unwrap() / 1024
}
