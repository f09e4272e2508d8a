//! Group sync: chatter is written without waiting, and reaches the disk within [`INTERVAL`].
//!
//! The host runs on one thread and must not stop for a disk several times a second, so a thread of the journal's own
//! waits for the disk, once for everything written meanwhile. Appending itself stays on the caller's thread: a write
//! into the page cache takes microseconds, order needs no queue, and a milestone, which must be on disk before anyone
//! is told, has nobody to wait for but the disk.

use std::fs::File;
use std::io;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

/// How long chatter may stay off the disk, the disk's own time not counted.
pub const INTERVAL: Duration = Duration::from_millis(150);

/// The syncing side of a journal. Its thread starts with the first chatter and ends with the value.
#[derive(Debug)]
pub(super) struct GroupSync {
    file: Arc<File>,
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug, Default)]
struct Shared {
    status: Mutex<Status>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct Status {
    dirty: bool,
    closing: bool,
    failure: Option<io::Error>,
}

impl GroupSync {
    /// Syncs `file` through a descriptor of its own.
    pub(super) fn new(file: &File) -> io::Result<Self> {
        Ok(Self { file: Arc::new(file.try_clone()?), shared: Arc::default(), thread: None })
    }

    /// Has everything written so far synced soon. Tells of a group that failed since the last call.
    pub(super) fn soon(&mut self) -> io::Result<()> {
        if self.thread.is_none() {
            let (file, shared) = (Arc::clone(&self.file), Arc::clone(&self.shared));
            let spawned =
                std::thread::Builder::new().name("journal-sync".to_owned()).spawn(move || run(&file, &shared));
            match spawned {
                Ok(thread) => self.thread = Some(thread),
                Err(_) => return self.file.sync_data(),
            }
        }
        let mut status = self.shared.lock();
        if !status.dirty {
            status.dirty = true;
            self.shared.changed.notify_one();
        }
        status.failure.take().map_or(Ok(()), Err)
    }

    /// Waits until everything written so far is on disk.
    pub(super) fn sync_now(&mut self, file: &File) -> io::Result<()> {
        let earlier = {
            let mut status = self.shared.lock();
            status.dirty = false;
            status.failure.take()
        };
        file.sync_data()?;
        earlier.map_or(Ok(()), Err)
    }
}

impl Drop for GroupSync {
    fn drop(&mut self) {
        if let Some(thread) = self.thread.take() {
            self.shared.lock().closing = true;
            self.shared.changed.notify_one();
            let _ = thread.join();
        }
    }
}

impl Shared {
    /// A panic elsewhere leaves plain flags behind, which are still true.
    fn lock(&self) -> MutexGuard<'_, Status> {
        self.status.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn run(file: &File, shared: &Shared) {
    let mut status = shared.lock();
    loop {
        status = shared
            .changed
            .wait_while(status, |status| !status.dirty && !status.closing)
            .unwrap_or_else(PoisonError::into_inner);
        status = shared
            .changed
            .wait_timeout_while(status, INTERVAL, |status| !status.closing)
            .unwrap_or_else(PoisonError::into_inner)
            .0;
        if std::mem::take(&mut status.dirty) {
            drop(status);
            let synced = file.sync_data();
            status = shared.lock();
            if let Err(error) = synced {
                status.failure = Some(error);
            }
            shared.changed.notify_all();
        } else if status.closing {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;

    #[test]
    fn what_is_written_is_synced_soon_and_a_sync_covers_what_came_before() {
        let file = tempfile::tempfile().unwrap();
        let mut group = GroupSync::new(&file).unwrap();
        let begun = Instant::now();
        group.soon().unwrap();
        group.soon().unwrap();
        let is_dirty = group.shared.lock().dirty;
        assert!(is_dirty || begun.elapsed() >= INTERVAL, "it does not wait for the disk");
        wait_while(&group, |status| status.dirty);
        group.soon().unwrap();
        group.sync_now(&file).unwrap();
        assert!(!group.shared.lock().dirty);
    }

    #[test]
    fn a_group_that_failed_is_told_to_the_next_caller_once() {
        // A pipe cannot be synced.
        let (_reader, pipe) = rustix::pipe::pipe().unwrap();
        let mut group = GroupSync::new(&File::from(pipe)).unwrap();
        group.soon().unwrap();
        wait_while(&group, |status| status.failure.is_none());
        let file = tempfile::tempfile().unwrap();
        assert!(group.sync_now(&file).is_err());
        assert!(group.sync_now(&file).is_ok());
    }

    fn wait_while(group: &GroupSync, condition: impl FnMut(&mut Status) -> bool) {
        let limit = Duration::from_secs(60);
        let waited = group.shared.changed.wait_timeout_while(group.shared.lock(), limit, condition).unwrap();
        assert!(!waited.1.timed_out());
    }
}
