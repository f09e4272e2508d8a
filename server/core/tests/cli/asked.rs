//! A program of the person's own, as its configuration describes it, and a request to it.

use std::sync::Arc;

use pactify_core::brief::Brief;
use pactify_core::config::Settings;
use pactify_core::harness::{Conclusion, Harness, HarnessSettings, Launch, Places, Request, Resume, Step, registry};
use pactify_core::job::access::{Access, ReadGrant, WriteGrant};
use pactify_core::job::event::{ExitRecord, Known, Usage};
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
}

impl Asked {
    /// A program with these keys beside its `command`.
    pub(crate) fn of(keys: &str) -> Self {
        let text = format!("[harnesses.mine]\ncommand = \"/opt/agent\"\n{keys}");
        let settings = Settings::parse(&text).unwrap().speaking("de_DE.UTF-8");
        Self {
            job: "20261129-154512-abcdef".parse().unwrap(),
            brief: Brief::new("Fix {root} and {{x}}.").unwrap(),
            executable: path("/opt/agent"),
            settings: settings.harness_settings(&"mine".parse().unwrap()),
            places: Places {
                tree: path("/j/tree"),
                home: path("/j/home"),
                tmp: path("/j/tmp"),
                user_home: None,
                person_state: None,
                kept: path("/kept"),
            },
            model: None,
            session: None,
        }
    }

    pub(crate) fn harness(&self) -> Arc<dyn Harness> {
        registry::find(&"mine".parse().unwrap(), &self.settings).unwrap()
    }

    fn request(&self) -> Request<'_> {
        Request {
            job: &self.job,
            brief: &self.brief,
            executable: &self.executable,
            interpreter: None,
            with_user_config: false,
            person_files: &[],
            nonce: "5eed",
            settings: &self.settings,
            model: self.model,
            permissions: Policy::Allow,
            places: &self.places,
            resume: self.session.map(|session| Resume { session, used: Usage::default() }),
            version: None,
        }
    }

    pub(crate) fn plan(&self, access: Access) -> Result<Launch, Failure> {
        let (request, tree) = (self.request(), self.places.tree.clone());
        Ok(match access {
            Access::Write => self.harness().plan_write(&request, WriteGrant { tree, network: true })?.into_launch(),
            Access::ReadOnly => self.harness().plan_read_only(&request, ReadGrant { tree })?.into_launch(),
        })
    }

    /// What is recorded of a run that prints these lines (`!` before those on standard error), and its conclusion.
    pub(crate) fn run(&self, access: Access, lines: &str, exit: ExitRecord) -> (Vec<Known>, Conclusion) {
        let mut driver = self.harness().driver(&self.request(), access);
        let mut steps = driver.on_start();
        for line in lines.lines() {
            steps.extend(match line.strip_prefix('!') {
                Some(line) => driver.on_stderr(line),
                None => driver.on_line(line),
            });
        }
        let conclusion = driver.on_exit(exit);
        let recorded = steps.into_iter().map(|step| match step {
            Step::Record(known) => known,
            other => panic!("a program without a dialogue is sent nothing: {other:?}"),
        });
        (recorded.collect(), conclusion)
    }
}

fn path(text: &str) -> AbsPath {
    AbsPath::new(text).unwrap()
}
