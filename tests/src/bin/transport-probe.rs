//! A language server whose handlers do what real ones should not: sleep, panic, wait for the client, print.
//!
//! By default it stands on `pactify_lsp::transport`; with `--stock` the same handlers stand on `tower_lsp::Server`, so
//! that a test can show that what it checks does go wrong without our transport.

use std::sync::Mutex;
use std::time::Duration;

use lsp_types::notification::Notification;
use lsp_types::request::Request;
use lsp_types::{
    InitializeParams, InitializeResult, PublishDiagnosticsParams, Url, WorkDoneProgressBegin, WorkDoneProgressReport,
    notification,
};
use pactify_lsp::transport::{self, Delivery, Outbox, Progress};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tower_lsp::jsonrpc::{Error, Result};
use tower_lsp::{Client, ClientSocket, LanguageServer, LspService};

struct Probe {
    client: Client,
    outbox: Outbox,
    log: Mutex<Vec<u64>>,
}

#[derive(Deserialize)]
struct Wait {
    ms: u64,
}

#[derive(Deserialize)]
struct Item {
    number: u64,
}

#[derive(Deserialize)]
struct Flood {
    count: u64,
    bytes: usize,
}

#[derive(Deserialize)]
struct Steps {
    reports: u32,
    /// Between two reports.
    pause_us: u64,
    /// Is the answer to come after the end?
    #[serde(default)]
    wait: bool,
}

/// A request to the client that no editor knows.
enum Ask {}

impl Request for Ask {
    type Params = Value;
    type Result = Value;
    const METHOD: &'static str = "probe/ask";
}

/// An event of the kind that a client may miss.
enum Tick {}

impl Notification for Tick {
    type Params = TickParams;
    const METHOD: &'static str = "probe/tick";
}

#[derive(Serialize, Deserialize)]
struct TickParams {
    number: u64,
    filler: String,
}

#[tower_lsp::async_trait]
impl LanguageServer for Probe {
    async fn initialize(&self, _: InitializeParams) -> Result<InitializeResult> {
        Ok(InitializeResult::default())
    }

    async fn shutdown(&self) -> Result<()> {
        Ok(())
    }
}

impl Probe {
    async fn echo(&self, params: Value) -> Result<Value> {
        Ok(params)
    }

    async fn length(&self, (text,): (String,)) -> Result<usize> {
        Ok(text.len())
    }

    async fn sleep(&self, Wait { ms }: Wait) -> Result<&'static str> {
        tokio::time::sleep(Duration::from_millis(ms)).await;
        Ok("slept")
    }

    /// Work that cannot be interrupted and outlives its request.
    #[expect(clippy::disallowed_methods, reason = "a sleep that nothing can interrupt is what this is for")]
    async fn block(&self, Wait { ms }: Wait) -> Result<()> {
        tokio::task::spawn_blocking(move || std::thread::sleep(Duration::from_millis(ms)));
        Ok(())
    }

    async fn panic(&self, Wait { ms }: Wait) -> Result<()> {
        if ms > 0 {
            tokio::time::sleep(Duration::from_millis(ms)).await;
        }
        panic!("as asked")
    }

    async fn panic_notification(&self, _: Value) {
        panic!("as told")
    }

    async fn print(&self, _: Value) -> Result<()> {
        use std::io::Write;
        let mut stdout = std::io::stdout();
        stdout.write_all(b"a stray print\n").and_then(|()| stdout.flush()).map_err(|_| Error::internal_error())
    }

    async fn append(&self, Item { number }: Item) {
        self.log().push(number);
    }

    async fn appended(&self) -> Result<Vec<u64>> {
        Ok(self.log().clone())
    }

    /// What no handler should do: wait for the client, through tower-lsp's own handle.
    async fn ask_client(&self, Wait { ms }: Wait) -> Result<Value> {
        let answer = self.client.send_request::<Ask>(json!({"by": "client"}));
        tokio::time::timeout(Duration::from_millis(ms), answer).await.unwrap_or_else(|_| Ok(json!("gave up")))
    }

    async fn ask_outbox(&self, Wait { ms }: Wait) -> Result<Value> {
        let answer = self.outbox.request::<Ask>(json!({"by": "outbox"}), Duration::from_millis(ms)).await;
        Ok(answer.unwrap_or_else(|error| json!(error.to_string())))
    }

    async fn flood(&self, Flood { count, bytes }: Flood) -> Result<Value> {
        let mut queued = 0;
        for number in 0..count {
            let params = TickParams { number, filler: "x".repeat(bytes) };
            queued += u64::from(self.outbox.notify::<Tick>(&params) == Delivery::Queued);
        }
        Ok(json!({"queued": queued, "dropped": count - queued}))
    }

    /// Says the newest state of one document many times.
    async fn diagnose(&self, Flood { count, .. }: Flood) -> Result<()> {
        let uri = Url::parse("file:///probe").map_err(|_| Error::internal_error())?;
        for version in 1..=count {
            let version = i32::try_from(version).ok();
            let params = PublishDiagnosticsParams { uri: uri.clone(), diagnostics: Vec::new(), version };
            self.outbox.notify_latest::<notification::PublishDiagnostics>(uri.as_str(), &params);
        }
        Ok(())
    }

    /// Starts progress and returns at once, as a real handler does, unless it is to wait.
    async fn progress(&self, steps: Steps) -> Result<()> {
        let begin = WorkDoneProgressBegin { title: "probe".to_owned(), cancellable: Some(true), ..Default::default() };
        let wait = steps.wait;
        let running = tokio::spawn(run_progress(self.outbox.progress(begin), steps));
        if wait {
            running.await.map_err(|_| Error::internal_error())?;
        }
        Ok(())
    }

    fn log(&self) -> std::sync::MutexGuard<'_, Vec<u64>> {
        self.log.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

async fn run_progress(progress: Progress, steps: Steps) {
    let work = async {
        for percentage in 1..=steps.reports {
            progress.report(WorkDoneProgressReport { percentage: Some(percentage), ..Default::default() });
            tokio::time::sleep(Duration::from_micros(steps.pause_us)).await;
        }
        "done"
    };
    let message = tokio::select! {
        message = work => message,
        () = progress.cancelled() => "cancelled",
    };
    progress.end(Some(message.to_owned()));
}

fn build(outbox: Outbox) -> (LspService<Probe>, ClientSocket) {
    LspService::build(|client| Probe { client, outbox, log: Mutex::default() })
        .custom_method("probe/echo", Probe::echo)
        .custom_method("probe/length", Probe::length)
        .custom_method("probe/sleep", Probe::sleep)
        .custom_method("probe/block", Probe::block)
        .custom_method("probe/panic", Probe::panic)
        .custom_method("probe/panicNotification", Probe::panic_notification)
        .custom_method("probe/print", Probe::print)
        .custom_method("probe/append", Probe::append)
        .custom_method("probe/appended", Probe::appended)
        .custom_method("probe/askClient", Probe::ask_client)
        .custom_method("probe/askOutbox", Probe::ask_outbox)
        .custom_method("probe/flood", Probe::flood)
        .custom_method("probe/diagnose", Probe::diagnose)
        .custom_method("probe/progress", Probe::progress)
        .finish()
}

fn main() -> std::io::Result<()> {
    if std::env::args().any(|arg| arg == "--stock") {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        runtime.block_on(async {
            let (service, socket) = build(Outbox::default());
            tower_lsp::Server::new(tokio::io::stdin(), tokio::io::stdout(), socket).serve(service).await;
        });
        return Ok(());
    }
    let ending = transport::run(build)?;
    std::process::exit(ending.code())
}
