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
        let ends = |name: &String| name.strip_suffix(extension).is_some_and(|stem| stem.ends_with('.'));
        let names: Arc<[String]> = self.area(area)?.names()?.into_iter().filter(ends).collect();
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
mod tests {
    use rustix::fs::{Timespec, Timestamps, UTIME_OMIT};

    use super::*;
    use crate::store::fixture::Home;

    #[test]
    fn an_area_is_listed_anew_only_when_it_changed() {
        let home = Home::new();
        let names = || home.store.names_in(Area::Applies, "intent").unwrap();
        assert!(names().is_empty());
        assert_eq!(
            home.store.shared.home.lookup(Area::Applies.name()).unwrap().map(|_| ()),
            None,
            "looking makes nothing"
        );
        let area = home.store.area(Area::Applies).unwrap();
        area.write_new("one.intent", b"").unwrap();
        area.write_new("two.done", b"").unwrap();
        area.write_new("intent", b"").unwrap();
        assert_eq!(*names(), ["one.intent"]);
        assert!(!Arc::ptr_eq(&names(), &names()), "it changed just now: a second change could have the same time");

        std::thread::sleep(std::time::Duration::from_secs(4));
        let listed = names();
        assert!(Arc::ptr_eq(&listed, &names()), "it stood still");

        area.write_new("three.intent", b"").unwrap();
        // Who sets the older time back still changes the other one.
        let omit = Timespec { tv_sec: 0, tv_nsec: UTIME_OMIT };
        let times = Timestamps { last_access: omit, last_modification: Timespec { tv_sec: 1, tv_nsec: 0 } };
        rustix::fs::futimens(&area, &times).unwrap();
        let mut now = names().to_vec();
        now.sort();
        assert_eq!(now, ["one.intent", "three.intent"]);
    }

    #[test]
    fn a_time_of_the_future_settles_nothing() {
        let stamp = |second| Stamp { file: FileId { device: 0, inode: 0 }, changed: [second, 0, second, 0] };
        assert!(stamp(1_000).is_settled(1_003));
        for (changed, now) in [(1_000, 1_002), (1_000, 1_000), (1_000, 10), (i64::MAX, 1_000)] {
            assert!(!stamp(changed).is_settled(now), "{changed} at {now}");
        }
    }
}
