//! What the host does to start a harness, and what that is allowed.

use std::fmt;
use std::time::Duration;

use super::PlannedLink;
use crate::job::access::{Access, Mode};
use crate::{AbsPath, Failure};

/// A launch, together with what it is allowed. A `Plan<ReadOnly>` cannot hold a write grant.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan<M: Mode> {
    pub(super) grant: M::Grant,
    pub(super) launch: Launch,
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
    pub(super) tree: &'a AbsPath,
    pub(super) access: Access,
    pub(super) network: bool,
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
    /// Commands that run before the launch.
    pub preflight: Vec<Preflight>,
    /// Directories (relative to the tree) that the harness may leave behind empty; removed when they are empty.
    pub leftovers: Vec<String>,
}

impl Launch {
    /// Whether its commands see another home than the person's.
    pub fn hides_home(&self) -> bool {
        self.env.iter().any(|(name, _)| name == "HOME")
    }
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
    /// Lines that the driver sends ([`super::Step::Send`]).
    Driver,
}

/// A check that runs before the launch, with the launch's own environment.
#[derive(Clone, Debug, PartialEq)]
pub struct Preflight {
    /// Arguments of the plan's executable.
    pub args: Vec<String>,
    /// How long it may take.
    pub limit: Duration,
    /// What a failed check means, unless [`super::Harness::preflight_failure`] knows better.
    pub failure: Failure,
    /// Whether nothing is launched where it fails; otherwise people are told, and the job goes on.
    pub must_pass: bool,
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
