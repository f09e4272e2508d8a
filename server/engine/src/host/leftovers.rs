//! Empty directories that a harness's sandbox leaves in a tree: bind-mount points of paths that do not exist.

use pactify_core::job::event::TreeRecord;
use rustix::fs::{AtFlags, CWD, Mode, fstat, openat, unlinkat};

use crate::disk::DIRECTORY;

/// Removes those of `names` (single components below the tree) that are empty directories. `rmdir` follows no link
/// and refuses everything else, so a miss costs nothing.
pub(super) fn remove_empty(tree: &TreeRecord, names: &[String]) {
    let Ok(root) = openat(CWD, tree.path.as_path(), DIRECTORY, Mode::empty()) else { return };
    if !fstat(&root).is_ok_and(|stat| (stat.st_dev, stat.st_ino) == (tree.device, tree.inode)) {
        return;
    }
    for name in names.iter().filter(|name| !name.contains('/')) {
        let _ = unlinkat(&root, name.as_str(), AtFlags::REMOVEDIR);
    }
}
