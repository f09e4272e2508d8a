//! A writer that is killed in the middle of its work, again and again.

use std::io::{BufRead, BufReader};
use std::process::Stdio;

use super::*;
use crate::store::fixture;

#[test]
fn what_was_acknowledged_survives_a_killed_writer() {
    const NAME: &str = "journal::tests::crash::what_was_acknowledged_survives_a_killed_writer";
    if let Some(home) = fixture::given_home() {
        write_until_killed(&home);
    }
    let home = Home::new();
    let (job, lock) = home.job();
    drop(lock);
    let mut before: Vec<Record> = Vec::new();
    for round in 0..15 {
        let mut child = fixture::child(NAME, home.store.home().as_path(), None)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
        let mut acknowledged = lines.filter_map(|line| line.strip_prefix("ack ")?.parse::<u64>().ok());
        let last = acknowledged.nth(1 + round % 5).expect("the writer writes");
        child.kill().unwrap();
        child.wait().unwrap();

        let seen = read(&job);
        assert!(!matches!(seen.end, End::Damaged(_)), "round {round}: {:?}", seen.end);
        assert!(seen.records.starts_with(&before), "round {round}: what was there stays");
        assert!(seen.records.len() as u64 >= last, "round {round}: {} of {last}", seen.records.len());
        assert!(seen.records.iter().zip(1..).all(|(record, seq)| record.seq == Seq(seq)), "round {round}");
        before = seen.records;
    }
}

fn write_until_killed(home: &std::path::Path) -> ! {
    let job = fixture::store(home).job(&fixture::ID.parse().unwrap()).unwrap();
    let mut journal = reopen(&job).unwrap();
    loop {
        let attempt = journal.state().next_attempt();
        let chatter = (0..8).map(|n| Event::from(message(&"chatter ".repeat(n * 10))));
        journal.append_all(at(), attempt, chatter).unwrap();
        let seq = journal.append(at(), attempt, started()).unwrap();
        println!("\nack {}", seq.0);
    }
}
