//! A process, told apart from every other process this machine has run or will run.
//!
//! A pid alone is reused; the pid with its start time (clock ticks since boot) is unique within a boot, and the boot id
//! tells boots apart. Written into the journal, it says days later whether a process is still the same one.

use std::io;

use pactify_core::job::event::ProcessRecord;
use rustix::process::Pid;

use super::table;

/// Names one process for ever. Its written form is [`ProcessRecord`].
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ProcessIdentity {
    pid: Pid,
    start_time: u64,
    boot_id: String,
}

/// A record that names no process.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{pid} is not the pid of a process")]
pub struct NotAProcess {
    /// The number found.
    pub pid: u32,
}

impl ProcessIdentity {
    /// The identity of the running process `pid`, zombies included.
    ///
    /// It is only as certain as the pid: ask for a child that nobody has waited for, or for oneself.
    ///
    /// # Errors
    /// When there is no such process or `/proc` cannot be read.
    pub fn of(pid: Pid) -> io::Result<Self> {
        let stat = table::read(pid)?;
        Ok(Self { pid, start_time: stat.start_time, boot_id: current_boot()? })
    }

    /// The identity of this process.
    ///
    /// # Errors
    /// When `/proc` cannot be read.
    pub fn of_self() -> io::Result<Self> {
        Self::of(rustix::process::getpid())
    }

    /// Whether exactly this process still runs. A zombie does not; a process that merely has its pid is not it.
    ///
    /// # Errors
    /// When `/proc` cannot be read for another reason than that there is no such process.
    pub fn is_alive(&self) -> io::Result<bool> {
        if current_boot()? != self.boot_id {
            return Ok(false);
        }
        match table::read(self.pid) {
            Ok(stat) => Ok(stat.start_time == self.start_time && !stat.is_dead()),
            Err(error) if is_gone(&error) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// The pid. Meaningful only together with the rest: don't signal it without checking.
    #[must_use]
    pub fn pid(&self) -> Pid {
        self.pid
    }

    /// Clock ticks between boot and start.
    #[must_use]
    pub fn start_time(&self) -> u64 {
        self.start_time
    }

    /// Whether the process belongs to the boot that is running now.
    pub(super) fn is_of_this_boot(&self) -> io::Result<bool> {
        Ok(current_boot()? == self.boot_id)
    }
}

impl From<&ProcessIdentity> for ProcessRecord {
    fn from(identity: &ProcessIdentity) -> Self {
        let ProcessIdentity { pid, start_time, boot_id } = identity;
        Self { pid: pid.as_raw_nonzero().get().unsigned_abs(), start_time: *start_time, boot_id: boot_id.clone() }
    }
}

impl TryFrom<&ProcessRecord> for ProcessIdentity {
    type Error = NotAProcess;

    fn try_from(record: &ProcessRecord) -> Result<Self, NotAProcess> {
        let pid = i32::try_from(record.pid).ok().and_then(Pid::from_raw).ok_or(NotAProcess { pid: record.pid })?;
        Ok(Self { pid, start_time: record.start_time, boot_id: record.boot_id.clone() })
    }
}

/// What `/proc/<pid>/…` answers once the process is gone: before the open, and between the open and the read.
pub(super) fn is_gone(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::NotFound || error.raw_os_error() == Some(rustix::io::Errno::SRCH.raw_os_error())
}

fn current_boot() -> io::Result<String> {
    let boot_id = std::fs::read_to_string("/proc/sys/kernel/random/boot_id")?;
    Ok(boot_id.trim_end().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_is_alive() {
        assert!(ProcessIdentity::of_self().unwrap().is_alive().unwrap());
    }

    #[test]
    fn a_reused_pid_or_another_boot_is_another_process() {
        let me = ProcessIdentity::of_self().unwrap();
        let earlier = ProcessIdentity { start_time: me.start_time - 1, ..me.clone() };
        let last_boot = ProcessIdentity { boot_id: "another".into(), ..me.clone() };
        for other in [earlier, last_boot] {
            assert!(!other.is_alive().unwrap(), "{other:?}");
        }
    }

    #[test]
    fn records_round_trip_and_refuse_numbers_that_name_no_single_process() {
        let me = ProcessIdentity::of_self().unwrap();
        let record = ProcessRecord::from(&me);
        assert_eq!(ProcessIdentity::try_from(&record).unwrap(), me);
        for pid in [0, u32::MAX, 1 << 31] {
            let record = ProcessRecord { pid, ..record.clone() };
            assert_eq!(ProcessIdentity::try_from(&record), Err(NotAProcess { pid }));
        }
    }
}
