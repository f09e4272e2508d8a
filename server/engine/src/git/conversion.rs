//! The place where git converts contents between what it stores and what a checkout holds: line endings, `ident`,
//! encodings.
//!
//! git itself converts, under the base's attributes and the person's settings of the job's creation, in a directory of
//! ours ([`Stage`]): the base's `.gitattributes` are written there, the files concerned are laid beside them, and an
//! index of the base's entries tells git which files had CRLF before. No filter is configured there, so none can run;
//! attributes that the job or the person has written since have no part in it.
//!
//! What a capture does with it is in [`super::capture`], what an apply does in [`super::checkout_form`].

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;

use pactify_core::{AbsPath, ObjectId, RepoPath};

use super::Git;
use super::command::{Call, Place, Verb, unexpected};
use super::config::{Rules, create_directory, create_file};
use super::error::GitError;
use super::listing::{Listed, Listing};
use super::prepare::{POPULATE, remove};

/// The attributes that make git convert.
const ATTRIBUTES: &[&str] = &["text", "crlf", "eol", "ident", "working-tree-encoding"];

/// A directory with the base's attributes, next to which git converts. Removed when it is dropped.
#[derive(Debug)]
pub(super) struct Stage {
    git: Git,
    git_dir: AbsPath,
    /// Everything of it.
    root: AbsPath,
    /// What stands for a checkout.
    directory: AbsPath,
    index: AbsPath,
    /// Whether files without attributes are converted too.
    all: bool,
    /// Whether files can be in Git LFS.
    lfs: bool,
}

/// What git leaves of the contents it converts for storing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Keep {
    /// The objects, in the stage's git directory.
    Objects,
    /// Their ids alone.
    Ids,
}

impl Stage {
    /// Makes the stage in a git directory of ours; `None` where git converts nothing. `attributes` lists the base's
    /// `.gitattributes`; other entries in it do not matter.
    pub(super) fn open(
        git: &Git,
        git_dir: &AbsPath,
        attributes: &Listing,
        rules: &Rules,
    ) -> Result<Option<Self>, GitError> {
        let setting = rules.settings.get("core.autocrlf").map(|value| value.to_ascii_lowercase());
        let all = setting.is_some_and(|value| matches!(value.as_str(), "true" | "yes" | "on" | "1" | "input"));
        let attributes: Vec<_> = attributes.files_called(b".gitattributes").collect();
        let own = !rules.global_attributes.trim().is_empty() || !rules.info_attributes.trim().is_empty();
        if !all && !own && attributes.is_empty() {
            return Ok(None);
        }
        let root = git_dir.join("stage");
        // One that a dying process left. Whoever converts for a job holds its lock.
        remove(&root);
        create_directory(&root)?;
        let (directory, index) = (root.join("tree"), root.join("index"));
        let mut stage = Self { git: git.clone(), git_dir: git_dir.clone(), root, directory, index, all, lfs: false };
        create_directory(&stage.directory)?;
        let place = Place::Private { git_dir, work_tree: None, index: None };
        let objects: Vec<&ObjectId> = attributes.iter().map(|(_, entry)| &entry.object).collect();
        let own = [&rules.global_attributes, &rules.info_attributes];
        stage.lfs = own.iter().any(|text| mentions_lfs(text.as_bytes()));
        for ((path, _), text) in attributes.iter().zip(git.contents_there(place, &objects)?) {
            let Some(text) = text else { continue };
            stage.lfs |= mentions_lfs(&text);
            stage.make_parents(path).and_then(|()| create_file(&stage.at(path), &text))?;
        }
        Ok(Some(stage))
    }

    /// Which of `paths` git would convert.
    pub(super) fn affects<'p>(
        &self,
        paths: impl Iterator<Item = &'p RepoPath>,
    ) -> Result<BTreeSet<RepoPath>, GitError> {
        if self.all {
            return Ok(paths.cloned().collect());
        }
        self.git.with_attributes(self.place(), ATTRIBUTES, paths)
    }

    /// Which of `paths` are in Git LFS: nothing converts them, and a checkout holds contents where pointers are stored.
    pub(super) fn in_lfs<'p>(&self, paths: impl Iterator<Item = &'p RepoPath>) -> Result<BTreeSet<RepoPath>, GitError> {
        if !self.lfs {
            return Ok(BTreeSet::new());
        }
        self.git.in_lfs(self.place(), paths)
    }

    /// Which of `paths` have one of `attributes` with a value that is selected.
    pub(super) fn select<'p>(
        &self,
        attributes: &[&str],
        paths: impl Iterator<Item = &'p RepoPath>,
        select: impl Fn(&[u8], &[u8]) -> bool,
    ) -> Result<BTreeSet<RepoPath>, GitError> {
        self.git.select_by_attributes(self.place(), attributes, paths, select)
    }

    /// Where a file at `path` is laid for converting. `None` where the base's attributes are in the way: for a
    /// `.gitattributes`, and for a file where a directory with one was. Such files are converted apart.
    pub(super) fn free(&self, path: &RepoPath) -> Option<AbsPath> {
        let to = self.at(path);
        let free = std::fs::symlink_metadata(&to).is_err() && self.make_parents(path).is_ok();
        free.then_some(to)
    }

    /// Where the file at `path` lies.
    pub(super) fn at(&self, path: &RepoPath) -> AbsPath {
        below(&self.directory, path)
    }

    /// A new directory that goes with the stage.
    pub(super) fn aside(&self, name: &str) -> Result<AbsPath, GitError> {
        let directory = self.root.join(name);
        create_directory(&directory).map(|()| directory)
    }

    /// Lets git store the files laid at `paths`, whose base entries are `base`'s. Those that it cannot convert are
    /// missing from the answer.
    pub(super) fn store<'b>(
        &self,
        paths: &[&RepoPath],
        base: impl Fn(&RepoPath) -> Option<&'b Listed>,
        keep: Keep,
    ) -> Result<BTreeMap<RepoPath, ObjectId>, GitError> {
        if paths.is_empty() {
            return Ok(BTreeMap::new());
        }
        self.fill_index(paths.iter().filter_map(|path| Some((*path, base(path)?))))?;
        self.add_to_index(paths, keep)?;
        let wanted: BTreeSet<&RepoPath> = paths.iter().copied().collect();
        let call = Call::new(Verb::LsFiles, self.place()).args(["--stage", "-z"]);
        let answer = self.git.run(&call)?;
        let mut stored = BTreeMap::new();
        for line in answer.split(|byte| *byte == 0).filter(|line| !line.is_empty()) {
            let (path, object) = parse(line).ok_or_else(|| unexpected(&call, line))?;
            if wanted.contains(&path) {
                stored.insert(path, object);
            }
        }
        Ok(stored)
    }

    /// Stores one file that is not laid in the stage, as if it had no base entry; `None` when git cannot convert it.
    pub(super) fn store_apart(
        &self,
        path: &RepoPath,
        content: &[u8],
        keep: Keep,
    ) -> Result<Option<ObjectId>, GitError> {
        self.hash(&["--path".as_ref(), OsStr::from_bytes(path.as_bytes())], content, keep)
    }

    /// Stores `content` as it is.
    pub(super) fn store_verbatim(&self, content: &[u8], keep: Keep) -> Result<Option<ObjectId>, GitError> {
        self.hash(&["--no-filters".as_ref()], content, keep)
    }

    /// Writes stored contents as a checkout would hold them: below `into`, or in the stage itself, where their places
    /// must be free. The base's attributes decide.
    pub(super) fn check_out<'e>(
        &self,
        entries: impl Iterator<Item = (&'e RepoPath, &'e Listed)>,
        into: Option<&AbsPath>,
    ) -> Result<(), GitError> {
        self.fill_index(entries)?;
        let call = Call::new(Verb::CheckoutIndex, self.place()).args(["--all", "--quiet"]).patience(POPULATE);
        let call = match into {
            None => call,
            Some(directory) => {
                let mut prefix = std::ffi::OsString::from("--prefix=");
                prefix.extend([directory.as_path().as_os_str(), "/".as_ref()]);
                call.args([prefix])
            }
        };
        self.git.run(&call).map(drop)
    }

    /// What a checkout would hold at `path` for the stored `object`.
    pub(super) fn check_out_apart(&self, path: &RepoPath, object: &ObjectId) -> Result<Vec<u8>, GitError> {
        let mut named = std::ffi::OsString::from("--path=");
        named.push(OsStr::from_bytes(path.as_bytes()));
        let call = Call::new(Verb::CatFile, self.place()).args(["--filters".as_ref(), named.as_os_str()]);
        self.git.run(&call.args([object.as_str()]))
    }

    /// The bytes of an object of the stage's git directory.
    pub(super) fn read(&self, object: &ObjectId) -> Result<Vec<u8>, GitError> {
        let place = Place::Private { git_dir: &self.git_dir, work_tree: None, index: None };
        Ok(self.git.contents(place, &[object])?.pop().unwrap_or_default())
    }

    fn hash(&self, how: &[&OsStr], content: &[u8], keep: Keep) -> Result<Option<ObjectId>, GitError> {
        let write = (keep == Keep::Objects).then_some("-w");
        let call = Call::new(Verb::HashObject, self.place()).args(write).args(["--stdin"]).args(how);
        let call = call.input(content.to_vec());
        let Ok(answer) = self.git.try_run(&call)? else { return Ok(None) };
        let text = String::from_utf8_lossy(&answer).trim_end().to_owned();
        text.parse().map(Some).map_err(|_| unexpected(&call, text.as_bytes()))
    }

    /// Makes an index of `entries` alone.
    fn fill_index<'e>(&self, entries: impl Iterator<Item = (&'e RepoPath, &'e Listed)>) -> Result<(), GitError> {
        remove(&self.index);
        let line = |(path, entry): (&RepoPath, &Listed)| {
            let facts = format!("{} {}\t", entry.mode.octal(), entry.object);
            [facts.as_bytes(), path.as_bytes(), b"\0"].concat()
        };
        let call = Call::new(Verb::UpdateIndex, self.place()).args(["-z", "--index-info"]);
        self.git.run(&call.input(entries.flat_map(line).collect())).map(drop)
    }

    /// Adds laid files to the index. One that git refuses makes it refuse all, so the list is halved until the culprits
    /// are alone; those are taken out of the index.
    fn add_to_index(&self, paths: &[&RepoPath], keep: Keep) -> Result<(), GitError> {
        let input = paths.iter().flat_map(|path| [path.as_bytes(), b"\0"].concat()).collect();
        let call = Call::new(Verb::UpdateIndex, self.place()).patience(POPULATE).input(input);
        let call = call.args(["--add", "--replace"]).args((keep == Keep::Ids).then_some("--info-only"));
        match (self.git.try_run(&call.args(["-z", "--stdin"]))?, paths) {
            (Ok(_), _) => Ok(()),
            (Err(_), [culprit]) => {
                let input = [culprit.as_bytes(), b"\0"].concat();
                let call = Call::new(Verb::UpdateIndex, self.place()).input(input);
                self.git.run(&call.args(["--force-remove", "-z", "--stdin"])).map(drop)
            }
            (Err(_), many) => {
                let (first, second) = many.split_at(many.len() / 2);
                self.add_to_index(first, keep)?;
                self.add_to_index(second, keep)
            }
        }
    }

    fn make_parents(&self, path: &RepoPath) -> Result<(), GitError> {
        let Some(parent) = path.parent() else { return Ok(()) };
        let parent = self.at(&parent);
        std::fs::create_dir_all(&parent).map_err(GitError::io("create the directory", parent.as_path()))
    }

    fn place(&self) -> Place<'_> {
        Place::Private { git_dir: &self.git_dir, work_tree: Some(&self.directory), index: Some(&self.index) }
    }
}

impl Git {
    /// Which of `paths` have one of `attributes` at `place`.
    pub(super) fn with_attributes<'p>(
        &self,
        place: Place<'_>,
        attributes: &[&str],
        paths: impl Iterator<Item = &'p RepoPath>,
    ) -> Result<BTreeSet<RepoPath>, GitError> {
        self.select_by_attributes(place, attributes, paths, |_, _| true)
    }

    /// Which of `paths` are in Git LFS at `place`.
    pub(super) fn in_lfs<'p>(
        &self,
        place: Place<'_>,
        paths: impl Iterator<Item = &'p RepoPath>,
    ) -> Result<BTreeSet<RepoPath>, GitError> {
        self.select_by_attributes(place, &["filter"], paths, |_, value| value == b"lfs")
    }

    /// Whether anything can be in Git LFS: whether any attributes of a tree or of the person say `filter=lfs`.
    pub(super) fn mentions_lfs(&self, place: Place<'_>, attributes: &Listing, rules: &Rules) -> Result<bool, GitError> {
        let objects: Vec<_> = attributes.files_called(b".gitattributes").map(|(_, entry)| &entry.object).collect();
        let texts = self.contents_there(place, &objects)?;
        let own = [&rules.global_attributes, &rules.info_attributes];
        Ok(own.iter().any(|text| mentions_lfs(text.as_bytes()))
            || texts.iter().flatten().any(|text| mentions_lfs(text)))
    }

    /// Which of `paths` have one of `attributes` with a value that is selected at `place`.
    fn select_by_attributes<'p>(
        &self,
        place: Place<'_>,
        attributes: &[&str],
        paths: impl Iterator<Item = &'p RepoPath>,
        select: impl Fn(&[u8], &[u8]) -> bool,
    ) -> Result<BTreeSet<RepoPath>, GitError> {
        let input: Vec<u8> = paths.flat_map(|path| [path.as_bytes(), b"\0"].concat()).collect();
        if input.is_empty() {
            return Ok(BTreeSet::new());
        }
        let call = Call::new(Verb::CheckAttr, place).args(["-z", "--stdin"]).args(attributes).input(input);
        let answer = self.run(&call)?;
        let mut fields = answer.split(|byte| *byte == 0);
        let mut found = BTreeSet::new();
        while let (Some(path), Some(attribute), Some(value)) = (fields.next(), fields.next(), fields.next()) {
            if !matches!(value, b"unspecified" | b"unset") && select(attribute, value) {
                found.insert(RepoPath::new(path).map_err(|_| unexpected(&call, path))?);
            }
        }
        Ok(found)
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        remove(&self.root);
    }
}

/// Whether attributes put anything into Git LFS.
fn mentions_lfs(attributes: &[u8]) -> bool {
    const WORDS: &[u8] = b"filter=lfs";
    attributes.windows(WORDS.len()).any(|window| window == WORDS)
}

/// The place of `path` below `directory`.
pub(super) fn below(directory: &AbsPath, path: &RepoPath) -> AbsPath {
    let below = directory.as_path().join(OsStr::from_bytes(path.as_bytes()));
    AbsPath::new(below).unwrap_or_else(|_| directory.clone())
}

/// `<mode> <object> <stage>\t<path>`
fn parse(line: &[u8]) -> Option<(RepoPath, ObjectId)> {
    let tab = line.iter().position(|byte| *byte == b'\t')?;
    let object = std::str::from_utf8(&line[..tab]).ok()?.split(' ').nth(1)?.parse().ok()?;
    Some((RepoPath::new(&line[tab + 1..]).ok()?, object))
}
