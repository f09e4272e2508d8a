//! What an agent's own program did not let it do, or could not, is held against its “done”.

use pactify_core::FailureCode;
use pactify_core::harness::Harness;
use pactify_core::harness::kimi::Kimi;
use pactify_core::harness::opencode::Opencode;
use pactify_core::job::access::Access;
use pactify_core::job::event::ExitRecord;
use pactify_core::job::outcome::Verdict;
use pactify_core::permission::Policy;
use serde_json::{Value, json};

use crate::agent::{Agent, Start};
use crate::replay::replay_from;

const BLOCKED: &str = "\"/tree/.env\" matches a sensitive-file pattern (env / credential / SSH key). Access is blocked \
                       to protect secrets.";
const RULE: &str = "The user has specified a rule which prevents you from using this specific tool call. Here are some";

/// A call of this kind that ended like this, with this output.
fn call(id: &str, kind: &str, status: &str, output: &str) -> Value {
    json!({"sessionUpdate": "tool_call", "toolCallId": id, "title": kind, "kind": kind, "status": status,
        "rawOutput": {"error": output}})
}

fn verdict(start: Start, calls: &[Value]) -> Verdict {
    let mut agent = Agent::prompted(start);
    for call in calls {
        agent.update(call);
    }
    agent.message("All done.");
    agent.stop("end_turn");
    agent.exit(ExitRecord::Code(0)).1.verdict
}

#[test]
fn the_last_edit_counts_and_what_was_refused_counts_until_its_like_was_done() {
    let edit = |status, output| call("e", "edit", status, output);
    let run = |status, output| call("x", "execute", status, output);
    let (made, ran) = (edit("completed", ""), run("completed", ""));
    let missing = edit("failed", "old_string not found");
    let failing = json!({"sessionUpdate": "tool_call", "toolCallId": "x", "title": "bash", "kind": "execute",
        "status": "completed", "rawOutput": {"output": "1 test failed", "metadata": {"exit": 1}}});
    for (calls, says) in [
        (vec![made.clone()], None),
        // The tests that an agent runs may fail, and so may a command whose output reads like a refusal.
        (vec![made.clone(), failing.clone()], None),
        (vec![made.clone(), run("failed", "exit code 101")], None),
        (vec![made.clone(), run("failed", "ERROR: Access is blocked")], None),
        (vec![call("r", "read", "failed", BLOCKED)], None),
        (vec![missing.clone()], Some("edit failed: old_string not found")),
        (vec![made.clone(), missing.clone()], Some("edit failed")),
        (vec![missing.clone(), failing], Some("edit failed")),
        (vec![missing.clone(), made.clone()], None),
        (vec![missing.clone(), ran.clone()], None),
        (vec![made.clone(), edit("failed", BLOCKED), ran.clone()], Some("edit was refused: \"/tree/.env\"")),
        (vec![edit("failed", BLOCKED), missing, ran.clone()], Some("edit was refused")),
        (vec![edit("failed", BLOCKED), made.clone()], None),
        (
            vec![run("failed", "Tool \"Bash\" is disabled by the active tool policy"), made],
            Some("execute was refused: Tool \"Bash\" is disabled"),
        ),
        (vec![run("failed", "Tool \"Bash\" is disabled by the active tool policy"), ran], None),
    ] {
        let start = |access| Start { access, harness: Some(&Kimi), ..Start::default() };
        match (verdict(start(Access::Write), &calls), says) {
            (Verdict::Completed, None) => {}
            (Verdict::Failed(failure), Some(says)) => {
                assert_eq!(failure.code, FailureCode::HarnessFailed, "{failure:?}");
                assert!(failure.message.contains(says), "{calls:?}: {failure:?}");
            }
            (other, _) => panic!("{calls:?}: {other:?}"),
        }
        assert_eq!(verdict(start(Access::ReadOnly), &calls), Verdict::Completed, "that is what it is for: {calls:?}");
    }
}

#[test]
fn what_refuses_is_told_by_its_beginning_however_long_it_is() {
    let long = format!("{RULE} of the relevant rules [{}]", "{\"permission\":\"*\"},".repeat(2000));
    let calls = [call("e", "edit", "failed", &long), call("x", "execute", "completed", "")];
    let start = || Start { harness: Some(&Opencode), ..Start::default() };
    let Verdict::Failed(failure) = verdict(start(), &calls) else { panic!("it was refused") };
    assert!(failure.message.contains("edit was refused: The user has specified a rule"), "{failure:?}");
    assert!(failure.message.len() < 1000, "{failure:?}");
}

#[test]
fn what_the_person_did_not_permit_is_no_secret_to_them() {
    let options = json!([{"optionId": "no", "kind": "reject_once"}, {"optionId": "yes", "kind": "allow_once"}]);
    for (answer, expected) in [("no", true), ("yes", false)] {
        let mut agent = Agent::prompted(Start { permissions: Policy::Ask, ..Start::default() });
        agent.update(&call("a", "execute", "completed", ""));
        let asked = json!({"toolCall": {"toolCallId": "e", "title": "Write"}, "options": options});
        assert_eq!(agent.asks(&json!(1), "session/request_permission", &asked), None);
        agent.answer("p1", Some(answer));
        agent.update(&call("e", "edit", "failed", "not run"));
        agent.message("Done.");
        agent.stop("end_turn");
        let verdict = agent.exit(ExitRecord::Code(0)).1.verdict;
        assert_eq!(verdict == Verdict::Completed, expected, "{answer}: {verdict:?}");
    }
}

#[test]
fn measured_refusals_are_known_for_what_they_are() {
    let of = |agent: &str, harness: &'static dyn Harness, name: &str| {
        let start = Start { harness: Some(harness), ..Start::default() };
        match replay_from(agent, name, start).1.verdict {
            Verdict::Failed(failure) => failure.message,
            other => format!("{other:?}"),
        }
    };
    for (name, says) in [
        ("outside", "Write was refused: \"/scratch/"),
        ("plan", "Write was refused: Plan mode is active."),
        ("ro-tools", "Write was refused: Tool \"Write\" is disabled by the active tool policy"),
    ] {
        let told = of("kimi", &Kimi, name);
        assert!(told.contains(says), "{name}: {told}");
    }
    for name in ["autoallow", "plan-mode", "ro"] {
        let told = of("opencode", &Opencode, name);
        assert!(told.contains("was refused: "), "{name}: {told}");
    }
}
