//! One directory of a tree, held open while paths in it come one after the other.

use std::io;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};

use pactify_core::RepoPath;

use crate::git::capture::open_below;

/// The directory that was used last: paths come in order, so it usually is the next one's, too.
#[derive(Default)]
pub(super) struct Directory {
    open: Option<(Vec<u8>, OwnedFd)>,
}

impl Directory {
    /// The directory in which `path` lies.
    pub(super) fn of(&mut self, top: &OwnedFd, path: &RepoPath) -> io::Result<BorrowedFd<'_>> {
        let bytes = path.as_bytes();
        let name = bytes.iter().rposition(|byte| *byte == b'/').map_or(&b""[..], |slash| &bytes[..slash]);
        let is_open = self.open.as_ref().is_some_and(|(open, _)| open == name);
        let open = match self.open.take() {
            Some(open) if is_open => open,
            _ => (name.to_vec(), open_below(top, path.parent().as_ref())?),
        };
        Ok(self.open.insert(open).1.as_fd())
    }
}
