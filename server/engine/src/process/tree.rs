//! Ends everything a job started, and proves it.
//!
//! A process group is not enough: a daemonised grandchild leaves it, and codex runs every command in a session of its
//! own. So a sweep interrupts the leader, gives it a grace, then kills what it finds in the process table, round
//! after round, until nothing is left ([`claim`] says what counts as found): a host without children has the kernel's
//! word for it, otherwise several looks in a row must find nobody. Signals go through pidfds whose process was
//! checked after opening, so a reused pid is never hit; process groups are also killed as a whole, which no fork can
//! outrun. The proof is a value, [`VerifiedDead`], which capturing a job's result demands.
//!
//! # What a sweep catches
//! - While the **host lives**: everything below it, whatever it did to its session, group, signals, descriptors or
//!   environment, because the host is a child subreaper and a process cannot leave its ancestors.
//! - After the **host died** (a *recovery* sweep, by a process that is no ancestor): the recorded leader if it is the
//!   same process still, every process of this user that was started with the job's marker, what these have below them,
//!   and whatever shares a session or group with one of them that the job created.
//!
//! # What it cannot catch
//! - After the host died: a process that was started *without* the marker (a scrubbed environment), whose parent is
//!   gone and that shares no session or group with a process that can be recognised. Nothing tells it from any other
//!   process of this user.
//! - At any time: what the job had *another* service start for it (`systemd-run --user`, `docker run`, `at`, an
//!   existing tmux server). It never was below the host; only the marker can give it away.
//! - For certain, after the host died: a chain of forks at the moment when pids wrap around, or one that is dying or
//!   starting a program each time we look. A living host that collects its leader's exit status meanwhile has the
//!   kernel's word instead.
//! - Processes of another user (through setuid programs) when we are not root: reported as survivors, never as dead.
//!
//! It never ends this process, its ancestors, or the tools and other hosts this process itself runs.

mod claim;

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal, kill_process_group, pidfd_open, pidfd_send_signal};

use super::environment::Marker;
use super::identity::{ProcessIdentity, is_gone};
use super::{reap, run, table};

use self::claim::{Claim, Target};

pub use self::claim::Found;

/// The longest wait between two looks at the process table while killed processes are still ending.
const ROUND: Duration = Duration::from_millis(100);

/// How often is killed at least, however late it is: our own time may have passed without us.
const LEAST_ROUNDS: u32 = 10;

/// So many looks in a row at a whole table that find nobody are proof.
const WHOLE_LOOKS: u32 = 2;

/// So many looks in a row that find nobody are proof, although the table was torn each time: whoever keeps forking is
/// seen alive at one of them.
const TORN_LOOKS: u32 = 30;

/// All processes of one attempt of a job, as seen from where we stand.
#[derive(Debug, Clone)]
pub struct JobTree {
    marker: Marker,
    leader: Option<ProcessIdentity>,
    vantage: Vantage,
}

/// Where a sweep is made from.
#[derive(Debug, Clone)]
enum Vantage {
    /// By the job's living host: this process.
    Host,
    /// By any other process, after the host's death.
    Recovery { host: Option<ProcessIdentity> },
}

/// How long a sweep may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Patience {
    /// After the interrupt, how long the leader may take to end by itself. Zero: no interrupt.
    pub grace: Duration,
    /// After the grace, how long killing may take.
    pub kill: Duration,
}

/// Proof that nothing of an attempt runs any more. Only a sweep makes one.
#[derive(Debug)]
pub struct VerifiedDead {
    marker: Marker,
    ended: Vec<Process>,
}

/// A process as it is named to people.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Process {
    /// Its pid.
    pub pid: i32,
    /// Its command name, at most 15 bytes, chosen by itself.
    pub command: String,
    /// How it was found to belong to the job.
    pub found: Found,
}

/// A process that should be dead and is not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Survivor {
    /// Which.
    pub process: Process,
    /// Why.
    pub reason: Survival,
}

impl fmt::Display for Survivor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Process { pid, command, .. } = &self.process;
        write!(f, "{} (pid {pid}, {})", command.escape_debug(), self.reason)
    }
}

/// Why a process survives a sweep.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Survival {
    /// The kernel refused the signal.
    #[error("runs as another user")]
    NotPermitted,
    /// It was killed, and the kernel holds it (a hung file system, a frozen control group).
    #[error("killed, but held by the kernel")]
    Stuck,
    /// It was found in the last look, too late: the job forks faster than it can be killed.
    #[error("started while the others were ended")]
    Late,
    /// The sweep was started from within the job; it does not end its own ancestors.
    #[error("this command was started from it")]
    Ancestor,
    /// Signalling failed otherwise.
    #[error("{0}")]
    Failed(String),
}

/// Why a tree is not verified dead.
#[derive(Debug, thiserror::Error)]
pub enum NotDead {
    /// Some processes are left.
    #[error("{} of the job's processes still run: {}", survivors.len(), name_all(survivors))]
    Survivors {
        /// Those that are left.
        survivors: Vec<Survivor>,
        /// Those that were ended.
        ended: Vec<Process>,
    },
    /// A recovery was asked for while the host runs.
    #[error("the job's host (pid {pid}) is still running")]
    HostAlive {
        /// The host's pid.
        pid: i32,
    },
    /// The process table cannot be read, so nothing is known.
    #[error("cannot read the process table")]
    Table(#[source] io::Error),
}

impl JobTree {
    /// The tree below this process, which is the job's host.
    #[must_use]
    pub fn below_this_host(marker: Marker, leader: Option<ProcessIdentity>) -> Self {
        Self { marker, leader, vantage: Vantage::Host }
    }

    /// What a dead host left behind, by what the journal recorded.
    #[must_use]
    pub fn left_by(marker: Marker, host: Option<ProcessIdentity>, leader: Option<ProcessIdentity>) -> Self {
        Self { marker, leader, vantage: Vantage::Recovery { host } }
    }

    /// Ends everything. Blocks for little more than `patience.grace + patience.kill`, so an asynchronous program calls
    /// it on a blocking thread; waiting for the leader's exit status at the same time is fine.
    ///
    /// # Errors
    /// When something is left, or nothing can be known.
    pub fn sweep(&self, patience: Patience) -> Result<VerifiedDead, NotDead> {
        self.refuse_if_host_lives()?;
        if let Some(leader) = self.leader.as_ref().filter(|_| !patience.grace.is_zero()) {
            interrupt(leader, patience.grace).map_err(NotDead::Table)?;
        }
        let mut claim = Claim::new(&self.marker, self.leader.as_ref(), self.host_pid()).map_err(NotDead::Table)?;
        let mut rounds = Rounds::default();
        let deadline = Instant::now() + patience.kill;
        loop {
            let look = claim.look().map_err(NotDead::Table)?;
            if look.targets.is_empty() {
                if self.is_settled(&mut rounds, look.torn) {
                    return Ok(VerifiedDead { marker: self.marker.clone(), ended: rounds.ended() });
                }
                // However late it is: so many such looks are proof.
                continue;
            }
            rounds.forget_empty_looks();
            let dying = rounds.kill(&look.targets);
            if Instant::now() >= deadline && rounds.count >= LEAST_ROUNDS {
                return Err(rounds.survivors(look.targets));
            }
            wait_for_all(&dying, ROUND).map_err(NotDead::Table)?;
        }
    }

    /// Whether a look that found nobody, after those before it, means that nobody is there.
    ///
    /// A process can dodge a look by forking ahead and ending before it is read. It leaves a torn table then; but so
    /// does any stranger that ends at the wrong moment, and on a busy machine one always does.
    fn is_settled(&self, rounds: &mut Rounds, torn: bool) -> bool {
        rounds.empty += 1;
        rounds.whole += u32::from(!torn);
        let childless = matches!(self.vantage, Vantage::Host) && reap::is_childless();
        childless || rounds.whole >= WHOLE_LOOKS || rounds.empty >= TORN_LOOKS
    }

    fn refuse_if_host_lives(&self) -> Result<(), NotDead> {
        let Vantage::Recovery { host: Some(host) } = &self.vantage else { return Ok(()) };
        match host.is_alive() {
            Ok(false) => Ok(()),
            Ok(true) => Err(NotDead::HostAlive { pid: host.pid().as_raw_nonzero().get() }),
            Err(error) => Err(NotDead::Table(error)),
        }
    }

    fn host_pid(&self) -> claim::Host<'_> {
        match &self.vantage {
            Vantage::Host => claim::Host::Here,
            Vantage::Recovery { host } => claim::Host::Gone(host.as_ref()),
        }
    }
}

impl VerifiedDead {
    /// Whose processes are dead.
    #[must_use]
    pub fn marker(&self) -> &Marker {
        &self.marker
    }

    /// The processes that the sweep had to kill.
    #[must_use]
    pub fn ended(&self) -> &[Process] {
        &self.ended
    }
}

/// Interrupts the leader and waits until it has ended or the grace is over. A leader that cannot be signalled is left
/// to the rounds, which report it.
fn interrupt(leader: &ProcessIdentity, grace: Duration) -> io::Result<()> {
    if !leader.is_alive()? {
        return Ok(());
    }
    let Ok(Some(pidfd)) = open(leader.pid(), leader.start_time()) else { return Ok(()) };
    if pidfd_send_signal(&pidfd, Signal::INT).is_ok() {
        run::wait_readable(&pidfd, grace)?;
    }
    Ok(())
}

/// What the rounds so far have come to.
#[derive(Default)]
struct Rounds {
    /// Looks in a row that found nobody.
    empty: u32,
    /// How many of these saw a whole table.
    whole: u32,
    /// How often somebody was killed.
    count: u32,
    attempts: BTreeMap<(i32, u64), Attempt>,
}

struct Attempt {
    process: Process,
    outcome: Result<(), Survival>,
}

impl Rounds {
    /// Kills the targets and the groups that are wholly theirs; returns pidfds to wait for.
    fn kill(&mut self, targets: &[Target]) -> Vec<OwnedFd> {
        self.count += 1;
        let mut dying = Vec::new();
        for target in targets {
            let outcome = if target.found == Found::Ancestor {
                Err(Survival::Ancestor)
            } else {
                kill(target).map(|pidfd| dying.extend(pidfd))
            };
            let process = Process { pid: target.pid, command: target.command.clone(), found: target.found };
            self.attempts.insert((target.pid, target.start_time), Attempt { process, outcome });
        }
        dying
    }

    fn forget_empty_looks(&mut self) {
        (self.empty, self.whole) = (0, 0);
    }

    fn ended(self) -> Vec<Process> {
        self.attempts.into_values().map(|attempt| attempt.process).collect()
    }

    fn survivors(mut self, targets: Vec<Target>) -> NotDead {
        let survivors = targets.into_iter().filter_map(|target| {
            let Attempt { process, outcome } = self.attempts.remove(&(target.pid, target.start_time))?;
            let reason = match outcome {
                Err(reason) => reason,
                Ok(()) if target.seen_before => Survival::Stuck,
                Ok(()) => Survival::Late,
            };
            Some(Survivor { process, reason })
        });
        let survivors = survivors.collect();
        NotDead::Survivors { survivors, ended: self.ended() }
    }
}

/// Kills one process and, if the target says so, its group. Returns the pidfd to wait for, unless it was gone already.
fn kill(target: &Target) -> Result<Option<OwnedFd>, Survival> {
    let failed = |error: io::Error| match error.raw_os_error().map(Errno::from_raw_os_error) {
        Some(Errno::PERM) => Survival::NotPermitted,
        _ => Survival::Failed(error.to_string()),
    };
    let Some(pid) = Pid::from_raw(target.pid) else { return Ok(None) };
    let Some(pidfd) = open(pid, target.start_time).map_err(failed)? else { return Ok(None) };
    if let Some(group) = target.own_group.and_then(Pid::from_raw) {
        // The pidfd shows that a member of the group was alive a moment ago, so the number is still the group's. The
        // member itself is killed below in any case.
        let _ = kill_process_group(group, Signal::KILL);
    }
    match pidfd_send_signal(&pidfd, Signal::KILL) {
        Ok(()) => Ok(Some(pidfd)),
        Err(Errno::SRCH) => Ok(None),
        Err(error) => Err(failed(error.into())),
    }
}

/// A pidfd of exactly this process, or nothing if it is gone. Checked after opening: from then on the pid can't
/// change hands.
fn open(pid: Pid, start_time: u64) -> io::Result<Option<OwnedFd>> {
    let pidfd = match pidfd_open(pid, PidfdFlags::empty()) {
        Ok(pidfd) => pidfd,
        Err(Errno::SRCH) => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    match table::read(pid) {
        Ok(stat) => Ok(Some(pidfd).filter(|_| stat.start_time == start_time)),
        Err(error) if is_gone(&error) => Ok(None),
        Err(error) => Err(error),
    }
}

fn wait_for_all(dying: &[OwnedFd], within: Duration) -> io::Result<()> {
    let deadline = Instant::now() + within;
    if dying.is_empty() {
        // Nothing could be signalled; what is left may end by itself.
        run::poll_for(&mut [], within)?;
    }
    for pidfd in dying {
        let mut fds = [PollFd::new(pidfd, PollFlags::IN)];
        run::poll_for(&mut fds, deadline.saturating_duration_since(Instant::now()))?;
    }
    Ok(())
}

fn name_all(survivors: &[Survivor]) -> String {
    survivors.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}
