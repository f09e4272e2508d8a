//! What a person is told about a snapshot: what is part of it, what is not, and why.

use std::collections::{BTreeMap, BTreeSet};

use pactify_core::RepoPath;
use pactify_core::change::Note;
use pactify_core::display::neutral;

use super::buffers::Laid;
use super::look::Seen;
use crate::git::capture::{MAX_FILE_BYTES, Outcome};
use crate::git::uncommitted::Uncommitted;

/// How many paths one sentence names.
const NAMED: usize = 5;

/// What is to be said.
#[derive(Debug, Default)]
pub(super) struct Told {
    changed: usize,
    new: usize,
    deleted: usize,
    texts: usize,
    pub(super) untracked_hidden: bool,
    unmerged: Vec<RepoPath>,
    nested: Vec<RepoPath>,
    /// Tracked paths at which something lies that no tree can hold.
    pub(super) special: Vec<RepoPath>,
    /// Files with a content filter.
    pub(super) filtered: BTreeSet<RepoPath>,
    large: Vec<RepoPath>,
    /// Texts that are not part of it, with the reason.
    pub(super) skipped: Vec<(RepoPath, &'static str)>,
}

impl Told {
    pub(super) fn about(found: &Uncommitted) -> Self {
        let unmerged = found.tracked.iter().filter(|tracked| tracked.unmerged);
        Self {
            untracked_hidden: found.untracked_hidden,
            unmerged: unmerged.map(|tracked| tracked.path.clone()).collect(),
            nested: found.nested.clone(),
            ..Self::default()
        }
    }

    /// Counts what the snapshot has and HEAD has not.
    pub(super) fn count(&mut self, outcomes: &[Outcome], seen: &BTreeMap<RepoPath, Seen>, laid: &Laid) {
        self.texts = laid.count();
        let is_in_head = |path: &RepoPath| {
            let seen = laid.seen(path).or(seen.get(path));
            seen.is_some_and(|seen| seen.unmerged || seen.head.is_some())
        };
        for (path, new) in outcomes {
            match new {
                None => self.deleted += 1,
                Some(_) if is_in_head(path) => self.changed += 1,
                Some(_) => self.new += 1,
            }
        }
        let taken: BTreeSet<&RepoPath> = outcomes.iter().map(|(path, _)| path).collect();
        self.filtered.retain(|path| taken.contains(path));
    }

    /// Notes what was too large to be taken in.
    pub(super) fn too_large(&mut self, notes: &[Note]) {
        self.large.extend(notes.iter().filter_map(|note| match note {
            Note::TooLarge { path, .. } => Some(path.clone()),
            _ => None,
        }));
    }

    /// All of it, in sentences.
    pub(super) fn sentences(&self) -> Vec<String> {
        let mut said = vec![self.summary()];
        let mut say = |paths: &[RepoPath], one: &str, many: &str| {
            let named = names(paths.iter().map(|path| neutral(&path.display()).into_owned()));
            said.extend(match paths.len() {
                0 => None,
                1 => Some(format!("1 {one}: {named}")),
                count => Some(format!("{count} {many}: {named}")),
            });
        };
        say(
            &self.unmerged,
            "file waits for a merge to be resolved; the job gets it as it is in the checkout",
            "files wait for a merge to be resolved; the job gets them as they are in the checkout",
        );
        let filtered: Vec<RepoPath> = self.filtered.iter().cloned().collect();
        say(
            &filtered,
            "changed file has a content filter, which is not run: the job gets its content as it is in the checkout",
            "changed files have a content filter, which is not run: the job gets their contents as they are in the checkout",
        );
        let limit = MAX_FILE_BYTES >> 20;
        say(
            &self.large,
            &format!("changed file is left out, because it or all of them are too large (over {limit} MiB each)"),
            &format!("changed files are left out, because they are too large (over {limit} MiB each, or together)"),
        );
        say(
            &self.special,
            "tracked path is missing in the job, because it is no file in the checkout",
            "tracked paths are missing in the job, because they are no files in the checkout",
        );
        say(
            &self.nested,
            "directory is left out, because it is a repository of its own",
            "directories are left out, because they are repositories of their own",
        );
        if self.untracked_hidden {
            said.push("untracked files are left out, because `status.showUntrackedFiles` hides them".to_owned());
        }
        if !self.skipped.is_empty() {
            let named = names(self.skipped.iter().map(|(path, why)| format!("{} ({why})", neutral(&path.display()))));
            said.push(format!("unsaved text that is not part of the job: {named}"));
        }
        said
    }

    fn summary(&self) -> String {
        let parts = [(self.changed, "changed"), (self.new, "new"), (self.deleted, "deleted")];
        let parts: Vec<String> =
            parts.iter().filter(|part| part.0 > 0).map(|(n, what)| format!("{n} {what}")).collect();
        let files = self.changed + self.new + self.deleted;
        let texts = match self.texts {
            0 => String::new(),
            1 => ", with the unsaved text of 1 file".to_owned(),
            count => format!(", with the unsaved text of {count} files"),
        };
        match files {
            0 => "there are no uncommitted changes: the job starts from the commit that HEAD names".to_owned(),
            1 => format!("the job starts from your uncommitted changes: {} file{texts}", parts.join(", ")),
            _ => format!("the job starts from your uncommitted changes: {} files{texts}", parts.join(", ")),
        }
    }
}

/// Some names, and whether there are more.
fn names(all: impl ExactSizeIterator<Item = String>) -> String {
    let more = if all.len() > NAMED { ", …" } else { "" };
    let named: Vec<String> = all.take(NAMED).collect();
    format!("{}{more}", named.join(", "))
}
