//! An agent that does the same over and over, without anything new (measured: opencode asks its provider again for ever
//! when an answer breaks off).
//!
//! Only what is told with its result can be seen to repeat: the same command with another output is one that waits.
//! Drivers of streams that tell neither leave it to the deadlines (`docs/decisions/`, "Who is seen to go round in
//! circles").

use std::collections::VecDeque;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use super::Step;

/// How often the same words may come in a row.
const WORDS: usize = 8;
/// How many steps may repeat the ones before them: an agent that waits for something looks often.
const STEPS: usize = 60;
/// The longest cycle that is noticed.
const CYCLE: usize = 4;

/// The last steps of a turn.
#[derive(Debug, Default)]
pub(super) struct Repeats {
    recent: VecDeque<Seen>,
    is_endless: bool,
    is_ended: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Seen {
    digest: u64,
    is_work: bool,
}

impl Repeats {
    /// The agent said this.
    pub(super) fn words(&mut self, text: &str) {
        self.note(text, "", false);
    }

    /// The agent did this, and that came of it.
    pub(super) fn work(&mut self, what: &str, result: &str) {
        self.note(what, result, true);
    }

    /// Whether anything was said or done once too often.
    pub(super) fn is_endless(&self) -> bool {
        self.is_endless
    }

    /// What then ends a program that has no turn which could be cancelled, once.
    pub(super) fn end(&mut self) -> Option<Step> {
        (self.is_endless && !std::mem::replace(&mut self.is_ended, true)).then_some(Step::CloseInput)
    }

    fn note(&mut self, what: &str, result: &str, is_work: bool) {
        let mut hasher = DefaultHasher::new();
        (what, result).hash(&mut hasher);
        if self.recent.len() > STEPS + CYCLE {
            self.recent.pop_front();
        }
        self.recent.push_back(Seen { digest: hasher.finish(), is_work });
        self.is_endless |= (1..=CYCLE).any(|cycle| self.is_stuck(cycle));
    }

    fn is_stuck(&self, cycle: usize) -> bool {
        let last = || self.recent.iter().rev();
        let repeated = last().zip(last().skip(cycle)).take_while(|(later, earlier)| later == earlier);
        let (steps, works) = repeated.fold((0, false), |(steps, works), (seen, _)| (steps + 1, works || seen.is_work));
        let enough = if works { STEPS } else { WORDS * cycle };
        // As many as come again, and those that they repeat.
        steps > 0 && steps + cycle >= enough
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// After how many steps it is a loop.
    fn after(mut step: impl FnMut(&mut Repeats, usize)) -> Option<usize> {
        let mut repeats = Repeats::default();
        (1..=500).find(|n| {
            step(&mut repeats, *n);
            repeats.is_endless()
        })
    }

    #[test]
    fn only_what_brings_nothing_new_is_a_loop() {
        assert_eq!(after(|r, _| r.words("partial answer ")), Some(WORDS));
        assert_eq!(after(|r, n| r.words(&format!("answer {}", n % 3))), Some(3 * WORDS));
        assert_eq!(after(|r, _| r.work("make test", "failed")), Some(STEPS));
        assert_eq!(after(|r, n| if n % 2 == 0 { r.words("again") } else { r.work("make", "failed") }), Some(STEPS));
        assert_eq!(after(|r, n| r.work("cat log", &n.to_string())), None);
        assert_eq!(after(|r, n| r.words(&n.to_string())), None);
        assert_eq!(after(|r, n| r.work("sleep 5", if n % 50 == 0 { "done" } else { "" })), None);
        let mut repeats = Repeats::default();
        (0..STEPS).for_each(|_| repeats.work("make", "failed"));
        assert_eq!((repeats.end(), repeats.end()), (Some(Step::CloseInput), None));
    }
}
