//! Where jobs stood when the client was told last: it is told of news, each once, and never of what was true before.
//!
//! News come from commands and followers at once, and late from looks at the store ([`super::survey`]): a look that
//! began before a command moved a job knows less about it than we do. Which jobs a look is about, and how a client is
//! told, is not decided here.

use std::collections::{HashMap, HashSet};

use pactify_core::JobId;
use pactify_core::job::outcome::Disposition;
use pactify_core::job::state::SeenState;
use pactify_core::protocol::JobSummary;

use super::follow::{Standing, standing};
use super::survey::Survey;

/// Applied jobs that are looked at on, the newest: another editor may undo an apply, or give its job up.
const MOST_APPLIED: usize = 50;

/// What the client knows. See the [module](self).
#[derive(Debug, Default)]
pub(super) struct Seen {
    standings: HashMap<JobId, Standing>,
    /// Jobs of which there were news since the look began.
    moved: HashSet<JobId>,
    has_looked: bool,
}

impl Seen {
    /// A look at the store begins; gives the jobs that it is to be about, whatever else it finds.
    pub(super) fn begin(&mut self) -> impl Iterator<Item = &JobId> {
        self.moved.clear();
        self.standings.keys()
    }

    /// A job stands so now, as a command or a follower knows first-hand. True if that is news.
    pub(super) fn moved(&mut self, job: JobId, now: Standing) -> bool {
        self.moved.insert(job.clone());
        self.standings.insert(job, now) != Some(now)
    }

    /// Whether there were news of a job since the look began.
    pub(super) fn has_moved(&self, job: &JobId) -> bool {
        self.moved.contains(job)
    }

    /// What a look found; gives those of its jobs that are news. What was there before the first look is none.
    pub(super) fn looked<'a>(
        &mut self,
        survey: &'a Survey,
        is_followed: impl Fn(&JobId) -> bool,
    ) -> Vec<&'a JobSummary> {
        let is_first = !std::mem::replace(&mut self.has_looked, true);
        let mut news = Vec::new();
        for summary in &survey.jobs {
            let Ok(job) = summary.id.parse::<JobId>() else { continue };
            if self.moved.contains(&job) || (!is_first && is_followed(&job)) {
                continue;
            }
            let now = standing(summary);
            if self.standings.insert(job, now) != Some(now) && !is_first {
                news.push(summary);
            }
        }
        let mut applied: Vec<JobId> =
            survey.jobs.iter().filter(|job| is_applied(job)).flat_map(|job| job.id.parse()).collect();
        // Their ids begin with when they were made.
        applied.sort_by(|a, b| b.cmp(a));
        let is_old = |job: &JobId| applied.iter().skip(MOST_APPLIED).any(|old| old == job);
        let is_left = |job: &JobId| survey.gone.contains(job) || is_old(job);
        self.standings.retain(|job, _| self.moved.contains(job) || !is_left(job));
        news
    }
}

fn is_applied(job: &JobSummary) -> bool {
    job.state == SeenState::Finished && job.disposition == Disposition::Applied
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const ID: &str = "20261002-101500-k7m2qa";

    fn job() -> JobId {
        ID.parse().unwrap()
    }

    /// The job, decided about at this second.
    fn summary(disposition: Disposition, second: u8) -> JobSummary {
        let summary = json!({
            "id": ID, "title": "t", "harness": "codex", "access": "write", "repository": "file:///r",
            "base": {"kind": "head", "commit": "c"}, "state": "finished", "outcome": "succeeded",
            "disposition": disposition, "createdAt": "2026-10-02T10:15:00Z",
            "decidedAt": format!("2026-10-02T10:16:{second:02}Z"),
        });
        serde_json::from_value(summary).unwrap()
    }

    fn stands(disposition: Disposition, second: u8) -> Standing {
        standing(&summary(disposition, second))
    }

    /// What a look finds that sees the job like this.
    fn found(disposition: Disposition, second: u8) -> Survey {
        let gone = if disposition == Disposition::Discarded { HashSet::from([job()]) } else { HashSet::new() };
        Survey { unfinished: Vec::new(), jobs: vec![summary(disposition, second)], gone }
    }

    /// Looks as it would be found now; how many news that gives.
    fn look(seen: &mut Seen, disposition: Disposition, second: u8) -> usize {
        let _ = seen.begin();
        seen.looked(&found(disposition, second), |_| false).len()
    }

    #[test]
    fn what_was_there_before_is_no_news_and_each_change_is_told_once() {
        use Disposition::{Applied, Discarded, PartlyApplied, Pending};
        let mut seen = Seen::default();
        let looks =
            [(Pending, 0), (Pending, 0), (PartlyApplied, 1), (PartlyApplied, 1), (PartlyApplied, 2), (Applied, 3)];
        assert_eq!(looks.map(|(now, second)| look(&mut seen, now, second)), [0, 0, 1, 0, 1, 1]);
        assert!(!seen.moved(job(), stands(Applied, 3)));
        assert!(seen.moved(job(), stands(Pending, 4)));
        assert_eq!(look(&mut seen, Pending, 4), 0);
        assert_eq!((look(&mut seen, Discarded, 5), seen.begin().count()), (1, 0));
    }

    #[test]
    fn a_look_that_began_before_a_command_knows_less_than_we_do() {
        let mut seen = Seen::default();
        look(&mut seen, Disposition::Pending, 0);
        assert_eq!(seen.begin().count(), 1);
        assert!(!seen.has_moved(&job()));
        assert!(seen.moved(job(), stands(Disposition::Applied, 1)));
        assert!(seen.has_moved(&job()));
        assert_eq!(seen.looked(&found(Disposition::Pending, 0), |_| false).len(), 0, "it was applied since");
        assert_eq!(look(&mut seen, Disposition::Pending, 2), 1, "somebody else undid it");
    }

    #[test]
    fn of_applied_jobs_the_newest_are_looked_at_on() {
        let mut seen = Seen::default();
        let mut many = found(Disposition::Applied, 0);
        let ids: Vec<String> = (0..60).map(|second| format!("20261002-1015{second:02}-k7m2qa")).collect();
        many.jobs = ids.iter().map(|id| JobSummary { id: id.clone(), ..many.jobs[0].clone() }).collect();
        let _ = seen.begin();
        assert_eq!(seen.looked(&many, |_| false).len(), 0);
        let kept: HashSet<String> = seen.begin().map(ToString::to_string).collect();
        assert_eq!(kept, ids[10..].iter().cloned().collect());
    }

    #[test]
    fn a_followed_job_is_told_of_by_its_follower() {
        let mut seen = Seen::default();
        look(&mut seen, Disposition::Pending, 0);
        let _ = seen.begin();
        assert_eq!(seen.looked(&found(Disposition::Applied, 1), |_| true).len(), 0);
    }
}
