//! Which files of the person's checkout changed while a job ran.
//!
//! git compares, as for [`super::uncommitted`]: before the job, where the tree was made from a commit, for its notice
//! already ([`super::prepare`]), and afterwards in a git directory made for the look, by the rules of before: what an
//! agent without a sandbox left in the person's repository steers nothing. What differed before the job is told apart
//! by the change time, which nobody without privileges can set, and a deletion by what was missing before. Nothing is
//! read but by git, and no link is followed on the way.

use std::collections::BTreeSet;
use std::os::fd::OwnedFd;
use std::time::Duration;

use jiff::Timestamp;
use pactify_core::job::{Base, RepositoryRecord};
use pactify_core::{AbsPath, RepoPath};
use rustix::fs::{Mode, OFlags, ResolveFlags};
use rustix::io::Errno;

use super::capture::entry::DIRECTORY;
use super::command::Place;
use super::config::{Layout, Rules, Settings, object_directories};
use super::error::GitError;
use super::manifest::Fingerprint;
use super::prepare::{copy_shallow, copy_sparse_patterns, remove};
use super::uncommitted::{Submodules, Uncommitted, copy_index};
use super::{Git, Places};

/// How long the end of a job may wait for git's comparison.
const PATIENCE: Duration = Duration::from_secs(20);

/// What a checkout was like, and since when changes in it are told.
#[derive(Debug)]
pub struct CheckoutBefore {
    since: Timestamp,
    seen: CheckoutSeen,
}

/// What a checkout was like before anything of a job ran. It is kept in memory: files could be the job's by the end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckoutSeen {
    by: CheckoutRules,
    /// What was missing already.
    missing: BTreeSet<RepoPath>,
}

/// What a checkout is compared by, before a job and after it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct CheckoutRules {
    settings: Settings,
    rules: Rules,
    lenders: Vec<AbsPath>,
}

/// What changed in it.
#[derive(Debug)]
pub struct ChangedMeanwhile {
    /// Files, ignored ones apart, in order.
    pub paths: Vec<RepoPath>,
    /// Whether new files were not looked for, because the person hides them.
    pub untracked_hidden: bool,
}

/// When an entry last changed.
enum Entry {
    Changed(i128),
    /// There is none; the nearest directory above it changed then.
    Missing(i128),
}

impl CheckoutSeen {
    /// A checkout that was `found` to differ so from the base.
    pub(super) fn new(repository: &RepositoryRecord, by: CheckoutRules, found: &Uncommitted) -> Result<Self, GitError> {
        let top = open(repository)?;
        let missing = |path: &&RepoPath| matches!(look(&top, path), Some(Entry::Missing(_)));
        let missing = found.paths().into_iter().filter(missing).cloned().collect();
        Ok(Self { by, missing })
    }

    /// Changes from `now` on are told; nothing of the job may have run since this was seen.
    pub fn since(self, now: Timestamp) -> CheckoutBefore {
        CheckoutBefore { since: now, seen: self }
    }
}

impl CheckoutRules {
    /// Those of a repository as it is now, objects included.
    pub(super) fn new(repository: &RepositoryRecord, settings: Settings, rules: Rules) -> Result<Self, GitError> {
        Ok(Self { lenders: object_directories(&repository.common_dir)?, settings, rules })
    }
}

impl Git {
    /// Looks at the checkout before a job that starts from `base` runs anything.
    ///
    /// # Errors
    /// When it can't be compared with the base, or not in seconds.
    pub fn see_checkout(
        &self,
        places: &Places,
        repository: &RepositoryRecord,
        base: &Base,
    ) -> Result<CheckoutSeen, GitError> {
        let settings = self.settings(Place::Person(repository))?;
        let rules = self.rules(repository, &settings)?;
        let by = CheckoutRules::new(repository, settings, rules)?;
        let found = self.differing(places, repository, base, &by)?;
        CheckoutSeen::new(repository, by, &found)
    }

    /// Files of the checkout that are not as in `base` and were changed, made or deleted since `before`.
    ///
    /// # Errors
    /// When they can't be told, or not in seconds.
    pub fn changed_since(
        &self,
        places: &Places,
        repository: &RepositoryRecord,
        base: &Base,
        before: &CheckoutBefore,
    ) -> Result<ChangedMeanwhile, GitError> {
        let found = self.differing(places, repository, base, &before.seen.by)?;
        let top = open(repository)?;
        let since = before.since.as_nanosecond();
        let is_news = |path: &&RepoPath| match look(&top, path) {
            Some(Entry::Changed(at)) => at >= since,
            Some(Entry::Missing(at)) => at >= since && !before.seen.missing.contains(*path),
            None => false,
        };
        let paths = found.paths().into_iter().filter(is_news).cloned().collect();
        Ok(ChangedMeanwhile { paths, untracked_hidden: found.untracked_hidden })
    }

    fn differing(
        &self,
        places: &Places,
        repository: &RepositoryRecord,
        base: &Base,
        by: &CheckoutRules,
    ) -> Result<Uncommitted, GitError> {
        let git_dir = places.look();
        remove(&git_dir);
        let layout = Layout {
            path: &git_dir,
            settings: by.settings.for_snapshot(),
            rules: &by.rules,
            sha256: base.tree.is_sha256(),
            checkout: true,
            head: base.public_commit(),
            alternates: &by.lenders,
        };
        let index = git_dir.join("checkout.index");
        let place = Place::Private { git_dir: &git_dir, work_tree: Some(&repository.worktree), index: Some(&index) };
        let found = layout
            .create()
            .and_then(|()| copy_shallow(&git_dir, repository))
            .and_then(|()| copy_sparse_patterns(&git_dir, repository, &by.settings))
            .and_then(|()| copy_index(repository, &git_dir, &index))
            .and_then(|()| self.uncommitted(place, &by.settings, Submodules::LeftOut, PATIENCE));
        remove(&git_dir);
        found
    }
}

fn open(repository: &RepositoryRecord) -> Result<OwnedFd, GitError> {
    let top = repository.worktree.as_path();
    rustix::fs::open(top, DIRECTORY, Mode::empty()).map_err(GitError::errno("open", top))
}

/// `None` where a link or something that can't be looked at is in the way.
fn look(top: &OwnedFd, path: &RepoPath) -> Option<Entry> {
    let mut place = Some(path.clone());
    loop {
        let name = place.as_ref().map_or(b".".as_slice(), RepoPath::as_bytes);
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
        match rustix::fs::openat2(top, name, flags, Mode::empty(), resolve) {
            // A link at the end is opened, not followed.
            Ok(opened) => {
                let at = Fingerprint::of(&rustix::fs::fstat(&opened).ok()?).changed();
                let is_it = place.as_ref() == Some(path);
                return Some(if is_it { Entry::Changed(at) } else { Entry::Missing(at) });
            }
            Err(Errno::NOENT | Errno::NOTDIR) => place = place?.parent(),
            Err(_) => return None,
        }
    }
}
