//! Putting a checked plan into the person's checkout: all of it or none, whatever happens in between.
//!
//! [`observe`] looks at the checkout, core's `ChangeSet::check` decides, [`apply`] executes, [`recover`] repairs what
//! an interruption left. The way of an apply: look again and stage every new content beside the checkout (`prepare`);
//! make a record of every step durable (`intent`); exchange each path with its staged version and look at what came out
//! (`commit`); mark the record as done. Before the mark, everything can be and is taken back (`rollback`): each step is
//! decided by what its places hold, not by a memory of how far things went. Old contents stay staged, so that an apply
//! can be undone until its job is discarded.
//!
//! [`undo()`] is the same transaction with both sides swapped (`undo`).
//!
//! Not done here: nothing is staged, committed, stashed or locked in git's sense, and the index is never opened. No
//! path is followed through a link; no file is ever written in place. What may be written at all is decided in
//! `pactify_core::change::plan` and `path::rules`.
//!
//! What is kept of a file that changes: its permission bits (executable ones follow the change) and, where the
//! person may, its group. Like git, an apply gives a file a new inode: hard links, ACLs and extended attributes of the
//! old one stay with the old content.

mod commit;
mod contents;
mod disk;
mod error;
mod intent;
mod lock;
mod look;
mod observe;
mod prepare;
mod recover;
mod rollback;
mod stage;
mod tree;
mod undo;
pub mod unsaved;

use pactify_core::change::plan::CheckedPlan;
use pactify_core::failure::{Conflict, ConflictKind};
use pactify_core::{ChangeSetId, ObjectId, RepoPath};
use rustix::io::Errno;

pub use self::contents::{Canonical, Contents, Verbatim};
#[cfg(feature = "fault-injection")]
pub use self::disk::fault;
pub use self::error::ApplyError;
pub use self::intent::{ApplyId, ParseApplyIdError, StageHome};
pub use self::lock::RepositoryLock;
pub use self::observe::{Current, current, observe};
pub use self::recover::{Recovered, finished, forget, forget_of, interrupted, is_left, recover};
pub use self::rollback::RolledBack;
pub use self::undo::{Undone, undo, undone};

use self::disk::Disk;
use self::intent::{Intent, Progress, Records, Transaction};
use self::prepare::Prepared;
use self::stage::{Stage, StageRoot};
use self::tree::Tree;
use crate::hash::Algorithm;

/// What an apply writes with.
#[derive(Clone, Copy)]
pub struct Materials<'a> {
    /// Where the captured contents are.
    pub contents: &'a dyn Contents,
    /// How the checkout's bytes relate to stored ones.
    pub canonical: &'a dyn Canonical,
}

/// An apply that is in the checkout, durably.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Applied {
    /// Its name; its record and the old contents are kept under it.
    pub apply: ApplyId,
    /// The result that it took from.
    pub change_set: ChangeSetId,
    /// Whether nothing of the result is left to apply.
    pub complete: bool,
    /// The tree of all that is accepted now, as the plan named it.
    pub accepted: Option<ObjectId>,
    /// Paths written or deleted.
    pub written: Vec<RepoPath>,
    /// Chosen paths that held what was chosen already.
    pub already: Vec<RepoPath>,
    /// Where the old contents are kept. In the checkout itself, they are worth a word to the person.
    pub stage: StageHome,
}

/// Executes `plan` in the checkout of the locked repository.
///
/// `id` names the apply; the caller records it in the job's journal. [`recover`] has to have run under the same lock.
/// When every chosen path holds its result already, nothing is written and no record is kept.
///
/// # Errors
/// After every error but [`ApplyError::NotRolledBack`] the checkout is as it was.
pub fn apply(
    plan: CheckedPlan,
    id: &ApplyId,
    materials: Materials<'_>,
    lock: &RepositoryLock,
) -> Result<Applied, ApplyError> {
    apply_with(plan, id, materials, lock, Disk::new())
}

/// The places that one apply works on.
#[derive(Debug)]
struct Site {
    tree: Tree,
    stage: Stage,
    disk: Disk,
    algorithm: Algorithm,
    /// The folder that the editor has open, which is kept even when it is empty.
    prefix: String,
}

impl Site {
    fn stage_error(&self, error: Errno) -> ApplyError {
        ApplyError::Store { path: self.stage.path().clone(), source: error.into() }
    }
}

fn apply_with(
    plan: CheckedPlan,
    id: &ApplyId,
    materials: Materials<'_>,
    lock: &RepositoryLock,
    disk: Disk,
) -> Result<Applied, ApplyError> {
    let repository = lock.repository();
    let records = Records::open(lock)?;
    refuse_pending(&records, lock)?;
    if plan.actions().is_empty() {
        return Ok(Applied {
            apply: id.clone(),
            change_set: plan.change_set().clone(),
            complete: plan.is_complete(),
            accepted: plan.accepted().cloned(),
            written: vec![],
            already: plan.already().to_vec(),
            stage: StageHome::GitDirectory,
        });
    }
    let transaction = Transaction::from(id);
    if records.progress(&transaction).is_some() {
        return Err(ApplyError::Exists(id.clone()));
    }
    let tree = Tree::open(&repository.worktree)
        .map_err(|source| ApplyError::Checkout { path: repository.worktree.clone(), source })?;
    let unusable = |error: Errno| ApplyError::Store { path: repository.git_dir.as_path().into(), source: error.into() };
    let root = StageRoot::choose(repository, lock.store().home(), &tree).map_err(unusable)?;
    let stage = root.create(&transaction, true, &disk).map_err(|error| root.refusal(error))?;
    let algorithm = Algorithm::of(plan.change_set().tree());
    let site = Site { tree, stage, disk, algorithm, prefix: repository.prefix.clone() };
    let intent = Intent::new(transaction, repository.clone(), &plan, root.home());
    let intent = carry_out(&site, &root, &records, intent, || prepare::prepare(&site, &plan, &materials))?;
    Ok(Applied {
        apply: id.clone(),
        change_set: intent.change_set,
        complete: intent.complete,
        accepted: intent.accepted,
        written: intent.steps.into_iter().map(|step| step.path).collect(),
        already: plan.already().to_vec(),
        stage: intent.stage,
    })
}

/// One transaction at a time: what an interrupted one left has to be repaired first.
fn refuse_pending(records: &Records<'_>, lock: &RepositoryLock) -> Result<(), ApplyError> {
    let pending = recover::pending(records, lock)?;
    match pending.into_iter().find(|intent| intent.repository == *lock.repository()) {
        Some(intent) => Err(ApplyError::Pending(intent.transaction.apply().clone())),
        None => Ok(()),
    }
}

/// Prepares a transaction, records it, and executes it: all of it, or nothing and no trace.
fn carry_out(
    site: &Site,
    root: &StageRoot,
    records: &Records<'_>,
    mut intent: Intent,
    prepare: impl FnOnce() -> Result<Prepared, ApplyError>,
) -> Result<Intent, ApplyError> {
    let prepared = prepare().and_then(|prepared| {
        (intent.steps, intent.made, intent.restored, intent.emptied) =
            (prepared.steps, prepared.made, prepared.restored, prepared.emptied);
        records.begin(&intent, &site.disk)
    });
    if let Err(error) = prepared {
        // The record may be there although making it durable failed: it goes first, as long as the stage is whole.
        let recorded = records.progress(&intent.transaction) == Some(Progress::Intent);
        if !recorded || records.remove(&intent.transaction, Progress::Intent, &site.disk).is_ok() {
            // What stays behind is cleared by the next repair.
            let _ = root.remove(&intent.transaction, &site.disk);
        }
        return Err(error);
    }
    execute(site, root, records, &intent)?;
    Ok(intent)
}

/// Commits a recorded intent, or takes it back.
fn execute(site: &Site, root: &StageRoot, records: &Records<'_>, intent: &Intent) -> Result<(), ApplyError> {
    let failure = match commit::commit(site, intent) {
        Err(stopped) => stopped.into(),
        Ok(()) => match records.advance(&intent.transaction, Progress::Done, &site.disk) {
            // The mark may be there although making it durable failed.
            Err(error) if records.progress(&intent.transaction) == Some(Progress::Intent) => site.stage_error(error),
            _ => return Ok(()),
        },
    };
    let taken_back = rollback::roll_back(site, intent).and_then(|rolled_back| {
        recover::conclude(site, root, records, &intent.transaction, &rolled_back)?;
        Ok(rolled_back)
    });
    match taken_back {
        Ok(rolled_back) => Err(failure.and(rolled_back.left.iter().map(edited_meanwhile))),
        Err(error) => {
            let conflicts = failure.into_conflicts();
            let apply = intent.transaction.apply().clone();
            Err(ApplyError::NotRolledBack { apply, conflicts, source: error.into() })
        }
    }
}

fn edited_meanwhile(path: &RepoPath) -> Conflict {
    let detail = "it was edited while the apply ran, and was left as it is";
    Conflict::new(path, ConflictKind::ContentDiffers, detail)
}

#[cfg(test)]
pub(crate) mod tests;
