//! One attempt, from the tree to the last event: prepare, launch, drive, sweep, capture, conclude.
//!
//! Every step's failure becomes part of the outcome; only a journal that cannot be written ends the host without one
//! (the attempt is then *lost*, and the next recovery repairs it). A result is captured only with the proof that nothing
//! of the job runs any more.

use pactify_core::harness::{Conclusion, Harness, Launch, Places, Request, registry};
use pactify_core::job::access::{Access, ReadGrant, WriteGrant};
use pactify_core::job::event::{AttemptReason, Deadline, Known, ProcessRecord, TreeRecord};
use pactify_core::job::outcome::{Observed, Verdict, conclude};
use pactify_core::{AbsPath, Failure, FailureCode};

use super::drive::{Driven, LEFTOVERS, Running, drive};
use super::{Host, HostError, launch, leftovers, slots, space};
use crate::git::{Git, Stage};
use crate::harness;
use crate::process::{JobTree, Marker, NotDead, ProcessIdentity, VerifiedDead};

/// What an attempt's work came to, before it is decided.
struct Work {
    conclusion: Conclusion,
    deadline: Option<Deadline>,
    failure: Option<Failure>,
    changes: Option<u64>,
}

impl Work {
    fn failed(failure: Failure) -> Self {
        let conclusion = Conclusion { verdict: Verdict::Silent, final_message: None };
        Self { conclusion, deadline: None, failure: Some(failure), changes: None }
    }

    fn not_begun() -> Self {
        Self { failure: None, ..Self::failed(Failure::internal("not begun")) }
    }
}

/// The job's first run.
pub(super) async fn run(host: &mut Host) -> Result<(), HostError> {
    let slot = slots::wait(host).await?;
    host.open_attempt(AttemptReason::Run)?;
    let work = if host.cancelled() { Work::not_begun() } else { work(host).await? };
    drop(slot);
    end(host, work)
}

/// Repairs a job whose host died: sweeps what it left running, captures what it left in its tree.
pub(super) async fn recover(host: &mut Host) -> Result<(), HostError> {
    let before = host.state().attempt.clone();
    let tree = host.state().tree.clone();
    host.open_attempt(AttemptReason::Recovery)?;
    let (old_host, leader) = match &before {
        None => (None, None),
        Some(attempt) => (Some(&attempt.host.process), attempt.leader.as_ref()),
    };
    let named = |record: Option<&ProcessRecord>| record.and_then(|record| ProcessIdentity::try_from(record).ok());
    let left = JobTree::left_by(Marker::of(host.job()), named(old_host), named(leader));
    let dead = host.away(move || left.sweep(LEFTOVERS)).await?;
    let mut work = Work::failed(host_lost());
    match swept(host, dead)? {
        Err(failure) => work.failure = Some(failure),
        Ok(dead) => match tree {
            None => {}
            Some(tree) => capture(host, dead, tree, &mut work).await?,
        },
    }
    if before.is_some_and(|attempt| attempt.cancel_requested) {
        host.note_cancel();
    }
    end(host, work)
}

async fn work(host: &mut Host) -> Result<Work, HostError> {
    let tree = match prepare_tree(host).await? {
        Ok(tree) => tree,
        Err(failure) => return Ok(Work::failed(failure)),
    };
    if host.cancelled() {
        return Ok(Work::not_begun());
    }
    let running = match start(host).await? {
        Ok(Some(running)) => running,
        Ok(None) => return Ok(Work::not_begun()),
        Err(failure) => return Ok(Work::failed(failure)),
    };
    let Driven { conclusion, deadline, failure, dead } = drive(host, running).await;
    let mut work = Work { conclusion, deadline, failure, changes: None };
    match swept(host, dead)? {
        Ok(dead) => capture(host, dead, tree, &mut work).await?,
        Err(failure) => {
            work.failure.get_or_insert(failure);
        }
    }
    Ok(work)
}

async fn prepare_tree(host: &mut Host) -> Result<Result<TreeRecord, Failure>, HostError> {
    let (env, spec, job) = (host.env().clone(), host.spec().clone(), host.dir().clone());
    let (places, free) = (host.places(), host.settings().free_bytes);
    let prepared = host
        .away(move || -> Result<_, Failure> {
            space::require(job.path(), free)?;
            job.dir().ensure_dir("home")?;
            job.dir().ensure_dir("tmp")?;
            let git = Git::find(&env)?;
            let prepared = git.prepare(&places, &spec.repository, &spec.base, spec.isolation);
            prepared.map_err(|error| error.into_failure(Stage::Prepare))
        })
        .await?;
    match prepared {
        Err(failure) => Ok(Err(failure)),
        Ok(prepared) => {
            for notice in prepared.notices {
                host.record(Known::Notice { id: notice.id.to_owned(), text: notice.text })?;
            }
            host.record(Known::TreeReady { tree: prepared.tree.clone() })?;
            Ok(Ok(prepared.tree))
        }
    }
}

/// Plans and starts the harness; nothing when a cancel came first.
async fn start(host: &mut Host) -> Result<Result<Option<Running>, Failure>, HostError> {
    let spec = host.spec().clone();
    let Some(harness) = registry::find(&spec.harness) else {
        let message = format!("this pactify has no harness called {}", spec.harness);
        let next = "use the pactify that made the job, or retry with another harness";
        return Ok(Err(Failure::new(FailureCode::HarnessNotFound, message, next)));
    };
    let version = {
        let (env, spec) = (host.env().clone(), spec.clone());
        host.away(move || harness::version(&env, harness, &spec.settings, &spec.executable)).await?
    };
    let version = match version {
        Ok(version) => version,
        Err(failure) => return Ok(Err(failure)),
    };
    let places = harness_places(host, harness);
    let request = Request {
        job: &spec.id,
        brief: &spec.brief,
        executable: &spec.executable,
        settings: &spec.settings,
        model: spec.model.as_deref().or(spec.settings.model.as_deref()),
        places: &places,
        resume: None,
        version: version.as_deref(),
    };
    let launch = match plan(harness, &request, spec.access) {
        Ok(launch) => launch,
        Err(failure) => return Ok(Err(failure)),
    };
    let environment = launch::environment(host.env(), &launch, &Marker::of(&spec.id));
    let prepared = {
        let (environment, launch) = (environment.clone(), launch.clone());
        let roots = [places.home.clone(), places.tmp.clone()];
        host.away(move || launch::prepare(&launch, &roots.each_ref(), &environment)).await?
    };
    if let Err(error) = prepared {
        return Ok(Err(error.into_failure(harness, &request)));
    }
    if host.cancelled() {
        return Ok(Ok(None));
    }
    let (child, pipes) = match launch::invocation(&launch, environment).start() {
        Ok(started) => started,
        Err(error) => {
            let next = "see that the harness runs in a terminal, then retry";
            return Ok(Err(Failure::new(FailureCode::LaunchFailed, super::chain(&error), next)));
        }
    };
    let running = Running { child, pipes, driver: harness.driver(&request), stdin: launch.stdin };
    host.record(Known::Launched { leader: running.child.identity().into(), harness_version: version })?;
    host.keep_leftovers(launch.leftovers);
    Ok(Ok(Some(running)))
}

fn harness_places(host: &Host, harness: &dyn Harness) -> Places {
    let (job, env) = (host.dir(), host.env());
    let person_state = harness.home_variable().and_then(|name| AbsPath::new(env.variable(name)?).ok());
    let user_home = Some(env.directories().home().clone());
    Places { tree: job.tree(), home: job.home(), tmp: job.tmp(), user_home, person_state }
}

fn plan(harness: &dyn Harness, request: &Request<'_>, access: Access) -> Result<Launch, Failure> {
    let tree = request.places.tree.clone();
    Ok(match access {
        Access::Write => harness.plan_write(request, WriteGrant { tree, network: true })?.into_launch(),
        Access::ReadOnly => harness.plan_read_only(request, ReadGrant { tree })?.into_launch(),
    })
}

/// Records what a sweep came to.
fn swept(host: &mut Host, dead: Result<VerifiedDead, NotDead>) -> Result<Result<VerifiedDead, Failure>, HostError> {
    match dead {
        Ok(dead) => {
            let killed = u32::try_from(dead.ended().len()).unwrap_or(u32::MAX);
            host.record(Known::Swept { killed, survivors: Vec::new() })?;
            Ok(Ok(dead))
        }
        Err(error) => {
            let survivors = match &error {
                NotDead::Survivors { survivors, .. } => survivors.iter().map(ToString::to_string).collect(),
                _ => Vec::new(),
            };
            host.record(Known::Swept { killed: 0, survivors })?;
            Ok(Err(Failure::new(
                FailureCode::ProcessesSurvived,
                super::chain(&error),
                "end these processes yourself, then run `pactify sub cancel` on the job: its tree is captured then",
            )))
        }
    }
}

async fn capture(host: &mut Host, dead: VerifiedDead, tree: TreeRecord, work: &mut Work) -> Result<(), HostError> {
    let (env, spec, places) = (host.env().clone(), host.spec().clone(), host.places());
    let leftovers = host.take_leftovers();
    let captured = host
        .away(move || -> Result<_, Failure> {
            let git = Git::find(&env)?;
            leftovers::remove_empty(&tree, &leftovers);
            let captured = git.capture(&dead, &places, &spec.repository, &spec.base, &tree);
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
    let Work { conclusion, deadline, failure, changes } = work;
    let observed = Observed {
        access: host.spec().access,
        cancelled: host.cancelled(),
        deadline,
        own_failure: failure,
        verdict: conclusion.verdict,
        changes,
    };
    let (outcome, failure) = conclude(observed);
    host.record(Known::AttemptEnded { outcome, failure, final_message: conclusion.final_message })
}

fn host_lost() -> Failure {
    Failure::new(
        FailureCode::HostLost,
        "the process that ran the job ended before the job did",
        "what was in its tree is captured: look at it with `pactify sub diff`, or retry the job",
    )
}
