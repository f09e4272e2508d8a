//! Any agent program that takes a brief and prints an answer: arguments in, text or lines of JSON out, an exit code.
//!
//! This file plans; [`driver`] understands the output, [`event`] reads lines of JSON of the common shapes. Nothing is
//! known of such a program but what the person wrote, so little is promised: it is complete when it exits with 0 and
//! says nothing to the contrary, a read-only job needs an answer and an unchanged tree, and there is no read-only mode
//! unless the person says by which arguments the program is told (`docs/decisions`, "Programs of the person's own").

mod driver;
mod event;

use serde::{Deserialize, Serialize};

use super::handed::utf8;
use super::own::OwnHarness;
use super::own::template::{Placeholder, Template};
use super::{About, Driver, Harness, HarnessName, Launch, Request, Site, Stdin};
use crate::job::access::Access;
use crate::{AbsPath, Failure, FailureCode};

/// The longest single argument that Linux takes, in bytes without the NUL at its end (`MAX_ARG_STRLEN`).
const ARGUMENT_MAX: usize = 128 * 1024 - 1;

/// How a plain program is spoken to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CliProtocol {
    /// Its arguments.
    pub args: Vec<Template>,
    /// Its arguments instead of those where it may only look. Without them there is no such mode.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read_only_args: Option<Vec<Template>>,
    /// Further arguments where it goes on with a session. Without them a job cannot be resumed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resume_args: Option<Vec<Template>>,
    /// What it prints.
    #[serde(default)]
    pub output: Output,
}

/// What a program prints on its standard output.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Output {
    /// Its answer, as text.
    #[default]
    Text,
    /// Events, one JSON object a line.
    Jsonl,
}

/// A program of the person's own, as a harness.
#[derive(Clone, Debug)]
pub struct Cli {
    name: HarnessName,
    own: OwnHarness,
    protocol: CliProtocol,
}

impl CliProtocol {
    /// Holds the arguments against each other; an error names the key.
    pub(super) fn check(&self) -> Result<(), String> {
        let uses = |args: &[Template], placeholder| args.iter().any(|arg| arg.has(placeholder));
        let session = |key| Err(format!("{key}: {{session}} belongs into `resume-args`"));
        if uses(&self.args, Placeholder::Session) {
            return session("args");
        }
        if uses(self.read_only_args.as_deref().unwrap_or_default(), Placeholder::Session) {
            return session("read-only-args");
        }
        match &self.resume_args {
            Some(args) if uses(args, Placeholder::Prompt) => {
                Err("resume-args: {prompt} belongs into `args`: these come on top of them".to_owned())
            }
            Some(args) if !uses(args, Placeholder::Session) => {
                Err("resume-args: {session} must be among them".to_owned())
            }
            Some(_) if self.output == Output::Text => {
                Err("resume-args: only a program with `output = \"jsonl\"` can name a session".to_owned())
            }
            _ => Ok(()),
        }
    }
}

impl Cli {
    /// The harness `name`, as `own` describes it.
    pub(super) fn new(name: HarnessName, own: OwnHarness, protocol: CliProtocol) -> Self {
        Self { name, own, protocol }
    }

    fn start(&self, request: &Request<'_>, tree: &AbsPath, args: &[Template]) -> Result<Launch, Failure> {
        if let Some(model) = request.model {
            return Err(self.refused(
                format!("{} takes no model, and the job asks for {model:?}", self.name),
                "name the model in its `args` instead",
            ));
        }
        let resume = match (request.resume, &self.protocol.resume_args) {
            (Some(_), None) => {
                let next = "retry the job, or say in `resume-args` how the program goes on with a session";
                return Err(self.refused(format!("{} does not say how a session goes on", self.name), next));
            }
            (Some(resume), Some(further)) => Some((plain_session(resume.session)?, further)),
            (None, _) => None,
        };
        let root = utf8(self.name.as_str(), tree)?;
        let value = |placeholder| match placeholder {
            Placeholder::Prompt => request.brief.as_str(),
            Placeholder::Root => root,
            Placeholder::Lang => self.own.lang.as_str(),
            Placeholder::Session => resume.map_or("", |(session, _)| session),
        };
        let all = || args.iter().chain(resume.into_iter().flat_map(|(_, further)| further));
        let filled: Vec<_> = all().map(|arg| arg.fill(value)).collect();
        if let Some(long) = filled.iter().find(|arg| arg.len() > ARGUMENT_MAX) {
            return Err(self.refused(
                format!("an argument of {} has {} bytes, and Linux takes {ARGUMENT_MAX}", self.name, long.len()),
                "leave {prompt} out of its `args`: the brief then goes to its standard input. Or write a shorter brief",
            ));
        }
        let asks = all().any(|arg| arg.has(Placeholder::Prompt));
        Ok(Launch {
            executable: request.executable.clone(),
            args: filled,
            cwd: tree.clone(),
            env: self.own.environment(&request.places.tmp),
            keep_env: request.settings.environment.clone(),
            files: Vec::new(),
            links: Vec::new(),
            stdin: if asks { Stdin::Null } else { Stdin::Text(request.brief.as_str().to_owned()) },
            preflight: Vec::new(),
            leftovers: Vec::new(),
        })
    }

    fn refused(&self, message: String, next: &str) -> Failure {
        let next = format!("{next} ([harnesses.{}] in the configuration file)", self.name);
        Failure::new(FailureCode::InvalidParams, message, next)
    }
}

impl Harness for Cli {
    fn name(&self) -> HarnessName {
        self.name.clone()
    }

    fn about(&self) -> &'static About {
        &About::OWN
    }

    fn modes(&self) -> &'static [Access] {
        match self.protocol.read_only_args {
            Some(_) => &[Access::Write, Access::ReadOnly],
            None => &[Access::Write],
        }
    }

    fn launch(&self, request: &Request<'_>, site: Site<'_>) -> Result<Launch, Failure> {
        let args = match (site.access, &self.protocol.read_only_args) {
            (Access::Write, _) => &self.protocol.args,
            (Access::ReadOnly, Some(args)) => args,
            (Access::ReadOnly, None) => return Err(self.without_mode(Access::ReadOnly)),
        };
        self.start(request, site.tree, args)
    }

    fn driver(&self, request: &Request<'_>, access: Access) -> Box<dyn Driver> {
        let keeps_session = self.protocol.resume_args.is_some();
        let driver = match self.protocol.output {
            Output::Text => driver::CliDriver::text(&self.name, access),
            Output::Jsonl => driver::CliDriver::jsonl(&self.name, access, keeps_session, request.resume),
        };
        Box::new(driver)
    }
}

/// `session`, unless a program could take it for a flag.
fn plain_session(session: &str) -> Result<&str, Failure> {
    if is_plain_session(session) {
        return Ok(session);
    }
    let message = format!("{:?} is no session that could be named", crate::display::headline(session, 60));
    Err(Failure::new(FailureCode::WrongState, message, "retry the job: it starts anew, with the same brief"))
}

fn is_plain_session(session: &str) -> bool {
    let plain = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.' | b':');
    (1..=200).contains(&session.len()) && !session.starts_with('-') && session.bytes().all(plain)
}
