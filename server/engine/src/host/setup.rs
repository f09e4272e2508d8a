//! The command that makes a fresh tree ready, before the harness is started.
//!
//! Which text it is, and that the person wants it, was decided when the job was created ([`pactify_core::job::setup`]). It
//! runs below the host like a harness: with the job's mark, a clean environment, a deadline of its own, and a sweep
//! after it, so that nothing that it started lives on. What it says becomes events, bounded and redacted. If it fails,
//! no harness is started.

use std::io;
use std::time::Duration;

use pactify_core::display::tail;
use pactify_core::job::access::Access;
use pactify_core::job::event::{ExitRecord, Known, TreeRecord};
use pactify_core::job::setup::{Decision, Setup};
use pactify_core::job::{self};
use pactify_core::{AbsPath, Failure, FailureCode, RepoPath};
use tokio::time::Instant;

use super::attempt::swept;
use super::deadlines::Deadlines;
use super::drive::{DRAIN, ENDING, Event, LEFTOVERS, exit_record, pump};
use super::lines::{Lines, Piece};
use super::{Host, HostError};
use crate::causes::with_causes;
use crate::env::Moment;
use crate::git::{Git, Stage, Watch};
use crate::process::{ChildEnv, EnvPolicy, Invocation, JobTree, Marker, ProcessIdentity};

/// The id of its events.
const ITEM: &str = "setup";

/// How much of what it says is recorded as events, in bytes.
const RECORDED: usize = 64 << 10;

/// How much of that one event holds at most.
const PIECE: usize = 4 << 10;

/// How much of the end is kept to tell why it failed.
const TAIL: usize = 2 << 10;

/// How many changed files are named.
const NAMED: usize = 3;

/// How it ended.
enum End {
    Exited(ExitRecord),
    OutOfTime,
    Cancelled,
}

/// What it says, on its way to the journal.
#[derive(Default)]
struct Said {
    waiting: String,
    recorded: usize,
    tail: String,
}

/// Runs the job's setup command in its fresh tree, if it has one. A cancel meanwhile is the caller's to see.
pub(super) async fn run(host: &mut Host, tree: &TreeRecord) -> Result<Result<(), Failure>, HostError> {
    let Some(setup) = host.spec().setup.clone() else { return Ok(Ok(())) };
    if setup.decision == Decision::Deny {
        host.record(Known::Notice { id: "setupDenied".to_owned(), text: setup.denied() })?;
        return Ok(Ok(()));
    }
    let watch = match watch(host).await? {
        Ok(watch) => watch,
        Err(failure) => return Ok(Err(failure)),
    };
    host.record(Known::CommandStarted { item: ITEM.to_owned(), command: setup.command.clone() })?;
    let mut said = Said::default();
    let end = match execute(host, &setup, tree, &mut said).await? {
        Ok(end) => end,
        Err(failure) => return Ok(Err(failure)),
    };
    let exit_code = match end {
        End::Exited(ExitRecord::Code(code)) => Some(i64::from(code)),
        _ => None,
    };
    host.record(Known::CommandEnded { item: ITEM.to_owned(), exit_code, tail: said.tail.clone() })?;
    match end {
        End::Cancelled => Ok(Ok(())),
        End::Exited(ExitRecord::Code(0)) => look(host, watch, tree.clone()).await,
        End::Exited(ExitRecord::Code(code)) => Ok(Err(failed(&format!("ended with exit code {code}"), &said))),
        End::Exited(ExitRecord::Signal(signal)) => Ok(Err(failed(&format!("ended by signal {signal}"), &said))),
        End::OutOfTime => {
            let seconds = host.settings().setup_seconds;
            Ok(Err(failed(&format!("did not end within {seconds} s ([limits] setup-seconds)"), &said)))
        }
    }
}

/// Starts it and stays with it until nothing of it runs any more.
async fn execute(
    host: &mut Host,
    setup: &Setup,
    tree: &TreeRecord,
    said: &mut Said,
) -> Result<Result<End, Failure>, HostError> {
    let shell = AbsPath::new("/bin/sh").map_err(|error| HostError::SetUp(io::Error::other(error)))?;
    let invocation = Invocation::new(shell, tree.path.clone(), environment(host)).args(["-c", &setup.command]);
    let (mut child, pipes) = match invocation.start() {
        Ok(started) => started,
        Err(error) => {
            let next = "see that /bin/sh runs, then retry";
            return Ok(Err(Failure::new(FailureCode::SetupFailed, with_causes(&error), next)));
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
    let heard = hear(host, said).await;
    let ended = sweep(host, leader, &heard).await?;
    // What they still have to tell would be taken for the harness's.
    for mut task in [waiter, stdout, stderr] {
        if tokio::time::timeout(DRAIN, &mut task).await.is_err() {
            task.abort();
        }
    }
    host.forget_the_ended();
    if let Err(failure) = ended {
        return Ok(Err(failure));
    }
    heard.map(Ok)
}

/// Listens until it has ended and was heard out, its time is over, or a person wants the end.
async fn hear(host: &mut Host, said: &mut Said) -> Result<End, HostError> {
    let seconds = host.settings().setup_seconds;
    let limits = job::Limits { total_seconds: seconds, stall_seconds: seconds };
    let deadlines = Deadlines::from(host.env().moment(), limits);
    let (mut stdout, mut stderr) = (Lines::default(), Lines::default());
    let mut open = 2;
    let mut exit: Option<(ExitRecord, Instant)> = None;
    loop {
        let now: Moment = host.env().moment();
        if let Some((exit, since)) = exit
            && (open == 0 || since.elapsed() >= DRAIN)
        {
            for lines in [&mut stdout, &mut stderr] {
                take(host, said, lines.finish())?;
            }
            said.flush(host)?;
            return Ok(End::Exited(exit));
        }
        if exit.is_none() && deadlines.passed(now).is_some() {
            said.flush(host)?;
            return Ok(End::OutOfTime);
        }
        let wait = match &exit {
            Some((_, since)) => DRAIN.saturating_sub(since.elapsed()),
            None => deadlines.quiet_for(now).max(Duration::from_millis(1)),
        };
        let Ok(event) = tokio::time::timeout(wait, host.next_event()).await else { continue };
        match event {
            Event::Stdout(bytes) | Event::Stderr(bytes) if bytes.is_empty() => open -= 1,
            Event::Stdout(bytes) => take(host, said, stdout.feed(&bytes))?,
            Event::Stderr(bytes) => take(host, said, stderr.feed(&bytes))?,
            Event::Exited(status) => exit = Some((exit_record(status), Instant::now())),
            Event::Cancel => {
                host.note_cancel();
                said.flush(host)?;
                return Ok(End::Cancelled);
            }
            Event::Answer(_) => {}
            Event::ChildEnded => super::reap(),
        }
    }
}

fn take(host: &mut Host, said: &mut Said, pieces: impl IntoIterator<Item = Piece>) -> Result<(), HostError> {
    for piece in pieces {
        let line = match piece {
            Piece::Line(line) => host.log_wire(ITEM, &line).into_owned(),
            Piece::Overlong(bytes) => format!("(a line of {bytes} bytes)"),
        };
        said.add(&line);
        if said.waiting.len() >= PIECE {
            said.flush(host)?;
        }
    }
    said.flush(host)
}

impl Said {
    /// Takes a line that is redacted.
    fn add(&mut self, line: &str) {
        let line = format!("{}\n", tail(line, PIECE));
        self.tail.push_str(&line);
        self.tail = tail(&self.tail, TAIL).to_owned();
        self.waiting.push_str(&line);
    }

    fn flush(&mut self, host: &mut Host) -> Result<(), HostError> {
        let text = std::mem::take(&mut self.waiting);
        if text.is_empty() || self.recorded > RECORDED {
            return Ok(());
        }
        self.recorded += text.len();
        host.record(Known::CommandOutput { item: ITEM.to_owned(), text })?;
        if self.recorded > RECORDED {
            let text = "… what else it says is not recorded, but for its end\n".to_owned();
            host.record(Known::CommandOutput { item: ITEM.to_owned(), text })?;
        }
        Ok(())
    }
}

/// Ends what is left of it: nothing that it started may live on beside the harness.
async fn sweep(
    host: &mut Host,
    leader: ProcessIdentity,
    heard: &Result<End, HostError>,
) -> Result<Result<(), Failure>, HostError> {
    let patience = if matches!(heard, Ok(End::Exited(_))) { LEFTOVERS } else { ENDING };
    let tree = JobTree::below_this_host(Marker::of(host.job()), Some(leader));
    match host.away(move || tree.sweep(patience)).await? {
        Err(alive) => swept(host, Err(alive)).map(|swept| swept.map(drop)),
        Ok(dead) if matches!(heard, Ok(End::Exited(_))) && !dead.ended().is_empty() => {
            let text = format!("processes that the setup command left behind were ended: {}", dead.ended().len());
            host.record(Known::Notice { id: "setupLeftovers".to_owned(), text })?;
            Ok(Ok(()))
        }
        Ok(_) => Ok(Ok(())),
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

async fn watch(host: &mut Host) -> Result<Result<Watch, Failure>, HostError> {
    let (env, places, base) = (host.env().clone(), host.places(), host.spec().base.clone());
    let watched = move || Git::find(&env)?.watch(&places, &base);
    Ok(host.away(watched).await?.map_err(|error| error.into_failure(Stage::Prepare)))
}

/// Says what it changed that git does not ignore. A read-only job could not be told apart from that.
async fn look(host: &mut Host, watch: Watch, tree: TreeRecord) -> Result<Result<(), Failure>, HostError> {
    let changed = match host.away(move || watch.changed(&tree)).await? {
        Ok(changed) if changed.is_empty() => return Ok(Ok(())),
        Ok(changed) => changed,
        Err(error) => return Ok(Err(error.into_failure(Stage::Prepare))),
    };
    let text = format!("the setup command changed files that git does not ignore: {}", named(&changed));
    if host.spec().access == Access::ReadOnly {
        let next = "let it change ignored files only, or have the repository ignore these: a read-only job's tree must stay as it is";
        return Ok(Err(Failure::new(FailureCode::SetupFailed, text, next)));
    }
    host.record(Known::Notice {
        id: "setupChanges".to_owned(),
        text: format!("{text}; they are part of the job's diff"),
    })?;
    Ok(Ok(()))
}

fn named(paths: &[RepoPath]) -> String {
    let shown: Vec<String> = paths.iter().take(NAMED).map(ToString::to_string).collect();
    match paths.len().saturating_sub(NAMED) {
        0 => shown.join(", "),
        more => format!("{}, and {more} more", shown.join(", ")),
    }
}

fn failed(how: &str, said: &Said) -> Failure {
    let next = "run the command in your checkout to see what it lacks, then retry the job";
    Failure::new(FailureCode::SetupFailed, format!("the setup command {how}"), next).quoting(&said.tail)
}
