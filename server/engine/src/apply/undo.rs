//! Taking a finished apply back: an apply the other way round.
//!
//! Allowed while every path that it touched is exactly as it left it: kind, bytes, executable bit. The old contents
//! come out of its stage by a second name, so what comes back is the very file that was there, with its permission
//! bits, times, hard links and attributes; where a file system has no second names, it is a copy with the same bits.
//! Nothing is converted. Like an apply it is recorded, committed, and rolled back if it is interrupted; the stage of
//! the apply stays whole until its undo is finished and [`super::forget`] is called.

use std::collections::BTreeSet;
use std::os::fd::{AsFd as _, OwnedFd};

use pactify_core::failure::ConflictKind;
use pactify_core::{JobId, RepoPath};
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

use super::disk::{At, Disk};
use super::error::ApplyError;
use super::intent::{ApplyId, DirectoryBits, Held, Intent, Progress, Records, Step, Transaction};
use super::lock::RepositoryLock;
use super::look::{Found, Seen, look, read};
use super::observe::foreign;
use super::prepare::{Prepared, SYNC_EACH, Stop, missing_above, refused, stop, writable_parent};
use super::stage::{Stage, StageRoot, new_slot, old_slot};
use super::tree::Tree;
use super::{Site, carry_out, refuse_pending};
use crate::disk::SAFE;
use crate::hash::Algorithm;

/// An apply that is taken back, durably.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Undone {
    /// Which.
    pub apply: ApplyId,
    /// The paths that hold again what they held before it.
    pub restored: Vec<RepoPath>,
}

/// Takes `apply` back: every path, or none.
///
/// `unsaved` are the paths for which an editor holds unsaved text. [`super::recover`] has to have run under the same
/// lock. What was kept for the apply, and the record of this, stay until [`super::forget`].
///
/// # Errors
/// [`ApplyError::NotAsLeft`] names every path at which the checkout is not as the apply left it. After every error but
/// [`ApplyError::NotRolledBack`] the checkout is as it was.
pub fn undo(apply: &ApplyId, unsaved: &[RepoPath], lock: &RepositoryLock) -> Result<Undone, ApplyError> {
    undo_with(apply, unsaved, lock, Disk::new())
}

/// The applies of `job` that are taken back, but may not be recorded as such in its journal: the process that did it
/// ended before it called [`super::forget`].
///
/// # Errors
/// When the records cannot be listed.
pub fn undone(lock: &RepositoryLock, job: &JobId) -> Result<Vec<ApplyId>, ApplyError> {
    let done = Records::open(lock)?.list(Progress::Done)?;
    let of_job = done.into_iter().filter_map(|transaction| match transaction {
        Transaction::Undo(apply, _) if apply.job == *job => Some(apply),
        _ => None,
    });
    Ok(of_job.collect())
}

pub(super) fn undo_with(
    apply: &ApplyId,
    unsaved: &[RepoPath],
    lock: &RepositoryLock,
    disk: Disk,
) -> Result<Undone, ApplyError> {
    let records = Records::open(lock)?;
    refuse_pending(&records, lock)?;
    let applied = Transaction::from(apply);
    if records.progress(&applied) != Some(Progress::Done) {
        return Err(ApplyError::NotKept(apply.clone()));
    }
    let applied = records.read(&applied, Progress::Done)?;
    let transaction = fresh(&records, apply);
    let repository = &applied.repository;
    let unusable = |error: Errno| ApplyError::Store { path: repository.git_dir.as_path().into(), source: error.into() };
    let tree = Tree::open(&repository.worktree)
        .map_err(|source| ApplyError::Checkout { path: repository.worktree.clone(), source })?;
    let root = StageRoot::open(repository, lock.store().home(), applied.stage).map_err(unusable)?;
    let kept = root.kept(&applied.transaction).map_err(|error| root.refusal(error))?;
    let kept = kept.ok_or_else(|| ApplyError::NotKept(apply.clone()))?;
    let stage = root.create(&transaction, true, &disk).map_err(|error| root.refusal(error))?;
    let algorithm = Algorithm::of(applied.change_set.tree());
    let site = Site { tree, stage, disk, algorithm, prefix: repository.prefix.clone() };
    let intent = applied.undo(transaction);
    let prepare = || {
        let preparation = Preparation::of(&site, &kept, &applied, unsaved);
        preparation.run().map_err(|error| naming_later(error, &records, lock, &applied))
    };
    let intent = carry_out(&site, &root, &records, intent, prepare).map_err(ApplyError::of_undo)?;
    Ok(Undone { apply: apply.clone(), restored: intent.steps.into_iter().map(|step| step.path).collect() })
}

/// A name that no earlier try left a record under.
fn fresh(records: &Records<'_>, apply: &ApplyId) -> Transaction {
    let mut number = 1;
    loop {
        let transaction = Transaction::Undo(apply.clone(), number);
        if records.progress(&transaction).is_none() {
            return transaction;
        }
        number += 1;
    }
}

struct Preparation<'a> {
    site: &'a Site,
    /// Where the old contents are.
    kept: &'a Stage,
    applied: &'a Intent,
    unsaved: &'a [RepoPath],
    /// What the apply added, and what therefore goes.
    leaving: BTreeSet<&'a RepoPath>,
    sync_each: bool,
}

impl<'a> Preparation<'a> {
    fn of(site: &'a Site, kept: &'a Stage, applied: &'a Intent, unsaved: &'a [RepoPath]) -> Self {
        let leaving = applied.steps.iter().filter(|step| step.before.is_none()).map(|step| &step.path).collect();
        let files = applied.steps.iter().filter(|step| is_file(step.before.as_ref()));
        Self { site, kept, applied, unsaved, leaving, sync_each: files.count() <= SYNC_EACH }
    }

    /// Looks at every path and stages every old content, or reports everything that is in the way.
    fn run(&self) -> Result<Prepared, ApplyError> {
        let mut prepared = Prepared { emptied: self.emptied(), ..Prepared::default() };
        let mut conflicts = Vec::new();
        let mut missing = BTreeSet::new();
        for (n, step) in self.applied.steps.iter().enumerate() {
            match self.step(n, step, &prepared.emptied) {
                Ok(step) => prepared.steps.push(step),
                Err(Stop::Conflict(conflict)) => conflicts.push(conflict),
                Err(Stop::Full(conflict)) => {
                    conflicts.push(conflict);
                    return Err(ApplyError::NoSpace(conflicts));
                }
                Err(Stop::Error(error)) => return Err(error),
            }
            if step.before.is_some() {
                missing.extend(missing_above(self.site, &step.path));
            }
        }
        if !conflicts.is_empty() {
            return Err(ApplyError::Conflicts(conflicts));
        }
        let stage = self.site.stage.directory();
        let sync = if self.sync_each { self.site.disk.sync(stage) } else { self.site.disk.sync_file_system(stage) };
        sync.map_err(|error| self.site.stage_error(error))?;
        for path in missing {
            match self.applied.emptied.iter().find(|emptied| emptied.path == path) {
                Some(recorded) => prepared.restored.push(recorded.clone()),
                None => prepared.made.push(path),
            }
        }
        Ok(prepared)
    }

    /// One step of the apply, the other way round; its old content is staged.
    fn step(&self, n: usize, step: &Step, emptied: &[DirectoryBits]) -> Result<Step, Stop> {
        let path = &step.path;
        if self.unsaved.contains(path) {
            return Err(stop(path, ConflictKind::UnsavedText, "an editor holds unsaved text for it"));
        }
        let parent = writable_parent(self.site, path, &self.leaving)?;
        let seen = match &parent {
            Some(parent) => look(At { dir: parent.as_fd(), name: path.file_name() }, self.site.algorithm),
            None => Seen::Absent,
        };
        let is_left = |found: &Found| step.after.as_ref().is_some_and(|held| held.is(found));
        match seen {
            Seen::Absent if step.after.is_none() => {}
            Seen::Absent => return Err(stop(path, ConflictKind::Missing, "it was deleted since")),
            Seen::Entry(found) if is_left(&found) => {}
            Seen::Entry(_) if step.after.is_none() => {
                return Err(stop(path, ConflictKind::AlreadyExists, "something was put there since"));
            }
            Seen::Entry(_) => return Err(stop(path, ConflictKind::ContentDiffers, "it was changed since")),
            Seen::Directory if step.after.is_none() && emptied.iter().any(|goes| goes.path == *path) => {
                if let Some(entry) = foreign(&self.site.tree, path, &self.leaving) {
                    let detail = format!("a directory is there, and {entry} in it stays");
                    return Err(stop(path, ConflictKind::DirectoryInTheWay, detail));
                }
            }
            Seen::Directory => return Err(stop(path, ConflictKind::DirectoryInTheWay, "a directory is there by now")),
            Seen::Special(what) => return Err(stop(path, ConflictKind::NotARegularFile, format!("{what} is there"))),
            Seen::Unreadable(error) => return Err(refused(path, error)),
        }
        if let Some(held) = &step.before {
            self.stage(n, path, held)?;
        }
        Ok(Step { path: path.clone(), before: step.after.clone(), after: step.before.clone() })
    }

    /// Gives the kept content of step `n` a name in our own stage.
    fn stage(&self, n: usize, path: &RepoPath, held: &Held) -> Result<(), Stop> {
        let (new, old) = (new_slot(n), old_slot(n));
        let staged = self.site.stage.at(&new);
        // Deleted paths are in the old slot, as is everything where the file system cannot exchange.
        let linked = match self.site.disk.link(self.kept.at(&old), staged) {
            Err(Errno::NOENT) => self.site.disk.link(self.kept.at(&new), staged),
            done => done,
        };
        match linked {
            Ok(()) => {}
            Err(Errno::NOENT) => return Err(self.not_kept(path)),
            Err(error @ (Errno::NOSPC | Errno::DQUOT | Errno::IO | Errno::ROFS)) => return Err(refused(path, error)),
            // No second names here, too many of them, or not for a file of somebody else's.
            Err(_) => self.copy([self.kept.at(&old), self.kept.at(&new)], staged, path)?,
        }
        match look(staged, self.site.algorithm) {
            Seen::Entry(found) if held.is(&found) => {}
            _ => return Err(self.not_kept(path)),
        }
        if self.sync_each && held.mode.is_file() {
            let synced = open_staged(staged).and_then(|file| self.site.disk.sync(file));
            synced.map_err(|error| refused(path, error))?;
        }
        Ok(())
    }

    fn copy(&self, slots: [At<'_>; 2], staged: At<'_>, path: &RepoPath) -> Result<(), Stop> {
        let disk = &self.site.disk;
        let kept = slots.into_iter().find_map(|slot| Some((slot, look(slot, self.site.algorithm).entry()?)));
        let Some((slot, found)) = kept else { return Err(self.not_kept(path)) };
        let bytes = read(slot, found.mode).map_err(|_| self.not_kept(path))?;
        let copied = || -> rustix::io::Result<()> {
            if !found.mode.is_file() {
                return disk.make_link(staged, &bytes);
            }
            let file = disk.create(staged)?;
            disk.write_all(&file, &bytes)?;
            // The group of a file that the person may not give away stays the person's own.
            let _ = disk.set_group(&file, found.group);
            disk.set_mode(&file, found.bits)
        };
        copied().map_err(|error| refused(path, error))
    }

    fn not_kept(&self, path: &RepoPath) -> Stop {
        let place = self.kept.path().display();
        stop(path, ConflictKind::FileSystem, format!("its old content in {place} is gone or was changed"))
    }

    /// The directories that the apply made and that are still there, innermost first.
    fn emptied(&self) -> Vec<DirectoryBits> {
        let with_bits = self.applied.made.iter().rev().filter_map(|path| {
            let stat = rustix::fs::fstat(self.site.tree.directory(path).ok()?).ok()?;
            Some(DirectoryBits { path: path.clone(), bits: stat.st_mode & 0o7777 })
        });
        with_bits.collect()
    }
}

/// Says at each path that a later apply touched that it did.
fn naming_later(error: ApplyError, records: &Records<'_>, lock: &RepositoryLock, applied: &Intent) -> ApplyError {
    let ApplyError::Conflicts(mut conflicts) = error else { return error };
    let apply = applied.transaction.apply();
    let mut others = Vec::new();
    for transaction in records.list(Progress::Done).unwrap_or_default() {
        if let Transaction::Apply(_) = transaction
            && transaction != applied.transaction
            && let Ok(intent) = records.read(&transaction, Progress::Done)
            && lock.covers(&intent.repository)
            && intent.repository.worktree == applied.repository.worktree
        {
            others.push(intent);
        }
    }
    for conflict in conflicts.iter_mut().filter(|conflict| conflict.kind != ConflictKind::UnsavedText) {
        let path = RepoPath::try_from(conflict.path.clone());
        let Some(left) = applied.steps.iter().find(|step| path.as_ref().is_ok_and(|path| *path == step.path)) else {
            continue;
        };
        // What it found there is what ours had left: it came later.
        let follows =
            |intent: &&Intent| intent.steps.iter().any(|step| step.path == left.path && step.before == left.after);
        if let Some(later) = others.iter().find(follows) {
            conflict.detail = changed_by(later.transaction.apply(), apply);
        }
    }
    ApplyError::Conflicts(conflicts)
}

fn changed_by(later: &ApplyId, ours: &ApplyId) -> String {
    if later.job == ours.job {
        format!("apply {} of this job changed it since", later.number)
    } else {
        format!("apply {} of job {} changed it since", later.number, later.job)
    }
}

fn is_file(held: Option<&Held>) -> bool {
    held.is_some_and(|held| held.mode.is_file())
}

fn open_staged(at: At<'_>) -> rustix::io::Result<OwnedFd> {
    rustix::fs::openat(at.dir, at.name, OFlags::RDONLY | SAFE, Mode::empty())
}
