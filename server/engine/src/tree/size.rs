//! How much room a directory takes, following nothing.

use std::os::fd::{AsFd as _, OwnedFd};
use std::path::Path;

use rustix::fs::{AtFlags, FileType, Mode};

use super::erase::names;
use crate::disk::DIRECTORY;

/// Deeper than this nothing is counted: each level costs a descriptor.
const DEPTH: usize = 100;

/// The bytes that `directory` takes on the disk with everything in it; less where something cannot be read. A file with
/// several names below it counts once for each.
pub fn size(directory: &Path) -> u64 {
    rustix::fs::open(directory, DIRECTORY, Mode::empty()).map_or(0, |open| below(&open, 0))
}

fn below(directory: &OwnedFd, depth: usize) -> u64 {
    let mut bytes = 0;
    for name in names(directory.as_fd()).unwrap_or_default() {
        let Ok(stat) = rustix::fs::statat(directory, &name, AtFlags::SYMLINK_NOFOLLOW) else { continue };
        bytes += u64::try_from(stat.st_blocks).unwrap_or_default() * 512;
        if FileType::from_raw_mode(stat.st_mode) == FileType::Directory
            && depth < DEPTH
            && let Ok(inner) = rustix::fs::openat(directory, &name, DIRECTORY, Mode::empty())
        {
            bytes += below(&inner, depth + 1);
        }
    }
    bytes
}
