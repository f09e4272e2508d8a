//! Contents by id, from a captured result and what it borrows: what previews show and an apply writes.
//!
//! libgit2's object database where it knows the format, opened alone: without a repository there is no configuration to
//! read. `cat-file --batch` for SHA-256.

use std::fmt;
use std::path::Path;
use std::str::FromStr as _;

use git2::{ObjectType, Odb, Oid, Repository};
use pactify_core::{AbsPath, ObjectId};

use super::Git;
use super::command::{Call, Place, Verb, unexpected};
use super::error::GitError;
use crate::hash::Algorithm;

/// The objects of one git directory of ours, and perhaps of another one beyond it.
pub struct Objects {
    git: Git,
    git_dir: AbsPath,
    source: Source,
    algorithm: Algorithm,
    beyond: Option<Box<Objects>>,
}

enum Source {
    Library(Odb<'static>),
    Program,
}

impl fmt::Debug for Objects {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Objects").field("git_dir", &self.git_dir).finish_non_exhaustive()
    }
}

impl Git {
    /// Opens the objects of a captured result; `example` is any of them and tells the format.
    ///
    /// # Errors
    /// When there is no capture at `capture`.
    pub fn objects(&self, capture: &AbsPath, example: &ObjectId) -> Result<Objects, GitError> {
        let source = if example.is_sha256() { Source::Program } else { Source::Library(open(capture)?) };
        let (git, git_dir, algorithm) = (self.clone(), capture.clone(), Algorithm::of(example));
        Ok(Objects { git, git_dir, source, algorithm, beyond: None })
    }
}

impl Objects {
    /// These objects, and where they lack one, those of `other`.
    #[must_use]
    pub fn or(mut self, other: Self) -> Self {
        self.beyond = Some(Box::new(other));
        self
    }

    /// The git directory.
    pub(super) fn git_dir(&self) -> &AbsPath {
        &self.git_dir
    }

    /// The id of a blob of these bytes. Nothing is written.
    pub fn id_of(&self, bytes: &[u8]) -> ObjectId {
        self.algorithm.blob(bytes)
    }

    /// Writes a blob of these bytes, where it is not there yet.
    ///
    /// # Errors
    /// What the file system or git refuses.
    pub fn write(&self, bytes: &[u8]) -> Result<ObjectId, GitError> {
        match &self.source {
            Source::Library(_) => {
                let written = Repository::open_bare(self.git_dir.as_path())
                    .and_then(|repository| repository.odb()?.write(ObjectType::Blob, bytes))
                    .and_then(object_id);
                written.map_err(GitError::objects("write an object", self.git_dir.as_path()))
            }
            Source::Program => {
                let call = Call::new(Verb::HashObject, self.place()).args(["-w", "--no-filters", "--stdin"]);
                let call = call.input(bytes.to_vec());
                let line = self.git.line(&call)?;
                line.parse().map_err(|_| unexpected(&call, line.as_bytes()))
            }
        }
    }

    /// An object's size in bytes.
    ///
    /// # Errors
    /// [`GitError::ObjectsMissing`].
    pub fn size(&self, object: &ObjectId) -> Result<u64, GitError> {
        Ok(self.sizes(&[object])?.into_iter().next().unwrap_or_default())
    }

    /// The sizes of many objects, in their order.
    ///
    /// # Errors
    /// [`GitError::ObjectsMissing`], naming those that are.
    pub fn sizes(&self, objects: &[&ObjectId]) -> Result<Vec<u64>, GitError> {
        match (self.own_sizes(objects), &self.beyond) {
            // Rare, and then few: what was accepted of an earlier result.
            (Err(GitError::ObjectsMissing { .. }), Some(beyond)) => {
                let size = |object: &&ObjectId| match self.own_sizes(&[object]) {
                    Err(GitError::ObjectsMissing { .. }) => beyond.size(object),
                    sizes => Ok(sizes?.into_iter().next().unwrap_or_default()),
                };
                objects.iter().map(size).collect()
            }
            (sizes, _) => sizes,
        }
    }

    fn own_sizes(&self, objects: &[&ObjectId]) -> Result<Vec<u64>, GitError> {
        match &self.source {
            Source::Library(odb) => {
                let header = |object: &ObjectId| oid(object).and_then(|id| odb.read_header(id));
                let size = |object: &&ObjectId| match header(object) {
                    Ok((size, _)) => Ok(size as u64),
                    Err(_) => Err(self.missing(object)),
                };
                objects.iter().map(size).collect()
            }
            Source::Program => self.git.sizes(self.place(), objects),
        }
    }

    /// An object's bytes, if they are at most `limit`.
    ///
    /// # Errors
    /// [`GitError::ObjectTooLarge`], [`GitError::ObjectsMissing`].
    pub fn read(&self, object: &ObjectId, limit: u64) -> Result<Vec<u8>, GitError> {
        match (self.own(object, limit), &self.beyond) {
            (Err(GitError::ObjectsMissing { .. }), Some(beyond)) => beyond.read(object, limit),
            (read, _) => read,
        }
    }

    fn own(&self, object: &ObjectId, limit: u64) -> Result<Vec<u8>, GitError> {
        let size = self.own_sizes(&[object])?.into_iter().next().unwrap_or_default();
        if size > limit {
            return Err(GitError::ObjectTooLarge { object: object.clone(), size, limit });
        }
        match &self.source {
            Source::Library(odb) => {
                let content = oid(object).and_then(|id| odb.read(id)).map_err(|_| self.missing(object))?;
                Ok(content.data().to_vec())
            }
            Source::Program => Ok(self.git.contents(self.place(), &[object])?.pop().unwrap_or_default()),
        }
    }

    fn place(&self) -> Place<'_> {
        Place::Private { git_dir: &self.git_dir, work_tree: None, index: None }
    }

    fn missing(&self, object: &ObjectId) -> GitError {
        GitError::ObjectsMissing { repository: self.git_dir.clone(), missing: vec![object.to_string()] }
    }
}

impl Git {
    /// The contents of many objects, in their order. For few and small ones.
    pub(super) fn contents(&self, place: Place<'_>, objects: &[&ObjectId]) -> Result<Vec<Vec<u8>>, GitError> {
        let contents = self.contents_there(place, objects)?;
        let there = objects.iter().zip(contents).map(|(object, content)| content.ok_or_else(|| missing(place, object)));
        there.collect()
    }

    /// The same; `None` for those that are not there: in a partial clone, outside of a sparse checkout.
    pub(super) fn contents_there(
        &self,
        place: Place<'_>,
        objects: &[&ObjectId],
    ) -> Result<Vec<Option<Vec<u8>>>, GitError> {
        if objects.is_empty() {
            return Ok(Vec::new());
        }
        let call = Call::new(Verb::CatFile, place).args(["--batch"]).input(lines(objects));
        let answer = self.run(&call)?;
        let mut rest = answer.as_slice();
        let mut contents = Vec::with_capacity(objects.len());
        for object in objects {
            let end = rest.iter().position(|byte| *byte == b'\n').ok_or_else(|| unexpected(&call, rest))?;
            if rest[..end].ends_with(b" missing") {
                contents.push(None);
                rest = &rest[end + 1..];
                continue;
            }
            let size = usize::try_from(size(place, object, &rest[..end])?).unwrap_or(usize::MAX);
            let (content, after) = rest[end + 1..]
                .split_at_checked(size)
                .filter(|(_, after)| after.first() == Some(&b'\n'))
                .ok_or_else(|| unexpected(&call, &rest[..end]))?;
            contents.push(Some(content.to_vec()));
            rest = &after[1..];
        }
        Ok(contents)
    }

    pub(super) fn sizes(&self, place: Place<'_>, objects: &[&ObjectId]) -> Result<Vec<u64>, GitError> {
        if objects.is_empty() {
            return Ok(Vec::new());
        }
        let call = Call::new(Verb::CatFile, place).args(["--batch-check"]).input(lines(objects));
        let answer = self.run(&call)?;
        let answers: Vec<&[u8]> = answer.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()).collect();
        if answers.len() != objects.len() {
            return Err(unexpected(&call, &answer));
        }
        objects.iter().zip(answers).map(|(object, line)| size(place, object, line)).collect()
    }

    /// Those of `objects` that are not there.
    pub(super) fn absent(&self, place: Place<'_>, objects: &[&ObjectId]) -> Result<Vec<String>, GitError> {
        let call = Call::new(Verb::CatFile, place).args(["--batch-check"]).input(lines(objects));
        let answer = String::from_utf8_lossy(&self.run(&call)?).into_owned();
        Ok(answer.lines().filter_map(|line| line.strip_suffix(" missing")).map(str::to_owned).collect())
    }
}

/// Opens the objects of `git_dir` for reading, those it borrows included.
pub(super) fn open(git_dir: &AbsPath) -> Result<Odb<'static>, GitError> {
    let objects = git_dir.join("objects");
    let refused = || GitError::objects("open the objects", objects.as_path());
    let odb = Odb::new().map_err(refused())?;
    let text = objects.as_path().to_str();
    let text = text.ok_or_else(|| refused()(git2::Error::from_str("its path is not UTF-8")))?;
    if !Path::new(text).is_dir() {
        return Err(refused()(git2::Error::from_str("there is no such directory")));
    }
    odb.add_disk_alternate(text).map_err(refused())?;
    Ok(odb)
}

pub(super) fn oid(object: &ObjectId) -> Result<Oid, git2::Error> {
    Oid::from_str(object.as_str())
}

pub(super) fn object_id(oid: Oid) -> Result<ObjectId, git2::Error> {
    ObjectId::from_str(&oid.to_string()).map_err(|error| git2::Error::from_str(&error.to_string()))
}

fn lines(objects: &[&ObjectId]) -> Vec<u8> {
    objects.iter().flat_map(|object| [object.as_str().as_bytes(), b"\n"].concat()).collect()
}

/// `<object> <type> <size>`, or `<object> missing`.
fn size(place: Place<'_>, object: &ObjectId, line: &[u8]) -> Result<u64, GitError> {
    let text = String::from_utf8_lossy(line);
    text.rsplit_once(' ').and_then(|(_, size)| size.parse().ok()).ok_or_else(|| missing(place, object))
}

fn missing(place: Place<'_>, object: &ObjectId) -> GitError {
    let repository = match place {
        Place::Folder(path) | Place::Private { git_dir: path, .. } => path.clone(),
        Place::Person(record) => record.common_dir.clone(),
    };
    GitError::ObjectsMissing { repository, missing: vec![object.to_string()] }
}
