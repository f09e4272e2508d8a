//! Things that happen between the check and the write.

use std::os::unix::fs::symlink;

use pactify_core::failure::ConflictKind;

use super::super::disk::Disk;
#[cfg(feature = "fault-injection")]
use super::super::disk::fault::{self, Moment};
use super::fixture::*;
#[cfg(feature = "fault-injection")]
use super::ordinary::{every_kind, expected};
#[cfg(feature = "fault-injection")]
use pactify_core::change::plan::Selection;

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

/// Something that the person, or a job that is still alive, does to the checkout.
#[cfg(feature = "fault-injection")]
#[derive(Clone, Copy, Debug)]
enum Interference {
    SaveByRename(&'static str),
    SaveInPlace(&'static str),
    Delete(&'static str),
    SwapDirectoryForLink,
}

/// At every call of an apply, before and after it, something happens to one path. That path holds what was put there;
/// everything else holds all of the result or none of it, as the answer says; the outside is as it was.
#[cfg(feature = "fault-injection")]
#[test]
fn whatever_happens_at_whatever_moment_nothing_is_lost_or_mixed() {
    use Interference::{Delete, SaveByRename, SaveInPlace, SwapDirectoryForLink};
    let (mut applied, mut refused) = (0, 0);
    for interference in [
        SaveByRename("changed.txt"),
        SaveInPlace("changed.txt"),
        SaveByRename("added"),
        SaveInPlace("deleted"),
        SaveByRename("dir/changed too"),
        Delete("changed.txt"),
        Delete("deleted"),
        SwapDirectoryForLink,
    ] {
        for call in 1.. {
            let outcomes = [Moment::Before(call), Moment::After(call)].map(|moment| interfere(interference, moment));
            let [Some(before), Some(after)] = outcomes else { break };
            for was_applied in [before, after] {
                *if was_applied { &mut applied } else { &mut refused } += 1;
            }
        }
    }
    println!("{applied} applied, {refused} refused");
    assert!(applied > 100 && refused > 300, "{applied} applied, {refused} refused");
}

/// One apply with an interference; whether it was applied, or `None` when there is no such moment.
#[cfg(feature = "fault-injection")]
fn interfere(interference: Interference, moment: Moment) -> Option<bool> {
    let (base, result) = every_kind();
    let captured = CapturedResult::between(&base, &result);
    let sandbox = Sandbox::in_memory(&base);
    std::fs::write(sandbox.outside().join("changed too"), "old").unwrap();
    let what = interference.at(&sandbox);
    let selection = Selection::Paths(captured.paths());
    let outcome = sandbox.apply_on(&captured, &selection, Disk::new(), || fault::happen_at(moment, what));
    if fault::is_due() {
        return None;
    }
    let case = format!("{interference:?} {moment:?}: {outcome:?}");
    let mut picture = sandbox.picture();
    let mut all_or_nothing = expected(if outcome.is_ok() { &result } else { &base });
    match interference {
        Interference::SaveByRename(path) | Interference::SaveInPlace(path) => {
            assert_eq!(picture.remove(path.as_bytes()), Some(file("saved")), "{case}");
            all_or_nothing.remove(path.as_bytes());
        }
        Interference::Delete(path) => {
            assert_eq!(picture.remove(path.as_bytes()), None, "{case}");
            all_or_nothing.remove(path.as_bytes());
        }
        Interference::SwapDirectoryForLink => {
            for files in [&mut picture, &mut all_or_nothing] {
                files.retain(|path, _| !path.starts_with(b"dir"));
            }
            let outside = picture_of_outside(&sandbox);
            assert_eq!(outside, files([("changed too", file("old"))]), "{case}");
        }
    }
    assert_eq!(picture, all_or_nothing, "{case}");
    assert_eq!(sandbox.git_picture()[&b"index"[..]], file("an index that nobody opens"));
    Some(outcome.is_ok())
}

#[cfg(feature = "fault-injection")]
fn picture_of_outside(sandbox: &Sandbox) -> Files {
    picture(&sandbox.outside())
}

#[cfg(feature = "fault-injection")]
impl Interference {
    fn at(self, sandbox: &Sandbox) -> Box<dyn FnOnce()> {
        match self {
            Self::SaveByRename(path) => {
                let (at, fresh) = (sandbox.at(path), sandbox.outside().join("fresh"));
                Box::new(move || {
                    std::fs::write(&fresh, "saved").unwrap();
                    std::fs::rename(fresh, at).unwrap();
                })
            }
            Self::SaveInPlace(path) => {
                let at = sandbox.at(path);
                Box::new(move || std::fs::write(at, "saved").unwrap())
            }
            Self::Delete(path) => {
                let at = sandbox.at(path);
                // It may be gone already.
                Box::new(move || drop(std::fs::remove_file(at)))
            }
            Self::SwapDirectoryForLink => {
                let (at, away, outside) = (sandbox.at("dir"), sandbox.at("dir.away"), sandbox.outside());
                Box::new(move || {
                    std::fs::rename(&at, away).unwrap();
                    symlink(outside, at).unwrap();
                })
            }
        }
    }
}

/// An editor that opened the file before the apply and writes to it afterwards has the old file in its hands.
#[cfg(feature = "fault-injection")]
#[test]
fn what_is_written_to_a_file_that_was_open_is_in_the_checkout_or_kept() {
    use std::io::Write as _;
    let (base, captured) = two_files();
    let mut kept = 0;
    for call in 1.. {
        let sandbox = Sandbox::in_memory(&base);
        let mut open = std::fs::File::options().append(true).open(sandbox.at("a")).unwrap();
        let write = move || open.write_all(b", and more").unwrap();
        let outcome =
            sandbox.apply_on(&captured, &everything(), Disk::new(), || fault::happen_at(Moment::Before(call), write));
        if fault::is_due() {
            break;
        }
        let more = file("old a, and more");
        if outcome.is_ok() {
            assert_eq!(sandbox.picture()[&b"a"[..]], file("new a"));
            assert!(sandbox.git_picture().values().any(|node| *node == more), "before call {call}");
            kept += 1;
        } else {
            assert_eq!(sandbox.picture()[&b"a"[..]], more, "before call {call}");
        }
    }
    assert!(kept > 0);
}
