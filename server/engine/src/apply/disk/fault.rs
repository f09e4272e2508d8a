//! Ends the process at a chosen call, or writes down every call. For tests only.
//!
//! What is recorded is enough to rebuild, from a copy of the starting state, every state that a power failure can
//! leave behind: which calls were made, with which bytes, and where synchronisation made them durable.

use std::ffi::OsStr;
use std::os::fd::{AsRawFd as _, BorrowedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard};

use super::{At, Call};

/// When the process ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kill {
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

#[derive(Debug, Default)]
struct Watch {
    kill: Option<Kill>,
    calls: u64,
    log: Option<Vec<Logged>>,
}

static WATCH: Mutex<Watch> = Mutex::new(Watch { kill: None, calls: 0, log: None });

/// Ends this process by `SIGKILL` at the given call from now on.
pub fn kill_at(kill: Kill) {
    let mut watch = watch();
    (watch.kill, watch.calls) = (Some(kill), 0);
}

/// Writes down all calls from now on.
pub fn record() {
    let mut watch = watch();
    (watch.log, watch.calls) = (Some(vec![]), 0);
}

/// The calls written down since [`record`], which ends.
pub fn recorded() -> Vec<Logged> {
    watch().log.take().unwrap_or_default()
}

/// How many calls were made since [`record`] or [`kill_at`].
pub fn calls() -> u64 {
    watch().calls
}

pub(super) fn around<T>(call: Call<'_>, run: impl FnOnce() -> rustix::io::Result<T>) -> rustix::io::Result<T> {
    let number = {
        let mut watch = watch();
        watch.calls += 1;
        watch.calls
    };
    let entry = watch().log.is_some().then(|| logged(call));
    end_if(Kill::Before(number));
    let result = run();
    end_if(Kill::After(number));
    if let (Some(entry), true) = (entry, result.is_ok())
        && let Some(log) = &mut watch().log
    {
        log.push(entry);
    }
    result
}

fn end_if(moment: Kill) {
    if watch().kill == Some(moment) {
        let _ = rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL);
        // Not reached: the signal is delivered before the call returns.
        std::process::abort();
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

fn watch() -> MutexGuard<'static, Watch> {
    WATCH.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}
