//! Creating a job: everything that can be refused at once is refused here, everything later is the job's outcome.
//!
//! What this does must not grow with the repository: no walk, no status. A person waits for it. They wait for as long
//! as a `git status` takes where the job starts from more than a commit ([`super::base`]).

use std::sync::Arc;

use pactify_core::brief::Brief;
use pactify_core::config::Settings;
use pactify_core::harness::{Harness, HarnessName, HarnessSettings, UserConfig, registry};
use pactify_core::job::access::Access;
use pactify_core::job::setup::Setup;
use pactify_core::job::state::SeenState;
use pactify_core::job::verify::Check;
use pactify_core::job::{BaseKind, Isolation, JobSpec, Limits, Place, RepositoryRecord, SPEC_FORMAT};
use pactify_core::permission::Policy;
use pactify_core::protocol::{BriefSource, DelegateParams, Delegated, HarnessChoice, view};
use pactify_core::{AbsPath, Failure, FailureCode, JobId};

use super::base::{self, UnsavedText};
use super::unnamed::{self, Picked};
use super::{Jobs, invalid, local_path};
use crate::config;
use crate::git::{Examined, Snapshot};
use crate::harness::{self, Found, Program};
use crate::host::{self, Errand};
use crate::process::Marker;
use crate::store::Draft;

/// What a new job is to be, once it is decided where each answer comes from; whether it can be is looked at afterwards.
pub(super) struct Wish {
    pub(super) brief: Brief,
    /// Its `found` is absent where nothing was looked for yet.
    pub(super) picked: Picked<Option<Found>>,
    pub(super) model: Option<String>,
    pub(super) with_user_config: bool,
    pub(super) access: Access,
    pub(super) site: Site,
    /// Absent as configured.
    pub(super) verify: Option<Vec<String>>,
    /// Absent as configured.
    pub(super) permissions: Option<Policy>,
    pub(super) limits: Limits,
    pub(super) retry_of: Option<JobId>,
}

/// What a new job is to work in.
#[derive(Clone, Copy, Debug)]
pub(super) enum Site {
    /// A tree of its own.
    Tree { base: BaseKind, isolation: Isolation },
    /// The checkout, as it is.
    Checkout,
}

impl Site {
    /// As it is recorded: what a job in the checkout does not have is what it is by default.
    fn recorded(self) -> (Place, BaseKind, Isolation) {
        match self {
            Self::Tree { base, isolation } => (Place::Tree, base, isolation),
            Self::Checkout => (Place::Checkout, BaseKind::default(), Isolation::default()),
        }
    }
}

impl Jobs {
    /// Creates a job and starts its host. `params.brief` must be text: front ends read documents.
    /// `params.repository` must be there: front ends know the folder. `unsaved` is what the editor holds; `None` where
    /// there is none.
    pub fn delegate(&self, params: &DelegateParams, unsaved: Option<&[UnsavedText]>) -> Result<Delegated, Failure> {
        self.refuse_inside_a_job()?;
        let settings = config::load(self.env())?;
        let brief = brief(&params.brief)?;
        let folder = folder(params.repository.as_deref())?;
        let named = params.harness.as_deref().map(|name| known_harness(name, &settings)).transpose()?;
        let examined = self.git()?.examine(&folder)?;
        let picked = match named {
            // Whether it is there is looked at once nothing else stands in the way.
            Some((harness, settings)) => {
                Picked { harness, settings, found: None, choice: HarnessChoice::Named, notice: None }
            }
            None => unnamed::pick(&settings, |harness, own| {
                harness::find(self.env(), harness, own, Some(&examined.repository)).map(Some)
            })?,
        };
        let access = params.access.unwrap_or(settings.access);
        let site = match params.in_place {
            Some(true) => checkout(access, params.base, params.isolation)?,
            _ => Site::Tree {
                base: params.base.unwrap_or(settings.base),
                isolation: params.isolation.unwrap_or(settings.isolation),
            },
        };
        let wish = Wish {
            brief,
            picked,
            model: named_model(params.model.as_deref()),
            with_user_config: params.with_user_config.unwrap_or_default(),
            access,
            site,
            verify: params.verify.clone(),
            permissions: params.permissions,
            limits: Limits {
                total_seconds: params.timeout_seconds.unwrap_or(settings.limits.total_seconds),
                stall_seconds: params.stall_seconds.unwrap_or(settings.limits.stall_seconds),
            },
            retry_of: None,
        };
        self.make(wish, &settings, examined, unsaved)
    }

    /// Creates the job, unless something of it cannot be. `examined` is the repository; the rest as in
    /// [`Self::delegate`].
    pub(super) fn make(
        &self,
        wish: Wish,
        settings: &Settings,
        examined: Examined,
        unsaved: Option<&[UnsavedText]>,
    ) -> Result<Delegated, Failure> {
        let Wish { brief, access, site, limits, with_user_config, .. } = wish;
        let Picked { harness, settings: of_harness, found, choice, notice } = wish.picked;
        refuse_mode(&*harness, access)?;
        harness.check_settings(&of_harness, access)?;
        let of_configuration = user_config(&*harness, access, with_user_config)?;
        let (place, kind, isolation) = site.recorded();
        base::refuse(kind, isolation, unsaved.is_some())?;
        let permissions = permissions(&*harness, access, wish.permissions, settings.permissions)?;
        let find = || harness::find(self.env(), &*harness, &of_harness, Some(&examined.repository));
        let Found { program: Program { executable, interpreter }, search_path, .. } = found.map_or_else(find, Ok)?;
        if let Site::Checkout = site {
            refuse_store_inside(self.store().home(), &examined.repository)?;
        }
        let mode = Mode { site, access };
        let (setup, verify) = self.commands(settings, &examined, mode, &brief, wish.verify.as_deref())?;
        refuse_no_time(limits)?;
        let at = self.env().now();
        let id = self.new_id(at)?;
        let draft = self.store().draft(&id)?;
        let Snapshot { base, notices } = self.base(&draft, &examined, kind, unsaved.unwrap_or_default())?;
        let spec = JobSpec {
            format: SPEC_FORMAT,
            id,
            created_at: at,
            brief,
            harness: harness.name(),
            executable,
            interpreter,
            search_path,
            settings: of_harness,
            model: wish.model,
            with_user_config,
            access,
            place,
            isolation,
            lfs: settings.repository(&examined.repository).lfs,
            setup,
            // Commands that are asked for stand in the place of those that are configured, also when there are none.
            no_verify: wish.verify.is_some() && verify.is_empty(),
            verify,
            permissions,
            repository: examined.repository,
            base,
            limits,
            retry_of: wish.retry_of,
            written_by: host::VERSION.to_owned(),
            unknown: serde_json::Map::new(),
        };
        let notices = notice.into_iter().chain(of_configuration).chain(notices).collect();
        self.create(draft, &spec, choice, notices)
    }

    fn create(
        &self,
        draft: Draft,
        spec: &JobSpec,
        choice: HarnessChoice,
        notices: Vec<String>,
    ) -> Result<Delegated, Failure> {
        let (job, lock) = draft.create(spec)?;
        host::start(self.env(), lock, Errand::Run)?;
        let mut said = super::approve::notices(spec.setup.as_ref(), &spec.verify);
        let worktree = match spec.place {
            Place::Tree => job.tree(),
            Place::Checkout => {
                said.push(IN_PLACE.to_owned());
                spec.repository.worktree.clone()
            }
        };
        Ok(Delegated {
            job_id: spec.id.to_string(),
            state: SeenState::Queued,
            worktree: view::file_uri(worktree.as_path()),
            harness: spec.harness.to_string(),
            harness_choice: choice,
            notices: [said, notices].concat(),
        })
    }

    /// What runs before and after the harness. Nothing of ours runs in a checkout, and what a read-only job leaves is
    /// no result that could be verified.
    fn commands(
        &self,
        settings: &Settings,
        examined: &Examined,
        mode: Mode,
        brief: &Brief,
        asked: Option<&[String]>,
    ) -> Result<(Option<Setup>, Vec<Check>), Failure> {
        let Examined { repository, head } = examined;
        let setup = match mode.site {
            Site::Tree { .. } => self.setup(settings, repository, head)?,
            Site::Checkout => None,
        };
        let verify = match (mode.access, asked) {
            (Access::Write, asked) => self.verification(settings, repository, brief, asked)?,
            (Access::ReadOnly, Some([_, ..])) => {
                return Err(invalid("verify: a read-only job has no result that could be verified"));
            }
            (Access::ReadOnly, _) => Vec::new(),
        };
        Ok((setup, verify))
    }

    fn new_id(&self, at: jiff::Timestamp) -> Result<JobId, Failure> {
        let random = self.env().random().map_err(|error| Failure::internal(error.to_string()))?;
        Ok(JobId::compose(at, u32::from_le_bytes(random)))
    }

    /// A delegated agent must not delegate again by accident, and decides nothing about jobs. No security boundary: a
    /// job can unset the variable.
    pub(super) fn refuse_inside_a_job(&self) -> Result<(), Failure> {
        let Some(outer) = self.env().variable(Marker::NAME) else { return Ok(()) };
        Err(Failure::new(
            FailureCode::RefusedInsideJob,
            format!("this runs inside job {}", outer.to_string_lossy()),
            "do the work in this job, or ask the person to do it; PACTIFY_JOB marks everything a job starts",
        ))
    }
}

pub(super) fn brief(source: &BriefSource) -> Result<Brief, Failure> {
    match source {
        BriefSource::Text(text) => Brief::new(text.clone()).map_err(|error| invalid(format!("brief: {error}"))),
        BriefSource::Document { uri } => Err(invalid(format!("brief: {uri} was not read by the front end"))),
    }
}

/// The model that was asked for: a field left empty names none.
pub(super) fn named_model(asked: Option<&str>) -> Option<String> {
    asked.filter(|model| !model.is_empty()).map(str::to_owned)
}

fn folder(uri: Option<&str>) -> Result<AbsPath, Failure> {
    local_path("repository", uri.ok_or_else(|| invalid("repository: name a folder of the repository"))?)
}

/// Where a job works, and what it may do there.
#[derive(Clone, Copy)]
struct Mode {
    site: Site,
    access: Access,
}

/// What a person is told of a job in their checkout.
const IN_PLACE: &str = "the job looks around in your checkout itself: whatever changes there while it runs, by your own hand as well, fails it";

/// Only a read-only job may look around in the checkout, where it has no tree, and so no base and no isolation.
pub(super) fn checkout(access: Access, base: Option<BaseKind>, isolation: Option<Isolation>) -> Result<Site, Failure> {
    if access == Access::Write {
        let next = "let it only look (`--read-only`), or let it work in a tree of its own";
        let message = "inPlace: only a read-only job may work in your checkout";
        return Err(Failure::new(FailureCode::InvalidParams, message, next));
    }
    match (base, isolation) {
        (Some(_), _) => Err(invalid("base: a job in your checkout sees what is there, and starts from nothing else")),
        (_, Some(_)) => Err(invalid("isolation: a job in your checkout has no tree that could be isolated")),
        (None, None) => Ok(Site::Checkout),
    }
}

/// Every line of the job's journal would be a change of the checkout.
fn refuse_store_inside(home: &AbsPath, repository: &RepositoryRecord) -> Result<(), Failure> {
    if !home.as_path().starts_with(repository.worktree.as_path()) {
        return Ok(());
    }
    Err(Failure::new(
        FailureCode::InvalidParams,
        format!(
            "inPlace: PACTIFY_HOME ({home}) lies in the checkout, which would change with every line of the job's record"
        ),
        "set PACTIFY_HOME to a directory outside of it, or let the job look at a tree of its own",
    ))
}

/// Who answers what the job asks for. A read-only job is granted nothing, so there is nothing to decide.
fn permissions(
    harness: &dyn Harness,
    access: Access,
    asked: Option<Policy>,
    configured: Policy,
) -> Result<Policy, Failure> {
    match (access, asked) {
        (Access::ReadOnly, Some(_)) => Err(invalid("permissions: a read-only job is granted none, whoever is asked")),
        (Access::ReadOnly, None) => Ok(Policy::default()),
        (Access::Write, asked) => match asked.unwrap_or(configured) {
            Policy::Ask if !harness.about().can_ask => {
                let message = format!("permissions: {} does not ask before it does something", harness.name());
                let next = "let it do what it wants (`--permissions allow`): it works in a tree of its own; or take a harness that asks";
                Err(Failure::new(FailureCode::InvalidParams, message, next))
            }
            policy => Ok(policy),
        },
    }
}

fn refuse_no_time(limits: Limits) -> Result<(), Failure> {
    match limits.total_seconds.min(limits.stall_seconds) {
        0 => Err(invalid("a limit of 0 seconds would end the job at once")),
        _ => Ok(()),
    }
}

fn refuse_mode(harness: &dyn Harness, access: Access) -> Result<(), Failure> {
    if harness.modes().contains(&access) {
        return Ok(());
    }
    Err(harness.without_mode(access))
}

/// Whether a job of this access may have the person's own configuration, and what they should know if it makes no
/// difference.
fn user_config(harness: &dyn Harness, access: Access, wanted: bool) -> Result<Option<String>, Failure> {
    let name = harness.name();
    match harness.user_config(access) {
        _ if !wanted => Ok(None),
        UserConfig::Taken => Ok(None),
        UserConfig::Always => Ok(Some(format!(
            "{name} runs with your own configuration and session list in every job: withUserConfig changes nothing"
        ))),
        UserConfig::Refused(why) => {
            let kind = if access == Access::ReadOnly { "a read-only" } else { "a write" };
            let message = format!("withUserConfig: {kind} job of {name} cannot have your own configuration: {why}");
            let next = "leave it out (`--with-user-config`), or give the job write access";
            Err(Failure::new(FailureCode::InvalidParams, message, next))
        }
    }
}

pub(super) fn known_harness(name: &str, all: &Settings) -> Result<(Arc<dyn Harness>, HarnessSettings), Failure> {
    let name: HarnessName = name.parse().map_err(|error| invalid(format!("{error}")))?;
    let settings = all.harness_settings(&name);
    let harness = registry::find(&name, &settings).ok_or_else(|| unknown_harness(name.as_str(), all))?;
    Ok((harness, settings))
}

pub(super) fn unknown_harness(name: &str, settings: &Settings) -> Failure {
    let known: Vec<_> = settings.known_harnesses().iter().map(|(harness, _)| harness.name().to_string()).collect();
    Failure::new(
        FailureCode::HarnessNotFound,
        format!("{name:?} is neither a harness of this version nor one of your own"),
        format!("use one of: {}; or describe it in [harnesses.{name}] of the configuration file", known.join(", ")),
    )
}
