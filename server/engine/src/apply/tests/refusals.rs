//! Obstacles: all of them are named, and nothing is written.

use pactify_core::change::plan::Selection;
use pactify_core::failure::ConflictKind;

use super::super::{ApplyError, RepositoryLock};
use super::fixture::*;

/// Applies, and demands that these paths stand in the way and that nothing changed.
#[track_caller]
fn refused(sandbox: &Sandbox, captured: &CapturedResult, expected: &[(&str, ConflictKind)]) {
    let (before, git_before) = (sandbox.picture(), sandbox.git_picture());
    let error = sandbox.apply(captured, &Selection::Paths(captured.paths())).unwrap_err();
    let found = obstacles(error);
    let expected: Vec<(String, ConflictKind)> = expected.iter().map(|(path, kind)| ((*path).into(), *kind)).collect();
    assert_eq!(found, expected);
    assert_eq!(sandbox.picture(), before);
    assert_eq!(sandbox.git_picture(), git_before);
}

#[test]
fn every_differing_path_is_named() {
    let base = files([("a", file("old")), ("b", file("old")), ("c", file("old")), ("gone", file("old"))]);
    let result = files([("a", file("new")), ("b", file("new")), ("gone", file("new")), ("added", file("new"))]);
    let sandbox = Sandbox::new(&base);
    sandbox.put("a", &file("edited"));
    sandbox.put("c", &file("edited"));
    sandbox.put("added", &file("untracked"));
    std::fs::remove_file(sandbox.at("gone")).unwrap();

    refused(
        &sandbox,
        &CapturedResult::between(&base, &result),
        &[
            ("a", ConflictKind::ContentDiffers),
            ("added", ConflictKind::AlreadyExists),
            ("c", ConflictKind::ContentDiffers),
            ("gone", ConflictKind::Missing),
        ],
    );
}

#[test]
fn links_and_special_files_on_the_way_are_never_passed() {
    let base = files([("dir/a", file("old")), ("leaf", file("old")), ("pipe", file("old"))]);
    let result = files([("dir/a", file("new")), ("leaf", file("new")), ("pipe", file("new")), ("in/b", file("new"))]);
    let sandbox = Sandbox::new(&Files::new());
    let outside = sandbox.outside();
    std::fs::write(outside.join("a"), "old").unwrap();
    std::fs::write(outside.join("leaf"), "old").unwrap();
    for (name, target) in [("dir", outside.clone()), ("in", outside.clone()), ("leaf", outside.join("leaf"))] {
        std::os::unix::fs::symlink(target, sandbox.at(name)).unwrap();
    }
    let pipe = rustix::fs::Mode::from_raw_mode(0o600);
    rustix::fs::mknodat(rustix::fs::CWD, sandbox.at("pipe"), rustix::fs::FileType::Fifo, pipe, 0).unwrap();
    // The trap is real: the path leads to the outside for whoever follows it.
    assert_eq!(std::fs::read(sandbox.at("dir/a")).unwrap(), b"old");

    refused(
        &sandbox,
        &CapturedResult::between(&base, &result),
        &[
            ("dir/a", ConflictKind::DirectoryInTheWay),
            ("in/b", ConflictKind::DirectoryInTheWay),
            ("leaf", ConflictKind::ContentDiffers),
            ("pipe", ConflictKind::NotARegularFile),
        ],
    );
    assert_eq!(std::fs::read(outside.join("a")).unwrap(), b"old");
    assert!(!outside.join("b").exists());
}

#[test]
fn links_that_lead_out_are_refused_even_when_they_are_named() {
    let base = files([("kept", file("kept"))]);
    let result = files([
        ("kept", file("kept")),
        ("absolute", link("/etc/passwd")),
        ("up", link("../outside")),
        ("into git", link(".git/hooks")),
    ]);
    refused(
        &Sandbox::new(&base),
        &CapturedResult::between(&base, &result),
        &[
            ("absolute", ConflictKind::KindRefused),
            ("into git", ConflictKind::KindRefused),
            ("up", ConflictKind::KindRefused),
        ],
    );
}

#[test]
fn directories_and_files_in_each_others_place_are_in_the_way() {
    let base = files([("was/dir", file("1"))]);
    let result = files([("file/in", file("1")), ("was", file("1"))]);
    let sandbox = Sandbox::new(&base);
    sandbox.put("file", &file("a file of the person"));
    sandbox.put("was/untracked", &file("theirs"));

    refused(
        &sandbox,
        &CapturedResult::between(&base, &result),
        &[("file/in", ConflictKind::DirectoryInTheWay), ("was", ConflictKind::DirectoryInTheWay)],
    );
}

#[test]
fn names_that_fold_to_one_are_refused_but_may_go_on_living_side_by_side() {
    let base = files([("README", file("1")), ("readme", file("1")), ("Src/a", file("1"))]);
    let sandbox = Sandbox::new(&base);
    let mut result = base.clone();
    result.extend(files([("src/b", file("1")), ("ReadMe", file("1"))]));
    refused(
        &sandbox,
        &CapturedResult::between(&base, &result),
        &[("ReadMe", ConflictKind::NameCollides), ("src/b", ConflictKind::NameCollides)],
    );

    let mut result = base.clone();
    result.extend(files([("README", file("2")), ("Src/b", file("1"))]));
    sandbox.apply(&CapturedResult::between(&base, &result), &everything()).unwrap();
    assert_eq!(sandbox.picture()[&b"README"[..]], file("2"));
}

#[test]
fn a_content_that_is_not_what_its_id_says_is_never_written() {
    let base = files([("a", file("old"))]);
    let sandbox = Sandbox::new(&base);
    let captured = CapturedResult::between(&base, &files([("a", file("new"))]));
    let lock = sandbox.lock();
    let grounds = pactify_core::change::plan::Grounds::default();
    let checkout =
        super::super::observe(&sandbox.repository, &captured.set, &grounds, &super::super::Verbatim, vec![]).unwrap();
    let plan = captured.set.check(&everything(), &grounds, &checkout).unwrap();
    struct Swapped;
    impl super::super::Contents for Swapped {
        fn read(&self, _: &pactify_core::ObjectId) -> std::io::Result<Vec<u8>> {
            Ok(b"something else".to_vec())
        }
    }
    let materials = super::super::Materials { contents: &Swapped, canonical: &super::super::Verbatim };
    let error = super::super::apply(plan, &apply_id(1), materials, &lock).unwrap_err();
    assert!(matches!(error, ApplyError::Contents { .. }), "{error:?}");
    assert_eq!(sandbox.picture(), base);
}

#[test]
fn a_name_that_the_file_system_does_not_take_is_one_conflict_of_all() {
    // Too long as a whole, not in any component: the rules let it pass, the system does not.
    let deep = vec!["d".repeat(200); 20].join("/");
    let result = files([(deep.as_str(), file("1")), ("ok", file("1"))]);
    let sandbox = Sandbox::new(&Files::new());
    let outcome = sandbox.apply(&CapturedResult::between(&Files::new(), &result), &everything());
    match outcome {
        Ok(_) => assert!(sandbox.at("ok").exists()),
        Err(error) => {
            assert_eq!(obstacles(error).len(), 1);
            assert_eq!(sandbox.picture(), Files::new());
        }
    }
}

#[test]
fn a_second_writer_waits_and_is_told_who_holds_the_lock() {
    let sandbox = Sandbox::new(&Files::new());
    let lock = sandbox.lock();
    let patience = std::time::Duration::from_millis(30);
    let refused = RepositoryLock::acquire(&sandbox.store, &sandbox.repository, patience).unwrap_err();
    assert!(matches!(refused, ApplyError::Busy { holder: Some(pid), .. } if pid == std::process::id()), "{refused:?}");

    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| sandbox.lock());
        drop(lock);
        waiting.join().unwrap();
    });
}
