//! What has to be taken back when a tree cannot be made.

use std::os::fd::AsFd as _;

use pactify_core::AbsPath;
use pactify_core::job::RepositoryRecord;
use rustix::fs::{Mode, OFlags};

use crate::git::{Git, Places};
use crate::tree::{Report, erase};

/// The steps so far. Takes them back in reverse when it is dropped, unless they are to be kept.
pub(super) struct Undo<'a> {
    git: &'a Git,
    places: &'a Places,
    repository: &'a RepositoryRecord,
    steps: Vec<Step>,
}

enum Step {
    KeepRef,
    Path(AbsPath),
    Registration(AbsPath),
}

impl<'a> Undo<'a> {
    pub(super) fn new(git: &'a Git, places: &'a Places, repository: &'a RepositoryRecord) -> Self {
        Self { git, places, repository, steps: Vec::new() }
    }

    /// The ref that keeps the base is about to be made.
    pub(super) fn keep_ref(&mut self) {
        self.steps.push(Step::KeepRef);
    }

    /// Something is about to be made in the job's directory. What is there already is not ours to remove.
    pub(super) fn path(&mut self, path: AbsPath) {
        if std::fs::symlink_metadata(&path).is_err() {
            self.steps.push(Step::Path(path));
        }
    }

    /// A linked tree was registered.
    pub(super) fn registration(&mut self, directory: AbsPath) {
        self.steps.push(Step::Registration(directory));
    }

    /// All went well.
    pub(super) fn keep(mut self) {
        self.steps.clear();
    }
}

impl Drop for Undo<'_> {
    fn drop(&mut self) {
        while let Some(step) = self.steps.pop() {
            match step {
                Step::KeepRef => {
                    if let Err(error) = self.git.delete_ref(self.repository, &self.places.keep_ref()) {
                        tracing::warn!(%error, job = %self.places.job(), "a ref is left in the repository");
                    }
                }
                Step::Path(path) | Step::Registration(path) => remove(&path),
            }
        }
    }
}

/// Removes something that git or we made in a place of ours, following no link. It is not moved first: the disk may be
/// full.
pub(in crate::git) fn remove(path: &AbsPath) {
    let (Some(parent), Some(name)) = (path.as_path().parent(), path.as_path().file_name()) else { return };
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let mut report = Report::default();
    match rustix::fs::open(parent, flags, Mode::empty()) {
        Ok(directory) => erase(directory.as_fd(), parent, name, &mut report),
        Err(errno) => tracing::warn!(%errno, %path, "it is left behind"),
    }
    for left in report.left {
        tracing::warn!(path = %left.path.display(), why = left.why, "it is left behind");
    }
}
