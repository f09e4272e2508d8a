//! What the person has in the checkout and not in the commit that HEAD names.
//!
//! git compares, in a git directory of ours whose HEAD is that commit: no filter, fsmonitor or hook of the person's
//! configuration is known there. The index is a copy, so that git neither locks nor refreshes the person's; its stat
//! cache is what makes this as fast as their own `git status`. What was changed inside submodules is left out: each is
//! a repository with a configuration of its own, and git would run in it. So is what the person told git to leave out
//! (`assume-unchanged`).

use std::fs;
use std::io;
use std::time::Duration;

use pactify_core::change::EntryMode;
use pactify_core::job::RepositoryRecord;
use pactify_core::{AbsPath, ObjectId, RepoPath};

use super::Git;
use super::command::{Call, Place, Verb, unexpected};
use super::config::Settings;
use super::error::GitError;
use super::listing::Listed;
use super::read;

/// No index that git works with is larger, in bytes, with all that it shares.
const LARGEST_INDEX: u64 = 1 << 30;

/// How a checkout differs from the commit.
#[derive(Debug, Default)]
pub(super) struct Uncommitted {
    /// Paths that the commit or the index has.
    pub(super) tracked: Vec<Tracked>,
    /// Files and links that neither has and that no rule ignores.
    pub(super) untracked: Vec<RepoPath>,
    /// Directories with repositories of their own.
    pub(super) nested: Vec<RepoPath>,
    /// Whether untracked files were not looked for, because the person hides them.
    pub(super) untracked_hidden: bool,
}

/// What is looked at of submodules. No program runs in them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Submodules {
    /// Nothing.
    LeftOut,
    /// Which commit they have checked out.
    Commits,
}

/// One path of the commit or the index.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Tracked {
    pub(super) path: RepoPath,
    /// What the commit has; not told about one that is unmerged.
    pub(super) head: Option<Listed>,
    /// What the index has: in a merge, our side.
    pub(super) index: Option<Listed>,
    /// Whether the index has it as the commit does.
    pub(super) staged: bool,
    pub(super) checkout: InCheckout,
    /// Whether it waits for a merge to be resolved.
    pub(super) unmerged: bool,
}

/// What the checkout has, compared with the index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum InCheckout {
    /// The same; or nothing, where a sparse checkout leaves the path out.
    AsInIndex,
    /// A file with another content or mode.
    Modified,
    /// Nothing, or something of another type.
    Otherwise,
}

impl Uncommitted {
    /// Every path that differs, in order.
    pub(super) fn paths(&self) -> Vec<&RepoPath> {
        let tracked = self.tracked.iter().map(|tracked| &tracked.path);
        let mut paths: Vec<&RepoPath> = tracked.chain(&self.untracked).chain(&self.nested).collect();
        paths.sort();
        paths.dedup();
        paths
    }
}

impl Git {
    /// Compares the checkout at `place`, whose index must be a copy, with the HEAD of the git directory there.
    pub(super) fn uncommitted(
        &self,
        place: Place<'_>,
        settings: &Settings,
        submodules: Submodules,
        patience: Duration,
    ) -> Result<Uncommitted, GitError> {
        // Who hides untracked files has reasons, like a repository that is their home.
        let hidden = matches!(settings.get("status.showuntrackedfiles"), Some("no" | "false"));
        let untracked = if hidden { "--untracked-files=no" } else { "--untracked-files=all" };
        let submodules = match submodules {
            Submodules::LeftOut => "--ignore-submodules=all",
            Submodules::Commits => "--ignore-submodules=dirty",
        };
        let call = Call::new(Verb::Status, place)
            .args(["--porcelain=v2", "-z", "--no-renames", "--no-ahead-behind", submodules, untracked])
            .patience(patience);
        let answer = self.run_unhindered(&call)?;
        let mut found = Uncommitted { untracked_hidden: hidden, ..Uncommitted::default() };
        for line in answer.split(|byte| *byte == 0).filter(|line| !line.is_empty()) {
            found.add(line).ok_or_else(|| unexpected(&call, line))?;
        }
        Ok(found)
    }
}

impl Uncommitted {
    fn add(&mut self, line: &[u8]) -> Option<()> {
        let (kind, rest) = line.split_at_checked(2)?;
        match kind {
            b"1 " => self.tracked.push(ordinary(rest)?),
            b"u " => self.tracked.push(unmerged(rest)?),
            b"? " => match rest.strip_suffix(b"/") {
                Some(directory) => self.nested.push(RepoPath::new(directory).ok()?),
                None => self.untracked.push(RepoPath::new(rest).ok()?),
            },
            _ => return None,
        }
        Some(())
    }
}

/// Copies the index with its time, since entries that are as young as the index are compared by content, and what a
/// split index shares. A checkout without an index has an empty one.
pub(super) fn copy_index(repository: &RepositoryRecord, git_dir: &AbsPath, to: &AbsPath) -> Result<(), GitError> {
    let from = repository.git_dir.join("index");
    let times = match fs::metadata(&from) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        found => found.and_then(|found| found.modified()),
    };
    let copied = times.and_then(|modified| {
        let mut left = LARGEST_INDEX - read::copy(from.as_path(), to.as_path(), LARGEST_INDEX)?;
        fs::File::options().write(true).open(to)?.set_modified(modified)?;
        for entry in fs::read_dir(&repository.git_dir)? {
            let name = entry?.file_name();
            if let Some(name) = name.to_str().filter(|name| name.starts_with("sharedindex.")) {
                // A job may have left anything under such a name. git says so where it misses one that is used.
                let shared = repository.git_dir.join(name);
                left -= read::copy(shared.as_path(), git_dir.join(name).as_path(), left).unwrap_or(0);
            }
        }
        Ok(())
    });
    copied.map_err(GitError::io("copy the index", from.as_path()))
}

/// `<XY> <sub> <mode of HEAD> <of the index> <of the checkout> <object of HEAD> <of the index> <path>`
fn ordinary(line: &[u8]) -> Option<Tracked> {
    let mut words = line.splitn(8, |byte| *byte == b' ');
    let states = words.next()?;
    let facts: Vec<&str> = words.by_ref().take(6).map(std::str::from_utf8).collect::<Result<_, _>>().ok()?;
    let [_, head_mode, index_mode, _, head, index] = facts[..] else { return None };
    Some(Tracked {
        path: RepoPath::new(words.next()?).ok()?,
        head: entry(head_mode, head)?,
        index: entry(index_mode, index)?,
        staged: states.first() != Some(&b'.'),
        checkout: match states.get(1)? {
            b'.' => InCheckout::AsInIndex,
            b'M' => InCheckout::Modified,
            _ => InCheckout::Otherwise,
        },
        unmerged: false,
    })
}

/// `<XY> <sub> <mode of stage 1> <of 2> <of 3> <of the checkout> <object of stage 1> <of 2> <of 3> <path>`
fn unmerged(line: &[u8]) -> Option<Tracked> {
    let mut words = line.splitn(10, |byte| *byte == b' ').skip(1);
    let facts: Vec<&str> = words.by_ref().take(8).map(std::str::from_utf8).collect::<Result<_, _>>().ok()?;
    let [_, _, ours_mode, _, _, _, ours, _] = facts[..] else { return None };
    Some(Tracked {
        path: RepoPath::new(words.next()?).ok()?,
        head: None,
        index: entry(ours_mode, ours)?,
        staged: true,
        checkout: InCheckout::Otherwise,
        unmerged: true,
    })
}

/// An entry; none where the mode says so. One that is only intended to be added has no object yet.
fn entry(mode: &str, object: &str) -> Option<Option<Listed>> {
    if mode == "000000" || object.bytes().all(|digit| digit == b'0') {
        return Some(None);
    }
    let object: ObjectId = object.parse().ok()?;
    Some(Some(Listed { mode: EntryMode::from_octal(mode)?, object }))
}
