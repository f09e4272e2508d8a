//! A command of ours in a job's tree: the tree's setup, and the verification of a result.
//!
//! It runs below the host like a harness: with the job's mark, a clean environment, a deadline of its own, and a sweep
//! after it, so that nothing that it started lives on. What it says becomes events, bounded and redacted. Which text it
//! is, and that the person wants it, was decided before ([`pactify_core::job::setup`], [`pactify_core::job::verify`]).

use std::io;

use pactify_core::display::tail;
use pactify_core::job::event::{ExitRecord, Known, TreeRecord};
use pactify_core::job::{self};
use pactify_core::{AbsPath, Failure, FailureCode};
use tokio::time::Instant;

use super::attempt::swept;
use super::deadlines::Deadlines;
use super::drain::{Drain, GRACE};
use super::drive::{ENDING, Event, LEFTOVERS, exit_record, pump};
use super::error::Stop;
use super::lines::{Lines, Piece};
use super::{Host, HostError, INBOX};
use crate::causes::with_causes;
use crate::env::Moment;
use crate::process::{ChildEnv, EnvPolicy, Invocation, JobTree, Marker, ProcessIdentity};

/// How much of what it says is recorded as events, in bytes.
const RECORDED: usize = 64 << 10;

/// How much of that one event holds at most.
const PIECE: usize = 4 << 10;

/// How much of the end is kept.
const TAIL: usize = 2 << 10;

/// A text for a shell, and what it is for.
#[derive(Clone, Debug)]
pub(super) struct Command {
    /// The id of its events.
    pub(super) item: String,
    /// What it is called in sentences: `setup command`.
    pub(super) name: &'static str,
    /// The text.
    pub(super) text: String,
    /// How long it may take, in seconds of the machine being awake.
    pub(super) seconds: u64,
    /// What it means when it cannot be started.
    pub(super) failure: FailureCode,
}

/// How it ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// By itself, or by a signal that was not ours.
    Exited(ExitRecord),
    /// Its time was over.
    OutOfTime,
    /// A person wanted the end of the job.
    Cancelled,
}

/// What became of it.
#[derive(Debug)]
pub(super) struct Done {
    pub(super) end: End,
    /// The end of what it said.
    pub(super) tail: String,
}

impl Done {
    /// Its exit code, where it ended with one.
    pub(super) fn exit_code(&self) -> Option<i64> {
        match self.end {
            End::Exited(ExitRecord::Code(code)) => Some(i64::from(code)),
            _ => None,
        }
    }

    /// How it ended, where that was not well; `None` for a success, and for a cancel, which is nobody's fault.
    pub(super) fn trouble(&self, limit: &str) -> Option<String> {
        match self.end {
            End::Exited(ExitRecord::Code(0)) | End::Cancelled => None,
            End::Exited(ExitRecord::Code(code)) => Some(format!("ended with exit code {code}")),
            End::Exited(ExitRecord::Signal(signal)) => Some(format!("ended by signal {signal}")),
            End::OutOfTime => Some(format!("did not end within {limit}")),
        }
    }
}

/// What it says, on its way to the journal.
#[derive(Default)]
struct Said {
    waiting: String,
    recorded: usize,
    tail: String,
}

/// Runs it at the top of the tree, with its start, its output and its end recorded. Returns once nothing of it runs any
/// more.
pub(super) async fn run(host: &mut Host, command: &Command, tree: &TreeRecord) -> Result<Done, Stop> {
    if host.cancelled() {
        // While something of ours ran: nobody would hear of it again.
        return Ok(Done { end: End::Cancelled, tail: String::new() });
    }
    host.record(Known::CommandStarted { item: command.item.clone(), command: command.text.clone() })?;
    let mut said = Said::default();
    let end = execute(host, command, tree, &mut said).await?;
    let done = Done { end, tail: said.tail };
    let (item, tail) = (command.item.clone(), done.tail.clone());
    host.record(Known::CommandEnded { item, exit_code: done.exit_code(), tail })?;
    Ok(done)
}

/// Starts it and stays with it until nothing of it runs any more.
async fn execute(host: &mut Host, command: &Command, tree: &TreeRecord, said: &mut Said) -> Result<End, Stop> {
    let shell = AbsPath::new("/bin/sh").map_err(|error| HostError::SetUp(io::Error::other(error)))?;
    let invocation = Invocation::new(shell, tree.path.clone(), environment(host)).args(["-c", &command.text]);
    let (mut child, pipes) = match invocation.start() {
        Ok(started) => started,
        Err(error) => {
            let next = "see that /bin/sh runs, then retry";
            return Err(Failure::new(command.failure, with_causes(&error), next).into());
        }
    };
    let leader = child.identity().clone();
    drop(pipes.stdin);
    let stdout = pump(pipes.stdout, host.events(), Event::Stdout);
    let stderr = pump(pipes.stderr, host.events(), Event::Stderr);
    let events = host.events();
    let waiter = tokio::spawn(async move {
        let _ = events.send(Event::Exited(child.wait().await)).await;
    });
    let heard = hear(host, command, said).await;
    let ended = sweep(host, command, leader, &heard).await;
    // What they still have to tell would be taken for another's.
    for mut task in [waiter, stdout, stderr] {
        if tokio::time::timeout(GRACE, &mut task).await.is_err() {
            task.abort();
        }
    }
    host.forget_the_ended();
    ended?;
    Ok(heard?)
}

/// Listens until it has ended and was heard out, its time is over, or a person wants the end.
async fn hear(host: &mut Host, command: &Command, said: &mut Said) -> Result<End, HostError> {
    let limits = job::Limits { total_seconds: command.seconds, stall_seconds: command.seconds };
    let deadlines = Deadlines::from(host.env().moment(), limits);
    let (mut stdout, mut stderr) = (Lines::default(), Lines::default());
    let mut open = 2;
    let mut exit: Option<(ExitRecord, Drain)> = None;
    // How many events are taken once its time is over: what waited by then is heard all the same.
    let mut late = INBOX;
    loop {
        let now: Moment = host.env().moment();
        if let Some((exit, drain)) = exit
            && (open == 0 || drain.is_over(Instant::now()))
        {
            for lines in [&mut stdout, &mut stderr] {
                take(host, command, said, lines.finish())?;
            }
            said.flush(host, command)?;
            return Ok(End::Exited(exit));
        }
        if exit.is_none() && late == 0 {
            said.flush(host, command)?;
            return Ok(End::OutOfTime);
        }
        let wait = exit.map_or_else(|| deadlines.quiet_for(now), |(_, drain)| drain.left(Instant::now()));
        let is_late = exit.is_none() && deadlines.passed(now).is_some();
        let Some(event) = host.next_event_within(wait).await else {
            match &mut exit {
                Some((_, drain)) => drain.waited(Instant::now()),
                None if is_late => late = 0,
                None => {}
            }
            continue;
        };
        late = late.saturating_sub(usize::from(is_late));
        match event {
            Event::Stdout(bytes) | Event::Stderr(bytes) if bytes.is_empty() => open -= 1,
            Event::Stdout(bytes) => take(host, command, said, stdout.feed(&bytes))?,
            Event::Stderr(bytes) => take(host, command, said, stderr.feed(&bytes))?,
            Event::Exited(status) => exit = Some((exit_record(status), Drain::begin(Instant::now()))),
            Event::Cancel => {
                host.note_cancel();
                said.flush(host, command)?;
                return Ok(End::Cancelled);
            }
            Event::Answer(_) => {}
            Event::ChildEnded => super::reap(),
        }
    }
}

fn take(
    host: &mut Host,
    command: &Command,
    said: &mut Said,
    pieces: impl IntoIterator<Item = Piece>,
) -> Result<(), HostError> {
    for piece in pieces {
        let line = match piece {
            Piece::Line(line) => host.log_wire(&command.item, &line).into_owned(),
            Piece::Overlong(bytes) => format!("(a line of {bytes} bytes)"),
        };
        said.add(&line);
        if said.waiting.len() >= PIECE {
            said.flush(host, command)?;
        }
    }
    said.flush(host, command)
}

impl Said {
    /// Takes a line that is redacted.
    fn add(&mut self, line: &str) {
        let line = format!("{}\n", tail(line, PIECE));
        self.tail.push_str(&line);
        self.tail = tail(&self.tail, TAIL).to_owned();
        self.waiting.push_str(&line);
    }

    fn flush(&mut self, host: &mut Host, command: &Command) -> Result<(), HostError> {
        let text = std::mem::take(&mut self.waiting);
        if text.is_empty() || self.recorded > RECORDED {
            return Ok(());
        }
        self.recorded += text.len();
        host.record(Known::CommandOutput { item: command.item.clone(), text })?;
        if self.recorded > RECORDED {
            let text = "… what else it says is not recorded, but for its end\n".to_owned();
            host.record(Known::CommandOutput { item: command.item.clone(), text })?;
        }
        Ok(())
    }
}

/// Ends what is left of it: nothing that it started may live on beside the harness, or after the job.
async fn sweep(
    host: &mut Host,
    command: &Command,
    leader: ProcessIdentity,
    heard: &Result<End, HostError>,
) -> Result<(), Stop> {
    let patience = if matches!(heard, Ok(End::Exited(_))) { LEFTOVERS } else { ENDING };
    let tree = JobTree::below_this_host(Marker::of(host.job()), Some(leader));
    match host.away(move || tree.sweep(patience)).await? {
        Err(alive) => swept(host, Err(alive)).map(drop),
        Ok(dead) if matches!(heard, Ok(End::Exited(_))) && !dead.ended().is_empty() => {
            let text = format!("processes that the {} left behind were ended: {}", command.name, dead.ended().len());
            host.record(Known::Notice { id: format!("{}Leftovers", command.item), text })?;
            Ok(())
        }
        Ok(_) => Ok(()),
    }
}

/// The person's environment without what is none of the repository's business.
fn environment(host: &Host) -> ChildEnv {
    let mut environment = EnvPolicy::harness([""; 0]).filter(host.env().variables());
    environment.set("TMPDIR", host.dir().tmp().as_path().as_os_str());
    // A tree that loses its `.git` file must not become part of a repository around it.
    environment.set("GIT_CEILING_DIRECTORIES", host.dir().path().as_path().as_os_str());
    environment.mark(&Marker::of(host.job()));
    environment
}
