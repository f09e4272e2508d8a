//! The process table: `/proc/<pid>/stat` parsed, and who carries a marker.
//!
//! Reads only; who is killed is decided in [`super::tree`].

use std::fs::File;
use std::io::{self, BufRead as _, BufReader, Read as _};
use std::os::unix::fs::MetadataExt as _;

use rustix::process::Pid;

use super::environment::Marker;
use super::identity::is_gone;

/// An environment block larger than this is not searched to its end. The kernel's own limit for the arguments and
/// environment of an `execve` is 6 MiB with an unlimited stack.
const LARGEST_ENVIRONMENT: u64 = 8 << 20;

/// What `proc_pid_stat(5)` says about one process, as far as we need it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Stat {
    pub(super) pid: i32,
    pub(super) comm: String,
    pub(super) state: u8,
    pub(super) parent: i32,
    pub(super) group: i32,
    pub(super) session: i32,
    pub(super) threads: u32,
    pub(super) start_time: u64,
}

impl Stat {
    /// Parses the contents of a `stat` file. The command name may hold anything, spaces, parentheses and newlines
    /// included, so it ends at the *last* closing parenthesis.
    pub(super) fn parse(text: &[u8]) -> Option<Self> {
        let open = text.iter().position(|&byte| byte == b'(')?;
        let close = text.iter().rposition(|&byte| byte == b')')?;
        let pid = std::str::from_utf8(&text[..open]).ok()?.trim().parse().ok()?;
        let comm = String::from_utf8_lossy(text.get(open + 1..close)?).into_owned();
        let fields: Vec<&str> = std::str::from_utf8(&text[close + 1..]).ok()?.split_ascii_whitespace().collect();
        let [state, parent, group, session] = *fields.first_chunk()?;
        Some(Self {
            pid,
            comm,
            state: *state.as_bytes().first()?,
            parent: parent.parse().ok()?,
            group: group.parse().ok()?,
            session: session.parse().ok()?,
            threads: fields.get(17)?.parse().ok()?,
            start_time: fields.get(19)?.parse().ok()?,
        })
    }

    /// Whether nothing of it runs any more. A process whose first thread has ended while others go on *looks* like a
    /// zombie; its thread count tells.
    pub(super) fn is_dead(&self) -> bool {
        matches!(self.state, b'Z' | b'X' | b'x') && self.threads <= 1
    }
}

/// Reads one process.
pub(super) fn read(pid: Pid) -> io::Result<Stat> {
    read_raw(pid.as_raw_nonzero().get())
}

/// One reading of the whole table.
#[derive(Debug)]
pub(super) struct Table {
    pub(super) processes: Vec<Stat>,
    /// Whether a process was listed and gone when it was read.
    pub(super) has_gap: bool,
}

/// Reads every process that can be seen.
pub(super) fn read_all() -> io::Result<Table> {
    let (mut processes, mut has_gap) = (Vec::new(), false);
    for pid in newest_first()? {
        match read_raw(pid) {
            Ok(stat) => processes.push(stat),
            Err(error) if is_gone(&error) => has_gap = true,
            Err(error) => return Err(error),
        }
    }
    Ok(Table { processes, has_gap })
}

/// Every pid that can be seen, those first that are likely to go first.
pub(super) fn newest_first() -> io::Result<Vec<i32>> {
    let mut pids = Vec::new();
    for entry in std::fs::read_dir("/proc")? {
        pids.extend(entry?.file_name().to_str().and_then(|name| name.parse::<i32>().ok()));
    }
    pids.reverse();
    Ok(pids)
}

/// What a process's environment says about a marker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mark {
    /// It was started with it.
    Present,
    /// It was started without it, or nobody may look: another user's process, or one that made itself undumpable.
    Absent,
    /// There is no environment: it has none, or is in the middle of `exec`, or was gone before we looked.
    Blank,
}

/// Looks for the marker in the environment with which the process `pid` of the user `uid` was started.
pub(super) fn mark_of(pid: i32, uid: u32, marker: &Marker) -> Mark {
    match std::fs::metadata(format!("/proc/{pid}")) {
        Ok(metadata) if metadata.uid() != uid => return Mark::Absent,
        Ok(_) => {}
        Err(_) => return Mark::Blank,
    }
    let file = match File::open(format!("/proc/{pid}/environ")) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => return Mark::Absent,
        Err(_) => return Mark::Blank,
    };
    let mut entries = BufReader::with_capacity(64 << 10, file).take(LARGEST_ENVIRONMENT);
    let (mut entry, mut is_blank) = (Vec::new(), true);
    loop {
        entry.clear();
        match entries.read_until(0, &mut entry) {
            Ok(0) if !is_blank => return Mark::Absent,
            Ok(0) | Err(_) => return Mark::Blank,
            Ok(_) if marker.is_entry(entry.strip_suffix(&[0]).unwrap_or(&entry)) => return Mark::Present,
            Ok(_) => is_blank = false,
        }
    }
}

pub(super) fn read_raw(pid: i32) -> io::Result<Stat> {
    let text = std::fs::read(format!("/proc/{pid}/stat"))?;
    Stat::parse(&text)
        .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, format!("/proc/{pid}/stat is malformed")))
}

#[cfg(test)]
mod tests {
    use super::*;

    const AFTER_COMM: &str =
        " S 10 11 12 34816 4242 4194560 1 2 3 4 5 6 7 8 20 0 3 0 987654 2 3 18446744073709551615 1 1 0";

    #[test]
    fn a_command_name_may_hold_anything() {
        for comm in ["sh", "tmux: server", "a) S 1 1 1", "((", "))", "", ") (", "line\nbreak", "(sd-pam)"] {
            let stat = Stat::parse(format!("77 ({comm}){AFTER_COMM}\n").as_bytes()).unwrap();
            let expected = Stat {
                pid: 77,
                comm: comm.into(),
                state: b'S',
                parent: 10,
                group: 11,
                session: 12,
                threads: 3,
                start_time: 987_654,
            };
            assert_eq!(stat, expected);
        }
        let latin1 = [b"77 (caf\xe9)".as_slice(), AFTER_COMM.as_bytes()].concat();
        assert_eq!(Stat::parse(&latin1).unwrap().comm, "caf\u{fffd}");
    }

    #[test]
    fn what_is_not_a_stat_line_is_refused() {
        for text in ["", "77", "77 (sh", "77 sh) S", "(sh) S 1 1 1", "77 (sh) S 1 1 1", ")77("] {
            assert_eq!(Stat::parse(text.as_bytes()), None, "{text:?}");
        }
    }

    #[test]
    fn a_zombie_with_running_threads_is_alive() {
        let line = format!("77 (sh){AFTER_COMM}").replace(" S ", " Z ");
        let alive = Stat::parse(line.as_bytes()).unwrap();
        assert!(!alive.is_dead(), "{alive:?}");
        assert!(Stat { threads: 1, ..alive }.is_dead());
    }

    #[test]
    fn this_process_is_in_the_table() {
        let me = rustix::process::getpid().as_raw_nonzero().get();
        assert!(read_all().unwrap().processes.iter().any(|stat| stat.pid == me && !stat.is_dead()));
    }
}
