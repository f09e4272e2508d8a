//! The person's logins, while jobs use them: what they were before, and what becomes of them afterwards.
//!
//! `PACTIFY_HOME/logins/<key>/` is one login in use (the key is a digest of its path): a record for each job that uses
//! it, and a copy of the last good state, which the last of them takes away. Whoever looks or writes there holds the
//! login's lock. What a job left in its home is untrusted: [`left`] follows nothing and bounds everything. What is to
//! be done is decided by [`pactify_core::harness::login::settle`]; [`place`] puts a login into the person's directory.
//! What cannot be put back goes to the [`quarantine`].

mod error;
mod left;
mod place;
pub(crate) mod quarantine;
mod unsettled;

use std::fs::{File, TryLockError};
use std::time::{Duration, Instant};

use jiff::Timestamp;
use pactify_core::harness::login::settle::{After, Copied, Left, Settled, Theirs, Why, settle};
use pactify_core::harness::{Harness, HarnessName, LinkKind, LoginWorth, PlannedLink, login};
use pactify_core::{AbsPath, JobId};
use serde::{Deserialize, Serialize};

use crate::disk::{Dir, DiskError, FileId, Open};
use crate::hash::sha256_of;
use crate::process::VerifiedDead;
use crate::store::{Area, Store};

pub(crate) use error::LoginError;
use left::Found;
use place::Place;
use quarantine::{Kept, Quarantine};

/// The version of the records that this build writes.
const FORMAT: u32 = 1;

/// The longest login that is looked at, in bytes. (Those measured have some kilobytes.)
const MAX_BYTES: u64 = 1 << 20;

/// The longest record, in bytes.
const MAX_RECORD: u64 = 64 << 10;

/// How many logins of one directory are looked after.
const MAX_LOGINS: usize = 32;

/// How long another process may hold a login.
const PATIENCE: Duration = Duration::from_secs(20);

const BACKUP: &str = "backup";

/// Why what stood beside a login is kept.
const BESIDE: &str = "it stood beside your own login while that was written";

/// Every login in use.
#[derive(Debug)]
pub(crate) struct Logins {
    store: Store,
    area: Dir,
}

/// A job's use of a login.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Use {
    format: u32,
    pub(crate) job: JobId,
    pub(crate) harness: HarnessName,
    /// The link, from the job's home.
    link: Vec<String>,
    /// What the link leads to.
    leads_to: AbsPath,
    /// The file below it, where that is a directory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    below: Option<String>,
    /// The login itself, resolved.
    pub(crate) login: AbsPath,
    /// The directory that it is in.
    directory: FileRecord,
    /// The digest of what it was before the job.
    before: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct FileRecord {
    device: u64,
    inode: u64,
}

/// What was done about a login after a job, to be told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Told {
    /// A stable name.
    pub(crate) id: &'static str,
    /// One sentence.
    pub(crate) text: String,
}

/// One login, locked.
struct Held<'a> {
    logins: &'a Logins,
    key: String,
    dir: Dir,
    _lock: File,
}

impl Logins {
    pub(crate) fn open(store: &Store) -> Result<Self, LoginError> {
        Ok(Self { store: store.clone(), area: store.area(Area::Logins)? })
    }

    /// Remembers the logins that `links` lead to, for `job`; returns what in them must be recorded nowhere. `home` is
    /// the job's.
    pub(crate) fn begin(
        &self,
        job: &JobId,
        home: &AbsPath,
        harness: &dyn Harness,
        links: &[PlannedLink],
    ) -> Result<Vec<String>, LoginError> {
        let mut secrets = Vec::new();
        for link in links.iter().filter(|link| link.kind != LinkKind::Shared) {
            for using in uses(job, home, &harness.name(), link)? {
                let held = self.hold(&using.login)?;
                let Some(contents) = Place::open(&using.login)?.read(MAX_BYTES)? else { continue };
                secrets.extend(login::secrets(&contents));
                if login::judge(&contents) == LoginWorth::Good {
                    held.dir.replace(BACKUP, &contents, true)?;
                }
                held.note(&Use { before: sha256_of(&contents), ..using })?;
            }
        }
        Ok(secrets)
    }

    /// Looks at every login that the job used, puts right what is to be put right, and forgets the use. Nothing of the
    /// job runs any more. A login that could not be looked at is told of, and stays in use.
    pub(crate) fn end(
        &self,
        _dead: &VerifiedDead,
        job: &JobId,
        home: &AbsPath,
        at: Timestamp,
    ) -> Result<Vec<Told>, LoginError> {
        let mut told = Vec::new();
        for using in self.uses_of(Some(job))? {
            let done = self.hold(&using.login).and_then(|held| {
                let done = held.settle(&using, home, at)?;
                held.forget(job)?;
                Ok(done)
            });
            match done {
                Ok(done) => told.extend(done),
                Err(error) => told.push(Told {
                    id: "loginUnsettled",
                    text: format!("what became of the login {} is not known: {error}", using.login),
                }),
            }
        }
        Ok(told)
    }

    /// The logins that are in use: by one job, or by any.
    pub(crate) fn uses_of(&self, job: Option<&JobId>) -> Result<Vec<Use>, LoginError> {
        let mut found = Vec::new();
        for key in self.area.names()? {
            let dir = match self.area.dir(&key) {
                Ok(dir) => dir,
                Err(DiskError::Missing { .. } | DiskError::WrongKind { .. }) => continue,
                Err(error) => return Err(error.into()),
            };
            let records = dir.names()?.into_iter().filter_map(|name| Use::read(&dir, &name));
            found.extend(records.filter(|using| job.is_none_or(|job| using.job == *job)));
        }
        found.sort_by(|a, b| (&a.login, &a.job).cmp(&(&b.login, &b.job)));
        Ok(found)
    }

    /// Whether the job's link to the login is as it was made.
    pub(crate) fn is_linked(&self, using: &Use) -> bool {
        let home = self.store.jobs().join(using.job.as_str()).join("home");
        let found = left::find(&home, &using.link, &using.leads_to, using.below.as_deref(), MAX_BYTES);
        found == Found::Nothing
    }

    /// Puts a quarantined login where it belongs; what stands there goes to the quarantine, and its id is returned.
    pub(crate) fn restore(&self, id: &str, at: Timestamp) -> Result<(AbsPath, Option<String>), LoginError> {
        let quarantine = Quarantine::open(&self.store)?;
        let (kept, contents) = quarantine.get(id)?;
        let held = self.hold(&kept.login)?;
        let place = Place::open(&kept.login)?;
        let standing = place.read(MAX_BYTES)?;
        let replaced = match &standing {
            Some(standing) if *standing != contents => {
                let why = "another one was put in its place by hand".to_owned();
                Some(quarantine.put(&Kept { at, why, ..kept.clone() }, standing)?)
            }
            _ => None,
        };
        let beside =
            |bytes: &[u8]| quarantine.put(&Kept { at, why: BESIDE.to_owned(), ..kept.clone() }, bytes).map(drop);
        place.put(&contents, standing.as_deref(), &beside)?;
        drop(held);
        quarantine.remove(id)?;
        Ok((kept.login, replaced))
    }

    /// Takes the lock of one login, and opens its directory.
    fn hold(&self, login: &AbsPath) -> Result<Held<'_>, LoginError> {
        let key = sha256_of(login.as_path().as_os_str().as_encoded_bytes())[..32].to_owned();
        // Never removed: who waits for it must wait for the same file as who holds it.
        let lock = self.area.file(&format!("{key}.lock"), Open::AppendOrCreate)?;
        let start = Instant::now();
        loop {
            match lock.try_lock() {
                Ok(()) => return Ok(Held { dir: self.area.ensure_dir(&key)?, logins: self, key, _lock: lock }),
                Err(TryLockError::WouldBlock) if start.elapsed() < PATIENCE => {
                    std::thread::sleep(Duration::from_millis(10));
                }
                Err(TryLockError::WouldBlock) => return Err(LoginError::Busy { login: login.clone() }),
                Err(TryLockError::Error(source)) => {
                    return Err(LoginError::Login { login: login.clone(), action: "lock", source });
                }
            }
        }
    }
}

impl Held<'_> {
    /// What became of the login while one job used it.
    fn settle(&self, using: &Use, home: &AbsPath, at: Timestamp) -> Result<Vec<Told>, LoginError> {
        let found = left::find(home, &using.link, &using.leads_to, using.below.as_deref(), MAX_BYTES);
        let place = Place::open(&using.login)?;
        let theirs = place.read(MAX_BYTES)?;
        let backup = match self.dir.read(BACKUP, MAX_BYTES) {
            Err(DiskError::Missing { .. }) => None,
            read => Some(read?),
        };
        let after = After {
            left: match &found {
                Found::Nothing => Left::Nothing,
                Found::File(bytes) => Left::File(bytes),
                Found::Odd(what) => Left::Odd(what),
            },
            theirs: theirs.as_deref(),
            unchanged: theirs.as_deref().map(sha256_of).as_deref() == Some(&using.before),
            backup: backup.as_deref(),
        };
        let Settled { copy, theirs: of_theirs } = settle(after);
        let moved = FileRecord::from(place.directory()?) != using.directory;
        let beside = |bytes: &[u8]| self.keep(using, at, BESIDE, bytes).map(drop);
        let mut told = Vec::new();
        match (copy, &found) {
            (Copied::WriteBack, Found::File(bytes)) if moved => {
                let why = "the directory of your own login is another one now";
                told.push(self.keep(using, at, why, bytes)?);
            }
            (Copied::WriteBack, Found::File(bytes)) => match place.put(bytes, theirs.as_deref(), &beside) {
                Ok(()) => told.push(
                    using
                        .told("loginWrittenBack", "refreshed its login in the job's home only: it was written back to"),
                ),
                Err(LoginError::Raced { .. }) => told.push(self.keep(using, at, Why::TheirsChanged.words(), bytes)?),
                Err(error) => told.push(self.keep(using, at, &error.to_string(), bytes)?),
            },
            (Copied::Quarantine(why), Found::File(bytes)) => told.push(self.keep(using, at, why.words(), bytes)?),
            (Copied::Emptied, _) => {
                told.push(
                    using.told("loginEmptied", "emptied the job's copy of its login; as it was before is your own,"),
                );
            }
            (Copied::Ignore, Found::Odd(what)) => told.push(Told {
                id: "loginOdd",
                text: format!("the job left {what} in place of the link to {}: it was not looked at", using.login),
            }),
            _ => {}
        }
        match (of_theirs, &backup) {
            (Theirs::Restore, Some(bytes)) if !moved => match place.put(bytes, theirs.as_deref(), &beside) {
                Ok(()) => told.push(
                    using
                        .told("loginRestored", "emptied its login while the job ran; what was there before is back in"),
                ),
                // Somebody wrote there just now: that counts.
                Err(LoginError::Raced { .. }) => {}
                Err(error) => told.push(self.keep(using, at, &error.to_string(), bytes)?),
            },
            (Theirs::Restore, Some(bytes)) => told.push(self.keep(using, at, Why::TheirsChanged.words(), bytes)?),
            (Theirs::QuarantineBackup(why), Some(bytes)) => told.push(self.keep(using, at, why.words(), bytes)?),
            _ => {}
        }
        Ok(told)
    }

    /// Puts a login into the quarantine.
    fn keep(&self, using: &Use, at: Timestamp, why: &str, bytes: &[u8]) -> Result<Told, LoginError> {
        let kept = Kept {
            job: using.job.clone(),
            harness: using.harness.clone(),
            login: using.login.clone(),
            at,
            why: why.to_owned(),
        };
        let id = Quarantine::open(&self.logins.store)?.put(&kept, bytes)?;
        let text = format!(
            "a login of {} was not written back to {}, as {why}: it is kept; `pactify sub login restore {id}` puts it there",
            using.harness, using.login
        );
        Ok(Told { id: "loginQuarantined", text })
    }

    fn note(&self, using: &Use) -> Result<(), LoginError> {
        let name = format!("{}.json", using.job);
        let text = serde_json::to_vec_pretty(using).map_err(|source| LoginError::Unwritable { source })?;
        self.dir.replace(&name, &text, true)?;
        Ok(())
    }

    /// Forgets a job's use. The last one takes the copy away, and what jobs left that are no longer there.
    fn forget(self, job: &JobId) -> Result<(), LoginError> {
        self.dir.remove(&format!("{job}.json"))?;
        for name in self.dir.names()? {
            let gone = |using: &Use| self.logins.store.job(&using.job).is_err();
            match Use::read(&self.dir, &name) {
                Some(using) if !gone(&using) => return Ok(()),
                Some(_) => self.dir.remove(&name)?,
                None => {}
            }
        }
        for name in self.dir.names()? {
            self.dir.remove(&name)?;
        }
        Ok(self.logins.area.remove_dir(&self.key)?)
    }
}

impl Use {
    fn read(dir: &Dir, name: &str) -> Option<Self> {
        let job = name.strip_suffix(".json")?;
        let using: Self = serde_json::from_slice(&dir.read(name, MAX_RECORD).ok()?).ok()?;
        (using.format == FORMAT && using.job.as_str() == job).then_some(using)
    }

    fn told(&self, id: &'static str, what: &str) -> Told {
        Told { id, text: format!("{} {what} {}", self.harness, self.login) }
    }
}

impl From<FileId> for FileRecord {
    fn from(id: FileId) -> Self {
        Self { device: id.device, inode: id.inode }
    }
}

/// The logins that a link leads to; their contents are not looked at yet.
fn uses(job: &JobId, home: &AbsPath, harness: &HarnessName, link: &PlannedLink) -> Result<Vec<Use>, LoginError> {
    let outside = || LoginError::Outside { path: link.at.clone() };
    let below = link.at.as_path().strip_prefix(home.as_path()).map_err(|_| outside())?;
    let way =
        below.iter().map(|part| Some(part.to_str()?.to_owned())).collect::<Option<Vec<_>>>().ok_or_else(outside)?;
    let Ok(resolved) = link.target.as_path().canonicalize() else { return Ok(Vec::new()) };
    let resolved = AbsPath::new(resolved).map_err(|_| outside())?;
    let files = match link.kind {
        LinkKind::Shared => Vec::new(),
        LinkKind::WrittenFile | LinkKind::ReplacedFile => vec![(None, resolved)],
        LinkKind::Directory => {
            let names = place::files_in(&resolved, MAX_LOGINS)?;
            names.into_iter().map(|name| (Some(name.clone()), resolved.join(&name))).collect()
        }
    };
    let record = |(below, login): (Option<String>, AbsPath)| {
        Ok(Use {
            format: FORMAT,
            job: job.clone(),
            harness: harness.clone(),
            link: way.clone(),
            leads_to: link.target.clone(),
            below,
            directory: Place::open(&login)?.directory()?.into(),
            login,
            before: String::new(),
        })
    };
    files.into_iter().map(record).collect()
}

#[cfg(test)]
mod tests;
