//! Which added paths look like deleted ones: for display. Nothing is decided by it.

use pactify_core::change::{Change, ChangeKind};
use pactify_core::{AbsPath, ObjectId, RepoPath};
use serde::{Deserialize, Serialize};

use super::Git;
use super::command::{Call, Place, Verb, unexpected};
use super::error::GitError;

/// More additions or deletions than this are compared by their ids only.
const MOST: &str = "-l1000";

/// A deleted and an added path with similar contents.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rename {
    /// The deleted path.
    pub from: RepoPath,
    /// The added path.
    pub to: RepoPath,
    /// How much of the content stayed, in percent: 50 at least.
    pub similarity: u8,
}

impl Git {
    /// The renames between two trees of a captured result, as `git diff -M` finds them. `changes` are the differences
    /// of the two.
    ///
    /// # Errors
    /// When `capture` does not hold the trees.
    pub fn renames(
        &self,
        capture: &AbsPath,
        base_tree: &ObjectId,
        result_tree: &ObjectId,
        changes: &[Change],
    ) -> Result<Vec<Rename>, GitError> {
        let has = |kind| changes.iter().any(|change| change.kind() == kind);
        if !(has(ChangeKind::Added) && has(ChangeKind::Deleted)) {
            return Ok(Vec::new());
        }
        let place = Place::Private { git_dir: capture, work_tree: None, index: None };
        let call = Call::new(Verb::DiffTree, place)
            .args(["-r", "-z", "--raw", "-M50%", MOST, "--diff-filter=R", "--no-ext-diff", "--no-textconv"])
            .args([base_tree.as_str(), result_tree.as_str()]);
        let answer = self.run(&call)?;
        let mut fields = answer.split(|byte| *byte == 0);
        let mut renames = Vec::new();
        while let Some(facts) = fields.next().filter(|facts| !facts.is_empty()) {
            let (from, to) = (fields.next(), fields.next());
            renames.push(parse(facts, from, to).ok_or_else(|| unexpected(&call, facts))?);
        }
        Ok(renames)
    }
}

/// `:<old mode> <new mode> <old object> <new object> R<percent>`
fn parse(facts: &[u8], from: Option<&[u8]>, to: Option<&[u8]>) -> Option<Rename> {
    let similarity = std::str::from_utf8(facts).ok()?.rsplit_once('R')?.1.parse().ok()?;
    Some(Rename { from: RepoPath::new(from?).ok()?, to: RepoPath::new(to?).ok()?, similarity })
}
