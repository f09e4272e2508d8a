//! Keeps descriptors from leaking into children.
//!
//! Everything we open ourselves is close-on-exec from birth (std and rustix see to it). What an editor left open in us
//! is not: [`seal`] marks it once, at the start of each of our programs, before anything is started.

use std::os::fd::{BorrowedFd, RawFd};

use rustix::io::{Errno, FdFlags, fcntl_getfd, fcntl_setfd};

/// Marks every descriptor above standard error close-on-exec.
pub(super) fn seal() -> std::io::Result<()> {
    for entry in std::fs::read_dir("/proc/self/fd")? {
        let Some(fd) = entry?.file_name().to_str().and_then(|name| name.parse().ok()) else { continue };
        if fd > 2 {
            mark(fd)?;
        }
    }
    Ok(())
}

#[expect(unsafe_code, reason = "an inherited descriptor is known by number only; there is no safe way to name it")]
fn mark(fd: RawFd) -> std::io::Result<()> {
    // SAFETY: the borrow ends within this function and is used only to read and set a flag, which neither closes nor
    // moves the descriptor. If another thread closes it meanwhile, the kernel answers EBADF.
    let fd = unsafe { BorrowedFd::borrow_raw(fd) };
    match fcntl_getfd(fd).and_then(|flags| fcntl_setfd(fd, flags | FdFlags::CLOEXEC)) {
        Ok(()) | Err(Errno::BADF) => Ok(()),
        Err(error) => Err(error.into()),
    }
}
