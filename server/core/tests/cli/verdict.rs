//! What a run comes to, by its exit and its output. Nothing that it prints makes a success of a failure.

use pactify_core::FailureCode;
use pactify_core::harness::{Conclusion, Step};
use pactify_core::job::access::Access;
use pactify_core::job::event::{ExitRecord, Known};
use pactify_core::job::outcome::Verdict;

use super::asked::{Asked, session};
use super::mine;

const TEXT: &str = "read-only-args = []";
const JSONL: &str = "read-only-args = []\nresume-args = [\"{session}\"]\noutput = \"jsonl\"";

/// `completed`, `silent`, or the message of the failure.
fn word(verdict: &Verdict) -> &str {
    match verdict {
        Verdict::Completed => "completed",
        Verdict::Silent => "silent",
        Verdict::Failed(failure) => &failure.message,
    }
}

/// What is recorded of a run that prints these lines, and its conclusion.
fn run(asked: &Asked, access: Access, lines: &str, exit: ExitRecord) -> (Vec<Known>, Conclusion) {
    let (steps, conclusion) = asked.run(access, lines, "", exit);
    let recorded = steps.into_iter().map(|step| match step {
        Step::Record(known) => known,
        other => panic!("a program without a dialogue is sent nothing: {other:?}"),
    });
    (recorded.collect(), conclusion)
}

fn messages(recorded: &[Known]) -> Vec<&str> {
    recorded
        .iter()
        .filter_map(|known| if let Known::Message { text } = known { Some(text.as_str()) } else { None })
        .collect()
}

#[test]
fn text_is_believed_no_further_than_the_exit() {
    let both = [Access::Write, Access::ReadOnly];
    for (lines, exit, expected) in [
        ("Done.", ExitRecord::Code(0), ["completed", "completed"]),
        ("", ExitRecord::Code(0), ["completed", "silent"]),
        (" \n\u{1b}[0m\n", ExitRecord::Code(0), ["completed", "silent"]),
        ("!only noise", ExitRecord::Code(0), ["completed", "silent"]),
        ("Done.\n!boom", ExitRecord::Code(1), ["mine ended with exit code 1: boom"; 2]),
        ("Done.", ExitRecord::Code(2), ["mine ended with exit code 2 and said nothing on standard error"; 2]),
        ("Done.\n!boom", ExitRecord::Signal(9), ["mine was ended by signal 9: boom"; 2]),
    ] {
        for (access, expected) in both.into_iter().zip(expected) {
            let (_, conclusion) = run(&mine(TEXT), access, lines, exit);
            assert_eq!(word(&conclusion.verdict), expected, "{lines:?} {exit:?} {access:?}");
        }
    }
}

#[test]
fn every_line_is_a_message_and_all_of_them_the_answer() {
    let lines = "\u{1b}[32mWorking\u{1b}[0m\n10%\r50%\rReady\n\n  indented\n";
    let (recorded, conclusion) = run(&mine(TEXT), Access::Write, lines, ExitRecord::Code(0));
    assert_eq!(messages(&recorded), ["Working", "Ready", "  indented"]);
    assert_eq!(conclusion.final_message.as_deref(), Some("Working\nReady\n\n  indented"));
}

#[test]
fn an_answer_without_end_is_kept_in_part() {
    let line = "x".repeat(999);
    let lines = format!("BEGIN\n{}END", format!("{line}\n").repeat(6000));
    let (recorded, conclusion) = run(&mine(TEXT), Access::Write, &lines, ExitRecord::Code(0));
    let answer = conclusion.final_message.unwrap();
    assert!(answer.starts_with("BEGIN\n") && answer.ends_with("END") && answer.contains("bytes cut]"));
    assert!(answer.len() < 70_000, "{}", answer.len());
    assert_eq!(messages(&recorded).len(), 5_000);
    assert!(matches!(recorded.last(), Some(Known::Notice { id, .. }) if id == "cli-messages-left-out"));
}

#[test]
fn events_of_the_common_shapes_are_understood() {
    let cases = [
        // Claude Code and its kin.
        (
            r#"{"type":"system","subtype":"init","session_id":"s1","model":"m"}
{"type":"assistant","message":{"role":"assistant","content":[{"type":"text","text":"Looking."},{"type":"tool_use","name":"Bash"}]}}
{"type":"user","message":{"role":"user","content":[{"type":"tool_result","content":"x"}]}}
{"type":"result","subtype":"success","is_error":false,"result":"Done.","usage":{"input_tokens":5,"output_tokens":2}}"#,
            "completed",
            Some("Done."),
        ),
        (
            r#"{"type":"assistant","message":{"content":[{"type":"text","text":"Almost."}]}}
{"type":"result","subtype":"error_max_turns","is_error":true}"#,
            "mine failed: error_max_turns",
            Some("Almost."),
        ),
        (
            r#"{"type":"result","subtype":"success","is_error":true,"result":"API Error: 500"}"#,
            "mine failed: API Error: 500",
            Some("API Error: 500"),
        ),
        // Gemini CLI.
        (
            r#"{"type":"init","session_id":"s1","model":"m"}
{"type":"message","role":"user","content":"Do it."}
{"type":"message","role":"assistant","content":"Do","delta":true}
{"type":"message","role":"assistant","content":"ne.","delta":true}
{"type":"result","status":"success","stats":{"input_tokens":5,"output_tokens":2}}"#,
            "completed",
            Some("Done."),
        ),
        (
            r#"{"type":"result","status":"error","error":{"type":"Turn","message":"no quota"}}"#,
            "mine failed: no quota",
            None,
        ),
        // codex.
        (
            r#"{"type":"thread.started","thread_id":"s1"}
{"type":"item.completed","item":{"type":"agent_message","text":"Done."}}
{"type":"turn.completed","usage":{"input_tokens":5,"output_tokens":2}}"#,
            "completed",
            Some("Done."),
        ),
        (r#"{"type":"turn.failed","error":{"message":"nope"}}"#, "mine failed: nope", None),
        // opencode.
        (r#"{"type":"text","sessionID":"s1","part":{"text":"Done."}}"#, "completed", Some("Done.")),
        (r#"{"type":"error","error":{"name":"APIError","data":{"message":"401"}}}"#, "mine failed: 401", None),
        // Plain chat messages.
        (
            r#"{"role":"assistant","content":"","tool_calls":[]}
{"role":"tool","content":"x"}
{"role":"assistant","content":"Done."}"#,
            "completed",
            Some("Done."),
        ),
        // A failure that a later line does not take back.
        (
            r#"{"type":"turn.failed","error":{"message":"nope"}}
{"type":"result","subtype":"success","result":"Done."}"#,
            "mine failed: nope",
            Some("Done."),
        ),
        (
            r#"{"type":"error","message":"429"}
{"type":"system","session_id":"s"}"#,
            "mine failed: 429",
            None,
        ),
        // An error that was not the end.
        (
            r#"{"type":"error","message":"retrying"}
{"type":"text","text":"Done."}"#,
            "completed",
            Some("Done."),
        ),
    ];
    for (lines, expected, answer) in cases {
        for access in [Access::Write, Access::ReadOnly] {
            let (recorded, conclusion) = run(&mine(JSONL), access, lines, ExitRecord::Code(0));
            assert_eq!(word(&conclusion.verdict), expected, "{lines}");
            assert_eq!(conclusion.final_message.as_deref(), answer, "{lines}");
            let unknown =
                recorded.iter().find(|known| matches!(known, Known::Notice { id, .. } if id == "cli-unknown-event"));
            assert_eq!(unknown, None, "{lines}");
        }
    }
}

#[test]
fn what_is_no_event_is_chatter_and_no_answer() {
    let lines = "Welcome!\n{\"torn\": \n[1]\n{\"type\":\"telemetry.beat\"}\n{}";
    let (recorded, conclusion) = run(&mine(JSONL), Access::ReadOnly, lines, ExitRecord::Code(0));
    assert_eq!(messages(&recorded), ["Welcome!", "{\"torn\": ", "[1]"]);
    assert_eq!(word(&conclusion.verdict), "silent");
    assert_eq!(conclusion.final_message, None);
    let told = recorded.iter().filter(|known| matches!(known, Known::Notice { id, .. } if id == "cli-unknown-event"));
    assert_eq!(told.count(), 2);
}

#[test]
fn a_line_that_names_a_member_twice_is_no_answer_and_may_have_been_the_end() {
    let twice = r#"{"type":"error","message":"no","message":"yes"}"#;
    let answer = r#"{"role":"assistant","content":"Done."}"#;
    for (lines, expected) in [
        (
            r#"{"role":"user","role":"assistant","content":"Done."}"#.to_owned(),
            "mine failed: a line named a member twice",
        ),
        (format!("{answer}\n{twice}"), "mine failed: a line named a member twice"),
        (format!("{twice}\n{answer}"), "completed"),
    ] {
        let (_, conclusion) = run(&mine(JSONL), Access::Write, &lines, ExitRecord::Code(0));
        assert_eq!(word(&conclusion.verdict), expected, "{lines}");
    }
}

#[test]
fn who_speaks_in_lines_of_json_has_to_answer_in_a_write_job_too() {
    for (lines, expected) in [
        ("", "silent"),
        (r#"{"type":"init","session_id":"s1"}"#, "silent"),
        (r#"{"role":"assistant","content":" "}"#, "silent"),
        (r#"{"role":"assistant","content":"Done."}"#, "completed"),
    ] {
        let (_, conclusion) = run(&mine(JSONL), Access::Write, lines, ExitRecord::Code(0));
        assert_eq!(word(&conclusion.verdict), expected, "{lines}");
    }
}

#[test]
fn a_session_is_kept_where_it_can_go_on_and_a_replaced_one_is_told() {
    let lines = r#"{"type":"init","session_id":"s2","model":"m"}"#;
    let started = |asked: Asked| {
        let (recorded, _) = run(&asked, Access::Write, lines, ExitRecord::Code(0));
        let names = recorded.into_iter().map(|known| match known {
            Known::SessionStarted { session, model } => format!("{session} {model:?}"),
            Known::Notice { id, .. } => id,
            other => panic!("{other:?}"),
        });
        names.collect::<Vec<_>>()
    };
    assert_eq!(started(mine(JSONL)), ["s2 Some(\"m\")"]);
    assert_eq!(started(Asked { resume: session("s2"), ..mine(JSONL) }), ["s2 Some(\"m\")"]);
    assert_eq!(started(mine("output = \"jsonl\"")), [""; 0], "nothing says how it would go on");

    let other = Asked { resume: session("s1"), ..mine(JSONL) };
    let lines = format!("{lines}\n{{\"role\":\"assistant\",\"content\":\"Done.\"}}");
    let (_, conclusion) = run(&other, Access::Write, &lines, ExitRecord::Code(0));
    assert_eq!(word(&conclusion.verdict), "mine did not go on with the job's session, but opened another one");
}

#[test]
fn what_it_says_of_its_provider_is_what_the_failure_is_called() {
    for (said, code) in [
        ("!Error: 401 Unauthorized", FailureCode::LoginRequired),
        ("!429 Too Many Requests", FailureCode::QuotaExceeded),
        ("!connect ECONNREFUSED 127.0.0.1:1", FailureCode::ProviderUnreachable),
        ("!500 Internal Server Error", FailureCode::ProviderUnreachable),
        ("!cannot find 4012 things", FailureCode::HarnessFailed),
    ] {
        let (_, conclusion) = run(&mine(TEXT), Access::Write, said, ExitRecord::Code(1));
        let Verdict::Failed(failure) = conclusion.verdict else { panic!("{said}") };
        assert_eq!(failure.code, code, "{said}");
        assert!(failure.message.contains(&said[1..]) && !failure.next.is_empty(), "{said}: {failure:?}");
    }
}

#[test]
fn the_same_over_and_over_is_ended_where_the_program_tells_what_it_does() {
    let claude = |result: &str| {
        format!(
            "{{\"type\":\"assistant\",\"message\":{{\"content\":[{{\"type\":\"tool_use\",\"name\":\"Bash\",\
             \"input\":{{\"command\":\"make\"}}}}]}}}}\n\
             {{\"type\":\"user\",\"message\":{{\"content\":[{{\"type\":\"tool_result\",\"content\":\"{result}\"}}]}}}}"
        )
    };
    let codex =
        r#"{"type":"item.completed","item":{"type":"command_execution","command":"make","aggregated_output":"no"}}"#;
    let opencode = r#"{"type":"tool_use","part":{"tool":"bash","state":{"status":"completed","input":{"command":"make"},"output":"no"}}}"#;
    let untold = r#"{"type":"tool_use","name":"Bash"}"#;
    let without_result = r#"{"type":"tool_use","name":"Bash","input":{"command":"make"}}"#;
    let words = r#"{"role":"assistant","content":"Still at it."}"#;
    let repeated = |line: &str, times: usize| vec![line.to_owned(); times];
    for (settings, lines, expected) in [
        (JSONL, repeated(&claude("no"), 60), true),
        (JSONL, repeated(&claude("no"), 59), false),
        (JSONL, (0..100).map(|n| claude(&n.to_string())).collect(), false),
        (JSONL, repeated(codex, 60), true),
        (JSONL, repeated(opencode, 60), true),
        (JSONL, repeated(untold, 200), false),
        (JSONL, repeated(without_result, 200), false),
        // A program may print what it likes as often as it likes.
        (JSONL, repeated(words, 200), false),
        (TEXT, repeated(codex, 200), false),
    ] {
        let (steps, conclusion) = mine(settings).run(Access::Write, &lines.join("\n"), "", ExitRecord::Code(0));
        let ends = steps.iter().filter(|step| **step == Step::CloseInput).count();
        assert_eq!(ends, usize::from(expected), "{}", lines[0]);
        let said = word(&conclusion.verdict);
        assert_eq!(said == "mine does the same over and over: its turn was ended", expected, "{}: {said}", lines[0]);
    }
}
