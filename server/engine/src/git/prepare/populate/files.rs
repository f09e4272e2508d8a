//! Writes the files of a tree: every thread takes the next few paths, reads their contents and makes them.
//!
//! Each file is made new, in a directory that was opened component by component, following nothing. Its modification
//! time is set to the second before the tree was begun: then it is older than the index, so that git trusts what the
//! index says of it, and a change within the same second shows.
//!
//! Inflating objects is most of the work. The person's checkout usually holds the same bytes ready to be read, and
//! their id proves that they are the same ([`donor`]).

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::io;
use std::os::fd::BorrowedFd;
use std::os::unix::ffi::OsStrExt as _;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Instant;

use git2::Odb;
use pactify_core::RepoPath;
use pactify_core::change::EntryMode;
use rustix::fs::{AtFlags, Mode, OFlags, Stat, Timespec, Timestamps};

use super::donor::Donor;
use super::place::Directory;
use super::{POPULATE, Target};
use crate::git::error::GitError;
use crate::git::listing::{Listed, Listing};
use crate::git::objects::{oid, open};
use crate::git::threads::on_all;

/// How many paths a thread takes at a time: enough to share a directory, few enough to end together.
const AT_A_TIME: usize = 64;

/// A path with what belongs there.
type Item<'a> = (&'a RepoPath, &'a Listed);

/// Writes `items`, without those of `left_out`; returns each one's `stat`, in their order.
pub(super) fn write(
    target: &Target<'_>,
    listing: &Listing,
    items: &[Item<'_>],
    left_out: &BTreeSet<RepoPath>,
) -> Result<Vec<Option<Stat>>, GitError> {
    make_directories(target, listing)?;
    let begun = rustix::fs::fstat(target.directory).map_err(GitError::errno("look at", target.tree.as_path()))?;
    let work = Work {
        target,
        items,
        left_out,
        next: AtomicUsize::new(0),
        stopped: AtomicBool::new(false),
        age: Timespec { tv_sec: begun.st_ctime - 1, tv_nsec: 0 },
        end: Instant::now() + POPULATE,
    };
    let mut stats = vec![None; items.len()];
    for part in on_all(|| work.run()) {
        for (at, stat) in part? {
            stats[at] = Some(stat);
        }
    }
    Ok(stats)
}

/// Makes every directory, those that lead to another before it.
fn make_directories(target: &Target<'_>, listing: &Listing) -> Result<(), GitError> {
    let mut paths: Vec<&RepoPath> = listing.directories.keys().collect();
    paths.sort_unstable();
    let mut place = Directory::default();
    for path in paths {
        let within = place.of(target.directory, path).map_err(failed("open the directory of", target, path))?;
        rustix::fs::mkdirat(within, path.file_name(), Mode::from_raw_mode(0o777))
            .map_err(|errno| failed("create the directory", target, path)(errno.into()))?;
    }
    Ok(())
}

/// Where one thread gets contents from.
struct Source {
    objects: Odb<'static>,
    donor: Option<Donor>,
}

/// What the threads share.
struct Work<'a> {
    target: &'a Target<'a>,
    items: &'a [Item<'a>],
    left_out: &'a BTreeSet<RepoPath>,
    next: AtomicUsize,
    /// One of them failed.
    stopped: AtomicBool,
    age: Timespec,
    end: Instant,
}

impl Work<'_> {
    fn run(&self) -> Result<Vec<(usize, Stat)>, GitError> {
        let written = self.take_all();
        if written.is_err() {
            self.stopped.store(true, Ordering::Relaxed);
        }
        written
    }

    fn take_all(&self) -> Result<Vec<(usize, Stat)>, GitError> {
        let mut source = Source { objects: open(self.target.git_dir)?, donor: Donor::open(self.target.checkout) };
        let mut place = Directory::default();
        let mut written = Vec::new();
        loop {
            let from = self.next.fetch_add(AT_A_TIME, Ordering::Relaxed);
            if from >= self.items.len() || self.stopped.load(Ordering::Relaxed) {
                return Ok(written);
            }
            let tree = self.target.tree;
            if Instant::now() > self.end {
                return Err(GitError::io("fill in time", tree.as_path())(io::ErrorKind::TimedOut.into()));
            }
            for at in from..self.items.len().min(from + AT_A_TIME) {
                let (path, entry) = self.items[at];
                if self.left_out.contains(path) {
                    continue;
                }
                let open = place.of(self.target.directory, path);
                let directory = open.map_err(failed("open the directory of", self.target, path))?;
                written.push((at, self.make(directory, path, entry, &mut source)?));
            }
        }
    }

    fn make(
        &self,
        directory: BorrowedFd<'_>,
        path: &RepoPath,
        entry: &Listed,
        source: &mut Source,
    ) -> Result<Stat, GitError> {
        let failed = failed("create", self.target, path);
        if entry.mode == EntryMode::Gitlink {
            let made = rustix::fs::mkdirat(directory, path.file_name(), Mode::from_raw_mode(0o777));
            return made.and_then(|()| stat(directory, path)).map_err(|errno| failed(errno.into()));
        }
        let executable = entry.mode == EntryMode::Executable;
        if entry.mode.is_file()
            && let Some(content) = source.donor.as_mut().and_then(|donor| donor.content(path, &entry.object))
        {
            return self.make_file(directory, path, executable, content).map_err(failed);
        }
        let missing = |_| GitError::ObjectsMissing {
            repository: self.target.git_dir.clone(),
            missing: vec![entry.object.to_string()],
        };
        let content = oid(&entry.object).and_then(|id| source.objects.read(id)).map_err(missing)?;
        let made = match entry.mode {
            EntryMode::Symlink => self.make_link(directory, path, content.data()),
            _ => self.make_file(directory, path, executable, content.data()),
        };
        made.map_err(failed)
    }

    /// With the bits that git gives, which the person's umask narrows.
    fn make_file(
        &self,
        directory: BorrowedFd<'_>,
        path: &RepoPath,
        executable: bool,
        content: &[u8],
    ) -> io::Result<Stat> {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let bits = Mode::from_raw_mode(if executable { 0o777 } else { 0o666 });
        let file = rustix::fs::openat(directory, path.file_name(), flags, bits)?;
        let mut rest = content;
        while !rest.is_empty() {
            match rustix::io::write(&file, rest) {
                Err(rustix::io::Errno::INTR) => {}
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                written => rest = &rest[written?..],
            }
        }
        rustix::fs::futimens(&file, &self.times())?;
        Ok(rustix::fs::fstat(&file)?)
    }

    fn make_link(&self, directory: BorrowedFd<'_>, path: &RepoPath, target: &[u8]) -> io::Result<Stat> {
        rustix::fs::symlinkat(OsStr::from_bytes(target), directory, path.file_name())?;
        rustix::fs::utimensat(directory, path.file_name(), &self.times(), AtFlags::SYMLINK_NOFOLLOW)?;
        Ok(stat(directory, path)?)
    }

    fn times(&self) -> Timestamps {
        Timestamps { last_access: self.age, last_modification: self.age }
    }
}

fn stat(directory: BorrowedFd<'_>, path: &RepoPath) -> rustix::io::Result<Stat> {
    rustix::fs::statat(directory, path.file_name(), AtFlags::SYMLINK_NOFOLLOW)
}

fn failed(action: &'static str, target: &Target<'_>, path: &RepoPath) -> impl FnOnce(io::Error) -> GitError {
    let place = target.tree.as_path().join(OsStr::from_bytes(path.as_bytes()));
    move |error| GitError::io(action, place)(error)
}
