//! Logins that could not be put where they belong: `PACTIFY_HOME/credential-quarantine`, two files each, 0600.
//!
//! `<id>.login` is what a harness wrote, `<id>.json` says where it belongs and why it is here. Only a person takes them
//! away.

use jiff::Timestamp;
use pactify_core::harness::HarnessName;
use pactify_core::{AbsPath, JobId};
use serde::{Deserialize, Serialize};

use super::{LoginError, MAX_BYTES, MAX_RECORD};
use crate::disk::{Dir, DiskError};
use crate::store::{Area, Store};

const RECORD: &str = ".json";
const LOGIN: &str = ".login";

/// The quarantine, open.
#[derive(Debug)]
pub(crate) struct Quarantine(Dir);

/// What is known of a login in it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Kept {
    /// The job that used it.
    pub(crate) job: JobId,
    /// The harness whose login it is.
    pub(crate) harness: HarnessName,
    /// Where it belongs.
    pub(crate) login: AbsPath,
    /// When it came here.
    pub(crate) at: Timestamp,
    /// Why.
    pub(crate) why: String,
}

impl Quarantine {
    pub(crate) fn open(store: &Store) -> Result<Self, LoginError> {
        Ok(Self(store.area(Area::Quarantine)?))
    }

    /// Keeps a login; returns its id.
    pub(crate) fn put(&self, kept: &Kept, contents: &[u8]) -> Result<String, LoginError> {
        let text = serde_json::to_vec_pretty(kept).map_err(|source| LoginError::Unwritable { source })?;
        let stem = format!("{}-{}-{}", kept.at.strftime("%Y%m%dT%H%M%SZ"), kept.job, kept.harness);
        for number in 1.. {
            let id = if number == 1 { stem.clone() } else { format!("{stem}-{number}") };
            match self.0.write_new(&format!("{id}{LOGIN}"), contents) {
                Err(DiskError::Exists { .. }) => continue,
                written => drop(written?),
            }
            self.0.write_new(&format!("{id}{RECORD}"), &text)?;
            self.0.sync()?;
            return Ok(id);
        }
        unreachable!("there are more numbers than names")
    }

    /// Everything in it, oldest first.
    pub(crate) fn list(&self) -> Result<Vec<(String, Kept)>, LoginError> {
        let names = self.0.names()?;
        let ids = names.iter().filter_map(|name| name.strip_suffix(RECORD));
        let mut found: Vec<_> = ids.filter_map(|id| Some((id.to_owned(), self.record(id)?))).collect();
        found.sort_by(|a, b| a.0.cmp(&b.0));
        Ok(found)
    }

    /// One login.
    pub(crate) fn get(&self, id: &str) -> Result<(Kept, Vec<u8>), LoginError> {
        let unknown = || LoginError::NotQuarantined { id: id.chars().take(120).collect() };
        let plain = |c: char| c.is_ascii_alphanumeric() || c == '-';
        if id.is_empty() || id.len() > 120 || !id.chars().all(plain) {
            return Err(unknown());
        }
        let kept = self.record(id).ok_or_else(unknown)?;
        Ok((kept, self.0.read(&format!("{id}{LOGIN}"), MAX_BYTES)?))
    }

    /// Takes one away.
    pub(crate) fn remove(&self, id: &str) -> Result<(), LoginError> {
        self.get(id)?;
        self.0.remove(&format!("{id}{RECORD}"))?;
        self.0.remove(&format!("{id}{LOGIN}"))?;
        Ok(self.0.sync()?)
    }

    fn record(&self, id: &str) -> Option<Kept> {
        serde_json::from_slice(&self.0.read(&format!("{id}{RECORD}"), MAX_RECORD).ok()?).ok()
    }
}
