//! Applies that are taken back: what was there is there again, or everything stays and the reasons are named.

use std::os::unix::fs::symlink;

use pactify_core::change::plan::Selection;
use pactify_core::failure::ConflictKind;
use pactify_core::{Failure, FailureCode};

use super::super::disk::Disk;
use super::super::intent::{Progress, Records, Transaction};
use super::super::undo::undo_with;
use super::super::{ApplyError, forget, recover, undone};
use super::fixture::*;
use super::ordinary::{every_kind, expected};

fn all(captured: &CapturedResult) -> Selection {
    Selection::Paths(captured.paths())
}

/// A sandbox in which every kind of change is applied.
fn applied(disk: Disk) -> (Sandbox, CapturedResult) {
    let (base, result) = every_kind();
    let sandbox = Sandbox::in_memory(&base);
    let captured = CapturedResult::between(&base, &result);
    sandbox.apply_on(&captured, &all(&captured), disk, || {}).unwrap();
    (sandbox, captured)
}

#[test]
fn every_kind_of_change_comes_back_as_the_very_file_that_it_was() {
    for disk in [Disk::new as fn() -> Disk, Disk::without_rename_flags] {
        let (base, result) = every_kind();
        let sandbox = Sandbox::in_memory(&base);
        for (path, mode) in [("changed.txt", 0o640), ("deleted", 0o600), ("dir/changed too", 0o4664)] {
            set_bits(&sandbox.at(path), mode);
        }
        for (path, mode) in [("emptied/by", 0o750), ("emptied", 0o2711), ("becomes file", 0o700)] {
            set_bits(&sandbox.at(path), mode);
        }
        std::fs::hard_link(sandbox.at("deleted"), sandbox.outside().join("second name")).unwrap();
        let before = (sandbox.picture(), sandbox.attributes(), sandbox.git_picture());
        let captured = CapturedResult::between(&base, &result);
        sandbox.apply_on(&captured, &all(&captured), disk(), || {}).unwrap();
        assert_eq!(sandbox.picture(), expected(&result));

        let undone_now = sandbox.undo_on(1, disk()).unwrap();

        assert_eq!(undone_now.restored, captured.paths());
        assert_eq!(sandbox.picture(), before.0);
        assert_eq!(undone(&sandbox.lock(), &apply_id(1).job).unwrap(), [apply_id(1)]);
        assert_eq!(recover(&sandbox.lock()).unwrap(), [], "a finished undo needs no repair");
        forget(&sandbox.lock(), &apply_id(1)).unwrap();
        assert_eq!(undone(&sandbox.lock(), &apply_id(1).job).unwrap(), []);
        assert_eq!((sandbox.picture(), sandbox.attributes(), sandbox.git_picture()), before);
    }
}

#[test]
fn what_is_undone_can_be_applied_and_undone_again() {
    let (sandbox, captured) = applied(Disk::new());
    for number in 2..4 {
        sandbox.undo(number - 1).unwrap();
        forget(&sandbox.lock(), &apply_id(number - 1)).unwrap();
        assert_eq!(sandbox.picture(), expected(&every_kind().0));
        sandbox.apply_as(number, &captured, &all(&captured), Disk::new(), || {}).unwrap();
        assert_eq!(sandbox.picture(), expected(&every_kind().1));
    }
}

#[test]
fn every_path_that_is_not_as_it_was_left_is_named_and_nothing_changes() {
    type Edit = fn(&Sandbox);
    let edits: [(&str, ConflictKind, Edit); 9] = [
        ("changed.txt", ConflictKind::ContentDiffers, |s| s.put("changed.txt", &file("edited"))),
        ("tool", ConflictKind::ContentDiffers, |s| set_bits(&s.at("tool"), 0o644)),
        ("retargeted", ConflictKind::ContentDiffers, |s| s.put("retargeted", &link("elsewhere"))),
        ("becomes link", ConflictKind::ContentDiffers, |s| s.put("becomes link", &file("kept.txt"))),
        ("added", ConflictKind::Missing, |s| std::fs::remove_file(s.at("added")).unwrap()),
        ("deleted", ConflictKind::AlreadyExists, |s| s.put("deleted", &file("gone soon"))),
        ("empty", ConflictKind::DirectoryInTheWay, |s| {
            std::fs::remove_file(s.at("empty")).unwrap();
            std::fs::create_dir(s.at("empty")).unwrap();
        }),
        ("dir/changed too", ConflictKind::NotARegularFile, |s| {
            std::fs::rename(s.at("dir"), s.outside().join("dir")).unwrap();
            symlink(s.outside().join("dir"), s.at("dir")).unwrap();
        }),
        ("becomes directory", ConflictKind::DirectoryInTheWay, |s| s.put("becomes directory/theirs", &file("x"))),
    ];
    let refused = |sandbox: &Sandbox, expected: Vec<(&str, ConflictKind)>| {
        let before = (sandbox.picture(), sandbox.git_picture());
        let error = sandbox.undo(1).unwrap_err();
        assert!(matches!(error, ApplyError::NotAsLeft(_)), "{error:?}");
        let mut found = obstacles(error);
        found.sort_by(|a, b| a.0.cmp(&b.0));
        let found: Vec<(&str, ConflictKind)> = found.iter().map(|(path, kind)| (path.as_str(), *kind)).collect();
        assert_eq!(found, expected);
        assert_eq!((sandbox.picture(), sandbox.git_picture()), before);
    };
    for (path, kind, edit) in edits {
        let (sandbox, _) = applied(Disk::new());
        edit(&sandbox);
        refused(&sandbox, vec![(path, kind)]);
    }
    let (sandbox, _) = applied(Disk::new());
    let mut named = Vec::new();
    for (path, kind, edit) in edits {
        edit(&sandbox);
        named.push((path, kind));
    }
    named.sort_by(|a, b| a.0.cmp(b.0));
    refused(&sandbox, named);
}

#[test]
fn what_nobody_applied_is_no_concern_of_an_undo() {
    let (sandbox, _) = applied(Disk::new());
    sandbox.put("kept.txt", &file("edited"));
    sandbox.put("new/nested/directories/theirs", &file("theirs"));
    sandbox.put("emptied/anew", &file("theirs"));
    sandbox.undo(1).unwrap();
    let (mut base, _) = every_kind();
    base.insert(b"kept.txt".into(), file("edited"));
    base.insert(b"new/nested/directories/theirs".into(), file("theirs"));
    base.insert(b"emptied/anew".into(), file("theirs"));
    assert_eq!(sandbox.picture(), expected(&base));
}

#[test]
fn unsaved_text_refuses() {
    let (sandbox, _) = applied(Disk::new());
    let unsaved = [path("changed.txt"), path("added"), path("kept.txt")];
    let error = undo_with(&apply_id(1), &unsaved, &sandbox.lock(), Disk::new()).unwrap_err();
    let failure = Failure::from(error);
    assert_eq!((failure.code, failure.conflicts.len()), (FailureCode::UnsavedBuffers, 2));
    assert_eq!(sandbox.picture(), expected(&every_kind().1));
}

#[test]
fn a_later_apply_to_the_same_path_is_named_and_goes_first() {
    let (base, one) = (files([("a", file("0")), ("b", file("0"))]), files([("a", file("1")), ("b", file("1"))]));
    let two = files([("a", file("2")), ("b", file("1"))]);
    let sandbox = Sandbox::in_memory(&base);
    let (first, second) = (CapturedResult::between(&base, &one), CapturedResult::between(&one, &two));
    sandbox.apply_as(1, &first, &everything(), Disk::new(), || {}).unwrap();
    sandbox.apply_as(2, &second, &everything(), Disk::new(), || {}).unwrap();
    let failure = Failure::from(sandbox.undo(1).unwrap_err());
    assert_eq!(failure.code, FailureCode::ApplyConflict);
    let named: Vec<_> = failure.conflicts.iter().map(|c| (c.path.path.as_str(), c.detail.as_str())).collect();
    assert_eq!(named, [("a", "apply 2 of this job changed it since")]);
    sandbox.undo(2).unwrap();
    forget(&sandbox.lock(), &apply_id(2)).unwrap();
    sandbox.undo(1).unwrap();
    assert_eq!(sandbox.picture(), base);
}

#[test]
fn an_older_apply_is_undone_beside_a_later_one() {
    let base = files([("a", file("0")), ("b", file("0"))]);
    let one = files([("a", file("1")), ("b", file("0"))]);
    let two = files([("a", file("1")), ("b", file("2"))]);
    let sandbox = Sandbox::in_memory(&base);
    let (first, second) = (CapturedResult::between(&base, &one), CapturedResult::between(&one, &two));
    sandbox.apply_as(1, &first, &everything(), Disk::new(), || {}).unwrap();
    sandbox.apply_as(2, &second, &everything(), Disk::new(), || {}).unwrap();
    sandbox.undo(1).unwrap();
    assert_eq!(sandbox.picture(), files([("a", file("0")), ("b", file("2"))]));
}

#[test]
fn what_is_not_kept_is_said() {
    let (sandbox, _) = applied(Disk::new());
    let records = Transaction::from(&apply_id(1));
    std::fs::remove_dir_all(sandbox.at(".git/pactify")).unwrap();
    let failure = Failure::from(sandbox.undo(1).unwrap_err());
    assert_eq!(failure.code, FailureCode::WrongState);
    assert!(matches!(sandbox.undo(2).unwrap_err(), ApplyError::NotKept(_)));
    assert_eq!(Records::open(&sandbox.lock()).unwrap().progress(&records), Some(Progress::Done));
    assert_eq!(sandbox.picture(), expected(&every_kind().1));
}

#[test]
fn an_old_content_that_was_changed_since_is_not_put_back() {
    let base = files([("a", file("old")), ("b", file("old too"))]);
    let captured = CapturedResult::between(&base, &files([("a", file("new")), ("b", file("new too"))]));
    let sandbox = Sandbox::in_memory(&base);
    let second_name = sandbox.outside().join("second name");
    std::fs::hard_link(sandbox.at("a"), &second_name).unwrap();
    sandbox.apply(&captured, &everything()).unwrap();
    std::fs::write(second_name, "something else").unwrap();
    assert_eq!(obstacles(sandbox.undo(1).unwrap_err()), [("a".to_owned(), ConflictKind::FileSystem)]);
    assert_eq!(sandbox.picture(), files([("a", file("new")), ("b", file("new too"))]));
}
