//! What a job's tree was populated with: one `stat` per file, and the rules of that moment.
//!
//! A capture reads only files whose `stat` differs. A process without privileges can set a file's modification time
//! but not its change time, so an unchanged `stat` is an unchanged file; files written in the very moment of the record
//! are marked to be read anyway. What is not in the manifest was never populated (a sparse checkout), so its absence is
//! no deletion. The manifest lies outside the tree and is read once, after the job's processes are dead.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, BufRead as _};
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt as _;

use pactify_core::job::{Base, Isolation};
use pactify_core::{AbsPath, RepoPath};
use rustix::fs::{AtFlags, Stat};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};

use super::config::{Rules, create_file};
use super::error::GitError;
use super::read::read;

/// The version of the manifest that this build writes.
const FORMAT: u32 = 1;

/// What is remembered beside the files.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Header {
    format: u32,
    pub(super) base: Base,
    pub(super) isolation: Isolation,
    /// The directory below `worktrees/` of the person's repository that registers a linked tree.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) registration: Option<String>,
    /// What the tree's `.git` file holds.
    pub(super) git_file: String,
    /// Where the repository keeps the contents of its LFS files.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) lfs_store: Option<AbsPath>,
    pub(super) rules: Rules,
}

/// The record of a populated tree.
#[derive(Debug)]
pub(super) struct Manifest {
    pub(super) header: Header,
    pub(super) files: BTreeMap<RepoPath, Fingerprint>,
}

/// What a file's `stat` says that changes when the file does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Fingerprint {
    mode: u32,
    inode: u64,
    size: u64,
    modified: i128,
    /// 0 for a file that must be read anyway.
    changed: i128,
}

impl Header {
    pub(super) fn new(base: Base, isolation: Isolation, git_file: String, rules: Rules) -> Self {
        Self { format: FORMAT, base, isolation, registration: None, git_file, lfs_store: None, rules }
    }

    /// Reads the header of the manifest at `path` alone.
    pub(super) fn read(path: &AbsPath) -> Result<Self, GitError> {
        let failed = GitError::io("read", path.as_path());
        let mut line = Vec::new();
        let read = fs::File::open(path).and_then(|file| io::BufReader::new(file).read_until(b'\n', &mut line));
        read.map_err(failed)?;
        let line = line.strip_suffix(b"\n").ok_or_else(|| damaged(path, "it has no header"))?;
        Self::parse(path, line)
    }

    fn parse(path: &AbsPath, line: &[u8]) -> Result<Self, GitError> {
        let header: Self =
            serde_json::from_slice(line).map_err(|error| damaged(path, format!("its header: {error}")))?;
        if header.format != FORMAT {
            return Err(damaged(path, format!("it has format {}, not {FORMAT}", header.format)));
        }
        Ok(header)
    }
}

impl Fingerprint {
    pub(super) fn of(stat: &Stat) -> Self {
        let nanoseconds = |seconds: i64, rest: u64| i128::from(seconds) * 1_000_000_000 + i128::from(rest);
        Self {
            mode: stat.st_mode,
            inode: stat.st_ino,
            size: u64::try_from(stat.st_size).unwrap_or_default(),
            modified: nanoseconds(stat.st_mtime, stat.st_mtime_nsec),
            changed: nanoseconds(stat.st_ctime, stat.st_ctime_nsec),
        }
    }

    /// When the entry last changed in any way, in nanoseconds since 1970.
    pub(super) fn changed(self) -> i128 {
        self.changed
    }

    /// Whether `found` is this very file, unchanged, under whatever name: a rename gives it another change time.
    pub(super) fn is_same_file(&self, found: &Self) -> bool {
        *self == Self { changed: self.changed, ..*found }
    }

    /// Which file it is, while there is a file.
    pub(super) fn inode(self) -> u64 {
        self.inode
    }

    /// As it stands before a file's name in a record.
    pub(super) fn to_words(self) -> String {
        let Self { mode, inode, size, modified, changed } = self;
        format!("{mode:o} {inode} {size} {modified} {changed} ")
    }

    /// A line of a record: [`Self::to_words`], a name, and a zero byte.
    pub(super) fn parse(line: &[u8]) -> Option<(RepoPath, Self)> {
        let mut words = line.strip_suffix(b"\0")?.splitn(6, |byte| *byte == b' ');
        let mut word = || words.next().and_then(|word| std::str::from_utf8(word).ok());
        let mode = u32::from_str_radix(word()?, 8).ok()?;
        let (inode, size) = (word()?.parse().ok()?, word()?.parse().ok()?);
        let (modified, changed) = (word()?.parse().ok()?, word()?.parse().ok()?);
        let name = RepoPath::new(words.next()?).ok()?;
        Some((name, Self { mode, inode, size, modified, changed }))
    }

    /// Whether nothing tells the file from the one recorded here, although a careful change might not show.
    pub(super) fn resembles(&self, found: &Self) -> bool {
        *self == Self { changed: if self.changed == 0 { 0 } else { found.changed }, ..*found }
    }
}

impl Manifest {
    /// Makes the record of `files`, which are all there. `probe` names a file on the same file system that may be made:
    /// its time tells which files are too young for their `stat` to be trusted.
    pub(super) fn record(
        header: Header,
        mut files: BTreeMap<RepoPath, Fingerprint>,
        probe: &AbsPath,
    ) -> Result<Self, GitError> {
        let now = time(probe)?;
        distrust_young(&mut files, now);
        Ok(Self { header, files })
    }

    /// Looks at further files below `tree`, or anew; those that are not there are left out.
    pub(super) fn add<'p>(
        &mut self,
        paths: impl IntoIterator<Item = &'p RepoPath>,
        tree: &OwnedFd,
        probe: &AbsPath,
    ) -> Result<(), GitError> {
        let now = time(probe)?;
        let mut files = look(paths, tree)?;
        distrust_young(&mut files, now);
        self.files.append(&mut files);
        Ok(())
    }

    pub(super) fn write(&self, path: &AbsPath) -> Result<(), GitError> {
        let header = serde_json::to_string(&self.header).map_err(|error| damaged(path, error.to_string()))?;
        let mut text = header.into_bytes();
        text.push(b'\n');
        for (name, file) in &self.files {
            text.extend(file.to_words().into_bytes());
            text.extend(name.as_bytes());
            text.push(0);
        }
        create_file(path, &text)
    }

    pub(super) fn read(path: &AbsPath) -> Result<Self, GitError> {
        Unread::open(path)?.read()
    }
}

/// A manifest whose header alone was understood so far.
pub(super) struct Unread {
    pub(super) header: Header,
    path: AbsPath,
    lines: Vec<u8>,
}

impl Unread {
    pub(super) fn open(path: &AbsPath) -> Result<Self, GitError> {
        let mut text = read(path.as_path()).map_err(GitError::io("read", path.as_path()))?;
        let end = text.iter().position(|byte| *byte == b'\n').ok_or_else(|| damaged(path, "it has no header"))?;
        let lines = text.split_off(end + 1);
        Ok(Self { header: Header::parse(path, &text[..end])?, path: path.clone(), lines })
    }

    pub(super) fn read(&self) -> Result<Manifest, GitError> {
        let lines = self.lines.split_inclusive(|byte| *byte == 0);
        let files =
            lines.map(|line| Fingerprint::parse(line).ok_or_else(|| damaged(&self.path, "a line of it is cut off")));
        // At once: in order, as they are written, that is much quicker than one by one.
        let files = files.collect::<Result<Vec<_>, _>>()?;
        Ok(Manifest { header: self.header.clone(), files: files.into_iter().collect() })
    }
}

/// The file system's time, in nanoseconds.
fn time(probe: &AbsPath) -> Result<i128, GitError> {
    create_file(probe, b"")?;
    let now = fs::metadata(probe).map_err(GitError::io("look at", probe.as_path()))?;
    fs::remove_file(probe).map_err(GitError::io("remove", probe.as_path()))?;
    Ok(i128::from(now.ctime()) * 1_000_000_000 + i128::from(now.ctime_nsec()))
}

fn distrust_young(files: &mut BTreeMap<RepoPath, Fingerprint>, now: i128) {
    for file in files.values_mut().filter(|file| file.changed >= now) {
        file.changed = 0;
    }
}

/// Looks at those of `paths` that are there below `tree`.
pub(super) fn look<'p>(
    paths: impl IntoIterator<Item = &'p RepoPath>,
    tree: &OwnedFd,
) -> Result<BTreeMap<RepoPath, Fingerprint>, GitError> {
    let mut files = BTreeMap::new();
    for path in paths {
        match rustix::fs::statat(tree, path.as_bytes(), AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => drop(files.insert(path.clone(), Fingerprint::of(&stat))),
            Err(Errno::NOENT | Errno::NOTDIR) => {}
            Err(errno) => return Err(GitError::errno("look at", path.display())(errno)),
        }
    }
    Ok(files)
}

fn damaged(path: &AbsPath, why: impl Into<String>) -> GitError {
    GitError::RecordDamaged { path: path.clone(), why: why.into() }
}
