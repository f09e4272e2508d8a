//! The second half of an apply: every path changes in one step each, and what came out is looked at again.
//!
//! Order: deletions, directories that they emptied, new directories, the rest; so a file can become a directory and
//! the other way round. Stops at the first obstacle; [`super::rollback`] then takes every step back. Each path is
//! reached anew without following links, so a directory swapped for a link meanwhile is an obstacle, not a way out.

use std::collections::BTreeSet;
use std::os::fd::{AsFd, OwnedFd};

use pactify_core::RepoPath;
use pactify_core::failure::{Conflict, ConflictKind};
use rustix::io::{Errno, Result};

use super::Site;
use super::disk::At;
use super::error::{is_full, reason};
use super::intent::{DirectoryBits, Held, Intent, Step};
use super::look::{Seen, Stamp, look};
use super::prepare::{SYNC_EACH, blocked_conflict};
use super::stage::{new_slot, old_slot};
use super::tree::Blocked;

/// What stopped a commit.
#[derive(Debug)]
pub(super) struct Stopped {
    pub(super) conflict: Conflict,
    pub(super) full: bool,
}

/// Executes the intent. When this returns without an error, all of it is in the checkout and on the disk.
pub(super) fn commit(site: &Site, intent: &Intent) -> std::result::Result<(), Stopped> {
    let mut kept = Vec::new();
    let (deletions, writes): (Vec<_>, Vec<_>) =
        intent.steps.iter().enumerate().partition(|(_, step)| step.after.is_none());
    for (n, step) in deletions {
        kept.push(delete(site, n, step)?);
    }
    for emptied in &intent.emptied {
        remove_if_empty(site, &emptied.path)?;
    }
    for directory in &intent.made {
        make(site, directory)?;
    }
    for directory in &intent.restored {
        make_again(site, directory)?;
    }
    for (n, step) in writes {
        kept.extend(write(site, n, step)?);
    }
    settle(site, &kept)?;
    sync(site, intent).map_err(|error| stopped(&intent.steps[0].path, error))
}

/// Makes the entries of every directory that the intent touches durable, and those of the stage.
pub(super) fn sync(site: &Site, intent: &Intent) -> Result<()> {
    let paths = intent.steps.iter().map(|step| &step.path);
    let recorded = intent.emptied.iter().chain(&intent.restored).map(|directory| &directory.path);
    let paths = paths.chain(&intent.made).chain(recorded);
    let directories: BTreeSet<Option<RepoPath>> = paths.map(RepoPath::parent).collect();
    if directories.len() > SYNC_EACH {
        return site.disk.sync_file_system(site.tree.top());
    }
    site.disk.sync(site.stage.directory())?;
    for directory in directories {
        match &directory {
            None => site.disk.sync(site.tree.top())?,
            Some(path) => {
                // One that is gone has nothing to keep.
                if let Ok(open) = site.tree.directory(path) {
                    site.disk.sync(open)?;
                }
            }
        }
    }
    Ok(())
}

/// An old content that came out of the checkout, and how it looked then.
struct Kept<'a> {
    path: &'a RepoPath,
    slot: String,
    stamp: Stamp,
}

fn delete<'a>(site: &Site, n: usize, step: &'a Step) -> std::result::Result<Kept<'a>, Stopped> {
    let parent = parent(site, &step.path)?;
    let (live, slot) = (At { dir: parent.as_fd(), name: step.path.file_name() }, old_slot(n));
    site.disk.move_to_free(live, site.stage.at(&slot)).map_err(|error| stopped(&step.path, error))?;
    came_out(site, slot, step)
}

fn write<'a>(site: &Site, n: usize, step: &'a Step) -> std::result::Result<Option<Kept<'a>>, Stopped> {
    let parent = parent(site, &step.path)?;
    let live = At { dir: parent.as_fd(), name: step.path.file_name() };
    let slot = new_slot(n);
    let staged = site.stage.at(&slot);
    let failed = |error| stopped(&step.path, error);
    if step.before.is_none() {
        return site.disk.move_to_free(staged, live).map(|()| None).map_err(failed);
    }
    match site.disk.exchange(staged, live) {
        Ok(()) => came_out(site, slot, step).map(Some),
        Err(Errno::NOSYS) => {
            let old = old_slot(n);
            site.disk.move_to_free(live, site.stage.at(&old)).map_err(failed)?;
            let kept = came_out(site, old, step)?;
            site.disk.move_to_free(staged, live).map_err(failed)?;
            Ok(Some(kept))
        }
        Err(error) => Err(failed(error)),
    }
}

/// Checks that what left the checkout is what the person was shown as the current state.
fn came_out<'a>(site: &Site, slot: String, step: &'a Step) -> std::result::Result<Kept<'a>, Stopped> {
    match look(site.stage.at(&slot), site.algorithm) {
        Seen::Entry(found) if step.before.as_ref().is_some_and(|held| held.is(&found)) => {
            Ok(Kept { path: &step.path, slot, stamp: found.stamp })
        }
        _ => Err(raced(&step.path)),
    }
}

/// A program that had a file open may have written to it after it came out.
fn settle(site: &Site, kept: &[Kept<'_>]) -> std::result::Result<(), Stopped> {
    match kept.iter().find(|kept| Stamp::at(site.stage.at(&kept.slot)) != Some(kept.stamp)) {
        Some(kept) => Err(raced(kept.path)),
        None => Ok(()),
    }
}

fn remove_if_empty(site: &Site, path: &RepoPath) -> std::result::Result<(), Stopped> {
    let parent = match site.tree.parent_of(path) {
        Ok(parent) => parent,
        Err(Blocked::Missing) => return Ok(()),
        Err(blocked) => return Err(Stopped { conflict: blocked_conflict(path, blocked), full: false }),
    };
    match site.disk.remove_directory(At { dir: parent.as_fd(), name: path.file_name() }) {
        // Someone is in it, or it may not be removed: an empty directory is nothing that git would record.
        Ok(()) | Err(Errno::NOTEMPTY | Errno::EXIST | Errno::NOENT | Errno::BUSY | Errno::ACCESS | Errno::PERM) => {
            Ok(())
        }
        Err(error) => Err(stopped(path, error)),
    }
}

fn make(site: &Site, path: &RepoPath) -> std::result::Result<(), Stopped> {
    let parent = parent(site, path)?;
    match site.disk.make_directory(At { dir: parent.as_fd(), name: path.file_name() }, 0o755) {
        Ok(()) | Err(Errno::EXIST) => Ok(()),
        Err(error) => Err(stopped(path, error)),
    }
}

fn make_again(site: &Site, directory: &DirectoryBits) -> std::result::Result<(), Stopped> {
    let path = &directory.path;
    let parent = parent(site, path)?;
    match make_with_bits(site, &parent, path.file_name(), directory.bits) {
        Ok(()) | Err(Errno::EXIST) => Ok(()),
        Err(error) => Err(stopped(path, error)),
    }
}

/// Makes a directory with exactly these permission bits.
pub(super) fn make_with_bits(site: &Site, parent: &OwnedFd, name: &[u8], bits: u32) -> Result<()> {
    site.disk.make_directory(At { dir: parent.as_fd(), name }, 0o700)?;
    let directory = super::tree::open_directory(parent, name)?;
    site.disk.set_mode(directory, bits)
}

fn parent(site: &Site, path: &RepoPath) -> std::result::Result<OwnedFd, Stopped> {
    let failed = |blocked| Stopped { conflict: blocked_conflict(path, blocked), full: false };
    site.tree.parent_of(path).map_err(failed)
}

fn raced(path: &RepoPath) -> Stopped {
    let detail = "it was saved while the apply ran; that save is back in place";
    let conflict = Conflict::new(path, ConflictKind::ContentDiffers, detail);
    Stopped { conflict, full: false }
}

fn stopped(path: &RepoPath, error: Errno) -> Stopped {
    let kind = match error {
        Errno::EXIST => ConflictKind::AlreadyExists,
        Errno::NOENT => ConflictKind::Missing,
        _ => ConflictKind::FileSystem,
    };
    let conflict = Conflict::new(path, kind, reason(error));
    Stopped { conflict, full: is_full(error) }
}

impl Held {
    /// Whether this is what was found.
    pub(super) fn is(&self, found: &super::look::Found) -> bool {
        self.mode == found.mode && self.object == found.object
    }
}
