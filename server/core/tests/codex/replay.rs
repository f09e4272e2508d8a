//! Every recorded run of codex 0.171, through the driver: what was recorded, and what the run came to.
//!
//! `tests/fixtures/codex/<name>.jsonl` is a run's standard output, `<name>.stderr` its standard error (left out when
//! there was nothing but the line about standard input).

#![expect(clippy::disallowed_methods, reason = "a recorded run is a file")]

use std::fmt::Write as _;

use pactify_core::harness::codex::Codex;
use pactify_core::harness::{Conclusion, Driver, Harness, Step};
use pactify_core::job::access::Access;
use pactify_core::job::event::ExitRecord;

use crate::asked::Asked;
use crate::codex;

/// Runs that the recorder had to end, or that were cut off on purpose; all others ended with 0 after
/// `turn.completed`, with 1 otherwise.
const ENDS: &[(&str, ExitRecord)] = &[
    ("cancel_grpkill_danger-full-access", ExitRecord::Signal(9)),
    ("cancel_grpkill_workspace-write", ExitRecord::Signal(9)),
    ("cancel_grpterm_danger-full-access", ExitRecord::Signal(15)),
    ("cancel_grpterm_workspace-write", ExitRecord::Signal(15)),
    ("cancel_npmwrap_sigkill", ExitRecord::Signal(9)),
    ("cancel_npmwrap_sigterm", ExitRecord::Signal(15)),
    ("cancel_sigkill_danger-full-access", ExitRecord::Signal(9)),
    ("cancel_sigkill_workspace-write", ExitRecord::Signal(9)),
    ("cancel_sigterm_danger-full-access", ExitRecord::Signal(15)),
    ("cancel_sigterm_while_model_hangs", ExitRecord::Signal(15)),
    ("cancel_sigterm_workspace-write", ExitRecord::Signal(15)),
    ("cfg_bad_flag", ExitRecord::Code(2)),
    ("cfg_bad_sandbox", ExitRecord::Code(2)),
    ("cfg_no_login_default_provider", ExitRecord::Signal(15)),
    ("fail_dns_noretry", ExitRecord::Signal(15)),
    ("fail_hang_idle5s", ExitRecord::Signal(15)),
    ("fail_unreachable_defaultretry", ExitRecord::Signal(15)),
    ("fail_unreachable_noretry", ExitRecord::Signal(15)),
];

/// The settings that a run failed for, where the failure depends on whose they are.
const SETTINGS: &[(&str, &str)] = &[
    ("cfg_bad_type", "model = 5"),
    ("cfg_unknown_key_strict", "not_a_section = {}"),
    ("cfg_wire_chat", "model_providers.mock.wire_api = \"chat\""),
    ("cfg_unknown_provider", "model_provider = \"nope\""),
    ("fail_e401_noretry", "model_provider = \"mock\"\nmodel_providers.mock.env_key = \"MOCK_KEY\""),
];

fn fixture(name: &str) -> Option<String> {
    std::fs::read_to_string(format!("{}/tests/fixtures/codex/{name}", env!("CARGO_MANIFEST_DIR"))).ok()
}

fn names(group: &str) -> Vec<String> {
    let folder = format!("{}/tests/fixtures/codex", env!("CARGO_MANIFEST_DIR"));
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<_> = entries
        .filter_map(|name| name.strip_suffix(".jsonl").map(str::to_owned))
        .filter(|name| name.split('_').next() == Some(group))
        .collect();
    names.sort();
    names
}

fn asked(name: &str) -> Asked {
    match SETTINGS.iter().find(|(of, _)| *of == name) {
        Some((_, settings)) => codex(&format!("[harnesses.codex.config]\n{settings}")),
        None => codex(""),
    }
}

fn exit_of(name: &str, stdout: &str) -> ExitRecord {
    match ENDS.iter().find(|(of, _)| *of == name) {
        Some((_, exit)) => *exit,
        None => ExitRecord::Code(i32::from(!stdout.contains("\"type\":\"turn.completed\""))),
    }
}

/// Feeds a run to `driver`: standard error first, as it is mostly written before the last word.
pub(crate) fn run(driver: &mut dyn Driver, stdout: &str, stderr: &str, exit: ExitRecord) -> (Vec<Step>, Conclusion) {
    let mut steps = driver.on_start();
    stderr.lines().for_each(|line| steps.extend(driver.on_stderr(line)));
    stdout.lines().for_each(|line| steps.extend(driver.on_line(line)));
    (steps, driver.on_exit(exit))
}

fn replayed(group: &str) -> String {
    let mut shown = String::new();
    for name in names(group) {
        let stdout = fixture(&format!("{name}.jsonl")).unwrap();
        let stderr = fixture(&format!("{name}.stderr")).unwrap_or_default();
        let exit = exit_of(&name, &stdout);
        let asked = asked(&name);
        let access = if name.contains("readonly") { Access::ReadOnly } else { Access::Write };
        let (steps, end) = run(&mut *Codex.driver(&asked.request(), access), &stdout, &stderr, exit);
        writeln!(shown, "## {name}: {exit:?}").unwrap();
        for step in steps {
            match step {
                Step::Record(known) => writeln!(shown, "{}", serde_json::to_string(&known).unwrap()).unwrap(),
                Step::Send(line) => writeln!(shown, "> {line}").unwrap(),
                Step::CloseInput => writeln!(shown, "> (end)").unwrap(),
                Step::File(request) => panic!("codex asks for no files: {request:?}"),
            }
        }
        writeln!(shown, "=> {:#?}\n=> {:?}\n", end.verdict, end.final_message).unwrap();
    }
    shown
}

#[test]
fn every_recorded_run_is_understood() {
    let groups = [
        "ok",
        "sandbox",
        "nosandbox",
        "fail",
        "cfg",
        "auth",
        "ev",
        "cancel",
        "resume",
        "model",
        "multi",
        "long",
        "bg",
        "commit",
        "adddir",
        "subdir",
    ];
    let mut settings = insta::Settings::clone_current();
    settings.set_prepend_module_to_snapshot(false);
    for group in groups {
        let shown = replayed(group);
        assert!(shown.contains("## "), "no run is recorded for {group}");
        settings.bind(|| insta::assert_snapshot!(format!("replay_{group}"), shown));
    }
    let covered: usize = groups.iter().map(|group| names(group).len()).sum();
    let all = std::fs::read_dir(format!("{}/tests/fixtures/codex", env!("CARGO_MANIFEST_DIR"))).unwrap();
    let runs = all.filter(|entry| entry.as_ref().unwrap().path().extension().is_some_and(|kind| kind == "jsonl"));
    assert_eq!(covered, runs.count(), "a group of runs is missing above");
}
