//! Every recorded run of kimi 2.1 and opencode 1.18 over ACP, through the driver without a dialect: what was recorded,
//! and what the run came to.
//!
//! `tests/fixtures/acp/<agent>/<name>.jsonl` is what a client and the agent said to each other. The driver says its own
//! part: an answer of the agent is handed over when the driver asked for it, too.

#![expect(clippy::disallowed_methods, reason = "a recorded run is a file")]

use std::collections::BTreeMap;
use std::fmt::Write as _;

use pactify_core::FailureCode;
use pactify_core::harness::acp::Plain;
use pactify_core::harness::opencode::Opencode;
use pactify_core::harness::{Conclusion, Step};
use pactify_core::job::access::Access;
use pactify_core::job::event::ExitRecord;
use pactify_core::job::outcome::Verdict;
use pactify_core::redact::Redactor;
use serde_json::Value;

use crate::agent::{Agent, Start};

/// The runs whose turn was completed. Everything else failed in one of many ways, whatever it called that: among them
/// are all that kimi ended with `end_turn` after its provider had refused.
const COMPLETED: &[(&str, &[&str])] = &[
    (
        "kimi",
        &[
            "auth",
            "auto",
            "bash-allow",
            "bash-always",
            "bash-cancelled",
            "bash-reject",
            "bg",
            "deny-auto",
            "deny-default",
            "deny-yolo",
            "drop",
            "fs",
            "parallel",
            "plan",
            "projmcp",
            "projmcp-ro",
            "proto99",
            "resume1",
            "resume2-load",
            "resume3-resume",
            "subagent",
            "term",
            "todo-edit",
            "yolo",
        ],
    ),
    (
        "opencode",
        &[
            "ask-always",
            "ask-edit-bash",
            "autoallow",
            "edit-nofs",
            "final-recipe",
            "memdb",
            "nosnap",
            "plan-mode",
            "projcfg",
            "proto99",
            "reject-continue",
            "resume1",
            "resume2-load",
            "resume3-resume",
            "todo-parallel",
        ],
    ),
];

fn folder(agent: &str) -> String {
    format!("{}/tests/fixtures/acp/{agent}", env!("CARGO_MANIFEST_DIR"))
}

fn names(agent: &str) -> Vec<String> {
    let entries = std::fs::read_dir(folder(agent)).unwrap().map(|entry| entry.unwrap().file_name());
    let mut names: Vec<_> = entries
        .filter_map(|name| Some(name.to_str()?.strip_prefix("a-")?.strip_suffix(".jsonl")?.to_owned()))
        .collect();
    names.sort();
    names
}

/// A recorded run, with absolute paths.
pub(crate) fn recorded(agent: &str, name: &str) -> Vec<Value> {
    let text = std::fs::read_to_string(format!("{}/a-{name}.jsonl", folder(agent))).unwrap();
    text.replace("SCRATCH", "/scratch").lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn replay(agent: &str, name: &str) -> (Agent, Conclusion) {
    let dialect = Plain::named(agent);
    replay_from(agent, name, Start { dialect, ..Start::default() })
}

pub(crate) fn replay_from(agent: &str, name: &str, start: Start) -> (Agent, Conclusion) {
    let records = recorded(agent, name);
    let options = &records[0]["opts"];
    let text = |key: &str| options[key].as_str().map(str::to_owned);
    let mut driven = Agent::new(Start {
        tree: text("cwd").unwrap(),
        brief: options["prompt"][0].as_str().unwrap_or("hi").to_owned(),
        resume: text("load").or(text("resume")),
        ..start
    });
    let requests = records.iter().filter_map(|record| {
        let sent = record.get("c2a")?;
        Some((sent["id"].as_u64()?, sent["method"].as_str()?.to_owned()))
    });
    let asked: BTreeMap<u64, String> = requests.collect();
    let mut exit = ExitRecord::Code(0);
    for record in &records[1..] {
        if let Some(sent) = record.get("c2a") {
            if sent["method"] == "session/cancel" {
                driven.cancel();
            }
        } else if let Some(said) = record.get("a2c") {
            hear(&mut driven, said, &asked);
        } else if let Some(line) = record["stderr"].as_str() {
            driven.stderr(line);
        } else if let Some(line) = record["stdout_text"].as_str() {
            driven.line(line);
        } else if let Some(code) = record.pointer("/summary/rc").and_then(Value::as_i64) {
            let code = i32::try_from(code).unwrap();
            exit = if code < 0 { ExitRecord::Signal(-code) } else { ExitRecord::Code(code) };
        }
    }
    driven.exit(exit)
}

fn hear(driven: &mut Agent, said: &Value, asked: &BTreeMap<u64, String>) {
    let reply = said.get("method").is_none().then(|| said["id"].as_u64()).flatten();
    let Some(id) = reply else { return driven.says(said) };
    // `session/load` stands for `session/resume`: the driver prefers it where there are both.
    let method = asked[&id].replace("session/resume", "session/load");
    let ours = driven.sent.iter().find(|sent| sent["method"] == method).map(|sent| sent["id"].clone());
    if let Some(ours) = ours {
        let mut said = said.clone();
        said["id"] = ours;
        driven.says(&said);
    }
}

fn shown(agent: &str) -> String {
    let mut shown = String::new();
    for name in names(agent) {
        let (driven, end) = replay(agent, &name);
        writeln!(shown, "## {name}").unwrap();
        for step in &driven.steps {
            match step {
                Step::Record(known) => writeln!(shown, "{}", serde_json::to_string(known).unwrap()).unwrap(),
                Step::Send(line) => writeln!(shown, "> {line}").unwrap(),
                Step::CloseInput => writeln!(shown, "> (end)").unwrap(),
                Step::File(request) => writeln!(shown, "? {request:?}").unwrap(),
            }
        }
        writeln!(shown, "=> {:#?}\n=> {:?}\n", end.verdict, end.final_message).unwrap();
    }
    shown
}

#[test]
fn every_recorded_run_is_understood() {
    let mut settings = insta::Settings::clone_current();
    settings.set_prepend_module_to_snapshot(false);
    for (agent, expected) in COMPLETED {
        settings.bind(|| insta::assert_snapshot!(format!("replay_{agent}"), shown(agent)));
        let completed = |name: &String| replay(agent, name).1.verdict == Verdict::Completed;
        let completed: Vec<String> = names(agent).into_iter().filter(completed).collect();
        assert_eq!(completed, *expected, "{agent}");
    }
}

#[test]
fn a_read_only_opencode_that_did_more_than_read_did_not_succeed() {
    let verdict = |name: &str, access| {
        let start = Start { access, harness: Some(&Opencode), ..Start::default() };
        replay_from("opencode", name, start).1.verdict
    };
    // What it was offered here was read, glob and grep; its calls of anything else failed.
    assert_eq!(verdict("ro", Access::ReadOnly), Verdict::Completed);
    for (name, tool) in [("autoallow", "write"), ("edit-nofs", "edit"), ("todo-parallel", "todowrite")] {
        match verdict(name, Access::ReadOnly) {
            Verdict::Failed(failure) => {
                assert_eq!(failure.code, FailureCode::HarnessIncompatible, "{name}: {failure:?}");
                assert!(failure.message.contains(tool), "{name}: {failure:?}");
            }
            other => panic!("{name}: {other:?}"),
        }
        // One of these ends with a write that its own rule refused.
        assert_eq!(verdict(name, Access::Write) == Verdict::Completed, name != "autoallow", "{name}");
    }
}

#[test]
fn taking_secrets_out_leaves_the_protocol_alone() {
    let redactor = Redactor::default();
    for (agent, _) in COMPLETED {
        for name in names(agent) {
            for record in recorded(agent, &name) {
                let Some(said) = record.get("a2c") else { continue };
                let line = said.to_string();
                let redacted: Value = serde_json::from_str(&redactor.redact(&line)).unwrap();
                for at in ["/id", "/method", "/result/sessionId", "/params/sessionId", "/params/update/toolCallId"] {
                    assert_eq!(redacted.pointer(at), said.pointer(at), "{agent} {name}: {line}");
                }
                assert_eq!(redacted.pointer("/params/options"), said.pointer("/params/options"), "{line}");
            }
        }
    }
}
