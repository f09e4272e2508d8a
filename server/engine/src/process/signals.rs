//! What signals mean to a host and to what it starts, whatever they meant to who started it.
//!
//! A signal that is ignored or blocked stays so across `exec`, in a harness and in its commands: what a shell's `&` and
//! `nohup` ignore, and what an editor blocks (with `SIGTERM` nothing of the job would end when it is asked to).
//! opencode's runtime takes what it finds, Node restores it. std restores `SIGPIPE` alone, and leaves the mask.

use std::io;
use std::mem::MaybeUninit;

use tokio::signal::unix::{SignalKind, signal};

/// Lets every signal through. To be called while there is one thread: later ones inherit what it has.
#[expect(unsafe_code, reason = "neither std, rustix nor tokio sets the mask")]
pub(super) fn unblock() -> io::Result<()> {
    let mut none = MaybeUninit::<libc::sigset_t>::uninit();
    // SAFETY: the first call initialises the set that it is given; the second one reads it, and writes nothing where
    // its last argument is null. No thread but this one is concerned.
    let error = unsafe {
        libc::sigemptyset(none.as_mut_ptr());
        libc::pthread_sigmask(libc::SIG_SETMASK, none.as_ptr(), std::ptr::null_mut())
    };
    if error == 0 { Ok(()) } else { Err(io::Error::from_raw_os_error(error)) }
}

/// Handles each signal that is ignored, by doing nothing: so it means as little to this process as before, and to its
/// children, in which nothing is handled at first, what it means anywhere. Must be called within a tokio runtime.
pub(super) fn handle_ignored() -> io::Result<()> {
    // std sees to it in children.
    let kept = SignalKind::pipe();
    for kind in ignored()?.into_iter().filter(|kind| *kind != kept) {
        // tokio never takes a handler away again, so the stream of signals need not be kept.
        if let Err(error) = signal(kind) {
            tracing::warn!(%error, ?kind, "a signal that was ignored stays ignored in the harness");
        }
    }
    Ok(())
}

fn ignored() -> io::Result<Vec<SignalKind>> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let mask = status.lines().find_map(|line| u64::from_str_radix(line.strip_prefix("SigIgn:")?.trim(), 16).ok());
    let mask = mask.ok_or_else(|| io::Error::other("/proc/self/status does not say which signals are ignored"))?;
    // Between these are the C library's own: it ignores them in whatever it starts.
    let numbers = (1..32).chain(libc::SIGRTMIN()..=64);
    Ok(numbers.filter(|number| mask >> (number - 1) & 1 == 1).map(SignalKind::from_raw).collect())
}
