//! A bare git directory of ours that borrows the person's objects, for questions that only git can answer: made where
//! nothing is, never with anything of the person's configuration, and removed with the value.

use std::collections::BTreeMap;

use pactify_core::fingerprint::{RefValue, StashEntry};
use pactify_core::job::RepositoryRecord;
use pactify_core::{AbsPath, ObjectId, RepoPath};

use super::Git;
use super::command::{Call, Place, Verb, unexpected};
use super::config::{Layout, Rules, create_directory, create_file, object_directories};
use super::error::GitError;
use super::prepare::remove;

/// Where such directories may be made: a directory of ours, that exists.
#[derive(Clone, Debug)]
pub struct Scratch(AbsPath);

/// One of them.
struct GitDir(AbsPath);

/// What a stack of reftables holds.
#[derive(Clone, Debug)]
pub struct Tables {
    /// Refs by their full names, `HEAD` included.
    pub refs: Vec<(RepoPath, RefValue)>,
    /// The stash, newest first.
    pub stash: Vec<StashEntry>,
}

impl Scratch {
    /// In `directory`.
    pub fn in_directory(directory: AbsPath) -> Self {
        Self(directory)
    }
}

impl Drop for GitDir {
    fn drop(&mut self) {
        remove(&self.0);
    }
}

impl Git {
    /// By how many commits `new` is ahead of `old`; `None` when it is not built on it, or nothing is known of either.
    ///
    /// # Errors
    /// When the scratch directory cannot be made.
    pub fn ahead(
        &self,
        scratch: &Scratch,
        repository: &RepositoryRecord,
        old: &ObjectId,
        new: &ObjectId,
    ) -> Result<Option<u64>, GitError> {
        let git_dir = scratch_git_dir(scratch, repository, old.is_sha256(), old)?;
        let place = Place::Private { git_dir: &git_dir.0, work_tree: None, index: None };
        let range = format!("{old}...{new}");
        let call = Call::new(Verb::RevList, place).args(["--left-right", "--count", &range, "--"]);
        let Ok(answer) = self.try_run(&call)? else { return Ok(None) };
        let text = String::from_utf8_lossy(&answer);
        let mut counts = text.split_ascii_whitespace().map(str::parse::<u64>);
        match (counts.next(), counts.next()) {
            (Some(Ok(0)), Some(Ok(ahead))) => Ok(Some(ahead)),
            (Some(Ok(_)), Some(Ok(_))) => Ok(None),
            _ => Err(unexpected(&call, &answer)),
        }
    }

    /// A configuration's text with other values for `key`, of which it has `there`; `None` where git cannot edit it.
    /// The text is edited as a file of ours: nothing that it includes or configures has any effect.
    ///
    /// # Errors
    /// When the scratch directory cannot be made.
    pub fn edited_config(
        &self,
        scratch: &Scratch,
        repository: &RepositoryRecord,
        text: &[u8],
        key: &str,
        there: usize,
        values: &[String],
    ) -> Result<Option<Vec<u8>>, GitError> {
        let git_dir = scratch_git_dir(scratch, repository, false, &nothing(false))?;
        let place = Place::Private { git_dir: &git_dir.0, work_tree: None, index: None };
        let file = git_dir.0.join("edited");
        create_file(&file, text)?;
        let path = file.as_path().as_os_str();
        let unset = (there > 0).then(|| vec!["--unset-all".as_ref(), key.as_ref()]);
        let adds = values.iter().map(|value| vec!["--add".as_ref(), key.as_ref(), value.as_ref()]);
        for edit in unset.into_iter().chain(adds) {
            let edit: Vec<&std::ffi::OsStr> = edit;
            let call = Call::new(Verb::Config, place).args(["--file".as_ref(), path]).args(edit);
            if self.try_run(&call)?.is_err() {
                return Ok(None);
            }
        }
        std::fs::read(&file).map(Some).map_err(GitError::io("read", file.as_path()))
    }

    /// What copies of a stack of reftables hold.
    ///
    /// # Errors
    /// When git does not understand them.
    pub fn refs_of_tables(
        &self,
        scratch: &Scratch,
        tables: &[(String, Vec<u8>)],
        repository: &RepositoryRecord,
        sha256: bool,
    ) -> Result<Tables, GitError> {
        let git_dir = scratch_git_dir(scratch, repository, sha256, &nothing(sha256))?;
        let path = &git_dir.0;
        let stack = path.join("reftable");
        create_directory(&stack)?;
        for (name, content) in tables.iter().filter(|(name, _)| !name.contains('/')) {
            create_file(&stack.join(name), content)?;
        }
        let config = path.join("config");
        let text = std::fs::read_to_string(&config).map_err(GitError::io("read", config.as_path()))?;
        for name in ["config", "HEAD"] {
            remove(&path.join(name));
        }
        let storage = "[core]\n\trepositoryformatversion = 1\n[extensions]\n\trefstorage = reftable\n";
        create_file(&config, &[text.as_bytes(), storage.as_bytes()].concat())?;
        create_file(&path.join("HEAD"), b"ref: refs/heads/.invalid\n")?;

        let place = Place::Private { git_dir: path, work_tree: None, index: None };
        let format = "--format=%(refname)%00%(objectname)%00%(symref)";
        let call = Call::new(Verb::ForEachRef, place).args(["--include-root-refs", format]);
        let answer = self.run(&call)?;
        let lines = answer.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
        let refs = lines.map(|line| table_ref(line).ok_or_else(|| unexpected(&call, line)));
        let mut refs = refs.collect::<Result<Vec<_>, _>>()?;
        // A HEAD whose branch has no commit yet is not listed.
        let head = Call::new(Verb::SymbolicRef, place).args(["--quiet", "HEAD"]);
        if let Ok(target) = self.try_run(&head)? {
            let target = RefValue::Symbolic(String::from_utf8_lossy(&target).trim_end().to_owned());
            refs.retain(|(name, _)| name.as_bytes() != b"HEAD");
            refs.extend(RepoPath::new("HEAD").ok().map(|name| (name, target)));
        }
        let stash = if refs.iter().any(|(name, _)| name.as_bytes() == b"refs/stash") {
            let arguments = ["show", "--format=%H%x00%gs", "refs/stash", "--"];
            let call = Call::new(Verb::Reflog, place).args(arguments);
            let answer = self.run(&call)?;
            let lines = answer.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
            lines.map(|line| table_stash(line).ok_or_else(|| unexpected(&call, line))).collect::<Result<_, _>>()?
        } else {
            Vec::new()
        };
        Ok(Tables { refs, stash })
    }
}

/// The id of no object, where a HEAD has to be.
fn nothing(sha256: bool) -> ObjectId {
    "0".repeat(if sha256 { 64 } else { 40 }).parse().expect("zeros are an object id")
}

fn table_ref(line: &[u8]) -> Option<(RepoPath, RefValue)> {
    let mut words = line.split(|byte| *byte == 0);
    let name = RepoPath::new(words.next()?).ok()?;
    let id = std::str::from_utf8(words.next()?).ok()?;
    let target = words.next()?;
    let value = if target.is_empty() {
        RefValue::Object(id.parse().ok()?)
    } else {
        RefValue::Symbolic(String::from_utf8_lossy(target).into_owned())
    };
    Some((name, value))
}

fn table_stash(line: &[u8]) -> Option<StashEntry> {
    let mut words = line.splitn(2, |byte| *byte == 0);
    let commit = std::str::from_utf8(words.next()?).ok()?.parse().ok()?;
    Some(StashEntry { commit, message: String::from_utf8_lossy(words.next()?).into_owned() })
}

fn scratch_git_dir(
    scratch: &Scratch,
    repository: &RepositoryRecord,
    sha256: bool,
    head: &ObjectId,
) -> Result<GitDir, GitError> {
    let path = scratch.0.join("scratch.git");
    remove(&path);
    let git_dir = GitDir(path);
    let alternates = object_directories(&repository.common_dir)?;
    let (settings, rules) = (BTreeMap::new(), Rules::default());
    let layout =
        Layout { path: &git_dir.0, settings, rules: &rules, sha256, checkout: false, head, alternates: &alternates };
    layout.create()?;
    Ok(git_dir)
}
