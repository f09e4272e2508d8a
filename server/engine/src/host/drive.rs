//! Driving one harness process: pipes → lines → driver → journal, until it has ended.
//!
//! One loop over one `enum` of events ([`Event`]). It watches the deadlines and the room on the disk, passes on a
//! person's cancel, and ends the process tree when one of them says so; it returns only when the first process has
//! ended and its output was seen. What that came to is decided elsewhere ([`super::attempt`]).

use std::io;
use std::process::ExitStatus;
use std::time::Duration;

use pactify_core::Failure;
use pactify_core::harness::tail::Tail;
use pactify_core::harness::{Conclusion, Driver, Stdin, Step};
use pactify_core::job::event::{ExitRecord, Known};
use pactify_core::job::outcome::{Deadline, Verdict, over_limit};
use pactify_core::job::state::{Attempt, Phase};
use tokio::io::{AsyncRead, AsyncReadExt as _};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;
use tokio::time::Instant;

use super::control::Reply;
use super::deadlines::Deadlines;
use super::drain::Drain;
use super::input::{self, Input};
use super::lines::{Lines, Piece};
use super::questions::{Questions, Refused};
use super::space::Room;
use super::{Host, INBOX, evidence, files, launch, logged_in};
use crate::env::Moment;
use crate::process::{Child, JobTree, Marker, NotDead, Patience, Pipes, VerifiedDead};

/// How long a harness may take to end by itself once it was interrupted, and its tree to die once it was killed.
pub(super) const ENDING: Patience = Patience { grace: Duration::from_secs(5), kill: Duration::from_secs(10) };

/// The same for a tree whose first process has ended already.
pub(super) const LEFTOVERS: Patience = Patience { grace: Duration::ZERO, kill: Duration::from_secs(10) };

/// How long a harness that has nothing more to do may take to end by itself. (kimi gives its background tasks 5 s.)
const CLOSING: Duration = Duration::from_secs(15);

/// How long a harness that passed a ceiling may take to end by itself: codex tells its usage with its last word.
const LAST_WORD: Duration = Duration::from_secs(10);

/// Everything that a host's loop reacts to.
#[derive(Debug)]
pub(super) enum Event {
    /// Bytes of the harness's standard output; none when it ended.
    Stdout(Vec<u8>),
    /// Bytes of its standard error; none when it ended.
    Stderr(Vec<u8>),
    /// Its first process ended.
    Exited(io::Result<ExitStatus>),
    /// A person, or the end of the session, asks for the end of the job.
    Cancel,
    /// A person answers a permission request.
    Answer(Answer),
    /// A child of this process ended; it may be an orphan of the job.
    ChildEnded,
}

/// A person's answer to a permission request. Whoever drops it says that the request is not open.
#[derive(Debug)]
pub(super) struct Answer {
    /// The request.
    pub(super) id: String,
    /// One of its options.
    pub(super) option: String,
    /// Where the person is told what became of it.
    pub(super) reply: oneshot::Sender<Reply>,
}

/// What driving came to.
pub(super) struct Driven {
    /// What the driver makes of it.
    pub(super) conclusion: Conclusion,
    /// The deadline that ended it.
    pub(super) deadline: Option<Deadline>,
    /// What went wrong beside the harness, which was ended for it: a record that the journal refused, too little room.
    pub(super) failure: Option<Failure>,
    /// Whether the tree is dead.
    pub(super) dead: Result<VerifiedDead, NotDead>,
}

/// A harness process, started.
pub(super) struct Running {
    /// The process.
    pub(super) child: Child,
    /// Its streams.
    pub(super) pipes: Pipes,
    /// What understands it.
    pub(super) driver: Box<dyn Driver>,
    /// What it is to read.
    pub(super) stdin: Stdin,
}

/// The loop's own state.
struct Loop<'a> {
    host: &'a mut Host,
    driver: Box<dyn Driver>,
    input: Option<Input>,
    tree: JobTree,
    stdout: Stream,
    stderr: Stream,
    /// What it says on standard error while it says nothing else: why it does not begin.
    muttered: Option<Tail>,
    exit: Option<(ExitRecord, Drain)>,
    ending: Option<JoinHandle<Result<VerifiedDead, NotDead>>>,
    /// Until when the program may end by itself: it was told that there is nothing more to do.
    parting: Option<Instant>,
    questions: Questions,
    room: Room,
    /// How many events are taken once its total time is over: what waited by then is heard all the same.
    late: usize,
    deadline: Option<Deadline>,
    failure: Option<Failure>,
}

#[derive(Default)]
struct Stream {
    lines: Lines,
    ended: bool,
}

/// Drives a harness to its end.
pub(super) async fn drive(host: &mut Host, running: Running) -> Driven {
    let Running { mut child, pipes, driver, stdin } = running;
    let tree = JobTree::below_this_host(Marker::of(host.job()), Some(child.identity().clone()));
    let input = input::feed(pipes.stdin, stdin);
    let stdout = pump(pipes.stdout, host.events(), Event::Stdout);
    let stderr = pump(pipes.stderr, host.events(), Event::Stderr);
    let events = host.events();
    let waiter = tokio::spawn(async move {
        let _ = events.send(Event::Exited(child.wait().await)).await;
    });
    let mut deadlines = Deadlines::from(host.env().moment(), host.spec().limits);
    let questions =
        Questions::new(host.spec().access, Duration::from_secs(host.settings().answer_seconds), host.attempt);
    let room = Room::new(host.dir().path().clone(), host.settings().free_bytes, host.env().moment());
    let mut state = Loop {
        host,
        driver,
        input,
        tree,
        stdout: Stream::default(),
        stderr: Stream::default(),
        muttered: Some(Tail::default()),
        exit: None,
        ending: None,
        parting: None,
        questions,
        room,
        late: INBOX,
        deadline: None,
        failure: None,
    };
    let steps = state.driver.on_start();
    state.take(steps);
    if state.host.cancelled() {
        state.part();
    }
    while !state.is_over() {
        state.turn(&mut deadlines).await;
    }
    let driven = state.finish().await;
    // What they still have to tell would be taken for another's.
    for task in [waiter, stdout, stderr] {
        task.abort();
    }
    host.forget_the_ended();
    driven
}

impl Loop<'_> {
    /// One event, or one passing of time.
    async fn turn(&mut self, deadlines: &mut Deadlines) {
        let now = self.host.env().moment();
        if self.host.phase() == Phase::Waiting {
            deadlines.sign_of_life(now);
        }
        self.watch_room(now);
        let wait = match &self.exit {
            Some((_, drain)) => drain.left(Instant::now()),
            None if self.ending.is_some() => ENDING.grace + ENDING.kill,
            None => match self.parting {
                Some(until) => until.saturating_duration_since(Instant::now()),
                None => deadlines.quiet_for(now).min(self.questions.quiet_for(now)).min(self.room.quiet_for(now)),
            },
        };
        let Some(event) = self.host.next_event_within(wait).await else {
            self.expire();
            return self.time_passed(deadlines);
        };
        match event {
            Event::Stdout(bytes) => {
                deadlines.sign_of_life(self.host.env().moment());
                self.hear(&bytes, Source::Stdout);
            }
            Event::Stderr(bytes) => self.hear(&bytes, Source::Stderr),
            Event::Exited(status) => self.exited(exit_record(status)),
            Event::Cancel => {
                if self.host.note_cancel() {
                    self.part();
                }
                if let Some((_, drain)) = &mut self.exit {
                    drain.cut();
                }
            }
            Event::Answer(answer) => self.take_answer(answer),
            Event::ChildEnded => super::reap(),
        }
        self.expire();
        self.late = self.late.saturating_sub(usize::from(deadlines.passed(now) == Some(Deadline::Total)));
        // A harness that never pauses leaves no idle moment in which its time could pass.
        if self.has_parted() {
            self.end();
        } else if self.late == 0 {
            self.out_of_time(Deadline::Total);
        }
    }

    fn exited(&mut self, exit: ExitRecord) {
        self.exit = Some((exit, Drain::begin(Instant::now())));
    }

    fn time_passed(&mut self, deadlines: &Deadlines) {
        if let Some((_, drain)) = &mut self.exit {
            drain.waited(Instant::now());
        } else if self.ending.is_some() {
            // The sweep had all its time: it has the word on who survived.
            self.exited(ExitRecord::Signal(9));
        } else if self.has_parted() {
            self.end();
        } else if let Some(deadline) = deadlines.passed(self.host.env().moment()) {
            self.out_of_time(deadline);
        }
    }

    /// Ends a job that used too much. One that used it for its last word may say so by itself.
    fn watch_usage(&mut self) {
        let used = self.host.state().attempt.as_ref().map(Attempt::session_usage).unwrap_or_default();
        let passed = self.host.settings().ceilings.passed(used);
        if let Some(ceiling) = passed.filter(|_| self.goes_on()) {
            self.deadline = Some(ceiling);
            self.record(Known::DeadlinePassed { deadline: ceiling });
            self.record(Known::Notice { id: "overLimit".to_owned(), text: over_limit(ceiling).message });
            let steps = self.driver.on_cancel();
            self.take(steps);
            self.part_within(self.driver.cancel_patience().max(LAST_WORD));
        }
    }

    /// Ends a job that leaves too little room, while there is enough to capture what it did.
    fn watch_room(&mut self, now: Moment) {
        if self.goes_on()
            && let Err(mut failure) = self.room.look(now)
        {
            failure.message = format!("the job was ended: {}", failure.message);
            self.failure.get_or_insert(failure);
            self.part();
        }
    }

    /// Whether nothing has ended it yet, or told it to end.
    fn goes_on(&self) -> bool {
        self.parting.is_none() && self.ending.is_none() && self.exit.is_none()
    }

    fn out_of_time(&mut self, deadline: Deadline) {
        if self.goes_on() {
            self.deadline = Some(deadline);
            self.record(Known::DeadlinePassed { deadline });
            self.tell_what_was_muttered();
            self.part();
        }
    }

    /// A wrapper that waits for the network, a prompt that nobody sees: of a harness that never began, standard error
    /// may know why.
    fn tell_what_was_muttered(&mut self) {
        let said = self.muttered.take().map(|muttered| muttered.quoted()).unwrap_or_default();
        if !said.is_empty() {
            let text = format!("the harness never began; all it said, on standard error: {said}");
            self.record(Known::Notice { id: "neverBegan".to_owned(), text });
        }
    }

    fn hear(&mut self, bytes: &[u8], source: Source) {
        let stream = match source {
            Source::Stdout => &mut self.stdout,
            Source::Stderr => &mut self.stderr,
        };
        stream.ended = bytes.is_empty();
        let pieces = if stream.ended { stream.lines.finish().into_iter().collect() } else { stream.lines.feed(bytes) };
        for piece in pieces {
            let steps = match (piece, source) {
                // Before anything is cut: half a secret is a secret that no pattern finds.
                (Piece::Line(line), Source::Stdout) => {
                    self.muttered = None;
                    let shown = self.host.log_wire_of(&*self.driver, "<", &line);
                    self.driver.on_raw(&line).unwrap_or_else(|| self.driver.on_line(&shown))
                }
                (Piece::Line(line), Source::Stderr) => {
                    let shown = self.host.log_wire("!", &line);
                    if let Some(muttered) = &mut self.muttered {
                        muttered.push(&shown);
                    }
                    self.driver.on_stderr(&shown)
                }
                (Piece::Overlong(bytes), _) => vec![Step::Record(Known::Notice {
                    id: "overlongLine".to_owned(),
                    text: format!("the harness wrote a line of {bytes} bytes, which was left out"),
                })],
            };
            self.take(steps);
        }
    }

    fn take(&mut self, steps: Vec<Step>) {
        for step in steps {
            match step {
                Step::Record(mut known) => {
                    self.questions.name(&mut known);
                    let counts = matches!(known, Known::Usage { .. });
                    self.record(known);
                    if counts {
                        self.watch_usage();
                    }
                }
                Step::Send(line) => {
                    self.host.log_wire(">", &line);
                    if self.input.as_ref().is_some_and(|input| !input.send(line)) {
                        self.fail(input::not_read());
                    }
                }
                Step::CloseInput => {
                    self.input = None;
                    self.part_within(CLOSING);
                }
                Step::File(request) => {
                    let (root, access) = (files::Root::of(self.host.state()), self.host.spec().access);
                    let answer = files::serve(root, access, &request);
                    let steps = self.driver.on_file(request.id, answer);
                    self.take(steps);
                }
            }
        }
    }

    /// A person's answer, if the request is open and takes it.
    fn take_answer(&mut self, answer: Answer) {
        let Answer { id, option, reply } = answer;
        let waiting = self.host.state().attempt.as_ref().map_or(&[][..], |attempt| &attempt.waiting);
        // Nobody may listen any more.
        let _ = reply.send(match self.questions.check(waiting, &id, &option) {
            Ok(()) => {
                self.answered(id, Some(option));
                Reply::Accepted
            }
            Err(Refused::NotOpen) => Reply::NotOpen,
            Err(Refused::NoSuchOption) => Reply::NoSuchOption,
        });
    }

    /// Denies what nobody answered in time.
    fn expire(&mut self) {
        let now = self.host.env().moment();
        let waiting = self.host.state().attempt.as_ref().map_or(&[][..], |attempt| &attempt.waiting);
        for id in self.questions.expired(waiting, now) {
            self.answered(id, None);
        }
    }

    /// Recorded before the harness is told: what was granted is never unknown.
    fn answered(&mut self, request: String, option: Option<String>) {
        self.record(Known::PermissionAnswered { request: request.clone(), option: option.clone() });
        if self.failure.is_none() {
            let steps = self.driver.on_answer(self.questions.asked_as(&request), option.as_deref());
            self.take(steps);
        }
    }

    fn record(&mut self, known: Known) {
        if let Err(error) = self.host.record(known)
            && self.failure.is_none()
        {
            tracing::error!(%error, "the journal refused a record; ending the harness");
            self.fail(error.into_failure());
        }
    }

    /// Ends the harness for a failure of its own or of ours; the first one is told.
    fn fail(&mut self, failure: Failure) {
        self.failure.get_or_insert(failure);
        self.end();
    }

    /// Tells the program to end, and gives it the time that its driver thinks it needs.
    fn part(&mut self) {
        let steps = self.driver.on_cancel();
        self.take(steps);
        self.part_within(self.driver.cancel_patience());
    }

    fn has_parted(&self) -> bool {
        self.parting.is_some_and(|until| until <= Instant::now())
    }

    fn part_within(&mut self, patience: Duration) {
        let until = Instant::now() + patience;
        self.parting = Some(self.parting.map_or(until, |earlier| earlier.min(until)));
        if patience.is_zero() {
            self.end();
        }
    }

    /// Starts ending the whole tree, once.
    fn end(&mut self) {
        if self.ending.is_none() && self.exit.is_none() {
            let tree = self.tree.clone();
            self.ending = Some(tokio::task::spawn_blocking(move || tree.sweep(ENDING)));
        }
    }

    fn is_over(&self) -> bool {
        let drained = self.stdout.ended && self.stderr.ended;
        self.exit.is_some_and(|(_, drain)| drained || drain.is_over(Instant::now()))
    }

    async fn finish(mut self) -> Driven {
        for source in [Source::Stdout, Source::Stderr] {
            // What came without a line feed before the drain was over.
            self.hear(&[], source);
        }
        let exit = self.exit.map_or(ExitRecord::Signal(9), |(exit, _)| exit);
        self.record(Known::HarnessExited { exit });
        let sweep = match self.ending.take() {
            Some(sweep) => sweep,
            None => {
                let tree = self.tree.clone();
                tokio::task::spawn_blocking(move || tree.sweep(LEFTOVERS))
            }
        };
        let dead = sweep.await.unwrap_or_else(|error| Err(NotDead::Table(io::Error::other(error))));
        for wanted in self.driver.evidence() {
            let (home, driver) = (self.host.dir().home(), &mut self.driver);
            let found = evidence::read(&home, &wanted, &mut |line| driver.on_evidence_line(&wanted, line));
            let steps = self.driver.on_evidence(&wanted, found.as_deref());
            self.take(steps);
        }
        let mut conclusion = self.driver.on_exit(exit);
        if let (Verdict::Failed(failure), ExitRecord::Code(_)) = (&mut conclusion.verdict, exit) {
            *failure = logged_in::explained(self.host, failure.clone());
        }
        Driven { conclusion, deadline: self.deadline, failure: self.failure, dead }
    }
}

#[derive(Clone, Copy)]
enum Source {
    Stdout,
    Stderr,
}

/// Reads a pipe to its end. The bounded channel holds the program back when the journal is slower.
pub(super) fn pump(
    mut pipe: impl AsyncRead + Unpin + Send + 'static,
    events: mpsc::Sender<Event>,
    as_event: fn(Vec<u8>) -> Event,
) -> JoinHandle<()> {
    tokio::spawn(async move {
        let mut buffer = vec![0; 64 * 1024];
        loop {
            let read = pipe.read(&mut buffer).await.unwrap_or(0);
            if events.send(as_event(buffer[..read].to_vec())).await.is_err() || read == 0 {
                return;
            }
        }
    })
}

pub(super) fn exit_record(status: io::Result<ExitStatus>) -> ExitRecord {
    status.map(launch::exit_record).unwrap_or_else(|error| {
        tracing::error!(%error, "the harness's exit status is unknown");
        ExitRecord::Signal(0)
    })
}
