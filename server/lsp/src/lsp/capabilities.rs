//! What the server can do, and what the client said it can.

use lsp_types::{
    ExecuteCommandOptions, InitializeParams, InitializeResult, OneOf, SaveOptions, ServerCapabilities, ServerInfo,
    TextDocumentSyncCapability, TextDocumentSyncKind, TextDocumentSyncOptions, TextDocumentSyncSaveOptions,
    WorkDoneProgressOptions, WorkspaceFoldersServerCapabilities, WorkspaceServerCapabilities,
};
use pactify_core::protocol::commands::ALL;
use serde_json::Value;

/// The client, as far as it matters to us.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct ClientFeatures {
    /// Its name, for the log.
    pub name: Option<String>,
    /// It accepts progress under tokens of ours.
    pub progress: bool,
    /// It asks its person what jobs ask, by `window/showMessageRequest`.
    pub asks: bool,
    /// It opens documents for us.
    pub show_document: bool,
    /// It wants `pactify/job/event`.
    pub events: bool,
    /// It wants `pactify/job/changed`.
    pub changes: bool,
    /// It wants to be told in words how jobs ended.
    pub messages: bool,
}

/// Reads the client's side of `initialize`; its options are a [`pactify_core::protocol::ClientOptions`], of which an
/// unfit field counts as absent.
pub(super) fn of_client(params: &InitializeParams) -> ClientFeatures {
    let window = params.capabilities.window.as_ref();
    let options = params.initialization_options.as_ref().and_then(|options| options.get("pactify"));
    let option = |name: &str| options.and_then(|options| options.get(name)).and_then(Value::as_bool);
    let messages = option("messages").unwrap_or(true);
    ClientFeatures {
        name: params.client_info.as_ref().map(|info| info.name.clone()),
        progress: window.and_then(|window| window.work_done_progress).unwrap_or(false),
        asks: messages && window.is_some_and(|window| window.show_message.is_some()),
        show_document: window.and_then(|window| window.show_document.as_ref()).is_some_and(|show| show.support),
        events: option("events").unwrap_or(false),
        changes: ["events", "changes"].into_iter().any(|name| option(name) == Some(true)),
        messages,
    }
}

/// The server's side of `initialize`.
pub(super) fn of_server() -> InitializeResult {
    let documents = TextDocumentSyncOptions {
        open_close: Some(true),
        change: Some(TextDocumentSyncKind::INCREMENTAL),
        save: Some(TextDocumentSyncSaveOptions::SaveOptions(SaveOptions { include_text: Some(false) })),
        ..TextDocumentSyncOptions::default()
    };
    let capabilities = ServerCapabilities {
        text_document_sync: Some(TextDocumentSyncCapability::Options(documents)),
        execute_command_provider: Some(ExecuteCommandOptions {
            commands: ALL.iter().map(|command| command.name.to_owned()).collect(),
            work_done_progress_options: WorkDoneProgressOptions { work_done_progress: Some(true) },
        }),
        workspace: Some(WorkspaceServerCapabilities {
            workspace_folders: Some(WorkspaceFoldersServerCapabilities {
                supported: Some(true),
                change_notifications: Some(OneOf::Left(true)),
            }),
            file_operations: None,
        }),
        ..ServerCapabilities::default()
    };
    InitializeResult {
        capabilities,
        server_info: Some(ServerInfo {
            name: "pactify-lsp".to_owned(),
            version: Some(env!("CARGO_PKG_VERSION").to_owned()),
        }),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_server_offers_every_command_and_text_synchronisation() {
        insta::assert_json_snapshot!(of_server().capabilities);
    }

    #[test]
    fn the_client_is_read_tolerantly() {
        let read = |params| of_client(&serde_json::from_value(params).unwrap());
        let silent = ClientFeatures { messages: true, ..ClientFeatures::default() };
        assert_eq!(read(json!({"capabilities": {}})), silent);
        assert_eq!(read(json!({"capabilities": {}, "initializationOptions": [1]})), silent);
        assert_eq!(read(json!({"capabilities": {}, "initializationOptions": {"pactify": {"events": 3}}})), silent);
        let full = json!({
            "capabilities": {"window": {"workDoneProgress": true, "showMessage": {}, "showDocument": {"support": true}}},
            "clientInfo": {"name": "ed"},
            "initializationOptions": {"pactify": {"events": true, "messages": false}},
        });
        let name = Some("ed".to_owned());
        assert_eq!(
            read(full),
            ClientFeatures {
                name,
                progress: true,
                asks: false,
                show_document: true,
                events: true,
                changes: true,
                messages: false
            }
        );
        let window = json!({"capabilities": {"window": {"showMessage": {}}}});
        assert_eq!(read(window), ClientFeatures { asks: true, ..silent.clone() });
        let quiet = json!({"capabilities": {}, "initializationOptions": {"pactify": {"changes": true}}});
        assert_eq!(read(quiet), ClientFeatures { changes: true, ..silent });
    }
}
