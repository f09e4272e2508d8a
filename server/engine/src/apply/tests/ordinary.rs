//! Applies that nothing stands in the way of.

use pactify_core::change::plan::Selection;

use super::super::disk::Disk;
use super::super::intent::{Progress, Records};
#[cfg(feature = "fault-injection")]
use super::super::prepare::SYNC_EACH;
use super::super::{StageHome, forget, recover};
use super::fixture::*;

/// A base, and a result with every kind of change.
pub(super) fn every_kind() -> (Files, Files) {
    let base = files([
        ("kept.txt", file("kept")),
        ("changed.txt", file("old")),
        ("dir/changed too", file("old")),
        ("deleted", file("gone soon")),
        ("emptied/by/deletion", file("gone soon")),
        ("half/deleted", file("gone soon")),
        ("half/stays", file("stays")),
        ("tool", file("#!/bin/sh\n")),
        ("data", executable("no program")),
        ("retargeted", link("kept.txt")),
        ("becomes directory", file("a file")),
        ("becomes file/inner", file("in a directory")),
        ("becomes link", file("a file")),
    ]);
    let result = files([
        ("kept.txt", file("kept")),
        ("changed.txt", file("new, and longer")),
        ("dir/changed too", file("new")),
        ("half/stays", file("stays")),
        ("tool", executable("#!/bin/sh\n")),
        ("data", file("no program")),
        ("retargeted", link("changed.txt")),
        ("becomes directory/inner", file("now in a directory")),
        ("becomes file", file("now a file")),
        ("becomes link", link("kept.txt")),
        ("added", file("new")),
        ("new/nested/directories/file", executable("#!/bin/sh\n")),
        ("new/link", link("../kept.txt")),
        ("empty", file("")),
    ]);
    (base, result)
}

/// More files, in more directories, than are synchronised one by one.
#[cfg(feature = "fault-injection")]
pub(super) fn many_files() -> (Files, Files) {
    let (mut base, mut result) = (Files::new(), Files::new());
    for n in 0..SYNC_EACH + 2 {
        let path = format!("d{n}/file").into_bytes();
        base.insert(path.clone(), file("old"));
        result.insert(path, if n % 5 == 0 { executable("new") } else { file("new, and longer") });
    }
    base.insert(b"gone/file".into(), file("gone soon"));
    result.insert(b"made/file".into(), file("new"));
    (base, result)
}

/// A picture of a checkout that holds exactly these files.
pub(super) fn expected(result: &Files) -> Files {
    let mut picture = result.clone();
    for path in result.keys() {
        for ancestor in pactify_core::RepoPath::new(path.clone()).unwrap().ancestors() {
            picture.insert(ancestor.as_bytes().to_vec(), Node::Directory);
        }
    }
    picture
}

#[test]
fn every_kind_of_change_is_written_and_the_index_is_not() {
    for disk in [Disk::new(), Disk::without_rename_flags()] {
        let (base, result) = every_kind();
        let sandbox = Sandbox::new(&base);
        let captured = CapturedResult::between(&base, &result);
        let selection = Selection::Paths(captured.paths());

        let applied = sandbox.apply_on(&captured, &selection, disk, || {}).unwrap();

        assert_eq!(sandbox.picture(), expected(&result));
        assert_eq!(applied.written, captured.paths());
        assert!(applied.complete);
        assert_eq!(applied.stage, StageHome::GitDirectory);
        assert_eq!(sandbox.git_picture()[&b"index"[..]], file("an index that nobody opens"));
    }
}

#[test]
fn a_part_is_written_and_the_rest_can_follow() {
    let (base, result) = every_kind();
    let sandbox = Sandbox::new(&base);
    let captured = CapturedResult::between(&base, &result);
    let some = Selection::Paths(vec![path("changed.txt"), path("emptied/by/deletion")]);

    let applied = sandbox.apply(&captured, &some).unwrap();
    assert!(!applied.complete);
    assert_eq!(sandbox.picture()[&b"changed.txt"[..]], file("new, and longer"));
    assert_eq!(sandbox.picture()[&b"dir/changed too"[..]], file("old"));
    assert!(!sandbox.at("emptied").exists());

    forget(&sandbox.lock(), &apply_id(1)).unwrap();
    let rest = sandbox.apply(&captured, &Selection::Paths(captured.paths())).unwrap();
    assert!(rest.complete);
    assert_eq!(rest.already, [path("changed.txt"), path("emptied/by/deletion")]);
    assert_eq!(sandbox.picture(), expected(&result));
}

#[test]
fn unrelated_dirt_is_preserved() {
    let base = files([("a", file("old")), ("d/b", file("old"))]);
    let sandbox = Sandbox::new(&base);
    sandbox.put("c", &file("the person's own"));
    sandbox.put("d/untracked", &file("theirs too"));
    let captured = CapturedResult::between(&base, &files([("a", file("new"))]));

    sandbox.apply(&captured, &everything()).unwrap();

    let expected = files([
        ("a", file("new")),
        ("c", file("the person's own")),
        ("d", Node::Directory),
        ("d/untracked", file("theirs too")),
    ]);
    assert_eq!(sandbox.picture(), expected);
}

#[test]
fn permission_bits_survive_and_only_the_executable_ones_follow() {
    let base =
        files([("secret", file("old")), ("shared", file("old")), ("tool", file("x")), ("data", executable("x"))]);
    let result =
        files([("secret", file("new")), ("shared", file("new")), ("tool", executable("x")), ("data", file("x"))]);
    let base = base.into_iter().chain(files([("fixed", file("old"))])).collect();
    let result = result.into_iter().chain(files([("fixed", file("new"))]));
    let result = result.chain(files([("f", file("1")), ("x", executable("1"))])).collect();
    let sandbox = Sandbox::new(&base);
    for (name, before) in [("secret", 0o600), ("shared", 0o4664), ("fixed", 0o444), ("tool", 0o640), ("data", 0o750)] {
        set_bits(&sandbox.at(name), before);
    }

    sandbox.apply(&CapturedResult::between(&base, &result), &everything()).unwrap();

    for (name, after) in [
        ("secret", 0o600),
        ("shared", 0o664),
        ("fixed", 0o444),
        ("tool", 0o750),
        ("data", 0o640),
        ("f", 0o644),
        ("x", 0o755),
    ] {
        assert_eq!(bits(&sandbox.at(name)), after, "{name}");
    }
}

#[test]
fn a_hard_linked_file_is_replaced_not_written_through() {
    let base = files([("a", file("old"))]);
    let sandbox = Sandbox::new(&base);
    let other_name = sandbox.outside().join("same file");
    std::fs::hard_link(sandbox.at("a"), &other_name).unwrap();

    sandbox.apply(&CapturedResult::between(&base, &files([("a", file("new"))])), &everything()).unwrap();

    assert_eq!(sandbox.picture()[&b"a"[..]], file("new"));
    assert_eq!(std::fs::read(&other_name).unwrap(), b"old");
}

#[test]
fn the_folder_that_the_editor_has_open_is_kept_when_it_is_emptied() {
    let base = files([("pkg/src/a", file("1"))]);
    let mut sandbox = Sandbox::new(&base);
    sandbox.repository.prefix = "pkg".into();

    sandbox.apply(&CapturedResult::between(&base, &Files::new()), &everything()).unwrap();

    assert_eq!(sandbox.picture(), files([("pkg", Node::Directory)]));
}

#[test]
fn old_contents_are_kept_until_the_apply_is_forgotten() {
    let base = files([("changed", file("old")), ("deleted", file("was here"))]);
    let sandbox = Sandbox::new(&base);
    sandbox.apply(&CapturedResult::between(&base, &files([("changed", file("new"))])), &everything()).unwrap();

    let held: Vec<Node> = sandbox.git_picture().into_values().filter(|node| *node != Node::Directory).collect();
    assert!(held.contains(&file("old")) && held.contains(&file("was here")), "{held:?}");
    let lock = sandbox.lock();
    let records = Records::open(&lock).unwrap();
    assert_eq!(records.progress(&(&apply_id(1)).into()), Some(Progress::Done));
    assert_eq!(records.read(&(&apply_id(1)).into(), Progress::Done).unwrap().steps.len(), 2);

    assert_eq!(recover(&lock).unwrap(), [], "a finished apply needs no repair");
    assert_eq!(records.progress(&(&apply_id(1)).into()), Some(Progress::Done));

    forget(&lock, &apply_id(1)).unwrap();
    assert_eq!(sandbox.git_picture(), files([("index", file("an index that nobody opens"))]));
    assert_eq!(records.progress(&(&apply_id(1)).into()), None);
}
