//! Names that would be one entry on a folding file system (threat T-17).

use std::collections::{BTreeMap, BTreeSet};

use super::{Action, Checkout};
use crate::RepoPath;
use crate::failure::{Conflict, ConflictKind};
use crate::path::rules::folded;

/// Collisions within the plan, or against the checkout. Directories
/// count like files. Names that exist side by side already are no reason to refuse a change to one of them.
pub(super) fn collisions(actions: &[Action], checkout: &Checkout) -> Vec<Conflict> {
    let mut existing: BTreeSet<&RepoPath> = checkout.neighbours.iter().collect();
    for action in actions.iter().filter(|action| action.becomes.is_none()) {
        existing.remove(action.path.path());
    }
    let mut taken: BTreeMap<Vec<u8>, RepoPath> = BTreeMap::new();
    for path in &existing {
        taken.entry(folded(path)).or_insert_with(|| (*path).clone());
    }
    let mut conflicts = Vec::new();
    for action in actions.iter().filter(|action| action.expected.is_none() && action.becomes.is_some()) {
        let path = action.path.path();
        for name in path.ancestors().chain([path.clone()]).filter(|name| !existing.contains(name)) {
            let holder = taken.entry(folded(&name)).or_insert_with(|| name.clone());
            if *holder != name {
                let detail = format!("{name} is the same as {holder} where a file system folds case or Unicode");
                conflicts.push(Conflict::new(path, ConflictKind::NameCollides, detail));
                break;
            }
        }
    }
    conflicts
}
