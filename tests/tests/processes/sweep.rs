//! What a sweep ends while the host lives, what a recovery ends after the host died, and what it cannot end.

use std::time::Duration;

use pactify_engine::process::tree::{Survival, Survivor};
use pactify_engine::process::{JobTree, NotDead, Patience};
use rustix::process::{Signal, kill_process_group};

use crate::stage::{Member, Stage};

/// Every way out, alone and together.
const SHAPES: &[&str] = &[
    "child",
    "double-fork",
    "session",
    "session,double-fork",
    "session,double-fork,deaf",
    "session,double-fork,scrubbed",
    "session,double-fork,deaf,scrubbed,output",
    "session,double-fork,deaf,scrubbed,closed",
];

const AT_ONCE: Patience = Patience { grace: Duration::ZERO, kill: Duration::from_secs(20) };

/// The sweep of a test, which is no ancestor of the host.
fn recover(stage: &Stage, host: &Member, leader: &Member) -> Result<Vec<String>, NotDead> {
    let tree = JobTree::left_by(stage.marker(), Some(host.identity.clone()), Some(leader.identity.clone()));
    let ended = tree.sweep(AT_ONCE)?.ended().iter().map(|process| process.command.clone()).collect();
    Ok(ended)
}

#[test]
fn killing_the_leader_s_group_is_not_enough() {
    let stage = Stage::new();
    let [escapee, _host, leader] = stage.play("session,double-fork");
    kill_process_group(leader.pid(), Signal::KILL).unwrap();
    assert!(leader.ends());
    assert!(escapee.is_alive());
}

#[test]
fn nothing_escapes_a_living_host() {
    for shape in SHAPES {
        let stage = Stage::new();
        let [escapee, mut host, leader] = stage.play(shape);
        let report = host.ask("sweep 0 20000");
        assert_eq!(report["dead"], true, "{shape}: {report}");
        assert!(escapee.ends() && leader.ends() && host.is_alive(), "{shape}");
        stage.assert_only(&[&host]);
    }
}

/// Four processes, each of which starts its successor in a new session and ends, thousands of times.
#[test]
fn a_storm_of_forks_is_ended() {
    let stage = Stage::new();
    stage.serve("storm,scrubbed");
    let [mut host, _leader] = stage.call_roll();
    let report = host.ask("sweep 0 20000");
    assert_eq!(report["dead"], true, "{report}");
    stage.assert_only(&[&host]);
    assert!(!stage.path("finished").exists(), "the storm was over before the sweep: it proves nothing");
}

#[test]
fn a_storm_of_marked_forks_is_ended_by_a_recovery() {
    let stage = Stage::new();
    stage.serve("storm");
    let [host, leader] = stage.call_roll();
    host.kill();
    recover(&stage, &host, &leader).unwrap();
    stage.assert_only(&[]);
    assert!(!stage.path("finished").exists(), "the storm was over before the sweep: it proves nothing");
}

#[test]
fn the_leader_is_interrupted_before_it_is_killed() {
    for (shape, grace, expected) in [("nobody", 20_000, "SIGINT"), ("deaf-leader", 100, "SIGKILL")] {
        let stage = Stage::new();
        stage.serve(shape);
        let [mut host, _leader] = stage.call_roll();
        let report = host.ask(&format!("sweep {grace} 20000"));
        let status = report["leader"].as_str().unwrap();
        assert!(status.contains(expected), "{shape}: {report}");
    }
}

#[test]
fn reaping_orphans_leaves_the_leader_s_exit_status_alone() {
    let stage = Stage::new();
    let [escapee, mut host, mut leader] = stage.play("session,double-fork");
    leader.tell("exit 7");
    assert!(leader.ends());
    assert_eq!(host.ask("reap"), 0, "the leader is not an orphan");
    escapee.kill();
    assert_eq!(host.ask("reap"), 1);
    assert_eq!(host.ask("wait"), "exit status: 7");
}

#[test]
fn a_job_that_starts_a_job_takes_it_along() {
    let stage = Stage::new();
    std::fs::create_dir(stage.path("inner")).unwrap();
    std::os::unix::fs::symlink(stage.path("roll-call"), stage.path("inner/roll-call")).unwrap();
    stage.serve("inner-job");
    let members: [Member; 5] = stage.call_roll();
    let roles = members.each_ref().map(|member| member.role.as_str());
    assert_eq!(roles, ["escapee", "host", "host", "leader", "leader"]);
    let [_, one, two, ..] = members;
    let is_outer = |host: &Member| !host.view["variables"].to_string().contains("PACTIFY_JOB");
    let (mut outer, inner) = if is_outer(&one) { (one, two) } else { (two, one) };
    let report = outer.ask("sweep 0 20000");
    assert_eq!(report["dead"], true, "{report}");
    assert!(inner.ends());
    stage.assert_only(&[&outer]);
}

#[test]
fn a_recovery_ends_what_a_killed_host_left() {
    // Everything that carries the marker, and scrubbed processes that something recognisable leads to.
    for shape in
        ["child", "session", "session,double-fork", "session,double-fork,deaf,output", "scrubbed", "session,scrubbed"]
    {
        let stage = Stage::new();
        let [escapee, host, leader] = stage.play(shape);
        host.kill();
        assert!(escapee.is_alive() && leader.is_alive(), "{shape}: nothing to recover");
        let ended = recover(&stage, &host, &leader).unwrap();
        assert_eq!(ended.len(), 2, "{shape}: {ended:?}");
        assert!(escapee.ends() && leader.ends(), "{shape}");
        stage.assert_only(&[]);
    }
}

#[test]
fn a_recovery_finds_marked_orphans_after_leader_and_host_are_gone() {
    let stage = Stage::new();
    let [escapee, host, leader] = stage.play("session,double-fork,deaf");
    host.kill();
    leader.kill();
    assert_eq!(recover(&stage, &host, &leader).unwrap().len(), 1);
    assert!(escapee.ends());
}

/// The documented gap: no marker, no living parent, a session of its own.
#[test]
fn a_recovery_cannot_tell_a_scrubbed_orphan_from_a_stranger() {
    let stage = Stage::new();
    let [escapee, host, leader] = stage.play("session,double-fork,scrubbed");
    host.kill();
    recover(&stage, &host, &leader).unwrap();
    assert!(leader.ends());
    assert!(escapee.is_alive(), "the gap is closed: say so in the documentation of process::tree");
}

#[test]
fn a_recovery_leaves_other_jobs_alone() {
    let (one, other) = (Stage::new(), Stage::new());
    let [_, host, leader] = one.play("session,double-fork");
    let [other_escapee, other_host, other_leader] = other.play("session,double-fork");
    host.kill();
    recover(&one, &host, &leader).unwrap();
    one.assert_only(&[]);
    assert!(other_escapee.is_alive() && other_host.is_alive() && other_leader.is_alive());
}

#[test]
fn a_recovery_is_refused_while_the_host_lives() {
    let stage = Stage::new();
    let [escapee, host, leader] = stage.play("child");
    let refused = recover(&stage, &host, &leader);
    assert!(matches!(refused, Err(NotDead::HostAlive { .. })), "{refused:?}");
    assert!(escapee.is_alive() && leader.is_alive());
}

#[test]
fn what_does_not_end_is_named() {
    let survivor = Survivor {
        process: pactify_engine::process::tree::Process {
            pid: 42,
            command: "a\nb".into(),
            found: pactify_engine::process::tree::Found::Descendant,
        },
        reason: Survival::NotPermitted,
    };
    let error = NotDead::Survivors { survivors: vec![survivor], ended: vec![] };
    assert_eq!(error.to_string(), r"1 of the job's processes still run: a\nb (pid 42, runs as another user)");
}
