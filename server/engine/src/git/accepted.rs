//! What the person has accepted of a job so far, as a tree: the base with every part that was ever applied.
//!
//! It lies in a git directory of ours, `accepted/`, made by the first apply. A capture replaces the one before it; what
//! was accepted from an earlier result must not go with it, so the contents are kept here as well (a second name of the
//! same file where that can be). Whoever writes here holds the job's lock. A job could have written here as well, or
//! have put something in its place: after each attempt a fresh one takes its place ([`Git::renew_accepted`]).

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{self, Read as _};
use std::os::fd::OwnedFd;
use std::path::Path;

use pactify_core::change::{Change, Entry};
use pactify_core::job::{Base, RepositoryRecord};
use pactify_core::{AbsPath, ObjectId, RepoPath};
use rustix::fs::{CWD, Dir, Mode, OFlags, RenameFlags};
use rustix::io::Errno;

use super::capture::{self, Outcome};
use super::command::Place;
use super::config::create_directory;
use super::error::GitError;
use super::listing::Listed;
use super::manifest::Header;
use super::prepare::remove;
use super::{Git, Objects, Places};

/// The store of one job's accepted contents.
#[derive(Debug)]
pub struct Accepted {
    git: Git,
    path: AbsPath,
    objects: Objects,
}

impl Git {
    /// Opens what was accepted of the job of `places`, if there is such a store.
    ///
    /// # Errors
    /// When it is there and cannot be read.
    pub fn accepted(&self, places: &Places, base: &Base) -> Result<Option<Accepted>, GitError> {
        let path = places.accepted();
        if !path.as_path().is_dir() {
            return Ok(None);
        }
        let objects = self.objects(&path, &base.tree)?;
        Ok(Some(Accepted { git: self.clone(), path, objects }))
    }

    /// The same, to add to. As long as nothing was `accepted`, no journal names anything in there, and what an apply
    /// left that did not come to its record may be torn: a fresh one is made.
    ///
    /// # Errors
    /// When it cannot be made.
    pub fn accept(
        &self,
        places: &Places,
        repository: &RepositoryRecord,
        base: &Base,
        accepted: bool,
    ) -> Result<Accepted, GitError> {
        let (path, fresh) = (places.accepted(), places.directory().join("accepted.new"));
        if accepted {
            if let Some(accepted) = self.accepted(places, base)? {
                return Ok(accepted);
            }
        } else {
            remove(&path);
        }
        // One that a dying process left. It is complete only under its own name.
        remove(&fresh);
        capture::create(&fresh, places, repository, base, &Header::read(&places.manifest())?.rules)?;
        std::fs::rename(&fresh, &path).map_err(GitError::io("name", fresh.as_path()))?;
        let objects = self.objects(&path, &base.tree)?;
        Ok(Accepted { git: self.clone(), path, objects })
    }

    /// Puts a fresh store where a job may have been: of what lies there only objects are taken over, whose names vouch
    /// for them, and nothing at all unless something was `accepted`. The job's processes are dead by now.
    ///
    /// # Errors
    /// When it cannot be made; what is there stays.
    pub fn renew_accepted(
        &self,
        places: &Places,
        repository: &RepositoryRecord,
        base: &Base,
        accepted: bool,
    ) -> Result<(), GitError> {
        let (path, fresh) = (places.accepted(), places.directory().join("accepted.new"));
        remove(&fresh);
        if !accepted {
            remove(&path);
            return Ok(());
        }
        capture::create(&fresh, places, repository, base, &Header::read(&places.manifest())?.rules)?;
        copy_loose(&path, &fresh).map_err(GitError::io("take over accepted objects from", path.as_path()))?;
        // What takes the place of the only copy has to outlive a power failure.
        settle(&fresh)?;
        let (old, new) = (path.as_path(), fresh.as_path());
        match rustix::fs::renameat_with(CWD, new, CWD, old, RenameFlags::EXCHANGE) {
            Ok(()) => remove(&fresh),
            Err(Errno::NOENT) => rustix::fs::rename(new, old).map_err(GitError::errno("name", new))?,
            Err(errno) => return Err(GitError::errno("exchange", new)(errno)),
        }
        Ok(())
    }
}

/// Copies the loose objects of one git directory, following no link and waiting for no pipe.
fn copy_loose(from: &AbsPath, to: &AbsPath) -> io::Result<()> {
    let directory = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let object = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let objects = rustix::fs::open(from.as_path(), directory, Mode::empty())
        .and_then(|store| rustix::fs::openat(store, "objects", directory, Mode::empty()));
    // Without a store there is nothing to take over; whoever needs an object says that it is missing.
    let Ok(objects) = objects else { return Ok(()) };
    for first in hex_names(&objects, &[2])? {
        let Ok(folder) = rustix::fs::openat(&objects, &first, directory, Mode::empty()) else { continue };
        let target = to.join("objects").join(&first);
        create_directory(&target).map_err(io::Error::other)?;
        for rest in hex_names(&folder, &[38, 62])? {
            let Ok(file) = rustix::fs::openat(&folder, &rest, object, Mode::empty()).map(File::from) else { continue };
            if file.metadata()?.is_file() {
                let mut copy = File::create_new(target.join(&rest))?;
                io::copy(&mut file.take(capture::MAX_FILE_BYTES), &mut copy)?;
                copy.sync_all()?;
            }
        }
    }
    Ok(())
}

/// The names in a directory that are hexadecimal digits, so many.
fn hex_names(directory: &OwnedFd, lengths: &[usize]) -> io::Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in Dir::read_from(directory)? {
        let entry = entry?;
        let name = entry.file_name().to_bytes();
        if lengths.contains(&name.len()) && name.iter().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f')) {
            names.push(String::from_utf8_lossy(name).into_owned());
        }
    }
    Ok(names)
}

impl Accepted {
    /// The contents.
    pub fn into_objects(self) -> Objects {
        self.objects
    }

    /// The differences between the base and what was accepted.
    ///
    /// # Errors
    /// [`GitError::ObjectsMissing`] when the tree is not here.
    pub fn changes(&self, base: &ObjectId, accepted: &ObjectId) -> Result<Vec<Change>, GitError> {
        let mut changes = self.git.differences(&self.path, base, accepted)?;
        self.git.add_sizes(&self.objects, &mut changes)?;
        Ok(changes)
    }

    /// Writes the tree that is `before` with `entries`, whose contents `capture` holds, or `made` yields; all of it is
    /// on the disk when this returns.
    ///
    /// # Errors
    /// When a content is nowhere, or cannot be written.
    pub fn advance(
        &self,
        before: &ObjectId,
        entries: &BTreeMap<RepoPath, Option<Entry>>,
        capture: &Objects,
        made: impl Fn(&ObjectId) -> Option<Vec<u8>>,
    ) -> Result<ObjectId, GitError> {
        let wanted: BTreeSet<&ObjectId> = entries.values().flatten().map(|entry| &entry.object).collect();
        let mut absent = Vec::new();
        for object in wanted {
            match made(object) {
                Some(bytes) => drop(self.objects.write(&bytes)?),
                None if self.link(capture.git_dir(), object).is_ok() => {}
                None => absent.push(object),
            }
        }
        for object in self.absent(&absent)? {
            self.objects.write(&capture.read(object, capture::MAX_FILE_BYTES)?)?;
        }
        let outcome = |(path, entry): (&RepoPath, &Option<Entry>)| -> Outcome {
            let listed = |entry: &Entry| Listed { mode: entry.mode, object: entry.object.clone() };
            (path.clone(), entry.as_ref().map(listed))
        };
        let outcomes: Vec<Outcome> = entries.iter().map(outcome).collect();
        let tree = self.git.write_tree(&self.path, before, &outcomes)?;
        // The record of an apply will name it.
        settle(&self.path)?;
        Ok(tree)
    }

    /// Gives a loose object of another git directory of ours a second name here.
    fn link(&self, from: &AbsPath, object: &ObjectId) -> rustix::io::Result<()> {
        let (directory, name) = object.as_str().split_at(2);
        let place = |git_dir: &AbsPath| git_dir.join("objects").join(directory).join(name);
        let (from, to) = (place(from), place(&self.path));
        match rustix::fs::link(from.as_path(), to.as_path()) {
            Err(rustix::io::Errno::NOENT) => {
                rustix::fs::mkdir(self.path.join("objects").join(directory).as_path(), Mode::RWXU)?;
                rustix::fs::link(from.as_path(), to.as_path())
            }
            Err(rustix::io::Errno::EXIST) => Ok(()),
            done => done,
        }
    }

    /// Those of `objects` that are neither here nor borrowed.
    fn absent<'o>(&self, objects: &[&'o ObjectId]) -> Result<Vec<&'o ObjectId>, GitError> {
        if objects.is_empty() {
            return Ok(Vec::new());
        }
        let place = Place::Private { git_dir: &self.path, work_tree: None, index: None };
        let absent: BTreeSet<String> = self.git.absent(place, objects)?.into_iter().collect();
        Ok(objects.iter().copied().filter(|object| absent.contains(object.as_str())).collect())
    }
}

/// Waits until all of it is on the disk.
fn settle(store: &AbsPath) -> Result<(), GitError> {
    let path: &Path = store.as_path();
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let open = rustix::fs::open(path, flags, Mode::empty()).map_err(GitError::errno("open", path))?;
    rustix::fs::syncfs(open).map_err(GitError::errno("write to the disk", path))
}
