//! The two halves of a turn's beginning: a tree to work in, and a harness that works in it.
//!
//! A first turn makes the tree; a further one goes on in the tree, and in the session, that the turns before left. What
//! can go wrong here is a failure of the job, not of the host.

use std::sync::Arc;

use pactify_core::brief::Brief;
use pactify_core::harness::version::untested;
use pactify_core::harness::{Harness, Launch, Places, Request, Resume, UserConfig, registry, ripgrep};
use pactify_core::job::access::{Access, ReadGrant, WriteGrant};
use pactify_core::job::event::{CheckoutRecord, Known, TreeRecord, Usage};
use pactify_core::job::outcome::over_limit;
use pactify_core::permission::Policy;
use pactify_core::{AbsPath, Failure, FailureCode, display};

use super::drive::{LEFTOVERS, Running};
use super::error::Stop;
use super::launch::LaunchError;
use super::{Host, HostError, launch, logins, private, residue, space};
use crate::causes::with_causes;
use crate::git::{Git, Stage, Wanted, capture};
use crate::harness;
use crate::process::{ChildEnv, JobTree, Marker};
use crate::tree::Trash;

/// How much of a list of settings a notice has, in characters.
const KEYS_MAX: usize = 400;

/// Which turn of a job's session it is.
#[derive(Debug)]
pub(super) enum Turn {
    /// The one that the brief asks for.
    First,
    /// One that goes on with another message.
    Further(Brief),
}

/// Where a turn works. Only a tree can be written to, captured and removed.
#[derive(Clone, Debug)]
pub(super) enum Workplace {
    /// A tree of the job's own.
    Tree(TreeRecord),
    /// The person's checkout, guarded.
    Checkout(CheckoutRecord),
}

impl Workplace {
    fn path(&self) -> &AbsPath {
        match self {
            Self::Tree(tree) => &tree.path,
            Self::Checkout(checkout) => &checkout.path,
        }
    }
}

/// Room, and the directories of a job that has no tree.
pub(super) async fn without_tree(host: &mut Host) -> Result<(), Stop> {
    let (home, job, free) = (host.home(), host.dir().clone(), host.settings().free_bytes);
    let made = host
        .away(move || -> Result<_, Failure> {
            space::require(job.path(), free)?;
            job.dir().ensure_dir("home")?;
            Trash::open(&home)?.take(&job.tmp())?;
            job.dir().create_dir("tmp")?;
            Ok(())
        })
        .await?;
    Ok(made?)
}

/// The tree of this turn.
pub(super) async fn tree(host: &mut Host, turn: &Turn) -> Result<TreeRecord, Stop> {
    match (turn, host.state().tree.clone()) {
        (Turn::First, _) => prepare(host).await,
        (Turn::Further(_), Some(tree)) => {
            take_up(host, &tree).await?;
            residue::clear(host, &tree).await?;
            Ok(tree)
        }
        (Turn::Further(_), None) => {
            let next = "retry the job to have it done from the beginning";
            Err(Failure::new(FailureCode::WrongState, "the job's tree is gone", next).into())
        }
    }
}

/// Takes back a tree that was not finished when the host died.
pub(super) async fn unmake(host: &mut Host) -> Result<(), HostError> {
    let (env, spec, places) = (host.env().clone(), host.spec().clone(), host.places());
    let home = host.home();
    let unmade = host
        .away(move || -> Result<(), Failure> {
            let trash = Trash::open(&home)?;
            for ours in [places.tree(), places.git(), places.look()] {
                trash.take(&ours)?;
            }
            Git::find(&env)?.release(&places, &spec.repository)?;
            Ok(())
        })
        .await?;
    if let Err(failure) = unmade {
        tracing::warn!(%failure, "an unfinished tree was not taken back");
    }
    Ok(())
}

/// Makes ready a tree that an earlier turn worked in. What stands at its place may be anything by now: a link to the
/// person's checkout must not become the place where a harness may write.
async fn take_up(host: &mut Host, tree: &TreeRecord) -> Result<(), Stop> {
    let (home, job, free, tree) = (host.home(), host.dir().clone(), host.settings().free_bytes, tree.clone());
    let taken = host
        .away(move || -> Result<_, Failure> {
            space::require(job.path(), free)?;
            capture::open_recorded(&tree).map_err(|error| error.into_failure(Stage::Prepare))?;
            Trash::open(&home)?.take(&job.tmp())?;
            job.dir().create_dir("tmp")?;
            Ok(())
        })
        .await?;
    Ok(taken?)
}

async fn prepare(host: &mut Host) -> Result<TreeRecord, Stop> {
    let (env, spec, job) = (host.env().clone(), host.spec().clone(), host.dir().clone());
    let (places, free) = (host.places(), host.settings().free_bytes);
    let prepared = host
        .away(move || -> Result<_, Failure> {
            space::require(job.path(), free)?;
            job.dir().ensure_dir("home")?;
            job.dir().ensure_dir("tmp")?;
            let git = Git::find(&env)?;
            let wanted = Wanted { isolation: spec.isolation, lfs: spec.lfs };
            let prepared = git.prepare(&places, &spec.repository, &spec.base, wanted);
            prepared.map_err(|error| error.into_failure(Stage::Prepare))
        })
        .await?;
    let prepared = prepared?;
    host.checkout = prepared.checkout;
    for notice in prepared.notices {
        host.record(Known::Notice { id: notice.id.to_owned(), text: notice.text })?;
    }
    host.record(Known::TreeReady { tree: prepared.tree.clone() })?;
    Ok(prepared.tree)
}

/// Plans and starts the harness; nothing when a cancel came first.
pub(super) async fn start(host: &mut Host, turn: &Turn, workplace: &Workplace) -> Result<Option<Running>, Stop> {
    let spec = host.spec().clone();
    let Some(harness) = registry::find(&spec.harness, &spec.settings) else {
        let message = format!("this pactify has no harness called {}", spec.harness);
        let next = "use the pactify that made the job, or retry with another harness";
        return Err(Failure::new(FailureCode::HarnessNotFound, message, next).into());
    };
    let version = version(host, &harness).await?;
    if let Some(login) = harness.kept_login(version.as_deref()) {
        host.store.kept_home(&harness.name(), &login).map_err(Failure::from)?;
    }
    let places = harness_places(host, &*harness, workplace);
    let (session, used) = match (turn, &host.state().attempt) {
        (Turn::Further(_), Some(attempt)) => (attempt.session.clone(), attempt.used_before),
        _ => (None, Usage::default()),
    };
    if let Some(ceiling) = host.settings().ceilings.passed(used) {
        return Err(over_limit(ceiling).into());
    }
    let person_files = private::person_files(host.env(), &*harness, spec.with_user_config)?;
    let nonce = nonce(host)?;
    let request = Request {
        job: &spec.id,
        brief: match turn {
            Turn::First => &spec.brief,
            Turn::Further(message) => message,
        },
        executable: &spec.executable,
        interpreter: spec.interpreter.as_ref(),
        settings: &spec.settings,
        model: spec.model.as_deref().or(spec.settings.model.as_deref()),
        permissions: spec.permissions,
        places: &places,
        resume: session.as_deref().map(|session| Resume { session, used }),
        with_user_config: spec.with_user_config,
        person_files: &person_files,
        nonce: &nonce,
        version: version.as_deref(),
    };
    let launch = plan(&*harness, &request, workplace, spec.access)?;
    let launch = launch::with_vendor_keys(launch, &*harness);
    // The plan knows of more than the person named: a provider's settings name the variable of its key.
    host.keep_secret(super::values(host.env(), &launch.keep_env));
    host.keep_secret([harness.secrets(&request), vec![nonce.clone()]].concat());
    logins::begin(host, &harness, &launch).await?;
    tell(host, &*harness, &request)?;
    let environment = made_ready(host, &launch, &places, workplace).await?;
    let (environment, told) = environment.map_err(|error| error.into_failure(&*harness, &request))?;
    for error in told {
        let text = error.into_failure(&*harness, &request).message;
        host.record(Known::Notice { id: "settingsIgnored".to_owned(), text })?;
    }
    if host.cancelled() {
        return Ok(None);
    }
    let (child, pipes) = launch::invocation(&launch, environment).start().map_err(|error| {
        let next = "see that the harness runs in a terminal, then retry";
        Failure::new(FailureCode::LaunchFailed, with_causes(&error), next)
    })?;
    let running = Running { child, pipes, driver: harness.driver(&request, spec.access), stdin: launch.stdin };
    host.keep_leftovers(launch.leftovers);
    Ok(Some(recorded(host, running, version).await?))
}

/// Carries out everything of the plan but the launch itself; returns the environment to launch in, and the failed
/// checks that keep nothing from being launched.
async fn made_ready(
    host: &mut Host,
    launch: &Launch,
    places: &Places,
    workplace: &Workplace,
) -> Result<Result<(ChildEnv, Vec<LaunchError>), LaunchError>, HostError> {
    let (env, spec, launch, workplace) = (host.env().clone(), host.spec().clone(), launch.clone(), workplace.clone());
    let roots = [places.home.clone(), places.tmp.clone()];
    host.away(move || {
        let environment = launch::environment(&env, &launch, &Marker::of(&spec.id), &workplace, spec.access);
        launch::prepare(&launch, &roots.each_ref(), &environment).map(|told| (environment, told))
    })
    .await
}

/// What a person should know of the harness, of what it lacks, of their own configuration, and of what the tree brings
/// for it.
fn tell(host: &mut Host, harness: &dyn Harness, request: &Request<'_>) -> Result<(), Stop> {
    let unknown = untested(harness, request.version).map(|text| ("harnessUntested", text));
    let own = own_configuration(harness, request, host.spec().access)?.map(|text| ("userConfig", text));
    let brought = private::instructions(harness, request.version, &request.places.tree)
        .map(|text| ("repositoryInstructions", text));
    let cannot_search = harness.about().needs_ripgrep && host.env().find_executable(ripgrep::PROGRAM).is_err();
    let missing = || ("ripgrepMissing", format!("{}; {}", ripgrep::missing(harness.name().as_str()), ripgrep::INSTALL));
    let is_asked = host.spec().permissions == Policy::Ask;
    let unasked = harness.about().never_asks.filter(|_| is_asked).map(|text| ("neverAsks", text.to_owned()));
    for (id, text) in [unknown, own, brought, cannot_search.then(missing), unasked].into_iter().flatten() {
        host.record(Known::Notice { id: id.to_owned(), text })?;
    }
    Ok(())
}

fn own_configuration(harness: &dyn Harness, request: &Request<'_>, access: Access) -> Result<Option<String>, Failure> {
    if !request.with_user_config || harness.user_config(access) != UserConfig::Taken {
        return Ok(None);
    }
    let name = harness.name();
    let left_out = harness.left_out(request, access)?;
    Ok(Some(match left_out.as_slice() {
        [] => format!("the job has your own configuration of {name}"),
        _ => {
            let keys = display::headline(&left_out.join(", "), KEYS_MAX);
            format!("the job has your own configuration of {name}, without what its access decides: {keys}")
        }
    }))
}

async fn version(host: &mut Host, harness: &Arc<dyn Harness>) -> Result<Option<String>, Stop> {
    let (env, spec, harness) = (host.env().clone(), host.spec().clone(), harness.clone());
    let program = harness::Program { executable: spec.executable, interpreter: spec.interpreter };
    Ok(host.away(move || harness::version(&env, &*harness, &spec.settings, &program)).await??)
}

/// Records that the harness was started; one that cannot be recorded is ended.
async fn recorded(host: &mut Host, running: Running, version: Option<String>) -> Result<Running, HostError> {
    let leader = running.child.identity().clone();
    if let Err(error) = host.record(Known::Launched { leader: (&leader).into(), harness_version: version }) {
        // Nobody would know of it, or end it.
        let tree = JobTree::below_this_host(Marker::of(host.job()), Some(leader));
        if let Err(alive) = host.away(move || tree.sweep(LEFTOVERS)).await? {
            tracing::error!(error = with_causes(&alive), "a harness that could not be recorded lives on");
        }
        return Err(error);
    }
    Ok(running)
}

fn nonce(host: &Host) -> Result<String, HostError> {
    use std::fmt::Write as _;

    let bytes: [u8; 16] = host.env().random().map_err(|error| HostError::SetUp(std::io::Error::other(error)))?;
    Ok(bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    }))
}

fn harness_places(host: &Host, harness: &dyn Harness, workplace: &Workplace) -> Places {
    let (job, env) = (host.dir(), host.env());
    let person_state = harness::person_state(env, harness);
    let user_home = Some(env.directories().home().clone());
    let kept = host.store.kept(&harness.name());
    Places { tree: workplace.path().clone(), home: job.home(), tmp: job.tmp(), user_home, person_state, kept }
}

/// A write grant is made of a tree, never of a checkout.
fn plan(
    harness: &dyn Harness,
    request: &Request<'_>,
    workplace: &Workplace,
    access: Access,
) -> Result<Launch, Failure> {
    Ok(match (access, workplace) {
        (Access::Write, Workplace::Tree(tree)) => {
            let grant = WriteGrant { tree: tree.path.clone(), network: true };
            harness.plan_write(request, grant)?.into_launch()
        }
        (Access::Write, Workplace::Checkout(_)) => {
            return Err(Failure::internal("a job that may write was to work in the checkout"));
        }
        (Access::ReadOnly, place) => {
            harness.plan_read_only(request, ReadGrant { tree: place.path().clone() })?.into_launch()
        }
    })
}
