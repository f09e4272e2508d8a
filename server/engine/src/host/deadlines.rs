//! When a running harness has had its time.
//!
//! The total counts from launch, the stall from the last sign of life; time in which the machine slept counts for
//! neither. A harness that waits for a person's answer does not stall.

use std::time::Duration;

use pactify_core::job::Limits;
use pactify_core::job::outcome::Deadline;

use crate::env::Moment;

/// The clocks of one launch.
#[derive(Debug)]
pub(super) struct Deadlines {
    limits: Limits,
    launched: Moment,
    last_sign: Moment,
}

impl Deadlines {
    /// Both clocks start at `now`.
    pub(super) fn from(now: Moment, limits: Limits) -> Self {
        Self { limits, launched: now, last_sign: now }
    }

    /// The harness said something, or waits for a person.
    pub(super) fn sign_of_life(&mut self, now: Moment) {
        self.last_sign = now;
    }

    /// The deadline that has passed, if one has.
    pub(super) fn passed(&self, now: Moment) -> Option<Deadline> {
        if now.awake_since(self.launched) >= self.limits.total() {
            Some(Deadline::Total)
        } else if now.awake_since(self.last_sign) >= self.limits.stall() {
            Some(Deadline::Stall)
        } else {
            None
        }
    }

    /// How long nothing can pass: when to look again, at the latest.
    pub(super) fn quiet_for(&self, now: Moment) -> Duration {
        let total = self.limits.total().saturating_sub(now.awake_since(self.launched));
        let stall = self.limits.stall().saturating_sub(now.awake_since(self.last_sign));
        total.min(stall)
    }
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use pactify_core::AbsPath;

    use super::*;
    use crate::env::{Clock, Directories, Env, ManualClock, Variables};

    #[test]
    fn silence_and_age_pass_apart_and_sleep_counts_for_neither() {
        let clock = ManualClock::at(Timestamp::UNIX_EPOCH);
        let directories = Directories::under(&AbsPath::new("/home/u").unwrap());
        let env = Env::from_values(Variables::new(), directories).with_clock(Clock::Manual(clock.clone()));
        let limits = Limits { total_seconds: 100, stall_seconds: 10 };
        let mut deadlines = Deadlines::from(env.moment(), limits);
        let seconds = Duration::from_secs;

        clock.advance(seconds(9));
        assert_eq!((deadlines.passed(env.moment()), deadlines.quiet_for(env.moment())), (None, seconds(1)));
        clock.suspend(seconds(1000));
        assert_eq!(deadlines.passed(env.moment()), None);
        clock.advance(seconds(1));
        assert_eq!(deadlines.passed(env.moment()), Some(Deadline::Stall));
        deadlines.sign_of_life(env.moment());
        assert_eq!(deadlines.passed(env.moment()), None);
        for _ in 0..9 {
            clock.advance(seconds(9));
            deadlines.sign_of_life(env.moment());
        }
        assert_eq!(deadlines.passed(env.moment()), None);
        clock.advance(seconds(9));
        assert_eq!(deadlines.passed(env.moment()), Some(Deadline::Total));
    }
}
