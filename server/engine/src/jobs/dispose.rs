//! Ending, repairing and giving up jobs: what needs the right to write to their journals.
//!
//! Every command here that meets a *lost* job first has a recovery host repair it, so that nothing it left is missed.

use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use pactify_core::brief::Brief;
use pactify_core::harness::registry;
use pactify_core::job::event::Known;
use pactify_core::job::outcome::Disposition;
use pactify_core::job::state::{Host, JobState, Phase, SeenState};
use pactify_core::job::{JobSpec, Place};
use pactify_core::protocol::{JobDetail, JobMoved, ResumeParams};
use pactify_core::{AbsPath, Failure, FailureCode, JobId, display};

use super::{Jobs, invalid, job_id};
use crate::causes::with_causes;
use crate::fingerprint;
use crate::git::Places;
use crate::host::control::{self, Reply, Request};
use crate::host::{self, Errand};
use crate::job_dir::socket::{self, SocketError};
use crate::job_dir::{JobDir, LockError};
use crate::journal::{Journal, JournalError};
use crate::process;
use crate::store::{Integrity, Listed};
use crate::tree::Trash;

/// How long a command waits for a recovery: sweep, capture of a large tree, last record.
const RECOVERY: Duration = Duration::from_secs(120);

/// How long a command waits for whoever else writes to a job: right after its end, its host still tidies.
pub(super) const BUSY: Duration = Duration::from_secs(20);

/// How long a resume waits for its attempt, once its host is there: longer means that it queues. And how long taking
/// one back waits for its host to listen.
const TURN: Duration = Duration::from_secs(5);

impl Jobs {
    /// Asks the job's host to end it and returns at once; a lost job is repaired instead, which ends it too.
    pub fn cancel(&self, job: &JobId) -> Result<JobMoved, Failure> {
        match self.store().seen(job)?.1 {
            SeenState::Finished => {
                self.take_back_resume(job)?;
                self.look_after(job)?;
            }
            SeenState::Lost => self.repair(job)?,
            SeenState::Queued
            | SeenState::Preparing
            | SeenState::Running
            | SeenState::Waiting
            | SeenState::Verifying => self.ask_to_cancel(job)?,
        }
        self.moved(job)
    }

    /// Goes on with a finished job: the same session and tree, another message.
    pub fn resume(&self, params: &ResumeParams) -> Result<JobMoved, Failure> {
        let job = job_id(&params.job_id)?;
        let message = Brief::new(params.message.clone()).map_err(|error| invalid(format!("message: {error}")))?;
        let journal = self.own(&job, "resume")?;
        refuse_survived(&journal, "resume")?;
        let session = journal.state().attempt.as_ref().and_then(|attempt| attempt.session.as_ref());
        let is_placed = journal.state().tree.is_some() || journal.spec().place == Place::Checkout;
        if session.is_none() || !is_placed || journal.state().disposition == Disposition::Discarded {
            let what = if session.is_none() { "its harness named no session" } else { "its tree is gone" };
            return Err(Failure::new(
                FailureCode::WrongState,
                format!("job {job} cannot go on: {what}"),
                "retry the job to have it done from the beginning",
            ));
        }
        let JobSpec { harness, settings, access, .. } = journal.spec();
        if let Some(harness) = registry::find(harness, settings) {
            // Those of the job's record: what the configuration says now is a new job's.
            harness.check_settings(settings, *access).map_err(|mut failure| {
                failure.next = format!("{}; then retry the job", failure.next);
                failure
            })?;
        }
        let last = journal.state().last;
        let lock = journal.into_lock();
        host::leave_message(&lock, &message)?;
        host::start(self.env(), lock, Errand::Resume)?;
        if let Ok(stream) = connect(&self.store().job(&job)?, BUSY) {
            // It may take its time to begin. What it came to, its events say.
            let _ = control::ask(stream, &Request::Hello);
        }
        // Until the host opens the attempt, the job looks finished. It may also have to queue: then it does.
        let begins = |limit| Ok::<_, Failure>(!self.await_events(&job, last.0, limit)?.events.is_empty());
        // It may have begun, and ended, since the events were read.
        if !begins(TURN)? && self.store().job(&job)?.host()? == Host::Gone && !begins(Duration::ZERO)? {
            return Err(Failure::new(
                FailureCode::HostUnreachable,
                format!("job {job} does not go on: its host ended before it began"),
                format!("see {}", self.store().job(&job)?.host_log()),
            ));
        }
        self.moved(&job)
    }

    /// The job as a resume finds it: of a lost one the end is recorded first. What stands in the way of that is the
    /// resume's to say.
    pub fn before_resume(&self, job: &JobId) -> Result<JobDetail, Failure> {
        let detail = self.status(job)?;
        if detail.summary.state != SeenState::Lost {
            return Ok(detail);
        }
        let _ = self.cancel(job);
        self.status(job)
    }

    /// Gives a result up and removes the job's tree. The record and the captured result stay.
    pub fn discard(&self, job: &JobId) -> Result<JobMoved, Failure> {
        let mut journal = self.own(job, "discard")?;
        let repository = journal.spec().repository.clone();
        if journal.state().disposition != Disposition::Discarded {
            refuse_survived(&journal, "discard")?;
            let attempt = self.last_attempt(&journal)?;
            self.settle_applies(&repository, &mut journal)?;
            let trash = Trash::open(self.store().home())?;
            self.take_tree(&journal, &trash)?;
            self.release(&journal, &Places::from(journal.lock().job()))?;
            trash.take(&journal.lock().job().path().join(fingerprint::DIRECTORY))?;
            journal.append(self.env().now(), attempt, Known::Discarded)?;
            self.remove_patch_file(job)?;
            // What cannot be unlinked stays in the trash, out of everybody's way.
            trash.empty()?;
        }
        // Also of a discard that did not come to this.
        self.forget_applies(&repository, &journal, job)?;
        drop(journal);
        self.moved(job)
    }

    /// Starts a recovery host for each job that is lost, and clears away jobs that were never finished being made.
    /// Called by a server when it starts; returns the jobs.
    pub fn recover_lost(&self) -> Result<Vec<JobId>, Failure> {
        self.store().sweep_unborn()?;
        let mut recovered = Vec::new();
        let mut after = None;
        loop {
            let page = self.store().list(after.as_ref(), 500)?;
            for listed in page.jobs {
                let Listed::Job { summary, seen: SeenState::Lost } = listed else { continue };
                match self.start_recovery(&summary.id) {
                    Ok(_) => recovered.push(summary.id.clone()),
                    // One job that cannot be repaired keeps no other one waiting.
                    Err(failure) => tracing::warn!(job = %summary.id, %failure, "a lost job is not repaired"),
                }
            }
            match page.next {
                None => return Ok(recovered),
                next => after = next,
            }
        }
    }

    /// The journal of a finished job, for a command that adds to it: every one of them is a person's to give. A lost
    /// job is repaired first.
    pub(super) fn own(&self, job: &JobId, verb: &str) -> Result<Journal, Failure> {
        self.refuse_inside_a_job()?;
        match self.store().seen(job)?.1 {
            SeenState::Finished => {}
            SeenState::Lost => self.repair(job)?,
            state => return Err(still_going(job, verb, state)),
        }
        let journal = Journal::open(self.store().job(job)?.lock(BUSY)?)?;
        if journal.state().phase == Phase::Finished {
            Ok(journal)
        } else {
            Err(still_going(job, verb, SeenState::Running))
        }
    }

    /// Moves the job's tree, and what only the tree's harness needs, into the trash, and ends the tree's registration.
    pub(super) fn take_tree(&self, journal: &Journal, trash: &Trash) -> Result<(), Failure> {
        let (dir, repository) = (journal.lock().job(), &journal.spec().repository);
        let places = Places::from(dir);
        refuse_held(dir.id(), &dir.tree())?;
        // What the harness refreshed may be in the home only.
        self.settle_logins(journal)?;
        // Before the registration goes: a linked worktree is told apart by it.
        if let Some(tree) = &journal.state().tree {
            trash.take_tree(&self.store().jobs(), tree)?;
        }
        if repository.common_dir.as_path().is_dir() {
            self.git()?.unregister(&places, repository)?;
        }
        for ours in [places.git(), places.look(), dir.home(), dir.tmp()] {
            trash.take(&ours)?;
        }
        Ok(())
    }

    /// Takes back what the job's tree has in the person's repository, if that still exists.
    pub(super) fn release(&self, journal: &Journal, places: &Places) -> Result<(), Failure> {
        let repository = &journal.spec().repository;
        if repository.common_dir.as_path().is_dir() {
            self.git()?.release(places, repository)?;
        }
        Ok(())
    }

    pub(super) fn last_attempt(&self, journal: &Journal) -> Result<pactify_core::AttemptNo, Failure> {
        let attempt = journal.state().attempt.as_ref();
        attempt.map(|attempt| attempt.number).ok_or_else(|| Failure::internal("a finished job without an attempt"))
    }

    pub(super) fn moved(&self, job: &JobId) -> Result<JobMoved, Failure> {
        let (snapshot, state) = self.store().seen(job)?;
        Ok(JobMoved { job_id: job.to_string(), state, disposition: snapshot.state.disposition })
    }

    /// A resume that waits for its turn has opened no attempt: only its host knows of it.
    fn take_back_resume(&self, job: &JobId) -> Result<(), Failure> {
        let dir = self.store().job(job)?;
        if dir.host()? == Host::Gone {
            return Ok(());
        }
        match connect(&dir, TURN) {
            // Whoever ends or applies the job holds its lock, too, and listens to nobody.
            Err(_) => Ok(()),
            Ok(stream) => match control::ask(stream, &Request::Cancel) {
                Ok(_) | Err(control::ControlError::Unreachable(_)) => Ok(()),
                Err(error) => Err(unreachable(job, &error)),
            },
        }
    }

    fn ask_to_cancel(&self, job: &JobId) -> Result<(), Failure> {
        let asked = connect(&self.store().job(job)?, BUSY)
            .map_err(Failure::from)
            .and_then(|stream| control::ask(stream, &Request::Cancel).map_err(|error| unreachable(job, &error)));
        match asked {
            Ok(Reply::Accepted) => Ok(()),
            Ok(Reply::Unsupported | Reply::Other | Reply::Hello { .. } | Reply::NotOpen | Reply::NoSuchOption) => {
                Err(Failure::new(
                    FailureCode::HostUnreachable,
                    format!("the host of job {job} is of another version and cannot be asked to cancel"),
                    "cancel with the pactify that started the job, or end the host process that its events name",
                ))
            }
            // It ended, or died, between our look and our question.
            Err(_) if self.store().seen(job)?.1 == SeenState::Finished => Ok(()),
            Err(_) if self.store().seen(job)?.1 == SeenState::Lost => self.repair(job),
            Err(failure) => Err(failure),
        }
    }

    /// Has a job repaired, that is lost, whose processes outlived it or whose tree was not captured, and waits until it
    /// is.
    pub(super) fn repair(&self, job: &JobId) -> Result<(), Failure> {
        if let Integrity::Damaged(damage) = &self.store().state(job)?.integrity {
            // No host may add to it.
            return Err(JournalError::Damaged(damage.clone()).into());
        }
        // Until the recovery opens its attempt, a job whose processes outlived it looks finished.
        let stand = |state: &JobState| state.attempt.as_ref().map(|attempt| (attempt.number, attempt.ended.is_some()));
        let before = stand(&self.store().seen(job)?.0.state);
        self.start_recovery(job)?;
        let deadline = Instant::now() + RECOVERY;
        let mut deaths = 0;
        loop {
            let (snapshot, state) = self.store().seen(job)?;
            let is_begun = stand(&snapshot.state) != before || !before.is_some_and(|(_, ended)| ended);
            if state == SeenState::Finished && is_begun {
                return Ok(());
            }
            if Instant::now() >= deadline {
                return Err(Failure::new(
                    FailureCode::StoreBusy,
                    format!("job {job} is being repaired, which takes longer than {} s", RECOVERY.as_secs()),
                    "try again in a while; `pactify sub show` tells when it is done",
                ));
            }
            let is_idle = || Ok::<_, Failure>(!is_begun && self.store().job(job)?.host()? == Host::Gone);
            if state == SeenState::Lost || is_idle()? {
                deaths += 1;
                if deaths > 2 {
                    let message = format!("the host that repairs job {job} dies; see host.log in the job's directory");
                    return Err(Failure::internal(message));
                }
                self.start_recovery(job)?;
            }
            self.await_events(job, snapshot.state.last.0, Duration::from_millis(500))?;
        }
    }

    /// Starts a recovery unless somebody else has the job.
    fn start_recovery(&self, job: &JobId) -> Result<(), Failure> {
        match self.store().job(job)?.lock(Duration::ZERO) {
            Ok(lock) => Ok(host::start(self.env(), lock, Errand::Recover).map(drop)?),
            Err(LockError::Busy { .. }) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}

/// Connects to the job's host, which has the job's lock before it listens: one that was only just started is waited
/// for.
pub(super) fn connect(job: &JobDir, patience: Duration) -> Result<UnixStream, SocketError> {
    let deadline = Instant::now() + patience;
    loop {
        match socket::connect(job) {
            Err(SocketError::NobodyListens { .. })
                if Instant::now() < deadline && job.host().is_ok_and(|host| host == Host::Alive) =>
            {
                std::thread::sleep(Duration::from_millis(10));
            }
            connected => return connected,
        }
    }
}

/// What may still be written to is neither removed nor gone on with, and what was seen of it so far neither taken nor
/// put back: what its processes did since is not compared yet.
pub(super) fn refuse_survived(journal: &Journal, verb: &str) -> Result<(), Failure> {
    if !journal.state().is_survived() {
        return Ok(());
    }
    let job = journal.lock().job().id();
    Err(Failure::new(
        FailureCode::WrongState,
        format!(
            "job {job} cannot be used for {verb}: processes of it may still run, and what they did is not looked at"
        ),
        format!("end them, then `pactify sub cancel {job}` looks at it, and captures its tree"),
    ))
}

/// Nobody's directory goes from under them: a shell of the person's, or a process that outlived its job.
fn refuse_held(job: &JobId, tree: &AbsPath) -> Result<(), Failure> {
    let holders = process::working_in(tree.as_path()).unwrap_or_default();
    if holders.is_empty() {
        return Ok(());
    }
    Err(Failure::new(
        FailureCode::WrongState,
        format!("the tree of job {job} is in use by {}", display::neutral(&holders.join(", "))),
        "leave the directory in that terminal, or end the process; then try again",
    ))
}

pub(super) fn still_going(job: &JobId, verb: &str, state: SeenState) -> Failure {
    Failure::new(
        FailureCode::WrongState,
        format!("job {job} is {state:?}, and only a finished job can be used for {verb}").to_lowercase(),
        "wait until it ends, or cancel it",
    )
}

pub(super) fn unreachable(job: &JobId, error: &control::ControlError) -> Failure {
    Failure::new(
        FailureCode::HostUnreachable,
        format!("job {job}: {}", with_causes(error)),
        "try again; if it goes on, look into host.log in the job's directory and end the process pactify-host",
    )
}
