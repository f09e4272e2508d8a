//! Where a job's git things are inside its directory.

use std::os::unix::ffi::OsStrExt as _;

use pactify_core::{AbsPath, JobId};

use crate::job_dir::{JobDir, names};

/// The directory of one job, as far as git is concerned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Places {
    job: JobId,
    directory: AbsPath,
}

impl Places {
    /// Those of the job `job` below `jobs`, the directory that holds every job's.
    pub fn of(jobs: &AbsPath, job: JobId) -> Self {
        Self { directory: jobs.join(job.as_str()), job }
    }

    /// Whose they are.
    pub fn job(&self) -> &JobId {
        &self.job
    }

    /// The job's own directory.
    pub fn directory(&self) -> &AbsPath {
        &self.directory
    }

    /// The tree that the harness works in.
    pub fn tree(&self) -> AbsPath {
        self.directory.join("tree")
    }

    /// The git directory that populates the tree, and is the tree's own when it is private: the job can write it, so
    /// nothing of it is read afterwards but what its refs are called and name ([`super::capture`]).
    pub fn git(&self) -> AbsPath {
        self.directory.join("git")
    }

    /// What the tree was populated with.
    pub fn manifest(&self) -> AbsPath {
        self.directory.join("manifest")
    }

    /// Which ignored files of the checkout the tree got copies of.
    pub fn included(&self) -> AbsPath {
        self.directory.join("included")
    }

    /// The git directory of what the job starts from, where that is not a commit of the person's repository.
    pub fn base(&self) -> AbsPath {
        self.directory.join(names::BASE)
    }

    /// The git directory of the captured result.
    pub fn capture(&self) -> AbsPath {
        self.directory.join("capture")
    }

    /// The git directory of a look at the person's checkout, while it lasts.
    pub fn look(&self) -> AbsPath {
        self.directory.join("look.git")
    }

    /// The git directory of what was accepted so far.
    pub fn accepted(&self) -> AbsPath {
        self.directory.join("accepted")
    }

    /// The ref in the person's repository that keeps the base's objects while the job exists.
    pub fn keep_ref(&self) -> String {
        format!("refs/pactify/keep/{}", self.job)
    }
}

impl From<&JobDir> for Places {
    fn from(job: &JobDir) -> Self {
        Self { job: job.id().clone(), directory: job.path().clone() }
    }
}

/// The bytes of a path, for files in which git expects paths.
pub(super) fn bytes(path: &AbsPath) -> &[u8] {
    path.as_path().as_os_str().as_bytes()
}
