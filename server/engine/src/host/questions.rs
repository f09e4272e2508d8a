//! The permission requests that wait for a person: which answers they take, and when nobody answered in time.
//!
//! Which requests are open is the journal's to say; this adds since when each is open by a clock that stands still
//! while the machine sleeps. No disk, no process: [`super::drive`] does what is decided here.

use std::collections::BTreeMap;
use std::time::Duration;

use pactify_core::AttemptNo;
use pactify_core::job::access::Access;
use pactify_core::job::event::Known;
use pactify_core::job::state::Waiting;
use pactify_core::permission::may_choose;

use crate::env::Moment;

/// The open requests of one launch, with their ages.
#[derive(Debug)]
pub(super) struct Questions {
    access: Access,
    patience: Duration,
    /// What is put before a driver's name for a request.
    prefix: String,
    since: BTreeMap<String, Moment>,
}

/// Why an answer is not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Refused {
    /// It was answered, has expired, or was never asked.
    NotOpen,
    /// It has no such option, or the job's mode rules it out.
    NoSuchOption,
}

impl Questions {
    /// None yet. Each is denied after `patience`; in a read-only job at once. Drivers count from one: with the attempt
    /// in its name a request is never taken for one of an earlier turn.
    pub(super) fn new(access: Access, patience: Duration, attempt: AttemptNo) -> Self {
        let patience = match access {
            Access::Write => patience,
            Access::ReadOnly => Duration::ZERO,
        };
        Self { access, patience, prefix: format!("{}.", attempt.get()), since: BTreeMap::new() }
    }

    /// Gives the request that is recorded, if one is, the name that it has outside.
    pub(super) fn name(&self, known: &mut Known) {
        if let Known::PermissionRequested { request, .. } | Known::PermissionAnswered { request, .. } = known {
            request.insert_str(0, &self.prefix);
        }
    }

    /// What the driver calls the request `id`.
    pub(super) fn asked_as<'i>(&self, id: &'i str) -> &'i str {
        id.strip_prefix(&self.prefix).unwrap_or(id)
    }

    /// Whether the request `id` is `open` and takes `option` as an answer.
    pub(super) fn check(&self, open: &[Waiting], id: &str, option: &str) -> Result<(), Refused> {
        let waiting = open.iter().find(|waiting| waiting.request == id).ok_or(Refused::NotOpen)?;
        let found = waiting.options.iter().find(|known| known.id == option).ok_or(Refused::NoSuchOption)?;
        may_choose(self.access, found).then_some(()).ok_or(Refused::NoSuchOption)
    }

    /// Those of the `open` requests that nobody answered in time. Call it whenever something may have been asked: a
    /// request's time begins when it is seen here first.
    pub(super) fn expired(&mut self, open: &[Waiting], now: Moment) -> Vec<String> {
        self.since.retain(|id, _| open.iter().any(|waiting| waiting.request == *id));
        for waiting in open {
            self.since.entry(waiting.request.clone()).or_insert(now);
        }
        let is_over = |since: &Moment| now.awake_since(*since) >= self.patience;
        let over = open.iter().filter(|waiting| self.since.get(&waiting.request).is_some_and(is_over));
        over.map(|waiting| waiting.request.clone()).collect()
    }

    /// How long no request can expire.
    pub(super) fn quiet_for(&self, now: Moment) -> Duration {
        let left = self.since.values().map(|since| self.patience.saturating_sub(now.awake_since(*since)));
        left.min().unwrap_or(Duration::MAX)
    }
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use pactify_core::AbsPath;
    use pactify_core::permission::{OptionKind, PermissionOption};

    use super::*;
    use crate::env::{Clock, Directories, Env, ManualClock, Variables};

    const MINUTE: Duration = Duration::from_secs(60);

    fn waiting(id: &str) -> Waiting {
        let option = |id: &str, kind| PermissionOption { id: id.to_owned(), name: "Allow".to_owned(), kind };
        Waiting {
            request: id.to_owned(),
            title: "may I?".to_owned(),
            detail: None,
            options: vec![option("reject", OptionKind::AllowOnce), option("allow", OptionKind::RejectOnce)],
            since: Timestamp::UNIX_EPOCH,
        }
    }

    fn clock() -> (ManualClock, Env) {
        let clock = ManualClock::at(Timestamp::UNIX_EPOCH);
        let directories = Directories::under(&AbsPath::new("/home/u").unwrap());
        let env = Env::from_values(Variables::new(), directories).with_clock(Clock::Manual(clock.clone()));
        (clock, env)
    }

    #[test]
    fn an_answer_names_an_open_request_and_one_of_its_options() {
        let open = [waiting("a"), waiting("b")];
        let write = Questions::new(Access::Write, MINUTE, AttemptNo::FIRST);
        for (id, option, expected) in [
            ("a", "reject", Ok(())),
            ("b", "allow", Ok(())),
            ("c", "allow", Err(Refused::NotOpen)),
            ("a", "Allow", Err(Refused::NoSuchOption)),
            ("a", "", Err(Refused::NoSuchOption)),
        ] {
            assert_eq!(write.check(&open, id, option), expected, "{id} {option}");
        }
        assert_eq!(write.check(&open[1..], "a", "allow"), Err(Refused::NotOpen), "answered twice");
    }

    #[test]
    fn a_request_of_an_earlier_attempt_is_another_one() {
        let ask = |attempt: AttemptNo| {
            let questions = Questions::new(Access::Write, MINUTE, attempt);
            let (request, title) = ("p1".into(), String::new());
            let mut known = Known::PermissionRequested { request, title, detail: None, options: vec![] };
            questions.name(&mut known);
            let Known::PermissionRequested { request, .. } = known else { panic!("{known:?}") };
            assert_eq!(questions.asked_as(&request), "p1");
            request
        };
        assert_ne!(ask(AttemptNo::FIRST), ask(AttemptNo::FIRST.next()));
    }

    #[test]
    fn a_read_only_job_is_granted_nothing_whatever_the_options_are_called() {
        let (_, env) = clock();
        let open = [waiting("a")];
        let mut questions = Questions::new(Access::ReadOnly, MINUTE, AttemptNo::FIRST);
        assert_eq!(questions.check(&open, "a", "reject"), Err(Refused::NoSuchOption), "it means yes");
        assert_eq!(questions.check(&open, "a", "allow"), Ok(()), "it means no");
        assert_eq!(questions.expired(&open, env.moment()), ["a"], "nobody is waited for");
    }

    #[test]
    fn each_request_has_its_own_time_and_sleep_does_not_count() {
        let (clock, env) = clock();
        let mut questions = Questions::new(Access::Write, MINUTE, AttemptNo::FIRST);
        assert_eq!(questions.quiet_for(env.moment()), Duration::MAX);
        assert!(questions.expired(&[waiting("a")], env.moment()).is_empty());
        clock.advance(MINUTE / 2);
        let both = [waiting("a"), waiting("b")];
        assert!(questions.expired(&both, env.moment()).is_empty());
        clock.suspend(MINUTE * 100);
        assert!(questions.expired(&both, env.moment()).is_empty());
        assert_eq!(questions.quiet_for(env.moment()), MINUTE / 2);
        clock.advance(MINUTE / 2);
        assert_eq!(questions.expired(&both, env.moment()), ["a"]);
        clock.advance(MINUTE / 2);
        assert_eq!(questions.expired(&both[1..], env.moment()), ["b"]);
        assert!(questions.expired(&both[..1], env.moment()).is_empty(), "asked again, it has all its time again");
    }

    #[test]
    fn fifty_at_once_are_all_denied_in_time() {
        let (clock, env) = clock();
        let open: Vec<Waiting> = (0..50).map(|number| waiting(&number.to_string())).collect();
        let mut questions = Questions::new(Access::Write, MINUTE, AttemptNo::FIRST);
        assert!(questions.expired(&open, env.moment()).is_empty());
        clock.advance(MINUTE);
        assert_eq!(questions.expired(&open, env.moment()).len(), 50);
    }
}
