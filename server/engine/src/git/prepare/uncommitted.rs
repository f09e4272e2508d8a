//! Says what the person has in the checkout and not in the base: such changes are no part of a job that starts from a
//! commit.
//!
//! Compared with the job's own git directory before anything of the job has run. What this finds is told and decides
//! nothing: where it takes too long, nothing is said.

use std::time::Duration;

use pactify_core::RepoPath;
use pactify_core::display::neutral;
use pactify_core::job::RepositoryRecord;

use super::notices::Notice;
use super::undo::remove;
use crate::git::command::Place;
use crate::git::config::Settings;
use crate::git::error::GitError;
use crate::git::uncommitted::{InCheckout, Tracked, copy_index};
use crate::git::{Git, Places};

/// How long a person's task may wait for this.
const PATIENCE: Duration = Duration::from_secs(10);

/// How many paths are named.
const EXAMPLES: usize = 3;

impl Git {
    /// Says that the checkout has uncommitted changes, if it has.
    pub(super) fn notice_uncommitted(
        &self,
        places: &Places,
        repository: &RepositoryRecord,
        settings: &Settings,
    ) -> Option<Notice> {
        let index = places.directory().join("checkout.index");
        let git_dir = places.git();
        let changed = copy_index(repository, &git_dir, &index).and_then(|()| {
            let place =
                Place::Private { git_dir: &git_dir, work_tree: Some(&repository.worktree), index: Some(&index) };
            self.changed(place, settings)
        });
        remove(&index);
        match changed {
            Ok(changed) => notice(&changed),
            Err(error) => {
                let error: &dyn std::error::Error = &error;
                tracing::info!(error, "whether the checkout has uncommitted changes is not known");
                None
            }
        }
    }

    /// Which files of the checkout at `place` are not as in its HEAD.
    pub(in crate::git) fn changed(&self, place: Place<'_>, settings: &Settings) -> Result<Vec<RepoPath>, GitError> {
        let mut found = self.uncommitted(place, settings, PATIENCE)?;
        // No filter runs here, so an untouched file that has one looks edited when git compares its content.
        let edited = |tracked: &&Tracked| !tracked.staged && tracked.checkout == InCheckout::Modified;
        let paths = found.tracked.iter().filter(edited).map(|tracked| &tracked.path);
        let filtered = self.with_attributes(place, &["filter"], paths)?;
        found.tracked.retain(|tracked| !edited(&tracked) || !filtered.contains(&tracked.path));
        Ok(found.paths().into_iter().cloned().collect())
    }
}

fn notice(changed: &[RepoPath]) -> Option<Notice> {
    let named: Vec<String> = changed.iter().take(EXAMPLES).map(|path| neutral(&path.display()).into_owned()).collect();
    let named = named.join(", ");
    let text = match changed.len() {
        0 => return None,
        1 => format!("1 file with uncommitted changes is not part of this job: {named}"),
        count if count <= EXAMPLES => {
            format!("{count} files with uncommitted changes are not part of this job: {named}")
        }
        count => format!("{count} files with uncommitted changes are not part of this job: {named}, …"),
    };
    Some(Notice { id: "uncommittedChanges", text })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_notice_counts_all_and_names_three() {
        let text = |paths: &[&str]| {
            let paths: Vec<_> = paths.iter().map(|path| RepoPath::new(*path).unwrap()).collect();
            notice(&paths).map(|notice| notice.text)
        };
        for (paths, expected) in [
            (&[][..], None),
            (&["a"], Some("1 file with uncommitted changes is not part of this job: a")),
            (&["a", "b/c"], Some("2 files with uncommitted changes are not part of this job: a, b/c")),
            (&["a", "b", "c", "d"], Some("4 files with uncommitted changes are not part of this job: a, b, c, …")),
        ] {
            assert_eq!(text(paths).as_deref(), expected);
        }
    }
}
