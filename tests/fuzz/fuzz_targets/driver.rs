//! Whatever a harness prints and however it ends: its driver records nothing but what a harness may say, bounded and
//! fit to be shown, and calls a turn complete only if the program said so and ended well.
//!
//! The input's lines are standard output; those that begin with `!` are standard error. A last line `?` with one more
//! byte says how the program ended, with a second one that a session was resumed. So a recorded stream is an input.

#![no_main]

use std::sync::{Arc, LazyLock};

use libfuzzer_sys::fuzz_target;
use pactify_core::brief::Brief;
use pactify_core::config::Settings;
use pactify_core::harness::{FileAnswer, Harness, HarnessSettings, Places, Request, Resume, Step};
use pactify_core::job::access::Access;
use pactify_core::job::event::{ExitRecord, Known, Usage};
use pactify_core::job::outcome::Verdict;
use pactify_core::permission::Policy;
use pactify_core::{AbsPath, Failure, JobId};
use serde_json::Value;

/// More than any record of a driver needs, in bytes of JSON (which may take six for one of text).
const RECORD_MAX: usize = 1 << 20;
const NOTICES_MAX: usize = 40;

static JOB: LazyLock<JobId> = LazyLock::new(|| "20261129-154512-abcdef".parse().unwrap());
static BRIEF: LazyLock<Brief> = LazyLock::new(|| Brief::new("Fix it.").unwrap());
/// Those of this build, and an agent of the person's own.
static HARNESSES: LazyLock<Vec<(Arc<dyn Harness>, HarnessSettings)>> = LazyLock::new(|| {
    let own = "[harnesses.agent]\ncommand = \"/opt/agent\"\nprotocol = \"acp\"";
    Settings::parse(own).unwrap().known_harnesses()
});
static PROGRAM: LazyLock<AbsPath> = LazyLock::new(|| path("/opt/codex"));
static PLACES: LazyLock<Places> = LazyLock::new(|| Places {
    tree: path("/j/tree"),
    home: path("/j/home"),
    tmp: path("/j/tmp"),
    user_home: None,
    person_state: None,
    kept: path("/kept"),
});

fuzz_target!(|input: &[u8]| {
    let text = String::from_utf8_lossy(input);
    let (text, ending) = text.rsplit_once("\n?").unwrap_or((&text, ""));
    let resumed = ending.len() > 1;
    let exit = match ending.bytes().next() {
        None => ExitRecord::Code(0),
        Some(signal @ 128..) => ExitRecord::Signal(i32::from(signal) - 127),
        Some(code) => ExitRecord::Code(i32::from(code)),
    };
    let both = |entry| [(entry, Access::Write), (entry, Access::ReadOnly)];
    for ((harness, settings), access) in HARNESSES.iter().flat_map(both) {
        let used = Usage { input_tokens: 7, ..Usage::default() };
        let request = Request {
            job: &JOB,
            brief: &BRIEF,
            executable: &PROGRAM,
            interpreter: None,
            with_user_config: false,
            person_files: &[],
            nonce: "5eed",
            settings,
            model: None,
            permissions: Policy::Allow,
            places: &PLACES,
            resume: resumed.then_some(Resume { session: "s", used }),
            version: Some("0.171.0"),
        };
        let mut driver = harness.driver(&request, access);
        let mut steps = driver.on_start();
        let mut completed = false;
        for line in text.split('\n') {
            match line.strip_prefix('!') {
                Some(line) => steps.extend(driver.on_stderr(line)),
                None => {
                    completed |= says_completed(line);
                    steps.extend(driver.on_raw(line).unwrap_or_else(|| driver.on_line(line)));
                }
            }
        }
        let files: Vec<u64> = steps
            .iter()
            .filter_map(|step| match step {
                Step::File(request) => Some(request.id),
                _ => None,
            })
            .collect();
        for id in files {
            steps.extend(driver.on_file(id, FileAnswer::Contents("a\nb".to_owned())));
        }
        steps.extend(driver.on_cancel());
        let conclusion = driver.on_exit(exit);

        let notices = steps.iter().filter(|step| matches!(step, Step::Record(Known::Notice { .. }))).count();
        assert!(notices <= NOTICES_MAX, "{notices} notices");
        for step in &steps {
            if let Step::Record(known) = step {
                check(known);
            }
        }
        match conclusion.verdict {
            // An agent is ended by us where it doesn't end with its input.
            Verdict::Completed if ["codex", "agy"].contains(&harness.name().as_str()) => {
                assert!(completed && exit == ExitRecord::Code(0));
            }
            Verdict::Completed => assert!(completed),
            Verdict::Failed(failure) => showable(&failure),
            Verdict::Silent => assert_eq!(exit, ExitRecord::Code(0)),
        }
    }
});

fn says_completed(line: &str) -> bool {
    // codex's word for it, agy's, and that of the agents that speak ACP.
    let is_last = |event: Value| {
        event["type"] == "turn.completed" || event["event"] == "result" || event["result"]["stopReason"] == "end_turn"
    };
    serde_json::from_str::<Value>(line).is_ok_and(is_last)
}

fn check(known: &Known) {
    // Everything else is the host's to say: a harness must not be able to end, capture or apply by printing.
    assert!(
        matches!(
            known,
            Known::SessionStarted { .. }
                | Known::Message { .. }
                | Known::Reasoning { .. }
                | Known::CommandStarted { .. }
                | Known::CommandEnded { .. }
                | Known::FilesTouched { .. }
                | Known::ToolUsed { .. }
                | Known::Plan { .. }
                | Known::PermissionRequested { .. }
                | Known::PermissionAnswered { .. }
                | Known::PermissionDecided { .. }
                | Known::Notice { .. }
                | Known::Usage { .. }
        ),
        "{known:?}"
    );
    assert!(serde_json::to_string(known).unwrap().len() <= RECORD_MAX);
    if let Known::Notice { text, .. } = known {
        assert!(!text.chars().any(char::is_control), "{text:?}");
    }
}

fn showable(failure: &Failure) {
    assert!(!failure.message.is_empty() && !failure.next.is_empty(), "{failure:?}");
    assert!(failure.message.len() <= 8 * 1024 && !failure.message.chars().any(char::is_control), "{failure:?}");
}

fn path(text: &str) -> AbsPath {
    AbsPath::new(text).unwrap()
}
