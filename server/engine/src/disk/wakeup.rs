//! Being woken when something may have changed, instead of looking over and over: inotify on what is open.
//!
//! What changed is not told here, nor whether anything did: whoever is woken looks. How often to look anyway, and what
//! to do where there is no watch to be had, is theirs to say, too ([`crate::journal`], [`crate::store`]).

use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use rustix::fs::inotify::{CreateFlags, Reader, WatchFlags, add_watch, init};
use rustix::io::Result;

/// Becomes readable when there may be news, and stays so until it is [rearmed](Self::rearm). A network file system
/// does not tell of what other machines write.
#[derive(Debug)]
pub struct Wakeup(OwnedFd);

impl Wakeup {
    /// Watches the open file or directory itself: its path may be given to another one.
    pub(crate) fn on(open: &(impl AsFd + ?Sized), what: WatchFlags) -> Result<Self> {
        let watch = init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK)?;
        add_watch(&watch, format!("/proc/self/fd/{}", open.as_fd().as_raw_fd()), what)?;
        Ok(Self(watch))
    }

    /// Forgets the news so far. Whoever looks afterwards misses none: what comes meanwhile wakes again.
    pub fn rearm(&self) {
        let mut buffer = [MaybeUninit::uninit(); 1024];
        let mut events = Reader::new(&self.0, &mut buffer);
        while events.next().is_ok() {}
    }
}

impl AsFd for Wakeup {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl AsRawFd for Wakeup {
    fn as_raw_fd(&self) -> std::os::fd::RawFd {
        self.0.as_raw_fd()
    }
}
