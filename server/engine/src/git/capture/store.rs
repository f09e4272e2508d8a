//! Puts the contents of candidates into the capture's objects.
//!
//! What git stores as it is goes straight into libgit2's object database, in pieces, so that a large file costs no
//! memory; for SHA-256 it is copied into the capture first and hashed by git there. What git would convert goes through
//! [`super::convert`]. A file that cannot be read, or is too large, keeps the base's entry and is noted.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{self, Read, Write as _};
use std::os::fd::{AsRawFd as _, OwnedFd};

use git2::{ObjectType, Oid, Repository};
use pactify_core::change::{EntryMode, Note};
use pactify_core::job::Base;
use pactify_core::lfs::Pointer;
use pactify_core::{AbsPath, ObjectId, RepoPath};

use super::entry::Candidate;
use super::walk::Findings;
use super::{MAX_FILE_BYTES, MAX_TOTAL_BYTES, Outcome, convert, file_mode, unreadable};
use crate::git::Git;
use crate::git::command::{Call, Place, Verb, unexpected};
use crate::git::config::{Rules, create_directory, create_file};
use crate::git::error::GitError;
use crate::git::lfs;
use crate::git::listing::{Listed, Listing};
use crate::git::objects::{object_id, oid};
use crate::git::prepare::{POPULATE, remove};
use crate::hash::Algorithm;

pub(in crate::git) struct Store<'a> {
    git: &'a Git,
    capture: &'a AbsPath,
    root: &'a OwnedFd,
    listing: &'a Listing,
    rules: &'a Rules,
    sink: Sink,
    taken: u64,
}

/// Where bytes become objects.
enum Sink {
    Library(Repository),
    /// Copied to numbered files in this directory, then hashed together.
    Program {
        directory: AbsPath,
        waiting: Vec<(RepoPath, EntryMode)>,
    },
}

impl<'a> Store<'a> {
    pub(in crate::git) fn open(
        git: &'a Git,
        capture: &'a AbsPath,
        root: &'a OwnedFd,
        base: &'a Base,
        listing: &'a Listing,
        rules: &'a Rules,
    ) -> Result<Self, GitError> {
        let sink = if base.tree.is_sha256() {
            let directory = capture.join("raw");
            create_directory(&directory)?;
            Sink::Program { directory, waiting: Vec::new() }
        } else {
            let refused = GitError::objects("open the capture", capture.as_path());
            Sink::Library(Repository::open_bare(capture).map_err(refused)?)
        };
        Ok(Self { git, capture, root, listing, rules, sink, taken: 0 })
    }

    /// Stores every candidate that can be, and says what the result has at its path.
    pub(in crate::git) fn take(mut self, findings: &mut Findings) -> Result<Vec<Outcome>, GitError> {
        let candidates = std::mem::take(&mut findings.candidates);
        let converter = convert::Converter::open(self.git, self.capture, self.listing, self.rules)?;
        let files = || candidates.iter().filter(|found| !found.is_link).map(|found| &found.path);
        let mut converted = converter.affects(files())?;
        let in_lfs = converter.in_lfs(files())?;
        converted.retain(|path| !in_lfs.contains(path));
        let pointers = self.pointers(&in_lfs)?;
        let mut outcomes = Vec::new();
        let mut to_convert = Vec::new();
        for candidate in candidates {
            if let Some(outcome) = self.untouched(&candidate, &pointers) {
                outcomes.push(outcome);
                continue;
            }
            if !self.fits(&candidate) {
                if !self.is_unchanged(&candidate) {
                    let note = Note::TooLarge { path: candidate.path.clone(), size: candidate.size };
                    findings.keep(&candidate.path, note);
                }
                continue;
            }
            note_links(&candidate, findings);
            if converted.contains(&candidate.path) {
                to_convert.push(candidate);
                continue;
            }
            if let Some(entry) = self.listing.get(&candidate.path).filter(|_| self.is_unchanged(&candidate)) {
                // Storing it again would touch the object in the person's repository.
                let entry = Listed { mode: self.mode(&candidate), object: entry.object.clone() };
                outcomes.push((candidate.path, Some(entry)));
                continue;
            }
            match self.take_as_it_is(&candidate) {
                Ok(outcome) => outcomes.extend(outcome),
                Err(Trouble::Theirs(why)) => findings.keep(&candidate.path, unreadable(&candidate.path, why)),
                Err(Trouble::Ours(error)) => return Err(error),
            }
        }
        let modes = |candidate: &Candidate| self.mode(candidate);
        let (converted, troubles) = converter.convert(&to_convert, self.root, modes)?;
        for (path, why) in troubles {
            let note = unreadable(&path, why);
            findings.keep(&path, note);
        }
        outcomes.extend(converted);
        outcomes.extend(self.finish()?);
        Ok(outcomes)
    }

    /// The pointers that the base has at those paths.
    fn pointers(&self, in_lfs: &BTreeSet<RepoPath>) -> Result<BTreeMap<RepoPath, Pointer>, GitError> {
        let place = Place::Private { git_dir: self.capture, work_tree: None, index: None };
        let files = in_lfs.iter().filter_map(|path| Some((path, self.listing.get(path)?)));
        let files: Vec<_> = files.filter(|(_, entry)| entry.mode.is_file()).collect();
        self.git.pointers(place, files.into_iter().map(|(path, entry)| (path, &entry.object)))
    }

    /// What the result has for a file that holds the content to which the base's pointer leads: that pointer. Any other
    /// content is taken as it is.
    fn untouched(&self, candidate: &Candidate, pointers: &BTreeMap<RepoPath, Pointer>) -> Option<Outcome> {
        let pointer = pointers.get(&candidate.path).filter(|pointer| pointer.size == candidate.size)?;
        let mut file = candidate.open(self.root).ok()?;
        let is_content = lfs::is_content(pointer, &mut file, |_| Ok(())).unwrap_or(false);
        let object = self.listing.get(&candidate.path)?.object.clone();
        let entry = Listed { mode: self.mode(candidate), object };
        is_content.then(|| (candidate.path.clone(), Some(entry)))
    }

    /// Whether a candidate is within the limits; then it is counted.
    fn fits(&mut self, candidate: &Candidate) -> bool {
        let fits = candidate.size <= MAX_FILE_BYTES && self.taken + candidate.size <= MAX_TOTAL_BYTES;
        self.taken += if fits { candidate.size } else { 0 };
        fits
    }

    /// Whether a file of the base is what it was, byte for byte, by a hash that reads it in pieces.
    fn is_unchanged(&self, candidate: &Candidate) -> bool {
        let (Some(entry), Sink::Library(repository)) = (self.listing.get(&candidate.path), &self.sink) else {
            return false;
        };
        if candidate.is_link {
            let target = candidate.target(self.root);
            return target.is_ok_and(|target| Algorithm::of(&entry.object).blob(&target) == entry.object);
        }
        let size = || repository.odb()?.read_header(oid(&entry.object)?).map(|(size, _)| size as u64);
        if size().ok() != Some(candidate.size) {
            return false;
        }
        let Ok(file) = candidate.open(self.root) else { return false };
        let open = format!("/proc/self/fd/{}", file.as_raw_fd());
        let hash = Oid::hash_file(ObjectType::Blob, open).and_then(object_id);
        hash.is_ok_and(|hash| hash == entry.object)
    }

    fn take_as_it_is(&mut self, candidate: &Candidate) -> Result<Option<Outcome>, Trouble> {
        let mode = self.mode(candidate);
        if candidate.is_link {
            let target = candidate.target(self.root).map_err(Trouble::theirs)?;
            return self.put(candidate, mode, target.len() as u64, target.as_slice());
        }
        let file = candidate.open(self.root).map_err(Trouble::theirs)?;
        self.put(candidate, mode, candidate.size, file)
    }

    fn put(
        &mut self,
        candidate: &Candidate,
        mode: EntryMode,
        size: u64,
        content: impl Read,
    ) -> Result<Option<Outcome>, Trouble> {
        match &mut self.sink {
            Sink::Library(repository) => {
                let object = write_blob(repository, self.capture, size, content)?;
                Ok(Some((candidate.path.clone(), Some(Listed { mode, object }))))
            }
            Sink::Program { directory, waiting } => {
                let copy = directory.join(&waiting.len().to_string());
                copy_exactly(&copy, size, content)?;
                waiting.push((candidate.path.clone(), mode));
                Ok(None)
            }
        }
    }

    /// Hashes what was only copied so far.
    fn finish(&mut self) -> Result<Vec<Outcome>, GitError> {
        let Sink::Program { directory, waiting } = &mut self.sink else { return Ok(Vec::new()) };
        let names = (0..waiting.len()).map(|number| format!("{number}\n")).collect::<String>();
        let place = Place::Private { git_dir: self.capture, work_tree: Some(directory), index: None };
        let call = Call::new(Verb::HashObject, place)
            .args(["-w", "--no-filters", "--stdin-paths"])
            .input(names.into_bytes())
            .patience(POPULATE);
        let answer = if waiting.is_empty() { Vec::new() } else { self.git.run(&call)? };
        remove(directory);
        let text = String::from_utf8_lossy(&answer);
        let objects: Vec<ObjectId> = text.lines().filter_map(|line| line.parse().ok()).collect();
        if objects.len() != waiting.len() {
            return Err(unexpected(&call, &answer));
        }
        let entries = waiting.drain(..).zip(objects);
        Ok(entries.map(|((path, mode), object)| (path, Some(Listed { mode, object }))).collect())
    }

    /// The mode in the result, which may know less than the file system.
    fn mode(&self, candidate: &Candidate) -> EntryMode {
        let base = self.listing.get(&candidate.path).map(|entry| entry.mode);
        match base {
            _ if candidate.is_link => EntryMode::Symlink,
            Some(EntryMode::Symlink) if !self.rules.is_on("core.symlinks", true) => EntryMode::Symlink,
            Some(mode) if mode.is_file() && !self.rules.is_on("core.filemode", true) => mode,
            _ => file_mode(candidate.executable && self.rules.is_on("core.filemode", true)),
        }
    }
}

fn note_links(candidate: &Candidate, findings: &mut Findings) {
    if candidate.links > 1 && !candidate.is_link {
        findings.notes.push(Note::HardLinked { path: candidate.path.clone(), links: candidate.links });
    }
}

/// Whose fault it is that a candidate is not stored.
pub(super) enum Trouble {
    /// The file cannot be read: noted, and the rest goes on.
    Theirs(String),
    /// We cannot write: the capture fails.
    Ours(GitError),
}

impl Trouble {
    pub(super) fn theirs(error: io::Error) -> Self {
        Self::Theirs(error.to_string())
    }
}

/// Copies `size` bytes of `content` to a new file; one byte more or less, and somebody still writes to it.
pub(super) fn copy_exactly(to: &AbsPath, size: u64, content: impl Read) -> Result<(), Trouble> {
    create_file(to, b"").map_err(Trouble::Ours)?;
    let file = File::options()
        .write(true)
        .open(to)
        .map_err(|error| Trouble::Ours(GitError::io("open", to.as_path())(error)))?;
    pump(size, content, |piece| (&file).write_all(piece).map_err(GitError::io("write", to.as_path())))
}

fn write_blob(repository: &Repository, capture: &AbsPath, size: u64, content: impl Read) -> Result<ObjectId, Trouble> {
    let refused = |error| Trouble::Ours(GitError::objects("write an object", capture.as_path())(error));
    let odb = repository.odb().map_err(refused)?;
    let mut writer = odb.writer(usize::try_from(size).unwrap_or(usize::MAX), ObjectType::Blob).map_err(refused)?;
    pump(size, content, |piece| {
        writer.write_all(piece).map_err(GitError::io("write an object in", capture.as_path()))
    })?;
    writer.finalize().and_then(object_id).map_err(refused)
}

fn pump(
    size: u64,
    mut content: impl Read,
    mut write: impl FnMut(&[u8]) -> Result<(), GitError>,
) -> Result<(), Trouble> {
    let mut buffer = vec![0; 64 << 10];
    let mut left = size;
    loop {
        let count = match content.read(&mut buffer) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            count => count.map_err(Trouble::theirs)?,
        };
        if count as u64 > left || (count == 0 && left > 0) {
            return Err(Trouble::Theirs("it changed while it was captured".to_owned()));
        }
        if count == 0 {
            return Ok(());
        }
        write(&buffer[..count]).map_err(Trouble::Ours)?;
        left -= count as u64;
    }
}
