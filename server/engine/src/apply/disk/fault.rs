//! Ends the process at a chosen call, makes it fail, lets something else happen there, or writes down every call. For
//! tests only.
//!
//! What is recorded is enough to rebuild, from a copy of the starting state, every state that a power failure can
//! leave behind: which calls were made, with which bytes, and where synchronisation made them durable.

use std::cell::RefCell;
use std::ffi::OsStr;
use std::os::fd::{AsRawFd as _, BorrowedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::PathBuf;

use super::{At, Call};

/// A moment in a series of calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moment {
    /// Just before the call of this number, from 1.
    Before(u64),
    /// Just after it.
    After(u64),
}

/// One call that succeeded.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "each is the system call of that name")]
pub enum Logged {
    Create(PathBuf),
    Write(PathBuf, Vec<u8>),
    SetMode(PathBuf, u32),
    SetGroup(PathBuf),
    MakeDirectory(PathBuf, u32),
    MakeLink(PathBuf, Vec<u8>),
    HardLink(PathBuf, PathBuf),
    Rename(PathBuf, PathBuf),
    Exchange(PathBuf, PathBuf),
    Unlink(PathBuf),
    RemoveDirectory(PathBuf),
    Sync(PathBuf),
    SyncFileSystem(PathBuf),
}

struct Watch {
    due: Option<(Moment, Due)>,
    calls: u64,
    log: Option<Vec<Logged>>,
}

enum Due {
    End,
    Fail(rustix::io::Errno),
    Happen(Box<dyn FnOnce()>),
}

thread_local! {
    // One per thread: an apply runs on the thread that called it, and tests run beside each other.
    static WATCH: RefCell<Watch> = const { RefCell::new(Watch { due: None, calls: 0, log: None }) };
}

/// Ends this process by `SIGKILL` at the given call of this thread, counted from now.
pub fn kill_at(moment: Moment) {
    watch(|watch| (watch.due, watch.calls) = (Some((moment, Due::End)), 0));
}

/// Has something happen at the given call of this thread, counted from now.
pub fn happen_at(moment: Moment, what: impl FnOnce() + 'static) {
    watch(|watch| (watch.due, watch.calls) = (Some((moment, Due::Happen(Box::new(what)))), 0));
}

/// Has the given call of this thread, counted from now, fail without being made.
pub fn fail_at(call: u64, error: rustix::io::Errno) {
    watch(|watch| (watch.due, watch.calls) = (Some((Moment::Before(call), Due::Fail(error))), 0));
}

/// Whether what was to happen has not.
pub fn is_due() -> bool {
    watch(|watch| watch.due.take().is_some())
}

/// Writes down all calls of this thread from now on.
pub fn record() {
    watch(|watch| (watch.log, watch.calls) = (Some(vec![]), 0));
}

/// The calls written down since [`record`], which ends.
pub fn recorded() -> Vec<Logged> {
    watch(|watch| watch.log.take().unwrap_or_default())
}

pub(super) fn around<T>(call: Call<'_>, run: impl FnOnce() -> rustix::io::Result<T>) -> rustix::io::Result<T> {
    let (number, recording) = watch(|watch| {
        watch.calls += 1;
        (watch.calls, watch.log.is_some())
    });
    let entry = recording.then(|| logged(call));
    reach(Moment::Before(number))?;
    let result = run();
    reach(Moment::After(number))?;
    if let (Some(entry), true) = (entry, result.is_ok()) {
        watch(|watch| watch.log.get_or_insert_default().push(entry));
    }
    result
}

fn reach(moment: Moment) -> rustix::io::Result<()> {
    let due = watch(|watch| watch.due.take_if(|(due, _)| *due == moment));
    match due {
        None => Ok(()),
        Some((_, Due::Fail(error))) => Err(error),
        Some((_, Due::Happen(what))) => {
            what();
            Ok(())
        }
        Some((_, Due::End)) => {
            let _ = rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL);
            // Not reached: the signal is delivered before the call returns.
            std::process::abort();
        }
    }
}

fn logged(call: Call<'_>) -> Logged {
    match call {
        Call::Create(at) => Logged::Create(path_at(at)),
        Call::Write(file, bytes) => Logged::Write(path_of(file), bytes.to_vec()),
        Call::SetMode(file, mode) => Logged::SetMode(path_of(file), mode),
        Call::SetGroup(file) => Logged::SetGroup(path_of(file)),
        Call::MakeDirectory(at, mode) => Logged::MakeDirectory(path_at(at), mode),
        Call::MakeLink(at, target) => Logged::MakeLink(path_at(at), target.to_vec()),
        Call::HardLink(from, to) => Logged::HardLink(path_at(from), path_at(to)),
        Call::Rename(from, to) => Logged::Rename(path_at(from), path_at(to)),
        Call::Exchange(from, to) => Logged::Exchange(path_at(from), path_at(to)),
        Call::Unlink(at) => Logged::Unlink(path_at(at)),
        Call::RemoveDirectory(at) => Logged::RemoveDirectory(path_at(at)),
        Call::Sync(file) => Logged::Sync(path_of(file)),
        Call::SyncFileSystem(file) => Logged::SyncFileSystem(path_of(file)),
    }
}

fn path_at(at: At<'_>) -> PathBuf {
    path_of(at.dir).join(OsStr::from_bytes(at.name))
}

fn path_of(file: BorrowedFd<'_>) -> PathBuf {
    let link = format!("/proc/self/fd/{}", file.as_raw_fd());
    std::fs::read_link(link).expect("an open descriptor has a link in /proc")
}

fn watch<T>(look: impl FnOnce(&mut Watch) -> T) -> T {
    WATCH.with_borrow_mut(look)
}
