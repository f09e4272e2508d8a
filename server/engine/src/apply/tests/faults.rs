//! The process ends at every call that changes the disk, before and after it; the next writer finds all or nothing.
//!
//! The apply runs in a child process (this test binary again, told by variables what to do) that kills itself at the
//! chosen call. What it left is repaired here and compared byte for byte.

use std::os::unix::process::ExitStatusExt as _;
use std::process::{Child, Stdio};

use pactify_core::change::plan::Selection;
use pactify_core::{AbsPath, Failure};
use rustix::io::Errno;

use super::super::ApplyError;
use super::super::disk::Disk;
use super::super::disk::fault::{self, Moment};
use super::super::recover::recover_with;
use super::super::undo::undo_with;
use super::super::{forget, undone};
use super::fixture::*;
use super::ordinary::{every_kind, expected, many_files};
use crate::env::Env;

const ROOT: &str = "PACTIFY_TEST_VICTIM_ROOT";
const WORK: &str = "PACTIFY_TEST_VICTIM_WORK";
const KILL: &str = "PACTIFY_TEST_VICTIM_KILL";
const UMASK: &str = "PACTIFY_TEST_VICTIM_UMASK";
const SCENARIO: &str = "PACTIFY_TEST_VICTIM_SCENARIO";
/// An apply of every kind of change makes more calls than this; fewer would mean that the layer is bypassed.
const LEAST_CALLS: u64 = 80;

/// What the child does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Work {
    Apply,
    ApplyWithoutRenameFlags,
    Recover,
    RecoverWithoutRenameFlags,
    Undo,
    UndoWithoutRenameFlags,
}

impl Work {
    fn is_undo(self) -> bool {
        matches!(self, Self::Undo | Self::UndoWithoutRenameFlags)
    }
}

/// What there is to apply, and where.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Scenario {
    /// The files of [`every_kind`] among things of the person's that nobody touches.
    Kinds,
    /// So many that the file system is synchronised as a whole.
    Many,
    /// Kinds, in a checkout whose git directory is on another file system: the stage is in the checkout.
    Apart,
}

impl Scenario {
    fn named(name: &str) -> Self {
        [Self::Kinds, Self::Many, Self::Apart].into_iter().find(|known| format!("{known:?}") == name).unwrap()
    }

    /// Base and result.
    fn files(self) -> (Files, Files) {
        let (mut base, mut result) = if self == Self::Many { many_files() } else { every_kind() };
        for files in [&mut base, &mut result] {
            files.insert(b"dir/untracked".into(), file("the person's"));
        }
        (base, result)
    }

    fn sandbox(self) -> Sandbox {
        let (base, _) = self.files();
        match self {
            Self::Kinds | Self::Many => Sandbox::in_memory(&base),
            Self::Apart => Sandbox::in_memory_with_git_on_disk(&base).expect("asked for only where it can be"),
        }
    }

    /// Whether it can be had here.
    fn is_there(self) -> bool {
        let is_there = self != Self::Apart || Sandbox::in_memory_with_git_on_disk(&Files::new()).is_some();
        if !is_there {
            println!(
                "skipped: {self:?} needs two file systems, and /dev/shm is no other one than the temporary directory"
            );
        }
        is_there
    }
}

/// Not a test of its own: the child's side. Without variables it does nothing.
#[test]
fn victim() {
    let env = Env::from_process().unwrap();
    let Some(root) = env.variable(ROOT) else { return };
    let sandbox = Sandbox::existing(AbsPath::new(root).unwrap());
    let work = env.variable(WORK).unwrap();
    if let Some(umask) = env.variable(UMASK) {
        rustix::process::umask(rustix::fs::Mode::from_raw_mode(umask.to_str().unwrap().parse().unwrap()));
    }
    let armed = || {
        let Some(kill) = env.variable(KILL) else { return };
        let (moment, call) = kill.to_str().unwrap().split_at(1);
        let call = call.parse().unwrap();
        fault::kill_at(if moment == "b" { Moment::Before(call) } else { Moment::After(call) });
    };
    let (base, result) = Scenario::named(env.variable(SCENARIO).unwrap().to_str().unwrap()).files();
    let captured = CapturedResult::between(&base, &result);
    let disk =
        if work.to_str().unwrap().ends_with("WithoutRenameFlags") { Disk::without_rename_flags() } else { Disk::new() };
    if work.to_str().unwrap().starts_with("Apply") {
        sandbox.apply_on(&captured, &Selection::Paths(captured.paths()), disk, armed).unwrap();
    } else if work.to_str().unwrap().starts_with("Undo") {
        let lock = sandbox.lock();
        armed();
        undo_with(&apply_id(1), &[], &lock, disk).unwrap();
    } else {
        let lock = sandbox.lock();
        armed();
        recover_with(&lock, disk).unwrap();
    }
}

/// Starts the child.
fn start(sandbox: &Sandbox, scenario: Scenario, work: Work, kill: Option<Moment>) -> Child {
    start_with(sandbox, scenario, work, kill, None)
}

#[expect(clippy::disallowed_methods, reason = "a test that starts itself; nothing of the product runs it")]
fn start_with(sandbox: &Sandbox, scenario: Scenario, work: Work, kill: Option<Moment>, umask: Option<u32>) -> Child {
    let kill = kill.map(|kill| match kill {
        Moment::Before(call) => format!("b{call}"),
        Moment::After(call) => format!("a{call}"),
    });
    std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "apply::tests::faults::victim"])
        .env(ROOT, sandbox.root().as_path())
        .env(WORK, format!("{work:?}"))
        .env(SCENARIO, format!("{scenario:?}"))
        .envs(kill.map(|kill| (KILL, kill)))
        .envs(umask.map(|umask| (UMASK, umask.to_string())))
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

/// Runs the child; true when it was killed, false when it came to its end first.
fn killed(sandbox: &Sandbox, scenario: Scenario, work: Work, kill: Moment) -> bool {
    let output = start(sandbox, scenario, work, Some(kill)).wait_with_output().unwrap();
    let ended = output.status.success();
    assert!(ended || output.status.signal() == Some(9), "{}", String::from_utf8_lossy(&output.stdout));
    !ended
}

/// Repairs, and demands all or nothing without leftovers. True for all.
#[track_caller]
fn all_or_nothing(sandbox: &Sandbox, scenario: Scenario, what: &str) -> bool {
    sandbox.recover();
    let picture = sandbox.picture();
    let repeated = sandbox.recover();
    assert!(repeated.is_empty() && sandbox.picture() == picture, "{what}: a second repair found something");
    let (base, result) = scenario.files();
    let all = picture == expected(&result);
    assert!(all || picture == expected(&base), "{what}: neither all nor nothing: {picture:#?}");
    let git = sandbox.git_picture();
    assert_eq!(git[&b"index"[..]], file("an index that nobody opens"), "{what}");
    assert!(all || git.len() == 1, "{what}: left in the git directory: {git:#?}");
    let is_apart = sandbox.at(".pactify-stage").exists();
    assert!(is_apart == (all && scenario == Scenario::Apart), "{what}: a stage in the checkout: {is_apart}");
    let hides = std::fs::read_to_string(sandbox.at(".pactify-stage/.gitignore"));
    assert!(!is_apart || hides.is_ok_and(|rule| rule == "*\n"), "{what}: git sees the stage");
    let records = sandbox.store_picture().into_keys().filter(|path| path.starts_with(b"applies/"));
    let records: Vec<String> = records.map(|path| String::from_utf8(path).unwrap()).collect();
    let expected = if all { vec![format!("applies/{}.done", apply_id(1))] } else { vec![] };
    assert_eq!(records, expected, "{what}");
    assert!(!sandbox.store_picture().into_keys().any(|path| path.ends_with(b".new")), "{what}: a torn record is left");
    all
}

/// Kills the apply at every call; returns how many points there were.
fn kill_everywhere(scenario: Scenario, work: Work) -> u64 {
    let (base, result) = scenario.files();
    let captured = CapturedResult::between(&base, &result);
    let mut all = 0;
    for call in 1.. {
        for kill in [Moment::Before(call), Moment::After(call)] {
            let sandbox = scenario.sandbox();
            if !killed(&sandbox, scenario, work, kill) {
                println!("{scenario:?}, {work:?}: killed at {} points, {all} of them ended in all", 2 * (call - 1));
                return call - 1;
            }
            if all_or_nothing(&sandbox, scenario, &format!("{kill:?}")) {
                all += 1;
            } else if call % 16 == 0 {
                sandbox.apply(&captured, &Selection::Paths(captured.paths())).unwrap();
                assert_eq!(sandbox.picture(), expected(&result), "{kill:?}: applied after the repair");
            }
        }
    }
    unreachable!("an apply ends");
}

#[test]
fn a_kill_at_any_call_ends_in_all_or_nothing() {
    let calls = kill_everywhere(Scenario::Kinds, Work::Apply);
    assert!(calls > LEAST_CALLS, "only {calls} calls");
}

#[test]
fn a_kill_at_any_call_of_a_large_apply_ends_in_all_or_nothing() {
    let calls = kill_everywhere(Scenario::Many, Work::Apply);
    assert!(calls > LEAST_CALLS, "only {calls} calls");
}

#[test]
fn a_kill_at_any_call_ends_in_all_or_nothing_where_the_stage_is_in_the_checkout() {
    if Scenario::Apart.is_there() {
        let calls = kill_everywhere(Scenario::Apart, Work::Apply);
        assert!(calls > LEAST_CALLS, "only {calls} calls");
    }
}

#[test]
fn a_kill_at_any_call_ends_in_all_or_nothing_without_rename_flags() {
    let calls = kill_everywhere(Scenario::Kinds, Work::ApplyWithoutRenameFlags);
    assert!(calls > LEAST_CALLS, "only {calls} calls");
}

/// Repairs, and demands that the apply is taken back or stands, as its record says. True for taken back.
#[track_caller]
fn undone_or_not(sandbox: &Sandbox, scenario: Scenario, what: &str) -> bool {
    sandbox.recover();
    let picture = sandbox.picture();
    assert!(sandbox.recover().is_empty() && sandbox.picture() == picture, "{what}: a second repair found something");
    let (base, result) = scenario.files();
    let recorded = !undone(&sandbox.lock(), &apply_id(1).job).unwrap().is_empty();
    assert!(picture == expected(if recorded { &base } else { &result }), "{what}: {recorded}, but {picture:#?}");
    assert!(!sandbox.store_picture().into_keys().any(|path| path.ends_with(b".new")), "{what}: a torn record is left");
    if recorded {
        forget(&sandbox.lock(), &apply_id(1)).unwrap();
        assert_eq!(sandbox.git_picture().len(), 1, "{what}: left in the git directory");
        assert!(!sandbox.at(".pactify-stage").exists(), "{what}: left in the checkout");
        assert!(!sandbox.store_picture().into_keys().any(|path| path.starts_with(b"applies/")), "{what}");
    }
    recorded
}

#[test]
fn a_kill_at_any_call_of_an_undo_ends_in_undone_or_not_undone() {
    for (scenario, work, disk) in [
        (Scenario::Kinds, Work::Undo, Disk::new as fn() -> Disk),
        (Scenario::Kinds, Work::UndoWithoutRenameFlags, Disk::without_rename_flags),
        (Scenario::Many, Work::Undo, Disk::new),
        (Scenario::Apart, Work::Undo, Disk::new),
    ] {
        assert!(work.is_undo());
        if !scenario.is_there() {
            continue;
        }
        let (base, result) = scenario.files();
        let captured = CapturedResult::between(&base, &result);
        let (mut undone, mut points) = (0, 0);
        'calls: for call in 1.. {
            for kill in [Moment::Before(call), Moment::After(call)] {
                let sandbox = scenario.sandbox();
                sandbox.apply_on(&captured, &Selection::Paths(captured.paths()), disk(), || {}).unwrap();
                if !killed(&sandbox, scenario, work, kill) {
                    break 'calls;
                }
                points += 1;
                if undone_or_not(&sandbox, scenario, &format!("{scenario:?} {work:?} {kill:?}")) {
                    undone += 1;
                } else if call % 16 == 0 {
                    sandbox.undo_on(1, disk()).unwrap();
                    assert!(undone_or_not(&sandbox, scenario, "undone after the repair"));
                }
            }
        }
        println!("{scenario:?}, {work:?}: killed at {points} points, {undone} of them ended in undone");
        assert!(points > 120 && undone > 0, "only {points} points");
    }
}

#[test]
fn a_call_of_an_undo_that_fails_is_reported_and_taken_back() {
    let (base, result) = Scenario::Kinds.files();
    let captured = CapturedResult::between(&base, &result);
    let only_files = |files: Files| files.into_iter().filter(|(_, node)| *node != Node::Directory).collect::<Files>();
    let (mut refused, mut copied) = (0, 0);
    for error in [Errno::NOSPC, Errno::ACCESS, Errno::PERM] {
        for call in 1.. {
            let sandbox = Sandbox::in_memory(&base);
            sandbox.apply(&captured, &Selection::Paths(captured.paths())).unwrap();
            let lock = sandbox.lock();
            fault::fail_at(call, error);
            let outcome = undo_with(&apply_id(1), &[], &lock, Disk::new());
            drop(lock);
            if fault::is_due() {
                break;
            }
            let case = format!("call {call} fails with {error:?}: {outcome:?}");
            match outcome {
                Ok(_) => {
                    copied += usize::from(error == Errno::PERM);
                    assert_eq!(only_files(sandbox.picture()), base, "{case}");
                }
                Err(ApplyError::NotRolledBack { .. }) => panic!("{case}"),
                Err(failure) => {
                    refused += 1;
                    assert_eq!(sandbox.picture(), expected(&result), "{case}");
                    assert!(!Failure::from(failure).next.is_empty());
                    assert!(!undone_or_not(&sandbox, Scenario::Kinds, &case));
                }
            }
        }
    }
    // A second name that is refused is made up for by a copy.
    assert!(refused > 100 && copied > 5, "{refused} refused, {copied} copied");
}

#[test]
fn a_repair_that_is_killed_itself_is_finished_by_the_next_one() {
    for (scenario, apply, repair) in [
        (Scenario::Kinds, Work::Apply, Work::Recover),
        (Scenario::Kinds, Work::ApplyWithoutRenameFlags, Work::RecoverWithoutRenameFlags),
        (Scenario::Many, Work::Apply, Work::Recover),
    ] {
        let (base, _) = scenario.files();
        let last = last_call_before_all(scenario, apply);
        let mut points = 0;
        'calls: for call in 1.. {
            for kill in [Moment::Before(call), Moment::After(call)] {
                let sandbox = scenario.sandbox();
                assert!(killed(&sandbox, scenario, apply, Moment::Before(last)));
                assert!(sandbox.picture() != expected(&base), "the apply was killed in the middle");
                if !killed(&sandbox, scenario, repair, kill) {
                    break 'calls;
                }
                points += 1;
                let case = format!("{scenario:?} {repair:?} {kill:?}");
                assert!(!all_or_nothing(&sandbox, scenario, &case), "nothing had to be the outcome");
            }
        }
        println!("{scenario:?}, {repair:?}: killed at {points} points");
        assert!(points > 40, "only {points} points");
    }
}

#[test]
fn a_call_that_fails_is_reported_and_taken_back() {
    // An empty directory that could not be removed is no reason to take everything back.
    let only_files = |files: Files| files.into_iter().filter(|(_, node)| *node != Node::Directory).collect::<Files>();
    for (scenario, error) in [
        (Scenario::Kinds, Errno::NOSPC),
        (Scenario::Kinds, Errno::ACCESS),
        (Scenario::Kinds, Errno::IO),
        (Scenario::Many, Errno::NOSPC),
        (Scenario::Apart, Errno::NOSPC),
    ] {
        if !scenario.is_there() {
            continue;
        }
        let (base, result) = scenario.files();
        let captured = CapturedResult::between(&base, &result);
        let mut refused = 0;
        for call in 1.. {
            let sandbox = scenario.sandbox();
            let armed = || fault::fail_at(call, error);
            let outcome = sandbox.apply_on(&captured, &Selection::Paths(captured.paths()), Disk::new(), armed);
            if fault::is_due() {
                break;
            }
            let case = format!("{scenario:?}: call {call} fails with {error:?}: {outcome:?}");
            match outcome {
                Ok(_) => assert_eq!(only_files(sandbox.picture()), result, "{case}"),
                Err(ApplyError::NotRolledBack { .. }) => panic!("{case}"),
                Err(failure) => {
                    refused += 1;
                    assert_eq!(sandbox.picture(), expected(&base), "{case}");
                    let full = matches!(failure, ApplyError::NoSpace(_));
                    assert!(error == Errno::NOSPC || !full, "{case}");
                    assert!(!Failure::from(failure).next.is_empty());
                    assert!(!all_or_nothing(&sandbox, scenario, &case));
                }
            }
        }
        assert!(refused > 50, "{scenario:?}, {error:?}: only {refused} refusals");
    }
}

#[test]
fn modes_of_files_do_not_depend_on_the_umask() {
    for umask in [0, 0o002, 0o022, 0o077, 0o777] {
        let sandbox = Scenario::Kinds.sandbox();
        set_bits(&sandbox.at("changed.txt"), 0o664);
        let child = start_with(&sandbox, Scenario::Kinds, Work::Apply, None, Some(umask));
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success(), "{umask:o}: {}", String::from_utf8_lossy(&output.stdout));
        for (path, expected) in
            [("added", 0o644), ("changed.txt", 0o664), ("tool", 0o755), ("new/nested/directories/file", 0o755)]
        {
            let found = bits(&sandbox.at(path));
            assert_eq!(found, expected, "{path} is {found:o} with umask {umask:o}");
        }
    }
}

#[test]
fn two_processes_that_apply_at_once_take_turns() {
    let (_, result) = Scenario::Kinds.files();
    for _ in 0..8 {
        let sandbox = Scenario::Kinds.sandbox();
        let children: Vec<Child> = (0..3).map(|_| start(&sandbox, Scenario::Kinds, Work::Apply, None)).collect();
        for child in children {
            let output = child.wait_with_output().unwrap();
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
        }
        assert_eq!(sandbox.picture(), expected(&result));
    }
}

/// The number of the call that marks the apply as done.
fn last_call_before_all(scenario: Scenario, work: Work) -> u64 {
    let ends_in_all = |call| {
        let sandbox = scenario.sandbox();
        !killed(&sandbox, scenario, work, Moment::After(call)) || all_or_nothing(&sandbox, scenario, "searching")
    };
    let (mut nothing, mut all) = (0, 1 << 10);
    while all - nothing > 1 {
        let middle = (nothing + all) / 2;
        if ends_in_all(middle) { all = middle } else { nothing = middle }
    }
    all
}
