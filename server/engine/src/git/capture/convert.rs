//! Contents that git stores in another form than the checkout has: line endings, `ident`, encodings.
//!
//! git itself converts, under the base's attributes and the person's settings of the job's creation, in a directory of
//! ours: the base's `.gitattributes` are written there, affected files are copied beside them, and an index of the
//! base tells git which files had CRLF before. No filter is configured there, so none can run. A file that git cannot
//! convert (text that is not in its declared encoding) is stored as it is.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Read as _;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt as _;

use pactify_core::change::EntryMode;
use pactify_core::job::Base;
use pactify_core::{AbsPath, ObjectId, RepoPath};

use super::entry::Candidate;
use super::store::{Trouble, copy_exactly};
use super::{Outcome, remove};
use crate::git::Git;
use crate::git::command::{Call, Place, Verb, unexpected};
use crate::git::config::{Rules, create_directory, create_file};
use crate::git::error::GitError;
use crate::git::listing::{Listed, Listing};
use crate::git::prepare::POPULATE;

/// The attributes that make git convert.
const ATTRIBUTES: &[&str] = &["text", "crlf", "eol", "ident", "working-tree-encoding"];

/// The place where git converts; `None` where nothing could.
pub(super) struct Converter<'a> {
    git: &'a Git,
    capture: &'a AbsPath,
    base: &'a Base,
    stage: Option<Stage>,
}

struct Stage {
    directory: AbsPath,
    index: AbsPath,
    /// Whether files without attributes are converted too.
    all: bool,
}

/// Stored entries, and the files that could not be read with the reason.
type Converted = (Vec<Outcome>, Vec<(RepoPath, String)>);

impl<'a> Converter<'a> {
    pub(super) fn open(
        git: &'a Git,
        capture: &'a AbsPath,
        base: &'a Base,
        listing: &Listing,
        rules: &Rules,
    ) -> Result<Self, GitError> {
        let setting = rules.settings.get("core.autocrlf").map(|value| value.to_ascii_lowercase());
        let all = setting.is_some_and(|value| matches!(value.as_str(), "true" | "yes" | "on" | "1" | "input"));
        let attributes: Vec<_> = listing.files_called(b".gitattributes").collect();
        let own = !rules.global_attributes.trim().is_empty() || !rules.info_attributes.trim().is_empty();
        let stage = if all || own || !attributes.is_empty() {
            let (directory, index) = (capture.join("stage"), capture.join("stage.index"));
            create_directory(&directory)?;
            let place = Place::Private { git_dir: capture, work_tree: None, index: None };
            let objects: Vec<&ObjectId> = attributes.iter().map(|(_, entry)| &entry.object).collect();
            for ((path, _), text) in attributes.iter().zip(git.contents(place, &objects)?) {
                make_parents(&directory, path).and_then(|()| create_file(&below(&directory, path), &text))?;
            }
            Some(Stage { directory, index, all })
        } else {
            None
        };
        Ok(Self { git, capture, base, stage })
    }

    /// Which of `paths` git would convert.
    pub(super) fn affects<'p>(
        &self,
        paths: impl Iterator<Item = &'p RepoPath>,
    ) -> Result<BTreeSet<RepoPath>, GitError> {
        let Some(stage) = &self.stage else { return Ok(BTreeSet::new()) };
        if stage.all {
            return Ok(paths.cloned().collect());
        }
        let input: Vec<u8> = paths.flat_map(|path| [path.as_bytes(), b"\0"].concat()).collect();
        if input.is_empty() {
            return Ok(BTreeSet::new());
        }
        let call = Call::new(Verb::CheckAttr, self.place(stage)).args(["-z", "--stdin"]).args(ATTRIBUTES).input(input);
        let answer = self.git.run(&call)?;
        let mut fields = answer.split(|byte| *byte == 0);
        let mut affected = BTreeSet::new();
        while let (Some(path), Some(_), Some(value)) = (fields.next(), fields.next(), fields.next()) {
            if !matches!(value, b"unspecified" | b"unset") {
                affected.insert(RepoPath::new(path).map_err(|_| unexpected(&call, path))?);
            }
        }
        Ok(affected)
    }

    /// Stores the contents of `candidates` as git would, and tells their entries.
    pub(super) fn convert(
        self,
        candidates: &[Candidate],
        root: &OwnedFd,
        mode: impl Fn(&Candidate) -> EntryMode,
    ) -> Result<Converted, GitError> {
        let Some(stage) = &self.stage else { return Ok(Converted::default()) };
        let mut outcomes = Vec::new();
        let mut troubles = Vec::new();
        let mut staged = Vec::new();
        let mut apart = Vec::new();
        for candidate in candidates {
            match self.copy(stage, candidate, root) {
                Ok(true) => staged.push(candidate),
                Ok(false) => apart.push(candidate),
                Err(Trouble::Theirs(why)) => troubles.push((candidate.path.clone(), why)),
                Err(Trouble::Ours(error)) => return Err(error),
            }
        }
        let objects = self.store_staged(stage, &staged)?;
        for candidate in staged {
            match objects.get(&candidate.path) {
                Some(object) => outcomes.push(entry(candidate, mode(candidate), object.clone())),
                None => apart.push(candidate),
            }
        }
        for candidate in apart {
            match self.store_apart(stage, candidate, root) {
                Ok(object) => outcomes.push(entry(candidate, mode(candidate), object)),
                Err(Trouble::Theirs(why)) => troubles.push((candidate.path.clone(), why)),
                Err(Trouble::Ours(error)) => return Err(error),
            }
        }
        remove(&stage.directory);
        remove(&stage.index);
        Ok((outcomes, troubles))
    }

    /// Copies a file to its path in the stage. False where the base's attributes are in the way: for a
    /// `.gitattributes`, and for a file where a directory with one was.
    fn copy(&self, stage: &Stage, candidate: &Candidate, root: &OwnedFd) -> Result<bool, Trouble> {
        let to = below(&stage.directory, &candidate.path);
        if std::fs::symlink_metadata(&to).is_ok() || make_parents(&stage.directory, &candidate.path).is_err() {
            return Ok(false);
        }
        copy_exactly(&to, candidate.size, candidate.open(root).map_err(Trouble::theirs)?)?;
        Ok(true)
    }

    /// Lets git store the copies; those that it cannot convert are missing from the answer.
    fn store_staged(&self, stage: &Stage, staged: &[&Candidate]) -> Result<BTreeMap<RepoPath, ObjectId>, GitError> {
        if staged.is_empty() {
            return Ok(BTreeMap::new());
        }
        let place = self.place(stage);
        self.git.run(&Call::new(Verb::ReadTree, place).args([self.base.tree.as_str()]))?;
        self.add_to_index(place, staged)?;
        let wanted: BTreeSet<&RepoPath> = staged.iter().map(|candidate| &candidate.path).collect();
        let call = Call::new(Verb::LsFiles, place).args(["--stage", "-z"]);
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

    /// Adds copies to the index. One that git refuses makes it refuse all, so the list is halved until the culprits are
    /// alone; those are taken out of the index.
    fn add_to_index(&self, place: Place<'_>, staged: &[&Candidate]) -> Result<(), GitError> {
        let input = staged.iter().flat_map(|candidate| [candidate.path.as_bytes(), b"\0"].concat()).collect();
        let call = Call::new(Verb::UpdateIndex, place).patience(POPULATE).input(input);
        match (self.git.try_run(&call.args(["--add", "--replace", "-z", "--stdin"]))?, staged) {
            (Ok(_), _) => Ok(()),
            (Err(_), [culprit]) => {
                let input = [culprit.path.as_bytes(), b"\0"].concat();
                let call = Call::new(Verb::UpdateIndex, place).input(input);
                self.git.run(&call.args(["--force-remove", "-z", "--stdin"])).map(drop)
            }
            (Err(_), many) => {
                let (first, second) = many.split_at(many.len() / 2);
                self.add_to_index(place, first)?;
                self.add_to_index(place, second)
            }
        }
    }

    /// Stores one file outside the stage, converted if git can.
    fn store_apart(&self, stage: &Stage, candidate: &Candidate, root: &OwnedFd) -> Result<ObjectId, Trouble> {
        let mut content = Vec::new();
        let file = candidate.open(root).map_err(Trouble::theirs)?;
        file.take(candidate.size).read_to_end(&mut content).map_err(Trouble::theirs)?;
        let path = std::ffi::OsStr::from_bytes(candidate.path.as_bytes());
        let call = |how: &[&std::ffi::OsStr]| {
            Call::new(Verb::HashObject, self.place(stage)).args(["-w", "--stdin"]).args(how).input(content.clone())
        };
        let converting = [std::ffi::OsStr::new("--path"), path];
        let store = |call: Call<'_>| match self.git.try_run(&call)? {
            Err(_) => Ok(None),
            Ok(answer) => {
                let text = String::from_utf8_lossy(&answer).trim_end().to_owned();
                text.parse::<ObjectId>().map(Some).map_err(|_| unexpected(&call, text.as_bytes()))
            }
        };
        let stored = match store(call(&converting)).map_err(Trouble::Ours)? {
            None => store(call(&["--no-filters".as_ref()])).map_err(Trouble::Ours)?,
            stored => stored,
        };
        stored.ok_or_else(|| Trouble::Theirs("git cannot store it".to_owned()))
    }

    fn place<'p>(&'p self, stage: &'p Stage) -> Place<'p> {
        Place::Private { git_dir: self.capture, work_tree: Some(&stage.directory), index: Some(&stage.index) }
    }
}

fn entry(candidate: &Candidate, mode: EntryMode, object: ObjectId) -> Outcome {
    (candidate.path.clone(), Some(Listed { mode, object }))
}

fn below(directory: &AbsPath, path: &RepoPath) -> AbsPath {
    let below = directory.as_path().join(std::ffi::OsStr::from_bytes(path.as_bytes()));
    AbsPath::new(below).unwrap_or_else(|_| directory.clone())
}

fn make_parents(directory: &AbsPath, path: &RepoPath) -> Result<(), GitError> {
    let Some(parent) = path.parent() else { return Ok(()) };
    let parent = below(directory, &parent);
    std::fs::create_dir_all(&parent).map_err(GitError::io("create the directory", parent.as_path()))
}

/// `<mode> <object> <stage>\t<path>`
fn parse(line: &[u8]) -> Option<(RepoPath, ObjectId)> {
    let tab = line.iter().position(|byte| *byte == b'\t')?;
    let object = std::str::from_utf8(&line[..tab]).ok()?.split(' ').nth(1)?.parse().ok()?;
    Some((RepoPath::new(&line[tab + 1..]).ok()?, object))
}
