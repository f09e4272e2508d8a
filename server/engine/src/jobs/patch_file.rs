//! A result's patch as a file, for editors that can only open files.
//!
//! One file per job under `PACTIFY_HOME/previews`, replaced by each preview and removed with the result. It is a copy
//! for reading: nothing is ever applied from it.

use pactify_core::{AbsPath, Failure, JobId};

use super::Jobs;
use crate::store::Area;

impl Jobs {
    /// Writes `job`'s patch and gives the file's path.
    pub fn patch_file(&self, job: &JobId, patch: &str) -> Result<AbsPath, Failure> {
        let previews = self.store().area(Area::Previews)?;
        previews.replace(&name(job), patch.as_bytes(), false)?;
        Ok(previews.path().join(&name(job)))
    }

    /// Removes the file; of a result that was given up, nothing is left lying about.
    pub(super) fn remove_patch_file(&self, job: &JobId) -> Result<(), Failure> {
        Ok(self.store().area(Area::Previews)?.remove(&name(job))?)
    }
}

fn name(job: &JobId) -> String {
    format!("{job}.patch")
}
