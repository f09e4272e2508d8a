//! The first half of an apply: look at every path once more, and stage every new content. Changes nothing that
//! anybody else looks at, and finds every obstacle that can be found beforehand.

use std::collections::{BTreeMap, BTreeSet};
use std::os::fd::{AsFd, OwnedFd};

use pactify_core::RepoPath;
use pactify_core::change::plan::{Action, CheckedPlan};
use pactify_core::change::{Entry, EntryMode};
use pactify_core::failure::{Conflict, ConflictKind};
use pactify_core::path::rules::link_stays_inside;
use rustix::fs::{Access, AtFlags};
use rustix::io::Errno;

use super::contents::{Stored, checkout_form, stored_form};
use super::disk::At;
use super::error::{ApplyError, is_full, reason};
use super::intent::{DirectoryBits, Held, Step};
use super::look::{Found, Seen, look};
use super::stage::new_slot;
use super::tree::Blocked;
use super::{Materials, Site};

/// Above this number of files one sync of the file system is cheaper than one per file.
pub(super) const SYNC_EACH: usize = 20;

/// The steps of an apply, staged and durable but for the record of them.
#[derive(Debug, Default)]
pub(super) struct Prepared {
    pub(super) steps: Vec<Step>,
    pub(super) made: Vec<RepoPath>,
    pub(super) restored: Vec<DirectoryBits>,
    pub(super) emptied: Vec<DirectoryBits>,
}

/// Prepares `plan`, or reports everything that is in its way.
pub(super) fn prepare(site: &Site, plan: &CheckedPlan, materials: &Materials<'_>) -> Result<Prepared, ApplyError> {
    let actions = plan.actions();
    let files = actions.iter().filter(|action| action.becomes.as_ref().is_some_and(|entry| entry.mode.is_file()));
    let preparation = Preparation {
        site,
        materials,
        deleted: actions.iter().filter(|action| action.becomes.is_none()).map(|a| a.path.path()).collect(),
        sync_each: files.count() <= SYNC_EACH,
    };
    let emptied = preparation.emptied(actions);
    let mut prepared = Prepared::default();
    let mut conflicts = Vec::new();
    let mut full = false;
    let mut made = BTreeSet::new();
    for (n, action) in actions.iter().enumerate() {
        match preparation.step(n, action, &emptied) {
            Ok(step) => prepared.steps.push(step),
            Err(Stop::Conflict(conflict)) => conflicts.push(conflict),
            Err(Stop::Full(conflict)) => {
                conflicts.push(conflict);
                full = true;
                break;
            }
            Err(Stop::Error(error)) => return Err(error),
        }
        if action.becomes.is_some() {
            made.extend(missing_above(site, action.path.path()));
        }
    }
    if full {
        return Err(ApplyError::NoSpace(conflicts));
    }
    if !conflicts.is_empty() {
        return Err(ApplyError::Conflicts(conflicts));
    }
    preparation.sync().map_err(|error| site.stage_error(error))?;
    prepared.made = made.into_iter().collect();
    prepared.emptied = emptied.into_iter().rev().map(|(path, bits)| DirectoryBits { path, bits }).collect();
    Ok(prepared)
}

/// Why a path cannot be prepared.
pub(super) enum Stop {
    Conflict(Conflict),
    Full(Conflict),
    Error(ApplyError),
}

struct Preparation<'a> {
    site: &'a Site,
    materials: &'a Materials<'a>,
    deleted: BTreeSet<&'a RepoPath>,
    sync_each: bool,
}

impl Preparation<'_> {
    fn step(&self, n: usize, action: &Action, emptied: &BTreeMap<RepoPath, u32>) -> Result<Step, Stop> {
        let path = action.path.path();
        let parent = writable_parent(self.site, path, &self.deleted)?;
        let seen = match &parent {
            Some(parent) => look(At { dir: parent.as_fd(), name: path.file_name() }, self.site.algorithm),
            None => Seen::Absent,
        };
        let found = match seen {
            Seen::Absent => None,
            Seen::Directory if emptied.contains_key(path) => None,
            Seen::Entry(found) => Some(found),
            Seen::Directory => return Err(stop(path, ConflictKind::DirectoryInTheWay, "a directory is there by now")),
            Seen::Special(what) => return Err(stop(path, ConflictKind::NotARegularFile, format!("{what} is there"))),
            Seen::Unreadable(error) => return Err(refused(path, error)),
        };
        let stored = self.check(path, action, parent.as_ref(), found.as_ref())?;
        let before = found.as_ref().map(|found| Held { mode: found.mode, object: found.object.clone() });
        let after = match &action.becomes {
            None => None,
            Some(entry) => {
                let place = Place { path, parent: parent.as_ref(), found: found.as_ref(), stored: stored.as_ref() };
                Some(self.stage(n, entry, &place)?)
            }
        };
        Ok(Step { path: path.clone(), before, after })
    }

    /// Compares what is there with what the plan was checked against.
    fn check(
        &self,
        path: &RepoPath,
        action: &Action,
        parent: Option<&OwnedFd>,
        found: Option<&Found>,
    ) -> Result<Option<Stored>, Stop> {
        let stored = match (parent, found) {
            (Some(parent), Some(found)) => {
                let at = At { dir: parent.as_fd(), name: path.file_name() };
                let expected = action.expected.as_ref().map(|(mode, object)| (*mode, object));
                let becomes = action.becomes.as_ref().map(|entry| (entry.mode, &entry.object));
                let sides: Vec<_> = [expected, becomes].into_iter().flatten().collect();
                let stored = stored_form(path, at, found, &sides, self.materials.canonical);
                Some(stored.map_err(|error| stop(path, ConflictKind::FileSystem, error.to_string()))?)
            }
            _ => None,
        };
        let now = stored.as_ref().map(|stored| (stored.mode, stored.object.clone()));
        if now == action.expected {
            return Ok(stored);
        }
        Err(match (&action.expected, now) {
            (None, _) => stop(path, ConflictKind::AlreadyExists, "something was put there meanwhile"),
            (_, None) => stop(path, ConflictKind::Missing, "it was deleted meanwhile"),
            _ => stop(path, ConflictKind::ContentDiffers, "it was changed meanwhile"),
        })
    }

    fn stage(&self, n: usize, entry: &Entry, place: &Place<'_>) -> Result<Held, Stop> {
        let bytes = self.content(entry, place)?;
        let slot = new_slot(n);
        let at = self.site.stage.at(&slot);
        let staged = match entry.mode {
            EntryMode::Symlink => self.site.disk.make_link(at, &bytes).map(|()| EntryMode::Symlink),
            _ => self.stage_file(at, entry.mode, &bytes, place),
        };
        let mode = staged.map_err(|error| refused(place.path, error))?;
        Ok(Held { mode, object: self.site.algorithm.blob(&bytes) })
    }

    /// The bytes that the checkout will hold.
    fn content(&self, entry: &Entry, place: &Place<'_>) -> Result<Vec<u8>, Stop> {
        let path = place.path;
        let failed =
            |source| Stop::Error(ApplyError::Contents { path: path.clone(), object: entry.object.clone(), source });
        let bytes = self.materials.contents.read(&entry.object).map_err(failed)?;
        if self.site.algorithm.blob(&bytes) != entry.object {
            return Err(failed(std::io::Error::other("its bytes do not have this id")));
        }
        if entry.mode == EntryMode::Symlink {
            if !link_stays_inside(path, &bytes) {
                return Err(stop(path, ConflictKind::KindRefused, "it is a link that leads out of the checkout"));
            }
            return Ok(bytes);
        }
        let canonical = self.materials.canonical;
        let unconvertible = |why: String| stop(path, ConflictKind::KindRefused, why);
        let form = checkout_form(path, &entry.object, place.found.zip(place.stored), canonical);
        let Some(converted) = form.map_err(|error| unconvertible(error.to_string()))? else { return Ok(bytes) };
        // A form from which the repository would not store this content again is none. The content itself may do.
        for candidate in [converted, bytes] {
            let stored = canonical.to_stored(path, &candidate).map_err(|error| unconvertible(error.to_string()))?;
            if stored.unwrap_or_else(|| self.site.algorithm.blob(&candidate)) == entry.object {
                return Ok(candidate);
            }
        }
        Err(unconvertible("the checkout's conversion would change its content".into()))
    }

    fn stage_file(&self, at: At<'_>, mode: EntryMode, bytes: &[u8], place: &Place<'_>) -> Result<EntryMode, Errno> {
        let disk = &self.site.disk;
        let file = disk.create(at)?;
        disk.write_all(&file, bytes)?;
        if let Some(group) = place.group() {
            // The group of a file that the person may not give away stays the person's own.
            let _ = disk.set_group(&file, group);
        }
        let bits = place.bits(mode);
        disk.set_mode(&file, bits)?;
        if self.sync_each {
            disk.sync(&file)?;
        }
        Ok(if bits & 0o100 == 0 { EntryMode::File } else { EntryMode::Executable })
    }

    fn sync(&self) -> Result<(), Errno> {
        let stage = self.site.stage.directory();
        if self.sync_each { self.site.disk.sync(stage) } else { self.site.disk.sync_file_system(stage) }
    }

    /// The directories that deletions may empty, with their permission bits. Not the folder that the editor has open.
    fn emptied(&self, actions: &[Action]) -> BTreeMap<RepoPath, u32> {
        let kept = actions.iter().filter(|action| action.becomes.is_some());
        let mut kept: BTreeSet<RepoPath> = kept.flat_map(|action| action.path.path().ancestors()).collect();
        if let Ok(open) = RepoPath::new(self.site.prefix.trim_end_matches('/')) {
            kept.extend(open.ancestors());
            kept.insert(open);
        }
        let candidates: BTreeSet<RepoPath> =
            self.deleted.iter().flat_map(|path| path.ancestors()).filter(|path| !kept.contains(path)).collect();
        let with_bits = candidates.into_iter().filter_map(|path| {
            let stat = rustix::fs::fstat(self.site.tree.directory(&path).ok()?).ok()?;
            Some((path, stat.st_mode & 0o7777))
        });
        with_bits.collect()
    }
}

/// The directory of `path`, checked for what can be known beforehand; `None` when it is yet to be made, maybe where one
/// of `leaving` is now.
pub(super) fn writable_parent(
    site: &Site,
    path: &RepoPath,
    leaving: &BTreeSet<&RepoPath>,
) -> Result<Option<OwnedFd>, Stop> {
    let parent = match site.tree.parent_of(path) {
        Ok(parent) => parent,
        Err(Blocked::Missing) => return Ok(None),
        Err(Blocked::ByEntry(entry)) if leaving.contains(&entry) => return Ok(None),
        Err(blocked) => return Err(Stop::Conflict(blocked_conflict(path, blocked))),
    };
    let device = |fd: &OwnedFd| rustix::fs::fstat(fd).map(|stat| stat.st_dev);
    let (here, staged) = (device(&parent), device(site.stage.directory()));
    if here.is_ok() && here != staged {
        return Err(refused(path, Errno::XDEV));
    }
    let access = Access::WRITE_OK | Access::EXEC_OK;
    match rustix::fs::accessat(&parent, ".", access, AtFlags::EACCESS) {
        Ok(()) => Ok(Some(parent)),
        Err(error) => Err(refused(path, error)),
    }
}

/// The directories above `path` that do not exist, or will not once what is in their place is gone; outermost first.
pub(super) fn missing_above(site: &Site, path: &RepoPath) -> Vec<RepoPath> {
    if site.tree.parent_of(path).is_ok() {
        return vec![];
    }
    path.ancestors().filter(|directory| site.tree.directory(directory).is_err()).collect()
}

/// Where a content goes.
struct Place<'a> {
    path: &'a RepoPath,
    parent: Option<&'a OwnedFd>,
    found: Option<&'a Found>,
    stored: Option<&'a Stored>,
}

impl Place<'_> {
    /// A new file gets 0644 or 0755; a changed one keeps its bits, except that the executable ones follow the change.
    fn bits(&self, mode: EntryMode) -> u32 {
        let executable = mode == EntryMode::Executable;
        match self.found.filter(|found| found.mode.is_file()) {
            None => 0o644 | if executable { 0o111 } else { 0 },
            Some(found) if self.stored.is_some_and(|stored| stored.mode == mode) => found.bits,
            Some(found) if executable => found.bits | ((found.bits & 0o444) >> 2),
            Some(found) => found.bits & !0o111,
        }
    }

    /// The group that the file would have had it been made in its place, where that is not the person's own.
    fn group(&self) -> Option<u32> {
        let group = match (self.found, self.parent) {
            (Some(found), _) => Some(found.group),
            (None, Some(parent)) => {
                let stat = rustix::fs::fstat(parent).ok()?;
                (stat.st_mode & 0o2000 != 0).then_some(stat.st_gid)
            }
            (None, None) => None,
        };
        group.filter(|group| *group != rustix::process::getegid().as_raw())
    }
}

pub(super) fn blocked_conflict(path: &RepoPath, blocked: Blocked) -> Conflict {
    let (kind, detail) = match blocked {
        Blocked::Missing => (ConflictKind::Missing, "its directory is gone".into()),
        Blocked::ByEntry(at) => (ConflictKind::NotARegularFile, format!("{at} on the way to it is no directory")),
        Blocked::BySpecial(at, what) => (ConflictKind::NotARegularFile, format!("{what} is at {at}")),
        Blocked::Unreadable(at, error) => (ConflictKind::FileSystem, format!("{at}: {}", reason(error))),
    };
    Conflict::new(path, kind, detail)
}

pub(super) fn stop(path: &RepoPath, kind: ConflictKind, detail: impl Into<String>) -> Stop {
    Stop::Conflict(Conflict::new(path, kind, detail))
}

pub(super) fn refused(path: &RepoPath, error: Errno) -> Stop {
    let conflict = Conflict::new(path, ConflictKind::FileSystem, reason(error));
    if is_full(error) { Stop::Full(conflict) } else { Stop::Conflict(conflict) }
}
