//! Waiting for another process without a sleep: for a file to appear, for the process to end; with a deadline.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::inotify::{self, CreateFlags, WatchFlags};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, pidfd_open};

/// What nobody tells of is looked at this often.
const BETWEEN_LOOKS: Duration = Duration::from_millis(20);

/// Why the wait ended without the file.
#[derive(Debug, thiserror::Error)]
pub enum NotThere {
    /// It did not appear in time.
    #[error("{path} did not appear within {patience:?}")]
    Late {
        /// The file.
        path: PathBuf,
        /// How long it was waited for.
        patience: Duration,
    },
    /// Its folder can't be watched.
    #[error("can't wait for {path}")]
    Unwatched {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
}

/// Returns as soon as `path` exists (a dangling link does not). Its folder must exist already.
pub fn appears(path: &Path, patience: Duration) -> Result<(), NotThere> {
    let unwatched = |source: io::Error| NotThere::Unwatched { path: path.to_owned(), source };
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let deadline = Instant::now() + patience;
    let watch = match watch(folder) {
        Ok(watch) => Some(watch),
        // Watches are few, and belong to everything that the user runs.
        Err(Errno::MFILE | Errno::NFILE | Errno::NOSPC) => None,
        Err(error) => return Err(unwatched(error.into())),
    };
    let mut buffer = [0; 4096];
    // The first look comes after the watch was set: what appears later wakes it.
    while !path.exists() {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(NotThere::Late { path: path.to_owned(), patience });
        }
        match &watch {
            Some(watch) => {
                is_readable(watch, left).map_err(unwatched)?;
                while rustix::io::read(watch, &mut buffer).is_ok() {}
            }
            None => pause().map_err(unwatched)?,
        }
    }
    Ok(())
}

/// The time between two looks at what nobody tells of.
pub fn pause() -> io::Result<()> {
    let time = Timespec::try_from(BETWEEN_LOOKS).map_err(io::Error::other)?;
    match poll(&mut [], Some(&time)) {
        Ok(_) | Err(Errno::INTR) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// Did this process end within that time? It need not be a child, and need not be reaped. The caller knows that the
/// number still means the process it has in mind.
pub fn ends(pid: Pid, patience: Duration) -> io::Result<bool> {
    let pidfd = match pidfd_open(pid, PidfdFlags::empty()) {
        Err(Errno::SRCH) => return Ok(true),
        opened => opened?,
    };
    let deadline = Instant::now() + patience;
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        if is_readable(&pidfd, left)? {
            return Ok(true);
        }
        if left.is_zero() {
            return Ok(false);
        }
    }
}

/// What tells that something comes to be in a folder.
fn watch(folder: &Path) -> rustix::io::Result<OwnedFd> {
    let watch = inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK)?;
    inotify::add_watch(&watch, folder, WatchFlags::CREATE | WatchFlags::MOVED_TO)?;
    Ok(watch)
}

/// Waits for something to read; a signal may end the wait early.
fn is_readable(descriptor: impl AsFd, patience: Duration) -> io::Result<bool> {
    let patience = Timespec::try_from(patience).map_err(io::Error::other)?;
    match poll(&mut [PollFd::new(&descriptor, PollFlags::IN)], Some(&patience)) {
        Err(Errno::INTR) => Ok(false),
        ready => Ok(ready? > 0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_is_there_or_comes_is_seen_and_a_missing_one_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("ready");
        let late = appears(&path, Duration::from_millis(20)).unwrap_err().to_string();
        assert!(late.contains("ready did not appear within 20ms"), "{late}");
        let writer = std::thread::spawn({
            let path = path.clone();
            move || std::fs::write(path, "").unwrap()
        });
        appears(&path, Duration::from_secs(60)).unwrap();
        writer.join().unwrap();
        appears(&path, Duration::ZERO).unwrap();
    }
}
