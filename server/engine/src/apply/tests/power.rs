//! The power fails: what was not synchronised may be missing, in any combination. The next writer still finds all or
//! nothing.
//!
//! One apply is recorded, call by call. From the state before it, states are rebuilt in which every call up to some
//! point was made, but some of those that no synchronisation covered left no trace. The model is stricter than
//! journalling file systems are: entries of a directory count as lost until that directory was synchronised, contents
//! until their file was, and losses are independent of each other. A single rename or exchange is one step, as on every
//! file system that pactify supports. Synchronising a file system counts for the checkout's or for the store's, which
//! need not be one. With few uncertain calls all combinations are tried; with many, all single losses, all single
//! survivals and a fixed random sample; of a large apply, where there are hundreds, a sample of the single ones.

use std::collections::HashSet;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use pactify_core::change::plan::Selection;
use rustix::fs::{CWD, RenameFlags};

use super::super::disk::Disk;
use super::super::disk::fault::{self, Logged};
use super::super::undo::undo_with;
use super::super::{recover, undone};
use super::fixture::*;
use super::ordinary::{every_kind, expected, many_files};

/// Up to this many uncertain calls, all combinations are tried.
const EXHAUSTIVE: usize = 7;
const SAMPLES: u64 = 6;

/// Of the single losses and survivals of a large apply.
const SINGLES: usize = 2;

/// A recorded apply.
struct Recorded {
    sandbox: Sandbox,
    singles: usize,
    start: Snapshot,
    log: Vec<Logged>,
    base: Files,
    result: Files,
}

/// How many states ended in what.
#[derive(Debug, Default)]
struct Outcomes {
    all: usize,
    nothing: usize,
    /// Mixed, with something left behind, or not to be repaired.
    neither: usize,
}

#[test]
fn a_power_failure_during_a_large_apply_ends_in_all_or_nothing() {
    let recorded = record(many_files(), SINGLES, Sandbox::in_memory, Disk::new());
    assert!(recorded.log.iter().filter(|call| matches!(call, Logged::SyncFileSystem(_))).count() == 2);
    let outcomes = recorded.outcomes(&recorded.start, &recorded.log);
    println!("{} calls, {outcomes:?}", recorded.log.len());
    assert_eq!(outcomes.neither, 0);
    assert!(outcomes.all > 0 && outcomes.nothing > 1000, "{outcomes:?}");
}

#[test]
fn a_power_failure_without_rename_flags_ends_in_all_or_nothing() {
    let recorded = record(every_kind(), usize::MAX, Sandbox::in_memory, Disk::without_rename_flags());
    let outcomes = recorded.outcomes(&recorded.start, &recorded.log);
    println!("{} calls, {outcomes:?}", recorded.log.len());
    assert_eq!(outcomes.neither, 0);
    assert!(outcomes.all > 0 && outcomes.nothing > 1000, "{outcomes:?}");
}

#[test]
fn a_power_failure_with_the_stage_in_the_checkout_ends_in_all_or_nothing() {
    if Sandbox::in_memory_with_git_on_disk(&Files::new()).is_none() {
        return println!("skipped: /dev/shm is no other file system than the temporary directory");
    }
    let apart = |base: &Files| Sandbox::in_memory_with_git_on_disk(base).unwrap();
    let recorded = record(every_kind(), usize::MAX, apart, Disk::new());
    assert!(
        recorded.log.iter().any(|call| matches!(call, Logged::Create(at) if at.ends_with(".pactify-stage/.gitignore")))
    );
    let outcomes = recorded.outcomes(&recorded.start, &recorded.log);
    println!("{} calls, {outcomes:?}", recorded.log.len());
    assert_eq!(outcomes.neither, 0);
    assert!(outcomes.all > 0 && outcomes.nothing > 1000, "{outcomes:?}");
}

#[test]
fn a_power_failure_during_an_apply_ends_in_all_or_nothing() {
    let recorded = record_apply();
    let outcomes = recorded.outcomes(&recorded.start, &recorded.log);
    println!("{} calls, {outcomes:?}", recorded.log.len());
    assert_eq!(outcomes.neither, 0);
    assert!(outcomes.all > 0 && outcomes.nothing > 1000, "{outcomes:?}");
}

#[test]
fn a_power_failure_during_a_repair_ends_in_nothing() {
    let recorded = record_apply();
    // Everything was done but the mark.
    let is_mark = |call: &Logged| matches!(call, Logged::Rename(_, to) if is_done(to));
    let mark = recorded.log.iter().rposition(is_mark).unwrap();
    rebuild(&recorded.start, &recorded.log, &(0..mark).collect::<Vec<_>>());
    let sandbox = recorded.reopened();
    assert_eq!(sandbox.picture(), expected(&recorded.result));
    let start = snapshot(sandbox.root().as_path());
    fault::record();
    sandbox.recover();
    let log = fault::recorded();

    let outcomes = recorded.outcomes(&start, &log);
    println!("{} calls, {outcomes:?}", log.len());
    assert_eq!((outcomes.all, outcomes.neither), (0, 0));
    assert!(outcomes.nothing > 800, "{outcomes:?}");
}

#[test]
fn a_power_failure_during_an_undo_ends_in_undone_or_not_undone() {
    let (base, result) = every_kind();
    let captured = CapturedResult::between(&base, &result);
    let sandbox = Sandbox::in_memory(&base);
    sandbox.apply(&captured, &Selection::Paths(captured.paths())).unwrap();
    let start = snapshot(sandbox.root().as_path());
    let lock = sandbox.lock();
    fault::record();
    undo_with(&apply_id(1), &[], &lock, Disk::new()).unwrap();
    let log = fault::recorded();
    drop(lock);

    let (mut back, mut stands) = (0, 0);
    each_state(&log, usize::MAX, |survived| {
        rebuild(&start, &log, survived);
        let sandbox = Sandbox::existing(sandbox.root().clone());
        recover(&sandbox.lock()).unwrap();
        let recorded = !undone(&sandbox.lock(), &apply_id(1).job).unwrap().is_empty();
        assert_eq!(sandbox.picture(), expected(if recorded { &base } else { &result }), "{survived:?}");
        *(if recorded { &mut back } else { &mut stands }) += 1;
        if !recorded {
            // What is needed for it is still there.
            sandbox.undo(1).unwrap();
            assert_eq!(sandbox.picture(), expected(&base), "{survived:?}");
        }
    });
    println!("{} calls, {back} undone, {stands} not", log.len());
    assert!(back > 0 && stands > 800, "{back} undone, {stands} not");
}

/// What the two tests above would miss if it did not happen.
#[test]
fn without_synchronisation_the_model_finds_torn_applies() {
    let recorded = record_apply();
    let unsynced: Vec<Logged> = recorded.log.iter().filter(|call| !is_sync(call)).cloned().collect();
    let outcomes = recorded.outcomes(&recorded.start, &unsynced);
    assert!(outcomes.neither > 100, "{outcomes:?}");
}

fn record_apply() -> Recorded {
    record(every_kind(), usize::MAX, Sandbox::in_memory, Disk::new())
}

fn record(
    (base, result): (Files, Files),
    singles: usize,
    make: impl FnOnce(&Files) -> Sandbox,
    disk: Disk,
) -> Recorded {
    let captured = CapturedResult::between(&base, &result);
    let sandbox = make(&base);
    prepare_store(&sandbox);
    let start = snapshot(sandbox.root().as_path());
    let selection = Selection::Paths(captured.paths());
    sandbox.apply_on(&captured, &selection, disk, fault::record).unwrap();
    Recorded { sandbox, singles, start, log: fault::recorded(), base, result }
}

impl Recorded {
    /// The store holds its directories open: after a rebuild they are other ones.
    fn reopened(&self) -> Sandbox {
        Sandbox::existing(self.sandbox.root().clone())
    }

    fn outcomes(&self, start: &Snapshot, log: &[Logged]) -> Outcomes {
        let mut outcomes = Outcomes::default();
        let (all, nothing) = (expected(&self.result), expected(&self.base));
        each_state(log, self.singles, |survived| {
            rebuild(start, log, survived);
            let sandbox = self.reopened();
            let repaired = recover(&sandbox.lock()).is_ok();
            let picture = sandbox.picture();
            let counter = match picture {
                _ if !repaired => &mut outcomes.neither,
                picture if picture == all => &mut outcomes.all,
                picture
                    if picture == nothing
                        && sandbox.git_picture().len() == 1
                        && !sandbox.at(".pactify-stage").exists() =>
                {
                    &mut outcomes.nothing
                }
                _ => &mut outcomes.neither,
            };
            *counter += 1;
        });
        outcomes
    }
}

fn is_done(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "done")
}

/// The directories of the store that are made before an apply starts, and are not part of it.
fn prepare_store(sandbox: &Sandbox) {
    super::super::intent::Records::open(&sandbox.lock()).unwrap();
}

/// Calls `check` with every distinct set of surviving calls, `singles` single losses and survivals among them at a
/// time.
fn each_state(log: &[Logged], singles: usize, mut check: impl FnMut(&[usize])) {
    let mut seen = HashSet::new();
    let mut random = 0x9e37_79b9_7f4a_7c15_u64;
    for end in 0..=log.len() {
        let (certain, uncertain): (Vec<_>, Vec<_>) =
            (0..end).filter(|n| !is_sync(&log[*n])).partition(|n| is_durable(&log[..end], *n));
        for kept in combinations(uncertain.len(), singles, &mut random) {
            let kept = uncertain.iter().zip(kept).filter(|(_, kept)| *kept).map(|(n, _)| *n);
            let mut survived: Vec<usize> = certain.iter().copied().chain(kept).collect();
            survived.sort_unstable();
            if seen.insert(survived.clone()) {
                check(&survived);
            }
        }
    }
}

fn combinations(calls: usize, singles: usize, random: &mut u64) -> Vec<Vec<bool>> {
    if calls <= EXHAUSTIVE {
        return (0..1_u32 << calls).map(|bits| (0..calls).map(|n| bits >> n & 1 == 1).collect()).collect();
    }
    let mut sets: Vec<Vec<bool>> = vec![vec![true; calls], vec![false; calls]];
    let alone: Vec<usize> = match singles {
        all if all >= calls => (0..calls).collect(),
        some => (0..some).map(|_| usize::try_from(next(random)).unwrap() % calls).collect(),
    };
    for flag in [true, false] {
        sets.extend(alone.iter().map(|at| (0..calls).map(|n| (n == *at) == flag).collect()));
    }
    for _ in 0..SAMPLES {
        sets.push((0..calls).map(|_| next(random) & 1 == 1).collect());
    }
    sets
}

/// xorshift: the same sample every time.
fn next(state: &mut u64) -> u64 {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    *state >> 32
}

fn is_sync(call: &Logged) -> bool {
    matches!(call, Logged::Sync(_) | Logged::SyncFileSystem(_))
}

/// Whether some later synchronisation covers the call, or another call that could not be without it: what was
/// renamed had been made, and a directory that was removed had been emptied.
fn is_durable(log: &[Logged], call: usize) -> bool {
    let later = || (call + 1..log.len()).map(|n| (n, &log[n]));
    let synced = |path: &Path| later().any(|(_, later)| matches!(later, Logged::Sync(synced) if synced == path));
    let entry = |path: &Path| synced(path.parent().unwrap());
    let moved_on = |path: &Path| {
        later().any(|(n, later)| matches!(later, Logged::Rename(from, _) if from == path) && is_durable(log, n))
    };
    let gone = |path: &Path| {
        let above = |directory: &Path| path.starts_with(directory) && path != directory;
        later().any(|(n, later)| matches!(later, Logged::RemoveDirectory(at) if above(at)) && is_durable(log, n))
    };
    let in_store = |path: &Path| path.components().any(|part| part.as_os_str() == "store");
    let own = place(&log[call]);
    let everything =
        later().any(|(_, later)| matches!(later, Logged::SyncFileSystem(synced) if in_store(synced) == in_store(own)));
    everything
        || match &log[call] {
            Logged::Write(file, _) | Logged::SetMode(file, _) | Logged::SetGroup(file) => synced(file),
            Logged::Create(at) | Logged::MakeDirectory(at, _) | Logged::MakeLink(at, _) => entry(at) || moved_on(at),
            Logged::Unlink(at) | Logged::RemoveDirectory(at) => entry(at) || gone(at),
            Logged::Rename(from, to) => entry(to) || moved_on(to) || gone(from),
            Logged::HardLink(_, to) => entry(to) || moved_on(to) || gone(to),
            Logged::Exchange(a, b) => entry(a) && entry(b),
            Logged::Sync(_) | Logged::SyncFileSystem(_) => true,
        }
}

/// Where a call does something.
fn place(call: &Logged) -> &Path {
    match call {
        Logged::Create(at)
        | Logged::Write(at, _)
        | Logged::SetMode(at, _)
        | Logged::SetGroup(at)
        | Logged::MakeDirectory(at, _)
        | Logged::MakeLink(at, _)
        | Logged::HardLink(_, at)
        | Logged::Rename(_, at)
        | Logged::Exchange(_, at)
        | Logged::Unlink(at)
        | Logged::RemoveDirectory(at)
        | Logged::Sync(at)
        | Logged::SyncFileSystem(at) => at,
    }
}

/// A directory's whole content, to be put back.
struct Snapshot {
    root: PathBuf,
    files: Files,
    bits: Vec<(PathBuf, u32)>,
}

fn snapshot(root: &Path) -> Snapshot {
    use std::os::unix::ffi::OsStrExt as _;
    let files = picture(root);
    let paths = files.iter().filter(|(_, node)| !matches!(node, Node::Link(_)));
    let paths = paths.map(|(path, _)| root.join(std::ffi::OsStr::from_bytes(path)));
    let bits = paths.map(|path| (path.clone(), bits(&path))).collect();
    Snapshot { root: root.to_owned(), files, bits }
}

/// The starting state with the surviving calls made. One whose place did not survive leaves no trace either.
fn rebuild(start: &Snapshot, log: &[Logged], survived: &[usize]) {
    use std::os::unix::ffi::OsStrExt as _;
    for entry in std::fs::read_dir(&start.root).unwrap() {
        std::fs::remove_dir_all(entry.unwrap().path()).unwrap();
    }
    for (path, node) in &start.files {
        let at = start.root.join(std::ffi::OsStr::from_bytes(path));
        match node {
            Node::Directory => std::fs::create_dir(&at).unwrap(),
            Node::File(bytes) | Node::Executable(bytes) => std::fs::write(&at, bytes).unwrap(),
            Node::Link(target) => std::os::unix::fs::symlink(std::ffi::OsStr::from_bytes(target), &at).unwrap(),
        }
    }
    for (path, bits) in &start.bits {
        set_bits(path, *bits);
    }
    let mut made = HashSet::new();
    for call in survived {
        let call = &log[*call];
        match call {
            // Calls on something open: without it they leave no trace, whatever has its name now.
            Logged::Write(at, _) | Logged::SetMode(at, _) if !made.contains(at) => {}
            Logged::Create(at) | Logged::MakeDirectory(at, _) if make(call).is_ok() => {
                made.insert(at.clone());
            }
            call => {
                let _ = make(call);
            }
        }
    }
}

fn make(call: &Logged) -> std::io::Result<()> {
    use std::os::unix::ffi::OsStrExt as _;
    use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt as _};
    match call {
        Logged::Create(at) => std::fs::File::options().write(true).create_new(true).mode(0o600).open(at).map(drop),
        Logged::Write(file, bytes) => std::fs::File::options().append(true).open(file)?.write_all(bytes),
        Logged::SetMode(file, mode) => std::fs::set_permissions(file, std::fs::Permissions::from_mode(*mode)),
        Logged::MakeDirectory(at, mode) => std::fs::DirBuilder::new().mode(*mode).create(at),
        Logged::MakeLink(at, target) => std::os::unix::fs::symlink(std::ffi::OsStr::from_bytes(target), at),
        Logged::HardLink(from, to) => std::fs::hard_link(from, to),
        Logged::Rename(from, to) => std::fs::rename(from, to),
        Logged::Exchange(a, b) => Ok(rustix::fs::renameat_with(CWD, a, CWD, b, RenameFlags::EXCHANGE)?),
        Logged::Unlink(at) => std::fs::remove_file(at),
        Logged::RemoveDirectory(at) => std::fs::remove_dir(at),
        Logged::SetGroup(_) | Logged::Sync(_) | Logged::SyncFileSystem(_) => Ok(()),
    }
}
