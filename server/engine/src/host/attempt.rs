//! One attempt, from the tree to the last event: prepare, launch, drive, sweep, capture, verify, conclude.
//!
//! Every step's failure becomes part of the outcome; only a journal that cannot be written ends the host without one
//! (the attempt is then *lost*, and the next recovery repairs it). A result is captured only with the proof that
//! nothing of the job runs any more.

use pactify_core::harness::Conclusion;
use pactify_core::job::Place;
use pactify_core::job::access::Access;
use pactify_core::job::event::{AttemptReason, Known, ProcessRecord, TreeRecord};
use pactify_core::job::outcome::{Deadline, Observed, Outcome, Verdict, conclude};
use pactify_core::job::state::Phase;
use pactify_core::{Failure, FailureCode};

use super::drive::{Driven, LEFTOVERS, drive};
use super::error::{Concluded as _, Stop};
use super::turn::{self, Turn, Workplace};
use super::{Host, HostError, guard, leftovers, logins, meanwhile, private, residue, setup, slots, verify, watch};
use crate::causes::with_causes;
use crate::git::{Git, Stage};
use crate::journal::JournalError;
use crate::process::tree::Process;
use crate::process::{JobTree, Marker, NotDead, ProcessIdentity, VerifiedDead};

/// What an attempt's work came to, before it is decided.
struct Work {
    conclusion: Conclusion,
    deadline: Option<Deadline>,
    failure: Option<Failure>,
    changes: Option<u64>,
    violation: Option<Failure>,
    verification: Option<Failure>,
}

impl Work {
    fn failed(failure: Failure) -> Self {
        let conclusion = Conclusion { verdict: Verdict::Silent, final_message: None };
        Self { failure: Some(failure), ..Self::of(conclusion) }
    }

    fn not_begun() -> Self {
        Self { failure: None, ..Self::failed(Failure::internal("not begun")) }
    }

    fn of(conclusion: Conclusion) -> Self {
        Self { conclusion, deadline: None, failure: None, changes: None, violation: None, verification: None }
    }

    fn observed(&self, host: &Host) -> Observed {
        Observed {
            access: host.spec().access,
            cancelled: host.cancelled(),
            deadline: self.deadline,
            own_failure: self.failure.clone(),
            verdict: self.conclusion.verdict.clone(),
            changes: self.changes,
            violation: self.violation.clone(),
            verification: self.verification.clone(),
        }
    }
}

/// The job's first run, or a further turn of its session.
pub(super) async fn run(host: &mut Host, turn: Turn) -> Result<(), HostError> {
    let slot = slots::wait(host).await?;
    if host.cancelled() && matches!(turn, Turn::Further(_)) {
        // Taken back before its turn came: the job stays as it was.
        return Ok(());
    }
    host.open_attempt(match turn {
        Turn::First => AttemptReason::Run,
        Turn::Further(_) => AttemptReason::Resume,
    })?;
    let work = match host.unconfigured.clone() {
        _ if host.cancelled() => Work::not_begun(),
        Some(failure) => Work::failed(failure),
        None => work(host, &turn).await.concluded()?.unwrap_or_else(Work::failed),
    };
    drop(slot);
    end(host, work)
}

/// Repairs a job whose host died, or could not end or capture everything: sweeps what it left running, captures what it
/// left in its tree.
pub(super) async fn recover(host: &mut Host) -> Result<(), HostError> {
    let before = host.state().attempt.clone();
    let left = Left::of(host);
    let why = Why::of(host);
    host.open_attempt(AttemptReason::Recovery)?;
    let (old_host, leader) = match &before {
        None => (None, None),
        Some(attempt) => (Some(&attempt.host.process), attempt.leader.as_ref()),
    };
    let named = |record: Option<&ProcessRecord>| record.and_then(|record| ProcessIdentity::try_from(record).ok());
    let processes = JobTree::left_by(Marker::of(host.job()), named(old_host), named(leader));
    let dead = host.away(move || processes.sweep(LEFTOVERS)).await?;
    let mut work = Work::not_begun();
    let lost = why_recovered(&left, why);
    match swept(host, dead).concluded()? {
        Err(failure) => work.failure = Some(failure),
        Ok(dead) => {
            let dead = logins::end(host, dead).await?;
            match left {
                Left::Checkout => compare(host, &mut work).await?,
                Left::Nothing => {
                    watch::end(host).await?;
                    turn::unmake(host).await?;
                }
                Left::Result => {
                    watch::end(host).await?;
                    residue::end(host).await?;
                }
                Left::Tree(tree) => {
                    watch::end(host).await?;
                    capture(host, dead, tree, &mut work).await?;
                }
            }
        }
    }
    // Why there is no result says more than that the host died.
    work.failure.get_or_insert(lost);
    if before.is_some_and(|attempt| attempt.cancel_requested) {
        host.note_cancel();
    }
    end(host, work)
}

/// Why there is something to look after.
#[derive(Clone, Copy)]
enum Why {
    /// The host died.
    HostLost,
    /// Processes outlived the attempt.
    Survived,
    /// The tree could not be captured.
    Uncaptured,
}

impl Why {
    fn of(host: &Host) -> Self {
        match host.state() {
            state if state.is_survived() => Self::Survived,
            state if state.is_to_capture() => Self::Uncaptured,
            _ => Self::HostLost,
        }
    }
}

/// What a host that died left to be looked after.
enum Left {
    /// It died while it made the tree: nothing ever ran in there.
    Nothing,
    /// A tree in which something ran.
    Tree(TreeRecord),
    /// A result, captured. What the tree holds by now is not the job's alone: verification ran there.
    Result,
    /// The person's checkout, in which something may have run.
    Checkout,
}

impl Left {
    fn of(host: &Host) -> Self {
        let state = host.state();
        let is_captured = state.attempt.as_ref().is_some_and(|attempt| attempt.captured);
        match (host.spec().place, &state.tree) {
            (Place::Checkout, _) => Self::Checkout,
            (Place::Tree, _) if state.phase == Phase::Verifying || state.is_survived() && is_captured => Self::Result,
            (Place::Tree, Some(tree)) => Self::Tree(tree.clone()),
            (Place::Tree, None) => Self::Nothing,
        }
    }
}

async fn work(host: &mut Host, turn: &Turn) -> Result<Work, Stop> {
    match host.spec().place {
        Place::Tree => in_tree(host, turn).await,
        Place::Checkout => in_checkout(host, turn).await,
    }
}

async fn in_tree(host: &mut Host, turn: &Turn) -> Result<Work, Stop> {
    let tree = turn::tree(host, turn).await?;
    if host.cancelled() {
        return Ok(Work::not_begun());
    }
    watch::begin(host).await?;
    if let Turn::First = turn
        && let Err(failure) = setup::run(host, &tree).await.concluded()?
    {
        // Many a setup writes to the person's configuration (bug report 15).
        watch::end(host).await?;
        return Ok(Work::failed(failure));
    }
    if host.cancelled() {
        watch::end(host).await?;
        return Ok(Work::not_begun());
    }
    let before = match guard::look(host, &tree).await.concluded()? {
        Ok(before) => before,
        Err(failure) => {
            watch::end(host).await?;
            return Ok(Work::failed(failure));
        }
    };
    let checkout = meanwhile::begin(host).await?;
    let running = match turn::start(host, turn, &Workplace::Tree(tree.clone())).await.concluded()? {
        Ok(Some(running)) => running,
        // The setup command ran all the same.
        Ok(None) => return not_started(host, Work::not_begun()).await,
        Err(failure) => return not_started(host, Work::failed(failure)).await,
    };
    let Driven { conclusion, deadline, failure, dead } = drive(host, running).await;
    let mut work = Work { deadline, failure, ..Work::of(conclusion) };
    match swept(host, dead).concluded()? {
        Ok(dead) => {
            let dead = logins::end(host, dead).await?;
            capture(host, dead, tree.clone(), &mut work).await?;
            if let (Some(before), Some(0)) = (before, work.changes) {
                work.violation = guard::look_again(host, before).await?;
            }
            // What the job wrote runs once more here: it is watched as the job was.
            verify(host, &tree, &mut work).await?;
            watch::end(host).await?;
            meanwhile::end(host, checkout).await?;
        }
        // More than whatever else went wrong: the job is not over before somebody sees to it.
        Err(failure) => work.failure = Some(failure),
    }
    Ok(work)
}

/// What is left to do where no harness was started: a check before the launch may have run.
async fn not_started(host: &mut Host, work: Work) -> Result<Work, Stop> {
    logins::abandon(host).await?;
    watch::end(host).await?;
    Ok(work)
}

/// A read-only job that looks around in the person's checkout. Nothing is made there, captured from there, or removed
/// there.
async fn in_checkout(host: &mut Host, turn: &Turn) -> Result<Work, Stop> {
    turn::without_tree(host).await?;
    watch::begin(host).await?;
    let checkout = match guard::begin(host).await.concluded()? {
        Ok(checkout) => checkout,
        Err(failure) => {
            watch::end(host).await?;
            return Ok(Work::failed(failure));
        }
    };
    let (mut work, dead) = match turn::start(host, turn, &Workplace::Checkout(checkout)).await.concluded()? {
        // A check before the launch may have run.
        Ok(None) => {
            logins::abandon(host).await?;
            (Work::not_begun(), None)
        }
        Err(failure) => {
            logins::abandon(host).await?;
            (Work::failed(failure), None)
        }
        Ok(Some(running)) => {
            let Driven { conclusion, deadline, failure, dead } = drive(host, running).await;
            (Work { deadline, failure, ..Work::of(conclusion) }, Some(dead))
        }
    };
    match dead.map(|dead| swept(host, dead).concluded()).transpose()? {
        Some(Err(failure)) => work.failure = Some(failure),
        Some(Ok(dead)) => {
            logins::end(host, dead).await?;
            compare(host, &mut work).await?;
        }
        None => compare(host, &mut work).await?,
    }
    Ok(work)
}

/// Compares what a job in the checkout shares with the person: all of it.
async fn compare(host: &mut Host, work: &mut Work) -> Result<(), HostError> {
    watch::end(host).await?;
    match guard::end(host).await.concluded()? {
        Ok(()) => work.changes = Some(0),
        Err(violation) => work.violation = Some(violation),
    }
    Ok(())
}

/// Verifies what would be a success of a write job, and nothing else.
async fn verify(host: &mut Host, tree: &TreeRecord, work: &mut Work) -> Result<(), HostError> {
    if host.spec().access != Access::Write || conclude(work.observed(host)).0 != Outcome::Succeeded {
        return Ok(());
    }
    match verify::run(host, tree).await.concluded()? {
        Ok(()) => {}
        Err(failure) if failure.code == FailureCode::VerificationFailed => work.verification = Some(failure),
        Err(failure) => work.failure = Some(failure),
    }
    Ok(())
}

/// Records what a sweep came to.
pub(super) fn swept(host: &mut Host, dead: Result<VerifiedDead, NotDead>) -> Result<VerifiedDead, Stop> {
    match dead {
        Ok(dead) => {
            host.record(Known::Swept { killed: count(dead.ended()), survivors: Vec::new() })?;
            Ok(dead)
        }
        Err(error) => {
            match &error {
                NotDead::Survivors { survivors, ended } => {
                    let survivors = survivors.iter().map(ToString::to_string).collect();
                    host.record(Known::Swept { killed: count(ended), survivors })?;
                }
                // Nobody can be named, and that nobody is left was not shown: a record without survivors would say it.
                NotDead::HostAlive { .. } | NotDead::Table(_) => {}
            }
            let next =
                "end these processes yourself, then run `pactify sub cancel` on the job: its tree is captured then";
            Err(Failure::new(FailureCode::ProcessesSurvived, with_causes(&error), next).into())
        }
    }
}

fn count(ended: &[Process]) -> u32 {
    u32::try_from(ended.len()).unwrap_or(u32::MAX)
}

async fn capture(host: &mut Host, dead: VerifiedDead, tree: TreeRecord, work: &mut Work) -> Result<(), HostError> {
    let (env, spec, places) = (host.env().clone(), host.spec().clone(), host.places());
    let leftovers = host.take_leftovers();
    let accepted = host.state().accepted.is_some();
    let captured = host
        .away(move || -> Result<_, Failure> {
            let git = Git::find(&env)?;
            leftovers::remove_empty(&tree, &leftovers);
            let captured = git
                .renew_accepted(&places, &spec.repository, &spec.base, accepted)
                .and_then(|()| git.capture(&dead, &places, &spec.repository, &spec.base, &tree));
            captured.map_err(|error| error.into_failure(Stage::Capture))
        })
        .await?;
    match captured {
        Ok(captured) => {
            work.changes = Some(captured.result.totals.files);
            host.record(Known::Captured { result: captured.result })?;
        }
        Err(failure) => {
            work.failure.get_or_insert(failure);
        }
    }
    Ok(())
}

fn end(host: &mut Host, work: Work) -> Result<(), HostError> {
    private::remove(host);
    let (outcome, failure) = conclude(work.observed(host));
    let final_message = work.conclusion.final_message;
    match host.record(Known::AttemptEnded { outcome, failure: failure.clone(), final_message }) {
        // What is kept free for this record is not enough for long last words.
        Err(HostError::Journal(JournalError::NoSpace { .. })) => {
            host.record(Known::AttemptEnded { outcome, failure, final_message: None })
        }
        recorded => recorded,
    }
}

fn why_recovered(left: &Left, why: Why) -> Failure {
    let next = match left {
        Left::Tree(_) => "what was in its tree is captured: look at it with `pactify sub diff`, or retry the job",
        Left::Result => "its result is captured, and was not verified to the end: look at it with `pactify sub diff`",
        Left::Nothing => "the job had not begun yet: retry it",
        Left::Checkout => "your checkout was compared with what it was: retry the job",
    };
    let (code, what) = match why {
        Why::HostLost => (FailureCode::HostLost, "the process that ran the job ended before the job did"),
        Why::Survived => (FailureCode::HarnessFailed, "processes of the job outlived its end; none is left now"),
        Why::Uncaptured => {
            (FailureCode::CaptureFailed, "the job's tree could not be captured when it ended; it is now")
        }
    };
    Failure::new(code, what, next)
}
