//! A harness — an agent CLI — as data plus a pure driver.
//!
//! A [`Harness`] turns a request into a [`Plan`] (what to write, what to run) and makes a [`Driver`] that turns what
//! the program says into [`Step`]s. Neither does I/O: the engine executes plans and feeds drivers, and tests replay
//! recorded streams. Every quirk of a program lives in its own file below this module; adding a harness is one
//! file, one folder of transcripts, one line in [`registry`] and one row of the suite that all of them pass. A person adds one of their own in the configuration
//! ([`own`]).

mod about;
pub mod acp;
pub mod agy;
pub mod cli;
pub mod codex;
mod failure;
mod files;
mod handed;
mod instructions;
mod interpreter;
pub mod kimi;
pub mod login;
mod notices;
pub mod opencode;
pub mod own;
pub mod person;
pub mod registry;
pub mod settings;
pub mod tail;
pub mod toolchains;
pub mod version;

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::brief::Brief;
use crate::job::access::{Access, Mode, ReadGrant, ReadOnly, Write, WriteGrant};
use crate::job::event::{ExitRecord, Known, Usage};
use crate::job::outcome::Verdict;
use crate::permission::Policy;
use crate::{AbsPath, Failure, FailureCode, JobId};

pub use about::About;
pub use files::{Evidence, FileAction, FileAnswer, FileRequest, Reading};
pub use instructions::Instructions;
pub use interpreter::Interpreter;
pub use login::{KeptLogin, LinkKind, LoginPlace, LoginWorth, PlannedLink, SeenLogins, VendorKeys};
pub use person::{PersonFile, PersonFiles, UserConfig};
pub use settings::HarnessSettings;

/// A harness's name: lower-case letters, digits and dashes.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct HarnessName(String);

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

    /// What a program of this version reads from a repository as instructions, and cannot be kept from reading: a job names
    /// what is there.
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

/// What a plan is made from.
#[derive(Clone, Debug)]
pub struct Request<'a> {
    /// The job.
    pub job: &'a JobId,
    /// The task, or the message of a resume.
    pub brief: &'a Brief,
    /// The program, resolved.
    pub executable: &'a AbsPath,
    /// What runs it, where it is a script ([`Harness::interpreter`]), resolved.
    pub interpreter: Option<&'a AbsPath>,
    /// The person's settings for this harness.
    pub settings: &'a HarnessSettings,
    /// The model to ask for.
    pub model: Option<&'a str>,
    /// Who answers what the harness asks for, where the job may write.
    pub permissions: Policy,
    /// The job's own directories.
    pub places: &'a Places,
    /// The session to go on with.
    pub resume: Option<Resume<'a>>,
    /// Whether the job is to have the person's own configuration of the harness, as far as its access mode lets it.
    pub with_user_config: bool,
    /// Of that, the files that are there ([`Harness::person_files`]).
    pub person_files: &'a [PersonFile],
    /// What nobody can guess, in hexadecimal digits: a password, where a harness needs one.
    pub nonce: &'a str,
    /// The version that the program reported ([`Harness::parse_version`]), where it was asked.
    pub version: Option<&'a str>,
}

impl<'a> Request<'a> {
    /// The text of one of the person's own files.
    pub fn person_file(&self, name: &str) -> Option<&'a str> {
        self.person_files.iter().find(|file| file.name == name).map(|file| file.text.as_str())
    }
}

/// A session that goes on.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Resume<'a> {
    /// The harness's own id of it.
    pub session: &'a str,
    /// What the session used before, over all its attempts: some harnesses count on from there.
    pub used: Usage,
}

/// The directories of one job that a harness may know of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Places {
    /// The tree it works in.
    pub tree: AbsPath,
    /// A private home for the harness's state (0700, empty at first, kept over resumes).
    pub home: AbsPath,
    /// A private directory for temporary files; not an ancestor of `home`.
    pub tmp: AbsPath,
    /// The person's own home directory, to link logins from.
    pub user_home: Option<AbsPath>,
    /// Where the person keeps this harness's own state, when a variable says so ([`About::home_variable`]).
    pub person_state: Option<AbsPath>,
    /// Where pactify keeps a login of its own for this harness ([`Harness::kept_login`]), below `PACTIFY_HOME`; it need
    /// not exist.
    pub kept: AbsPath,
}

impl Places {
    /// Where the person keeps the state of a program: where its variable says, else in its folder.
    fn state_of(&self, about: &About) -> Option<AbsPath> {
        let below = |folder: &str| Some(folder.split('/').fold(self.user_home.clone()?, |path, name| path.join(name)));
        self.person_state.clone().or_else(|| below(about.home_folder?))
    }
}

/// A launch, together with what it is allowed. A `Plan<ReadOnly>` cannot hold a write grant.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan<M: Mode> {
    grant: M::Grant,
    launch: Launch,
}

impl Launch {
    /// Whether its commands see another home than the person's.
    pub fn hides_home(&self) -> bool {
        self.env.iter().any(|(name, _)| name == "HOME")
    }
}

impl<M: Mode> Plan<M> {
    /// What the launch is allowed.
    pub fn grant(&self) -> &M::Grant {
        &self.grant
    }

    /// The mode's word.
    pub fn access(&self) -> Access {
        M::ACCESS
    }

    /// The launch, for the host to execute.
    pub fn into_launch(self) -> Launch {
        self.launch
    }
}

/// Where a launch takes place. Made from a grant alone, so that no launch is allowed more than its plan says.
#[derive(Clone, Copy, Debug)]
pub struct Site<'a> {
    tree: &'a AbsPath,
    access: Access,
    network: bool,
}

/// What the host does to start a harness: files, links, checks, then the process. No shell is involved.
#[derive(Clone, Debug, PartialEq)]
pub struct Launch {
    /// The program.
    pub executable: AbsPath,
    /// Its arguments, without the program's name.
    pub args: Vec<String>,
    /// Its working directory.
    pub cwd: AbsPath,
    /// Variables set on top of the filtered environment.
    pub env: Vec<(String, String)>,
    /// Names of the person's variables that the filter must let through (a provider's key).
    pub keep_env: Vec<String>,
    /// Files to write first, below the job's home or temporary directory, 0600.
    pub files: Vec<PlannedFile>,
    /// Symbolic links to make, below the job's home.
    pub links: Vec<PlannedLink>,
    /// What the program reads on its standard input.
    pub stdin: Stdin,
    /// Commands that must succeed before the launch.
    pub preflight: Vec<Preflight>,
    /// Directories (relative to the tree) that the harness may leave behind empty; removed when they are empty.
    pub leftovers: Vec<String>,
}

/// A file that a plan writes.
#[derive(Clone, PartialEq, Eq)]
pub struct PlannedFile {
    /// Where.
    pub path: AbsPath,
    /// Its whole content; never logged.
    pub contents: String,
}

/// A program's standard input.
#[derive(Clone, PartialEq, Eq)]
pub enum Stdin {
    /// Nothing at all.
    Null,
    /// These bytes, then the end.
    Text(String),
    /// Lines that the driver sends ([`Step::Send`]).
    Driver,
}

/// A check that runs before the launch, with the launch's own environment.
#[derive(Clone, Debug, PartialEq)]
pub struct Preflight {
    /// Arguments of the plan's executable.
    pub args: Vec<String>,
    /// How long it may take.
    pub limit: Duration,
    /// What a failed check means, unless [`Harness::preflight_failure`] knows better.
    pub failure: Failure,
}

/// The understanding of one harness process, line by line.
///
/// The host calls [`Driver::on_line`] for each line of standard output (without the line feed),
/// [`Driver::on_stderr`] for each line of standard error, [`Driver::on_evidence`] for each file that
/// [`Driver::evidence`] names once nothing of the job runs any more, and [`Driver::on_exit`] once, last.
pub trait Driver: Send {
    /// Steps to take at the start, before any line.
    fn on_start(&mut self) -> Vec<Step> {
        Vec::new()
    }

    /// A line of standard output before secrets were taken out of it, for what must not be altered: a file's content
    /// that is to be written. `None`: the line without secrets ([`Driver::on_line`]) says all.
    fn on_raw(&mut self, _line: &str) -> Option<Vec<Step>> {
        None
    }

    /// A line of standard output.
    fn on_line(&mut self, line: &str) -> Vec<Step>;

    /// Whether texts in this line of standard output may be pieces of longer ones, or may grow with the next lines: then
    /// only its outline is kept ([`crate::redact::outline`]), as half a secret is one that nothing finds.
    fn is_in_pieces(&self, _line: &str) -> bool {
        true
    }

    /// A line of standard error.
    fn on_stderr(&mut self, _line: &str) -> Vec<Step> {
        Vec::new()
    }

    /// A person asked for the end, or a deadline passed: what to say to the program before it is interrupted.
    fn on_cancel(&mut self) -> Vec<Step> {
        Vec::new()
    }

    /// How long the program may then take to end by itself before it is interrupted.
    fn cancel_patience(&self) -> Duration {
        Duration::ZERO
    }

    /// A permission ([`Known::PermissionRequested`]) was answered with one of its options; `None` when nobody answered
    /// in time.
    fn on_answer(&mut self, _request: &str, _option: Option<&str>) -> Vec<Step> {
        Vec::new()
    }

    /// A [`FileRequest`] of this id was done, or could not be.
    fn on_file(&mut self, _request: u64, _answer: FileAnswer) -> Vec<Step> {
        Vec::new()
    }

    /// Records of the harness's own that tell what its stream does not. The job may have written them: they can
    /// turn a success into a failure, and never the other way round.
    fn evidence(&self) -> Vec<Evidence> {
        Vec::new()
    }

    /// A line of an [`Evidence`] that is read by lines, without its line feed; `None` for one that is too long.
    fn on_evidence_line(&mut self, _evidence: &Evidence, _line: Option<&[u8]>) {}

    /// What an [`Evidence`] holds; `None` when there is no such file, or it is longer than its limit. Of one that is read by
    /// lines all were told before, and it holds nothing more.
    fn on_evidence(&mut self, _evidence: &Evidence, _contents: Option<&[u8]>) -> Vec<Step> {
        Vec::new()
    }

    /// The process ended, all its output was seen. The last word: what the launch came to.
    fn on_exit(&mut self, exit: ExitRecord) -> Conclusion;
}

/// What a driver asks the host to do.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// Record this.
    Record(Known),
    /// Write this line (a line feed is added) to the program's standard input.
    Send(String),
    /// End the program's standard input: it has nothing more to do. It is ended if it does not end by itself.
    CloseInput,
    /// Look at, or change, a file of the job's tree, and tell the driver ([`Driver::on_file`]).
    File(FileRequest),
}

/// What a launch came to.
#[derive(Clone, Debug, PartialEq)]
pub struct Conclusion {
    /// Whether the turn was completed.
    pub verdict: Verdict,
    /// The agent's last words.
    pub final_message: Option<String>,
}

impl HarnessName {
    /// The name as it is written everywhere.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Why a text is not a harness's name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a harness name: 1 to 32 of a-z, 0-9 and '-', starting with a letter")]
pub struct HarnessNameError(String);

impl FromStr for HarnessName {
    type Err = HarnessNameError;

    fn from_str(text: &str) -> Result<Self, HarnessNameError> {
        let plain = |b: u8| matches!(b, b'a'..=b'z' | b'0'..=b'9' | b'-');
        if (1..=32).contains(&text.len()) && text.as_bytes()[0].is_ascii_lowercase() && text.bytes().all(plain) {
            Ok(Self(text.to_owned()))
        } else {
            Err(HarnessNameError(text.chars().take(40).collect()))
        }
    }
}

impl TryFrom<String> for HarnessName {
    type Error = HarnessNameError;

    fn try_from(text: String) -> Result<Self, HarnessNameError> {
        text.parse()
    }
}

impl From<HarnessName> for String {
    fn from(name: HarnessName) -> Self {
        name.0
    }
}

impl fmt::Display for HarnessName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for PlannedFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Contents may hold settings of a provider.
        write!(f, "PlannedFile({}, {} bytes)", self.path, self.contents.len())
    }
}

impl fmt::Debug for Stdin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Null => f.write_str("Null"),
            // A brief is the person's own text: logs have no business with it.
            Self::Text(text) => write!(f, "Text({} bytes)", text.len()),
            Self::Driver => f.write_str("Driver"),
        }
    }
}
