//! Who collects which exit status.
//!
//! A host is a child subreaper: whatever its job orphans becomes its child and stays a zombie until it is waited for.
//! Waiting for *any* child would steal the exit status of the harness (waited for by tokio, through its own pidfd) or
//! of a command in [`super::run`] (waited for by a blocking thread). So every child we start is registered here before
//! anyone can see it, and [`reap_orphans`] waits, by pid, only for zombies that are not registered.
//!
//! A registered child belongs to its starter until the starter has its status or gives it up.

use std::collections::BTreeMap;
use std::io;
use std::sync::{Mutex, MutexGuard, PoisonError};

use rustix::io::Errno;
use rustix::process::{Pid, WaitId, WaitIdOptions, waitid};

use super::table::{self, Table};

/// Children whose exit status someone else collects. Locked while a child starts, so that it is never seen
/// unregistered.
static STARTED: Mutex<BTreeMap<i32, Role>> = Mutex::new(BTreeMap::new());

/// What a child was started as.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    /// Part of a job: a sweep of the job ends it.
    Job,
    /// A tool of ours, with its own deadline: a sweep leaves it and what it started alone.
    Tool,
    /// A host, which belongs to another job.
    Host,
}

/// A child's registration. Dropping it gives the child up to [`reap_orphans`].
#[derive(Debug)]
pub(super) struct Registration(i32);

/// Starts a child and registers it, as one step.
pub(super) fn register<C>(
    role: Role,
    start: impl FnOnce() -> io::Result<C>,
    pid: impl FnOnce(&C) -> io::Result<Pid>,
) -> io::Result<(C, Registration)> {
    let mut started = lock();
    let child = start()?;
    let pid = pid(&child)?.as_raw_nonzero().get();
    started.insert(pid, role);
    Ok((child, Registration(pid)))
}

/// Collects every orphan that has ended, and returns how many there were.
///
/// A host calls it when `SIGCHLD` arrives; a sweep does it by itself.
///
/// # Errors
/// When `/proc` cannot be read.
pub fn reap_orphans() -> io::Result<usize> {
    Ok(reap_listed(&table::read_all()?))
}

/// Collects the orphans that have ended according to a table.
pub(super) fn reap_listed(table: &Table) -> usize {
    let me = rustix::process::getpid().as_raw_nonzero().get();
    let started = lock();
    let orphans = table
        .processes
        .iter()
        .filter(|process| process.parent == me && process.is_dead() && !started.contains_key(&process.pid));
    let reaped = orphans.filter_map(|orphan| Pid::from_raw(orphan.pid)).filter(|&orphan| {
        matches!(waitid(WaitId::Pid(orphan), WaitIdOptions::EXITED | WaitIdOptions::NOHANG), Ok(Some(_)))
    });
    reaped.count()
}

/// Whether this process has no child at all, neither running nor waiting to be collected.
///
/// For a child subreaper this is the kernel's own word that nothing is left below it: whoever is below it is below one
/// of its children.
pub(super) fn is_childless() -> bool {
    let look = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    matches!(waitid(WaitId::All, look), Err(Errno::CHILD))
}

/// The children a sweep of a job leaves alone.
pub(super) fn spared() -> Vec<i32> {
    lock().iter().filter(|&(_, &role)| role != Role::Job).map(|(&pid, _)| pid).collect()
}

impl Drop for Registration {
    fn drop(&mut self) {
        lock().remove(&self.0);
    }
}

fn lock() -> MutexGuard<'static, BTreeMap<i32, Role>> {
    STARTED.lock().unwrap_or_else(PoisonError::into_inner)
}
