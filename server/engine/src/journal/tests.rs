//! What the journal promises, against real files.

mod crash;
mod space;

use std::os::unix::fs::FileExt;

use pactify_core::job::event::Known;

use super::*;
use crate::store::fixture::{Home, append, at, ended, message, started};

/// A journal of four records, closed.
fn four_records(home: &Home) -> (JobDir, Vec<Record>) {
    let (job, mut journal) = home.journal();
    for event in [started(), message("größer 🙂"), Known::CancelRequested, ended()] {
        append(&mut journal, event);
    }
    drop(journal);
    let records = read(&job).records;
    (job, records)
}

fn read(job: &JobDir) -> Batch {
    Reader::open(job).unwrap().read(usize::MAX).unwrap()
}

fn reopen(job: &JobDir) -> Result<Journal, JournalError> {
    Journal::open(job.lock(std::time::Duration::ZERO).unwrap())
}

#[test]
fn a_cut_anywhere_in_the_last_record_costs_that_record_and_nothing_else() {
    let home = Home::new();
    let (job, records) = four_records(&home);
    let whole = std::fs::read(job.journal()).unwrap();
    let last = whole[..whole.len() - 1].iter().rposition(|byte| *byte == b'\n').unwrap() + 1;
    for cut in last..whole.len() {
        std::fs::write(job.journal(), &whole[..cut]).unwrap();
        let seen = read(&job);
        assert_eq!(seen.records, records[..3], "cut at {cut}");
        let torn = Torn { line: 5, offset: last as u64, bytes: (cut - last) as u64 };
        let expected = if cut == last { End::Clean } else { End::Torn(torn.clone()) };
        assert_eq!(seen.end, expected, "cut at {cut}");

        let mut journal = reopen(&job).unwrap();
        assert_eq!(journal.torn(), (cut > last).then_some(&torn));
        append(&mut journal, message("after"));
        drop(journal);
        let seen = read(&job);
        assert_eq!((&seen.records[..3], seen.end), (&records[..3], End::Clean), "cut at {cut}");
        assert_eq!(seen.records[3].event, message("after").into());
        assert_eq!(seen.records[3].seq, Seq(4));
        if cut > last {
            assert_eq!(std::fs::read(job.path().join(TORN)).unwrap(), whole[last..cut], "the fragment is kept");
        }
    }
}

#[test]
fn a_flipped_bit_anywhere_is_seen_at_its_line_and_lines_before_it_are_intact() {
    let home = Home::new();
    let (job, records) = four_records(&home);
    let whole = std::fs::read(job.journal()).unwrap();
    let file = std::fs::File::options().write(true).open(job.journal()).unwrap();
    for (at, byte) in whole.iter().enumerate() {
        let line = whole[..at].iter().filter(|byte| **byte == b'\n').count();
        for mask in [0x01, 0xa0] {
            file.write_all_at(&[byte ^ mask], at as u64).unwrap();
            match Reader::open(&job).and_then(|mut reader| reader.read(usize::MAX)) {
                Ok(batch) => {
                    assert_eq!(batch.records, records[..line - 1], "byte {at} ^ {mask:#x}");
                    let seen_there = match batch.end {
                        End::Damaged(damage) => damage.line == line as u64 + 1,
                        End::Torn(torn) => torn.line == line as u64 + 1,
                        End::Clean | End::More => false,
                    };
                    assert!(seen_there, "byte {at} ^ {mask:#x}");
                }
                Err(JournalError::Damaged(damage)) => assert_eq!((damage.line, line), (1, 0)),
                Err(JournalError::Newer { .. }) => assert_eq!(line, 0),
                Err(error) => panic!("byte {at} ^ {mask:#x}: {error}"),
            }
        }
        file.write_all_at(&[*byte], at as u64).unwrap();
    }
    assert_eq!(read(&job).records, records);
}

#[test]
fn lines_that_were_removed_swapped_repeated_or_forged_are_seen() {
    let home = Home::new();
    let (job, records) = four_records(&home);
    let text = std::fs::read_to_string(job.journal()).unwrap();
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    let forged = lines[3].replace("cancelRequested", "discarded");
    let cases = [
        ("removed", vec![lines[0], lines[1], lines[3], lines[4]], 3),
        ("swapped", vec![lines[0], lines[2], lines[1], lines[3], lines[4]], 2),
        ("repeated", vec![lines[0], lines[1], lines[1], lines[2]], 3),
        ("forged", vec![lines[0], lines[1], lines[2], &forged, lines[4]], 4),
        ("without a sum", vec![lines[0], "{\"seq\":1}\n", lines[2]], 2),
        ("empty", vec![lines[0], lines[1], "\n", lines[2]], 3),
        ("spliced in the middle of a line", vec![lines[0], &lines[1][..20], lines[2], lines[3]], 2),
    ];
    for (what, lines, line) in cases {
        let damaged: String = lines.concat();
        std::fs::write(job.journal(), &damaged).unwrap();
        let seen = read(&job);
        assert_eq!(seen.records, records[..line - 2], "{what}");
        let End::Damaged(damage) = &seen.end else { panic!("{what}: {:?}", seen.end) };
        assert_eq!(damage.line, line as u64, "{what}");
        assert!(matches!(reopen(&job), Err(JournalError::Damaged(_))), "{what}: nobody appends behind damage");
        assert_eq!(std::fs::read_to_string(job.journal()).unwrap(), damaged, "{what}: nothing is repaired");
    }
}

#[test]
fn a_journal_without_a_whole_header_is_damaged_not_new() {
    let home = Home::new();
    let (job, _) = four_records(&home);
    for text in ["", "{\"pact", "\n", "hello\n", "{\"pactify\":\"journal\"}\n"] {
        std::fs::write(job.journal(), text).unwrap();
        let error = reopen(&job).unwrap_err();
        assert!(matches!(&error, JournalError::Damaged(Damage { line: 1, .. })), "{text:?}: {error}");
        assert_eq!(std::fs::read_to_string(job.journal()).unwrap(), text);
    }
    std::fs::remove_file(job.journal()).unwrap();
    assert!(matches!(reopen(&job), Err(JournalError::Missing { .. })));
    assert!(!job.journal().as_path().exists());
}

#[test]
fn a_newer_format_is_named_and_left_alone() {
    let home = Home::new();
    let (job, _) = four_records(&home);
    std::fs::write(job.journal(), "{\"pactify\":\"journal\",\"format\":2}\nbinary\n").unwrap();
    assert!(matches!(Reader::open(&job), Err(JournalError::Newer { format: 2, .. })));
    let failure = pactify_core::Failure::from(reopen(&job).unwrap_err());
    assert_eq!(failure.code, pactify_core::FailureCode::StoreNewer);
}

#[test]
fn events_of_a_newer_build_are_carried_along() {
    let home = Home::new();
    let (job, mut journal) = home.journal();
    let event: Event = serde_json::from_str(r#"{"type":"teleported","to":{"x":1}}"#).unwrap();
    journal.append(at(), AttemptNo::FIRST, event.clone()).unwrap();
    assert_eq!(read(&job).records[0].event, event);
}

#[test]
fn an_oversize_line_is_damage_and_is_not_read_into_memory() {
    let home = Home::new();
    let (job, records) = four_records(&home);
    let file = std::fs::File::options().append(true).open(job.journal()).unwrap();
    file.set_len(std::fs::metadata(job.journal()).unwrap().len() + (1 << 40)).unwrap();
    let seen = read(&job);
    assert_eq!(seen.records, records);
    assert!(matches!(seen.end, End::Damaged(Damage { line: 6, .. })), "{:?}", seen.end);
}

#[test]
fn whoever_writes_past_the_lock_is_noticed_by_the_writer() {
    let home = Home::new();
    let (job, mut journal) = home.journal();
    append(&mut journal, started());
    let length = std::fs::metadata(job.journal()).unwrap().len();
    std::fs::File::options().append(true).open(job.journal()).unwrap().write_all(b"{}\n").unwrap();
    let refused = journal.append(at(), AttemptNo::FIRST, message("x"));
    assert!(matches!(refused, Err(JournalError::Interfered { .. })), "{refused:?}");
    std::fs::File::options().write(true).open(job.journal()).unwrap().set_len(length).unwrap();
    append(&mut journal, message("x"));

    let copy = job.path().join("copy");
    std::fs::copy(job.journal(), &copy).unwrap();
    std::fs::rename(&copy, job.journal()).unwrap();
    let refused = journal.append(at(), AttemptNo::FIRST, message("y"));
    assert!(matches!(refused, Err(JournalError::Replaced { .. })), "{refused:?}");
    std::fs::remove_file(job.journal()).unwrap();
    let refused = journal.append(at(), AttemptNo::FIRST, message("y"));
    assert!(matches!(refused, Err(JournalError::Missing { .. })), "{refused:?}");
}

#[test]
fn a_reader_goes_on_where_it_stood_and_notices_what_was_done_to_the_file() {
    let home = Home::new();
    let (job, mut journal) = home.journal();
    append(&mut journal, started());
    for text in ["a", "b", "c"] {
        append(&mut journal, message(text));
    }
    let mut reader = Reader::open(&job).unwrap();
    let first = reader.read(2).unwrap();
    assert_eq!((first.records.len(), first.end), (2, End::More));
    let mut resumed = Reader::resume(&job, reader.cursor()).unwrap();
    assert_eq!(resumed.read(usize::MAX).unwrap().records[0].seq, Seq(3));
    let mut skipped = Reader::open(&job).unwrap();
    assert_eq!(skipped.skip_to(Seq(3)).unwrap(), End::More);
    assert_eq!(skipped.read(usize::MAX).unwrap().records[0].seq, Seq(4));
    assert_eq!(skipped.skip_to(Seq(99)).unwrap(), End::Clean);

    let file = std::fs::File::options().write(true).open(job.journal()).unwrap();
    file.set_len(10).unwrap();
    assert!(matches!(reader.read(1), Err(JournalError::Truncated { found: 10, .. })));
    assert!(matches!(Reader::resume(&job, reader.cursor()), Err(JournalError::Truncated { .. })));
    std::fs::rename(job.journal(), job.path().join("old")).unwrap();
    assert!(matches!(reader.read(1), Err(JournalError::Missing { .. })));
    std::fs::write(job.journal(), "").unwrap();
    assert!(matches!(reader.read(1), Err(JournalError::Replaced { .. })));
}

#[test]
fn every_reader_sees_a_prefix_while_the_writer_writes() {
    const RECORDS: usize = 240;
    let home = Home::new();
    let (job, mut journal) = home.journal();
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(60);
    let seen: Vec<Vec<Record>> = std::thread::scope(|scope| {
        let readers: Vec<_> = (1..=3)
            .map(|limit| {
                let job = job.clone();
                scope.spawn(move || {
                    let mut follower = Follower::new(Reader::open(&job).unwrap());
                    let mut seen = Vec::new();
                    while seen.len() < RECORDS {
                        match follower.wait(limit * 5, deadline).unwrap() {
                            Waited::News(batch) => {
                                assert!(!matches!(batch.end, End::Damaged(_)), "{:?}", batch.end);
                                seen.extend(batch.records);
                            }
                            Waited::TimedOut => panic!("{} of {RECORDS} records in time", seen.len()),
                        }
                        let fresh = read(&job);
                        assert!(!matches!(fresh.end, End::Damaged(_)), "{:?}", fresh.end);
                        assert!(fresh.records.starts_with(&seen), "what is read once stays");
                    }
                    seen
                })
            })
            .collect();
        append(&mut journal, started());
        let mut written = 1;
        while written < RECORDS {
            let count = (written % 7 + 1).min(RECORDS - written);
            let events = (0..count).map(|n| Event::from(message(&"x".repeat(written + n))));
            journal.append_all(at(), AttemptNo::FIRST, events).unwrap();
            written += count;
        }
        readers.into_iter().map(|reader| reader.join().unwrap()).collect()
    });
    let all = read(&job).records;
    assert_eq!(all.len(), RECORDS);
    assert!(seen.iter().all(|seen| *seen == all));
}

#[test]
fn room_that_was_kept_is_given_back_at_the_end() {
    use std::os::unix::fs::MetadataExt;
    let home = Home::new();
    let (job, mut journal) = home.journal();
    append(&mut journal, started());
    let allocated = |job: &JobDir| std::fs::metadata(job.journal()).unwrap().blocks() * 512;
    let kept = allocated(&job) >= room::RESERVE;
    assert_eq!(kept, matches!(journal.room, Room::UpTo(_)), "where the file system can, room is kept");
    append(&mut journal, ended());
    assert!(allocated(&job) < room::RESERVE);
}
