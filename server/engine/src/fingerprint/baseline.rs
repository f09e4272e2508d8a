//! The read-only baseline: whether anything in a checkout changed, and *unchanged* only where that is known.
//!
//! Every entry below the checkout — tracked, untracked, ignored — by its `stat`. A process without privileges can set a
//! file's modification time, but not its change time, so the same `stat` is the same file; where it could be otherwise
//! (the change time is within two seconds of the look, or in the future) the content is hashed at once. Afterwards an
//! entry with another `stat` is hashed: the same content was only *touched*, and a content that cannot be compared
//! counts as changed. What cannot be looked at, a mount, or a clock that was set meanwhile is an error, never
//! "unchanged".
//!
//! Of a git directory everything but what [`part`] names; what is named there is compared by its meaning, or said to be
//! harmless.

pub(super) mod part;
mod record;

use std::collections::HashMap;
use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt as _;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use pactify_core::display::neutral;
use pactify_core::{AbsPath, ObjectId};
use rustix::fs::{FileType, Mode, OFlags, Statx, StatxTimestamp};

use self::part::{Kept, Part};
use crate::disk::{DIRECTORY, SAFE};
use crate::env::{Env, Moment};
use crate::hash::Algorithm;
use crate::walk::{Visitor, WalkError, walk};

/// The walk is bound by system calls; a third thread gains nothing that a person would notice.
const THREADS: usize = 2;

/// How close to the look a change time must be for the content to be read.
const RACY: i128 = 2_000_000_000;

/// How far the time of day may drift from the clock that nobody can set, before nothing can be told from times.
const DRIFT: Duration = Duration::from_secs(2);

/// How far apart the two clocks may be read, and how often that is tried.
const TOGETHER: Duration = Duration::from_millis(100);
const TRIES: u32 = 100;

/// More entries than any checkout has.
const MOST_ENTRIES: usize = 20_000_000;

/// How many paths of a kind are named.
const NAMED: usize = 200;

/// Everything below a checkout at one moment.
#[derive(Debug)]
pub struct Baseline {
    top: AbsPath,
    identity: (u32, u32, u64),
    entries: Vec<Arena>,
    hashes: HashMap<Vec<u8>, ObjectId>,
    taken: Times,
}

/// How a checkout differs from its baseline.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Comparison {
    /// What changed, as `path: how`, bounded, in order.
    pub changed: Vec<String>,
    /// What was written to, or otherwise touched, with the same content as before.
    pub touched: Vec<String>,
    /// How many more there are of either.
    pub more: u64,
}

/// Why nothing can be said about a checkout.
#[derive(Debug, thiserror::Error)]
pub enum BaselineError {
    /// The checkout is not there, or another directory than it was.
    #[error("{path} is not the directory that it was")]
    Replaced {
        /// The checkout.
        path: AbsPath,
    },
    /// An entry could not be looked at.
    #[error(transparent)]
    Walk(#[from] WalkError),
    /// An entry's content could not be read.
    #[error("cannot read {}", neutral(path))]
    Unreadable {
        /// Which.
        path: String,
        /// Why.
        source: io::Error,
    },
    /// More entries than are looked at.
    #[error("{path} holds more than {MOST_ENTRIES} entries")]
    TooMany {
        /// The checkout.
        path: AbsPath,
    },
    /// The time of day was set meanwhile: times of files say nothing.
    #[error("the clock was set while the job ran")]
    ClockStepped,
}

/// What an entry's `stat` says that changes when it does. Of a directory only what doesn't change with its entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Fingerprint {
    mode: u16,
    inode: u64,
    size: u64,
    modified: i128,
    changed: i128,
}

/// One thread's part of the entries.
#[derive(Debug, Default)]
struct Arena {
    names: Vec<u8>,
    entries: Vec<(u32, Fingerprint)>,
    /// Nothing beyond may be said: set when there are too many.
    overflow: bool,
    /// What is looked at.
    part: Arc<Part>,
}

#[derive(Clone, Copy, Debug)]
struct Times {
    now: Timestamp,
    moment: Moment,
}

impl Times {
    /// Of one moment: who is kept from running between the two clocks reads them again.
    fn of(env: &Env) -> Self {
        let mut times = Self { now: env.now(), moment: env.moment() };
        for _ in 0..TRIES {
            let (now, after) = (env.now(), env.moment());
            if after.total_since(times.moment) <= TOGETHER {
                return Self { now, ..times };
            }
            times = Self { now, moment: after };
        }
        times
    }

    fn agree_with(&self, later: Self) -> bool {
        let total = i128::try_from(later.moment.total_since(self.moment).as_nanos()).unwrap_or(i128::MAX);
        let shown = later.now.as_nanosecond() - self.now.as_nanosecond();
        (shown - total).unsigned_abs() <= DRIFT.as_nanos()
    }
}

impl Baseline {
    /// Takes the baseline of the checkout at `top`. Its git directory is left out; a `.git` that is none is an entry
    /// like any other.
    ///
    /// # Errors
    /// When anything could not be looked at.
    pub fn take(env: &Env, top: &AbsPath) -> Result<Self, BaselineError> {
        Self::take_part(env, top, Part::Checkout)
    }

    /// Takes the baseline of a part of what is below `top`.
    pub(super) fn take_part(env: &Env, top: &AbsPath, part: Part) -> Result<Self, BaselineError> {
        let taken = Times::of(env);
        let (opened, identity) = open(top)?;
        let entries = look(top, &opened, part)?;
        let young = taken.now.as_nanosecond() - RACY;
        let mut hashes = HashMap::new();
        for (path, found) in entries.iter().flat_map(Arena::iter).filter(|(_, found)| found.changed >= young) {
            if let Some(hash) = hash(&opened, path, found, Algorithm::Sha256)? {
                hashes.insert(path.to_vec(), hash);
            }
        }
        Ok(Self { top: top.clone(), identity, entries, hashes, taken })
    }

    /// How many entries it holds.
    pub fn len(&self) -> usize {
        self.entries.iter().map(|arena| arena.entries.len()).sum()
    }

    /// Whether the checkout was empty.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Looks again. `recorded` gives the content that an unchanged file had by another record (git's index), where
    /// there is one; it is asked only about files whose `stat` changed.
    ///
    /// # Errors
    /// When anything could not be looked at: then nothing may be taken for unchanged.
    pub fn compare(
        &self,
        env: &Env,
        recorded: impl Fn(&[u8]) -> Option<ObjectId>,
    ) -> Result<Comparison, BaselineError> {
        self.compare_part(env, Part::Checkout, recorded)
    }

    /// Looks again at the part that it was taken of.
    pub(super) fn compare_part(
        &self,
        env: &Env,
        part: Part,
        recorded: impl Fn(&[u8]) -> Option<ObjectId>,
    ) -> Result<Comparison, BaselineError> {
        if !self.taken.agree_with(Times::of(env)) {
            return Err(BaselineError::ClockStepped);
        }
        let (opened, identity) = open(&self.top)?;
        if identity != self.identity {
            return Err(BaselineError::Replaced { path: self.top.clone() });
        }
        let entries = look(&self.top, &opened, part)?;
        let mut before: HashMap<&[u8], Fingerprint> = self.iter().collect();
        let (mut changed, mut touched) = (Vec::new(), Vec::new());
        for (path, now) in entries.iter().flat_map(Arena::iter) {
            let was = before.remove(path);
            let racy = self.hashes.get(path);
            match was {
                Some(was) if was == now && racy.is_none() => {}
                None => changed.push(told(path, "is new")),
                Some(was) if was.kind() != now.kind() => changed.push(told(path, "is of another kind")),
                Some(was) if was.mode != now.mode => changed.push(told(path, "has another mode")),
                Some(was) if was.size != now.size => changed.push(told(path, "has another content")),
                Some(was) => {
                    let known = racy.cloned().or_else(|| recorded(path));
                    let algorithm = known.as_ref().map_or(Algorithm::Sha256, Algorithm::of);
                    let hash = hash(&opened, path, now, algorithm)?;
                    match (known, hash) {
                        (Some(known), Some(hash)) if known == hash && was == now => {}
                        (Some(known), Some(hash)) if known == hash => touched.push(shown(path)),
                        (None, Some(_)) => changed.push(told(path, "was written to, and its content is unknown")),
                        (_, _) => changed.push(told(path, "has another content")),
                    }
                }
            }
        }
        changed.extend(before.into_keys().map(|path| told(path, "is gone")));
        let mut comparison = Comparison { changed, touched, more: 0 };
        comparison.bound();
        Ok(comparison)
    }

    /// Whether an entry was there.
    pub(super) fn holds(&self, path: &[u8]) -> bool {
        self.iter().any(|(known, _)| known == path)
    }

    fn iter(&self) -> impl Iterator<Item = (&[u8], Fingerprint)> {
        self.entries.iter().flat_map(Arena::iter)
    }
}

impl Comparison {
    /// Whether the checkout is as it was.
    pub fn is_unchanged(&self) -> bool {
        self.changed.is_empty()
    }

    fn bound(&mut self) {
        for list in [&mut self.changed, &mut self.touched] {
            list.sort();
            self.more += list.len().saturating_sub(NAMED) as u64;
            list.truncate(NAMED);
        }
    }
}

impl Fingerprint {
    fn of(stat: &Statx) -> Self {
        let nanoseconds = |time: &StatxTimestamp| i128::from(time.tv_sec) * 1_000_000_000 + i128::from(time.tv_nsec);
        let (mode, inode) = (stat.stx_mode, stat.stx_ino);
        if FileType::from_raw_mode(mode.into()) == FileType::Directory {
            return Self { mode, inode, size: 0, modified: 0, changed: 0 };
        }
        let (modified, changed) = (nanoseconds(&stat.stx_mtime), nanoseconds(&stat.stx_ctime));
        Self { mode, inode, size: stat.stx_size, modified, changed }
    }

    fn kind(&self) -> FileType {
        FileType::from_raw_mode(self.mode.into())
    }
}

impl Arena {
    fn iter(&self) -> impl Iterator<Item = (&[u8], Fingerprint)> {
        let ends = self.entries.iter().skip(1).map(|(start, _)| *start as usize).chain([self.names.len()]);
        self.entries.iter().zip(ends).map(|((start, found), end)| (&self.names[*start as usize..end], *found))
    }
}

impl Visitor for Arena {
    fn visit(&mut self, path: &[u8], stat: &Statx) -> bool {
        match self.part.keeps(path, FileType::from_raw_mode(stat.stx_mode.into())) {
            Kept::All => {}
            Kept::Inside => return true,
            Kept::Nothing => return false,
        }
        match u32::try_from(self.names.len()) {
            Ok(start) if self.entries.len() < MOST_ENTRIES => {
                self.names.extend_from_slice(path);
                self.entries.push((start, Fingerprint::of(stat)));
            }
            _ => self.overflow = true,
        }
        !self.overflow
    }
}

fn open(top: &AbsPath) -> Result<(OwnedFd, (u32, u32, u64)), BaselineError> {
    let replaced = |_| BaselineError::Replaced { path: top.clone() };
    let opened = rustix::fs::open(top.as_path(), DIRECTORY, Mode::empty()).map_err(replaced)?;
    let stat = rustix::fs::fstat(&opened).map_err(replaced)?;
    let device = (rustix::fs::major(stat.st_dev), rustix::fs::minor(stat.st_dev));
    Ok((opened, (device.0, device.1, stat.st_ino)))
}

fn look(top: &AbsPath, opened: &OwnedFd, part: Part) -> Result<Vec<Arena>, BaselineError> {
    let part = Arc::new(part);
    let arenas = (0..THREADS).map(|_| Arena { part: Arc::clone(&part), ..Arena::default() }).collect();
    let arenas = walk(opened, arenas)?;
    if arenas.iter().any(|arena| arena.overflow) {
        return Err(BaselineError::TooMany { path: top.clone() });
    }
    Ok(arenas)
}

/// The hash of an entry's content, as a blob of git's; `None` for what has none.
fn hash(
    top: &OwnedFd,
    path: &[u8],
    found: Fingerprint,
    algorithm: Algorithm,
) -> Result<Option<ObjectId>, BaselineError> {
    let unreadable = |source: io::Error| BaselineError::Unreadable { path: shown(path), source };
    let mut directory = None::<OwnedFd>;
    let mut names = path.split(|byte| *byte == b'/').peekable();
    let mut name = names.next().unwrap_or_default();
    while names.peek().is_some() {
        let above = directory.as_ref().unwrap_or(top);
        let opened = rustix::fs::openat(above, OsStr::from_bytes(name), DIRECTORY, Mode::empty());
        directory = Some(opened.map_err(|errno| unreadable(errno.into()))?);
        name = names.next().unwrap_or_default();
    }
    let (directory, name) = (directory.as_ref().unwrap_or(top), OsStr::from_bytes(name));
    let replaced = || unreadable(io::Error::other("it changed while it was looked at"));
    match found.kind() {
        FileType::RegularFile => {
            let opened = rustix::fs::openat(directory, name, SAFE | OFlags::RDONLY, Mode::empty());
            let mut file = File::from(opened.map_err(|errno| unreadable(errno.into()))?);
            let stat = rustix::fs::fstat(&file).map_err(|errno| unreadable(errno.into()))?;
            if stat.st_ino != found.inode || FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
                return Err(replaced());
            }
            algorithm.blob_from(found.size, &mut file).map_err(unreadable)?.map(Some).ok_or_else(replaced)
        }
        FileType::Symlink => {
            let target = rustix::fs::readlinkat(directory, name, Vec::new());
            Ok(Some(algorithm.blob(target.map_err(|errno| unreadable(errno.into()))?.as_bytes())))
        }
        _ => Ok(None),
    }
}

pub(super) fn shown(path: &[u8]) -> String {
    neutral(&String::from_utf8_lossy(path)).into_owned()
}

fn told(path: &[u8], how: &str) -> String {
    format!("{}: {how}", shown(path))
}

#[cfg(test)]
mod tests;
