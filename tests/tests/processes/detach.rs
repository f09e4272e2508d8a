//! How a host starts: apart from its starter, with the lock, and with nothing it shouldn't have.

use rustix::process::{Signal, kill_process};

use crate::stage::{ARTIST, Stage};

#[test]
fn a_host_leads_its_own_session_and_outlives_its_starter() {
    let stage = Stage::new();
    let record = stage.serve("child");
    let [_, host, leader] = stage.call_roll();
    let pid = host.pid().as_raw_nonzero().get();
    assert_eq!(u32::try_from(pid).unwrap(), record.pid);
    assert_eq!(host.view["session"], pid);
    assert_eq!((host.view["umask"].as_str(), host.view["directory"].as_str()), (Some("0077"), Some("/")));
    assert_eq!(leader.view["session"], pid, "the harness stays in the host's session");
    assert_eq!(leader.view["group"], leader.pid().as_raw_nonzero().get(), "in a group of its own");
}

#[test]
fn a_hangup_means_nothing_to_a_host_and_everything_to_its_harness() {
    let stage = Stage::new();
    let [_, mut host, leader] = stage.play("child");
    kill_process(host.pid(), Signal::HUP).unwrap();
    kill_process(leader.pid(), Signal::HUP).unwrap();
    assert!(leader.ends());
    assert!(host.ask("wait").as_str().unwrap().contains("SIGHUP"));
}

#[test]
fn signals_that_the_starter_ignored_or_blocked_are_the_harness_s_as_anywhere() {
    // As bits of the kernel's masks.
    let [ignored, blocked]: [u64; 2] =
        [[Signal::INT, Signal::QUIT, Signal::USR2], [Signal::HUP, Signal::TERM, Signal::USR1]]
            .map(|all| all.map(|signal| 1_u64 << (signal.as_raw() - 1)).iter().sum());
    let mask = |text: &str| u64::from_str_radix(text.trim(), 16).unwrap();
    let starter = ["--ignore-signal=INT,QUIT,USR2", "--block-signal=HUP,TERM,USR1"];

    let stage = Stage::new();
    let shown = stage.run("/usr/bin/env", &[&starter[..], &["/bin/cat", "/proc/self/status"]].concat());
    let shown = String::from_utf8(shown.stdout.bytes).unwrap();
    for (name, expected) in [("SigIgn:", ignored), ("SigBlk:", blocked)] {
        let line = shown.lines().find_map(|line| line.strip_prefix(name)).unwrap();
        assert_eq!(mask(line) & expected, expected, "nothing to undo: this proves nothing: {shown}");
    }

    stage.run("/usr/bin/env", &[&starter[..], &[ARTIST, "serve", stage.folder(), stage.job(), "child"]].concat());
    let [escapee, mut host, leader] = stage.call_roll();
    // Programs in Rust ignore it themselves; and the C library ignores signals of its own in what it starts.
    let (pipe, own) = (1 << (Signal::PIPE.as_raw() - 1), 0b11 << 31);
    for member in [&escapee, &host, &leader] {
        let seen = ["ignored", "blocked"].map(|which| mask(member.view[which].as_str().unwrap()) & !own);
        assert_eq!(seen, [pipe, 0], "{}: {:#}", member.role, member.view);
    }
    kill_process(host.pid(), Signal::QUIT).unwrap();
    kill_process(leader.pid(), Signal::QUIT).unwrap();
    assert!(leader.ends());
    assert!(host.ask("wait").as_str().unwrap().contains("SIGQUIT"), "to the host it means nothing, as before");
}

#[test]
fn no_descriptor_reaches_the_harness() {
    let stage = Stage::new();
    std::fs::write(stage.path("leaked"), "").unwrap();
    // An editor that leaves descriptors open in its children.
    let script = r#"exec 7<"$2/leaked" 9>>"$2/leaked"; exec "$0" "$@""#;
    stage.run("/bin/sh", &["-c", script, ARTIST, "serve", stage.folder(), stage.job(), "child"]);
    let [escapee, host, leader] = stage.call_roll();
    let descriptors = |member: &crate::stage::Member| -> Vec<String> {
        let all: Vec<String> = serde_json::from_value(member.view["descriptors"].clone()).unwrap();
        // The socket to this test, and the listing itself.
        all.into_iter().filter(|line| !line.contains("/proc/") && !line.contains("socket:")).collect()
    };
    assert!(descriptors(&host).iter().any(|line| line.contains("leaked")), "nothing leaked: this proves nothing");
    assert_eq!(descriptors(&host)[..2], ["0 /dev/null", "1 /dev/null"]);
    for member in [&leader, &escapee] {
        let open = descriptors(member);
        assert_eq!(open.len(), 3, "{}: {open:?}", member.role);
        assert!(!open.iter().any(|line| line.contains("leaked") || line.contains("lock")), "{open:?}");
    }
}

#[test]
fn a_host_starts_although_the_binary_was_replaced() {
    let stage = Stage::new();
    let copy = stage.path("old-version");
    std::fs::copy(ARTIST, &copy).unwrap();
    stage.run(copy.to_str().unwrap(), &["serve", stage.folder(), stage.job(), "nobody", "replaced"]);
    assert!(!copy.exists());
    let [host, leader] = stage.call_roll();
    assert_eq!((host.role.as_str(), leader.role.as_str()), ("host", "leader"));
}

#[test]
fn a_harness_gets_the_filtered_environment_and_the_marker() {
    let stage = Stage::new()
        .with_variable("GIT_DIR", "/other/.git")
        .with_variable("PACTIFY_JOB", "20261129-000000-outer2")
        .with_variable("NODE_OPTIONS", "--require=/evil.js")
        .with_variable("KEPT", "yes");
    let [_, host, leader] = stage.play("child");
    let has = |member: &crate::stage::Member, entry: &str| {
        member.view["variables"].as_array().unwrap().iter().any(|other| other == entry)
    };
    assert!(has(&host, "GIT_DIR=/other/.git"), "nothing to filter: this proves nothing");
    let marker = format!("PACTIFY_JOB={}", stage.job());
    assert!(has(&leader, &marker) && has(&leader, "KEPT=yes"));
    let text = leader.view["variables"].to_string();
    for absent in ["GIT_DIR", "NODE_OPTIONS", "outer2"] {
        assert!(!text.contains(absent), "{absent}: {text}");
    }
}

#[test]
fn a_process_that_was_not_started_as_a_host_does_not_become_one() {
    let stage = Stage::new();
    let script = r#""$0" "$@" 2>&1; echo "status $?""#;
    let output = stage.run("/bin/sh", &["-c", script, ARTIST, "host", stage.folder(), stage.job(), ARTIST, "nobody"]);
    let said = String::from_utf8(output.stdout.bytes).unwrap();
    assert!(said.contains("hosts are started by pactify itself") && said.contains("status 1"), "{said}");
}
