//! Everything that is sent, held against the official schema of the protocol.

use agent_client_protocol_schema::v1::{
    AuthenticateRequest, CancelNotification, InitializeRequest, LoadSessionRequest, NewSessionRequest, PromptRequest,
    ReadTextFileResponse, RequestPermissionResponse, ResumeSessionRequest, SetSessionConfigOptionRequest,
    SetSessionModeRequest, WriteTextFileResponse,
};
use pactify_core::harness::FileAnswer;
use pactify_core::harness::acp::Plain;
use pactify_core::permission::Policy;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::agent::{Agent, Start};

/// Reads `value` as a `T`, and finds everything of it in there.
fn is<T: Serialize + DeserializeOwned>(value: &Value) {
    let read: T = serde_json::from_value(value.clone()).unwrap_or_else(|error| panic!("{error}: {value}"));
    let written = serde_json::to_value(&read).unwrap();
    for (key, member) in value.as_object().into_iter().flatten() {
        // An empty list may be left out.
        let found = written.get(key).cloned().unwrap_or_else(|| json!([]));
        assert_eq!(found, *member, "{key} of {value}");
    }
}

fn check(message: &Value) -> Option<()> {
    assert_eq!(message["jsonrpc"], "2.0", "{message}");
    let params = &message["params"];
    match message["method"].as_str()? {
        "initialize" => {
            let capabilities =
                json!({"protocolVersion": params["protocolVersion"], "clientInfo": params["clientInfo"]});
            is::<InitializeRequest>(&capabilities);
            let read: InitializeRequest = serde_json::from_value(params.clone()).unwrap();
            assert!(!read.client_capabilities.terminal);
        }
        "authenticate" => is::<AuthenticateRequest>(params),
        "session/new" => is::<NewSessionRequest>(params),
        "session/load" => is::<LoadSessionRequest>(params),
        "session/resume" => is::<ResumeSessionRequest>(params),
        "session/set_mode" => is::<SetSessionModeRequest>(params),
        "session/set_config_option" => is::<SetSessionConfigOptionRequest>(params),
        "session/prompt" => is::<PromptRequest>(params),
        "session/cancel" => is::<CancelNotification>(params),
        other => panic!("{other} is checked nowhere"),
    }
    Some(())
}

#[test]
fn what_is_sent_is_what_the_schema_says() {
    let dialect = Plain { mode: Some("m".into()), login_method: Some("k".into()), ..Plain::named("a") };
    let mut first =
        Agent::new(Start { dialect, model: Some("big".into()), permissions: Policy::Ask, ..Start::default() });
    first.reply(&json!({"protocolVersion": 1}));
    first.reply(&json!({}));
    first.reply(&json!({"sessionId": "s", "configOptions": [{"id": "model", "currentValue": "small",
        "options": [{"value": "big"}]}]}));
    first.reply(&json!({}));
    first.reply(&json!({"configOptions": []}));
    assert_eq!(first.last_method(), "session/prompt");
    first.cancel();

    let mut loaded = Agent::new(Start { resume: Some("s".into()), ..Start::default() });
    loaded.reply(&json!({"protocolVersion": 1, "agentCapabilities": {"loadSession": true}}));
    let mut resumed = Agent::new(Start { resume: Some("s".into()), ..Start::default() });
    resumed.reply(&json!({"protocolVersion": 1, "agentCapabilities": {"sessionCapabilities": {"resume": {}}}}));

    let sent: Vec<&Value> = first.sent.iter().chain(&loaded.sent).chain(&resumed.sent).collect();
    assert_eq!(sent.iter().filter_map(|message| check(message)).count(), sent.len());
    assert_eq!(sent.len(), 11);
}

#[test]
fn what_is_answered_is_what_the_schema_says() {
    let mut agent = Agent::prompted(Start::default());
    let options = json!([{"optionId": "y", "kind": "allow_once"}]);
    let yes = agent.asks(&json!(1), "session/request_permission", &json!({"toolCall": {}, "options": options}));
    is::<RequestPermissionResponse>(&yes.unwrap()["result"]);
    let no = agent.asks(&json!(2), "session/request_permission", &json!({"toolCall": {}, "options": []}));
    is::<RequestPermissionResponse>(&no.unwrap()["result"]);
    let read = agent.asks(&json!(3), "fs/read_text_file", &json!({"path": "/tree/a"}));
    is::<ReadTextFileResponse>(&read.unwrap()["result"]);
    agent.file = FileAnswer::Written;
    let written = agent.asks(&json!(4), "fs/write_text_file", &json!({"path": "/tree/a", "content": ""}));
    is::<WriteTextFileResponse>(&written.unwrap()["result"]);
}
