//! Which ignored files of the checkout a job's tree got copies of: names only, beside the tree.
//!
//! For the capture, which must not count or name them among the job's ignored files. A record that cannot be read names
//! none: the files stay ignored all the same.

use std::collections::BTreeSet;

use pactify_core::{AbsPath, RepoPath};

use super::config::create_file;
use super::error::GitError;
use super::read::read;

/// The files that were copied.
#[derive(Debug, Default)]
pub(super) struct Included(BTreeSet<RepoPath>);

impl Included {
    /// Records `paths`; nothing is written for none.
    pub(super) fn write(to: &AbsPath, paths: &[RepoPath]) -> Result<(), GitError> {
        if paths.is_empty() {
            return Ok(());
        }
        let text: Vec<u8> = paths.iter().flat_map(|path| [path.as_bytes(), b"\0"].concat()).collect();
        create_file(to, &text)
    }

    pub(super) fn read(from: &AbsPath) -> Self {
        let text = read(from.as_path()).unwrap_or_default();
        let paths = text.split(|byte| *byte == 0).filter_map(|path| RepoPath::new(path).ok());
        Self(paths.collect())
    }

    pub(super) fn has(&self, path: &RepoPath) -> bool {
        !self.0.is_empty() && self.0.contains(path)
    }
}
