//! What the person decided about texts that a repository proposes, in `PACTIFY_HOME/approvals`: one file each, named by
//! a digest of repository and text.
//!
//! A decision holds for exactly one text in exactly one repository (all of its checkouts); any other text is a new
//! question. A file that does not say what its name says counts as none.

use jiff::Timestamp;
use pactify_core::AbsPath;
use pactify_core::job::setup::{ApprovalKind, Decision};
use serde::{Deserialize, Serialize};

use crate::disk::{Dir, DiskError};
use crate::hash::sha256_of;
use crate::store::{Area, Store, StoreError};

/// The version of the files that this build writes.
const FORMAT: u32 = 1;

/// The longest file that is read, in bytes.
const MAX_BYTES: u64 = 64 << 10;

/// Every decision of this person.
#[derive(Debug)]
pub(crate) struct Approvals(Dir);

/// What a decision is about.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Subject {
    pub(crate) kind: ApprovalKind,
    /// The git directory that all checkouts of the repository share.
    pub(crate) repository: AbsPath,
    pub(crate) text: String,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Record {
    format: u32,
    #[serde(flatten)]
    subject: Subject,
    decision: Decision,
    at: Timestamp,
}

impl Approvals {
    pub(crate) fn open(store: &Store) -> Result<Self, StoreError> {
        Ok(Self(store.area(Area::Approvals)?))
    }

    /// What was decided about `subject`; `None` when that was never asked.
    pub(crate) fn decision(&self, subject: &Subject) -> Result<Option<Decision>, DiskError> {
        let text = match self.0.read(&subject.file_name(), MAX_BYTES) {
            Err(DiskError::Missing { .. }) => return Ok(None),
            text => text?,
        };
        let record: Option<Record> = serde_json::from_slice(&text).ok();
        let record = record.filter(|record| record.format == FORMAT && record.subject == *subject);
        Ok(record.map(|record| record.decision))
    }

    /// Keeps a decision, in place of an earlier one.
    pub(crate) fn decide(&self, subject: Subject, decision: Decision, at: Timestamp) -> Result<(), StoreError> {
        let name = subject.file_name();
        let text = serde_json::to_vec_pretty(&Record { format: FORMAT, subject, decision, at });
        let text = text.map_err(|source| StoreError::Unwritable { source })?;
        Ok(self.0.replace(&name, &text, true)?)
    }
}

impl Subject {
    fn file_name(&self) -> String {
        let kind = match self.kind {
            ApprovalKind::Setup => "setup",
            ApprovalKind::Verify => "verify",
        };
        let repository = self.repository.as_path().as_os_str().as_encoded_bytes();
        format!("{kind}-{}.json", sha256_of(&[repository, b"\0", self.text.as_bytes()].concat()))
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn a_decision_holds_for_one_text_in_one_repository() {
        let home = tempfile::tempdir().unwrap();
        let home = AbsPath::new(home.path().canonicalize().unwrap().join("pactify")).unwrap();
        let approvals = Approvals::open(&Store::open(&home).unwrap()).unwrap();
        let subject = |repository: &str, text: &str| Subject {
            kind: ApprovalKind::Setup,
            repository: AbsPath::new(repository).unwrap(),
            text: text.to_owned(),
        };
        let asked = subject("/r/.git", "npm ci");
        assert_eq!(approvals.decision(&asked).unwrap(), None);
        for decision in [Decision::Deny, Decision::Allow] {
            approvals.decide(asked.clone(), decision, Timestamp::UNIX_EPOCH).unwrap();
            assert_eq!(approvals.decision(&asked).unwrap(), Some(decision));
        }
        for other in [subject("/r/.git", "npm ci "), subject("/r2/.git", "npm ci"), subject("/r/.git", "npm")] {
            assert_eq!(approvals.decision(&other).unwrap(), None, "{other:?}");
        }
        let file = home.join("approvals").join(&asked.file_name());
        assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
        // Another text under this one's name.
        let text = std::fs::read_to_string(&file).unwrap().replace("npm ci", "rm -rf ~");
        std::fs::write(&file, text).unwrap();
        assert_eq!(approvals.decision(&asked).unwrap(), None);
    }
}
