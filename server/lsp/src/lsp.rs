//! The language server: editors' requests in, the engine's answers out.
//!
//! [`Server`] is tower-lsp's view of us. A handler validates, hands the work over and returns: disk and git work runs
//! in the blocking pool, everything that lasts (open documents, folders, followed jobs) lives in one task
//! ([`session`]), and what we tell the client goes through the [`Outbox`]. No job lives here: kill the server and
//! nothing is lost. The verbs are [`commands`]; the loop under all of this is [`crate::transport`].

mod arguments;
mod asking;
mod brief;
mod capabilities;
mod commands;
mod context;
mod documents;
mod errors;
mod folders;
mod follow;
mod seen;
mod session;
mod survey;
mod unsaved;

use std::io;

use futures_util::future::BoxFuture;
use lsp_types::{
    DidChangeTextDocumentParams, DidChangeWorkspaceFoldersParams, DidCloseTextDocumentParams,
    DidOpenTextDocumentParams, DidSaveTextDocumentParams, ExecuteCommandParams, InitializeParams, InitializeResult,
    InitializedParams,
};
use pactify_core::protocol::commands::ALL;
use pactify_engine::env::Env;
use serde_json::Value;
use tower_lsp::jsonrpc::Result;
use tower_lsp::{ClientSocket, LanguageServer, LspService};

use crate::transport::{self, Ending, Outbox};
use arguments::Arguments;
use context::{Context, Engine};
use documents::Edit;

/// Serves one editor on standard input and output until it leaves.
///
/// # Errors
/// When the descriptors cannot be used.
pub fn run(env: Env) -> io::Result<Ending> {
    let engine = Engine::new(env);
    transport::run(|outbox| build(engine, outbox))
}

struct Server {
    context: Context,
}

fn build(engine: Engine, outbox: Outbox) -> (LspService<Server>, ClientSocket) {
    let session = session::start(engine.clone(), outbox.clone());
    let context = Context::new(engine, session, outbox);
    let mut builder = LspService::build(move |_client| Server { context });
    for command in ALL {
        let twin = |server: &Server, params: Value| server.run(command.name, Arguments::typed(params));
        builder = builder.custom_method(command.method, twin);
    }
    builder.finish()
}

impl Server {
    fn run(&self, name: &'static str, arguments: Arguments) -> BoxFuture<'static, Result<Value>> {
        let context = self.context.clone();
        Box::pin(async move {
            commands::run(&context, name, arguments).await.map_err(|failure| {
                tracing::info!(command = name, code = %failure.code.as_str(), "refused");
                errors::of_failure(failure)
            })
        })
    }
}

#[tower_lsp::async_trait]
impl LanguageServer for Server {
    async fn initialize(&self, params: InitializeParams) -> Result<InitializeResult> {
        let client = capabilities::of_client(&params);
        tracing::info!(client = client.name.as_deref().unwrap_or("unknown"), "initialize");
        self.context.session().initialize(client, folders::named_in(&params));
        Ok(capabilities::of_server())
    }

    async fn initialized(&self, _: InitializedParams) {
        self.context.session().initialized();
    }

    async fn shutdown(&self) -> Result<()> {
        self.context.session().shut_down().await;
        Ok(())
    }

    async fn execute_command(&self, params: ExecuteCommandParams) -> Result<Option<Value>> {
        let Some(command) = ALL.iter().find(|command| command.name == params.command) else {
            return Err(errors::unknown_command(&params.command));
        };
        self.run(command.name, Arguments::of_command(params.arguments)).await.map(Some)
    }

    async fn did_open(&self, params: DidOpenTextDocumentParams) {
        self.context.session().edited(Edit::Opened(params.text_document));
    }

    async fn did_change(&self, params: DidChangeTextDocumentParams) {
        self.context.session().edited(Edit::Changed(params));
    }

    async fn did_save(&self, params: DidSaveTextDocumentParams) {
        self.context.session().edited(Edit::Saved(params.text_document.uri));
    }

    async fn did_close(&self, params: DidCloseTextDocumentParams) {
        self.context.session().edited(Edit::Closed(params.text_document.uri));
    }

    async fn did_change_workspace_folders(&self, params: DidChangeWorkspaceFoldersParams) {
        self.context.session().folders_changed(params.event);
    }
}
