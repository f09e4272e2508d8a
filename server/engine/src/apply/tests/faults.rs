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
use super::ordinary::{every_kind, expected};
use crate::env::Env;

const ROOT: &str = "PACTIFY_TEST_VICTIM_ROOT";
const WORK: &str = "PACTIFY_TEST_VICTIM_WORK";
const KILL: &str = "PACTIFY_TEST_VICTIM_KILL";
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

/// The files of [`every_kind`] among things of the person's that nobody touches.
fn scenario() -> (Files, Files) {
    let (mut base, mut result) = every_kind();
    for files in [&mut base, &mut result] {
        files.insert(b"dir/untracked".into(), file("the person's"));
    }
    (base, result)
}

/// Not a test of its own: the child's side. Without variables it does nothing.
#[test]
fn victim() {
    let env = Env::from_process().unwrap();
    let Some(root) = env.variable(ROOT) else { return };
    let sandbox = Sandbox::existing(AbsPath::new(root).unwrap());
    let work = env.variable(WORK).unwrap();
    let armed = || {
        let Some(kill) = env.variable(KILL) else { return };
        let (moment, call) = kill.to_str().unwrap().split_at(1);
        let call = call.parse().unwrap();
        fault::kill_at(if moment == "b" { Moment::Before(call) } else { Moment::After(call) });
    };
    let (base, result) = scenario();
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
#[expect(clippy::disallowed_methods, reason = "a test that starts itself; nothing of the product runs it")]
fn start(sandbox: &Sandbox, work: Work, kill: Option<Moment>) -> Child {
    let kill = kill.map(|kill| match kill {
        Moment::Before(call) => format!("b{call}"),
        Moment::After(call) => format!("a{call}"),
    });
    std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "apply::tests::faults::victim"])
        .env(ROOT, sandbox.root().as_path())
        .env(WORK, format!("{work:?}"))
        .envs(kill.map(|kill| (KILL, kill)))
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

/// Runs the child; true when it was killed, false when it came to its end first.
fn killed(sandbox: &Sandbox, work: Work, kill: Moment) -> bool {
    let output = start(sandbox, work, Some(kill)).wait_with_output().unwrap();
    let ended = output.status.success();
    assert!(ended || output.status.signal() == Some(9), "{}", String::from_utf8_lossy(&output.stdout));
    !ended
}

/// Repairs, and demands all or nothing without leftovers. True for all.
#[track_caller]
fn all_or_nothing(sandbox: &Sandbox, what: &str) -> bool {
    sandbox.recover();
    let picture = sandbox.picture();
    let repeated = sandbox.recover();
    assert!(repeated.is_empty() && sandbox.picture() == picture, "{what}: a second repair found something");
    let (base, result) = scenario();
    let all = picture == expected(&result);
    assert!(all || picture == expected(&base), "{what}: neither all nor nothing: {picture:#?}");
    let git = sandbox.git_picture();
    assert_eq!(git[&b"index"[..]], file("an index that nobody opens"), "{what}");
    assert!(all || git.len() == 1, "{what}: left in the git directory: {git:#?}");
    let records = sandbox.store_picture().into_keys().filter(|path| path.starts_with(b"applies/"));
    let records: Vec<String> = records.map(|path| String::from_utf8(path).unwrap()).collect();
    let expected = if all { vec![format!("applies/{}.done", apply_id(1))] } else { vec![] };
    assert_eq!(records, expected, "{what}");
    assert!(!sandbox.store_picture().into_keys().any(|path| path.ends_with(b".new")), "{what}: a torn record is left");
    all
}

/// Kills the apply at every call; returns how many points there were.
fn kill_everywhere(work: Work) -> u64 {
    let (base, result) = scenario();
    let captured = CapturedResult::between(&base, &result);
    let mut all = 0;
    for call in 1.. {
        for kill in [Moment::Before(call), Moment::After(call)] {
            let sandbox = Sandbox::in_memory(&base);
            if !killed(&sandbox, work, kill) {
                println!("{work:?}: killed at {} points, {all} of them ended in all", 2 * (call - 1));
                return call - 1;
            }
            if all_or_nothing(&sandbox, &format!("{kill:?}")) {
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
    let calls = kill_everywhere(Work::Apply);
    assert!(calls > LEAST_CALLS, "only {calls} calls");
}

#[test]
fn a_kill_at_any_call_ends_in_all_or_nothing_without_rename_flags() {
    let calls = kill_everywhere(Work::ApplyWithoutRenameFlags);
    assert!(calls > LEAST_CALLS, "only {calls} calls");
}

/// Repairs, and demands that the apply is taken back or stands, as its record says. True for taken back.
#[track_caller]
fn undone_or_not(sandbox: &Sandbox, what: &str) -> bool {
    sandbox.recover();
    let picture = sandbox.picture();
    assert!(sandbox.recover().is_empty() && sandbox.picture() == picture, "{what}: a second repair found something");
    let (base, result) = scenario();
    let recorded = !undone(&sandbox.lock(), &apply_id(1).job).unwrap().is_empty();
    assert!(picture == expected(if recorded { &base } else { &result }), "{what}: {recorded}, but {picture:#?}");
    assert!(!sandbox.store_picture().into_keys().any(|path| path.ends_with(b".new")), "{what}: a torn record is left");
    if recorded {
        forget(&sandbox.lock(), &apply_id(1)).unwrap();
        assert_eq!(sandbox.git_picture().len(), 1, "{what}: left in the git directory");
        assert!(!sandbox.store_picture().into_keys().any(|path| path.starts_with(b"applies/")), "{what}");
    }
    recorded
}

#[test]
fn a_kill_at_any_call_of_an_undo_ends_in_undone_or_not_undone() {
    let (base, result) = scenario();
    let captured = CapturedResult::between(&base, &result);
    for (work, disk) in
        [(Work::Undo, Disk::new as fn() -> Disk), (Work::UndoWithoutRenameFlags, Disk::without_rename_flags)]
    {
        assert!(work.is_undo());
        let (mut undone, mut points) = (0, 0);
        'calls: for call in 1.. {
            for kill in [Moment::Before(call), Moment::After(call)] {
                let sandbox = Sandbox::in_memory(&base);
                sandbox.apply_on(&captured, &Selection::Paths(captured.paths()), disk(), || {}).unwrap();
                if !killed(&sandbox, work, kill) {
                    break 'calls;
                }
                points += 1;
                if undone_or_not(&sandbox, &format!("{work:?} {kill:?}")) {
                    undone += 1;
                } else if call % 16 == 0 {
                    sandbox.undo_on(1, disk()).unwrap();
                    assert!(undone_or_not(&sandbox, "undone after the repair"));
                }
            }
        }
        println!("{work:?}: killed at {points} points, {undone} of them ended in undone");
        assert!(points > 120 && undone > 0, "only {points} points");
    }
}

#[test]
fn a_call_of_an_undo_that_fails_is_reported_and_taken_back() {
    let (base, result) = scenario();
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
                    assert!(!undone_or_not(&sandbox, &case));
                }
            }
        }
    }
    // A second name that is refused is made up for by a copy.
    assert!(refused > 100 && copied > 5, "{refused} refused, {copied} copied");
}

#[test]
fn a_repair_that_is_killed_itself_is_finished_by_the_next_one() {
    let (base, _) = scenario();
    for (apply, repair) in
        [(Work::Apply, Work::Recover), (Work::ApplyWithoutRenameFlags, Work::RecoverWithoutRenameFlags)]
    {
        let last = last_call_before_all(apply);
        let mut points = 0;
        'calls: for call in 1.. {
            for kill in [Moment::Before(call), Moment::After(call)] {
                let sandbox = Sandbox::in_memory(&base);
                assert!(killed(&sandbox, apply, Moment::Before(last)));
                assert!(sandbox.picture() != expected(&base), "the apply was killed in the middle");
                if !killed(&sandbox, repair, kill) {
                    break 'calls;
                }
                points += 1;
                assert!(!all_or_nothing(&sandbox, &format!("{repair:?} {kill:?}")), "nothing had to be the outcome");
            }
        }
        println!("{repair:?}: killed at {points} points");
        assert!(points > 40, "only {points} points");
    }
}

#[test]
fn a_call_that_fails_is_reported_and_taken_back() {
    let (base, result) = scenario();
    let captured = CapturedResult::between(&base, &result);
    // An empty directory that could not be removed is no reason to take everything back.
    let only_files = |files: Files| files.into_iter().filter(|(_, node)| *node != Node::Directory).collect::<Files>();
    let mut refused = 0;
    for error in [Errno::NOSPC, Errno::ACCESS, Errno::IO] {
        for call in 1.. {
            let sandbox = Sandbox::in_memory(&base);
            let armed = || fault::fail_at(call, error);
            let outcome = sandbox.apply_on(&captured, &Selection::Paths(captured.paths()), Disk::new(), armed);
            if fault::is_due() {
                break;
            }
            let case = format!("call {call} fails with {error:?}: {outcome:?}");
            match outcome {
                Ok(_) => assert_eq!(only_files(sandbox.picture()), result, "{case}"),
                Err(ApplyError::NotRolledBack { .. }) => panic!("{case}"),
                Err(failure) => {
                    refused += 1;
                    assert_eq!(sandbox.picture(), expected(&base), "{case}");
                    let full = matches!(failure, ApplyError::NoSpace(_));
                    assert!(error == Errno::NOSPC || !full, "{case}");
                    assert!(!Failure::from(failure).next.is_empty());
                    assert!(!all_or_nothing(&sandbox, &case));
                }
            }
        }
    }
    assert!(refused > 150, "only {refused} refusals");
}

#[test]
fn two_processes_that_apply_at_once_take_turns() {
    let (base, result) = scenario();
    for _ in 0..8 {
        let sandbox = Sandbox::in_memory(&base);
        let children: Vec<Child> = (0..3).map(|_| start(&sandbox, Work::Apply, None)).collect();
        for child in children {
            let output = child.wait_with_output().unwrap();
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
        }
        assert_eq!(sandbox.picture(), expected(&result));
    }
}

/// The number of the call that marks the apply as done.
fn last_call_before_all(work: Work) -> u64 {
    let (base, _) = scenario();
    let ends_in_all = |call| {
        let sandbox = Sandbox::in_memory(&base);
        !killed(&sandbox, work, Moment::After(call)) || all_or_nothing(&sandbox, "searching")
    };
    let (mut nothing, mut all) = (0, 1 << 10);
    while all - nothing > 1 {
        let middle = (nothing + all) / 2;
        if ends_in_all(middle) { all = middle } else { nothing = middle }
    }
    all
}
