//! Everything that lasts longer than one request, in one loop: the client's features, folders, open documents, and
//! the followed jobs.
//!
//! Handlers send [`Event`]s and may wait for an answer; nothing else touches the state. The loop never waits for
//! work: it starts it in the blocking pool, whose results come back as events. Every unfinished job of the workspace's
//! repositories is followed, whoever started it (another editor, a terminal, this editor before it crashed), because
//! a person wants to see what works on their checkout; a look at the store, whenever a job moved there and every few
//! seconds anyway, finds those that this server did not start.

use std::collections::{HashMap, HashSet};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use jiff::Timestamp;
use lsp_types::WorkspaceFoldersChangeEvent;
use pactify_core::job::state::SeenState;
use pactify_core::protocol::JobSummary;
use pactify_core::{AbsPath, Failure, JobId};
use pactify_engine::jobs::{Jobs, UnsavedText};
use tokio::io::Interest;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinSet;
use tokio::time::{Instant, Interval, MissedTickBehavior, interval, sleep};

use super::capabilities::ClientFeatures;
use super::context::Engine;
use super::documents::{Documents, Edit, Found, Key};
use super::folders::Folders;
use super::follow::{Follower, Replay, announce, standing};
use super::seen::Seen;
use super::survey::{Survey, survey};
use super::unsaved::Unsaved;
use crate::transport::{Outbox, stdio};

/// Time between two looks for what others did, where nothing wakes: a network file system tells of this machine only.
const SURVEY: Duration = Duration::from_secs(3);
/// The least time between two looks for what others did, however much they do.
const PACE: Duration = Duration::from_millis(200);
/// A command that takes longer than this to start a job keeps nobody from seeing the jobs of others.
const STARTS_WITHIN: Duration = Duration::from_secs(60);
/// Jobs followed at once of those that others started. Each waits in a thread of its own; those beyond are followed as
/// others end.
const MAX_FOLLOWED: usize = 64;

/// The way to the session's loop.
#[derive(Clone, Debug)]
pub(super) struct SessionHandle(mpsc::UnboundedSender<Event>);

/// A command that starts a job is under way.
#[derive(Debug)]
pub(super) struct Starting(SessionHandle);

impl Drop for Starting {
    fn drop(&mut self) {
        self.0.send(Event::Started);
    }
}

/// What the loop acts on.
#[derive(Debug)]
pub(super) enum Event {
    Initialize(ClientFeatures, Folders),
    Initialized,
    Edited(Edit),
    FoldersChanged(WorkspaceFoldersChangeEvent),
    Asked(Question),
    /// A command begins that starts a job.
    Starting,
    /// A job was created here.
    Created(JobId),
    /// Such a command is over.
    Started,
    /// A job that ended like this was resumed here, and waits for its turn.
    QueuedAgain(JobSummary),
    /// A job was cancelled here.
    TakenBack(JobId),
    /// A command moved a job.
    Moved(JobSummary),
    /// An opened text was compared with its file.
    Compared {
        path: AbsPath,
        opening: u64,
        differs: bool,
    },
    /// The unsaved paths were published.
    Published(Result<(), Failure>),
    /// The store was looked at, or could not be.
    Surveyed(Option<Survey>),
    /// A follower is done.
    Unfollowed(JobId, Option<JobSummary>),
    /// Time for a look.
    Tick,
    ShutDown(oneshot::Sender<()>),
}

/// What handlers ask.
#[derive(Debug)]
pub(super) enum Question {
    Client(oneshot::Sender<ClientFeatures>),
    Folders(oneshot::Sender<Folders>),
    Brief(Key, oneshot::Sender<Found>),
    Briefs(oneshot::Sender<Vec<Key>>),
    UnsavedTexts(oneshot::Sender<Vec<UnsavedText>>),
    /// Wait until everybody can see what is unsaved here.
    UnsavedPublished(oneshot::Sender<Result<(), Failure>>),
}

/// Whether the store is being looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Looking {
    Not,
    /// What is found is what there is.
    Once,
    /// There may be news that this look did not see.
    Again,
    /// The folders are others since: what is found is of no use.
    InVain,
}

struct Session {
    engine: Engine,
    outbox: Outbox,
    events: SessionHandle,
    client: ClientFeatures,
    folders: Folders,
    documents: Documents,
    unsaved: Unsaved,
    followers: JoinSet<(JobId, Option<JobSummary>)>,
    followed: HashSet<JobId>,
    /// Lost jobs that could not be repaired: whoever moves them tells, and nobody tries over and over.
    given_up: HashSet<JobId>,
    /// Jobs that wait for their turn since they were resumed here, and when they had ended.
    queued_again: HashMap<JobId, Option<Timestamp>>,
    /// Commands under way that start jobs, and when the last one of them began.
    starting: (usize, Instant),
    /// For clients that are told of changes.
    seen: Seen,
    looking: Looking,
    /// Waits for news, until the session ends.
    watcher: JoinSet<()>,
}

/// Starts the loop.
pub(super) fn start(engine: Engine, outbox: Outbox) -> SessionHandle {
    let (sender, receiver) = mpsc::unbounded_channel();
    let handle = SessionHandle(sender);
    let session = Session {
        engine,
        outbox,
        events: handle.clone(),
        client: ClientFeatures::default(),
        folders: Folders::default(),
        documents: Documents::default(),
        unsaved: Unsaved::default(),
        followers: JoinSet::new(),
        followed: HashSet::new(),
        given_up: HashSet::new(),
        queued_again: HashMap::new(),
        starting: (0, Instant::now()),
        seen: Seen::default(),
        looking: Looking::Not,
        watcher: JoinSet::new(),
    };
    tokio::spawn(session.run(receiver));
    handle
}

impl SessionHandle {
    pub(super) fn initialize(&self, client: ClientFeatures, folders: Folders) {
        self.send(Event::Initialize(client, folders));
    }

    pub(super) fn initialized(&self) {
        self.send(Event::Initialized);
    }

    pub(super) fn edited(&self, edit: Edit) {
        self.send(Event::Edited(edit));
    }

    pub(super) fn folders_changed(&self, event: WorkspaceFoldersChangeEvent) {
        self.send(Event::FoldersChanged(event));
    }

    /// A command begins that starts a job. Until the proof is dropped, nobody else's look takes that job for a
    /// stranger's, of which no past is told.
    pub(super) fn starting(&self) -> Starting {
        self.send(Event::Starting);
        Starting(self.clone())
    }

    /// A job was created: it is followed from its first event on.
    pub(super) fn created(&self, job: JobId) {
        self.send(Event::Created(job));
    }

    /// A job was resumed here and waits for its turn: until then it looks as it ended before.
    pub(super) fn queued_again(&self, before: JobSummary) {
        self.send(Event::QueuedAgain(before));
    }

    /// A job was cancelled here: no turn of it is waited for any more.
    pub(super) fn taken_back(&self, job: JobId) {
        self.send(Event::TakenBack(job));
    }

    /// A command moved a job.
    pub(super) fn moved(&self, job: JobSummary) {
        self.send(Event::Moved(job));
    }

    /// What the client can do.
    pub(super) async fn client(&self) -> ClientFeatures {
        self.ask(Question::Client).await.unwrap_or_default()
    }

    /// The open folders.
    pub(super) async fn folders(&self) -> Folders {
        self.ask(Question::Folders).await.unwrap_or_default()
    }

    /// What a document holds as a brief.
    pub(super) async fn brief(&self, key: Key) -> Found {
        self.ask(|reply| Question::Brief(key, reply)).await.unwrap_or(Found::OnDisk)
    }

    /// The open briefs.
    pub(super) async fn briefs(&self) -> Vec<Key> {
        self.ask(Question::Briefs).await.unwrap_or_default()
    }

    /// What the editor holds and has not saved.
    pub(super) async fn unsaved_texts(&self) -> Vec<UnsavedText> {
        self.ask(Question::UnsavedTexts).await.unwrap_or_default()
    }

    /// Waits until every pactify process can see which files are unsaved here, as of the edits before this call.
    pub(super) async fn unsaved_published(&self) -> Result<(), Failure> {
        let published = self.ask(Question::UnsavedPublished).await;
        published.unwrap_or_else(|| Err(Failure::internal("the session is over")))
    }

    /// Ends every progress and withdraws what was published.
    pub(super) async fn shut_down(&self) {
        let (reply, done) = oneshot::channel();
        self.send(Event::ShutDown(reply));
        let _ = done.await;
    }

    async fn ask<T>(&self, question: impl FnOnce(oneshot::Sender<T>) -> Question) -> Option<T> {
        let (reply, answer) = oneshot::channel();
        self.send(Event::Asked(question(reply)));
        answer.await.ok()
    }

    fn send(&self, event: Event) {
        // The loop lives as long as the process.
        let _ = self.0.send(event);
    }
}

impl Session {
    async fn run(mut self, mut events: mpsc::UnboundedReceiver<Event>) {
        let mut clock: Option<Interval> = None;
        loop {
            let event = tokio::select! {
                Some(event) = events.recv() => event,
                Some(Ok((job, last))) = self.followers.join_next() => Event::Unfollowed(job, last),
                () = tick(&mut clock) => Event::Tick,
            };
            match event {
                Event::Initialized => {
                    let mut ticks = interval(SURVEY);
                    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
                    clock = Some(ticks);
                    self.watcher.spawn(watch(self.engine.clone(), self.events.clone()));
                    self.recover_lost();
                }
                Event::ShutDown(done) => {
                    clock = None;
                    self.shut_down().await;
                    let _ = done.send(());
                }
                // A defect in one event must not take the session with it.
                event => {
                    if catch_unwind(AssertUnwindSafe(|| self.on_event(event))).is_err() {
                        tracing::error!("an event of the session was dropped");
                    }
                }
            }
        }
    }

    fn on_event(&mut self, event: Event) {
        match event {
            Event::Initialize(client, folders) => (self.client, self.folders) = (client, folders),
            Event::Edited(edit) => self.on_edit(edit),
            Event::FoldersChanged(change) => {
                self.folders.change(&change);
                // What is in a folder that was added is no news.
                self.seen = Seen::default();
                match self.looking {
                    Looking::Not => self.survey(),
                    _ => self.looking = Looking::InVain,
                }
            }
            Event::Asked(question) => self.answer(question),
            Event::Starting => self.starting = (self.starting.0 + 1, Instant::now()),
            Event::Created(job) => self.follow(job, Replay::All),
            Event::Started => {
                self.starting.0 -= 1;
                self.survey();
            }
            Event::QueuedAgain(before) => {
                if let Ok(job) = before.id.parse() {
                    self.queued_again.insert(job, before.ended_at);
                }
            }
            Event::TakenBack(job) => drop(self.queued_again.remove(&job)),
            Event::Moved(job) => self.see(&job),
            Event::Compared { path, opening, differs } => {
                if differs {
                    self.documents.differs(path, opening);
                }
                self.unsaved.compared();
                self.publish();
            }
            Event::Published(outcome) => {
                if self.unsaved.published(outcome) {
                    self.publish();
                }
            }
            Event::Surveyed(survey) => {
                let looked = std::mem::replace(&mut self.looking, Looking::Not);
                if let Some(survey) = survey.filter(|_| looked != Looking::InVain) {
                    self.on_survey(&survey);
                }
                match looked {
                    Looking::Not | Looking::Once => {}
                    Looking::Again => self.survey_soon(),
                    Looking::InVain => self.survey(),
                }
            }
            Event::Unfollowed(job, last) => {
                self.followed.remove(&job);
                if last.as_ref().is_some_and(|last| last.state == SeenState::Lost) {
                    self.given_up.insert(job.clone());
                }
                // It told the client.
                if let Some(last) = last {
                    self.seen.moved(job, standing(&last));
                }
            }
            Event::Tick => self.survey(),
            Event::Initialized | Event::ShutDown(_) => {}
        }
    }

    fn on_edit(&mut self, edit: Edit) {
        if let Some(comparison) = self.documents.follow(edit) {
            self.unsaved.comparing();
            let events = self.events.clone();
            tokio::spawn(async move {
                let (path, opening) = (comparison.path.clone(), comparison.opening);
                let differs = tokio::task::spawn_blocking(move || super::unsaved::differs(&comparison)).await;
                events.send(Event::Compared { path, opening, differs: differs.unwrap_or(true) });
            });
        }
        self.publish();
    }

    fn answer(&mut self, question: Question) {
        // Whoever asked may have been cancelled.
        match question {
            Question::Client(reply) => drop(reply.send(self.client.clone())),
            Question::Folders(reply) => drop(reply.send(self.folders.clone())),
            Question::Brief(key, reply) => drop(reply.send(self.documents.brief(&key))),
            Question::Briefs(reply) => drop(reply.send(self.documents.briefs())),
            Question::UnsavedTexts(reply) => drop(reply.send(self.documents.unsaved_texts())),
            Question::UnsavedPublished(reply) => {
                self.unsaved.wait(reply);
                self.publish();
            }
        }
    }

    fn publish(&mut self) {
        let Some(paths) = self.unsaved.next(self.documents.unsaved()) else { return };
        let (engine, events) = (self.engine.clone(), self.events.clone());
        tokio::spawn(async move {
            let paths: Vec<AbsPath> = paths.into_iter().collect();
            events.send(Event::Published(engine.work(move |jobs| jobs.publish_unsaved(&paths)).await));
        });
    }

    fn follow(&mut self, job: JobId, replay: Replay) {
        let client = &self.client;
        let wanted = client.progress || client.changes || client.messages || client.asks;
        let has_room = replay == Replay::All || self.followed.len() < MAX_FOLLOWED;
        if wanted && has_room && self.followed.insert(job.clone()) {
            let follower = Follower::new(self.engine.clone(), self.outbox.clone(), self.client.clone(), job);
            self.followers.spawn(follower.run(replay));
        }
    }

    fn recover_lost(&self) {
        let (engine, events) = (self.engine.clone(), self.events.clone());
        tokio::spawn(async move {
            match engine.work(Jobs::recover_lost).await {
                Ok(jobs) if jobs.is_empty() => {}
                Ok(jobs) => {
                    tracing::info!(count = jobs.len(), "lost jobs are recovered");
                    events.send(Event::Tick);
                }
                Err(failure) => tracing::warn!(%failure, "lost jobs cannot be recovered"),
            }
            if let Err(failure) = engine.work(Jobs::prune_as_configured).await {
                tracing::warn!(%failure, "old jobs are not pruned");
            }
        });
    }

    fn survey(&mut self) {
        match self.looking {
            Looking::Not => self.looking = Looking::Once,
            Looking::Once => return self.looking = Looking::Again,
            Looking::Again | Looking::InVain => return,
        }
        let folders = self.folders.paths().to_vec();
        let known = self.seen.begin().filter(|job| !self.followed.contains(*job)).cloned();
        let mut known: Vec<JobId> = if self.client.changes { known.collect() } else { Vec::new() };
        known.extend(self.queued_again.keys().cloned());
        let (engine, events) = (self.engine.clone(), self.events.clone());
        tokio::spawn(async move {
            let survey = engine.work(move |jobs| survey(jobs, &folders, &known)).await;
            // Whoever asks for jobs is told why not.
            let survey = survey.inspect_err(|failure| tracing::debug!(%failure, "the jobs of others cannot be seen"));
            events.send(Event::Surveyed(survey.ok()));
        });
    }

    fn survey_soon(&self) {
        let events = self.events.clone();
        tokio::spawn(async move {
            sleep(PACE).await;
            events.send(Event::Tick);
        });
    }

    fn on_survey(&mut self, survey: &Survey) {
        for job in &survey.jobs {
            let Ok(id) = job.id.parse::<JobId>() else { continue };
            let ended_at = self.queued_again.get(&id);
            // Its turn may have come and gone since the last look: then its end is still to be told.
            if ended_at.is_some_and(|before| job.state != SeenState::Finished || job.ended_at != *before) {
                self.queued_again.remove(&id);
                self.follow(id, Replay::All);
            }
        }
        self.queued_again.retain(|job, _| !survey.gone.contains(job));
        // One that moved since the look began may be over, and one that a command starts is not for us to find.
        let is_starting = self.starting.0 > 0 && self.starting.1.elapsed() < STARTS_WITHIN;
        let is_news = |job: &&JobId| !self.given_up.contains(*job) && !self.seen.has_moved(job);
        let found: Vec<JobId> = survey.unfinished.iter().filter(is_news).cloned().collect();
        for job in found.into_iter().filter(|_| !is_starting) {
            self.follow(job, Replay::Nothing);
        }
        if !self.client.changes {
            return;
        }
        let is_followed = |job: &JobId| self.followed.contains(job) || (is_starting && survey.unfinished.contains(job));
        for job in self.seen.looked(survey, is_followed) {
            announce(&self.outbox, job);
        }
    }

    /// Tells a client that wants it where a job stands, if that is news.
    fn see(&mut self, job: &JobSummary) {
        let Ok(id) = job.id.parse::<JobId>() else { return };
        if self.seen.moved(id, standing(job)) && self.client.changes {
            announce(&self.outbox, job);
        }
    }

    /// Dropping a follower ends its progress.
    async fn shut_down(&mut self) {
        self.watcher.shutdown().await;
        self.followers.shutdown().await;
        self.followed.clear();
        self.client = ClientFeatures::default();
        if let Err(failure) = self.engine.work(|jobs| jobs.publish_unsaved(&[])).await {
            tracing::warn!(%failure, "what was unsaved here stays published until this process is gone");
        }
    }
}

/// Has the store looked at when something moved there. Without a watch to be had, the clock does alone.
async fn watch(engine: Engine, events: SessionHandle) {
    let watch = match engine.work(Jobs::wakeup).await.map(|watch| stdio::watch(watch, Interest::READABLE)) {
        Ok(Ok(watch)) => watch,
        Ok(Err(error)) => return tracing::debug!(%error, "nothing wakes for jobs of others"),
        Err(failure) => return tracing::debug!(%failure, "nothing wakes for jobs of others"),
    };
    while let Ok(mut ready) = watch.readable().await {
        watch.get_ref().rearm();
        ready.clear_ready();
        events.send(Event::Tick);
        sleep(PACE).await;
    }
}

async fn tick(clock: &mut Option<Interval>) {
    match clock {
        Some(clock) => drop(clock.tick().await),
        None => std::future::pending().await,
    }
}
