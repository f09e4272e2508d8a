//! Looks at every entry below a directory, on several threads, following nothing.
//!
//! Each directory is opened by its name in the one above, never by a path, so no link and no swapped parent leads out
//! of the tree. Nothing else is opened. What an entry means is the [`Visitor`]'s business; each thread has one of its
//! own. Any error ends the walk: whoever may not miss an entry can rely on it.

use std::ffi::{CStr, CString};
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use pactify_core::display::neutral;
use rustix::fs::{AtFlags, FileType, Mode, RawDir, Statx, StatxFlags};
use rustix::io::Errno;

use crate::disk::DIRECTORY;

/// What is asked of the kernel about each entry.
const WANTED: StatxFlags = StatxFlags::BASIC_STATS.union(StatxFlags::MNT_ID);

/// Decides about entries.
pub(crate) trait Visitor: Send {
    /// An entry at `path` below the top. Of a directory: whether to look into it.
    fn visit(&mut self, path: &[u8], stat: &Statx) -> bool;
}

/// Why a walk saw less than everything.
#[derive(Debug, thiserror::Error)]
pub enum WalkError {
    /// The kernel refused.
    #[error("cannot look at {}", neutral(path))]
    Io {
        /// Which entry, below the top.
        path: String,
        /// Why.
        source: io::Error,
    },
    /// Another file system is mounted below the top, or was put there meanwhile.
    #[error("another file system is mounted at {}", neutral(path))]
    Mount {
        /// Where, below the top.
        path: String,
    },
}

/// A directory that waits to be looked into.
struct Waiting {
    parent: Arc<OwnedFd>,
    name: CString,
    /// Below the top, without a slash at the end; empty for the top itself.
    path: Vec<u8>,
}

struct Queue {
    waiting: Vec<Waiting>,
    /// How many directories are being looked into.
    busy: usize,
    failed: Option<WalkError>,
}

struct Shared {
    queue: Mutex<Queue>,
    news: Condvar,
    mount: u64,
}

/// Walks everything below `top` with as many threads as there are `visitors`, and gives those back.
///
/// # Errors
/// The first one met; then some entries were not visited.
pub(crate) fn walk<V: Visitor>(top: &OwnedFd, visitors: Vec<V>) -> Result<Vec<V>, WalkError> {
    let refused = |errno: Errno| failure(b".", errno);
    let stat = rustix::fs::statx(top, c"", AtFlags::EMPTY_PATH, WANTED).map_err(refused)?;
    let parent = Arc::new(top.try_clone().map_err(|source| WalkError::Io { path: ".".to_owned(), source })?);
    let first = Waiting { parent, name: c".".to_owned(), path: Vec::new() };
    let shared = Shared {
        queue: Mutex::new(Queue { waiting: vec![first], busy: 0, failed: None }),
        news: Condvar::new(),
        mount: stat.stx_mnt_id,
    };
    let visitors = std::thread::scope(|scope| {
        let shared = &shared;
        let work = move |mut visitor: V| {
            shared.work(&mut visitor);
            visitor
        };
        let threads: Vec<_> = visitors.into_iter().map(|visitor| scope.spawn(move || work(visitor))).collect();
        threads
            .into_iter()
            .map(|thread| thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
            .collect()
    });
    match shared.queue.into_inner().unwrap_or_else(PoisonError::into_inner).failed {
        None => Ok(visitors),
        Some(error) => Err(error),
    }
}

impl Shared {
    fn work<V: Visitor>(&self, visitor: &mut V) {
        let mut buffer = vec![MaybeUninit::uninit(); 1 << 15];
        // A panic of the visitor must not leave the other threads waiting for this one.
        let _release = Release(self);
        while let Some(directory) = self.next() {
            let found = self.look_into(&directory, visitor, &mut buffer);
            drop(directory);
            let mut queue = self.lock();
            queue.busy -= 1;
            match found {
                Ok(found) => queue.waiting.extend(found),
                Err(error) => queue.failed = queue.failed.take().or(Some(error)),
            }
            drop(queue);
            self.news.notify_all();
        }
    }

    fn next(&self) -> Option<Waiting> {
        let mut queue = self.lock();
        loop {
            if queue.failed.is_some() {
                return None;
            }
            if let Some(directory) = queue.waiting.pop() {
                queue.busy += 1;
                return Some(directory);
            }
            if queue.busy == 0 {
                return None;
            }
            queue = self.news.wait(queue).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn look_into<V: Visitor>(
        &self,
        directory: &Waiting,
        visitor: &mut V,
        buffer: &mut [MaybeUninit<u8>],
    ) -> Result<Vec<Waiting>, WalkError> {
        let refused = |errno| failure(&directory.path, errno);
        let opened =
            rustix::fs::openat(&directory.parent, &directory.name, DIRECTORY, Mode::empty()).map_err(refused)?;
        let opened = Arc::new(opened);
        let mut path = directory.path.clone();
        if !path.is_empty() {
            path.push(b'/');
        }
        let above = path.len();
        let mut found = Vec::new();
        let mut entries = RawDir::new(opened.as_fd(), buffer);
        while let Some(entry) = entries.next() {
            let entry = entry.map_err(refused)?;
            let name: &CStr = entry.file_name();
            if matches!(name.to_bytes(), b"." | b"..") {
                continue;
            }
            path.truncate(above);
            path.extend_from_slice(name.to_bytes());
            let stat = rustix::fs::statx(opened.as_fd(), name, AtFlags::SYMLINK_NOFOLLOW, WANTED)
                .map_err(|errno| failure(&path, errno))?;
            if stat.stx_mnt_id != self.mount {
                return Err(WalkError::Mount { path: String::from_utf8_lossy(&path).into_owned() });
            }
            let is_directory = FileType::from_raw_mode(stat.stx_mode.into()) == FileType::Directory;
            if visitor.visit(&path, &stat) && is_directory {
                found.push(Waiting { parent: Arc::clone(&opened), name: name.to_owned(), path: path.clone() });
            }
        }
        Ok(found)
    }
}

struct Release<'a>(&'a Shared);

impl Drop for Release<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let mut queue = self.0.lock();
            queue.busy = 0;
            queue.failed = queue.failed.take().or_else(|| Some(failure(b".", Errno::CANCELED)));
            drop(queue);
            self.0.news.notify_all();
        }
    }
}

fn failure(path: &[u8], errno: Errno) -> WalkError {
    let path = if path.is_empty() { b"." } else { path };
    WalkError::Io { path: String::from_utf8_lossy(path).into_owned(), source: errno.into() }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    #[derive(Default)]
    struct Names(Vec<String>);

    impl Visitor for Names {
        fn visit(&mut self, path: &[u8], _stat: &Statx) -> bool {
            self.0.push(String::from_utf8_lossy(path).into_owned());
            path != b"closed"
        }
    }

    fn open(path: &std::path::Path) -> OwnedFd {
        rustix::fs::open(path, DIRECTORY, Mode::empty()).unwrap()
    }

    fn names(found: Vec<Names>) -> Vec<String> {
        let mut names: Vec<_> = found.into_iter().flat_map(|names| names.0).collect();
        names.sort();
        names
    }

    #[test]
    fn every_entry_is_seen_once_and_no_link_is_followed() {
        let folder = tempfile::tempdir().unwrap();
        let (top, outside) = (folder.path().join("top"), folder.path().join("outside"));
        let mut expected = Vec::new();
        fs::create_dir_all(outside.join("secret")).unwrap();
        for directory in 0..40 {
            expected.push(format!("d{directory}"));
            for file in 0..5 {
                let name = format!("d{directory}/e/f{file}");
                fs::create_dir_all(top.join(&name).parent().unwrap()).unwrap();
                fs::write(top.join(&name), "").unwrap();
                expected.push(name);
            }
            expected.push(format!("d{directory}/e"));
        }
        fs::create_dir_all(top.join("closed/in")).unwrap();
        symlink(&outside, top.join("link")).unwrap();
        expected.extend(["closed", "link"].map(str::to_owned));
        expected.sort();
        for threads in [1, 2, 7] {
            let visitors = (0..threads).map(|_| Names::default()).collect();
            assert_eq!(names(walk(&open(&top), visitors).unwrap()), expected, "{threads} threads");
        }
    }

    #[test]
    fn what_cannot_be_looked_into_ends_the_walk() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("gone")).unwrap();
        let top = open(folder.path());
        struct Removes(std::path::PathBuf);
        impl Visitor for Removes {
            fn visit(&mut self, path: &[u8], _stat: &Statx) -> bool {
                if path == b"gone" {
                    fs::remove_dir(&self.0).unwrap();
                    symlink("/", &self.0).unwrap();
                }
                true
            }
        }
        let visitors = vec![Removes(folder.path().join("gone")), Removes(folder.path().join("gone"))];
        assert!(matches!(walk(&top, visitors), Err(WalkError::Io { path, .. }) if path == "gone"));
    }
}
