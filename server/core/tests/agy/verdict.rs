//! What a turn comes to. agy calls many things a success.

use pactify_core::FailureCode;
use pactify_core::brief::Brief;
use pactify_core::harness::Step;
use pactify_core::job::access::Access;
use pactify_core::job::event::{ExitRecord, Known};
use pactify_core::job::outcome::Verdict;

use serde_json::{Value, json};

use super::agy;
use super::asked::{Asked, session};

const INIT: &str = r#"{"event":"init","conversation_id":"c-1","init":{"cwd":"/j/tree","tools":[],"permission_mode":"plan","model":"m"}}"#;
const INVOKED: &str = "invocation {}\n";

fn result(status: &str, more: &str) -> String {
    format!(r#"{{"event":"result","result":{{"conversation_id":"c-1","status":"{status}"{more}}}}}"#)
}

fn tool(state: &str, name: &str, parameters: &str) -> String {
    format!(
        r#"{{"event":"step_update","step_update":{{"conversation_id":"c-1","step_index":3,"state":"{state}","step_type":"tool","tool_name":"{name}","tool_info":{{"name":"{name}","parameters":{parameters}}}}}}}"#
    )
}

/// `completed`, `silent`, or the failure's code.
fn word(verdict: &Verdict) -> String {
    match verdict {
        Verdict::Completed => "completed".to_owned(),
        Verdict::Silent => "silent".to_owned(),
        Verdict::Failed(failure) => failure.code.as_str(),
    }
}

fn check(access: Access, lines: &str, notes: &str, exit: ExitRecord, expected: &str) {
    let lines = format!("{INIT}\n{lines}");
    let (_, conclusion) = agy("").run(access, &lines, notes, exit);
    assert_eq!(word(&conclusion.verdict), expected, "{access:?} {exit:?} {lines}\n{:?}", conclusion.verdict);
}

#[test]
fn the_four_combinations_of_exit_code_and_status() {
    let (success, error) =
        (result("SUCCESS", r#","response":"Done.""#), result("ERROR", r#","error":"tool rejected""#));
    for access in [Access::Write, Access::ReadOnly] {
        for (lines, exit, expected) in [
            (&success, ExitRecord::Code(0), "completed"),
            (&success, ExitRecord::Code(1), "harnessFailed"),
            (&success, ExitRecord::Signal(9), "harnessFailed"),
            (&error, ExitRecord::Code(0), "harnessFailed"),
            (&error, ExitRecord::Code(1), "harnessFailed"),
            (&String::new(), ExitRecord::Code(0), "silent"),
            (&String::new(), ExitRecord::Code(1), "harnessFailed"),
        ] {
            check(access, lines, INVOKED, exit, expected);
        }
    }
}

#[test]
fn whatever_contradicts_a_success_is_believed() {
    let done = r#","response":"Done.""#;
    for (lines, write, read) in [
        (result("SUCCESS", ""), "silent", "silent"),
        (result("SUCCESS", r#","response":" ""#), "silent", "silent"),
        // What is named twice is no result.
        (result("ERROR", r#","status":"SUCCESS","response":"Done.""#), "silent", "silent"),
        (result("SUCCESS", r#","response":"","denied_actions":["command(x)"]"#), "harnessFailed", "harnessFailed"),
        // In a read-only job it is what should happen.
        (result("SUCCESS", r#","response":"Done.","denied_actions":["command(x)"]"#), "harnessFailed", "completed"),
        (result("SUCCESS", r#","response":"Done.","error":"odd""#), "harnessFailed", "harnessFailed"),
        (
            format!("!print timeout after 5m0s, returning partial output\n{}", result("SUCCESS", done)),
            "harnessFailed",
            "harnessFailed",
        ),
        (
            format!("{}\n!terminating 2 background task(s) on exit", result("SUCCESS", done)),
            "harnessFailed",
            "harnessFailed",
        ),
        (
            format!(
                "{}\n!jetski: no output produced — a tool required the \"command\" permission",
                result("SUCCESS", done)
            ),
            "harnessFailed",
            "harnessFailed",
        ),
        (result("SUCCESS", r#","response":"RESOURCE_EXHAUSTED: resets in 3h""#), "quotaExceeded", "quotaExceeded"),
        (result("ERROR", r#","error":"quota exceeded, resets in 3h""#), "quotaExceeded", "quotaExceeded"),
        (result("ERROR", r#","error":"please sign in""#), "loginRequired", "loginRequired"),
        (result("ERROR", r#","error":"503 Service Unavailable""#), "providerUnreachable", "providerUnreachable"),
        (format!("{}\n{}", result("SUCCESS", done), result("SUCCESS", done)), "harnessFailed", "harnessFailed"),
        (format!("{}\n{}", result("SUCCESS", done), result("ERROR", "")), "harnessFailed", "harnessFailed"),
    ] {
        check(Access::Write, &lines, INVOKED, ExitRecord::Code(0), write);
        check(Access::ReadOnly, &lines, INVOKED, ExitRecord::Code(0), read);
    }
    for status in ["CANCELED", "INTERRUPTED", "INVALID", "WAITING", "RUNNING", "", "Success", "PARTIAL"] {
        check(Access::Write, &result(status, done), "", ExitRecord::Code(0), "harnessFailed");
    }
}

#[test]
fn a_read_only_job_needs_the_proof_that_its_hook_ran() {
    let done = result("SUCCESS", r#","response":"Done.""#);
    let viewed = format!("{}\n{done}", tool("DONE", "view_file", "{}"));
    let noted = "tool {\"toolCall\":{\"name\":\"view_file\"}}\n";
    let written = format!("{}\n{done}", tool("DONE", "write_to_file", "{}"));
    let noted_write = "tool {\"toolCall\":{\"name\":\"write_to_file\"}}\n";
    let ran = |command: &str| {
        format!("{}\n{done}", tool("DONE", "run_command", &format!(r#"{{"CommandLine":"{command}"}}"#)))
    };
    let noted_run = "tool {\"toolCall\":{\"name\":\"run_command\"}}\n";
    for (lines, notes, expected) in [
        (&viewed, noted, "completed"),
        (&viewed, INVOKED, "harnessIncompatible"),
        (&viewed, "", "harnessIncompatible"),
        (&done, "", "harnessIncompatible"),
        (&written, noted_write, "harnessIncompatible"),
        (&ran("git status"), noted_run, "completed"),
        (&ran("git status; rm x"), noted_run, "harnessIncompatible"),
        (&format!("{}\n{done}", tool("ERROR", "write_to_file", "{}")), noted_write, "completed"),
    ] {
        check(Access::ReadOnly, lines, notes, ExitRecord::Code(0), expected);
    }
    check(Access::Write, &written, "", ExitRecord::Code(0), "completed");
    let allowed = INIT.replace("\"plan\"", "\"always-proceed\"");
    let (_, conclusion) = agy("").run(Access::ReadOnly, &format!("{allowed}\n{done}"), INVOKED, ExitRecord::Code(0));
    assert_eq!(word(&conclusion.verdict), "harnessIncompatible");
    let (_, conclusion) = agy("").run(Access::ReadOnly, "!please log in", "", ExitRecord::Code(1));
    assert_eq!(word(&conclusion.verdict), "loginRequired", "it never began");
}

#[test]
fn a_conversation_that_was_replaced_is_no_resume() {
    let asked = Asked { resume: session("c-0"), ..agy("") };
    let lines = format!("{INIT}\n{}", result("SUCCESS", r#","response":"Done.""#));
    let (steps, conclusion) = asked.run(Access::Write, &lines, "", ExitRecord::Code(0));
    let Verdict::Failed(failure) = conclusion.verdict else { panic!("{:?}", conclusion.verdict) };
    assert_eq!(failure.code, FailureCode::WrongState);
    assert!(
        steps
            .iter()
            .any(|step| matches!(step, Step::Record(Known::SessionStarted { session, .. }) if session == "c-1"))
    );
    let empty = lines.replace("c-1", "");
    let (steps, _) = agy("").run(Access::Write, &empty, "", ExitRecord::Code(0));
    assert!(!steps.iter().any(|step| matches!(step, Step::Record(Known::SessionStarted { .. }))));
}

#[test]
fn a_result_of_many_megabytes_keeps_its_status_and_conversation() {
    let long = "words ".repeat(1 << 20);
    for (status, expected) in [("SUCCESS", "completed"), ("ERROR", "harnessFailed")] {
        let lines = result(status, &format!(r#","response":"{long}","usage":{{"total_tokens":12}}"#));
        let (steps, conclusion) = agy("").run(Access::Write, &lines, "", ExitRecord::Code(0));
        assert_eq!(word(&conclusion.verdict), expected);
        let begun = steps
            .iter()
            .any(|step| matches!(step, Step::Record(Known::SessionStarted { session, .. }) if session == "c-1"));
        assert!(begun, "{status}");
        assert!(conclusion.final_message.is_none_or(|text| text.len() <= 128 << 10), "what is kept of it is bounded");
    }
}

#[test]
fn a_turn_is_told_and_the_input_closed_after_it() {
    let words = |state: &str, delta: &str| {
        format!(
            r#"{{"event":"step_update","step_update":{{"step_index":1,"state":"{state}","step_type":"agent_response","text_delta":"{delta}"}}}}"#
        )
    };
    let run = r#"{"CommandLine":"ls","Cwd":"/j/tree"}"#;
    let lines = [
        words("ACTIVE", "I'll "),
        words("DONE", "look."),
        tool("ACTIVE", "run_command", run),
        tool("ACTIVE", "run_command", run),
        tool("DONE", "run_command", run),
        "not json".to_owned(),
        r#"{"event":"result","event":"init"}"#.to_owned(),
        r#"{"event":"telemetry"}"#.to_owned(),
        result("SUCCESS", r#","response":"Done.","usage":{"total_tokens":12,"output_tokens":5}"#),
    ];
    let asked = Asked { model: Some("big"), brief: Brief::new("/clear all").unwrap(), ..agy("") };
    let (steps, conclusion) =
        asked.run(Access::ReadOnly, &format!("{INIT}\n{}", lines.join("\n")), "", ExitRecord::Code(0));
    let told: Vec<String> = steps
        .iter()
        .map(|step| match step {
            Step::Record(Known::Notice { id, .. }) => id.clone(),
            Step::Record(Known::Message { text }) => format!("says {text}"),
            Step::Record(Known::CommandStarted { item, command }) => format!("{item} {command}"),
            Step::Record(Known::CommandEnded { item, .. }) => format!("{item} ended"),
            Step::Record(Known::Usage { usage }) => format!("{} and {}", usage.input_tokens, usage.output_tokens),
            Step::Record(Known::SessionStarted { session, model }) => format!("{session} {model:?}"),
            Step::Send(line) => {
                let sent: Value = serde_json::from_str(line).unwrap();
                assert_eq!((&sent["event"], &sent["message"]["role"]), (&json!("user"), &json!("user")));
                format!("asks {}", sent["message"]["content"][0]["text"])
            }
            Step::CloseInput => "close".to_owned(),
            other => panic!("{other:?}"),
        })
        .collect();
    let expected = [
        "agy-experimental",
        "asks \"The task:\\n\\n/clear all\"",
        "c-1 Some(\"m\")",
        "model-differs",
        "says I'll look.",
        "step-3 ls",
        "step-3 ended",
        "agy-output-unreadable",
        "agy-output-unreadable",
        "agy-unknown-event",
        "7 and 5",
        "close",
    ];
    assert_eq!(told, expected);
    assert_eq!(conclusion.final_message.as_deref(), Some("Done."));
}

#[test]
fn another_model_than_the_one_that_was_asked_for_is_no_success() {
    let done = result("SUCCESS", r#","response":"Done.""#);
    for (asked, actual, expected) in [
        (Some("m"), "m", "completed"),
        (Some("gemini-3-pro"), "Gemini 3 Pro", "completed"),
        (Some("gemini-3-pro"), "Gemini 3 Pro (High)", "completed"),
        (Some("gemini-3-pro"), "gemini-3-flash", "invalidConfig"),
        (Some("gemini-3-flash"), "gemini-3-flash-lite", "invalidConfig"),
        (Some("gemini-3-pro"), "", "completed"),
        (None, "gemini-3-flash", "completed"),
    ] {
        let init = json!({"event": "init", "conversation_id": "c-1", "init": {"cwd": "/j/tree", "model": actual}});
        let asked = Asked { model: asked, ..agy("") };
        let (_, conclusion) = asked.run(Access::Write, &format!("{init}\n{done}"), "", ExitRecord::Code(0));
        assert_eq!(word(&conclusion.verdict), expected, "{actual}: {:?}", conclusion.verdict);
    }
}

#[test]
fn the_same_over_and_over_is_ended_unless_nobody_can_tell() {
    let (view, run) = (r#"{"path":"a"}"#, r#"{"CommandLine":"tail log"}"#);
    let said = r#"{"event":"step_update","step_update":{"step_type":"agent_response","step_index":1,"state":"DONE","text_delta":"Let me look."}}"#;
    let failed = r#"{"event":"step_update","step_update":{"step_index":3,"state":"ERROR","step_type":"tool","tool_name":"run_command","tool_info":{"parameters":{"CommandLine":"make"},"error":"no rule"}}}"#;
    let step = |index: usize, line: &str| line.replace("\"step_index\":3", &format!("\"step_index\":{index}"));
    for (line, times, expected) in [
        (failed.to_owned(), 60, true),
        (failed.to_owned(), 59, false),
        // What they brought is not told.
        (tool("DONE", "view_file", view), 200, false),
        (tool("DONE", "run_command", run), 200, false),
        (said.to_owned(), 8, true),
        (said.to_owned(), 7, false),
    ] {
        let lines: Vec<String> = (0..times).map(|index| step(index, &line)).collect();
        let (steps, conclusion) =
            agy("").run(Access::Write, &format!("{INIT}\n{}", lines.join("\n")), "", ExitRecord::Signal(9));
        let ends = steps.iter().filter(|step| **step == Step::CloseInput).count();
        assert_eq!(ends, usize::from(expected), "{line}");
        let Verdict::Failed(failure) = conclusion.verdict else { panic!("{line}") };
        assert_eq!(failure.message.contains("the same over and over"), expected, "{line}: {failure:?}");
    }
}
