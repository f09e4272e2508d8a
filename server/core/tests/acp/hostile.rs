//! What a broken, foreign or hostile agent can do to the driver: nothing.

use pactify_core::FailureCode;
use pactify_core::harness::Step;
use pactify_core::job::event::{ExitRecord, Known};
use pactify_core::job::outcome::Verdict;
use pactify_core::permission::Policy;
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::agent::{Agent, Start};
use crate::replay::recorded;

fn size(known: &Known) -> usize {
    serde_json::to_string(known).unwrap().len()
}

#[test]
fn malformed_lines_are_told_once_and_the_turn_goes_on() {
    let deep = "[".repeat(100_000);
    for line in [
        "not json\u{1b}[2K",
        "{\"method\":\"session/upd",
        "\0",
        "{\"id\":\"\\ud800\"}",
        "[1,2]",
        "null",
        "{}",
        "{\"id\":{},\"method\":\"x\"}",
        r#"{"id":3,"result":{"stopReason":"refusal","stopReason":"end_turn"}}"#,
        "{\"jsonrpc\":\"2.0\"}",
        &deep,
    ] {
        let mut agent = Agent::prompted(Start::default());
        agent.line(line);
        agent.line(line);
        agent.line("  ");
        agent.message("Done.");
        agent.stop("end_turn");
        let (agent, end) = agent.exit(ExitRecord::Code(0));
        assert_eq!(end.verdict, Verdict::Completed, "{line:.40}");
        assert_eq!(agent.notices(), ["acp-output-unreadable"], "{line:.40}");
        let Some(Known::Notice { text, .. }) = agent.known.iter().find(|known| matches!(known, Known::Notice { .. }))
        else {
            panic!()
        };
        assert!(!text.chars().any(char::is_control), "{text:?}");
    }
}

#[test]
fn an_answer_counts_once_and_only_to_what_was_asked() {
    let mut agent = Agent::prompted(Start::default());
    // The replies of before, once more; one that nobody asked for; one for the prompt that nobody could know.
    for id in [1, 2, 99] {
        agent.says(&json!({"id": id, "result": {"stopReason": "end_turn", "sessionId": "other"}}));
    }
    assert!(!agent.is_closed);
    assert_eq!(agent.notices(), ["acp-reply-unasked"]);
    agent.message("Done.");
    agent.stop("max_tokens");
    agent.says(&json!({"id": 3, "result": {"stopReason": "end_turn"}}));
    let (_, end) = agent.exit(ExitRecord::Code(0));
    assert!(matches!(end.verdict, Verdict::Failed(_)), "{end:?}");
}

#[test]
fn other_sessions_are_left_out() {
    let mut agent = Agent::prompted(Start::default());
    let update = json!({"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": "I am it."}});
    agent.says(&json!({"method": "session/update", "params": {"sessionId": "t", "update": update}}));
    let options = json!([{"optionId": "y", "kind": "allow_once"}]);
    let params = json!({"sessionId": "t", "options": options});
    let answer = agent.asks(&json!(1), "session/request_permission", &params).unwrap();
    assert_eq!(answer["result"]["outcome"]["outcome"], "cancelled");
    let read = agent.asks(&json!(2), "fs/read_text_file", &json!({"sessionId": "t", "path": "/tree/a"})).unwrap();
    assert!(read.get("error").is_some() && agent.files.is_empty());
    agent.stop("end_turn");
    let (agent, end) = agent.exit(ExitRecord::Code(0));
    assert_eq!((end.final_message, agent.notices()), (None, vec!["acp-foreign-session"]));
    assert_ne!(end.verdict, Verdict::Completed);
}

#[test]
fn requests_that_nobody_offered_are_refused_and_told() {
    let mut agent = Agent::prompted(Start::default());
    for method in ["terminal/create", "elicitation/create", "_vendor/thing"] {
        let answer = agent.asks(&json!(method), method, &json!({})).unwrap();
        assert_eq!(answer["error"]["code"], -32601, "{method}");
    }
    assert_eq!(agent.notices(), ["acp-unknown-request"; 3]);
    agent.says(&json!({"method": "_vendor/told", "params": {}}));
    agent.says(&json!({"method": "session/elsewhere", "params": {}}));
    agent.update(&json!({"sessionUpdate": "novelty"}));
    assert_eq!(agent.notices()[3..], ["acp-unknown-notification", "acp-unknown-update"]);
}

#[test]
fn an_id_that_is_used_twice_is_granted_to_neither() {
    let mut agent = Agent::prompted(Start { permissions: Policy::Ask, ..Start::default() });
    let params =
        |title: &str| json!({"toolCall": {"title": title}, "options": [{"optionId": "y", "kind": "allow_once"}]});
    assert_eq!(agent.asks(&json!(7), "session/request_permission", &params("ls")), None);
    let again = agent.asks(&json!(7), "session/request_permission", &params("rm -rf /")).unwrap();
    assert_eq!(again["error"]["code"], -32600);
    agent.answer("p1", Some("y"));
    let granted = agent.sent.iter().any(|message| message["result"]["outcome"]["outcome"] == "selected");
    assert!(!granted, "the person's yes was for one of them, and nobody knows for which");
}

#[test]
fn everything_is_bounded() {
    let mut agent = Agent::prompted(Start { permissions: Policy::Ask, ..Start::default() });
    let huge = "x\u{1b}[31m".repeat(20_000);
    agent.message(&huge);
    let content = json!([{"type": "content", "content": {"type": "text", "text": huge}}]);
    let long = &huge[..8000];
    let locations: Vec<Value> = (0..150).map(|n| json!({"path": format!("/tree/{n}/{long}")})).collect();
    for kind in ["execute", "edit", "other"] {
        agent.update(&json!({"sessionUpdate": "tool_call", "toolCallId": huge, "title": huge, "kind": kind,
            "status": "completed", "content": content, "locations": locations, "rawInput": {"command": huge},
            "rawOutput": huge}));
    }
    let entries: Vec<Value> = (0..100).map(|_| json!({"content": long, "status": long})).collect();
    agent.update(&json!({"sessionUpdate": "plan", "entries": entries}));
    let options: Vec<Value> =
        (0..100).map(|n| json!({"optionId": format!("{n}"), "name": long, "kind": "allow_once"})).collect();
    for n in 0..1000 {
        let params =
            json!({"toolCall": {"title": &huge[..80]}, "options": if n == 0 { &options[..] } else { &options[..1] }});
        agent.asks(&json!(n), "session/request_permission", &params);
        agent.update(&json!({"sessionUpdate": format!("novelty {n}")}));
    }
    agent.refuse(-32603, &huge);
    let (agent, end) = agent.exit(ExitRecord::Code(0));
    for known in &agent.known {
        assert!(size(known) <= 1 << 20, "{} bytes", size(known));
    }
    assert!(agent.notices().len() <= 40);
    assert!(end.final_message.unwrap().len() <= 65 * 1024);
    let Verdict::Failed(failure) = end.verdict else { panic!() };
    assert!(failure.message.len() <= 8 * 1024 && !failure.message.chars().any(char::is_control));
}

#[test]
fn a_turn_that_brings_nothing_new_is_ended() {
    let mut agent = Agent::prompted(Start::default());
    for n in 0..100 {
        let chunk = |text: &str| json!({"sessionUpdate": "agent_message_chunk", "messageId": n.to_string(), "content": {"type": "text", "text": text}});
        agent.update(&chunk("partial "));
        agent.update(&chunk("answer "));
    }
    assert!(agent.is_closed);
    assert!(agent.sent.iter().any(|message| message["method"] == "session/cancel"));
    agent.says(&json!({"id": 3, "result": {"stopReason": "end_turn"}}));
    let (agent, end) = agent.exit(ExitRecord::Code(0));
    let Verdict::Failed(failure) = end.verdict else { panic!() };
    assert_eq!(failure.code, FailureCode::HarnessFailed);
    assert!(failure.message.contains("over and over"));
    assert!(agent.known.len() < 20, "what comes after it is left out");
}

#[test]
fn an_agent_that_dies_says_why() {
    let mut agent = Agent::new(Start::default());
    agent.stderr("\u{1b}[91mError: \u{1b}[0mConfig file is not valid");
    let (_, end) = agent.exit(ExitRecord::Code(1));
    let Verdict::Failed(failure) = end.verdict else { panic!() };
    assert!(failure.message.contains("exit code 1") && failure.message.contains("Config file is not valid"));
    assert!(!failure.message.contains('\u{1b}'));
    assert_eq!(Agent::prompted(Start::default()).exit(ExitRecord::Code(0)).1.verdict, Verdict::Silent);
    let mut agent = Agent::new(Start::default());
    agent.stderr("error: unknown option '--experimental-acp'");
    let (_, end) = agent.exit(ExitRecord::Code(2));
    let Verdict::Failed(failure) = end.verdict else { panic!() };
    assert_eq!(failure.code, FailureCode::HarnessIncompatible);
    assert!(failure.message.contains("--experimental-acp"), "{}", failure.message);
}

proptest! {
    /// Recorded messages in any order, any of them missing or repeated, each cut anywhere: never a success that was not
    /// said, never more than one answer to a request.
    #[test]
    fn no_order_of_messages_makes_a_success_of_a_failure(
        order in prop::collection::vec((0usize..40, prop::option::of(0usize..400)), 0..80),
    ) {
        let said: Vec<String> = recorded("kimi", "http500").iter().chain(&recorded("kimi", "parallel"))
            .filter_map(|record| Some(record.get("a2c")?.to_string().replace("\"end_turn\"", "\"max_tokens\"")))
            .collect();
        let mut agent = Agent::new(Start::default());
        for (index, cut) in order {
            let line = &said[index % said.len()];
            let end = cut.map_or(line.len(), |cut| cut.min(line.len()));
            agent.line(line.get(..end).unwrap_or(line));
        }
        for step in &agent.steps {
            if let Step::Record(known) = step {
                prop_assert!(size(known) <= 1 << 20);
            }
        }
        let (_, end) = agent.exit(ExitRecord::Code(0));
        prop_assert_ne!(end.verdict, Verdict::Completed);
    }
}
