//! Room on the disk: a job that fills it hurts everything else on the machine.

use pactify_core::{AbsPath, Failure, FailureCode};

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
