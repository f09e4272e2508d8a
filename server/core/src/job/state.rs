//! A job's state: the fold of its journal, and nothing else.
//!
//! Work happens in numbered attempts; the first terminal event of an attempt wins, later ones are ignored. Any
//! order of events, even one that no host would write, folds to a legal state: what does not fit is ignored
//! and counted. Whether a host is alive is not in the journal: [`JobState::seen`] adds it, and a state that needs
//! a host which is gone is *lost* — derived by each reader, written by none.

mod applies;
mod trigger;

pub use self::applies::{Applies, WrittenApply};

use std::collections::BTreeSet;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::event::{
    AttemptReason, CheckoutRecord, HostRecord, Known, PlanStatus, ProcessRecord, Record, ResultRecord, TreeRecord,
    Usage,
};
use super::outcome::{Deadline, Disposition, Outcome};
use crate::fingerprint::{OutsideChange, Weight};
use crate::permission::PermissionOption;
use crate::{AttemptNo, Failure, FailureCode, ObjectId, Seq};

/// Where an attempt stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Phase {
    /// Asked for; no host has written yet.
    #[default]
    Queued,
    /// A host makes the tree.
    Preparing,
    /// The harness works.
    Running,
    /// The harness waits for a person.
    Waiting,
    /// The result is being verified.
    Verifying,
    /// The attempt is over.
    Finished,
}

/// What a person is told: the phase, or that its host is gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
#[expect(missing_docs, reason = "see Phase; Lost is described at the module")]
pub enum SeenState {
    Queued,
    Preparing,
    Running,
    Waiting,
    Verifying,
    Finished,
    Lost,
}

/// Whether a process holds the job's lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Host {
    /// Somebody does.
    Alive,
    /// Nobody does.
    Gone,
}

/// The fold of a journal.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct JobState {
    /// Where the latest attempt stands.
    pub phase: Phase,
    /// The latest attempt; `None` before the first one started.
    pub attempt: Option<Attempt>,
    /// The newest captured result of any attempt: what a preview shows and an apply takes.
    pub result: Option<ResultRecord>,
    /// What became of it.
    pub disposition: Disposition,
    /// The applies so far.
    pub applies: Applies,
    /// The tree of what the person accepted so far, over all results; `None` when nothing ever was.
    pub accepted: Option<ObjectId>,
    /// The job's tree, from the first attempt that made one until a discard or a prune.
    pub tree: Option<TreeRecord>,
    /// Whether a harness ran in the tree since that was captured last: what it did may be nowhere else.
    pub is_uncaptured: bool,
    /// What the latest attempt shares with the person, as it was before the attempt; `None` once that was compared.
    pub watched: Option<Watched>,
    /// The checkout in which the latest attempt looks around, as it was before; `None` once that was compared.
    pub guarded: Option<Guarded>,
    /// What was not as it was in the checkout after the latest attempt that looked around there.
    pub checkout_changes: Vec<String>,
    /// How many more there were.
    pub checkout_changes_more: u64,
    /// How the newest result fared in its verification, command by command.
    pub verification: Vec<Verification>,
    /// What changed outside the tree, an entry for each attempt in which something did.
    pub outside: Vec<OutsideSeen>,
    /// The ids of changes outside that were put back.
    pub put_back: BTreeSet<String>,
    /// What the agent is doing, in a few words.
    pub activity: Option<String>,
    /// What a person should know, newest last, bounded.
    pub notices: Vec<String>,
    /// The first launch.
    pub started_at: Option<Timestamp>,
    /// The end of the latest attempt.
    pub ended_at: Option<Timestamp>,
    /// When the result was last applied, given up, or an apply of it undone.
    pub decided_at: Option<Timestamp>,
    /// The last record folded.
    pub last: Seq,
    /// Records that did not fit where they stood.
    pub ignored: u64,
}

/// A record of what an attempt shares with the person.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Watched {
    /// The attempt.
    pub of: AttemptNo,
    /// The record's digest.
    pub digest: String,
}

/// A record of the checkout in which an attempt looks around.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Guarded {
    /// The attempt.
    pub of: AttemptNo,
    /// Which directory it is.
    pub checkout: CheckoutRecord,
    /// The record's digest.
    pub digest: String,
    /// The boot in which it was made: times of another one cannot be compared with it.
    pub boot_id: String,
}

/// How one verification command ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verification {
    /// The command.
    pub command: String,
    /// Whether it ended as it should.
    pub passed: bool,
    /// Its exit code, where there is one.
    pub exit_code: Option<i64>,
    /// The end of its output.
    pub tail: String,
}

/// What changed outside the tree while an attempt ran.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutsideSeen {
    /// The attempt.
    pub of: AttemptNo,
    /// Worst first, bounded.
    pub changes: Vec<OutsideChange>,
    /// How many more there are.
    pub more: u64,
    /// How many of those are dangerous. They have no names, so they cannot be put back, only confirmed.
    pub more_dangerous: u64,
    /// The digest of the record of before.
    pub before: String,
    /// And of the one of after.
    pub after: String,
}

/// The latest attempt.
#[derive(Clone, Debug, PartialEq)]
pub struct Attempt {
    /// Its number.
    pub number: AttemptNo,
    /// Why it was opened.
    pub reason: AttemptReason,
    /// Who hosts it.
    pub host: HostRecord,
    /// The harness's first process, once it was launched.
    pub leader: Option<ProcessRecord>,
    /// The harness's version, once known.
    pub harness_version: Option<String>,
    /// The harness's session, once named. Carried over to the next attempt.
    pub session: Option<String>,
    /// The model that the harness says it uses.
    pub actual_model: Option<String>,
    /// Tokens of this attempt.
    pub usage: Option<Usage>,
    /// Tokens of the session in the attempts before: what a harness that counts over the session counted already.
    pub used_before: Usage,
    /// The permission requests that are open, oldest first.
    pub waiting: Vec<Waiting>,
    /// The ids of those that were answered.
    pub answered: BTreeSet<String>,
    /// Whether a result was captured in it.
    pub captured: bool,
    /// Whether a person asked for the end.
    pub cancel_requested: bool,
    /// How it ended.
    pub ended: Option<Ended>,
}

/// A permission request that nobody answered yet.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Waiting {
    /// The id that an answer names.
    pub request: String,
    /// One line for people.
    pub title: String,
    /// All of it, where that is more than the title.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
    /// The answers that the harness takes, in its order.
    pub options: Vec<PermissionOption>,
    /// When it was asked.
    pub since: Timestamp,
}

/// How an attempt ended.
#[derive(Clone, Debug, PartialEq)]
pub struct Ended {
    /// The outcome.
    pub outcome: Outcome,
    /// What went wrong.
    pub failure: Option<Failure>,
    /// The agent's last words.
    pub final_message: Option<String>,
}

/// What an event asks of the phase.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trigger {
    /// A host took the job.
    Start,
    /// The harness runs.
    Launch,
    /// A permission is asked for.
    Ask,
    /// A permission was answered; others are open.
    Answer,
    /// The last open permission was answered.
    Settle,
    /// The harness ended: nothing waits for an answer any more.
    Exit,
    /// Verification runs.
    Verify,
    /// The attempt is over.
    End,
    /// The result is applied, an apply undone, the result given up, or the tree removed to make room.
    Dispose,
    /// Anything that a live attempt may report at any time.
    Report,
}

/// The transition table: the phase after `trigger`, or `None` where it has no place.
pub fn transition(phase: Phase, trigger: Trigger) -> Option<Phase> {
    use Phase as P;
    match (phase, trigger) {
        // A recovery may open an attempt at any point: the one before it lost its host.
        (_, Trigger::Start) => Some(P::Preparing),
        (P::Preparing, Trigger::Launch) => Some(P::Running),
        (P::Running | P::Waiting, Trigger::Ask) => Some(P::Waiting),
        (P::Waiting, Trigger::Answer) => Some(P::Waiting),
        (P::Waiting, Trigger::Settle | Trigger::Exit) => Some(P::Running),
        (P::Preparing | P::Running | P::Verifying, Trigger::Exit) => Some(phase),
        (P::Preparing | P::Running | P::Waiting, Trigger::Verify) => Some(P::Verifying),
        (P::Preparing | P::Running | P::Waiting | P::Verifying, Trigger::End) => Some(P::Finished),
        (P::Preparing | P::Running | P::Waiting | P::Verifying, Trigger::Report) => Some(phase),
        (P::Finished, Trigger::Dispose) => Some(P::Finished),
        (P::Queued, Trigger::Launch | Trigger::Ask | Trigger::Answer | Trigger::Settle | Trigger::Exit)
        | (P::Queued, Trigger::Verify | Trigger::End | Trigger::Dispose | Trigger::Report)
        | (P::Preparing, Trigger::Ask | Trigger::Answer | Trigger::Settle | Trigger::Dispose)
        | (P::Running, Trigger::Launch | Trigger::Answer | Trigger::Settle | Trigger::Dispose)
        | (P::Waiting, Trigger::Launch | Trigger::Dispose)
        | (P::Verifying, Trigger::Launch | Trigger::Ask | Trigger::Answer | Trigger::Settle | Trigger::Verify)
        | (P::Verifying, Trigger::Dispose)
        | (P::Finished, Trigger::Launch | Trigger::Ask | Trigger::Answer | Trigger::Settle | Trigger::Exit)
        | (P::Finished, Trigger::Verify)
        | (P::Finished, Trigger::End | Trigger::Report) => None,
    }
}

impl JobState {
    /// Folds a whole journal.
    pub fn fold<'a>(records: impl IntoIterator<Item = &'a Record>) -> Self {
        let mut state = Self::default();
        for record in records {
            state.apply(record);
        }
        state
    }

    /// Folds one more record.
    pub fn apply(&mut self, record: &Record) {
        self.last = record.seq;
        let Some(known) = record.event.meaning() else { return };
        let known = known.as_ref();
        let of_this_attempt = self.attempt.as_ref().is_some_and(|attempt| attempt.number == record.attempt);
        let opens_next = matches!(known, Known::AttemptStarted { .. })
            && self.attempt.as_ref().is_none_or(|attempt| attempt.number < record.attempt);
        match self.trigger(known).and_then(|trigger| transition(self.phase, trigger)) {
            Some(next) if of_this_attempt && !matches!(known, Known::AttemptStarted { .. }) || opens_next => {
                self.phase = next;
                self.note(record, known);
            }
            _ => self.ignored += 1,
        }
    }

    /// What a reader tells a person, knowing whether a host is alive.
    pub fn seen(&self, host: Host) -> SeenState {
        match (self.phase, host) {
            (Phase::Finished, _) => SeenState::Finished,
            (_, Host::Gone) => SeenState::Lost,
            (Phase::Queued, Host::Alive) => SeenState::Queued,
            (Phase::Preparing, Host::Alive) => SeenState::Preparing,
            (Phase::Running, Host::Alive) => SeenState::Running,
            (Phase::Waiting, Host::Alive) => SeenState::Waiting,
            (Phase::Verifying, Host::Alive) => SeenState::Verifying,
        }
    }

    /// How the latest attempt ended, once it did.
    pub fn ended(&self) -> Option<&Ended> {
        self.attempt.as_ref()?.ended.as_ref()
    }

    /// Whether the latest attempt ended while processes of it may have lived on: its tree was not captured.
    pub fn is_survived(&self) -> bool {
        let failure = self.ended().and_then(|ended| ended.failure.as_ref());
        failure.is_some_and(|failure| failure.code == FailureCode::ProcessesSurvived)
    }

    /// Whether the latest attempt is over, and what was in its tree then is not captured: a recovery can do that yet.
    pub fn is_to_capture(&self) -> bool {
        self.phase == Phase::Finished && self.is_uncaptured
    }

    /// The number that the next attempt will have.
    pub fn next_attempt(&self) -> AttemptNo {
        self.attempt.as_ref().map_or(AttemptNo::FIRST, |attempt| attempt.number.next())
    }

    /// Everything that changed outside the tree, worst first, with what was put back marked.
    pub fn outside_changes(&self) -> Vec<OutsideChange> {
        let mut changes: Vec<_> = self.outside.iter().flat_map(|seen| seen.changes.iter().cloned()).collect();
        for change in &mut changes {
            change.restored = self.put_back.contains(&change.id);
        }
        changes.sort_by_key(|change| change.weight);
        changes
    }

    /// Whether something dangerous changed outside the tree and was not put back, named or not.
    pub fn has_danger_outside(&self) -> bool {
        let dangerous = |change: &OutsideChange| change.weight == Weight::Dangerous && !change.restored;
        self.unnamed_danger_outside() > 0 || self.outside_changes().iter().any(dangerous)
    }

    /// How many dangerous changes outside the tree were too many to be named.
    pub fn unnamed_danger_outside(&self) -> u64 {
        self.outside.iter().map(|seen| seen.more_dangerous).fold(0, u64::saturating_add)
    }

    /// What the event asks of the phase; nothing where it is about a request that is not open, or is open already.
    fn trigger(&self, known: &Known) -> Option<Trigger> {
        let open = self.attempt.as_ref().map_or(&[][..], |attempt| &attempt.waiting);
        let is_open = |id: &String| open.iter().any(|waiting| waiting.request == *id);
        match known {
            Known::PermissionRequested { request, .. } => (!is_open(request)).then_some(Trigger::Ask),
            Known::PermissionAnswered { request, .. } if !is_open(request) => None,
            Known::PermissionAnswered { .. } if open.len() > 1 => Some(Trigger::Answer),
            Known::PermissionAnswered { .. } => Some(Trigger::Settle),
            _ => Some(trigger::trigger(known)),
        }
    }

    /// The disposition of a result that nobody applied whole.
    fn undecided(&self) -> Disposition {
        match (&self.accepted, &self.result) {
            (None, _) => Disposition::Pending,
            (Some(accepted), Some(result)) if *accepted == result.base_tree => Disposition::Pending,
            (Some(accepted), Some(result)) if accepted == result.change_set.tree() => Disposition::Applied,
            (Some(_), _) => Disposition::PartlyApplied,
        }
    }

    fn note(&mut self, record: &Record, known: &Known) {
        if let Known::AttemptStarted { reason, host } = known {
            self.open_attempt(record, *reason, host);
            return;
        }
        self.note_on_job(record, known);
        if let Some(attempt) = &mut self.attempt {
            attempt.note(record, known);
        }
    }

    fn open_attempt(&mut self, record: &Record, reason: AttemptReason, host: &HostRecord) {
        let before = self.attempt.take();
        self.ended_at = None;
        self.activity = None;
        // A recovery concludes from what was found; another turn is another comparison.
        if reason != AttemptReason::Recovery {
            self.checkout_changes.clear();
            self.checkout_changes_more = 0;
        }
        self.attempt = Some(Attempt {
            number: record.attempt,
            reason,
            host: host.clone(),
            leader: None,
            harness_version: before.as_ref().and_then(|attempt| attempt.harness_version.clone()),
            session: before.as_ref().and_then(|attempt| attempt.session.clone()),
            used_before: before.as_ref().map(Attempt::session_usage).unwrap_or_default(),
            actual_model: before.and_then(|attempt| attempt.actual_model),
            usage: None,
            waiting: Vec::new(),
            answered: BTreeSet::new(),
            captured: false,
            cancel_requested: false,
            ended: None,
        });
    }

    fn note_on_job(&mut self, record: &Record, known: &Known) {
        match known {
            Known::TreeReady { tree } => self.tree = Some(tree.clone()),
            Known::Launched { .. } => {
                self.started_at = self.started_at.or(Some(record.at));
                self.is_uncaptured = self.tree.is_some();
            }
            Known::Captured { result } => {
                self.is_uncaptured = false;
                self.verification.clear();
                let new = self.result.as_ref() != Some(result);
                self.result = Some(result.clone());
                if new {
                    self.disposition = self.undecided();
                }
            }
            Known::AttemptEnded { failure, .. } => {
                self.ended_at = Some(record.at);
                self.activity = None;
                // What still runs can still write: whoever ends it compares.
                if failure.as_ref().is_none_or(|failure| failure.code != FailureCode::ProcessesSurvived) {
                    self.watched = None;
                    self.guarded = None;
                }
            }
            Known::VerificationStarted | Known::Verified { .. } => self.note_verification(known),
            Known::CheckoutGuarded { checkout, digest } => {
                let boot = self.attempt.as_ref().map(|attempt| attempt.host.process.boot_id.clone());
                let (digest, boot_id) = (digest.clone(), boot.unwrap_or_default());
                self.guarded = Some(Guarded { of: record.attempt, checkout: checkout.clone(), digest, boot_id });
            }
            Known::CheckoutCompared { changed, more, .. } => {
                self.guarded = None;
                (self.checkout_changes, self.checkout_changes_more) = (changed.clone(), *more);
            }
            Known::Applied { apply, complete, accepted, paths, .. } => {
                self.decided_at = Some(record.at);
                self.applies.add(*apply, record.at, paths);
                self.accepted.clone_from(accepted);
                self.disposition = if *complete { Disposition::Applied } else { Disposition::PartlyApplied };
            }
            Known::Undone { apply, accepted } => {
                self.decided_at = Some(record.at);
                self.applies.take_back(*apply);
                self.accepted.clone_from(accepted);
                self.disposition = self.undecided();
            }
            Known::Discarded => {
                self.decided_at = Some(record.at);
                self.disposition = Disposition::Discarded;
                (self.tree, self.is_uncaptured) = (None, false);
            }
            Known::TreeRemoved => (self.tree, self.is_uncaptured) = (None, false),
            Known::OutsideRecorded { digest } => {
                self.watched = Some(Watched { of: record.attempt, digest: digest.clone() });
            }
            Known::OutsideChanges { of, changes, more, more_dangerous, before, after } => {
                self.watched = None;
                let (changes, before, after) = (changes.clone(), before.clone(), after.clone());
                let (of, more, more_dangerous) = (*of, *more, *more_dangerous);
                self.outside.push(OutsideSeen { of, changes, more, more_dangerous, before, after });
            }
            Known::OutsideRestored { ids } => self.put_back.extend(ids.iter().cloned()),
            Known::Notice { text, .. } => {
                const KEPT: usize = 32;
                if !self.notices.contains(text) && self.notices.len() < KEPT {
                    self.notices.push(text.clone());
                }
            }
            _ => {
                if let Some(activity) = activity(known) {
                    self.activity = Some(activity);
                }
            }
        }
    }
}

impl JobState {
    fn note_verification(&mut self, known: &Known) {
        if let Known::Verified { command, passed, exit_code, tail } = known {
            let (command, tail, passed, exit_code) = (command.clone(), tail.clone(), *passed, *exit_code);
            self.verification.push(Verification { command, passed, exit_code, tail });
        } else {
            self.verification.clear();
            self.activity = activity(known);
        }
    }
}

impl Attempt {
    /// Tokens of the session so far, over all its attempts.
    pub fn session_usage(&self) -> Usage {
        self.used_before.plus(self.usage.unwrap_or_default())
    }

    fn note(&mut self, record: &Record, known: &Known) {
        match known {
            Known::Launched { leader, harness_version } => {
                self.leader = Some(leader.clone());
                self.harness_version = harness_version.clone().or(self.harness_version.take());
            }
            Known::SessionStarted { session, model } => {
                if self.session.as_ref().is_some_and(|known| known != session) {
                    self.used_before = Usage::default();
                }
                self.session = Some(session.clone());
                self.actual_model = model.clone().or(self.actual_model.take());
            }
            Known::Usage { usage } => self.usage = Some(*usage),
            Known::PermissionRequested { request, title, detail, options } => {
                self.answered.remove(request);
                let (request, title, detail, options) =
                    (request.clone(), title.clone(), detail.clone(), options.clone());
                self.waiting.push(Waiting { request, title, detail, options, since: record.at });
            }
            Known::PermissionAnswered { request, .. } => {
                self.waiting.retain(|waiting| waiting.request != *request);
                self.answered.insert(request.clone());
            }
            Known::HarnessExited { .. } | Known::VerificationStarted => self.waiting.clear(),
            Known::Captured { .. } => self.captured = true,
            Known::CancelRequested => self.cancel_requested = true,
            Known::AttemptEnded { outcome, failure, final_message } => {
                self.waiting.clear();
                self.ended =
                    Some(Ended { outcome: *outcome, failure: failure.clone(), final_message: final_message.clone() });
            }
            _ => {}
        }
    }
}

/// What a progress line says after this event.
pub fn activity(known: &Known) -> Option<String> {
    use crate::display::{headline, script};
    const WIDTH: usize = 80;
    match known {
        Known::TreeReady { .. } => Some("tree ready".to_owned()),
        Known::Launched { .. } => Some("harness started".to_owned()),
        Known::Message { text } | Known::Activity { text } => Some(headline(text, WIDTH)),
        Known::Reasoning { text } => Some(headline(text.trim_matches('*'), WIDTH)),
        Known::CommandStarted { command, .. } => Some(headline(&format!("$ {}", script(command)), WIDTH)),
        Known::FilesTouched { paths } => Some(match paths.as_slice() {
            [one] => headline(&format!("edited {one}"), WIDTH),
            many => format!("edited {} files", many.len()),
        }),
        Known::ToolUsed { tool, .. } => Some(headline(&format!("used {tool}"), WIDTH)),
        Known::Plan { entries } => {
            let now = entries.iter().find(|entry| entry.status == PlanStatus::InProgress);
            now.map(|entry| headline(&format!("works on: {}", entry.text), WIDTH))
        }
        Known::PermissionRequested { title, .. } => Some(headline(&format!("asks: {title}"), WIDTH)),
        Known::PermissionDecided { title, granted: false, .. } => {
            Some(headline(&format!("was refused: {title}"), WIDTH))
        }
        Known::CancelRequested => Some("cancelling".to_owned()),
        Known::DeadlinePassed { deadline: Deadline::Total | Deadline::Stall } => Some("out of time".to_owned()),
        Known::DeadlinePassed { deadline: Deadline::Tokens | Deadline::Cost } => Some("over its limit".to_owned()),
        Known::HarnessExited { .. } => Some("capturing the result".to_owned()),
        Known::VerificationStarted => Some("verifying".to_owned()),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
