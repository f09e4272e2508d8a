//! What lies in the directories beside the jobs, remembered as long as they stand still.
//!
//! An area whose directory has the times that it had when it was listed holds the same names. That is believed only
//! of times that were some seconds old by then: a file system's clock ticks coarsely, and what changes twice within
//! one tick looks as if it had changed once.

use std::collections::HashMap;
use std::sync::{Arc, MutexGuard, PoisonError};

use rustix::fs::{AtFlags, Stat};
use rustix::io::Errno;
use rustix::time::{ClockId, clock_gettime};

use super::{Area, Store, StoreError};
use crate::disk::{DiskError, FileId};

/// How many seconds old a directory's last change must be for its time to tell the next one from it. FAT's clock ticks
/// every two seconds, others much faster.
const TICK: i64 = 2;

/// What was found in areas, by the area and the extension that was looked for.
pub(super) type Found = HashMap<(Area, &'static str), (Stamp, Arc<[String]>)>;

/// When a directory last changed, and which one it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stamp {
    file: FileId,
    changed: [i64; 4],
}

impl Store {
    /// The names in an area that end in `.extension`, in no order. Of an area that stands still this costs one system
    /// call.
    pub fn names_in(&self, area: Area, extension: &'static str) -> Result<Arc<[String]>, StoreError> {
        // In this order: what changes after the listing has a later time than the one that is believed.
        let now = clock_gettime(ClockId::RealtimeCoarse).tv_sec;
        let home = &self.shared.home;
        let stamp = match rustix::fs::statat(home, area.name(), AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => Stamp::of(&stat),
            Err(Errno::NOENT) => return Ok(Arc::default()),
            Err(errno) => return Err(DiskError::io(home.path().join(area.name()), "look at", errno).into()),
        };
        if let Some((then, names)) = self.found().get(&(area, extension))
            && *then == stamp
        {
            return Ok(Arc::clone(names));
        }
        let listed = match home.dir(area.name()) {
            Err(DiskError::Missing { .. }) => return Ok(Arc::default()),
            listed => listed?,
        };
        // Of what is listed, which need not be what had the name a moment ago.
        let stamp = Stamp::of(&listed.stat()?);
        let ends = |name: &String| name.strip_suffix(extension).is_some_and(|stem| stem.ends_with('.'));
        let names: Arc<[String]> = listed.names()?.into_iter().filter(ends).collect();
        if stamp.is_settled(now) {
            self.found().insert((area, extension), (stamp, Arc::clone(&names)));
        }
        Ok(names)
    }

    fn found(&self) -> MutexGuard<'_, Found> {
        // Every entry is checked against the disk before it is used, so one left by a panic does no harm.
        self.shared.found.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Stamp {
    fn of(stat: &Stat) -> Self {
        let changed =
            [stat.st_mtime, stat.st_mtime_nsec.cast_signed(), stat.st_ctime, stat.st_ctime_nsec.cast_signed()];
        Self { file: FileId::of(stat), changed }
    }

    /// Whether the directory's next change cannot have the times of its last one. `now` is of the clock that stamps
    /// files.
    fn is_settled(&self, now: i64) -> bool {
        let [modified, _, changed, _] = self.changed;
        modified.max(changed).saturating_add(TICK) < now
    }
}

#[cfg(test)]
mod tests;
