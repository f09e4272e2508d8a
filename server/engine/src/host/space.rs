//! Room on the disk: a job that fills it hurts everything else on the machine.

use std::time::Duration;

use pactify_core::{AbsPath, Failure, FailureCode};

use crate::env::Moment;

/// How often it is looked at while a harness works.
const PAUSE: Duration = Duration::from_secs(5);

/// The room that a harness leaves while it works.
#[derive(Debug)]
pub(super) struct Room {
    place: AbsPath,
    free: u64,
    looked: Moment,
}

impl Room {
    /// There was enough of it at `now`.
    pub(super) fn new(place: AbsPath, free: u64, now: Moment) -> Self {
        Self { place, free, looked: now }
    }

    /// When to look again, at the latest.
    pub(super) fn quiet_for(&self, now: Moment) -> Duration {
        PAUSE.saturating_sub(now.total_since(self.looked))
    }

    /// Refuses as [`require`] does, where it is time to look.
    pub(super) fn look(&mut self, now: Moment) -> Result<(), Failure> {
        if !self.quiet_for(now).is_zero() {
            return Ok(());
        }
        self.looked = now;
        require(&self.place, self.free)
    }
}

/// Refuses when less than `free` bytes are left where `place` is.
pub(super) fn require(place: &AbsPath, free: u64) -> Result<(), Failure> {
    let left = rustix::fs::statvfs(place.as_path()).map(|stat| stat.f_bavail.saturating_mul(stat.f_frsize));
    match left {
        Ok(left) if left < free => Err(Failure::new(
            FailureCode::NoSpace,
            format!("{} MiB are free where {place} is, less than the {} MiB that must remain", left >> 20, free >> 20),
            "free some space (`pactify sub discard` removes a job's tree), or set [limits] free-bytes",
        )),
        // A file system that cannot tell its size is no reason to refuse.
        _ => Ok(()),
    }
}
