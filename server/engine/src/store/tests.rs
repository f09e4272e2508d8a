//! What the store promises, against real directories.

use std::path::Path;

use pactify_core::job::event::{AttemptReason, Event, HostRecord, Known, ProcessRecord};
use pactify_core::job::outcome::Outcome;
use pactify_core::job::state::SeenState;
use pactify_core::job::{Base, Isolation, JobSpec, Limits, RepositoryRecord, SPEC_FORMAT};
use pactify_core::{AttemptNo, Seq};

use super::*;
use crate::journal::{End, Journal, Reader};

pub(crate) fn store(home: &Path) -> Store {
    Store::open(&AbsPath::new(home).unwrap()).unwrap()
}

pub(crate) fn spec(id: &str) -> JobSpec {
    let path = |text: &str| AbsPath::new(text).unwrap();
    JobSpec {
        format: SPEC_FORMAT,
        id: id.parse().unwrap(),
        created_at: at(),
        brief: pactify_core::brief::Brief::new("# Fix the parser\n\nIt fails.").unwrap(),
        harness: "codex".parse().unwrap(),
        executable: path("/usr/bin/codex"),
        settings: Default::default(),
        model: None,
        access: serde_json::from_value("write".into()).unwrap(),
        isolation: Isolation::Private,
        repository: RepositoryRecord {
            worktree: path("/src/project"),
            git_dir: path("/src/project/.git"),
            common_dir: path("/src/project/.git"),
            prefix: String::new(),
        },
        base: Base {
            kind: Default::default(),
            commit: "a".repeat(40).parse().unwrap(),
            tree: "b".repeat(40).parse().unwrap(),
        },
        limits: Limits::default(),
        retry_of: None,
        written_by: "0.1.0".into(),
        unknown: Default::default(),
    }
}

pub(crate) fn at() -> jiff::Timestamp {
    "2026-11-29T15:45:12Z".parse().unwrap()
}

pub(crate) fn started() -> Known {
    let process = ProcessRecord { pid: 1, start_time: 2, boot_id: "boot".into() };
    Known::AttemptStarted { reason: AttemptReason::Run, host: HostRecord { process, version: "0.1.0".into() } }
}

pub(crate) fn ended() -> Known {
    Known::AttemptEnded { outcome: Outcome::NoChanges, failure: None, final_message: Some("done".into()) }
}

pub(crate) const ID: &str = "20261129-154512-aaaaaa";

#[test]
fn a_job_is_created_appended_to_and_read_back() {
    let home = tempfile::tempdir().unwrap();
    let store = store(&home.path().join("home"));
    let (job, lock) = store.create_job(&spec(ID)).unwrap();
    assert_eq!(store.seen(job.id()).unwrap().1, SeenState::Queued);

    let mut journal = Journal::open(lock).unwrap();
    journal.append(at(), AttemptNo::FIRST, started()).unwrap();
    let chatter = ["a", "b"].map(|text| Event::from(Known::Message { text: text.into() }));
    assert_eq!(journal.append_all(at(), AttemptNo::FIRST, chatter).unwrap(), Seq(3));
    assert_eq!(store.seen(job.id()).unwrap().1, SeenState::Preparing);
    journal.append(at(), AttemptNo::FIRST, ended()).unwrap();
    assert_eq!(journal.state(), &store.state(job.id()).unwrap().state);
    drop(journal);

    let batch = Reader::open(&job).unwrap().read(usize::MAX).unwrap();
    assert_eq!((batch.records.len(), batch.end), (4, End::Clean));
    let (snapshot, seen) = store.seen(job.id()).unwrap();
    assert_eq!(seen, SeenState::Finished);
    assert_eq!(*snapshot.spec, spec(ID));
}
