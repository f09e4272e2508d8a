//! What a person has of a harness's own: whether somebody is logged in, whether jobs could refresh that login, whether
//! the settings make a job, and which sessions there are. Nothing here asks a provider, or starts a session.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::SystemTime;

use pactify_core::brief::Brief;
use pactify_core::doctor::{self, Usage};
use pactify_core::harness::{Harness, HarnessSettings, LinkKind, Places, Request};
use pactify_core::job::RepositoryRecord;
use pactify_core::job::access::{Access, ReadGrant, WriteGrant};
use pactify_core::permission::Policy;
use pactify_core::protocol::{Finding, HarnessView};
use pactify_core::{AbsPath, Failure, JobId};

use super::super::Jobs;
use crate::env::Env;
use crate::harness::{self, Found, PassingHome, person_state};
use crate::host;

/// How many files of sessions are compared.
const SESSIONS: usize = 20_000;

/// Whether each login that is there could be refreshed by a job that is led to it.
pub(super) fn check_logins(env: &Env, harness: &dyn Harness) -> Vec<Finding> {
    let Some(state) = person_state(env, harness) else { return Vec::new() };
    let logins = harness.about().login_places.iter().filter(|place| place.kind != LinkKind::Shared);
    let found = logins.filter_map(|place| {
        let path = state.as_path().join(place.path);
        let is_there = path.symlink_metadata().is_ok();
        let can = || host::can_be_refreshed(&path, place.kind);
        is_there.then(|| doctor::login(harness.name().as_str(), &path.display().to_string(), can()))
    });
    found.collect()
}

/// The sessions that are the person's own, with their sizes and times; `None` where jobs add to them.
pub(super) fn sessions(env: &Env, harness: &dyn Harness) -> Option<BTreeMap<PathBuf, (u64, Option<SystemTime>)>> {
    if harness.about().session_places.is_empty() {
        return None;
    }
    let state = person_state(env, harness)?;
    let mut waiting: Vec<PathBuf> =
        harness.about().session_places.iter().map(|place| state.as_path().join(place)).collect();
    let mut found = BTreeMap::new();
    while let Some(path) = waiting.pop() {
        let Ok(described) = path.symlink_metadata() else { continue };
        if described.is_dir() {
            waiting.extend(std::fs::read_dir(&path).into_iter().flatten().flatten().map(|entry| entry.path()));
        } else if found.len() < SESSIONS {
            found.insert(path, (described.len(), described.modified().ok()));
        }
    }
    Some(found)
}

impl Jobs {
    /// Whether the settings make a job in each access mode, and, where the person uses the harness and it can say so,
    /// whether it understands them all.
    pub(super) fn check_settings(
        &self,
        harness: &dyn Harness,
        settings: &HarnessSettings,
        around: Option<&RepositoryRecord>,
        view: &HarnessView,
        usage: Usage,
    ) -> Option<Finding> {
        let planned = self.plan_each_mode(harness, settings, around, view, usage);
        Some(doctor::settings(harness.name().as_str(), planned, usage))
    }

    fn plan_each_mode(
        &self,
        harness: &dyn Harness,
        settings: &HarnessSettings,
        around: Option<&RepositoryRecord>,
        view: &HarnessView,
        usage: Usage,
    ) -> Result<Option<Failure>, Failure> {
        let internal = |error: String| Failure::internal(error);
        let Found { program, env, .. } = harness::find(self.env(), harness, settings, around)?;
        let passing = PassingHome::make(&env)?;
        let places = places(&env, harness, &passing.path);
        let person_files = host::person_files(&env, harness, false)?;
        // Whatever a job is called and told makes no difference to a plan.
        let job: JobId = "20000101-000000-aaaaaa".parse().map_err(|_| internal("no id".to_owned()))?;
        let brief = Brief::new("Nothing.").map_err(|error| internal(error.to_string()))?;
        let request = Request {
            job: &job,
            brief: &brief,
            executable: &program.executable,
            interpreter: program.interpreter.as_ref(),
            settings,
            model: settings.model.as_deref(),
            permissions: Policy::Allow,
            places: &places,
            resume: None,
            with_user_config: false,
            person_files: &person_files,
            nonce: "0",
            version: view.version.as_deref(),
        };
        let mut first = None;
        for access in &view.access {
            let tree = places.tree.clone();
            let launch = match access {
                Access::Write => harness.plan_write(&request, WriteGrant { tree, network: true })?.into_launch(),
                Access::ReadOnly => harness.plan_read_only(&request, ReadGrant { tree })?.into_launch(),
            };
            first.get_or_insert(launch);
        }
        let Some(launch) = first.filter(|_| usage == Usage::Used) else { return Ok(None) };
        for name in ["tree", "home", "tmp"] {
            passing.folder(name)?;
        }
        host::advice(&env, harness, &request, launch)
    }
}

/// The places of a job that there is not.
fn places(env: &Env, harness: &dyn Harness, below: &AbsPath) -> Places {
    Places {
        tree: below.join("tree"),
        home: below.join("home"),
        tmp: below.join("tmp"),
        user_home: Some(env.directories().home().clone()),
        person_state: person_state(env, harness),
        kept: below.join("kept"),
    }
}
