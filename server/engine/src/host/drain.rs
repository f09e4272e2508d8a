//! What may still be said once a first process has ended: how long it is listened for.
//!
//! It is the time since the end that counts; but a host that comes late to what waits by then, within half a minute,
//! hears all of it. No clock, no process: whoever listens says when.

use std::time::Duration;

use tokio::time::Instant;

/// How long is listened: a process below the one that ended may hold the pipes open for ever.
pub(super) const GRACE: Duration = Duration::from_secs(2);

/// How long at most, with always more to hear: such a process may also talk without a pause.
const AT_MOST: Duration = Duration::from_secs(30);

/// The listening, once the first process has ended.
#[derive(Clone, Copy, Debug)]
pub(super) struct Drain {
    began: Instant,
    is_cut: bool,
}

impl Drain {
    /// The first process has ended.
    pub(super) fn begin(now: Instant) -> Self {
        Self { began: now, is_cut: false }
    }

    /// How long to wait for what may be said.
    pub(super) fn left(&self, now: Instant) -> Duration {
        GRACE.saturating_sub(now.duration_since(self.began))
    }

    /// It was waited for, and nothing that was said is left to be heard.
    pub(super) fn waited(&mut self, now: Instant) {
        self.is_cut |= self.left(now).is_zero();
    }

    /// Nobody wants to hear more.
    pub(super) fn cut(&mut self) {
        self.is_cut = true;
    }

    /// Whether nothing more is listened for.
    pub(super) fn is_over(&self, now: Instant) -> bool {
        self.is_cut || now.duration_since(self.began) >= AT_MOST
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn its_time_ends_it_and_only_where_nothing_was_left_to_hear() {
        let end = Instant::now();
        let mut drain = Drain::begin(end);
        drain.waited(end + GRACE / 2);
        assert!(!drain.is_over(end + GRACE / 2));
        assert_eq!(drain.left(end + GRACE / 2), GRACE / 2);
        // The host comes late: what waits is heard first, and nothing more is waited for.
        let late = end + 5 * GRACE;
        assert!(!drain.is_over(late));
        assert_eq!(drain.left(late), Duration::ZERO);
        drain.waited(late);
        assert!(drain.is_over(late));
    }

    #[test]
    fn who_talks_without_a_pause_is_not_listened_to_for_ever() {
        let end = Instant::now();
        let drain = Drain::begin(end);
        assert!(!drain.is_over(end + AT_MOST - GRACE));
        assert!(drain.is_over(end + AT_MOST));
    }

    #[test]
    fn a_cancel_ends_it() {
        let end = Instant::now();
        let mut drain = Drain::begin(end);
        drain.cut();
        assert!(drain.is_over(end));
    }
}
