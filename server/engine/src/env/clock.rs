//! Two kinds of time: the time of day for records, and a pair of monotonic clocks for durations.
//!
//! A laptop that sleeps must not use up a job's stall time, so a [`Moment`] carries both the clock that stops while
//! the machine is suspended (`CLOCK_MONOTONIC`) and the one that goes on (`CLOCK_BOOTTIME`).

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use rustix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};

/// Where times come from.
#[derive(Debug, Clone)]
pub enum Clock {
    /// The kernel's clocks.
    Real,
    /// A clock that moves when it is told to.
    Manual(ManualClock),
}

/// A point in time of this boot. Written down, it means nothing after the next one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Moment {
    awake: Duration,
    total: Duration,
}

/// A clock for tests. Clones share the time.
#[derive(Debug, Clone)]
pub struct ManualClock(Arc<Mutex<Reading>>);

#[derive(Debug, Clone, Copy)]
struct Reading {
    now: Timestamp,
    moment: Moment,
}

impl Clock {
    #[expect(clippy::disallowed_methods, reason = "this is the one place where the clock enters")]
    pub(super) fn now(&self) -> Timestamp {
        match self {
            Self::Real => Timestamp::now(),
            Self::Manual(clock) => clock.read().now,
        }
    }

    pub(super) fn moment(&self) -> Moment {
        match self {
            Self::Real => Moment { awake: since_boot(ClockId::Monotonic), total: since_boot(ClockId::Boottime) },
            Self::Manual(clock) => clock.read().moment,
        }
    }
}

impl Moment {
    /// Time since `earlier` during which the machine was awake; zero if `earlier` is later.
    #[must_use]
    pub fn awake_since(self, earlier: Self) -> Duration {
        self.awake.saturating_sub(earlier.awake)
    }

    /// Time since `earlier`, suspended or not; zero if `earlier` is later.
    #[must_use]
    pub fn total_since(self, earlier: Self) -> Duration {
        self.total.saturating_sub(earlier.total)
    }

    /// Time since `earlier` during which the machine was suspended.
    #[must_use]
    pub fn suspended_since(self, earlier: Self) -> Duration {
        self.total_since(earlier).saturating_sub(self.awake_since(earlier))
    }
}

impl ManualClock {
    /// A clock that stands at `now`.
    #[must_use]
    pub fn at(now: Timestamp) -> Self {
        let moment = Moment { awake: Duration::ZERO, total: Duration::ZERO };
        Self(Arc::new(Mutex::new(Reading { now, moment })))
    }

    /// Lets time pass with the machine awake.
    pub fn advance(&self, by: Duration) {
        self.step(by, by);
    }

    /// Lets time pass with the machine suspended.
    pub fn suspend(&self, by: Duration) {
        self.step(by, Duration::ZERO);
    }

    fn step(&self, total: Duration, awake: Duration) {
        let mut reading = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        reading.now = reading.now.saturating_add(total).unwrap_or(Timestamp::MAX);
        reading.moment.total += total;
        reading.moment.awake += awake;
    }

    fn read(&self) -> Reading {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn since_boot(clock: ClockId) -> Duration {
    Duration::try_from(clock_gettime(clock)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn seconds(n: u64) -> Duration {
        Duration::from_secs(n)
    }

    #[test]
    fn sleep_of_the_machine_is_told_apart_from_work() {
        let manual = ManualClock::at(Timestamp::UNIX_EPOCH);
        let clock = Clock::Manual(manual.clone());
        let start = clock.moment();
        manual.advance(seconds(3));
        manual.suspend(seconds(100));

        let end = clock.moment();
        assert_eq!(end.awake_since(start), seconds(3));
        assert_eq!(end.suspended_since(start), seconds(100));
        assert_eq!(end.total_since(start), seconds(103));
        assert_eq!(start.total_since(end), Duration::ZERO, "time does not run backwards");
        assert_eq!(clock.now(), Timestamp::from_second(103).unwrap());
    }

    #[test]
    fn the_kernel_s_clocks_move_forward_together() {
        let start = Clock::Real.moment();
        let end = Clock::Real.moment();
        assert!(end.total >= start.total && end.awake >= start.awake);
        assert!(end.total >= end.awake, "boot time includes suspended time");
    }
}
