//! What a broken, foreign or hostile program can do to the driver: nothing.

use pactify_core::FailureCode;
use pactify_core::harness::codex::Codex;
use pactify_core::harness::version::untested;
use pactify_core::harness::{Conclusion, Harness, Resume, Step};
use pactify_core::job::access::Access;
use pactify_core::job::event::{ExitRecord, Known, Usage};
use pactify_core::job::outcome::Verdict;
use proptest::prelude::*;
use serde_json::json;

use crate::asked::Asked;
use crate::codex;
use crate::replay::run;

const DONE: &str = r#"{"type":"turn.completed","usage":{"input_tokens":1,"output_tokens":1}}"#;

fn after(asked: &Asked, stdout: &str, stderr: &str, exit: ExitRecord) -> (Vec<Known>, Conclusion) {
    let (steps, end) = run(&mut *Codex.driver(&asked.request(), Access::Write), stdout, stderr, exit);
    let known = steps.into_iter().map(|step| match step {
        Step::Record(known) => known,
        other => panic!("codex exec reads its brief and nothing else: {other:?}"),
    });
    (known.collect(), end)
}

const ANSWER: &str = r#"{"type":"item.completed","item":{"id":"a","type":"agent_message","text":"All done!"}}"#;

/// The same after an answer, which is not among what was told.
fn answered(asked: &Asked, stdout: &str, stderr: &str, exit: ExitRecord) -> (Vec<Known>, Conclusion) {
    let (mut seen, end) = after(asked, &format!("{ANSWER}\n{stdout}"), stderr, exit);
    seen.retain(|known| *known != Known::Message { text: "All done!".to_owned() });
    (seen, end)
}

/// The end of a turn, to who takes the last of two.
const TWICE: &str = r#"{"type":"turn.failed","type":"turn.completed"}"#;

fn known(stdout: &str) -> Vec<Known> {
    after(&codex(""), stdout, "", ExitRecord::Code(0)).0
}

fn failure_code(verdict: Verdict) -> Option<FailureCode> {
    match verdict {
        Verdict::Failed(failure) => Some(failure.code),
        _ => None,
    }
}

#[test]
fn malformed_lines_are_told_once_and_the_run_goes_on() {
    let deep = "[".repeat(100_000);
    let nested = format!("{}{}", "{\"type\":".repeat(200), "}".repeat(200));
    for line in [
        "not json",
        "{\"type\":\"turn.comp",
        "\0",
        "{\"type\":\"\\ud800\"}",
        "[1,2]",
        "null",
        "\"turn.completed\"",
        "{\"type\":\"turn.completed\"} trailing",
        TWICE,
        r#"{"type":"item.completed","item":{"type":"error","type":"agent_message","text":"No."}}"#,
        &deep,
        &nested,
    ] {
        let stdout = format!("{line}\n{line}\n{DONE}");
        let (seen, end) = answered(&codex(""), &stdout, "", ExitRecord::Code(0));
        assert_eq!(end.verdict, Verdict::Completed, "{line:.40}");
        let notices = seen.iter().filter(|known| matches!(known, Known::Notice { .. })).count();
        assert_eq!(notices, 1, "{line:.40}");
    }
}

#[test]
fn fields_that_are_missing_or_of_a_wrong_type_count_as_empty() {
    let items = [
        json!({}),
        json!({"type": 7}),
        json!({"type": "agent_message", "text": ["a"]}),
        json!({"type": "command_execution", "command": null, "aggregated_output": 1, "exit_code": 1e300, "status": {}}),
        json!({"type": "file_change", "changes": {"path": "/x"}}),
        json!({"type": "file_change", "changes": [1, null, {"path": 2}, {}]}),
        json!({"type": "mcp_tool_call"}),
        json!({"type": "error"}),
        json!("x"),
    ];
    for item in items {
        for kind in ["item.started", "item.updated", "item.completed"] {
            known(&json!({"type": kind, "item": item}).to_string());
        }
    }
    for event in [
        json!({"type": "thread.started"}),
        json!({"type": "thread.started", "thread_id": ""}),
        json!({"type": "thread.started", "thread_id": "--last"}),
        json!({"type": "thread.started", "thread_id": "../../etc"}),
        json!({"type": "thread.started", "thread_id": "x".repeat(1000)}),
    ] {
        let seen = known(&event.to_string());
        assert!(seen.iter().all(|known| matches!(known, Known::Notice { .. })), "{event}: {seen:?}");
    }
    for usage in [json!(null), json!({"input_tokens": -1, "output_tokens": 1.5}), json!({"input_tokens": "9"})] {
        let (seen, end) = answered(
            &codex(""),
            &json!({"type": "turn.completed", "usage": usage}).to_string(),
            "",
            ExitRecord::Code(0),
        );
        assert_eq!((seen, end.verdict), (vec![], Verdict::Completed), "{usage}");
    }
}

#[test]
fn numbers_of_any_size_are_survived() {
    let line = format!(
        r#"{{"type":"turn.completed","usage":{{"input_tokens":{},"cached_input_tokens":1{},"output_tokens":1e999}}}}"#,
        u64::MAX,
        "0".repeat(400)
    );
    let (_, end) = answered(&codex(""), &format!("{line}\n{DONE}"), "", ExitRecord::Code(0));
    assert_eq!(end.verdict, Verdict::Completed);
}

#[test]
fn what_is_recorded_is_bounded() {
    let huge = "ä\u{1b}[31m".repeat(50_000);
    let mut stdout = String::new();
    for kind in ["agent_message", "reasoning", "error", "zzz"] {
        let item = json!({"type": kind, "text": huge, "message": huge});
        stdout += &format!("{}\n", json!({"type": "item.completed", "item": item}));
    }
    let changes: Vec<_> = (0..500).map(|n| json!({"path": format!("{n}{huge:.2000}")})).collect();
    stdout += &format!("{}\n", json!({"type": "item.completed", "item": {"type": "file_change", "changes": changes}}));
    let command = json!({"type": "command_execution", "id": huge, "command": huge, "aggregated_output": huge});
    for kind in ["item.started", "item.completed"] {
        stdout += &format!("{}\n", json!({"type": kind, "item": command}));
    }
    stdout += &json!({"type": "turn.failed", "error": {"message": huge}}).to_string();
    let (seen, end) = after(&codex(""), &stdout, &huge, ExitRecord::Code(1));
    for known in &seen {
        let size = serde_json::to_string(known).unwrap().len();
        assert!(size < 300_000, "{size} bytes: {:.100}", format!("{known:?}"));
    }
    assert!(end.final_message.unwrap().len() < 65 * 1024);
    let Verdict::Failed(failure) = end.verdict else { panic!("it failed") };
    assert!(failure.message.len() < 4096 && !failure.message.contains('\u{1b}'), "{}", failure.message);
}

#[test]
fn notices_are_told_once_and_never_without_end() {
    let mut stdout = String::new();
    for n in 0..10_000 {
        stdout += &format!("{}\n", json!({"type": format!("new.{}", n % 3000)}));
        stdout += &format!("{}\n", json!({"type": "error", "message": format!("Reconnecting... {n}/5 (x)")}));
        stdout += &format!("{}\n", json!({"type": "item.completed", "item": {"type": "error", "message": "same"}}));
    }
    assert!(known(&stdout).len() <= 40);
}

#[test]
fn nothing_but_a_completed_turn_and_a_clean_exit_is_a_success() {
    let failed = r#"{"type":"turn.failed","error":{"message":"x"}}"#;
    for (stdout, exit, expect) in [
        (format!("{ANSWER}\n{DONE}"), ExitRecord::Code(0), "Completed"),
        (DONE.to_owned(), ExitRecord::Code(0), "Silent"),
        (ANSWER.to_owned(), ExitRecord::Code(0), "Silent"),
        (format!("{ANSWER}\n{TWICE}"), ExitRecord::Code(0), "Silent"),
        (String::new(), ExitRecord::Code(0), "Silent"),
        (format!("{ANSWER}\n{DONE}"), ExitRecord::Code(1), "Failed"),
        (format!("{ANSWER}\n{DONE}"), ExitRecord::Signal(9), "Failed"),
        (format!("{DONE}\n{failed}"), ExitRecord::Code(0), "Failed"),
        (format!("{DONE}\n{{\"type\":\"turn.started\"}}"), ExitRecord::Code(0), "Silent"),
    ] {
        let verdict = format!("{:?}", after(&codex(""), &stdout, "", exit).1.verdict);
        assert!(verdict.starts_with(expect), "{stdout} {exit:?}: {verdict}");
    }
}

#[test]
fn a_failure_that_is_said_twice_is_told_once() {
    let error = r#"{"type":"error","message":"Quota exceeded. Check your plan."}"#;
    let failed = r#"{"type":"turn.failed","error":{"message":"Quota exceeded. Check your plan."}}"#;
    let (seen, end) = after(&codex(""), &format!("{error}\n{failed}"), "", ExitRecord::Code(1));
    assert_eq!((seen, failure_code(end.verdict)), (vec![], Some(FailureCode::QuotaExceeded)));

    let (seen, end) = answered(&codex(""), &format!("{error}\n{DONE}"), "", ExitRecord::Code(0));
    assert!(matches!(&seen[0], Known::Notice { text, .. } if text.starts_with("Quota")), "{seen:?}");
    assert_eq!(end.verdict, Verdict::Completed);
}

#[test]
fn a_turn_without_an_answer_is_no_result_whatever_was_changed() {
    let edit = json!({"type": "item.completed", "item": {"type": "file_change", "status": "completed", "changes": []}});
    let blank = json!({"type": "item.completed", "item": {"type": "agent_message", "text": " \n"}});
    for access in [Access::ReadOnly, Access::Write] {
        for stdout in [DONE.to_owned(), format!("{edit}\n{DONE}"), format!("{edit}\n{blank}\n{DONE}")] {
            let driver = &mut *Codex.driver(&codex("").request(), access);
            assert_eq!(run(driver, &stdout, "", ExitRecord::Code(0)).1.verdict, Verdict::Silent, "{access:?} {stdout}");
        }
    }
}

/// What happens in a turn of codex: a line of its output, or what it logs of a refusal.
#[derive(Clone, Copy)]
enum Happens {
    Edit(&'static str),
    Command(&'static str, i64, &'static str),
    Refused(&'static str),
}

#[test]
fn a_refusal_beats_the_word_done_unless_something_succeeded_after_it() {
    use Happens::{Command, Edit, Refused};
    const PATCH: Happens = Refused("apply_patch verification failed: Failed to find expected lines");
    const RAN: Happens = Command("completed", 0, "");
    const BWRAP: Happens = Command("failed", 1, "bwrap: Creating new namespace failed");
    let failed = Some(FailureCode::HarnessFailed);
    for (turn, write, read_only) in [
        (&[PATCH][..], failed, None),
        (&[RAN, PATCH], failed, None),
        (&[Edit("completed"), Edit("failed")], failed, None),
        (&[Edit("completed"), Refused("patch rejected: writing is blocked")], failed, None),
        (&[RAN, Refused("exec_command failed: CreateProcess { message: \"Rejected\" }")], failed, None),
        (&[RAN, Command("declined", 0, "")], failed, None),
        (&[PATCH, Command("failed", 1, "2 tests failed")], failed, None),
        (&[RAN, BWRAP], Some(FailureCode::SandboxUnavailable), Some(FailureCode::SandboxUnavailable)),
        // Tried again, in another way or with other arguments.
        (&[PATCH, Edit("completed")], None, None),
        (&[PATCH, RAN], None, None),
        (&[BWRAP, RAN], None, None),
        // No refusals: a test that fails, a tool that there is not.
        (&[Edit("completed"), Command("failed", 1, "2 tests failed")], None, None),
        (&[Edit("completed"), Refused("unsupported call: update_plan")], None, None),
        (&[RAN, Refused("failed to parse function arguments: key must be a string")], None, None),
    ] {
        for (access, expected) in [(Access::Write, write), (Access::ReadOnly, read_only)] {
            let mut driver = Codex.driver(&codex("").request(), access);
            for happens in turn {
                let item = |item| json!({"type": "item.completed", "item": item}).to_string();
                match happens {
                    Edit(status) => driver.on_line(&item(json!({"type": "file_change", "status": status}))),
                    Command(status, code, said) => driver.on_line(&item(
                        json!({"type": "command_execution", "status": status, "exit_code": code, "aggregated_output": said}),
                    )),
                    Refused(why) => driver
                        .on_stderr(&format!("2026-11-29T13:45:01.795453Z ERROR codex_core::tools::router: error={why}")),
                };
            }
            driver.on_line(ANSWER);
            driver.on_line(DONE);
            let verdict = driver.on_exit(ExitRecord::Code(0)).verdict;
            let is_done = verdict == Verdict::Completed;
            assert_eq!((failure_code(verdict), is_done), (expected, expected.is_none()), "{access:?}: {}", turn.len());
        }
    }
}

#[test]
fn a_resumed_session_counts_its_own_attempt_only() {
    let used = Usage { input_tokens: 240, cached_input_tokens: 40, output_tokens: 60, cost: None };
    let asked = Asked { resume: Some(Resume { session: "one", used }), ..codex("") };
    let total =
        r#"{"type":"turn.completed","usage":{"input_tokens":480,"cached_input_tokens":80,"output_tokens":120}}"#;
    let usage_after = |session: &str| {
        let started = json!({"type": "thread.started", "thread_id": session});
        let (seen, end) = answered(&asked, &format!("{started}\n{total}"), "", ExitRecord::Code(0));
        let usage = seen.into_iter().find_map(|k| if let Known::Usage { usage } = k { Some(usage) } else { None });
        (usage.unwrap(), end.verdict)
    };
    assert_eq!(usage_after("one"), (used, Verdict::Completed));
    let whole = Usage { input_tokens: 480, cached_input_tokens: 80, output_tokens: 120, cost: None };
    let (usage, verdict) = usage_after("another");
    assert_eq!((usage, failure_code(verdict)), (whole, Some(FailureCode::WrongState)));
}

#[test]
fn a_version_that_was_not_tested_is_told_and_not_refused() {
    for (version, told) in [(None, false), (Some("0.171.0"), false), (Some("0.1710.0"), true), (Some("1.0.0"), true)] {
        let (seen, end) = answered(&Asked { version, ..codex("") }, DONE, "", ExitRecord::Code(0));
        assert!(!seen.iter().any(|known| matches!(known, Known::Notice { .. })), "{seen:?}");
        let is_told = untested(&Codex, version).is_some();
        assert_eq!((is_told, end.verdict), (told, Verdict::Completed), "{version:?}");
    }
}

#[test]
fn a_failed_check_says_what_failed() {
    let write = pactify_core::job::access::WriteGrant { tree: codex("").places.tree, network: true };
    let settings = "[harnesses.codex.config]\nmodel = 5";
    for (asked, exit, output, code) in [
        (codex(""), Some(ExitRecord::Code(1)), "bwrap: Creating new namespace failed", FailureCode::SandboxUnavailable),
        (
            codex(""),
            Some(ExitRecord::Code(1)),
            "bwrap: execvp codex-linux-sandbox: No such file",
            FailureCode::SandboxUnavailable,
        ),
        (codex(""), None, "", FailureCode::SandboxUnavailable),
        (
            codex(""),
            Some(ExitRecord::Code(2)),
            "error: unrecognized subcommand 'sandbox'",
            FailureCode::HarnessIncompatible,
        ),
        (
            codex(settings),
            Some(ExitRecord::Code(1)),
            "Error loading config.toml: invalid type\nin `model`",
            FailureCode::InvalidConfig,
        ),
    ] {
        let request = asked.request();
        let plan = Codex.plan_write(&request, write.clone()).unwrap().into_launch();
        let failure = Codex.preflight_failure(&request, &plan.preflight[0], exit, output);
        assert_eq!(failure.code, code, "{output}");
        let said = output.lines().next().unwrap_or_default();
        assert!(failure.message.contains(said), "{output}: {}", failure.message);
    }
}

/// Lines that look like codex's, with parts that do not.
fn line() -> impl Strategy<Value = String> {
    let kind = prop_oneof![
        Just("thread.started"),
        Just("turn.started"),
        Just("turn.failed"),
        Just("error"),
        Just("item.started"),
        Just("item.completed"),
        Just("item.updated"),
        Just("turn.complete"),
        Just("")
    ];
    let item = prop_oneof![
        Just("agent_message"),
        Just("command_execution"),
        Just("file_change"),
        Just("mcp_tool_call"),
        Just("error"),
        Just("web_search"),
        Just("todo_list"),
        Just("x")
    ];
    let event = (kind, item, "\\PC{0,12}", any::<i64>()).prop_map(|(kind, item, text, number)| {
        json!({
            "type": kind, "thread_id": text, "message": text, "error": {"message": text}, "usage": {"input_tokens": number},
            "item": {"id": text, "type": item, "text": text, "command": text, "aggregated_output": text,
                     "exit_code": number, "status": text, "changes": [{"path": text}], "server": text, "tool": text}
        })
        .to_string()
    });
    prop_oneof![3 => event, 1 => "\\PC{0,60}", 1 => ".{0,60}"]
}

proptest! {
    #[test]
    fn no_output_panics_or_passes_for_a_success(
        lines in prop::collection::vec(line(), 0..20),
        errors in prop::collection::vec(".{0,80}", 0..6),
        code in -1..3i32,
        complete in any::<bool>(),
    ) {
        let mut lines = lines;
        if complete {
            lines.push(DONE.to_owned());
        }
        // A last word that says nothing is no answer.
        let said = |line: &String| {
            let event: serde_json::Value = serde_json::from_str(line).ok()?;
            let is_message = event["type"] == "item.completed" && event["item"]["type"] == "agent_message";
            is_message.then(|| event["item"]["text"].as_str().unwrap_or_default().trim().is_empty())
        };
        let is_answered = !lines.iter().rev().find_map(said).unwrap_or(false);
        // Nothing that is drawn here is a refusal: no step has a status that codex knows.
        let (_, end) = answered(&codex(""), &lines.join("\n"), &errors.join("\n"), ExitRecord::Code(code));
        prop_assert_eq!(end.verdict == Verdict::Completed, complete && code == 0 && is_answered);
        if let Verdict::Failed(failure) = end.verdict {
            prop_assert!(!failure.message.is_empty() && !failure.next.is_empty());
            prop_assert!(!failure.message.chars().any(char::is_control), "{}", failure.message);
        }
    }
}

#[test]
fn the_same_over_and_over_is_ended_whatever_is_said_then() {
    let command = |output: &str| {
        json!({"type": "item.completed", "item": {"type": "command_execution", "command": "make", "status": "completed",
            "exit_code": 1, "aggregated_output": output}})
        .to_string()
    };
    let looks = |n: usize| command(&n.to_string());
    for (lines, expected) in [
        (vec![command("failed"); 60], true),
        (vec![command("failed"); 59], false),
        ((0..200).map(looks).collect(), false),
        (vec![ANSWER.to_owned(); 8], true),
        (vec![ANSWER.to_owned(); 6], false),
    ] {
        let stdout = format!("{}\n{ANSWER}\n{DONE}", lines.join("\n"));
        let (steps, end) =
            run(&mut *Codex.driver(&codex("").request(), Access::Write), &stdout, "", ExitRecord::Code(0));
        let ends = steps.iter().filter(|step| **step == Step::CloseInput).count();
        assert_eq!((ends, end.verdict == Verdict::Completed), (usize::from(expected), !expected), "{}", lines.len());
        if let Verdict::Failed(failure) = end.verdict {
            assert!(failure.message.contains("the same over and over"), "{failure:?}");
        }
    }
}
