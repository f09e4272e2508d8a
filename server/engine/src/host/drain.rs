//! What may still be said once a first process has ended: how long it is listened for.
//!
//! It is the silence that counts, not the time since the end: a host that comes late to what was said before the end
//! loses none of it. No clock, no process: whoever listens says when.

use std::time::Duration;

use tokio::time::Instant;

/// How long nothing must be said: a process below the one that ended may hold the pipes open for ever.
pub(super) const SILENCE: Duration = Duration::from_secs(2);

/// How long it is listened for at most: such a process may also talk for ever.
const AT_MOST: Duration = Duration::from_secs(60);

/// The listening, once the first process has ended.
#[derive(Clone, Copy, Debug)]
pub(super) struct Drain {
    began: Instant,
    heard: Instant,
    is_silent: bool,
}

impl Drain {
    /// The first process has ended.
    pub(super) fn begin(now: Instant) -> Self {
        Self { began: now, heard: now, is_silent: false }
    }

    /// How long to wait for what may be said.
    pub(super) fn left(&self, now: Instant) -> Duration {
        SILENCE.saturating_sub(now.duration_since(self.heard))
    }

    /// Something was said.
    pub(super) fn heard(&mut self, now: Instant) {
        self.heard = now;
    }

    /// It was waited for, and nothing that was said is left to be heard.
    pub(super) fn waited(&mut self, now: Instant) {
        self.is_silent = self.left(now).is_zero();
    }

    /// Whether nothing more is listened for.
    pub(super) fn is_over(&self, now: Instant) -> bool {
        self.is_silent || now.duration_since(self.began) >= AT_MOST
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn silence_ends_it_and_only_where_nothing_was_left_to_hear() {
        let end = Instant::now();
        let mut drain = Drain::begin(end);
        // The host comes late: what waits is heard first.
        let late = end + 5 * SILENCE;
        assert!(!drain.is_over(late));
        assert_eq!(drain.left(late), Duration::ZERO);
        drain.heard(late);
        assert_eq!(drain.left(late), SILENCE);
        drain.waited(late + SILENCE / 2);
        assert!(!drain.is_over(late + SILENCE / 2));
        drain.waited(late + SILENCE);
        assert!(drain.is_over(late + SILENCE));
    }

    #[test]
    fn who_talks_for_ever_is_not_listened_to_for_ever() {
        let end = Instant::now();
        let mut drain = Drain::begin(end);
        let mut now = end;
        while now < end + AT_MOST {
            assert!(!drain.is_over(now));
            drain.heard(now);
            now += SILENCE / 2;
        }
        assert!(drain.is_over(now));
    }
}
