//! A host: the process that owns one running job.
//!
//! Our binary re-executes itself as a host ([`start`]); [`reenter`] is the other end, the first call of both mains
//! ([`entry`]). A host leads a session of its own, holds the job's lock, adopts every orphan below it, and is the only
//! writer of the job's journal while it lives. It knows no editor: whoever wants to know what happens reads the
//! journal, and [`control`] is there to ask it to stop. [`attempt`] is what it does from beginning to end.

mod attempt;
mod chatter;
mod command;
pub(crate) mod control;
mod deadlines;
mod drain;
mod drive;
mod entry;
mod error;
mod evidence;
mod files;
mod guard;
mod input;
mod launch;
mod leftovers;
mod lines;
mod logged_in;
mod logins;
mod meanwhile;
mod private;
mod questions;
mod residue;
mod setup;
mod slots;
mod space;
mod turn;
mod verify;
mod watch;
mod wire;

use std::borrow::Cow;
use std::time::Duration;

use pactify_core::brief::{self, Brief};
use pactify_core::config::Settings;
use pactify_core::fingerprint::SharedState;
use pactify_core::harness::{Driver, HarnessSettings};
use pactify_core::job::JobSpec;
use pactify_core::job::event::{AttemptReason, HostRecord, Known, ProcessRecord};
use pactify_core::job::state::{JobState, Phase};
use pactify_core::redact::{self, Redactor};
use pactify_core::{AbsPath, AttemptNo, Failure, JobId};
use tokio::sync::{mpsc, oneshot};

pub use self::entry::reenter;
pub(crate) use self::entry::{Errand, leave_message, start};
pub(crate) use self::launch::{advice, can_be_refreshed};
pub(crate) use self::logged_in::{is_logged_in, lacks_login};
pub(crate) use self::private::person_files;
pub(crate) use self::slots::cores;

use self::chatter::Chatter;
use self::control::{Reply, Request};
use self::drive::{Answer, Event};
use self::error::HostError;
use self::wire::WireLog;
use crate::causes::with_causes;
use crate::disk::{Dir, Open};
use crate::env::Env;
use crate::fingerprint::Checkout;
use crate::job_dir::{JobDir, JobLock, names, socket};
use crate::journal::Journal;
use crate::process::{ProcessIdentity, reap};
use crate::store::{Area, Store};
use crate::tree::Trash;
use crate::{config, git};

/// The version that records name.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

/// How many events wait to be taken at most; whoever has more to tell is held back.
const INBOX: usize = 64;

/// A host at work.
#[derive(Debug)]
pub(crate) struct Host {
    env: Env,
    settings: Settings,
    /// Why these are defaults and not the person's: nothing may be begun with limits that are not theirs.
    unconfigured: Option<Failure>,
    store: Store,
    journal: Journal,
    attempt: AttemptNo,
    redactor: Redactor,
    /// What the redactor knows.
    secrets: Vec<String>,
    /// Whether the attempt's harness is led to logins of the person.
    uses_logins: bool,
    wire: WireLog,
    leftovers: Vec<String>,
    /// The checkout as it was when the tree was made, if it was looked at.
    checkout: Option<git::CheckoutSeen>,
    /// What the job shares with the person, as it was before anything ran.
    watched: Option<SharedState>,
    /// The checkout in which it looks around, as it was before anything ran.
    guarded: Option<Checkout>,
    /// The attempt whose look at the checkout was compared.
    compared: Option<AttemptNo>,
    chatter: Chatter,
    cancel: Cancel,
    sender: mpsc::Sender<Event>,
    inbox: mpsc::Receiver<Event>,
}

/// A person's wish to end the job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Cancel {
    No,
    /// Wished, but not recorded: no attempt was open.
    Wished,
    Recorded,
}

impl Host {
    fn open(env: Env, store: Store, lock: JobLock) -> Result<Self, HostError> {
        let journal = Journal::open(lock)?;
        // The job means the same whoever starts its host: an editor with a thin path, or a terminal.
        let env = journal.spec().search_path.as_deref().map_or(env.clone(), |path| env.with_path(path));
        let (settings, unconfigured) = match config::load(&env) {
            Ok(settings) => (settings, None),
            Err(failure) => {
                tracing::warn!(%failure, "the configuration is broken");
                (Settings::default(), Some(failure))
            }
        };
        let secrets = secrets(&env, &journal.spec().settings.environment, &journal.spec().settings);
        let wire = journal.lock().job().dir().file(names::WIRE_LOG, Open::AppendOrCreate).ok();
        let (sender, inbox) = mpsc::channel(INBOX);
        let attempt = journal.state().next_attempt();
        Ok(Self {
            env,
            settings,
            unconfigured,
            store,
            journal,
            attempt,
            redactor: Redactor::new(secrets.clone()),
            secrets,
            uses_logins: false,
            wire: WireLog::to(wire),
            leftovers: Vec::new(),
            checkout: None,
            watched: None,
            guarded: None,
            compared: None,
            chatter: Chatter::default(),
            cancel: Cancel::No,
            sender,
            inbox,
        })
    }

    /// Starts listening: to the control socket, to the end of the session, to children that end.
    fn listen(&self) -> Result<(), HostError> {
        use tokio::signal::unix::{SignalKind, signal};
        for (kind, event) in [
            (SignalKind::terminate(), (|| Event::Cancel) as fn() -> Event),
            (SignalKind::interrupt(), || Event::Cancel),
            (SignalKind::child(), || Event::ChildEnded),
        ] {
            let mut signals = signal(kind).map_err(HostError::SetUp)?;
            let events = self.events();
            tokio::spawn(async move { while signals.recv().await.is_some() && events.send(event()).await.is_ok() {} });
        }
        let listener = socket::bind(self.journal.lock())?;
        listener.set_nonblocking(true).map_err(HostError::SetUp)?;
        let listener = tokio::net::UnixListener::from_std(listener).map_err(HostError::SetUp)?;
        let (events, job, dir) = (self.events(), self.job().clone(), self.dir().clone());
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                if let Err(error) = socket::check_peer(&dir, &stream) {
                    tracing::warn!(error = with_causes(&error), "a request is refused");
                    continue;
                }
                let (events, job) = (events.clone(), job.clone());
                tokio::spawn(control::serve(stream, async move |request| answer(request, &job, &events).await));
            }
        });
        Ok(())
    }

    /// A handle through which tasks tell the loop what happened.
    fn events(&self) -> mpsc::Sender<Event> {
        self.sender.clone()
    }

    /// The next thing that happens. Cancel-safe.
    async fn next_event(&mut self) -> Event {
        match self.inbox.recv().await {
            Some(event) => event,
            // Cannot be: this value holds a sender.
            None => std::future::pending().await,
        }
    }

    /// The next thing that happens within `wait`; none where nothing did. What happened while this process itself did
    /// not run counts: what waits here, or in a pipe, comes before the end of the wait.
    async fn next_event_within(&mut self, wait: Duration) -> Option<Event> {
        if let Ok(event) = tokio::time::timeout(wait, self.next_event()).await {
            return Some(event);
        }
        // Once for the runtime to see which pipes hold something, once for their readers.
        for _ in 0..2 {
            tokio::task::yield_now().await;
        }
        self.inbox.try_recv().ok()
    }

    /// Runs blocking work of ours on another thread, noting a person's cancel meanwhile.
    async fn away<T: Send + 'static>(&mut self, work: impl FnOnce() -> T + Send + 'static) -> Result<T, HostError> {
        let mut work = tokio::task::spawn_blocking(work);
        loop {
            tokio::select! {
                done = &mut work => return Ok(done?),
                event = self.inbox.recv() => match event {
                    Some(Event::Cancel) => { self.note_cancel(); }
                    Some(Event::ChildEnded) => reap(),
                    // An answer when nothing is asked; the rest is left over from a process that has ended.
                    Some(Event::Answer(_) | Event::Stdout(_) | Event::Stderr(_) | Event::Exited(_)) | None => {}
                },
            }
        }
    }

    /// Leaves out what processes that have ended still had to tell.
    fn forget_the_ended(&mut self) {
        while let Ok(event) = self.inbox.try_recv() {
            match event {
                Event::Cancel => drop(self.note_cancel()),
                Event::ChildEnded => reap(),
                Event::Answer(_) | Event::Stdout(_) | Event::Stderr(_) | Event::Exited(_) => {}
            }
        }
    }

    fn open_attempt(&mut self, reason: AttemptReason) -> Result<(), HostError> {
        let process = ProcessRecord::from(&ProcessIdentity::of_self().map_err(HostError::SetUp)?);
        let host = HostRecord { process, version: VERSION.to_owned() };
        self.record(Known::AttemptStarted { reason, host })?;
        if let Some(torn) = self.journal.torn() {
            let text = format!("the journal's last line ({} bytes) was torn by a crash and set aside", torn.bytes);
            self.record(Known::Notice { id: "tornJournal".to_owned(), text })?;
        }
        if self.cancel == Cancel::Wished {
            self.note_cancel();
        }
        Ok(())
    }

    /// Appends to the journal, without any secret that the harness may have repeated.
    fn record(&mut self, known: Known) -> Result<(), HostError> {
        let events = self.chatter.admit(known, self.journal.len(), self.env.moment(), &self.redactor);
        for known in events {
            self.journal.append(self.env.now(), self.attempt, known)?;
        }
        Ok(())
    }

    /// Notes a person's wish to end the job; whether it is the first one.
    fn note_cancel(&mut self) -> bool {
        match self.cancel {
            Cancel::Recorded => false,
            Cancel::No | Cancel::Wished if self.phase() == Phase::Queued || self.phase() == Phase::Finished => {
                self.cancel = Cancel::Wished;
                false
            }
            Cancel::No | Cancel::Wished => {
                self.cancel = Cancel::Recorded;
                if let Err(error) = self.record(Known::CancelRequested) {
                    tracing::warn!(error = with_causes(&error), "the cancel is obeyed, but not recorded");
                }
                true
            }
        }
    }

    fn cancelled(&self) -> bool {
        self.cancel != Cancel::No
    }

    /// What this turn is told.
    fn message(&self) -> Result<Brief, HostError> {
        let text = self.dir().dir().read(entry::MESSAGE, brief::MAX_BYTES as u64)?;
        Brief::new(String::from_utf8_lossy(&text)).map_err(HostError::Message)
    }

    /// `PACTIFY_HOME`.
    fn home(&self) -> AbsPath {
        self.store.home().clone()
    }

    /// The directory of slots, one lock file each.
    fn slots(&self) -> Result<Dir, HostError> {
        Ok(self.store.area(Area::Slots)?)
    }

    /// Where git's things of this job are.
    fn places(&self) -> git::Places {
        git::Places::of(&self.store.jobs(), self.job().clone())
    }

    /// What is not needed once the attempt is over. The tree and the home stay: for a look, and for a resume.
    fn tidy(&self) {
        let tidied = Trash::open(self.store.home()).and_then(|trash| {
            trash.take(&self.dir().tmp())?;
            trash.empty()
        });
        if let Err(error) = tidied {
            tracing::warn!(error = with_causes(&error), "the job's temporary files were not removed");
        }
    }

    /// From here on these values are recorded nowhere.
    fn keep_secret(&mut self, values: Vec<String>) {
        self.secrets.extend(values);
        self.redactor = Redactor::new(self.secrets.clone());
    }

    fn keep_leftovers(&mut self, names: Vec<String>) {
        self.leftovers = names;
    }

    fn take_leftovers(&mut self) -> Vec<String> {
        std::mem::take(&mut self.leftovers)
    }

    /// Notes what went over the wire, and gives it without secrets.
    fn log_wire<'l>(&mut self, direction: &str, line: &'l str) -> Cow<'l, str> {
        let line = self.redactor.redact(line);
        self.wire.line(direction, &line);
        line
    }

    /// The same for a line whose texts may be pieces of longer ones: of such a one only the outline is noted.
    fn log_wire_of<'l>(&mut self, driver: &dyn Driver, direction: &str, line: &'l str) -> Cow<'l, str> {
        let line = self.redactor.redact(line);
        if driver.is_in_pieces(&line) {
            self.wire.line(direction, &redact::outline(&line));
        } else {
            self.wire.line(direction, &line);
        }
        line
    }

    fn job(&self) -> &JobId {
        self.dir().id()
    }

    fn dir(&self) -> &JobDir {
        self.journal.lock().job()
    }

    fn env(&self) -> &Env {
        &self.env
    }

    fn spec(&self) -> &JobSpec {
        self.journal.spec()
    }

    fn settings(&self) -> &Settings {
        &self.settings
    }

    fn state(&self) -> &JobState {
        self.journal.state()
    }

    fn phase(&self) -> Phase {
        self.state().phase
    }
}

async fn answer(request: Request, job: &JobId, events: &mpsc::Sender<Event>) -> Reply {
    match request {
        Request::Hello => {
            Reply::Hello { version: VERSION.to_owned(), protocol: control::PROTOCOL, job: job.to_string() }
        }
        Request::Cancel => {
            let events = events.clone();
            tokio::spawn(async move {
                let _ = events.send(Event::Cancel).await;
            });
            Reply::Accepted
        }
        Request::Answer { id, option } => {
            let (reply, told) = oneshot::channel();
            // Nothing is open where nobody takes it.
            let _ = events.send(Event::Answer(Answer { id, option, reply })).await;
            told.await.unwrap_or(Reply::NotOpen)
        }
    }
}

/// What must not be recorded: the values of variables that are let through to the harness, of those that the person
/// set for it, and of settings that hold secrets by their names. A path is no secret, whatever it is called.
fn secrets(env: &Env, names: &[String], settings: &HarnessSettings) -> Vec<String> {
    let set = settings.own.iter().flat_map(|own| &own.env);
    let set = set.filter(|(_, value)| !value.starts_with('/'));
    let written = set.map(|(_, value)| value.clone()).chain(redact::secrets_in(&settings.config));
    values(env, names).into_iter().chain(written).collect()
}

/// The values of variables.
fn values(env: &Env, names: &[String]) -> Vec<String> {
    names.iter().filter_map(|name| env.variable(name)?.to_str().map(str::to_owned)).collect()
}

fn reap() {
    if let Err(error) = reap::reap_orphans() {
        tracing::warn!(%error, "orphans of the job were not collected");
    }
}
