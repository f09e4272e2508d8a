//! What stands in the place of a record of an apply, or of all of them: neither followed nor waited for, and told.

use std::os::unix::fs::MetadataExt as _;
use std::time::Duration;

use pactify_core::change::plan::Selection;
use pactify_core::{AbsPath, Failure, FailureCode};

use super::super::recover::recover_with;
use super::super::undo::undo_with;
use super::super::{ApplyError, finished, forget, forget_of, interrupted, undone};
use super::fixture::*;
use super::ordinary::{every_kind, expected};
use crate::apply::disk::Disk;
use crate::store::Area;
use crate::store::fixture::{Impostor, promptly};

/// A checkout with an apply in it.
fn applied() -> Sandbox {
    let (base, result) = every_kind();
    let sandbox = Sandbox::in_memory(&base);
    let captured = CapturedResult::between(&base, &result);
    sandbox.apply(&captured, &Selection::Paths(captured.paths())).unwrap();
    sandbox
}

fn record(sandbox: &Sandbox, extension: &str) -> AbsPath {
    let name = format!("{}.{extension}", apply_id(1));
    sandbox.store.home().join(Area::Applies.name()).join(&name)
}

/// Demands an answer, at once, that names the place and what stands there.
#[track_caller]
fn told(impostor: Impostor, place: &AbsPath, answer: Result<(), ApplyError>) {
    let failure = Failure::from(answer.expect_err(&format!("{impostor:?} is taken for a record")));
    let named = failure.message.contains(place.as_path().to_str().unwrap());
    assert!(named && failure.message.contains(impostor.called()), "{impostor:?}: {failure:?}");
    let codes = [FailureCode::StoreDamaged, FailureCode::StoreUnavailable];
    assert!(codes.contains(&failure.code) && !failure.next.is_empty(), "{impostor:?}: {failure:?}");
}

#[test]
fn in_the_place_of_an_interrupted_apply_nothing_is_done_before_somebody_looks() {
    let (base, _) = every_kind();
    for impostor in Impostor::ALL {
        let sandbox = applied();
        let intent = record(&sandbox, "intent");
        // As if it had been cut off before the last step.
        std::fs::rename(record(&sandbox, "done"), &intent).unwrap();
        impostor.take_the_place_of(&intent);
        assert!(impostor.fools_a_plain_read(&intent), "{impostor:?}");
        let moved = intent.as_path().with_extension("moved");
        let (before, kept) = (sandbox.picture(), std::fs::read(&moved).unwrap());

        let sandbox = promptly(move || {
            let lock = sandbox.lock();
            told(impostor, &intent, recover_with(&lock, Disk::new()).map(drop));
            told(impostor, &intent, undo_with(&apply_id(1), &[], &lock, Disk::new()).map(drop));
            drop(lock);
            told(impostor, &intent, sandbox.apply_as(2, &another(), &everything(), Disk::new(), || {}).map(drop));
            assert_eq!(interrupted(&sandbox.store).unwrap(), [apply_id(1)], "{impostor:?}");
            sandbox
        });
        assert_eq!(sandbox.picture(), before, "{impostor:?}: the checkout is as it was");
        assert_eq!(std::fs::read(&moved).unwrap(), kept, "{impostor:?}: what it led to is as it was");

        // Somebody looked, and moved it away.
        let intent = record(&sandbox, "intent");
        std::fs::rename(&intent, intent.as_path().with_extension("away")).unwrap();
        std::fs::rename(&moved, &intent).unwrap();
        recover_with(&sandbox.lock(), Disk::new()).unwrap();
        assert_eq!(sandbox.picture(), expected(&base), "{impostor:?}");
    }
}

/// A result that has nothing to do with the apply.
fn another() -> CapturedResult {
    CapturedResult::between(&Files::new(), &files([("another", file("new"))]))
}

#[test]
fn in_the_place_of_a_finished_apply_nothing_is_undone_and_nothing_goes() {
    for impostor in Impostor::ALL {
        let sandbox = applied();
        let done = record(&sandbox, "done");
        impostor.take_the_place_of(&done);
        let moved = done.as_path().with_extension("moved");
        let (before, kept) = (sandbox.picture(), std::fs::read(&moved).unwrap());
        let stages = sandbox.git_picture();
        let sandbox = promptly(move || {
            let lock = sandbox.lock();
            told(impostor, &done, finished(&lock, &apply_id(1)).map(drop));
            told(impostor, &done, undo_with(&apply_id(1), &[], &lock, Disk::new()).map(drop));
            told(impostor, &done, forget(&lock, &apply_id(1)));
            assert!(recover_with(&lock, Disk::new()).unwrap().is_empty(), "{impostor:?}: it is of no cut off apply");
            assert!(undone(&lock, &apply_id(1).job).unwrap().is_empty(), "{impostor:?}");
            drop(lock);
            sandbox
        });
        assert_eq!(sandbox.picture(), before, "{impostor:?}");
        assert_eq!(sandbox.git_picture(), stages, "{impostor:?}: what an undo needs is kept");
        assert_eq!(std::fs::read(&moved).unwrap(), kept, "{impostor:?}: what it led to is as it was");
    }
}

#[test]
fn in_the_place_of_all_records_nothing_is_written() {
    for impostor in Impostor::ALL.into_iter().filter(|impostor| !matches!(impostor, Impostor::Directory)) {
        let sandbox = applied();
        let applies = sandbox.store.home().join(Area::Applies.name());
        impostor.take_the_place_of(&applies);
        let moved = applies.as_path().with_extension("moved");
        let before = sandbox.picture();
        let times = || std::fs::metadata(&moved).map(|found| (found.mtime_nsec(), found.ctime_nsec())).unwrap();
        let (kept, then) = (picture(&moved), times());
        let sandbox = promptly(move || {
            let lock = sandbox.lock();
            told(impostor, &applies, recover_with(&lock, Disk::new()).map(drop));
            told(impostor, &applies, finished(&lock, &apply_id(1)).map(drop));
            told(impostor, &applies, undo_with(&apply_id(1), &[], &lock, Disk::new()).map(drop));
            told(impostor, &applies, forget(&lock, &apply_id(1)));
            told(impostor, &applies, forget_of(&sandbox.store, Duration::ZERO, &|_| true).map(drop));
            told(impostor, &applies, interrupted(&sandbox.store).map(drop));
            drop(lock);
            told(impostor, &applies, sandbox.apply_as(2, &another(), &everything(), Disk::new(), || {}).map(drop));
            sandbox
        });
        assert_eq!(sandbox.picture(), before, "{impostor:?}");
        assert_eq!((picture(&moved), times()), (kept, then), "{impostor:?}: what it led to is as it was");
    }
}

#[test]
fn in_the_place_of_a_torn_record_all_but_a_directory_goes_and_that_is_named() {
    for impostor in Impostor::ALL {
        let (base, result) = every_kind();
        let sandbox = Sandbox::in_memory(&base);
        let torn = sandbox.lock().directory().path().join("intent.new");
        std::fs::write(&torn, "half a record").unwrap();
        impostor.take_the_place_of(&torn);
        let moved = torn.as_path().with_extension("moved");
        let (repaired, sandbox) = promptly(move || (recover_with(&sandbox.lock(), Disk::new()), sandbox));
        if let Impostor::Directory = impostor {
            let failure = Failure::from(repaired.unwrap_err());
            assert!(failure.message.contains(torn.as_path().to_str().unwrap()), "{failure:?}");
        } else {
            assert!(repaired.unwrap().is_empty() && torn.as_path().symlink_metadata().is_err(), "{impostor:?}");
            let captured = CapturedResult::between(&base, &result);
            sandbox.apply(&captured, &Selection::Paths(captured.paths())).unwrap();
            assert_eq!(sandbox.picture(), expected(&result), "{impostor:?}");
        }
        assert_eq!(std::fs::read(moved).unwrap(), b"half a record", "{impostor:?}: what it led to is as it was");
    }
}
