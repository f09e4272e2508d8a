//! Things that happen between the check and the write.

use std::os::unix::fs::symlink;

use pactify_core::failure::ConflictKind;

use super::super::disk::Disk;
use super::fixture::*;

fn two_files() -> (Files, CapturedResult) {
    let base = files([("a", file("old a")), ("dir/b", file("old b"))]);
    let captured = CapturedResult::between(&base, &files([("a", file("new a")), ("dir/b", file("new b"))]));
    (base, captured)
}

#[test]
fn a_save_after_the_check_is_found_and_kept() {
    let (_, captured) = two_files();
    let sandbox = Sandbox::new(&two_files().0);
    let error =
        sandbox.apply_on(&captured, &everything(), Disk::new(), || sandbox.put("dir/b", &file("saved"))).unwrap_err();
    assert_eq!(obstacles(error), [("dir/b".to_owned(), ConflictKind::ContentDiffers)]);
    assert_eq!(sandbox.picture()[&b"dir/b"[..]], file("saved"));
    assert_eq!(sandbox.picture()[&b"a"[..]], file("old a"));
}

#[test]
fn a_directory_swapped_for_a_link_after_the_check_leads_nowhere() {
    let (base, captured) = two_files();
    let sandbox = Sandbox::new(&base);
    let victim = sandbox.outside().join("b");
    std::fs::write(&victim, "old b").unwrap();
    let swap = || {
        std::fs::rename(sandbox.at("dir"), sandbox.at("dir.away")).unwrap();
        symlink(sandbox.outside(), sandbox.at("dir")).unwrap();
        // Whoever follows the path writes to the victim.
        assert_eq!(std::fs::canonicalize(sandbox.at("dir/b")).unwrap(), victim.canonicalize().unwrap());
    };
    let error = sandbox.apply_on(&captured, &everything(), Disk::new(), swap).unwrap_err();
    assert_eq!(obstacles(error), [("dir/b".to_owned(), ConflictKind::NotARegularFile)]);
    assert_eq!(std::fs::read(&victim).unwrap(), b"old b");
    assert_eq!(std::fs::read(sandbox.at("a")).unwrap(), b"old a");
}
