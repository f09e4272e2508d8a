//! Says what the person has in the checkout and not in the base: such changes are no part of a job that starts from a
//! commit.
//!
//! Compared with the job's own git directory before anything of the job has run. What this finds is told and decides
//! nothing: where it takes too long, or cannot be told, that is said.

use std::time::Duration;

use pactify_core::RepoPath;
use pactify_core::display::{headline, neutral};
use pactify_core::job::RepositoryRecord;

use super::notices::Notice;
use super::undo::remove;
use crate::causes::with_causes;
use crate::git::command::Place;
use crate::git::config::{Rules, Settings};
use crate::git::error::GitError;
use crate::git::meanwhile::{CheckoutRules, CheckoutSeen};
use crate::git::uncommitted::{InCheckout, Submodules, Tracked, Uncommitted, copy_index};
use crate::git::{Git, Places};

/// How long a person's task may wait for this.
const PATIENCE: Duration = Duration::from_secs(20);

/// How much of a reason is told, in characters.
const WHY_MAX: usize = 300;

/// How many paths are named.
const EXAMPLES: usize = 3;

impl Git {
    /// Says that the checkout has uncommitted changes, if it has; and what it is like, as far as that can be told.
    pub(super) fn notice_uncommitted(
        &self,
        places: &Places,
        repository: &RepositoryRecord,
        settings: &Settings,
        rules: Rules,
    ) -> (Option<Notice>, Option<CheckoutSeen>) {
        let mut seen = None;
        let index = places.directory().join("checkout.index");
        let git_dir = places.git();
        let changed = copy_index(repository, &git_dir, &index).and_then(|()| {
            let place =
                Place::Private { git_dir: &git_dir, work_tree: Some(&repository.worktree), index: Some(&index) };
            let found = self.uncommitted(place, settings, Submodules::Commits, PATIENCE)?;
            let by = CheckoutRules::new(repository, settings.clone(), rules);
            seen = by.and_then(|by| CheckoutSeen::new(repository, by, &found)).ok();
            self.beyond(place, found)
        });
        remove(&index);
        let notice = match changed {
            Ok(changed) => changed.notice(),
            Err(error) => {
                let why = headline(&with_causes(&error), WHY_MAX);
                let text = format!(
                    "whether your checkout has uncommitted changes could not be told: {why}; they are not part of this job"
                );
                Some(Notice { id: "uncommittedUnknown", text })
            }
        };
        (notice, seen)
    }

    fn beyond(&self, place: Place<'_>, mut found: Uncommitted) -> Result<Changed, GitError> {
        // No filter runs here, so an untouched file that has one looks edited when git compares its content.
        let edited = |tracked: &&Tracked| !tracked.staged && tracked.checkout == InCheckout::Modified;
        let paths = found.tracked.iter().filter(edited).map(|tracked| &tracked.path);
        let filtered = self.with_attributes(place, &["filter"], paths)?;
        found.tracked.retain(|tracked| !edited(&tracked) || !filtered.contains(&tracked.path));
        Ok(Changed { paths: found.paths().into_iter().cloned().collect(), untracked_hidden: found.untracked_hidden })
    }
}

/// What the checkout has beyond the base.
struct Changed {
    paths: Vec<RepoPath>,
    /// Whether untracked files were not looked for.
    untracked_hidden: bool,
}

impl Changed {
    fn notice(&self) -> Option<Notice> {
        const HIDDEN: &str = "untracked files were not looked for (status.showUntrackedFiles)";
        let named = self.paths.iter().take(EXAMPLES).map(|path| neutral(&path.display()).into_owned());
        let named = named.collect::<Vec<_>>().join(", ");
        let text = match self.paths.len() {
            0 => None,
            1 => Some(format!("1 file with uncommitted changes is not part of this job: {named}")),
            count if count <= EXAMPLES => {
                Some(format!("{count} files with uncommitted changes are not part of this job: {named}"))
            }
            count => Some(format!("{count} files with uncommitted changes are not part of this job: {named}, …")),
        };
        let text = match (text, self.untracked_hidden) {
            (None, false) => return None,
            (None, true) => format!("{HIDDEN}, and are not part of this job"),
            (Some(text), false) => text,
            (Some(text), true) => format!("{text}; {HIDDEN}"),
        };
        Some(Notice { id: "uncommittedChanges", text })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_notice_counts_all_and_names_three() {
        let text = |paths: &[&str]| {
            let paths = paths.iter().map(|path| RepoPath::new(*path).unwrap()).collect();
            Changed { paths, untracked_hidden: false }.notice().map(|notice| notice.text)
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
