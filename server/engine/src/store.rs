//! PACTIFY_HOME: every job of this person on this machine.
//!
//! The store makes jobs, finds them, lists them, and remembers what it read as long as nothing changed. It keeps no
//! truth of its own: what a job is stands in its [`JobDir`], what happened to it in its [`crate::journal`]. Anybody may
//! read at any time; who writes to a job holds its lock.
//!
//! Layout (directories 0700, files 0600): `format`, `jobs/<id>/`, and made when first needed, one directory per
//! [`Area`]. `logs/` is [`crate::log`]'s, `briefs/` the terminal program's.

mod area;
mod draft;
mod error;
mod list;
mod snapshot;

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use pactify_core::harness::{HarnessName, KeptLogin};
use pactify_core::job::JobSpec;
use pactify_core::{AbsPath, JobId};
use rustix::fs::Mode;
use rustix::fs::inotify::WatchFlags;
use rustix::time::{ClockId, clock_gettime};

use crate::disk::{Dir, DiskError, FileId};
use crate::job_dir::{JobDir, JobLock, LockError, names};
use crate::journal;

pub use crate::disk::Wakeup;
pub use draft::Draft;
pub use error::StoreError;
pub use list::{Listed, Page};
pub use snapshot::{Integrity, JobSnapshot};

/// The version of the layout that this build writes.
pub const STORE_FORMAT: u64 = 1;

const FORMAT: &str = "format";
const JOBS: &str = "jobs";
/// The start of the name of a job that is being made.
const UNBORN: &str = ".new-";
/// How many seconds a job may be in the making without a lock.
const BEGINNING: i64 = 60;

/// What the directory of jobs goes through; ATTRIB is a touch of a job's.
const MOVES: WatchFlags =
    WatchFlags::MOVED_TO.union(WatchFlags::MOVED_FROM).union(WatchFlags::DELETE).union(WatchFlags::ATTRIB);

/// PACTIFY_HOME, open. Clones share everything.
#[derive(Clone, Debug)]
pub struct Store {
    shared: Arc<Shared>,
}

/// The directories beside the jobs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Area {
    /// Directories on their way out, renamed here first.
    Trash,
    /// What is kept per repository: its lock.
    Repositories,
    /// Which paths each attached editor holds unsaved text for.
    Editors,
    /// Records of applies that are going on, and of those that can be taken back.
    Applies,
    /// Patches of results, for editors that can only open files.
    Previews,
    /// Lock files: a host holds one while its job runs.
    Slots,
    /// What the person decided about texts that repositories propose.
    Approvals,
    /// The person's logins, while jobs use them.
    Logins,
    /// Logins that could not be put where they belong.
    Quarantine,
    /// Logins of harnesses that pactify keeps itself.
    Kept,
    /// Repositories of the doctor's probes, while they run.
    Probes,
}

#[derive(Debug)]
struct Shared {
    home: Dir,
    jobs: Dir,
    snapshots: Mutex<snapshot::Cache>,
    found: Mutex<area::Found>,
    journals_read: AtomicU64,
}

impl Store {
    /// Opens PACTIFY_HOME, making it where it is missing.
    ///
    /// The path is resolved once; what it leads to must be a directory of ours. One that others may *write* to is
    /// refused, because anything in it may be theirs; one that they may read is made private.
    pub fn open(home: &AbsPath) -> Result<Self, StoreError> {
        let home = match open_home(home) {
            Err(StoreError::Home { path, source }) if source.kind() == io::ErrorKind::NotFound => {
                make_home(&path).map_err(|source| StoreError::Home { path, source })?;
                open_home(home)?
            }
            opened => opened?,
        };
        if mode(&home)? != Mode::RWXU {
            home.set_private()?;
        }
        if let Err(StoreError::Disk(DiskError::Missing { .. })) = check_format(&home) {
            mark(&home)?;
        }
        check_format(&home)?;
        let jobs = home.ensure_dir(JOBS)?;
        Ok(Self::of(home, jobs))
    }

    /// Opens PACTIFY_HOME as it is: nothing is made or changed.
    ///
    /// # Errors
    /// When it is missing or incomplete, and as [`Self::open`].
    pub fn open_unchanged(home: &AbsPath) -> Result<Self, StoreError> {
        let home = open_home(home)?;
        check_format(&home)?;
        let jobs = home.dir(JOBS)?;
        Ok(Self::of(home, jobs))
    }

    fn of(home: Dir, jobs: Dir) -> Self {
        let shared = Shared {
            home,
            jobs,
            snapshots: Mutex::default(),
            found: Mutex::default(),
            journals_read: AtomicU64::new(0),
        };
        Self { shared: Arc::new(shared) }
    }

    /// PACTIFY_HOME, resolved.
    pub fn home(&self) -> &AbsPath {
        self.shared.home.path()
    }

    /// The directory of all jobs.
    pub fn jobs(&self) -> AbsPath {
        self.shared.jobs.path().clone()
    }

    /// Wakes when a job came, went, or stands otherwise, whoever moved it: each milestone touches its job's directory.
    pub fn wakeup(&self) -> Result<Wakeup, StoreError> {
        Ok(Wakeup::on(&self.shared.jobs, MOVES).map_err(|errno| DiskError::io(self.jobs(), "watch", errno))?)
    }

    /// Opens one of the directories beside the jobs, making it where it is missing.
    pub fn area(&self, area: Area) -> Result<Dir, StoreError> {
        Ok(self.shared.home.ensure_dir(area.name())?)
    }

    /// Makes a job: its spec, an empty journal, and its lock, which the caller holds. The job appears whole or not
    /// at all, durably, and under an id that no other job has.
    pub fn create_job(&self, spec: &JobSpec) -> Result<(JobDir, JobLock), StoreError> {
        self.draft(&spec.id)?.create(spec)
    }

    /// Begins to make a job: its directory, which nobody else sees yet, and its lock.
    pub fn draft(&self, id: &JobId) -> Result<Draft, StoreError> {
        Draft::begin(self, id)
    }

    /// The names directly below PACTIFY_HOME to which others have rights.
    pub fn open_to_others(&self) -> Result<Vec<String>, StoreError> {
        let home = &self.shared.home;
        let mut open = Vec::new();
        for name in home.names()? {
            let mode = Mode::from_raw_mode(home.lookup(&name)?.map_or(0, |stat| stat.st_mode));
            if mode.intersects(Mode::RWXG | Mode::RWXO) {
                open.push(name);
            }
        }
        open.sort();
        Ok(open)
    }

    /// Where pactify keeps a login of its own for a harness; it need not be there.
    pub fn kept(&self, harness: &HarnessName) -> AbsPath {
        self.home().join(Area::Kept.name()).join(harness.as_str())
    }

    /// The directories of a login that pactify keeps for a harness, made where they are missing.
    pub fn kept_home(&self, harness: &HarnessName, login: &KeptLogin) -> Result<Dir, StoreError> {
        let home = self.area(Area::Kept)?.ensure_dir(harness.as_str())?;
        for (_, folder) in login.variables {
            home.ensure_dir(folder)?;
        }
        Ok(home)
    }

    /// Opens a job.
    pub fn job(&self, id: &JobId) -> Result<JobDir, StoreError> {
        match self.shared.jobs.dir(id.as_str()) {
            Ok(dir) => Ok(JobDir::new(id.clone(), dir)),
            Err(DiskError::Missing { .. }) => Err(StoreError::JobNotFound { id: id.clone() }),
            Err(error) => Err(error.into()),
        }
    }

    /// Removes what a process left that died while it made a job, and returns how many there were. Who makes one holds
    /// its lock but for its first moments, so one in the making is left alone.
    pub fn sweep_unborn(&self) -> Result<usize, StoreError> {
        let jobs = &self.shared.jobs;
        let now = clock_gettime(ClockId::RealtimeCoarse).tv_sec;
        let is_old = |name: &str| {
            let made = jobs.lookup(name).ok().flatten().map_or(now, |stat| stat.st_mtime);
            made.saturating_add(BEGINNING) < now
        };
        let names = jobs.names()?;
        let unborn = names.iter().filter(|name| name.starts_with(UNBORN) && is_old(name));
        Ok(unborn.filter(|name| self.remove_unborn(name)).count())
    }

    /// How many journals were read through this store since it was opened: what listings should not do.
    pub fn journals_read(&self) -> u64 {
        self.shared.journals_read.load(Ordering::Relaxed)
    }
}

impl Store {
    fn remove_unborn(&self, name: &str) -> bool {
        let jobs = &self.shared.jobs;
        let remove = || -> Option<()> {
            let id = name.strip_prefix(UNBORN)?.parse().ok()?;
            let job = JobDir::new(id, jobs.dir(name).ok()?);
            let _lock = match job.lock(std::time::Duration::ZERO) {
                // It came to nothing before it had one, and only who has it puts anything there.
                Err(LockError::Disk(DiskError::Missing { .. })) => return jobs.remove_dir(name).ok(),
                locked => locked.ok()?,
            };
            if job.dir().lookup(names::BASE).ok()?.is_some() {
                let aside = format!("{name}.{}", names::BASE);
                job.dir().rename_new(names::BASE, &self.area(Area::Trash).ok()?, &aside).ok()?;
            }
            for file in [names::SPEC, names::JOURNAL, names::LOCK] {
                job.dir().remove(file).ok()?;
            }
            jobs.remove_dir(name).ok()
        };
        remove().is_some()
    }
}

impl Area {
    /// Its directory's name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Trash => "trash",
            Self::Repositories => "repos",
            Self::Editors => "editors",
            Self::Applies => "applies",
            Self::Previews => "previews",
            Self::Slots => "slots",
            Self::Approvals => "approvals",
            Self::Logins => "logins",
            Self::Quarantine => "credential-quarantine",
            Self::Kept => "kept",
            Self::Probes => "probes",
        }
    }
}

fn open_home(home: &AbsPath) -> Result<Dir, StoreError> {
    let unreachable = |source| StoreError::Home { path: home.clone(), source };
    let resolved = std::fs::canonicalize(home).map_err(unreachable)?;
    let path = AbsPath::new(resolved).map_err(|error| unreachable(io::Error::other(error)))?;
    let dir = Dir::open(&path)?;
    let mode = mode(&dir)?;
    if mode.intersects(Mode::WGRP | Mode::WOTH) {
        return Err(StoreError::WritableByOthers { path, mode: mode.as_raw_mode() });
    }
    Ok(dir)
}

fn mode(dir: &Dir) -> Result<Mode, StoreError> {
    Ok(Mode::from_raw_mode(dir.stat()?.st_mode) & Mode::from_raw_mode(0o777))
}

fn make_home(home: &AbsPath) -> io::Result<()> {
    use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
    let mut private = std::fs::DirBuilder::new();
    private.mode(0o700);
    if let Some(parent) = home.as_path().parent() {
        private.recursive(true).create(parent)?;
    }
    match private.recursive(false).create(home) {
        Ok(()) => std::fs::set_permissions(home, std::fs::Permissions::from_mode(0o700)),
        // Another process was faster.
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        Err(error) => Err(error),
    }
}

/// Marks a new store as ours.
fn mark(home: &Dir) -> Result<(), StoreError> {
    // Threads of one process may be here at the same time, too.
    static MADE: AtomicU64 = AtomicU64::new(0);
    let fresh = format!(".{FORMAT}.{}.{}", std::process::id(), MADE.fetch_add(1, Ordering::Relaxed));
    home.remove(&fresh)?;
    home.write_new(&fresh, format!("{STORE_FORMAT}\n").as_bytes())?;
    let placed = home.rename_new(&fresh, home, FORMAT);
    home.remove(&fresh)?;
    match placed {
        Ok(()) => Ok(home.sync()?),
        Err(DiskError::Exists { .. }) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// Refuses the store of a newer pactify.
fn check_format(home: &Dir) -> Result<(), StoreError> {
    const MAX_BYTES: u64 = 64;
    let text = home.read(FORMAT, MAX_BYTES)?;
    let path = home.path().join(FORMAT);
    match std::str::from_utf8(&text).ok().and_then(|text| text.trim_end().parse::<u64>().ok()) {
        Some(STORE_FORMAT) => Ok(()),
        Some(format) if format > STORE_FORMAT => Err(StoreError::Newer { path, format }),
        _ => Err(StoreError::FormatUnreadable { path }),
    }
}

/// Which file stands at `<id>/events.jsonl`, and how long it is, in one system call.
fn journal_stamp(jobs: &Dir, id: &JobId) -> Option<journal::Stamp> {
    let path = format!("{id}/{}", names::JOURNAL);
    let stat = rustix::fs::statat(jobs, path, rustix::fs::AtFlags::SYMLINK_NOFOLLOW).ok()?;
    Some(journal::Stamp { file: FileId::of(&stat), length: stat.st_size.cast_unsigned() })
}

#[cfg(test)]
pub(crate) mod fixture;
#[cfg(test)]
mod tests;
