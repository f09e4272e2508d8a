//! How much of what a harness says and does is recorded: all of it up to [`MAX`], and from then on what it is doing, in
//! a few words, every few seconds, so that a person still sees it move. What decides anything is always recorded.

use std::borrow::Cow;
use std::time::Duration;

use pactify_core::job::event::Known;
use pactify_core::job::state::activity;
use pactify_core::redact::Redactor;

use crate::env::Moment;

/// How long a journal may be before chatter is left out, in bytes: whoever reads one holds all of it in memory, and the
/// disk is not the job's to fill.
const MAX: u64 = 64 << 20;

/// How much more of it may be about what the job is doing: a day of lines that are as long as they can be.
const ROOM: u64 = 8 << 20;

/// How often that is told.
const PAUSE: Duration = Duration::from_secs(5);

/// What was left out so far.
#[derive(Debug, Default)]
pub(super) struct Chatter {
    is_full: bool,
    /// When it was last told what the job is doing.
    told: Option<Moment>,
}

impl Chatter {
    /// What of an event goes into a journal that is `length` bytes long, in order and without any secret that the
    /// harness may have repeated.
    pub(super) fn admit(&mut self, known: Known, length: u64, now: Moment, redactor: &Redactor) -> Vec<Known> {
        if !known.is_chatter() || length < MAX {
            return vec![redacted(known, redactor)];
        }
        let is_first = !std::mem::replace(&mut self.is_full, true);
        let notice = is_first.then(|| {
            let text = format!(
                "the job has told {} MiB: of what it says and does, only a few words every few seconds are recorded",
                MAX >> 20
            );
            Known::Notice { id: "chatterLeftOut".to_owned(), text }
        });
        notice.into_iter().chain(self.in_few_words(known, length, now, redactor)).collect()
    }

    fn in_few_words(&mut self, known: Known, length: u64, now: Moment, redactor: &Redactor) -> Option<Known> {
        if length >= MAX + ROOM || self.told.is_some_and(|told| now.total_since(told) < PAUSE) {
            return None;
        }
        // In this order: a secret that is cut in two is found no more.
        let text = activity(&redacted(known, redactor))?;
        self.told = Some(now);
        Some(Known::Activity { text })
    }
}

/// The event with every text in it redacted. Only texts: a value that is also a word of ours must not change what the
/// event is.
fn redacted(mut known: Known, redactor: &Redactor) -> Known {
    for text in known.texts_mut() {
        if let Cow::Owned(clean) = redactor.redact(text) {
            *text = clean;
        }
    }
    known
}

#[cfg(test)]
mod tests {
    use pactify_core::job::outcome::Outcome;

    use super::*;
    use crate::env::{Clock, Env, ManualClock};

    fn message(text: &str) -> Known {
        Known::Message { text: text.to_owned() }
    }

    fn activity(text: &str) -> Known {
        Known::Activity { text: text.to_owned() }
    }

    fn clock() -> (ManualClock, Env) {
        let clock = ManualClock::at(jiff::Timestamp::UNIX_EPOCH);
        (clock.clone(), Env::from_process().unwrap().with_clock(Clock::Manual(clock)))
    }

    #[test]
    fn only_chatter_is_left_out_of_a_full_journal() {
        let (redactor, now) = (Redactor::new(Vec::new()), clock().1.moment());
        let admit = |known: &Known, length| Chatter::default().admit(known.clone(), length, now, &redactor);
        assert_eq!(admit(&message("again"), MAX - 1), [message("again")]);
        assert!(!admit(&message("again"), MAX).contains(&message("again")));
        let end = Known::AttemptEnded { outcome: Outcome::Succeeded, failure: None, final_message: None };
        for known in [end, Known::CancelRequested, Known::Usage { usage: Default::default() }] {
            assert_eq!(admit(&known, u64::MAX), [known]);
        }
    }

    #[test]
    fn from_then_on_a_few_words_every_few_seconds_are_recorded() {
        const TENTH: Duration = Duration::from_millis(100);
        let (clock, env) = clock();
        let redactor = Redactor::new(vec!["hunter2-hunter2".to_owned()]);
        let mut chatter = Chatter::default();
        let mut admit = |known: Known, length| chatter.admit(known, length, env.moment(), &redactor);

        let output = || Known::CommandOutput { item: "1".to_owned(), text: "more".to_owned() };
        let first = admit(output(), MAX);
        assert!(matches!(&first[..], [Known::Notice { id, .. }] if id == "chatterLeftOut"), "{first:?}");
        assert_eq!(admit(message("one"), MAX), [activity("one")], "output said nothing of what it is doing");
        let mut told = Vec::new();
        for tenth in 1..=200 {
            clock.advance(TENTH);
            told.extend(admit(message(&format!("at {tenth}")), MAX).into_iter().map(|known| (tenth, known)));
        }
        assert_eq!(told, [50, 100, 150, 200].map(|tenth| (tenth, activity(&format!("at {tenth}")))));

        clock.advance(PAUSE);
        let long = format!("{} hunter2-hunter2 and the rest", "x".repeat(70));
        let [Known::Activity { text }] = &admit(message(&long), MAX)[..] else { panic!("nothing is told") };
        assert!(text.chars().count() <= 80 && !text.contains("hunter"), "{text}");
        clock.advance(PAUSE);
        assert_eq!(admit(message("no room"), MAX + ROOM), []);
        assert_eq!(admit(message("room"), MAX + ROOM - 1), [activity("room")]);
    }
}
