//! What ends the wait for news of a journal.

use std::sync::mpsc;

use super::*;
use crate::journal::End;
use crate::store::fixture::{Home, append, message, started};

fn soon() -> Instant {
    Instant::now() + Duration::from_secs(60)
}

#[test]
fn news_end_the_wait_with_and_without_inotify() {
    for watched in [true, false] {
        let home = Home::new();
        let (job, mut journal) = home.journal();
        let mut follower = Follower::new(Reader::open(&job).unwrap());
        if !watched {
            follower.watch = None;
        }
        assert_eq!(follower.wakeup().is_some(), watched);
        let (waiting, told) = mpsc::channel();
        let waiter = std::thread::spawn(move || {
            waiting.send(()).unwrap();
            follower.wait(10, soon())
        });
        told.recv().unwrap();
        append(&mut journal, started());
        let Waited::News(batch) = waiter.join().unwrap().unwrap() else { panic!("timed out") };
        assert_eq!((batch.records.len(), batch.end), (1, End::Clean));
    }
}

#[test]
fn inotify_wakes_earlier_than_looking_would() {
    let home = Home::new();
    let (job, mut journal) = home.journal();
    let mut follower = Follower::new(Reader::open(&job).unwrap());
    assert!(follower.read(10).unwrap().records.is_empty());
    append(&mut journal, started());
    let watch = follower.wakeup().unwrap();
    let now = Timespec { tv_sec: 0, tv_nsec: 0 };
    assert_eq!(poll(&mut [PollFd::from_borrowed_fd(watch, PollFlags::IN)], Some(&now)), Ok(1));
    assert_eq!(follower.read(10).unwrap().records.len(), 1);
    let watch = follower.wakeup().unwrap();
    assert_eq!(poll(&mut [PollFd::from_borrowed_fd(watch, PollFlags::IN)], Some(&now)), Ok(0), "it is rearmed");
}

#[test]
fn a_deadline_ends_the_wait() {
    let home = Home::new();
    let (job, _journal) = home.journal();
    let mut follower = Follower::new(Reader::open(&job).unwrap());
    let waited = follower.wait(10, Instant::now() + Duration::from_millis(30)).unwrap();
    assert!(matches!(waited, Waited::TimedOut), "{waited:?}");
}

#[test]
fn removal_replacement_and_truncation_end_the_wait() {
    type Deed = fn(&std::path::Path);
    let deeds: [(&str, Deed); 3] = [
        ("missing", |path| std::fs::remove_file(path).unwrap()),
        ("replaced", |path| {
            let copy = path.with_extension("copy");
            std::fs::copy(path, &copy).unwrap();
            std::fs::rename(copy, path).unwrap();
        }),
        ("cut", |path| std::fs::File::options().write(true).open(path).unwrap().set_len(5).unwrap()),
    ];
    for (expected, deed) in deeds {
        let home = Home::new();
        let (job, mut journal) = home.journal();
        append(&mut journal, message("x"));
        let mut follower = Follower::new(Reader::open(&job).unwrap());
        follower.read(10).unwrap();
        let (waiting, told) = mpsc::channel();
        let waiter = std::thread::spawn(move || {
            waiting.send(()).unwrap();
            follower.wait(10, soon())
        });
        told.recv().unwrap();
        deed(job.journal().as_path());
        let error = waiter.join().unwrap().unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
}
