//! Taking an apply back, whether it stopped by itself or its process ended at any point.
//!
//! Nothing is remembered about how far it came: for every step the checkout and the step's two slots in the stage
//! are looked at, and [`decide`] says what that means. Repeating it changes nothing, so it may itself be interrupted.
//! A path that the person has edited since is left alone and named.

use std::os::fd::AsFd;

use pactify_core::RepoPath;
use rustix::io::{Errno, Result};

use super::Site;
use super::commit::{make_with_bits, sync};
use super::disk::At;
use super::intent::{Intent, Step};
use super::look::{Found, Seen, look};
use super::stage::{new_slot, old_slot};
use super::tree::Blocked;

/// What a rollback did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RolledBack {
    /// Paths that hold again what they held before.
    pub restored: Vec<RepoPath>,
    /// Paths that were edited since and were left alone; their old contents are kept.
    pub left: Vec<RepoPath>,
}

/// Takes back every step of `intent`.
pub(super) fn roll_back(site: &Site, intent: &Intent) -> Result<RolledBack> {
    let mut outcome = RolledBack::default();
    let (deletions, writes): (Vec<_>, Vec<_>) =
        intent.steps.iter().enumerate().rev().partition(|(_, step)| step.after.is_none());
    for (n, step) in writes {
        undo(site, n, step, &mut outcome)?;
    }
    let restored = intent.restored.iter().map(|directory| &directory.path);
    for directory in restored.rev().chain(intent.made.iter().rev()) {
        remove_if_empty(site, directory)?;
    }
    for (n, step) in deletions {
        if look(site.stage.at(&old_slot(n)), site.algorithm).exists() {
            restore_directories(site, intent, &step.path)?;
        }
        undo(site, n, step, &mut outcome)?;
    }
    sync(site, intent)?;
    Ok(outcome)
}

/// What a place holds, seen from one step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Holds {
    Nothing,
    Before,
    After,
    /// Something else, or something that cannot be looked at.
    Else,
}

/// How one step is taken back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Undo {
    /// It was not made, or is taken back already.
    Nothing,
    /// It was made, and the path was edited since.
    Leave,
    /// Swap the checkout's entry with the one in the new slot.
    Exchange,
    /// Move the checkout's entry, a new one, back into the new slot.
    TakeOut,
    /// Its new entry has a second name in the stage: drop the one in the checkout.
    Unlink,
    /// Move the old entry from the old slot back to the checkout.
    PutBack,
    /// [`Undo::TakeOut`], then [`Undo::PutBack`].
    TakeOutAndPutBack,
    /// [`Undo::Unlink`], then [`Undo::PutBack`].
    UnlinkAndPutBack,
}

/// What is known about one step.
#[derive(Clone, Copy, Debug)]
struct Facts {
    deletion: bool,
    addition: bool,
    live: Holds,
    new: Holds,
    old: Holds,
    /// The checkout's entry is the very file in the new slot, by a second name.
    live_is_new: bool,
    /// The checkout's entry is the very file in the old slot, by a second name.
    live_is_old: bool,
}

fn decide(facts: Facts) -> Undo {
    use Holds as H;
    let Facts { live, new, old, live_is_new, live_is_old, .. } = facts;
    if facts.addition {
        return match (live, new) {
            (H::After, H::After) if live_is_new => Undo::Unlink,
            (H::After, H::Nothing) => Undo::TakeOut,
            (H::Else, H::Nothing) => Undo::Leave,
            _ => Undo::Nothing,
        };
    }
    if old != H::Nothing {
        // A deletion, or a change where the file system cannot exchange: the old entry was moved away first.
        return match live {
            _ if live_is_old => Undo::Nothing,
            H::Nothing => Undo::PutBack,
            H::After if !facts.deletion && new == H::Nothing => Undo::TakeOutAndPutBack,
            H::After if !facts.deletion && live_is_new => Undo::UnlinkAndPutBack,
            _ => Undo::Leave,
        };
    }
    if facts.deletion {
        return Undo::Nothing;
    }
    match (live, new) {
        (H::Before, _) | (_, H::After) => Undo::Nothing,
        (H::After, H::Before | H::Else) => Undo::Exchange,
        _ => Undo::Leave,
    }
}

fn undo(site: &Site, n: usize, step: &Step, outcome: &mut RolledBack) -> Result<()> {
    let (new_name, old_name) = (new_slot(n), old_slot(n));
    let (new_at, old_at) = (site.stage.at(&new_name), site.stage.at(&old_name));
    let parent = site.tree.parent_of(&step.path);
    let live_seen = match &parent {
        Ok(parent) => look(At { dir: parent.as_fd(), name: step.path.file_name() }, site.algorithm),
        Err(Blocked::Unreadable(_, error)) => Seen::Unreadable(*error),
        // Where a directory is missing, or something else is in its place, nothing is below it.
        Err(_) => Seen::Absent,
    };
    let (new_seen, old_seen) = (look(new_at, site.algorithm), look(old_at, site.algorithm));
    let decision = decide(Facts {
        deletion: step.after.is_none(),
        addition: step.before.is_none(),
        live: holds(&live_seen, step),
        new: holds(&new_seen, step),
        old: holds(&old_seen, step),
        live_is_new: same_file(&live_seen, &new_seen),
        live_is_old: same_file(&live_seen, &old_seen),
    });
    let parent = match (decision, parent) {
        (Undo::Nothing, _) => return Ok(()),
        (Undo::Leave, _) => {
            outcome.left.push(step.path.clone());
            return Ok(());
        }
        (_, Ok(parent)) => parent,
        // What was there has no place any more.
        (_, Err(_)) => {
            outcome.left.push(step.path.clone());
            return Ok(());
        }
    };
    let live = At { dir: parent.as_fd(), name: step.path.file_name() };
    let taken_back = match decision {
        Undo::Nothing | Undo::Leave => true,
        Undo::Exchange => exchange_back(site, live, new_at, step)?,
        Undo::TakeOut => take_out(site, live, new_at, step)?,
        Undo::Unlink => site.disk.unlink(live).map(|()| true)?,
        Undo::PutBack => put_back(site, old_at, live)?,
        Undo::TakeOutAndPutBack => take_out(site, live, new_at, step)? && put_back(site, old_at, live)?,
        Undo::UnlinkAndPutBack => {
            site.disk.unlink(live)?;
            put_back(site, old_at, live)?
        }
    };
    let list = if taken_back { &mut outcome.restored } else { &mut outcome.left };
    list.push(step.path.clone());
    Ok(())
}

/// Swaps until what comes out of the checkout is what we last put there: anything else is a save that came between
/// and has to go back. True when the first swap was enough.
fn exchange_back(site: &Site, live: At<'_>, slot: At<'_>, step: &Step) -> Result<bool> {
    let mut ours = step.after.clone();
    for round in 0.. {
        let goes_in = look(slot, site.algorithm).entry();
        match site.disk.exchange(slot, live) {
            // The person deleted it in this moment.
            Err(Errno::NOENT) => return Ok(false),
            done => done?,
        }
        let out = look(slot, site.algorithm).entry();
        let ours_came_out = match (&out, &ours) {
            (Some(found), Some(held)) => held.is(found),
            _ => false,
        };
        if ours_came_out {
            return Ok(round == 0);
        }
        ours = goes_in.map(|found| super::intent::Held { mode: found.mode, object: found.object });
    }
    Ok(false)
}

fn take_out(site: &Site, live: At<'_>, slot: At<'_>, step: &Step) -> Result<bool> {
    site.disk.move_to_free(live, slot)?;
    let found = look(slot, site.algorithm);
    if holds(&found, step) == Holds::After {
        return Ok(true);
    }
    // It was saved between the look and the move.
    put_back(site, slot, live)?;
    Ok(false)
}

fn put_back(site: &Site, from: At<'_>, live: At<'_>) -> Result<bool> {
    match site.disk.move_to_free(from, live) {
        Ok(()) => Ok(true),
        Err(Errno::EXIST) => Ok(false),
        Err(error) => Err(error),
    }
}

/// Makes the recorded directories above `path` again, with the bits that they had.
fn restore_directories(site: &Site, intent: &Intent, path: &RepoPath) -> Result<()> {
    for directory in path.ancestors() {
        let Some(recorded) = intent.emptied.iter().find(|emptied| emptied.path == directory) else { continue };
        let Ok(parent) = site.tree.parent_of(&directory) else { continue };
        match make_with_bits(site, &parent, directory.file_name(), recorded.bits) {
            Ok(()) | Err(Errno::EXIST) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

fn remove_if_empty(site: &Site, directory: &RepoPath) -> Result<()> {
    let Ok(parent) = site.tree.parent_of(directory) else { return Ok(()) };
    match site.disk.remove_directory(At { dir: parent.as_fd(), name: directory.file_name() }) {
        // Not ours any more: somebody put something into it, or something else in its place.
        Ok(()) | Err(Errno::NOENT | Errno::NOTEMPTY | Errno::EXIST | Errno::NOTDIR) => Ok(()),
        Err(error) => Err(error),
    }
}

fn holds(seen: &Seen, step: &Step) -> Holds {
    let is = |side: &Option<super::intent::Held>, found: &Found| side.as_ref().is_some_and(|held| held.is(found));
    match seen {
        Seen::Absent => Holds::Nothing,
        Seen::Entry(found) if is(&step.after, found) => Holds::After,
        Seen::Entry(found) if is(&step.before, found) => Holds::Before,
        _ => Holds::Else,
    }
}

fn same_file(a: &Seen, b: &Seen) -> bool {
    matches!((a, b), (Seen::Entry(a), Seen::Entry(b)) if a.stamp.same_inode(&b.stamp))
}

impl Seen {
    fn exists(&self) -> bool {
        !matches!(self, Self::Absent)
    }
}

#[cfg(test)]
mod tests {
    use super::Holds::{After, Before, Else, Nothing};
    use super::*;

    fn facts(live: Holds, new: Holds, old: Holds) -> Facts {
        Facts { deletion: false, addition: false, live, new, old, live_is_new: false, live_is_old: false }
    }

    #[test]
    fn a_change_is_taken_back_exactly_when_it_was_made() {
        for (live, new, old, expected) in [
            (Before, After, Nothing, Undo::Nothing),
            (After, Before, Nothing, Undo::Exchange),
            // A save that raced the exchange came out instead of the old content.
            (After, Else, Nothing, Undo::Exchange),
            // Somebody wrote the same content before we did.
            (After, After, Nothing, Undo::Nothing),
            (Else, After, Nothing, Undo::Nothing),
            (Nothing, After, Nothing, Undo::Nothing),
            (Else, Before, Nothing, Undo::Leave),
            (Nothing, Before, Nothing, Undo::Leave),
            (After, Nothing, Nothing, Undo::Leave),
            // Without an exchange.
            (Nothing, After, Before, Undo::PutBack),
            (Nothing, After, Else, Undo::PutBack),
            (After, Nothing, Before, Undo::TakeOutAndPutBack),
            (Else, After, Before, Undo::Leave),
            (After, After, Before, Undo::Leave),
        ] {
            assert_eq!(decide(facts(live, new, old)), expected, "{live:?} {new:?} {old:?}");
        }
        let linked = Facts { live_is_new: true, ..facts(After, After, Before) };
        assert_eq!(decide(linked), Undo::UnlinkAndPutBack);
        let restored = Facts { live_is_old: true, ..facts(Before, After, Before) };
        assert_eq!(decide(restored), Undo::Nothing);
    }

    #[test]
    fn an_addition_is_taken_back_exactly_when_it_was_made() {
        for (live, new, expected) in [
            (Nothing, After, Undo::Nothing),
            (After, Nothing, Undo::TakeOut),
            (After, After, Undo::Nothing),
            (Else, After, Undo::Nothing),
            (Else, Nothing, Undo::Leave),
            (Nothing, Nothing, Undo::Nothing),
        ] {
            let facts = Facts { addition: true, ..facts(live, new, Nothing) };
            assert_eq!(decide(facts), expected, "{live:?} {new:?}");
        }
        let linked = Facts { addition: true, live_is_new: true, ..facts(After, After, Nothing) };
        assert_eq!(decide(linked), Undo::Unlink);
    }

    #[test]
    fn a_deletion_is_taken_back_exactly_when_it_was_made() {
        for (live, old, expected) in [
            (Before, Nothing, Undo::Nothing),
            (Nothing, Before, Undo::PutBack),
            (Nothing, Else, Undo::PutBack),
            (Else, Before, Undo::Leave),
            (Before, Before, Undo::Leave),
            (Nothing, Nothing, Undo::Nothing),
        ] {
            let facts = Facts { deletion: true, ..facts(live, Nothing, old) };
            assert_eq!(decide(facts), expected, "{live:?} {old:?}");
        }
    }
}
