//! Whatever is in a journal and whatever happens to its bytes: what is read is the beginning of what was written, the
//! same in pages of any size; a harmed journal is never appended to, a torn one is set right and goes on.

#![no_main]

use std::fs;
use std::sync::OnceLock;
use std::time::Duration;

use libfuzzer_sys::arbitrary::{self, Arbitrary};
use libfuzzer_sys::fuzz_target;
use pactify_core::job::event::{Event, Known, Record};
use pactify_core::job::state::JobState;
use pactify_core::{AbsPath, AttemptNo};
use pactify_engine::job_dir::JobDir;
use pactify_engine::journal::{End, Journal, JournalError, Reader, line};
use pactify_engine::store::Store;

#[derive(Arbitrary, Debug)]
struct Input<'a> {
    /// Events as JSON, or else the words of a message; each with its attempt.
    events: Vec<(u8, &'a str)>,
    harm: Harm<'a>,
    page: u8,
}

/// What happens to the bytes.
#[derive(Arbitrary, Debug)]
enum Harm<'a> {
    None,
    /// Only this many are left.
    Cut(u32),
    /// One is another one.
    Flip(u32, u8),
    /// These are put in.
    Insert(u32, &'a [u8]),
    /// They are these.
    Replace(&'a [u8]),
}

fuzz_target!(|input: Input<'_>| {
    let job = job();
    let (whole, written) = write(job, &input.events);
    let bytes = harmed(whole.clone(), &input.harm);
    fs::write(job.journal(), &bytes).unwrap();

    let read = read(job, usize::MAX);
    let paged = read_in_pages(job, usize::from(input.page).max(1));
    assert_eq!(read.is_ok(), paged.is_ok());
    let Ok((records, end)) = read else {
        assert_ne!(bytes, whole, "a whole journal is refused");
        assert!(open(job).is_err());
        return;
    };
    let (in_pages, end_of_pages) = paged.unwrap();
    assert_eq!((seqs(&in_pages), &end_of_pages), (seqs(&records), &end));
    assert_eq!(seqs(&records), (1..=records.len() as u64).collect::<Vec<_>>());
    let state = JobState::fold(&records);
    assert_eq!(state.last.0, records.len() as u64);
    if bytes == whole {
        assert_eq!((records.len(), &end), (written, &End::Clean));
    }
    match (end, open(job)) {
        (End::Damaged(_), opened) => assert!(opened.is_err()),
        (_, Ok(mut journal)) => {
            let event = Known::Message { text: "on".to_owned() };
            let seq = journal.append("2026-11-29T00:00:00Z".parse().unwrap(), AttemptNo::FIRST, event).unwrap();
            assert_eq!(seq.0, records.len() as u64 + 1);
            drop(journal);
            let (after, end) = self::read(job, usize::MAX).unwrap();
            assert_eq!((after.len(), end), (records.len() + 1, End::Clean));
        }
        (end, Err(error)) => panic!("{end:?}: {error}"),
    }
});

/// A journal of these events, and how many records it has.
fn write(job: &JobDir, events: &[(u8, &str)]) -> (Vec<u8>, usize) {
    let (mut bytes, mut sum) = line::header(job.id());
    for (seq, (attempt, text)) in (1_u64..).zip(events) {
        let message = || Known::Message { text: (*text).to_owned() }.into();
        let event: Event = serde_json::from_str(text).unwrap_or_else(|_| message());
        let record = serde_json::json!({
            "seq": seq, "at": "2026-11-29T00:00:00Z", "attempt": u32::from(*attempt) + 1, "event": event,
        });
        sum = line::append(&mut bytes, serde_json::from_value(record).unwrap(), sum).1;
    }
    (bytes, events.len())
}

fn harmed(mut bytes: Vec<u8>, harm: &Harm<'_>) -> Vec<u8> {
    let at = |at: u32, bytes: &[u8]| usize::try_from(at).unwrap() % bytes.len();
    match harm {
        Harm::None => {}
        Harm::Cut(length) => bytes.truncate(at(*length, &bytes)),
        Harm::Flip(place, change) => {
            let place = at(*place, &bytes);
            bytes[place] ^= change;
        }
        Harm::Insert(place, more) => {
            let place = at(*place, &bytes);
            bytes.splice(place..place, more.iter().copied());
        }
        Harm::Replace(others) => bytes = others.to_vec(),
    }
    bytes
}

fn read(job: &JobDir, limit: usize) -> Result<(Vec<Record>, End), JournalError> {
    let batch = Reader::open(job)?.read(limit)?;
    Ok((batch.records, batch.end))
}

fn read_in_pages(job: &JobDir, size: usize) -> Result<(Vec<Record>, End), JournalError> {
    let mut reader = Reader::open(job)?;
    let mut records = Vec::new();
    loop {
        let batch = reader.read(size)?;
        records.extend(batch.records);
        if batch.end != End::More {
            return Ok((records, batch.end));
        }
    }
}

fn seqs(records: &[Record]) -> Vec<u64> {
    records.iter().map(|record| record.seq.0).collect()
}

fn open(job: &JobDir) -> Result<Journal, JournalError> {
    Journal::open(job.lock(Duration::from_secs(5)).unwrap())
}

/// The one job of this process, whose journal is written over and over.
fn job() -> &'static JobDir {
    static JOB: OnceLock<(JobDir, tempfile::TempDir)> = OnceLock::new();
    let (job, _) = JOB.get_or_init(|| {
        let home = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap();
        let store = Store::open(&AbsPath::new(home.path().canonicalize().unwrap()).unwrap()).unwrap();
        let zeros = "0".repeat(40);
        let spec = serde_json::from_value(serde_json::json!({
            "format": 1, "id": "20261129-154512-aaaaaa", "createdAt": "2026-11-29T00:00:00Z", "brief": "Fix it.",
            "harness": "codex", "executable": "/opt/codex", "settings": {}, "access": "write", "isolation": "private",
            "repository": {"worktree": "/r", "gitDir": "/r/.git", "commonDir": "/r/.git"},
            "base": {"kind": "head", "commit": zeros, "tree": zeros},
            "limits": {"totalSeconds": 1, "stallSeconds": 1}, "writtenBy": "0.1.0",
        }));
        (store.create_job(&spec.unwrap()).unwrap().0, home)
    });
    job
}
