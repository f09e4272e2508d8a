//! Git LFS without git-lfs: contents come from the repository's local store, each checked against its pointer.
//!
//! [`super::prepare`] puts contents into a job's tree, [`super::capture`] recognises an untouched one, and
//! [`super::checkout_form`] translates for an apply. No filter runs, nothing is downloaded, and the store is only read.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;

use pactify_core::lfs::{MAX_POINTER_BYTES, Pointer, is_pointer};
use pactify_core::{AbsPath, ObjectId, RepoPath};
use rustix::fs::{FileType, Mode, OFlags};

use super::Git;
use super::command::Place;
use super::error::GitError;
use crate::hash;

/// The largest content that an apply puts into a checkout: it is held in memory, like every other one.
pub(super) const MAX_APPLIED_BYTES: u64 = 512 << 20;

/// Where a repository keeps LFS contents.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct LocalStore(AbsPath);

/// What the store has for a pointer.
#[derive(Debug)]
pub(super) enum Kept {
    /// Its content.
    Content(File),
    /// Nothing that could be it.
    Nothing,
}

impl LocalStore {
    /// The store that lies in a git directory.
    pub(super) fn in_git_dir(common_dir: &AbsPath) -> Self {
        Self(common_dir.join("lfs"))
    }

    /// The store at a recorded place.
    pub(super) fn at(directory: AbsPath) -> Self {
        Self(directory)
    }

    pub(super) fn directory(&self) -> &AbsPath {
        &self.0
    }

    /// Opens what the store has under a pointer's name. Its bytes are still to be checked.
    fn open(&self, pointer: &Pointer) -> io::Result<Kept> {
        let oid = pointer.oid();
        let path = self.0.join("objects").join(&oid[..2]).join(&oid[2..4]).join(oid);
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        let Ok(file) = rustix::fs::open(path.as_path(), flags, Mode::empty()) else { return Ok(Kept::Nothing) };
        let stat = rustix::fs::fstat(&file)?;
        let fits = FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile
            && u64::try_from(stat.st_size) == Ok(pointer.size);
        Ok(if fits { Kept::Content(file.into()) } else { Kept::Nothing })
    }

    /// Gives the content of `pointer` to `piece`, part by part. False when the store does not have it; then what
    /// `piece` got is not it.
    pub(super) fn copy(&self, pointer: &Pointer, piece: impl FnMut(&[u8]) -> io::Result<()>) -> io::Result<bool> {
        match self.open(pointer)? {
            Kept::Nothing => Ok(false),
            Kept::Content(mut file) => is_content(pointer, &mut file, piece),
        }
    }

    /// The content of `pointer`; `None` when the store does not have it.
    pub(super) fn read(&self, pointer: &Pointer) -> io::Result<Option<Vec<u8>>> {
        let mut content = Vec::new();
        let found = self.copy(pointer, |piece| {
            content.extend_from_slice(piece);
            Ok(())
        })?;
        Ok(found.then_some(content))
    }
}

/// Whether `from` yields exactly the content of `pointer`.
pub(super) fn is_content(
    pointer: &Pointer,
    from: &mut impl io::Read,
    piece: impl FnMut(&[u8]) -> io::Result<()>,
) -> io::Result<bool> {
    Ok(hash::sha256(pointer.size, from, piece)?.as_deref() == Some(pointer.oid()))
}

/// What git-lfs would store for a file that holds `bytes`; `None` when it would store these very bytes.
pub(super) fn stored(bytes: &[u8]) -> io::Result<Option<String>> {
    if bytes.is_empty() || is_pointer(bytes) {
        return Ok(None);
    }
    let size = bytes.len() as u64;
    let oid = hash::sha256(size, &mut &*bytes, |_| Ok(()))?;
    Ok(oid.and_then(|oid| Pointer::new(oid, size)).map(|pointer| pointer.text()))
}

impl Git {
    /// The pointers among `entries`, which are blobs that are there.
    pub(super) fn pointers<'e>(
        &self,
        place: Place<'_>,
        entries: impl Iterator<Item = (&'e RepoPath, &'e ObjectId)>,
    ) -> Result<BTreeMap<RepoPath, Pointer>, GitError> {
        let (paths, objects): (Vec<_>, Vec<_>) = entries.unzip();
        let sizes = self.sizes(place, &objects)?;
        let small = paths.into_iter().zip(objects).zip(sizes).filter(|(_, size)| *size <= MAX_POINTER_BYTES);
        let (paths, objects): (Vec<&RepoPath>, Vec<&ObjectId>) = small.map(|(entry, _)| entry).unzip();
        if objects.is_empty() {
            return Ok(BTreeMap::new());
        }
        let contents = self.contents(place, &objects)?;
        let parsed = paths.into_iter().zip(contents);
        Ok(parsed.filter_map(|(path, blob)| Some((path.clone(), Pointer::parse(&blob)?))).collect())
    }
}
