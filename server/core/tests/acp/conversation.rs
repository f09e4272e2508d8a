//! What is said when, and what an ending means.

use pactify_core::FailureCode as C;
use pactify_core::harness::acp::Plain;
use pactify_core::harness::kimi::Kimi;
use pactify_core::harness::opencode::Opencode;
use pactify_core::harness::{Conclusion, FileAction, FileAnswer, Harness};
use pactify_core::job::access::Access;
use pactify_core::job::event::{ExitRecord, Known};
use pactify_core::job::outcome::Verdict;
use pactify_core::permission::Policy;
use serde_json::{Value, json};

use crate::agent::{Agent, Start};

const WELL: ExitRecord = ExitRecord::Code(0);

fn code(end: &Conclusion) -> Option<C> {
    match &end.verdict {
        Verdict::Failed(failure) => Some(failure.code),
        _ => None,
    }
}

fn options() -> Value {
    json!([
        {"optionId": "no", "name": "Reject", "kind": "reject_once"},
        {"optionId": "always", "name": "Always", "kind": "allow_always"},
        {"optionId": "yes", "name": "Once", "kind": "allow_once"},
    ])
}

fn permission(agent: &mut Agent, id: &Value) -> Option<Value> {
    agent.asks(
        id,
        "session/request_permission",
        &json!({"toolCall": {"toolCallId": "c", "title": "Bash"}, "options": options()}),
    )
}

fn chosen(answer: Option<Value>) -> Option<String> {
    let outcome = answer?["result"]["outcome"].clone();
    Some(outcome["optionId"].as_str().or(outcome["outcome"].as_str())?.to_owned())
}

#[test]
fn a_turn_is_complete_when_the_agent_says_so_and_has_answered() {
    let mut agent = Agent::prompted(Start::default());
    agent.message("I'll ");
    agent.message("look.");
    agent.update(&json!({"sessionUpdate": "tool_call", "toolCallId": "c", "title": "Read", "kind": "read", "status": "completed"}));
    agent.message("Done.");
    agent.stop("end_turn");
    assert!(agent.is_closed);
    let (agent, end) = agent.exit(WELL);
    assert_eq!((end.verdict, end.final_message.as_deref()), (Verdict::Completed, Some("Done.")));
    let message = |text: &str| Known::Message { text: text.to_owned() };
    assert_eq!(
        agent.known,
        [
            Known::SessionStarted { session: "s".into(), model: None },
            message("I'll look."),
            Known::ToolUsed { tool: "Read".into(), failed: false },
            message("Done."),
        ]
    );
}

#[test]
fn every_other_ending_is_a_failure_with_a_code() {
    type Turn = fn(&mut Agent);
    let says: Turn = |agent| agent.message("Well.");
    let says_then_works: Turn = |agent| {
        agent.message("I'll look.");
        agent.update(&json!({"sessionUpdate": "tool_call", "toolCallId": "c", "title": "t", "status": "completed"}));
    };
    let silent: Turn = |_| {};
    for (turn, reason, exit, expected) in [
        (says, "end_turn", WELL, None),
        (says, "end_turn", ExitRecord::Signal(15), None),
        (says, "end_turn", ExitRecord::Code(1), Some(C::HarnessFailed)),
        (says, "end_turn", ExitRecord::Signal(11), Some(C::HarnessFailed)),
        (silent, "end_turn", WELL, Some(C::NoResult)),
        (says_then_works, "end_turn", WELL, Some(C::NoResult)),
        (says, "max_tokens", WELL, Some(C::ProviderRefused)),
        (says, "max_turn_requests", WELL, Some(C::HarnessFailed)),
        (says, "refusal", WELL, Some(C::ProviderRefused)),
        (says, "cancelled", WELL, Some(C::HarnessFailed)),
        (says, "novel\u{1b}[2K", WELL, Some(C::HarnessFailed)),
        (says, "", WELL, Some(C::HarnessFailed)),
    ] {
        let mut agent = Agent::prompted(Start::default());
        turn(&mut agent);
        agent.stop(reason);
        let (_, end) = agent.exit(exit);
        assert_eq!(code(&end), expected, "{reason} {exit:?}: {end:?}");
        assert_eq!(end.verdict == Verdict::Completed, expected.is_none());
    }
}

#[test]
fn refusals_at_every_stage_are_named() {
    type Until = fn(Start) -> Agent;
    let begun: Until = Agent::new;
    let ready: Until = |start| {
        let mut agent = Agent::new(start);
        agent.reply(&json!({"protocolVersion": 1, "agentCapabilities": {"loadSession": true}}));
        agent
    };
    let prompted: Until = Agent::prompted;
    let again = || Start { resume: Some("old".to_owned()), ..Start::default() };
    for (until, start, error, expected) in [
        (begun, Start::default(), (-32601, "what?"), C::HarnessIncompatible),
        (ready, Start::default(), (-32000, "Authentication required"), C::LoginRequired),
        (ready, Start::default(), (-32603, "workspace root does not exist"), C::HarnessFailed),
        (ready, again(), (-32602, "Unknown sessionId"), C::WrongState),
        (prompted, Start::default(), (-32000, "Authentication required: 401"), C::LoginRequired),
        (prompted, Start::default(), (-32603, "Internal error: 500 oops"), C::ProviderUnreachable),
    ] {
        let mut agent = until(start);
        agent.refuse(error.0, error.1);
        assert!(agent.is_closed);
        let (_, end) = agent.exit(WELL);
        assert_eq!(code(&end), Some(expected), "{error:?}");
    }
}

#[test]
fn a_session_that_is_gone_or_replaced_is_told() {
    for (capabilities, reply, expected) in [
        (json!({"loadSession": true}), json!({}), None),
        (json!({"sessionCapabilities": {"resume": {}}}), json!({"sessionId": "old"}), None),
        (json!({"loadSession": true}), json!({"sessionId": "another"}), Some(C::WrongState)),
        (json!({}), Value::Null, Some(C::WrongState)),
    ] {
        let mut agent = Agent::new(Start { resume: Some("old".to_owned()), ..Start::default() });
        agent.reply(&json!({"protocolVersion": 1, "agentCapabilities": capabilities}));
        if agent.last_method().starts_with("session/") {
            // What the agent repeats of the session is no answer of this turn.
            agent.says(&json!({"method": "session/update", "params": {"sessionId": "old", "update":
                {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": "of yesterday"}}}}));
            agent.reply(&reply);
        }
        if expected.is_none() {
            assert_eq!(agent.last_method(), "session/prompt");
            agent.stop("end_turn");
        }
        let (_, end) = agent.exit(WELL);
        assert_eq!(code(&end), expected.or(Some(C::NoResult)), "{capabilities} {reply}");
        assert_eq!(end.final_message, None);
    }
}

#[test]
fn mode_model_and_login_are_chosen_before_the_prompt() {
    let dialect = Plain { mode: Some("ask".to_owned()), login_method: Some("key".to_owned()), ..Plain::named("agent") };
    let mut agent = Agent::new(Start { dialect, model: Some("big".to_owned()), ..Start::default() });
    agent.reply(&json!({"protocolVersion": 1}));
    assert_eq!((agent.last_method(), &agent.sent[1]["params"]["methodId"]), ("authenticate", &json!("key")));
    agent.reply(&json!({}));
    agent.reply(&json!({"sessionId": "s", "models": {"currentModelId": "small",
        "availableModels": [{"modelId": "small"}, {"modelId": "big"}]}}));
    assert_eq!(agent.last_method(), "session/set_mode");
    agent.reply(&Value::Null);
    assert_eq!(agent.last_method(), "session/set_model");
    agent.refuse(-32602, "not today");
    let (agent, end) = agent.exit(WELL);
    assert_eq!(code(&end), Some(C::InvalidConfig), "never with another model");
    assert_eq!(models(&agent), [None], "which one it uses nobody knows");
}

/// The models that were recorded, one after the other.
fn models(agent: &Agent) -> Vec<Option<&str>> {
    let told = agent.known.iter().filter_map(|known| match known {
        Known::SessionStarted { model, .. } => Some(model.as_deref()),
        _ => None,
    });
    told.collect()
}

#[test]
fn the_model_that_is_used_is_the_one_that_the_agent_says() {
    let option = |current: &str| {
        json!([{"id": "m", "category": "model", "currentValue": current,
            "options": [{"value": "small"}, {"value": "big"}]}])
    };
    let by_model = json!({"sessionId": "s", "models": {"currentModelId": "small",
        "availableModels": [{"modelId": "small"}, {"modelId": "big"}]}});
    let by_option = json!({"sessionId": "s", "configOptions": option("small")});
    for (opened, reply, later, used, expected) in [
        (&by_model, json!({}), None, vec![None, Some("big")], None),
        (&by_option, json!({"configOptions": option("big")}), None, vec![None, Some("big")], None),
        (&by_option, json!({}), None, vec![None, None], None),
        (&by_option, json!({"configOptions": option("big")}), Some("big"), vec![None, Some("big")], None),
        (
            &by_model,
            json!({"models": {"currentModelId": "small"}}),
            None,
            vec![None, Some("small")],
            Some(C::InvalidConfig),
        ),
        (
            &by_option,
            json!({"configOptions": option("small")}),
            None,
            vec![None, Some("small")],
            Some(C::InvalidConfig),
        ),
        (
            &by_option,
            json!({"configOptions": option("big")}),
            Some("small"),
            vec![None, Some("big"), Some("small")],
            Some(C::InvalidConfig),
        ),
    ] {
        let mut agent = Agent::new(Start { model: Some("big".to_owned()), ..Start::default() });
        agent.reply(&json!({"protocolVersion": 1}));
        agent.reply(opened);
        // What was before the choice is no news.
        agent.update(&json!({"sessionUpdate": "config_option_update", "configOptions": option("small")}));
        agent.reply(&reply);
        assert_eq!(agent.last_method() == "session/prompt", expected.is_none() || later.is_some(), "{reply}");
        if let Some(current) = later {
            agent.update(&json!({"sessionUpdate": "config_option_update", "configOptions": option(current)}));
        }
        if agent.last_method() == "session/prompt" {
            agent.message("Done.");
            agent.stop("end_turn");
        }
        let (agent, end) = agent.exit(WELL);
        assert_eq!((models(&agent), code(&end)), (used, expected), "{opened} {reply} {later:?}");
        assert_eq!(agent.notices().contains(&"model-differs"), expected.is_some(), "{:?}", agent.notices());
    }
}

#[test]
fn permissions_are_granted_refused_or_left_to_the_person() {
    for (access, permissions, expected) in [
        (Access::Write, Policy::Allow, Some("yes")),
        (Access::ReadOnly, Policy::Allow, Some("no")),
        (Access::ReadOnly, Policy::Ask, Some("no")),
        (Access::Write, Policy::Ask, None),
    ] {
        let mut agent = Agent::prompted(Start { access, permissions, ..Start::default() });
        let answer = permission(&mut agent, &json!("a1"));
        assert_eq!(chosen(answer).as_deref(), expected, "{access:?} {permissions:?}");
        let known = match agent.known.as_slice() {
            [Known::SessionStarted { .. }, rest @ ..] => rest,
            all => panic!("{all:?}"),
        };
        let asked = known.iter().any(|known| {
            matches!(known, Known::PermissionRequested { request, options, .. } if request == "p1" && options.len() == 3)
        });
        let decided = known.iter().find_map(|known| match known {
            Known::PermissionDecided { granted, option, .. } => Some((*granted, option.as_deref().unwrap_or_default())),
            _ => None,
        });
        // What the person decides waits, and nothing else does.
        assert_eq!(asked, expected.is_none(), "{known:?}");
        assert_eq!(decided, expected.map(|option| (option == "yes", option)), "{known:?}");
        assert!(!known.iter().any(|known| matches!(known, Known::PermissionAnswered { .. })), "{known:?}");
    }
}

#[test]
fn what_a_call_told_before_is_part_of_what_is_asked() {
    let mut agent = Agent::prompted(Start { permissions: Policy::Ask, ..Start::default() });
    let said = |words: &str| json!([{"type": "content", "content": {"type": "text", "text": words}}]);
    let command = format!("echo {}; rm -rf ~", "a".repeat(60));
    let call = json!({"sessionUpdate": "tool_call", "toolCallId": "c", "title": "Bash", "kind": "execute"});
    agent.update(&call);
    let told = said(&json!({"command": command, "description": "be nice"}).to_string());
    agent.update(&json!({"sessionUpdate": "tool_call_update", "toolCallId": "c", "content": told}));
    let asks = said("Requesting approval to Running: echo aaaa…");
    let request = json!({"toolCall": {"toolCallId": "c", "title": "Bash", "content": asks},
        "options": [{"optionId": "yes", "kind": "allow_once"}]});
    assert_eq!(agent.asks(&json!(1), "session/request_permission", &request), None);
    let Some(Known::PermissionRequested { title, detail, .. }) = agent.known.last() else {
        panic!("{:?}", agent.known)
    };
    assert_eq!(title, "Requesting approval to Running: echo aaaa…");
    assert_eq!(detail.as_deref(), Some(format!("command: {command}\ndescription: be nice").as_str()));
}

#[test]
fn fifty_permissions_at_once_are_all_answered() {
    let mut agent = Agent::prompted(Start { permissions: Policy::Ask, ..Start::default() });
    for n in 0..50 {
        assert_eq!(permission(&mut agent, &json!(n)), None);
    }
    for n in (1..=50).rev() {
        let option = ["yes", "no", "nonsense"].get(n % 4).copied();
        agent.answer(&format!("p{n}"), option);
        let last = agent.sent.last().unwrap().clone();
        assert_eq!(last["id"], n - 1);
        let expected = if option == Some("yes") { "yes" } else { "no" };
        assert_eq!(chosen(Some(last)).as_deref(), Some(expected), "what is no answer is a no");
        agent.answer(&format!("p{n}"), Some("yes"));
    }
    let answers = agent.sent.iter().filter(|message| message.get("result").is_some()).count();
    assert_eq!(answers, 50, "each once");
}

#[test]
fn the_word_done_after_a_refusal_is_believed_where_a_person_refused_or_something_succeeded() {
    let only_no = json!({"toolCall": {"toolCallId": "c"}, "options": [{"optionId": "no", "kind": "reject_once"}]});
    let work = |agent: &mut Agent, id: &str, status: &str| {
        agent.update(&json!({"sessionUpdate": "tool_call", "toolCallId": id, "title": "edit", "kind": "edit"}));
        agent.update(&json!({"sessionUpdate": "tool_call_update", "toolCallId": id, "status": status}));
    };
    for (permissions, answer, after, expected) in [
        (Policy::Allow, None, None, Some(C::HarnessFailed)),
        (Policy::Allow, None, Some("failed"), Some(C::HarnessFailed)),
        (Policy::Allow, None, Some("completed"), None),
        (Policy::Ask, Some(None), None, Some(C::HarnessFailed)),
        (Policy::Ask, Some(None), Some("completed"), None),
        (Policy::Ask, Some(Some("no")), None, None),
    ] {
        let mut agent = Agent::prompted(Start { permissions, ..Start::default() });
        work(&mut agent, "before", "completed");
        agent.asks(&json!(1), "session/request_permission", &only_no);
        if let Some(option) = answer {
            agent.answer("p1", option);
        }
        if let Some(status) = after {
            work(&mut agent, "after", status);
        }
        agent.message("Done.");
        agent.stop("end_turn");
        let (_, end) = agent.exit(WELL);
        assert_eq!(code(&end), expected, "{permissions:?} {answer:?} {after:?}");
    }
}

#[test]
fn the_word_done_after_a_refused_write_is_believed_where_it_was_made_later() {
    let refused = || FileAnswer::Refused("a link is on the way".to_owned());
    let deep = |name: &str| format!("/tree/{}{name}", format!("{}/", "d".repeat(100)).repeat(20));
    let (deep, other) = (deep("a"), deep("b"));
    for (writes, expected) in [
        (&[("/tree/a", FileAnswer::Written)][..], None),
        (&[("/tree/a", refused())], Some("/tree/a was refused (a link is on the way)")),
        (&[("/tree/a", refused()), ("/tree/a", FileAnswer::Written)], None),
        (&[("/tree/a", refused()), ("/tree/b", FileAnswer::Written)], Some("/tree/a was refused")),
        (&[("/tree/a", FileAnswer::Written), ("/tree/a", refused())], Some("/tree/a was refused")),
        (&[("/etc/a", FileAnswer::Written), ("/tree/b", FileAnswer::Written)], Some("/etc/a was refused")),
        (&[(&deep, refused()), (&deep, FileAnswer::Written)], None),
        // They begin alike.
        (&[(&deep, refused()), (&other, FileAnswer::Written)], Some("was refused (a link is on the way)")),
        (&[(&deep, refused()), (&other, refused()), (&deep, FileAnswer::Written)], Some("was refused")),
        (&[("/tree/.git/config", FileAnswer::Written)], Some("/tree/.git/config was refused")),
        (
            &[("/a", refused()), ("/b", refused()), ("/c\n", refused())],
            Some("/a was refused (the path is not inside the job's tree), and 2 more"),
        ),
    ] {
        for access in [Access::Write, Access::ReadOnly] {
            let mut agent = Agent::prompted(Start { access, ..Start::default() });
            for (n, (path, answer)) in writes.iter().enumerate() {
                agent.file = answer.clone();
                let params = json!({"path": path, "content": "x"});
                assert!(agent.asks(&json!(n), "fs/write_text_file", &params).is_some());
            }
            // Work of another kind does not make up for it.
            agent
                .update(&json!({"sessionUpdate": "tool_call", "toolCallId": "t", "title": "t", "status": "completed"}));
            agent.message("Done.");
            agent.stop("end_turn");
            let (agent, end) = agent.exit(WELL);
            // In a read-only job a refusal is what the job is for.
            match expected.filter(|_| access == Access::Write) {
                None => assert_eq!(end.verdict, Verdict::Completed, "{writes:?}"),
                Some(says) => {
                    let Verdict::Failed(failure) = end.verdict else { panic!("{writes:?}") };
                    assert_eq!(failure.code, C::HarnessFailed);
                    assert!(failure.message.contains(says), "{writes:?}: {}", failure.message);
                    assert!(agent.notices().contains(&"acp-write-refused"), "{writes:?}");
                }
            }
        }
    }
}

#[test]
fn writes_are_refused_without_end_and_kept_in_bounds() {
    let mut agent = Agent::prompted(Start::default());
    for n in 0..500 {
        let params = json!({"path": format!("/{n}{}", "x".repeat(2000)), "content": ""});
        agent.asks(&json!(n), "fs/write_text_file", &params);
    }
    assert!(agent.notices().len() <= 40);
    agent.message("Done.");
    agent.stop("end_turn");
    let Verdict::Failed(failure) = agent.exit(WELL).1.verdict else { panic!("it failed") };
    assert!(failure.message.len() < 2000, "{}", failure.message);
}

#[test]
fn a_turn_without_a_single_granted_step_is_no_success() {
    let mut agent = Agent::prompted(Start { permissions: Policy::Ask, ..Start::default() });
    permission(&mut agent, &json!(1));
    agent.answer("p1", None);
    agent.message("All done!");
    agent.stop("end_turn");
    assert_eq!(code(&agent.exit(WELL).1), Some(C::HarnessFailed));
}

#[test]
fn a_turn_that_was_granted_a_part_and_did_nothing_says_how_much_it_was_refused() {
    for (answers, says) in [
        (&["no", "no"][..], "asked for 2 permission(s), was refused them all"),
        (&["yes", "no", "no"], "was refused 2 of the 3 permissions that it asked for"),
    ] {
        let mut agent = Agent::prompted(Start { permissions: Policy::Ask, ..Start::default() });
        for (n, answer) in answers.iter().enumerate() {
            permission(&mut agent, &json!(n));
            agent.answer(&format!("p{}", n + 1), Some(answer));
        }
        agent.message("All done!");
        agent.stop("end_turn");
        let Verdict::Failed(failure) = agent.exit(WELL).1.verdict else { panic!("no failure") };
        assert!(failure.message.contains(says), "{}", failure.message);
    }
}

#[test]
fn more_permissions_than_anybody_could_look_through_are_refused() {
    let mut agent = Agent::prompted(Start { permissions: Policy::Ask, ..Start::default() });
    for n in 0..200 {
        assert_eq!(permission(&mut agent, &json!(n)), None);
    }
    assert_eq!(chosen(permission(&mut agent, &json!(200))).as_deref(), Some("no"));
    assert!(
        matches!(agent.known.last(), Some(Known::PermissionDecided { granted: false, .. })),
        "{:?}",
        agent.known.last()
    );
    for n in 1..=200 {
        agent.answer(&format!("p{n}"), Some("no"));
    }
    agent.update(&json!({"sessionUpdate": "tool_call", "toolCallId": "t", "title": "t", "status": "failed"}));
    agent.message("Done.");
    agent.stop("end_turn");
    assert_eq!(code(&agent.exit(WELL).1), Some(C::HarnessFailed), "no person refused the last one");
}

#[test]
fn a_question_is_never_answered() {
    let mut agent = Agent::prompted(Start::default());
    let options = json!([{"optionId": "a", "kind": "allow_once"}, {"optionId": "b", "kind": "allow_once"},
        {"optionId": "skip", "kind": "reject_once"}]);
    let answer = agent.asks(&json!(1), "session/request_permission", &json!({"toolCall": {}, "options": options}));
    assert_eq!(chosen(answer).as_deref(), Some("skip"));
    assert_eq!(agent.notices(), ["acp-question"]);
    assert!(!agent.known.iter().any(|known| matches!(known, Known::PermissionRequested { .. })));
}

#[test]
fn a_cancel_ends_the_turn_and_what_waits() {
    let mut agent = Agent::prompted(Start { permissions: Policy::Ask, ..Start::default() });
    permission(&mut agent, &json!(7));
    agent.cancel();
    let methods: Vec<_> = agent.sent.iter().rev().take(2).map(|message| message["method"].clone()).collect();
    assert_eq!(methods, [json!("session/cancel"), Value::Null]);
    assert_eq!(agent.sent[agent.sent.len() - 2]["result"], json!({"outcome": {"outcome": "cancelled"}}));
    assert!(agent.known.contains(&Known::PermissionAnswered { request: "p1".into(), option: None }));
    assert!(!agent.is_closed, "the agent may say how its turn ended");
    assert_eq!(chosen(permission(&mut agent, &json!(8))).as_deref(), Some("cancelled"));
    agent.cancel();
    agent.stop("cancelled");
    assert!(agent.is_closed);
    let cancels = agent.sent.iter().filter(|message| message["method"] == "session/cancel").count();
    assert_eq!(cancels, 1);

    let mut early = Agent::new(Start::default());
    early.cancel();
    assert!(early.is_closed, "there is no turn that could be cancelled");
}

#[test]
fn files_are_asked_for_inside_the_tree_only() {
    let mut agent = Agent::prompted(Start::default());
    let mut id = 0;
    let mut read = |agent: &mut Agent, path: &str| {
        id += 1;
        agent.asks(&json!(id), "fs/read_text_file", &json!({"path": path, "line": 2, "limit": 1})).unwrap()
    };
    assert_eq!(read(&mut agent, "/tree/src/a.txt")["result"], json!({"content": "beta\n"}));
    agent.file = FileAnswer::Missing;
    assert_eq!(read(&mut agent, "/tree/src/b.txt")["error"]["code"], -32002);
    let looked = agent.files.len();
    for path in [
        "/tree/../etc/passwd",
        "/etc/passwd",
        "/tree",
        "/tree/",
        "/treetop/a",
        "tree/a",
        "",
        "/tree//a",
        "/tree/./a",
        "/tree/.git/config",
        "/tree/.GIT/config",
        "/tree/sub/.git/hooks/x",
        "/tree/git~1/config",
        "/tree/a\0b",
    ] {
        assert_eq!(read(&mut agent, path)["error"]["code"], -32602, "{path:?}");
        let write = agent.asks(&json!("w"), "fs/write_text_file", &json!({"path": path, "content": "x"}));
        assert_eq!(write.unwrap()["error"]["code"], -32602, "{path:?}");
    }
    assert_eq!(agent.files.len(), looked, "nobody looked for them");
    agent.file = FileAnswer::Written;
    let params = json!({"path": "/tree/src/a.txt", "content": "token := \"abc\"\n"});
    assert_eq!(agent.asks(&json!("x"), "fs/write_text_file", &params).unwrap()["result"], json!({}));
    assert_eq!(agent.files.last().unwrap().action, FileAction::Write("token := \"abc\"\n".to_owned()));
    assert_eq!(
        agent.asks(&json!("y"), "fs/write_text_file", &json!({"path": "/tree/a"})).unwrap()["error"]["code"],
        -32602
    );

    let mut reader = Agent::prompted(Start { access: Access::ReadOnly, ..Start::default() });
    assert_eq!(reader.asks(&json!(1), "fs/write_text_file", &params).unwrap()["error"]["code"], -32602);
    assert_eq!((reader.files.len(), reader.notices()), (0, vec!["acp-write-refused"]));
}

#[test]
fn an_agent_whose_launch_chose_the_model_is_held_to_it() {
    let opened = |model: &str| json!({"sessionId": "s", "configOptions": [{"id": "model", "category": "model", "currentValue": model}]});
    let both: [&'static dyn Harness; 2] = [&Kimi, &Opencode];
    for (asked, first, later, code_expected, notices) in [
        (Some("p/big"), "p/big", None, None, &[][..]),
        (Some("p/big"), "p/small", None, Some(C::InvalidConfig), &["model-differs"]),
        (Some("p/big"), "p/big", Some("p/small"), Some(C::InvalidConfig), &["model-differs"]),
        (None, "p/small", None, None, &[]),
        (None, "p/big", Some("p/small"), None, &["model-differs"]),
    ] {
        for harness in both {
            let start = Start { model: asked.map(str::to_owned), harness: Some(harness), ..Start::default() };
            let mut agent = Agent::new(start);
            agent.reply(&json!({"protocolVersion": 1}));
            agent.reply(&opened(first));
            assert_eq!(agent.last_method() == "session/prompt", asked.is_none_or(|asked| asked == first), "{first}");
            if let Some(later) = later {
                let mut update = opened(later);
                update["sessionUpdate"] = "config_option_update".into();
                agent.update(&update);
            }
            if agent.last_method() == "session/prompt" {
                agent.message("Done.");
                agent.stop("end_turn");
            }
            let (agent, end) = agent.exit(WELL);
            assert_eq!((code(&end), agent.notices()), (code_expected, notices.to_vec()), "{asked:?} {first} {later:?}");
        }
    }
}

#[test]
fn a_variant_of_a_model_is_that_model_to_opencode() {
    for (actual, expected) in
        [("p/m", None), ("p/m/high", None), ("p/mini", Some(C::InvalidConfig)), ("p", Some(C::InvalidConfig))]
    {
        let mut agent = Agent::new(Start { model: Some("p/m".into()), harness: Some(&Opencode), ..Start::default() });
        agent.reply(&json!({"protocolVersion": 1}));
        agent.reply(&json!({"sessionId": "s", "models": {"currentModelId": actual}}));
        if expected.is_none() {
            agent.message("Done.");
            agent.stop("end_turn");
        }
        assert_eq!(code(&agent.exit(WELL).1), expected, "{actual}");
    }
}
