//! Where an apply gets its bytes from, and how they relate to the bytes of a checkout.
//!
//! The applier knows neither git nor its attributes: [`Contents`] yields blobs by id, [`Canonical`] translates between
//! what a repository stores and what a checkout holds (line endings, filters). What implements them is handed in by
//! whoever applies.

use std::io;

use pactify_core::change::plan::Goal;
use pactify_core::change::{Change, EntryMode};
use pactify_core::{ObjectId, RepoPath};

use super::disk::At;
use super::look::{self, Found};

/// Yields captured contents.
pub trait Contents: Sync {
    /// The bytes of a blob. They are checked against its id before they are written anywhere.
    ///
    /// # Errors
    /// When the blob cannot be read.
    fn read(&self, object: &ObjectId) -> io::Result<Vec<u8>>;
}

/// Translates between a checkout's bytes and the stored ones.
pub trait Canonical: Sync {
    /// The id of what the repository would store for a file at `path` that holds `bytes`; `None` when it would store
    /// these very bytes.
    ///
    /// # Errors
    /// When the conversion cannot be made.
    fn to_stored(&self, path: &RepoPath, bytes: &[u8]) -> io::Result<Option<ObjectId>>;

    /// What a checkout would hold at `path` for the stored `object`; `None` when that is its bytes as they are.
    ///
    /// # Errors
    /// When the conversion cannot be made.
    fn to_checkout(&self, path: &RepoPath, object: &ObjectId) -> io::Result<Option<Vec<u8>>>;

    /// Whether a checkout would hold other bytes at `path` than those of the stored `object`. May be known where
    /// [`Canonical::to_checkout`] cannot give them.
    ///
    /// # Errors
    /// When that cannot be told.
    fn is_converted(&self, path: &RepoPath, object: &ObjectId) -> io::Result<bool> {
        Ok(self.to_checkout(path, object)?.is_some())
    }

    /// Whether the executable bits of the checkout's files mean anything (`core.fileMode`).
    fn trusts_executable_bit(&self) -> bool {
        true
    }
}

/// A checkout that holds exactly what the repository stores.
#[derive(Clone, Copy, Debug)]
pub struct Verbatim;

impl Canonical for Verbatim {
    fn to_stored(&self, _: &RepoPath, _: &[u8]) -> io::Result<Option<ObjectId>> {
        Ok(None)
    }

    fn to_checkout(&self, _: &RepoPath, _: &ObjectId) -> io::Result<Option<Vec<u8>>> {
        Ok(None)
    }
}

/// What is at a path, as the repository would store it.
#[derive(Debug)]
pub(super) struct Stored {
    pub(super) mode: EntryMode,
    pub(super) object: ObjectId,
}

/// The stored form of what was found at `path`.
///
/// Bytes that are one of the `sides` as they are count as that side: what was captured from a job's tree and what is in
/// the checkout then agree byte for byte. Only otherwise the conversion is asked.
pub(super) fn stored_form(
    path: &RepoPath,
    at: At<'_>,
    found: &Found,
    sides: &[(EntryMode, &ObjectId)],
    canonical: &dyn Canonical,
) -> io::Result<Stored> {
    let known = |object: &ObjectId| sides.iter().any(|(_, side)| *side == object);
    let mode = match sides.iter().find(|(mode, _)| mode.is_file()) {
        Some((mode, _)) if found.mode.is_file() && !canonical.trusts_executable_bit() => *mode,
        _ => found.mode,
    };
    if !found.mode.is_file() || known(&found.object) {
        return Ok(Stored { mode, object: found.object.clone() });
    }
    let stored = canonical.to_stored(path, &look::read(at, found.mode)?)?;
    Ok(Stored { mode, object: stored.unwrap_or_else(|| found.object.clone()) })
}

/// The bytes with which a checkout that holds `found` at `path` gets the stored `object`; `None` when those of the
/// object itself are the ones.
///
/// A file that was left in its stored form although a checkout would have another stays so. Others, and new ones,
/// follow the checkout's conversion.
pub(super) fn checkout_form(
    path: &RepoPath,
    object: &ObjectId,
    found: Option<(&Found, &Stored)>,
    canonical: &dyn Canonical,
) -> io::Result<Option<Vec<u8>>> {
    if let Some((found, stored)) = found
        && found.mode.is_file()
        && found.object == stored.object
        && canonical.is_converted(path, &found.object)?
    {
        return Ok(None);
    }
    canonical.to_checkout(path, object)
}

/// Everything that a checkout may hold of a change, as [`stored_form`] takes it. What was accepted of it comes first.
pub(super) fn sides<'a>(change: &'a Change, goal: Option<&'a Goal>) -> Vec<(EntryMode, &'a ObjectId)> {
    let accepted = goal.into_iter().flat_map(|goal| [&goal.old, &goal.without, &goal.target]);
    let all = accepted.chain([&change.old, &change.new]);
    all.flatten().map(|entry| (entry.mode, &entry.object)).collect()
}
