//! A request to agy.

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
    pub(crate) job: JobId,
    pub(crate) brief: Brief,
    pub(crate) executable: AbsPath,
    pub(crate) settings: HarnessSettings,
    pub(crate) places: Places,
    pub(crate) model: Option<&'static str>,
    pub(crate) session: Option<&'static str>,
    pub(crate) version: Option<&'static str>,
    pub(crate) with_user_config: bool,
}

impl Asked {
    pub(crate) fn plain() -> Self {
        Self::of("")
    }

    /// With these settings of `[harnesses.agy]`.
    pub(crate) fn of(keys: &str) -> Self {
        let settings = Settings::parse(&format!("[harnesses.agy]\n{keys}")).unwrap();
        Self {
            job: "20261129-154512-abcdef".parse().unwrap(),
            brief: Brief::new("Fix it.").unwrap(),
            executable: path("/opt/agy"),
            settings: settings.harness_settings(&"agy".parse().unwrap()),
            places: Places {
                tree: path("/j/tree"),
                home: path("/j/a home"),
                tmp: path("/j/tmp"),
                user_home: Some(path("/home/u")),
                person_state: None,
                kept: path("/kept"),
            },
            model: None,
            session: None,
            version: Some("1.5.7"),
            with_user_config: false,
        }
    }

    pub(crate) fn harness() -> Arc<dyn Harness> {
        registry::built_in(&"agy".parse().unwrap()).unwrap()
    }

    fn request(&self) -> Request<'_> {
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
            resume: self.session.map(|session| Resume { session, used: Usage::default() }),
            version: self.version,
        }
    }

    pub(crate) fn plan(&self, access: Access) -> Result<Launch, Failure> {
        let (request, tree) = (self.request(), self.places.tree.clone());
        Ok(match access {
            Access::Write => Self::harness().plan_write(&request, WriteGrant { tree, network: true })?.into_launch(),
            Access::ReadOnly => Self::harness().plan_read_only(&request, ReadGrant { tree })?.into_launch(),
        })
    }

    /// The steps of a run that prints these lines (`!` before those on standard error) and leaves these notes of its hook.
    pub(crate) fn run(&self, access: Access, lines: &str, notes: &str, exit: ExitRecord) -> (Vec<Step>, Conclusion) {
        let mut driver = Self::harness().driver(&self.request(), access);
        let mut steps = driver.on_start();
        for line in lines.lines() {
            steps.extend(match line.strip_prefix('!') {
                Some(line) => driver.on_stderr(line),
                None => driver.on_line(line),
            });
        }
        for wanted in driver.evidence() {
            steps.extend(driver.on_evidence(&wanted, Some(notes.as_bytes())));
        }
        let conclusion = driver.on_exit(exit);
        (steps, conclusion)
    }
}

fn path(text: &str) -> AbsPath {
    AbsPath::new(text).unwrap()
}
