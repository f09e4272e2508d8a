//! A disk that is really full: a small tmpfs in a mount namespace of the test's own.

use std::path::Path;

use super::*;
use crate::store::fixture::{self, fill};

#[test]
fn on_a_full_disk_a_job_can_still_say_how_it_ended() {
    const NAME: &str = "journal::tests::space::on_a_full_disk_a_job_can_still_say_how_it_ended";
    if let Some(home) = fixture::given_home() {
        fill_and_go_on(&home);
        fill_without_room(&home);
        return;
    }
    fixture::on_a_small_disk(NAME, "size=2m");
}

fn fill_and_go_on(disk: &Path) {
    let store = fixture::store(&disk.join("home"));
    let (job, lock) = store.create_job(&fixture::spec(fixture::ID)).unwrap();
    let mut journal = Journal::open(lock).unwrap();
    append(&mut journal, started());
    fill(disk);

    let mut chatter = 0;
    let refused = loop {
        match journal.append(at(), AttemptNo::FIRST, message(&"x".repeat(3000))) {
            Ok(_) => chatter += 1,
            Err(error) => break error,
        }
    };
    assert!(matches!(refused, JournalError::NoSpace { written: 0, .. }), "{refused:?}");
    assert!(chatter > 0, "there was room for some");
    assert_eq!((read(&job).records.len(), read(&job).end), (1 + chatter, End::Clean));

    // A milestone that is too long even for the reserve leaves nothing behind.
    let (request, title) = ("r".into(), "y".repeat(200_000));
    let notice = Known::PermissionRequested { request, title, detail: None, options: vec![] };
    let refused = journal.append(at(), AttemptNo::FIRST, notice).unwrap_err();
    assert!(matches!(refused, JournalError::NoSpace { written: 0, .. }), "{refused:?}");
    assert_eq!((read(&job).records.len(), read(&job).end), (1 + chatter, End::Clean));
    let failure = pactify_core::Failure::from(refused);
    assert_eq!(failure.code, pactify_core::FailureCode::NoSpace);

    journal.append(at(), AttemptNo::FIRST, ended()).expect("the end fits into the reserve");
    let (_, seen) = store.seen(job.id()).unwrap();
    assert_eq!(seen, pactify_core::job::state::SeenState::Finished);
}

/// The same where a file system cannot keep room: what did not fit is cut off again, and nothing fuses with it.
fn fill_without_room(disk: &Path) {
    std::fs::remove_file(disk.join("filler")).unwrap();
    let (job, lock) = fixture::store(&disk.join("home")).create_job(&fixture::spec("20261129-154512-bbbbbb")).unwrap();
    let mut journal = Journal::open(lock).unwrap();
    journal.room.give_back(&journal.file, journal.cursor.offset());
    journal.room = Room::Unsupported;
    append(&mut journal, started());
    fill(disk);
    let batch = || (0..3).map(|_| Event::from(message(&"x".repeat(3000))));
    let written = loop {
        match journal.append_all(at(), AttemptNo::FIRST, batch()) {
            Ok(_) => {}
            Err(JournalError::NoSpace { written, .. }) => break written,
            Err(error) => panic!("{error}"),
        }
    };
    assert!(written < 3);
    let seen = read(&job);
    assert_eq!((seen.records.len() as u64, seen.end), (journal.cursor.seq().0, End::Clean));
    assert_eq!(seen.records.len() % 3, (1 + written) % 3, "whole lines of the last batch stay");
    std::fs::remove_file(disk.join("filler")).unwrap();
    append(&mut journal, ended());
    assert_eq!(read(&job).records.last().map(|record| record.event.clone()), Some(ended().into()));
}
