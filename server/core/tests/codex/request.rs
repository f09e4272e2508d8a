//! A request to plan from, with every part in one place.

use pactify_core::brief::Brief;
use pactify_core::config::Settings;
use pactify_core::harness::{HarnessSettings, Places, Request, Resume, registry};
use pactify_core::permission::Policy;
use pactify_core::{AbsPath, JobId};

/// The owner of all that a [`Request`] borrows.
pub(crate) struct Asked {
    pub(crate) job: JobId,
    pub(crate) brief: Brief,
    pub(crate) executable: AbsPath,
    pub(crate) settings: HarnessSettings,
    pub(crate) places: Places,
    pub(crate) model: Option<&'static str>,
    pub(crate) resume: Option<Resume<'static>>,
    pub(crate) version: Option<&'static str>,
}

impl Asked {
    /// A request without settings.
    pub(crate) fn plain() -> Self {
        Self {
            job: "20261129-154512-abcdef".parse().unwrap(),
            brief: Brief::new("Fix the parser.\n").unwrap(),
            executable: path("/opt/codex/bin/codex"),
            settings: HarnessSettings::default(),
            places: Places {
                tree: path("/home/u/.pactify/jobs/j/tree"),
                home: path("/home/u/.pactify/jobs/j/home"),
                tmp: path("/home/u/.pactify/jobs/j/tmp"),
                user_home: Some(path("/home/u")),
                person_state: None,
                kept: path("/home/u/.pactify/kept/codex"),
            },
            model: None,
            resume: None,
            version: Some("0.171.0"),
        }
    }

    /// A request with `[harnesses.codex]` settings, as they are written in the configuration file.
    pub(crate) fn configured(harness: &str) -> Self {
        let settings = Settings::parse(harness).unwrap();
        Self { settings: settings.harness_settings(&registry::default_name()), ..Self::plain() }
    }

    pub(crate) fn request(&self) -> Request<'_> {
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
            resume: self.resume,
            version: self.version,
        }
    }
}

pub(crate) fn path(text: &str) -> AbsPath {
    AbsPath::new(text).unwrap()
}
