//! A harness — an agent CLI — as data plus a pure driver.
//!
//! A [`Harness`] turns a request into a [`Plan`] (what to write, what to run) and makes a [`Driver`] that turns what
//! the program says into [`Step`]s. Neither does I/O: the engine executes plans and feeds drivers, and tests replay
//! recorded streams. Every quirk of a program lives in its own file below this module; adding a harness is one
//! file, one folder of transcripts, one line in [`registry`] and one row of the suite that all of them pass. A person
//! adds one of their own in the configuration ([`own`]).
//!
//! This file has the trait; [`request`], [`plan`] and [`driver`] have what goes in and what comes out.

mod about;
pub mod acp;
pub mod agy;
pub mod cli;
pub mod codex;
mod driver;
mod failure;
mod files;
mod handed;
mod instructions;
mod interpreter;
pub mod kimi;
pub mod login;
mod name;
mod notices;
pub mod opencode;
pub mod own;
pub mod person;
mod plan;
pub mod registry;
mod repeats;
mod request;
pub mod ripgrep;
pub mod settings;
pub mod tail;
pub mod toolchains;
pub mod version;

use crate::job::access::{Access, ReadGrant, ReadOnly, Write, WriteGrant};
use crate::job::event::ExitRecord;
use crate::{AbsPath, Failure, FailureCode};

pub use about::About;
pub use driver::{Conclusion, Driver, Step};
pub use files::{Evidence, FileAction, FileAnswer, FileRequest, Reading};
pub use instructions::Instructions;
pub use interpreter::Interpreter;
pub use login::{KeptLogin, LinkKind, LoginPlace, LoginWorth, PlannedLink, SeenLogins, VendorKeys};
pub use name::{HarnessName, HarnessNameError};
pub use person::{PersonFile, PersonFiles, UserConfig};
pub use plan::{Launch, Plan, PlannedFile, Preflight, Site, Stdin};
pub use request::{Places, Request, Resume};
pub use settings::HarnessSettings;

/// An agent CLI that pactify can drive.
pub trait Harness: Send + Sync {
    /// Its name in configuration, records and commands.
    fn name(&self) -> HarnessName;

    /// What is always the same of it.
    fn about(&self) -> &'static About;

    /// Reads the version out of what it prints when it is asked for that ([`About::version_args`]).
    fn parse_version(&self, stdout: &str) -> Option<String> {
        version::plain(stdout.lines().last()?)
    }

    /// The program to run instead of `executable`, where the latter is a launcher that must not be signalled:
    /// candidates relative to the launcher's resolved location, best first. The engine takes the first that exists.
    fn native_candidates(&self, _executable: &AbsPath) -> Vec<AbsPath> {
        Vec::new()
    }

    /// The access modes it has.
    fn modes(&self) -> &'static [Access] {
        &[Access::Write, Access::ReadOnly]
    }

    /// Those that a program of this version has.
    fn modes_of(&self, _version: Option<&str>) -> &'static [Access] {
        self.modes()
    }

    /// Whether write jobs of this version can ask the person.
    fn asks(&self, _version: Option<&str>) -> bool {
        self.about().can_ask
    }

    /// Why it has no jobs in this mode, where it has none ([`Harness::modes`]).
    fn without_mode(&self, _access: Access) -> Failure {
        let name = self.name();
        Failure::new(
            FailureCode::InvalidParams,
            format!("nothing says how {name} is kept from writing, so it has no read-only mode"),
            format!(
                "say in `read-only-args` of [harnesses.{name}] by which arguments it only looks, or use another harness"
            ),
        )
    }

    /// What runs `executable`, where that is a script. Found when the job is created, like the program itself.
    fn interpreter(&self, _executable: &AbsPath) -> Option<Interpreter> {
        None
    }

    /// Whether a job of this access may have these settings: asked before they are recorded, as a plan, which refuses
    /// the same, is made after that.
    fn check_settings(&self, _settings: &HarnessSettings, _access: Access) -> Result<(), Failure> {
        Ok(())
    }

    /// The launch of a job: what a plan holds beside its grant.
    fn launch(&self, request: &Request<'_>, site: Site<'_>) -> Result<Launch, Failure>;

    /// A plan for a job that may change its tree.
    fn plan_write(&self, request: &Request<'_>, grant: WriteGrant) -> Result<Plan<Write>, Failure> {
        let site = Site { tree: &grant.tree, access: Access::Write, network: grant.network };
        let launch = self.launch(request, site)?;
        Ok(Plan { grant, launch })
    }

    /// A plan for a job that may only look.
    fn plan_read_only(&self, request: &Request<'_>, grant: ReadGrant) -> Result<Plan<ReadOnly>, Failure> {
        let site = Site { tree: &grant.tree, access: Access::ReadOnly, network: false };
        let launch = self.launch(request, site)?;
        Ok(Plan { grant, launch })
    }

    /// The driver of one launch, in the mode that its plan was made for.
    fn driver(&self, request: &Request<'_>, access: Access) -> Box<dyn Driver>;

    /// What a failed [`Preflight`] means, given how it ended (`None`: it ran into its limit) and the end of all that
    /// it printed. A harness overrides this where the same command can fail for other reasons than the one checked.
    fn preflight_failure(
        &self,
        _request: &Request<'_>,
        preflight: &Preflight,
        _exit: Option<ExitRecord>,
        output: &str,
    ) -> Failure {
        preflight.failure.clone().quoting(output)
    }

    /// What it means to it that a job is to have the person's own configuration.
    fn user_config(&self, access: Access) -> UserConfig {
        match access {
            Access::Write => self.about().user_config,
            Access::ReadOnly => self.about().read_only_user_config,
        }
    }

    /// Files of the person's own configuration that a plan takes from ([`Request::person_files`]), in a job that is to
    /// have it or in any other.
    fn person_files(&self, _with_user_config: bool) -> Option<PersonFiles> {
        None
    }

    /// The settings in them that do not hold in the job, by their names.
    fn left_out(&self, _request: &Request<'_>, _access: Access) -> Result<Vec<String>, Failure> {
        Ok(Vec::new())
    }

    /// What the plan will write down, and what must be recorded nowhere else.
    fn secrets(&self, _request: &Request<'_>) -> Vec<String> {
        Vec::new()
    }

    /// What a program of this version reads from a repository as instructions, and cannot be kept from reading: a job
    /// names what is there.
    fn repository_instructions(&self, _version: Option<&str>) -> Instructions {
        self.about().instructions
    }

    /// Whether somebody is logged in, as far as that shows without asking its provider; it is then not asked by its
    /// [`About::login_probe`].
    fn is_logged_in(&self, _seen: &SeenLogins<'_>) -> Option<bool> {
        None
    }

    /// Whether its jobs have no login to work with, as far as that shows without asking anybody.
    fn lacks_login(&self, seen: &SeenLogins<'_>) -> bool {
        self.is_logged_in(seen) == Some(false)
    }

    /// How a command is run as the commands of its jobs are, without a model; `None` where nothing confines those.
    fn confined(&self, _settings: &HarnessSettings, _access: Access) -> Option<Confined> {
        None
    }

    /// The login that pactify keeps for it, where the program is of a version whose own cannot be linked.
    fn kept_login(&self, _version: Option<&str>) -> Option<KeptLogin> {
        None
    }
}

/// A harness's sandbox, tried without a model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Confined {
    /// Arguments of its executable; the command follows.
    pub args: Vec<String>,
    /// Whether the command is to reach the network.
    pub network: bool,
    /// What it means that no command runs at all.
    pub failure: Failure,
}
