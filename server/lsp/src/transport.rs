//! The session with one editor: frames on two descriptors, a tower-lsp service behind them.
//!
//! tower-lsp gives us [`LspService`], `Client` and the `LanguageServer` trait; its `Server` is not used, because it
//! ends on the first malformed message, dies of a panic in a handler, waits for handlers before it ends, and deadlocks
//! when four of them wait for the client. This module drives the service instead, and owns: [framing](frame), what a
//! message [means](message), running handlers ([`dispatch`]), everything sent on our own account ([`Outbox`]), the
//! [descriptors](stdio), and how a session [ends](Ending). It knows no method of pactify.
//!
//! One loop ([`serve`]) reads, dispatches, writes and decides the end; it never waits for a handler, so a cancel, an
//! answer or the end of input takes effect at once. While the client does not read, its requests are left in its pipe.
//!
//! ```no_run
//! use pactify_lsp::transport::{self, Outbox};
//! use tower_lsp::jsonrpc::Result;
//! use tower_lsp::lsp_types::{InitializeParams, InitializeResult, MessageType, ShowMessageParams, notification};
//! use tower_lsp::{LanguageServer, LspService};
//!
//! struct Backend {
//!     outbox: Outbox,
//! }
//!
//! #[tower_lsp::async_trait]
//! impl LanguageServer for Backend {
//!     async fn initialize(&self, _: InitializeParams) -> Result<InitializeResult> {
//!         let message = ShowMessageParams { typ: MessageType::INFO, message: "hello".to_owned() };
//!         self.outbox.notify::<notification::ShowMessage>(&message);
//!         Ok(InitializeResult::default())
//!     }
//!
//!     async fn shutdown(&self) -> Result<()> {
//!         Ok(())
//!     }
//! }
//!
//! fn main() -> std::io::Result<()> {
//!     let ending = transport::run(|outbox| LspService::new(|_client| Backend { outbox }))?;
//!     std::process::exit(ending.code())
//! }
//! ```
//!
//! Start reading at [`run`].

use std::io;
use std::ops::ControlFlow::{Break, Continue};
use std::pin::pin;
use std::time::Duration;

use futures_util::StreamExt;
use tower_lsp::jsonrpc::{Request, Response};
use tower_lsp::{ClientSocket, ExitedError, LanguageServer, LspService};
use tower_service::Service;

use dispatch::{Dispatcher, Happening};
pub use outbox::{ClientError, Delivery, Limits, Outbox, Progress};
use reader::{Arrival, Reader};
use stdio::{Input, Output};

mod dispatch;
mod editor;
pub mod frame;
pub mod message;
mod outbox;
mod reader;
pub mod stdio;
pub mod written;

/// What is queued when the session ends has this long to be read.
const LAST_WRITE: Duration = Duration::from_secs(1);

/// How a session ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// By `shutdown`, then `exit` or the end of input.
    Orderly,
    /// By `exit` alone.
    ExitWithoutShutdown,
    /// The client closed our input, or it could not be read.
    InputClosed,
    /// The client closed our output.
    OutputClosed,
    /// The process that the client named in `initialize` ended.
    EditorGone,
}

impl Ending {
    /// The exit code, as the specification defines it: 0 after a `shutdown`, else 1.
    pub fn code(self) -> i32 {
        match self {
            Ending::Orderly => 0,
            Ending::ExitWithoutShutdown | Ending::InputClosed | Ending::OutputClosed | Ending::EditorGone => 1,
        }
    }
}

/// Serves one session on standard input and output, on a single-threaded runtime of its own.
///
/// `build` runs inside the runtime. Leave the process with [`std::process::exit`] afterwards: work in the blocking pool
/// is abandoned, not waited for.
pub fn run<B, F>(build: F) -> io::Result<Ending>
where
    B: LanguageServer,
    F: FnOnce(Outbox) -> (LspService<B>, ClientSocket),
{
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let ending = runtime.block_on(async {
        let (input, output) = stdio::claim()?;
        let outbox = Outbox::default();
        let (service, socket) = build(outbox.clone());
        Ok(serve(service, socket, outbox, input, output).await)
    });
    runtime.shutdown_background();
    ending
}

/// Serves one session until it ends. Handlers that still run are dropped then.
pub async fn serve<S>(service: S, socket: ClientSocket, outbox: Outbox, input: Input, output: Output) -> Ending
where
    S: Service<Request, Response = Option<Response>, Error = ExitedError>,
    S::Future: Send + 'static,
{
    let (mut forwards, replies) = socket.split();
    let mut dispatcher = Dispatcher::new(service, replies, outbox.clone());
    let mut reader = Reader::new(input);
    let mut writer = pin!(write(&outbox, output));
    let ending = loop {
        let congested = outbox.is_congested();
        if !congested && let Some(frame) = reader.decode() {
            match dispatcher.on_frame(frame) {
                Continue(()) => continue,
                Break(ending) => break ending,
            }
        }
        let event = tokio::select! {
            arrival = reader.wait(congested) => Event::Input(arrival),
            Some(request) = forwards.next(), if !congested => Event::Forward(request),
            happening = dispatcher.next() => Event::Dispatch(happening),
            () = outbox.drained(), if congested => Event::Drained,
            // The writer is done then, and must not be polled again.
            () = &mut writer => return Ending::OutputClosed,
        };
        match event {
            Event::Input(Arrival::Bytes) | Event::Drained => {}
            Event::Input(Arrival::End) => break dispatcher.on_input_end(),
            Event::Forward(request) => dispatcher.on_forward(&request),
            Event::Dispatch(Happening::Finished(finished)) => dispatcher.on_finished(finished),
            Event::Dispatch(Happening::EditorGone) => break Ending::EditorGone,
        }
    };
    outbox.close();
    let _ = tokio::time::timeout(LAST_WRITE, writer).await;
    ending
}

enum Event {
    Input(Arrival),
    Forward(Request),
    Dispatch(Happening),
    Drained,
}

/// Writes what the outbox has until it is closed and empty, or the client closes the output.
async fn write(outbox: &Outbox, mut output: Output) {
    while let Some(batch) = outbox.next_batch().await {
        if let Err(error) = output.write(&batch).await {
            tracing::warn!(%error, "the client closed the output");
            return;
        }
    }
}
