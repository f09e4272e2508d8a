//! What the person has in the checkout and not in the base: such changes are no part of a job that starts from a commit.
//!
//! git compares, with the job's own git directory before anything of the job has run: no filter, fsmonitor or hook of
//! the person's configuration is known there. The index is a copy, so that git neither locks nor refreshes the
//! person's. What this finds is told and decides nothing: where it takes too long, nothing is said.

use std::io;
use std::time::Duration;

use pactify_core::display::neutral;
use pactify_core::job::RepositoryRecord;
use pactify_core::{AbsPath, RepoPath};

use super::notices::Notice;
use super::undo::remove;
use crate::git::command::{Call, Place, Verb, unexpected};
use crate::git::config::Settings;
use crate::git::error::GitError;
use crate::git::{Git, Places};

/// How long a person's task may wait for this.
const PATIENCE: Duration = Duration::from_secs(10);

/// How many paths are named.
const EXAMPLES: usize = 3;

/// One path that differs.
struct Found {
    path: RepoPath,
    /// Whether it differs from the index alone, and in content or mode alone.
    edited: bool,
}

impl Git {
    /// Says that the checkout has uncommitted changes, if it has.
    pub(super) fn uncommitted(
        &self,
        places: &Places,
        repository: &RepositoryRecord,
        settings: &Settings,
    ) -> Option<Notice> {
        let index = places.directory().join("checkout.index");
        let changed = copy_index(repository, &index).and_then(|()| {
            let git_dir = places.git();
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

    fn changed(&self, place: Place<'_>, settings: &Settings) -> Result<Vec<RepoPath>, GitError> {
        // Who hides untracked files has reasons, like a repository that is their home.
        let untracked = match settings.get("status.showuntrackedfiles") {
            Some("no" | "false") => "--untracked-files=no",
            _ => "--untracked-files=all",
        };
        let call = Call::new(Verb::Status, place)
            // A submodule is a repository with a configuration of its own: git would run in it.
            .args(["--porcelain=v1", "-z", "--no-renames", "--ignore-submodules=all", untracked])
            .patience(PATIENCE);
        let answer = self.run(&call)?;
        let lines = answer.split(|byte| *byte == 0).filter(|line| !line.is_empty());
        let found = lines.map(|line| parse(line).ok_or_else(|| unexpected(&call, line)));
        let mut found = found.collect::<Result<Vec<_>, _>>()?;
        // No filter runs here, so an untouched file that has one looks edited when git compares its content.
        let edited = found.iter().filter(|found| found.edited).map(|found| &found.path);
        let filtered = self.with_attributes(place, &["filter"], edited)?;
        found.retain(|found| !filtered.contains(&found.path));
        Ok(found.into_iter().map(|found| found.path).collect())
    }
}

/// Copies the index with its time: entries that are as young as the index are compared by content.
fn copy_index(repository: &RepositoryRecord, to: &AbsPath) -> Result<(), GitError> {
    let from = repository.git_dir.join("index");
    let times = match std::fs::metadata(&from) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        found => found.and_then(|found| found.modified()),
    };
    let copied = times.and_then(|modified| {
        std::fs::copy(&from, to)?;
        std::fs::File::options().write(true).open(to)?.set_modified(modified)
    });
    copied.map_err(GitError::io("copy the index", from.as_path()))
}

/// `XY <path>`
fn parse(line: &[u8]) -> Option<Found> {
    // A nested repository is listed as a directory.
    let path = line.get(3..)?;
    let path = RepoPath::new(path.strip_suffix(b"/").unwrap_or(path)).ok()?;
    Some(Found { path, edited: line.starts_with(b" M") })
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
