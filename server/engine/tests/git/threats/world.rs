//! What attacks are made of, and the whole way that a job's result goes.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use pactify_core::Failure;
use pactify_core::failure::ConflictKind;
use pactify_core::job::Isolation;
use pactify_core::path::PathName;
use pactify_core::protocol::{Applied, ContentParams, PreviewFormat, Side};
use pactify_engine::git::{Git, Version};
use serde_json::json;

use crate::support::{Fixture, Job, Landed, changes, env, trap, write};

pub(crate) const BOTH: [Isolation; 2] = [Isolation::Private, Isolation::Linked];

/// A program that leaves a mark when it runs.
pub(crate) struct Trap {
    pub(crate) program: String,
    mark: PathBuf,
}

impl Trap {
    pub(crate) fn new(fixture: &Fixture) -> Self {
        let mark = fixture.root.join("mark");
        Self { program: trap(&fixture.root.join("evil"), &mark), mark }
    }

    /// Another program with the same mark.
    pub(crate) fn at(&self, path: &Path) {
        trap(path, &self.mark);
    }

    /// Whether it ran since it was asked last.
    pub(crate) fn ran(&self) -> bool {
        let ran = self.mark.exists();
        let _ = fs::remove_file(&self.mark);
        ran
    }

    /// Insists that the harm is real.
    #[track_caller]
    pub(crate) fn fired(&self, how: &str) {
        assert!(self.ran(), "{how} does not fire at all");
    }

    /// Insists that nothing ran.
    #[track_caller]
    pub(crate) fn silent(&self, when: &str) {
        assert!(!self.ran(), "it ran: {when}");
    }
}

/// Sets keys as a job does: through its tree, and, because nothing stops a harness without a sandbox, in the
/// repository.
pub(crate) fn configure(fixture: &Fixture, job: &Job, keys: &[(&str, &str)]) {
    for (key, value) in keys {
        for place in [job.tree(), &fixture.repo] {
            fixture.plain(place, &["config", key, value]);
        }
    }
}

/// Git as a person calls it, with further variables.
#[expect(clippy::disallowed_methods, reason = "the person's own git, which the tests compare with")]
pub(crate) fn plain_with(fixture: &Fixture, directory: &Path, variables: &[(&str, &str)], words: &[&str]) -> Output {
    let mut command = Command::new(fixture.git.program().as_path());
    command.args(words).current_dir(directory).env("HOME", fixture.root.join("home")).env("GIT_CONFIG_NOSYSTEM", "1");
    command.envs(variables.iter().copied()).stdin(Stdio::null()).output().unwrap()
}

/// A linked worktree as a person, or another tool, makes it; where it is.
pub(crate) fn plain_worktree(fixture: &Fixture) -> PathBuf {
    let path = fixture.root.join("plain");
    fixture.plain(&fixture.repo, &["worktree", "add", "-q", "--detach", path.to_str().unwrap()]);
    path
}

/// A git that knows hooks in configuration: the one that all tests use, or the one that the person names.
#[expect(clippy::disallowed_methods, reason = "which other git there is, only whoever runs the tests can tell")]
pub(crate) fn newer_git(fixture: &Fixture) -> Option<Git> {
    let knows = |git: &Git| Some(git.version()) >= Version::parse("git version 2.54.0");
    if knows(&fixture.git) {
        return Some(fixture.git.clone());
    }
    let program = std::env::var_os("PACTIFY_TEST_NEWER_GIT")?;
    let path = format!("{}:/usr/bin:/bin", Path::new(&program).parent()?.display());
    let git = Git::find(&env(&fixture.root, &[("PATH", &path)])).unwrap();
    assert!(knows(&git), "{} is no git 2.54", git.program());
    Some(git)
}

/// Has every call of the fixture's git written down; returns where.
pub(crate) fn record(fixture: &mut Fixture) -> PathBuf {
    let (log, script) = (fixture.root.join("calls"), fixture.root.join("recorded/git"));
    write(
        &script,
        &format!("#!/bin/sh\necho \"$@\" >> '{}'\nexec '{}' \"$@\"\n", log.display(), fixture.git.program()),
    );
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
    let path = format!("{}:/usr/bin:/bin", fixture.root.join("recorded").display());
    fixture.git = Git::find(&env(&fixture.root, &[("PATH", &path)])).unwrap();
    log
}

/// Runs `work` as a job, and everything that pactify does before and after it: a look at the repository, the tree, the
/// capture, every form of preview, both exports, the apply, another look, the discard. Returns what was found to be
/// changed.
pub(crate) fn whole_life(fixture: &Fixture, isolation: Isolation, work: impl FnOnce(&Job)) -> Vec<String> {
    let landed = fixture.land_in(&fixture.repo, isolation, work);
    landed.shown();
    landed.exported();
    landed.apply().unwrap();
    landed.discard().unwrap();
    changes(&landed.captured.change_set)
}

impl Landed {
    /// Every form of preview, and both sides of every path.
    pub(crate) fn shown(&self) {
        for format in [PreviewFormat::Summary, PreviewFormat::Hunks, PreviewFormat::Patch] {
            self.preview(format);
        }
        for change in &self.captured.change_set.changes {
            for side in [Side::Base, Side::Result, Side::Current] {
                let params = ContentParams { job_id: self.id(), side, path: change.path.clone().into(), groups: None };
                self.jobs().content(&params).unwrap();
            }
            let merged =
                json!({ "jobId": self.id(), "side": "merged", "path": PathName::from(change.path.clone()).path });
            // A path that is never written has none.
            let _ = self.jobs().content(&serde_json::from_value(merged).unwrap());
        }
        let outlook = json!({ "jobId": self.id(), "checkout": true });
        self.jobs().preview(&serde_json::from_value(outlook).unwrap()).unwrap();
        self.jobs().status(self.job.places.job()).unwrap();
        self.jobs().list(&serde_json::from_value(json!({ "all": true })).unwrap()).unwrap();
    }

    /// As a patch and as a branch.
    pub(crate) fn exported(&self) {
        for form in ["patch", "branch"] {
            let params = json!({ "jobId": self.id(), "as": form });
            self.jobs().export(&serde_json::from_value(params).unwrap()).unwrap();
        }
    }

    /// Applies these paths; all of them where none is named, and nothing is confirmed.
    pub(crate) fn apply_only(&self, paths: &[&str]) -> Result<Applied, Failure> {
        let mut params = json!({ "jobId": self.id(), "changeSet": self.change_set() });
        if !paths.is_empty() {
            params["select"] = paths.iter().map(|path| json!({ "path": path })).collect();
        }
        self.jobs().apply(&serde_json::from_value(params).unwrap())
    }

    pub(crate) fn discard(&self) -> Result<(), Failure> {
        self.jobs().discard(self.job.places.job()).map(drop)
    }
}

/// The kinds of what stood in the way of an apply, by path.
pub(crate) fn obstacles(refused: Result<Applied, Failure>) -> Vec<(String, ConflictKind)> {
    let failure = refused.unwrap_err();
    assert!(!failure.next.is_empty(), "{failure:?}");
    failure.conflicts.into_iter().map(|conflict| (conflict.path.path, conflict.kind)).collect()
}

/// Refused for one kind of obstacle, at these paths.
pub(crate) fn all_of(kind: ConflictKind, paths: &[&str]) -> Vec<(String, ConflictKind)> {
    paths.iter().map(|path| ((*path).to_owned(), kind)).collect()
}
