//! A request to a harness with every part in one place, and what the harness makes of it.

use std::sync::Arc;

use pactify_core::brief::Brief;
use pactify_core::config::Settings;
use pactify_core::harness::{Conclusion, Harness, HarnessSettings, Launch, Places, Request, Resume, Step, registry};
use pactify_core::job::access::{Access, ReadGrant, WriteGrant};
use pactify_core::job::event::{ExitRecord, Usage};
use pactify_core::permission::Policy;
use pactify_core::{AbsPath, Failure, JobId};

/// The owner of all that a [`Request`] borrows.
pub(crate) struct Asked {
    pub(crate) harness: Arc<dyn Harness>,
    pub(crate) job: JobId,
    pub(crate) brief: Brief,
    pub(crate) executable: AbsPath,
    pub(crate) settings: HarnessSettings,
    pub(crate) places: Places,
    pub(crate) model: Option<&'static str>,
    pub(crate) resume: Option<Resume<'static>>,
    pub(crate) version: Option<&'static str>,
    pub(crate) with_user_config: bool,
}

impl Asked {
    /// A request to the harness `name` of this configuration file.
    pub(crate) fn of(name: &str, configuration: &str) -> Self {
        let name = name.parse().unwrap();
        let settings = Settings::parse(configuration).unwrap().speaking("de_DE.UTF-8").harness_settings(&name);
        let harness = registry::find(&name, &settings).unwrap();
        Self {
            job: "20261129-154512-abcdef".parse().unwrap(),
            brief: Brief::new("Fix the parser.\n").unwrap(),
            executable: path("/opt/agent"),
            settings,
            places: Places {
                tree: path("/home/u/.pactify/jobs/j/tree"),
                home: path("/home/u/.pactify/jobs/j/home"),
                tmp: path("/home/u/.pactify/jobs/j/tmp"),
                user_home: Some(path("/home/u")),
                person_state: harness.about().home_folder.map(|folder| path("/home/u").descend(folder)),
                kept: path(&format!("/home/u/.pactify/kept/{name}")),
            },
            model: None,
            resume: None,
            version: None,
            with_user_config: false,
            harness,
        }
    }

    /// The same in directories of short names: what the home is called may matter.
    pub(crate) fn below_j(self, home: &str) -> Self {
        let places = Places { tree: path("/j/tree"), home: path(home), tmp: path("/j/tmp"), ..self.places };
        Self { places, ..self }
    }

    pub(crate) fn request(&self) -> Request<'_> {
        Request {
            job: &self.job,
            brief: &self.brief,
            executable: &self.executable,
            interpreter: None,
            with_user_config: self.with_user_config,
            person_files: &[],
            nonce: "5eed",
            settings: &self.settings,
            model: self.model,
            permissions: Policy::Allow,
            places: &self.places,
            resume: self.resume,
            version: self.version,
        }
    }

    pub(crate) fn plan(&self, access: Access) -> Result<Launch, Failure> {
        launch(&*self.harness, &self.request(), access)
    }

    /// The steps of a run that prints these lines (`!` before those on standard error) and leaves this as evidence, and
    /// its conclusion.
    pub(crate) fn run(&self, access: Access, lines: &str, left: &str, exit: ExitRecord) -> (Vec<Step>, Conclusion) {
        let mut driver = self.harness.driver(&self.request(), access);
        let mut steps = driver.on_start();
        for line in lines.lines() {
            steps.extend(match line.strip_prefix('!') {
                Some(line) => driver.on_stderr(line),
                None => driver.on_line(line),
            });
        }
        for wanted in driver.evidence() {
            steps.extend(driver.on_evidence(&wanted, Some(left.as_bytes())));
        }
        let conclusion = driver.on_exit(exit);
        (steps, conclusion)
    }
}

/// The launch of a request in this mode.
pub(crate) fn launch(harness: &dyn Harness, request: &Request<'_>, access: Access) -> Result<Launch, Failure> {
    let tree = request.places.tree.clone();
    match access {
        Access::Write => harness.plan_write(request, WriteGrant { tree, network: true }).map(|plan| plan.into_launch()),
        Access::ReadOnly => harness.plan_read_only(request, ReadGrant { tree }).map(|plan| plan.into_launch()),
    }
}

/// The session to go on with.
pub(crate) fn session(session: &'static str) -> Option<Resume<'static>> {
    Some(Resume { session, used: Usage::default() })
}

pub(crate) fn path(text: &str) -> AbsPath {
    AbsPath::new(text).unwrap()
}
