//! Repairing what an interrupted apply left. Run by the next command that writes to the repository (apply, undo,
//! discard), never by one that only reads.

use std::path::PathBuf;
use std::time::Duration;

use pactify_core::JobId;
use rustix::io::Errno;

use super::disk::Disk;
use super::error::ApplyError;
use super::intent::{ApplyId, Intent, Progress, Records, StageHome, Transaction};
use super::lock::RepositoryLock;
use super::rollback::{RolledBack, roll_back};
use super::stage::StageRoot;
use super::tree::Tree;
use super::{Applied, Site};
use crate::disk::DiskError;
use crate::hash::Algorithm;
use crate::store::{Area, Store, StoreError};

/// One interrupted apply, repaired.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recovered {
    /// Which apply, or the undo of which.
    pub apply: ApplyId,
    /// What was taken back, and what was left alone.
    pub rolled_back: RolledBack,
    /// Where the old contents of paths that were left alone are.
    pub kept: Option<PathBuf>,
}

/// Takes back every interrupted apply of the locked repository, and clears away what they left.
///
/// Applies to other checkouts of the repository are taken back too, where those are there.
///
/// # Errors
/// When a record is unusable or the system refuses a step; what could be repaired is, and the next run continues.
pub fn recover(lock: &RepositoryLock) -> Result<Vec<Recovered>, ApplyError> {
    recover_with(lock, Disk::new())
}

/// The apply of this name, if it is in the checkout: for a caller whose process ended before it could say so in the
/// job's journal.
///
/// # Errors
/// When its record is unusable.
pub fn finished(lock: &RepositoryLock, apply: &ApplyId) -> Result<Option<Applied>, ApplyError> {
    let records = Records::open(lock)?;
    let transaction = apply.into();
    if records.progress(&transaction) != Some(Progress::Done) {
        return Ok(None);
    }
    let intent = records.read(&transaction, Progress::Done)?;
    Ok(Some(Applied {
        apply: apply.clone(),
        change_set: intent.change_set,
        complete: intent.complete,
        accepted: intent.accepted,
        written: intent.steps.into_iter().map(|step| step.path).collect(),
        already: vec![],
        stage: intent.stage,
    }))
}

/// Whether an apply of this name was interrupted and taken back but for paths that had been edited since: their old
/// contents are kept under it, and no other one can have it.
///
/// # Errors
/// When the records are out of reach.
pub fn is_left(lock: &RepositoryLock, apply: &ApplyId) -> Result<bool, ApplyError> {
    Ok(Records::open(lock)?.progress(&apply.into()) == Some(Progress::Left))
}

/// Deletes the record of a finished apply and the old contents that were kept for taking it back, and what is recorded
/// of taking it back: that last, so that whoever is interrupted here still finds it.
///
/// # Errors
/// When the store or the staging directory cannot be written.
pub fn forget(lock: &RepositoryLock, apply: &ApplyId) -> Result<(), ApplyError> {
    let disk = Disk::new();
    let records = Records::open(lock)?;
    for progress in [Progress::Done, Progress::Left] {
        let mut recorded = records.list(progress)?;
        recorded.retain(|transaction| transaction.apply() == apply);
        for transaction in recorded {
            forget_one(lock, &records, &transaction, progress, &disk)?;
        }
    }
    Ok(())
}

/// The same for every apply of jobs that `is_gone`; returns how many records went. What cannot be deleted stays.
///
/// # Errors
/// When the records cannot be listed.
pub fn forget_of(store: &Store, patience: Duration, is_gone: &dyn Fn(&JobId) -> bool) -> Result<u32, ApplyError> {
    let directory = store.area(Area::Applies)?;
    let mut forgotten = 0;
    for progress in [Progress::Done, Progress::Left] {
        for transaction in Records::list_in(&directory, progress)? {
            let apply = transaction.apply();
            if !is_gone(&apply.job) {
                continue;
            }
            // One that went with another one of its apply is not there any more.
            let Ok(intent) = Records::read_in(&directory, &transaction, progress) else { continue };
            let forget =
                RepositoryLock::acquire(store, &intent.repository, patience).and_then(|lock| forget(&lock, apply));
            match forget {
                Ok(()) => forgotten += 1,
                Err(error) => tracing::warn!(%apply, %error, "what was kept for an apply of a job that is gone stays"),
            }
        }
    }
    Ok(forgotten)
}

fn forget_one(
    lock: &RepositoryLock,
    records: &Records<'_>,
    transaction: &Transaction,
    progress: Progress,
    disk: &Disk,
) -> Result<(), ApplyError> {
    let intent = records.read(transaction, progress)?;
    let root = StageRoot::open(&intent.repository, lock.store().home(), intent.stage);
    // The old contents first: a stage without a record is found only where its repository is.
    match root.and_then(|root| root.remove(transaction, disk)) {
        Ok(()) | Err(Errno::NOENT) => {}
        Err(error) => return Err(store_error(lock, error)),
    }
    records.remove(transaction, progress, disk).map_err(|error| store_error(lock, error))
}

pub(super) fn recover_with(lock: &RepositoryLock, disk: Disk) -> Result<Vec<Recovered>, ApplyError> {
    let records = Records::open(lock)?;
    records.tidy(&disk).map_err(|error| ApplyError::Store { path: records.torn(), source: error.into() })?;
    let mut disk = disk;
    let mut recovered = Vec::new();
    for intent in pending(&records, lock)? {
        let elsewhere = intent.repository.worktree != lock.repository().worktree;
        if elsewhere && !intent.repository.worktree.as_path().is_dir() {
            continue;
        }
        let (repaired, used) = repair(lock, &records, &intent, disk)?;
        disk = used;
        recovered.push(repaired);
    }
    clear_orphans(lock, &records, &disk)?;
    Ok(recovered)
}

/// The applies, of every repository, that were cut off and not taken back yet. One that is going on holds its
/// repository's lock, and is none of them.
///
/// # Errors
/// When the store is out of reach.
pub fn interrupted(store: &Store) -> Result<Vec<ApplyId>, ApplyError> {
    let names = store.names_in(Area::Applies, Progress::Intent.extension())?;
    let mut found = Vec::new();
    for name in names.iter() {
        let stem = name.strip_suffix(Progress::Intent.extension()).and_then(|stem| stem.strip_suffix('.'));
        let Some(apply) = stem.and_then(|stem| stem.parse::<Transaction>().ok()).map(|it| it.apply().clone()) else {
            continue;
        };
        let repository = store.job(&apply.job).ok().and_then(|job| job.spec().ok()).map(|spec| spec.repository);
        let probe = repository.map(|repository| RepositoryLock::probe(store, &repository));
        let goes_on = match &probe {
            Some(Ok(None)) => true,
            // It may have ended since its name was read.
            Some(Ok(Some(_))) => store.area(Area::Applies)?.lookup(name).map_err(StoreError::from)?.is_none(),
            Some(Err(_)) | None => false,
        };
        if !goes_on {
            found.push(apply);
        }
    }
    found.sort();
    found.dedup();
    Ok(found)
}

/// The interrupted applies of the locked repository.
pub(super) fn pending(records: &Records<'_>, lock: &RepositoryLock) -> Result<Vec<Intent>, ApplyError> {
    let mut pending = Vec::new();
    for transaction in records.list(Progress::Intent)? {
        match records.read(&transaction, Progress::Intent) {
            Ok(intent) if lock.covers(&intent.repository) => pending.push(intent),
            Ok(_) => {}
            // Another repository's apply ended, well or badly, since the list was read.
            Err(ApplyError::Unavailable(StoreError::Disk(DiskError::Missing { .. }))) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(pending)
}

/// Ends a rollback: the record goes, or says that paths were left, and the stage goes with it unless it is needed.
pub(super) fn conclude(
    site: &Site,
    root: &StageRoot,
    records: &Records<'_>,
    transaction: &Transaction,
    rolled_back: &RolledBack,
) -> rustix::io::Result<Option<PathBuf>> {
    if rolled_back.left.is_empty() {
        records.remove(transaction, Progress::Intent, &site.disk)?;
        root.remove(transaction, &site.disk)?;
        return Ok(None);
    }
    records.advance(transaction, Progress::Left, &site.disk)?;
    Ok(Some(site.stage.path().clone()))
}

fn repair(
    lock: &RepositoryLock,
    records: &Records<'_>,
    intent: &Intent,
    disk: Disk,
) -> Result<(Recovered, Disk), ApplyError> {
    let repository = &intent.repository;
    let tree = Tree::open(&repository.worktree)
        .map_err(|source| ApplyError::Checkout { path: repository.worktree.clone(), source })?;
    let root =
        StageRoot::open(repository, lock.store().home(), intent.stage).map_err(|error| store_error(lock, error))?;
    let stage = root.create(&intent.transaction, false, &disk).map_err(|error| root.refusal(error))?;
    let algorithm = Algorithm::of(intent.change_set.tree());
    let site = Site { tree, stage, disk, algorithm, prefix: repository.prefix.clone() };
    let repaired = roll_back(&site, intent).and_then(|rolled_back| {
        let kept = conclude(&site, &root, records, &intent.transaction, &rolled_back)?;
        Ok(Recovered { apply: intent.transaction.apply().clone(), rolled_back, kept })
    });
    match repaired {
        Ok(repaired) => Ok((repaired, site.disk)),
        Err(error) => {
            let apply = intent.transaction.apply().clone();
            Err(ApplyError::NotRolledBack { apply, conflicts: vec![], source: error.into() })
        }
    }
}

/// Removes staging directories of applies that ended before they had a record: nothing of them is in the checkout.
fn clear_orphans(lock: &RepositoryLock, records: &Records<'_>, disk: &Disk) -> Result<(), ApplyError> {
    for home in [StageHome::GitDirectory, StageHome::Checkout] {
        let root = match StageRoot::open(lock.repository(), lock.store().home(), home) {
            Ok(root) => root,
            Err(Errno::NOENT) => continue,
            Err(error) => return Err(store_error(lock, error)),
        };
        let clear = || {
            for transaction in root.list()? {
                if records.progress(&transaction).is_none() {
                    root.remove(&transaction, disk)?;
                }
            }
            root.remove_if_empty(disk)
        };
        clear().map_err(|error| root.refusal(error))?;
    }
    Ok(())
}

fn store_error(lock: &RepositoryLock, error: Errno) -> ApplyError {
    ApplyError::Store { path: lock.repository().git_dir.as_path().to_owned(), source: error.into() }
}
