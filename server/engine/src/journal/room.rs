//! Room kept at the end of a journal, so that a full disk cannot keep a job from saying how it ended.
//!
//! Blocks are allocated behind the end of the file ([`rustix::fs::FallocateFlags::KEEP_SIZE`]: its length stays what
//! was written). Chatter may not use the last [`RESERVE`] of them; a milestone may. A file system that cannot do this
//! keeps no reserve, and everything else works. What is left over is given back when an attempt has ended.

use std::fs::File;

use rustix::fs::FallocateFlags;
use rustix::io::Errno;

/// What chatter must leave for milestones.
pub(super) const RESERVE: u64 = 64 * 1024;
/// How much is allocated at a time.
const STEP: u64 = 192 * 1024;

/// What is known about the blocks behind the end of a journal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Room {
    /// Allocated up to this offset.
    UpTo(u64),
    /// The file system allocates only what is written.
    Unsupported,
}

impl Room {
    /// Allocates a first step behind `end`, as far as the disk lets us.
    pub(super) fn new(file: &File, end: u64) -> Self {
        let mut room = Self::UpTo(end);
        room.make(file, end, 0);
        room
    }

    /// Tries to have `bytes` and the reserve behind `end`.
    pub(super) fn make(&mut self, file: &File, end: u64, bytes: u64) {
        if self.has(end, bytes) {
            return;
        }
        let wanted = (bytes + RESERVE).max(STEP);
        for length in [wanted, bytes + RESERVE] {
            match rustix::fs::fallocate(file, FallocateFlags::KEEP_SIZE, end, length) {
                Ok(()) => {
                    *self = Self::UpTo(end + length);
                    return;
                }
                Err(Errno::OPNOTSUPP | Errno::NOSYS | Errno::INVAL) => {
                    *self = Self::Unsupported;
                    return;
                }
                Err(_) => {}
            }
        }
    }

    /// Whether `bytes` more fit behind `end` without touching the reserve.
    pub(super) fn has(self, end: u64, bytes: u64) -> bool {
        match self {
            Self::UpTo(allocated) => end + bytes + RESERVE <= allocated,
            Self::Unsupported => true,
        }
    }

    /// Notes that the file was truncated: that gives allocated blocks back.
    pub(super) fn lost(&mut self) {
        if let Self::UpTo(allocated) = self {
            *allocated = 0;
        }
    }

    /// Gives back what is allocated behind `end`.
    pub(super) fn give_back(&mut self, file: &File, end: u64) {
        if matches!(self, Self::UpTo(_)) && file.set_len(end).is_ok() {
            self.lost();
        }
    }
}
