//! At most so many jobs run at once; others queue.
//!
//! A slot is a lock file; a host holds one from before its attempt until its harness has ended, and a dead host's slot
//! is free at once. Whoever waits looks again every quarter of a second and can be cancelled. Order among those who
//! wait is chance, which is fair enough for a handful of jobs on one machine.

use std::fs::{File, TryLockError};
use std::time::Duration;

use super::{Event, Host, HostError};
use crate::disk::Open;

const LOOK_AGAIN: Duration = Duration::from_millis(250);

/// The right to run. Dropping it lets the next one in.
#[derive(Debug)]
pub(super) struct Slot {
    _lock: Option<File>,
}

/// Waits for a slot, or for a cancel.
pub(super) async fn wait(host: &mut Host) -> Result<Slot, HostError> {
    let count = host.settings().running_jobs.unwrap_or_else(cores);
    loop {
        if host.cancelled() {
            return Ok(Slot { _lock: None });
        }
        for number in 0..count {
            let file = host.slots()?.file(&format!("{number}.lock"), Open::AppendOrCreate)?;
            match file.try_lock() {
                Ok(()) => return Ok(Slot { _lock: Some(file) }),
                Err(TryLockError::WouldBlock) => {}
                Err(TryLockError::Error(source)) => return Err(HostError::Slot(source)),
            }
        }
        if let Ok(event) = tokio::time::timeout(LOOK_AGAIN, host.next_event()).await {
            match event {
                Event::Cancel => {
                    host.note_cancel();
                }
                Event::ChildEnded => super::reap(),
                Event::Answer(_) | Event::Stdout(_) | Event::Stderr(_) | Event::Exited(_) => {}
            }
        }
    }
}

/// How many jobs run at once where nobody says otherwise.
pub(crate) fn cores() -> u32 {
    std::thread::available_parallelism().map_or(1, |cores| u32::try_from(cores.get()).unwrap_or(u32::MAX))
}
