//! A process, told apart from every other process this machine has run or will run.
//!
//! A pid alone is reused; the pid with its start time (clock ticks since boot) is unique within a boot, and the boot id
//! tells boots apart. Written into the journal, it says days later whether a process is still the same one.

use std::io;
use std::path::Path;

use rustix::process::Pid;
use serde::{Deserialize, Serialize};

use super::table;

/// Names one process for ever.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "Recorded", into = "Recorded")]
pub struct ProcessIdentity {
    pid: Pid,
    start_time: u64,
    boot_id: String,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Recorded {
    pid: i32,
    start_time: u64,
    boot_id: String,
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

impl From<ProcessIdentity> for Recorded {
    fn from(identity: ProcessIdentity) -> Self {
        let ProcessIdentity { pid, start_time, boot_id } = identity;
        Self { pid: pid.as_raw_nonzero().get(), start_time, boot_id }
    }
}

impl TryFrom<Recorded> for ProcessIdentity {
    type Error = String;

    fn try_from(recorded: Recorded) -> Result<Self, Self::Error> {
        let Recorded { pid, start_time, boot_id } = recorded;
        let pid = Some(pid).filter(|&pid| pid > 0).and_then(Pid::from_raw);
        Ok(Self { pid: pid.ok_or("a pid is a positive number")?, start_time, boot_id })
    }
}

/// What `/proc/<pid>/…` answers once the process is gone: before the open, and between the open and the read.
pub(super) fn is_gone(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::NotFound || error.raw_os_error() == Some(rustix::io::Errno::SRCH.raw_os_error())
}

fn current_boot() -> io::Result<String> {
    let path = Path::new("/proc/sys/kernel/random/boot_id");
    Ok(std::fs::read_to_string(path)?.trim_end().to_owned())
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
    fn records_round_trip_and_refuse_pids_that_mean_groups() {
        let me = ProcessIdentity::of_self().unwrap();
        let json = serde_json::to_string(&me).unwrap();
        assert_eq!(serde_json::from_str::<ProcessIdentity>(&json).unwrap(), me);
        for pid in ["0", "-1", "-42"] {
            let json = format!(r#"{{"pid":{pid},"startTime":1,"bootId":"x"}}"#);
            assert!(serde_json::from_str::<ProcessIdentity>(&json).is_err(), "{pid}");
        }
    }
}
