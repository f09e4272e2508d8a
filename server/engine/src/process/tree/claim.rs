//! Which processes belong to a job: a pure selection over the process table, and the reading it needs.
//!
//! A process is claimed because it *is* the recorded leader, carries the marker, is below the living host, is below a
//! claimed process, or shares a session or group that the job created with a claimed process. The last rule is the only
//! one that could reach an innocent: session and group numbers are pids and get reused. It is safe because a number
//! stays taken as long as it has a member: one claimed member proves that the session or group is still the job's.

use std::collections::{BTreeMap, BTreeSet};
use std::io;

use crate::process::environment::Marker;
use crate::process::identity::{ProcessIdentity, is_gone};
use crate::process::reap;
use crate::process::table::{self, Mark, Stat};

/// How a process was found to belong to the job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Found {
    /// It is the process the job started first.
    Leader,
    /// It carries the job's marker.
    Marked,
    /// It is below the host or another process of the job.
    Descendant,
    /// It is in a session the job created.
    Session,
    /// It is in a process group the job created.
    Group,
    /// It belongs to the job and the sweep was started from it.
    Ancestor,
}

/// Where the job's host is.
#[derive(Debug, Clone, Copy)]
pub(super) enum Host<'a> {
    /// This process.
    Here,
    /// Dead, as recorded.
    Gone(Option<&'a ProcessIdentity>),
}

/// A process to be ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Target {
    pub(super) pid: i32,
    pub(super) start_time: u64,
    pub(super) command: String,
    pub(super) found: Found,
    /// The process group it is in, if the job created it.
    pub(super) own_group: Option<i32>,
    /// Whether an earlier look found it, too.
    pub(super) seen_before: bool,
}

/// What one look at the process table found.
#[derive(Debug)]
pub(super) struct Look {
    pub(super) targets: Vec<Target>,
    /// Whether a process ended between being listed and being read, its environment included. It may have started
    /// another one first, which then is not in the list. Otherwise everybody is: the kernel lists by ascending pid,
    /// and a process that takes its parent's place does so further ahead. (Except at the moment when the numbers wrap
    /// around.)
    pub(super) torn: bool,
}

/// What is known about a job's processes, across looks.
#[derive(Debug)]
pub(super) struct Claim<'a> {
    marker: &'a Marker,
    me: i32,
    uid: u32,
    known: Known,
    /// Every process claimed so far, by pid and start time. Claimed once is claimed for ever.
    seen: BTreeSet<(i32, u64)>,
    /// Those of the last look that told nothing, whoever's they are.
    doubtful: BTreeSet<(i32, u64)>,
}

/// What the selection depends on besides the table.
#[derive(Debug, Default)]
struct Known {
    /// The living host, below which everything is the job's.
    host: Option<i32>,
    /// The leader's pid and start time.
    leader: Option<(i32, u64)>,
    /// Pids of processes of the job, dead ones included: the sessions and groups of these numbers were created by the
    /// job.
    creators: BTreeSet<i32>,
    /// Roots of subtrees that are never claimed, by descent or otherwise.
    spared: Vec<i32>,
}

impl<'a> Claim<'a> {
    pub(super) fn new(marker: &'a Marker, leader: Option<&ProcessIdentity>, host: Host<'_>) -> io::Result<Self> {
        let me = rustix::process::getpid().as_raw_nonzero().get();
        let number = |identity: &ProcessIdentity| identity.pid().as_raw_nonzero().get();
        // What was recorded in another boot says nothing about the numbers of this one.
        let leader = match leader {
            Some(leader) if leader.is_of_this_boot()? => Some((number(leader), leader.start_time())),
            _ => None,
        };
        let (host, creator) = match host {
            Host::Here => (Some(me), Some(me)),
            Host::Gone(Some(host)) if host.is_of_this_boot()? => (None, Some(number(host))),
            Host::Gone(_) => (None, None),
        };
        let creators = creator.into_iter().chain(leader.map(|(pid, _)| pid)).collect();
        let known = Known { host, leader, creators, spared: Vec::new() };
        let uid = rustix::process::geteuid().as_raw();
        Ok(Self { marker, me, uid, known, seen: BTreeSet::new(), doubtful: BTreeSet::new() })
    }

    /// Looks for processes of the job, and collects the orphans that have ended.
    ///
    /// First at what ties processes to those already claimed, then, only if that finds nobody, at environments. A
    /// process that keeps forking is hit only by whoever is quick, so the first marked process found ends the look.
    pub(super) fn look(&mut self) -> io::Result<Look> {
        self.known.spared = reap::spared();
        let mut table = table::read_all()?;
        reap::reap_listed(&table);
        let targets = self.targets(&table.processes, &BTreeSet::new());
        if !targets.is_empty() {
            return Ok(Look { targets, torn: true });
        }
        let (mut marked, mut doubtful) = (BTreeSet::new(), BTreeSet::new());
        for pid in table::newest_first()? {
            let process = match table::read_raw(pid) {
                Ok(process) => process,
                Err(error) if is_gone(&error) => {
                    table.has_gap = true;
                    continue;
                }
                Err(error) => return Err(error),
            };
            let mark = if process.is_dead() { Mark::Blank } else { table::mark_of(pid, self.uid, self.marker) };
            match mark {
                Mark::Absent => {}
                Mark::Blank => drop(doubtful.insert((pid, process.start_time))),
                Mark::Present => {
                    marked.insert(pid);
                    table.processes.retain(|other| other.pid != pid);
                    table.processes.push(process);
                    let targets = self.targets(&table.processes, &marked);
                    if targets.iter().any(|target| target.found != Found::Ancestor) {
                        return Ok(Look { targets, torn: true });
                    }
                }
            }
        }
        // Zombies and processes without any environment stay; who comes and goes is never doubtful twice.
        let torn = table.has_gap || !doubtful.is_subset(&self.doubtful);
        self.doubtful = doubtful;
        Ok(Look { targets: self.targets(&table.processes, &marked), torn })
    }

    fn targets(&mut self, table: &[Stat], marked: &BTreeSet<i32>) -> Vec<Target> {
        let known = table.iter().filter(|process| self.seen.contains(&(process.pid, process.start_time)));
        let marked =
            known.filter(|process| !process.is_dead()).map(|process| process.pid).chain(marked.iter().copied());
        let marked = marked.collect();
        let found = self.known.select(table, &marked, self.me);
        // Dead members keep their numbers taken as long as anyone of the session or group is left.
        self.known.creators.extend(found.iter().filter(|&(_, &how)| how != Found::Ancestor).map(|(&pid, _)| pid));
        let own_groups = self.known.own_groups(table, &found);
        let living = table.iter().filter(|process| !process.is_dead());
        let targets = living.filter_map(|process| {
            let found = *found.get(&process.pid)?;
            let own_group = own_groups.get(&process.group).copied();
            let seen_before = !self.seen.insert((process.pid, process.start_time));
            let Stat { pid, start_time, comm, .. } = process;
            Some(Target { pid: *pid, start_time: *start_time, command: comm.clone(), found, own_group, seen_before })
        });
        targets.collect()
    }
}

impl Known {
    /// The processes that belong to the job, zombies included: they still tie the living to the job.
    fn select(&self, table: &[Stat], marked: &BTreeSet<i32>, me: i32) -> BTreeMap<i32, Found> {
        let parents: BTreeMap<i32, i32> = table.iter().map(|process| (process.pid, process.parent)).collect();
        let ancestors = lineage(me, &parents);
        let spared = |pid| lineage(pid, &parents).iter().any(|ancestor| self.spared.contains(ancestor));
        let candidates: Vec<&Stat> =
            table.iter().filter(|process| !ancestors.contains(&process.pid) && !spared(process.pid)).collect();

        let mut found = BTreeMap::new();
        for process in &candidates {
            if self.leader == Some((process.pid, process.start_time)) {
                found.insert(process.pid, Found::Leader);
            } else if marked.contains(&process.pid) {
                found.insert(process.pid, Found::Marked);
            }
        }
        loop {
            let ties = Ties::of(self, &found, table);
            let before = found.len();
            for process in &candidates {
                if let (false, Some(tie)) = (found.contains_key(&process.pid), ties.bind(process)) {
                    found.insert(process.pid, tie);
                }
            }
            if found.len() == before {
                break;
            }
        }
        if self.host.is_none() {
            found.extend(
                ancestors.iter().filter(|&&pid| pid != me && marked.contains(&pid)).map(|&pid| (pid, Found::Ancestor)),
            );
        }
        found
    }

    /// The groups the job created and that hold nothing but its processes, so that they can be killed as a whole.
    fn own_groups(&self, table: &[Stat], found: &BTreeMap<i32, Found>) -> BTreeSet<i32> {
        let mixed = |group: i32| {
            let mut members = table.iter().filter(|process| process.group == group);
            members.any(|process| found.get(&process.pid).is_none_or(|&how| how == Found::Ancestor))
        };
        self.creators.iter().copied().filter(|&group| !mixed(group)).collect()
    }
}

/// A process and its ancestors.
fn lineage(pid: i32, parents: &BTreeMap<i32, i32>) -> BTreeSet<i32> {
    let mut line = BTreeSet::from([pid]);
    let mut current = pid;
    while let Some(&parent) = parents.get(&current)
        && line.insert(parent)
    {
        current = parent;
    }
    line
}

/// What makes further processes the job's, given those found so far.
struct Ties {
    parents: BTreeSet<i32>,
    sessions: BTreeSet<i32>,
    groups: BTreeSet<i32>,
}

impl Ties {
    fn of(known: &Known, found: &BTreeMap<i32, Found>, table: &[Stat]) -> Self {
        let parents: BTreeSet<i32> = found.keys().copied().chain(known.host).collect();
        let created = |number: &i32| known.creators.contains(number) || found.contains_key(number);
        let members = || table.iter().filter(|process| parents.contains(&process.pid));
        let sessions = members().map(|process| process.session).filter(created).collect();
        let groups = members().map(|process| process.group).filter(created).collect();
        Self { parents, sessions, groups }
    }

    fn bind(&self, process: &Stat) -> Option<Found> {
        if self.parents.contains(&process.parent) {
            Some(Found::Descendant)
        } else if self.sessions.contains(&process.session) {
            Some(Found::Session)
        } else if self.groups.contains(&process.group) {
            Some(Found::Group)
        } else {
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ME: i32 = 50;

    /// pid, parent, group, session
    type Row = (i32, i32, i32, i32);

    /// The person's own session, which every table holds: init, a shell, this process, a neighbour.
    const SURROUNDINGS: [Row; 4] = [(1, 0, 1, 1), (40, 1, 40, 40), (ME, 40, ME, 40), (41, 40, 41, 40)];

    fn table(rows: &[Row]) -> Vec<Stat> {
        let rows = SURROUNDINGS.iter().chain(rows);
        rows.map(|&(pid, parent, group, session)| Stat {
            pid,
            comm: "x".into(),
            state: b'S',
            parent,
            group,
            session,
            threads: 1,
            start_time: 1000,
        })
        .collect()
    }

    fn recovery(host: i32, leader: i32) -> Known {
        Known { host: None, leader: Some((leader, 1000)), creators: [host, leader].into(), spared: vec![] }
    }

    fn host() -> Known {
        Known { host: Some(ME), leader: None, creators: [ME].into(), spared: vec![] }
    }

    #[track_caller]
    fn check(known: &Known, rows: &[Row], marked: &[i32], expected: &[(i32, Found)]) {
        let found = known.select(&table(rows), &marked.iter().copied().collect(), ME);
        assert_eq!(found, expected.iter().copied().collect());
    }

    #[test]
    fn a_living_host_claims_everything_below_it() {
        let daemonised = [(60, ME, 60, 40), (61, 60, 61, 61), (62, ME, 62, 62), (63, 62, 9, 9)];
        let all = [60, 61, 62, 63].map(|pid| (pid, Found::Descendant));
        check(&host(), &daemonised, &[], &all);
    }

    #[test]
    fn a_living_host_claims_what_carries_its_marker_elsewhere() {
        check(&host(), &[(70, 1, 70, 70), (71, 70, 70, 70)], &[70], &[(70, Found::Marked), (71, Found::Descendant)]);
    }

    #[test]
    fn a_living_host_spares_its_tools_and_other_hosts() {
        let known = Known { spared: vec![60], ..host() };
        check(&known, &[(60, ME, 60, 40), (61, 60, 60, 40), (62, ME, 62, 40)], &[], &[(62, Found::Descendant)]);
    }

    #[test]
    fn a_recovery_claims_nothing_without_evidence() {
        // A process that has the dead leader's pid but not its start time, and members of reused numbers.
        let mut rows = table(&[(81, 1, 81, 81), (82, 1, 80, 80), (83, 1, 81, 80)]);
        rows.iter_mut().for_each(|process| process.start_time = 2000);
        assert_eq!(recovery(80, 81).select(&rows, &BTreeSet::new(), ME), BTreeMap::new());
    }

    #[test]
    fn a_recovery_claims_the_leader_and_what_shares_its_session_or_group() {
        let rows = [(81, 1, 81, 80), (82, 1, 82, 80), (83, 1, 81, 99), (84, 83, 84, 84)];
        let expected = [(81, Found::Leader), (82, Found::Session), (83, Found::Group), (84, Found::Descendant)];
        check(&recovery(80, 81), &rows, &[], &expected);
    }

    #[test]
    fn sharing_a_session_the_job_did_not_create_is_no_evidence() {
        // A marked process in the person's own session must not drag the shell and its neighbours in.
        check(&recovery(80, 81), &[(60, 40, 60, 40)], &[60], &[(60, Found::Marked)]);
    }

    #[test]
    fn a_session_created_by_a_marked_process_is_the_job_s() {
        check(
            &recovery(80, 81),
            &[(90, 1, 90, 90), (91, 1, 91, 90)],
            &[90],
            &[(90, Found::Marked), (91, Found::Session)],
        );
    }

    #[test]
    fn a_recovery_from_within_the_job_reports_its_ancestors_and_spares_itself() {
        check(&recovery(80, 81), &[], &[40, ME, 41], &[(40, Found::Ancestor), (41, Found::Marked)]);
    }

    #[test]
    fn a_group_is_killed_as_a_whole_only_if_it_is_wholly_the_job_s() {
        let known = Known { creators: [80, 60, 40, ME].into(), ..recovery(80, 81) };
        let table = table(&[(60, 1, 60, 60), (61, 1, 60, 60), (80, 1, 80, 80), (95, 1, 80, 80)]);
        let found = [60, 61, 80].map(|pid| (pid, Found::Marked)).into();
        assert_eq!(known.own_groups(&table, &found), [60].into());
    }
}
