//! Locks, sockets and records of a job, also where something else stands in their place.

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::process::Stdio;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use pactify_core::job::state::Host;

use super::*;
use crate::store::fixture::{self, Home, Impostor, promptly};

const NO_PATIENCE: Duration = Duration::ZERO;

#[test]
fn one_holder_at_a_time() {
    let home = Home::new();
    let (job, lock) = home.job();
    assert_eq!(job.host().unwrap(), Host::Alive);
    assert!(matches!(job.lock(NO_PATIENCE), Err(LockError::Busy { .. })));
    drop(lock);
    assert_eq!(job.host().unwrap(), Host::Gone);
    job.lock(NO_PATIENCE).unwrap();
}

#[test]
fn the_lock_of_a_killed_process_is_free() {
    if let Some(home) = fixture::given_home() {
        let store = fixture::store(&home);
        let _lock = store.job(&fixture::ID.parse().unwrap()).unwrap().lock(NO_PATIENCE).unwrap();
        println!("\nheld");
        std::io::stdin().read_to_end(&mut Vec::new()).unwrap();
        return;
    }
    let home = Home::new();
    let (job, lock) = home.job();
    drop(lock);
    let mut child =
        fixture::child("job_dir::tests::the_lock_of_a_killed_process_is_free", home.store.home().as_path(), None)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    assert!(lines.map_while(Result::ok).any(|line| line == "held"));
    assert_eq!(job.host().unwrap(), Host::Alive);
    assert!(matches!(job.lock(NO_PATIENCE), Err(LockError::Busy { .. })));
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(job.host().unwrap(), Host::Gone);
    job.lock(NO_PATIENCE).unwrap();
}

#[test]
fn probes_never_make_a_writer_fail() {
    let home = Home::new();
    let (job, lock) = home.job();
    drop(lock);
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while !done.load(Ordering::Relaxed) {
                    job.host().unwrap();
                }
            });
        }
        for _ in 0..300 {
            let locked = job.lock(NO_PATIENCE);
            if locked.is_err() {
                done.store(true, Ordering::Relaxed);
            }
            locked.unwrap();
        }
        done.store(true, Ordering::Relaxed);
    });
}

#[test]
fn a_probe_that_does_not_end_is_waited_for() {
    let home = Home::new();
    let (job, lock) = home.job();
    drop(lock);
    let probe = job.dir().file(names::LOCK, crate::disk::Open::Read).unwrap();
    probe.lock_shared().unwrap();
    std::thread::scope(|scope| {
        let (done, told) = std::sync::mpsc::channel();
        let job = &job;
        scope.spawn(move || done.send(job.lock(NO_PATIENCE).map(drop)));
        let early = told.recv_timeout(Duration::from_millis(300));
        assert!(early.is_err(), "{early:?}");
        drop(probe);
        told.recv().unwrap().unwrap();
    });
}

#[test]
fn a_lock_that_is_handed_over_stays_held() {
    let home = Home::new();
    let (job, lock) = home.job();
    let file = lock.into_file();
    rustix::io::fcntl_setfd(&file, rustix::io::FdFlags::empty()).unwrap();
    assert_eq!(job.host().unwrap(), Host::Alive);
    let lock = JobLock::from_file(&job, file).unwrap();
    assert!(matches!(job.lock(NO_PATIENCE), Err(LockError::Busy { .. })));
    assert!(rustix::io::fcntl_getfd(lock.into_file()).unwrap().contains(rustix::io::FdFlags::CLOEXEC));
}

#[test]
fn descriptors_that_are_not_the_held_lock_are_refused() {
    let home = Home::new();
    let (job, lock) = home.job();
    let (other, other_lock) = home.store.create_job(&fixture::spec("20261129-154512-bbbbbb")).unwrap();
    let open = |job: &JobDir, name| job.dir().file(name, crate::disk::Open::Append).unwrap();

    let spec = JobLock::from_file(&job, open(&job, names::SPEC));
    assert!(matches!(spec, Err(LockError::AnotherFile { .. })), "{spec:?}");
    let of_another_job = JobLock::from_file(&job, other_lock.into_file());
    assert!(matches!(of_another_job, Err(LockError::AnotherFile { .. })), "{of_another_job:?}");
    let held_by_somebody_else = JobLock::from_file(&job, open(&job, names::LOCK));
    assert!(matches!(held_by_somebody_else, Err(LockError::NotHeld { .. })), "{held_by_somebody_else:?}");
    let held_by_nobody = JobLock::from_file(&other, open(&other, names::LOCK));
    assert!(matches!(held_by_nobody, Err(LockError::NotHeld { .. })), "{held_by_nobody:?}");
    drop(lock);
}

#[test]
fn a_job_that_was_removed_or_replaced_cannot_be_locked() {
    let home = Home::new();
    let (job, lock) = home.job();
    drop(lock);
    let trash = home.store.area(crate::store::Area::Trash).unwrap();
    std::fs::rename(job.path(), trash.path().as_path().join("gone")).unwrap();
    assert!(matches!(job.lock(NO_PATIENCE), Err(LockError::Gone { .. })));
    let _again = home.job();
    assert!(matches!(job.lock(NO_PATIENCE), Err(LockError::Gone { .. })));
}

#[test]
fn the_socket_works_below_paths_of_any_length() {
    let home = Home::new();
    let deep = home.dir.path().join("d".repeat(200)).join("e".repeat(200));
    let store = fixture::store(&deep);
    let (job, lock) = store.create_job(&fixture::spec(fixture::ID)).unwrap();
    let too_long = std::os::unix::net::UnixListener::bind(job.socket());
    assert!(too_long.is_err(), "the plain path must be too long for this test to mean anything");

    assert!(matches!(socket::connect(&job), Err(socket::SocketError::NobodyListens { .. })));
    let listener = socket::bind(&lock).unwrap();
    assert_eq!(std::fs::metadata(job.socket()).unwrap().permissions().mode() & 0o777, 0o600);
    let mut client = socket::connect(&job).unwrap();
    let (mut server, _) = listener.accept().unwrap();
    socket::check_peer(&job, &server).unwrap();
    client.write_all(b"hello").unwrap();
    drop(client);
    let mut said = String::new();
    server.read_to_string(&mut said).unwrap();
    assert_eq!(said, "hello");

    drop((listener, server));
    assert!(matches!(socket::connect(&job), Err(socket::SocketError::NobodyListens { .. })));
    socket::bind(&lock).expect("a dead host's socket is replaced");
}

#[test]
fn whatever_stands_in_place_of_the_socket_is_neither_used_nor_removed() {
    let home = Home::new();
    let (job, lock) = home.job();
    std::fs::write(job.socket(), "mine").unwrap();
    for refused in [socket::bind(&lock).map(drop), socket::connect(&job).map(drop)] {
        let wrong = matches!(refused, Err(socket::SocketError::Disk(DiskError::WrongKind { .. })));
        assert!(wrong, "{refused:?}");
    }
    assert_eq!(std::fs::read_to_string(job.socket()).unwrap(), "mine");
}

#[test]
fn specs_that_are_newer_or_damaged_are_named_as_such() {
    let home = Home::new();
    let (job, _lock) = home.job();
    let text = std::fs::read_to_string(job.path().join("job.json")).unwrap();
    let other = text.replace(fixture::ID, "20261129-154512-bbbbbb");
    let cases = [
        (r#"{"format":2,"anything":"else"}"#.to_owned(), "newer pactify (format 2)"),
        (text.replace(r#""format": 1"#, r#""format": 18446744073709551615"#), "newer pactify"),
        (String::new(), "is damaged"),
        (text[..text.len() / 2].to_owned(), "is damaged"),
        (other, "names job 20261129-154512-bbbbbb"),
    ];
    for (spec, expected) in cases {
        std::fs::write(job.path().join("job.json"), spec).unwrap();
        let error = job.spec().unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
}

#[test]
fn nothing_but_a_file_of_ours_is_read_or_waited_for() {
    for name in [names::SPEC, names::JOURNAL, names::LOCK] {
        for impostor in Impostor::ALL {
            let home = Home::new();
            let (job, lock) = home.job();
            drop(lock);
            impostor.take_the_place_of(&job.path().join(name));
            assert!(impostor.fools_a_plain_read(&job.path().join(name)), "{name} {impostor:?} is harmless");
            let refused = promptly(move || match name {
                names::SPEC => job.spec().map(drop).map_err(|error| error.to_string()),
                names::JOURNAL => crate::journal::Reader::open(&job).map(drop).map_err(|error| error.to_string()),
                _ => job.lock(NO_PATIENCE).map(drop).map_err(|error| error.to_string()),
            });
            let text = refused.expect_err(&format!("{name} {impostor:?}"));
            assert!(text.contains(name) && text.contains(impostor.called()), "{name} {impostor:?}: {text}");
        }
    }
}
