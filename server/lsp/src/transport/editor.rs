//! The editor's process, watched so that the server ends with it even if some other process keeps our input open.
//!
//! A process that cannot be found is not taken for dead: an editor outside our container names a process id that
//! means nothing here. The end of input remains the way to notice those.

use serde_json::Value;

/// The process that `initialize` named, if it can be watched.
#[derive(Debug, Default)]
pub(super) struct Editor {
    #[cfg(target_os = "linux")]
    process: Option<tokio::io::unix::AsyncFd<std::os::fd::OwnedFd>>,
}

impl Editor {
    /// Reads `processId` from the parameters of `initialize`.
    #[cfg(target_os = "linux")]
    pub(super) fn named_in(params: Option<&Value>) -> Self {
        use rustix::process::{Pid, PidfdFlags, pidfd_open};

        let named = params.and_then(|params| params.get("processId")).and_then(Value::as_i64);
        let named = named.and_then(|pid| i32::try_from(pid).ok()).filter(|pid| *pid > 0);
        let Some(pid) = named.and_then(Pid::from_raw) else { return Self::default() };
        let watched = pidfd_open(pid, PidfdFlags::NONBLOCK)
            .map_err(std::io::Error::from)
            .and_then(|fd| super::stdio::watch(fd, tokio::io::Interest::READABLE));
        match watched {
            Ok(process) => Self { process: Some(process) },
            Err(error) => {
                tracing::warn!(%error, pid = pid.as_raw_nonzero(), "the editor's process cannot be watched");
                Self::default()
            }
        }
    }

    /// Watches nothing.
    #[cfg(not(target_os = "linux"))]
    pub(super) fn named_in(_: Option<&Value>) -> Self {
        Self::default()
    }

    /// Waits for the process to end; never completes if none is watched.
    pub(super) async fn gone(&self) {
        #[cfg(target_os = "linux")]
        if let Some(process) = &self.process
            && process.readable().await.is_ok()
        {
            return;
        }
        std::future::pending().await
    }
}
