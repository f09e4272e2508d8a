//! Waiting for a journal to grow: inotify on the open file, and a look every so often where that is not to be had.
//!
//! A front end on tokio waits for [`Follower::wakeup`] to become readable (and looks every [`Follower::interval`]
//! anyway), then calls [`Follower::read`]; everything else calls [`Follower::wait`], which blocks until a deadline.

use std::os::fd::{AsFd, BorrowedFd};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::inotify::WatchFlags;

use super::error::JournalError;
use super::reader::{Batch, End, Reader};
use crate::disk::Wakeup;

/// What a journal goes through. ATTRIB: the number of names changed, which is how a replacement or removal shows.
const CHANGES: WatchFlags = WatchFlags::MODIFY.union(WatchFlags::ATTRIB).union(WatchFlags::MOVE_SELF);

/// How often to look without inotify.
const BLIND: Duration = Duration::from_millis(200);
/// How often to look although inotify is there: a network file system does not tell of what others write.
const WATCHED: Duration = Duration::from_secs(2);

/// A reader that knows when to look again.
#[derive(Debug)]
pub struct Follower {
    reader: Reader,
    watch: Option<Wakeup>,
}

/// What [`Follower::wait`] found.
#[derive(Debug)]
pub enum Waited {
    /// Records, or damage, behind the position.
    News(Batch),
    /// Nothing until the deadline.
    TimedOut,
}

impl Follower {
    /// Follows a journal from the reader's position on.
    pub fn new(reader: Reader) -> Self {
        let watch = Wakeup::on(reader.file(), CHANGES).inspect_err(|error| {
            tracing::debug!(%error, job = %reader.job().id(), "no inotify for a journal: looking every 200 ms");
        });
        Self { reader, watch: watch.ok() }
    }

    /// Becomes readable when there may be news; `None` where the system has no watch to give.
    pub fn wakeup(&self) -> Option<BorrowedFd<'_>> {
        self.watch.as_ref().map(AsFd::as_fd)
    }

    /// How often to look even if nothing wakes.
    pub fn interval(&self) -> Duration {
        if self.watch.is_some() { WATCHED } else { BLIND }
    }

    /// The reader, at its position.
    pub fn reader(&self) -> &Reader {
        &self.reader
    }

    /// Reads what is there now, without waiting. The wake-up is rearmed first, so news that come meanwhile wake again.
    pub fn read(&mut self, limit: usize) -> Result<Batch, JournalError> {
        self.rearm();
        self.reader.read(limit)
    }

    /// Waits until there are records, the journal turns out damaged or replaced, or `deadline` passes.
    pub fn wait(&mut self, limit: usize, deadline: Instant) -> Result<Waited, JournalError> {
        loop {
            let batch = self.read(limit)?;
            if !batch.records.is_empty() || matches!(batch.end, End::Damaged(_)) {
                return Ok(Waited::News(batch));
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(Waited::TimedOut);
            }
            self.pause(left.min(self.interval()));
        }
    }

    fn pause(&self, limit: Duration) {
        let Some(watch) = &self.watch else {
            std::thread::sleep(limit);
            return;
        };
        let timeout = Timespec { tv_sec: limit.as_secs().cast_signed(), tv_nsec: limit.subsec_nanos().into() };
        // An interrupted or refused poll only means looking earlier, never missing anything.
        let polled = poll(&mut [PollFd::new(watch, PollFlags::IN)], Some(&timeout));
        if polled.is_err_and(|errno| errno != rustix::io::Errno::INTR) {
            std::thread::sleep(limit.min(BLIND));
        }
    }

    fn rearm(&self) {
        if let Some(watch) = &self.watch {
            watch.rearm();
        }
    }
}

#[cfg(test)]
mod tests;
