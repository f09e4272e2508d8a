//! An agent of the person's own that speaks the protocol, as a harness.
//!
//! Nothing is known of it but what the person wrote and what it says of itself. It asks before it acts, if it is built
//! that way; that it does is nobody's promise. So a read-only job, in which every request is refused, exists only where
//! the person says by which arguments or in which mode the agent itself only looks. A mode alone says it of an agent
//! that is started without arguments: among those of write jobs may be one that lets it write whatever its mode.

use serde::{Deserialize, Serialize};

use super::super::handed::utf8;
use super::super::own::OwnHarness;
use super::super::own::template::{Placeholder, Template};
use super::super::{About, Driver, Harness, HarnessName, Launch, Request, Site, Stdin};
use super::{AcpDriver, Plain};
use crate::job::access::Access;
use crate::{AbsPath, Failure, FailureCode};

/// How an agent that speaks the protocol is started, and what its session is told.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct AcpProtocol {
    /// Its arguments.
    pub args: Vec<Template>,
    /// Its arguments instead of those where it may only look.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub read_only_args: Option<Vec<Template>>,
    /// The mode that the session is put into, by the agent's id of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mode: Option<String>,
    /// The mode instead of that where it may only look.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub read_only_mode: Option<String>,
    /// The login that is asked for before there is a session, by the agent's id of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub login_method: Option<String>,
}

/// An agent of the person's own, as a harness.
#[derive(Clone, Debug)]
pub struct OwnAgent {
    name: HarnessName,
    own: OwnHarness,
    protocol: AcpProtocol,
}

impl AcpProtocol {
    /// Holds the arguments against what an agent can be told by them; an error names the key.
    pub(in super::super) fn check(&self) -> Result<(), String> {
        let both = [("args", Some(&self.args)), ("read-only-args", self.read_only_args.as_ref())];
        for (key, args) in both {
            let uses = |placeholder| args.into_iter().flatten().any(|arg| arg.has(placeholder));
            if uses(Placeholder::Prompt) || uses(Placeholder::Session) {
                return Err(format!("{key}: brief and session reach an ACP agent by the protocol, not by an argument"));
            }
        }
        Ok(())
    }

    fn only_looks(&self) -> bool {
        self.read_only_args.is_some() || self.read_only_mode.is_some() && self.args.is_empty()
    }
}

impl OwnAgent {
    /// The harness `name`, as `own` describes it.
    pub(in super::super) fn new(name: HarnessName, own: OwnHarness, protocol: AcpProtocol) -> Self {
        Self { name, own, protocol }
    }

    fn start(&self, request: &Request<'_>, tree: &AbsPath, args: &[Template]) -> Result<Launch, Failure> {
        let root = utf8(self.name.as_str(), tree)?;
        let value = |placeholder| match placeholder {
            Placeholder::Root => root,
            Placeholder::Lang => self.own.lang.as_str(),
            Placeholder::Prompt | Placeholder::Session => "",
        };
        Ok(Launch {
            executable: request.executable.clone(),
            args: args.iter().map(|arg| arg.fill(value)).collect(),
            cwd: tree.clone(),
            env: self.own.environment(&request.places.tmp),
            keep_env: request.settings.environment.clone(),
            files: Vec::new(),
            links: Vec::new(),
            stdin: Stdin::Driver,
            preflight: Vec::new(),
            leftovers: Vec::new(),
        })
    }
}

const ABOUT: About = About { can_ask: true, ..About::OWN };

impl Harness for OwnAgent {
    fn name(&self) -> HarnessName {
        self.name.clone()
    }

    fn about(&self) -> &'static About {
        &ABOUT
    }

    fn modes(&self) -> &'static [Access] {
        if self.protocol.only_looks() { &[Access::Write, Access::ReadOnly] } else { &[Access::Write] }
    }

    fn without_mode(&self, _access: Access) -> Failure {
        let name = &self.name;
        let (message, next) = match self.protocol.read_only_mode {
            None => (
                format!("nothing says how {name} is kept from writing, so it has no read-only mode"),
                "say in `read-only-args` or `read-only-mode` how it only looks",
            ),
            Some(_) => (
                format!("nothing says that {name} only looks when it is started with `args`, whatever its mode"),
                "say in `read-only-args` with which arguments it only looks: the same, if none of them lets it write",
            ),
        };
        let next = format!("{next} ([harnesses.{name}] in the configuration file), or use another harness");
        Failure::new(FailureCode::InvalidParams, message, next)
    }

    fn launch(&self, request: &Request<'_>, site: Site<'_>) -> Result<Launch, Failure> {
        let args = match (site.access, &self.protocol.read_only_args) {
            (Access::ReadOnly, _) if !self.protocol.only_looks() => return Err(self.without_mode(Access::ReadOnly)),
            (Access::ReadOnly, Some(args)) => args,
            (Access::Write, _) | (Access::ReadOnly, None) => &self.protocol.args,
        };
        self.start(request, site.tree, args)
    }

    fn driver(&self, request: &Request<'_>, access: Access) -> Box<dyn Driver> {
        let protocol = &self.protocol;
        let mode = match access {
            Access::Write => protocol.mode.clone(),
            // Never the mode of write jobs: the agent's own first mode, where no other is named.
            Access::ReadOnly => protocol.read_only_mode.clone(),
        };
        let login_method = protocol.login_method.clone();
        let dialect = Plain { mode, login_method, ..Plain::named(self.name.as_str()) };
        Box::new(AcpDriver::new(Box::new(dialect), request, access))
    }
}
