//! From the contents of a snapshot to a commit that needs nothing from the person's repository but the commit below it.
//!
//! What is written so far leans on every object that the person's repository happens to have: one that only the index
//! or a dropped stash knows can be collected tomorrow. So everything that HEAD does not lead to goes into one pack,
//! which git makes durable, and the loose objects go.

use std::fs;

use pactify_core::job::Base;
use pactify_core::{AbsPath, ObjectId};
use serde::{Deserialize, Serialize};

use super::told::Told;
use super::{Shot, Snapshot, Source};
use crate::git::Places;
use crate::git::capture::Outcome;
use crate::git::command::{Call, Verb, unexpected};
use crate::git::config::create_file;
use crate::git::error::GitError;
use crate::git::prepare::{POPULATE, remove};
use crate::git::read::read;

/// The version of `notices.json` that this build writes.
const FORMAT: u32 = 1;

const NOTICES: &str = "notices.json";

#[derive(Serialize, Deserialize)]
struct Notices {
    format: u32,
    notices: Vec<String>,
}

impl Shot<'_> {
    /// Makes the base of `outcomes`, the differences from HEAD, and clears away what was only needed for that.
    pub(super) fn conclude(&self, source: &Source, outcomes: &[Outcome], told: &Told) -> Result<Snapshot, GitError> {
        let head = self.head;
        let tree = self.git.write_tree(&self.git_dir, &head.tree, outcomes)?;
        let base = if tree == head.tree {
            Base { kind: source.kind, ..head.clone() }
        } else {
            let commit = self.commit(&tree)?;
            self.pack(&commit)?;
            Base { kind: source.kind, commit, tree, parent: Some(head.commit.clone()) }
        };
        self.clear()?;
        let notices = [told.sentences(), source.notices.clone()].concat();
        let record = Notices { format: FORMAT, notices: notices.clone() };
        let path = self.git_dir.join(NOTICES);
        let text = serde_json::to_vec(&record).map_err(|error| damaged(&path, error.to_string()))?;
        create_file(&path, &text)?;
        Ok(Snapshot { base, notices })
    }

    fn commit(&self, tree: &ObjectId) -> Result<ObjectId, GitError> {
        let message = format!("Uncommitted changes at the start of pactify job {}\n", self.places.job());
        let call = Call::new(Verb::CommitTree, self.private())
            .args([tree.as_str(), "-p", self.head.commit.as_str()])
            .input(message.into_bytes());
        let line = self.git.line(&call)?;
        line.parse().map_err(|_| unexpected(&call, line.as_bytes()))
    }

    fn pack(&self, commit: &ObjectId) -> Result<(), GitError> {
        let to = self.git_dir.join("objects").join("pack").join("pack");
        let wanted = format!("{commit}\n^{}\n", self.head.commit);
        let call = Call::new(Verb::PackObjects, self.private())
            .settings(&["pack.compression=1", "pack.threads=2"])
            .args(["--revs", "-q", "--window=0"])
            .args([to.as_path().as_os_str()])
            .input(wanted.into_bytes())
            .patience(POPULATE);
        self.git.run(&call).map(drop)
    }

    fn clear(&self) -> Result<(), GitError> {
        let objects = self.git_dir.join("objects");
        let failed = || GitError::io("look into", objects.as_path());
        for entry in fs::read_dir(&objects).map_err(failed())? {
            let name = entry.map_err(failed())?.file_name();
            if let Some(name) = name.to_str().filter(|name| name.len() == 2) {
                remove(&objects.join(name));
            }
        }
        for scratch in ["checkout.index", "texts"] {
            remove(&self.git_dir.join(scratch));
        }
        Ok(())
    }
}

/// What was said when the base of the job of `places` was made.
pub(in crate::git) fn notices(places: &Places) -> Result<Vec<String>, GitError> {
    let path = places.base().join(NOTICES);
    let text = read(path.as_path()).map_err(GitError::io("read", path.as_path()))?;
    let record: Notices = serde_json::from_slice(&text).map_err(|error| damaged(&path, error.to_string()))?;
    match record.format {
        FORMAT => Ok(record.notices),
        other => Err(damaged(&path, format!("it has format {other}, not {FORMAT}"))),
    }
}

fn damaged(path: &AbsPath, why: String) -> GitError {
    GitError::RecordDamaged { path: path.clone(), why }
}
