//! Logins that the end of a turn could not settle: settled later, and kept apart where that fails again, before
//! anything of the job's home is overwritten or removed.

use jiff::Timestamp;
use pactify_core::harness::{LoginWorth, login};
use pactify_core::{AbsPath, JobId};

use super::left::{self, Found};
use super::{BACKUP, Held, LoginError, Logins, MAX_BYTES, Told, Use};
use crate::disk::DiskError;

impl Logins {
    /// Settles what earlier turns of the job left unsettled, and forgets it. What still cannot be looked at goes to the
    /// quarantine; what somebody else holds is refused. Nothing of the job may run. Afterwards its home may go.
    pub(crate) fn settle_late(&self, job: &JobId, home: &AbsPath, at: Timestamp) -> Result<Vec<Told>, LoginError> {
        let mut told = Vec::new();
        for using in self.uses_of(Some(job))? {
            let held = self.hold(&using.login)?;
            match held.settle(&using, home, at) {
                Ok(done) => told.extend(done),
                Err(error) => told.extend(held.keep_apart(&using, home, at, &error)?),
            }
            held.forget(job)?;
        }
        Ok(told)
    }
}

impl Held<'_> {
    /// Keeps what the job left, and what was there before it: the person's own cannot be looked at.
    fn keep_apart(
        &self,
        using: &Use,
        home: &AbsPath,
        at: Timestamp,
        error: &LoginError,
    ) -> Result<Vec<Told>, LoginError> {
        let left = match left::find(home, &using.link, &using.leads_to, using.below.as_deref(), MAX_BYTES) {
            Found::File(bytes) => Some(bytes),
            Found::Nothing | Found::Odd(_) => None,
        };
        let before = match self.dir.read(BACKUP, MAX_BYTES) {
            Err(DiskError::Missing { .. }) => None,
            read => Some(read?),
        };
        let mut kept = vec![left, before];
        kept.dedup();
        let worth_it = |bytes: &Vec<u8>| login::judge(bytes) != LoginWorth::Tombstone;
        let why = error.to_string();
        kept.into_iter().flatten().filter(worth_it).map(|bytes| self.keep(using, at, &why, &bytes)).collect()
    }
}
