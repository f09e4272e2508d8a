//! What a job's tree has and nothing else: told before it goes, and it goes only when somebody says so.

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use pactify_core::job::Isolation;
use pactify_core::job::event::{AttemptReason, HostRecord, Known, ProcessRecord};
use pactify_core::job::outcome::{Disposition, Outcome};
use pactify_core::retention::Fate;
use pactify_core::{AttemptNo, Failure, FailureCode};
use pactify_engine::journal::Journal;
use pactify_engine::store::Store;
use rustix::fs::{CWD, FileType, Mode, mknodat};
use serde_json::json;

use super::{BASE, RESULT, apply, disposition, fates, id, jobs, prune};
use crate::support::{Fixture, Job, Landed, absolute, at, write};

/// A turn that ran and was not captured.
fn fail_to_capture(landed: &Landed) {
    let store = Store::open(&absolute(landed.job.places.directory().as_path().ancestors().nth(2).unwrap())).unwrap();
    let mut journal = Journal::open(store.job(id(landed)).unwrap().lock(Duration::ZERO).unwrap()).unwrap();
    let process = ProcessRecord { pid: 1, start_time: 2, boot_id: "boot".into() };
    let host = HostRecord { process: process.clone(), version: "0".into() };
    let failure = Some(Failure::new(FailureCode::NoSpace, "no space", "free some"));
    for event in [
        Known::AttemptStarted { reason: AttemptReason::Resume, host },
        Known::Launched { leader: process, harness_version: None },
        Known::AttemptEnded { outcome: Outcome::Failed, failure, final_message: None },
    ] {
        journal.append(at(), AttemptNo::FIRST.next(), event).unwrap();
    }
}

type Work = fn(&Fixture, &Job);

/// A job that did `work`, and whose result is applied: what of it is told, and whether it goes by itself.
fn goes_when_it_is_said(name: &str, work: Work, is_captured: bool, by_itself: Fate, told: Option<&str>) {
    goes_in(Isolation::Private, name, work, is_captured, by_itself, told);
}

fn goes_in(isolation: Isolation, name: &str, work: Work, is_captured: bool, by_itself: Fate, told: Option<&str>) {
    let fixture = Fixture::with(&[("a.txt", BASE), (".gitignore", "out/\n")]);
    let landed = fixture.land_in(&fixture.repo, isolation, |job| {
        job.write("a.txt", RESULT);
        work(&fixture, job);
    });
    apply(&landed, json!({})).unwrap();
    assert_eq!(disposition(&landed), Disposition::Applied, "{name}");
    if !is_captured {
        fail_to_capture(&landed);
    }
    let has_tree = || landed.job.tree().exists();
    let lost = jobs(&landed).status(id(&landed)).unwrap().only_in_tree;
    assert_eq!(lost.len(), usize::from(told.is_some()), "{name}: {lost:?}");
    assert!(told.is_none_or(|told| lost[0].contains(told)), "{name}: {lost:?}");

    // What a server does by itself.
    write(&fixture.root.join("home/.config/pactify/config.toml"), "[retention]\nage-days = 0\n");
    if told.is_some() {
        jobs(&landed).prune_as_configured().unwrap();
        assert!(has_tree(), "{name}");
    }
    let looked = prune(&landed, json!({ "dryRun": true, "records": true }));
    let by_itself = if by_itself == Fate::Tree { Fate::Record } else { by_itself };
    assert_eq!(fates(&looked), [(id(&landed).as_str(), by_itself)], "{name}");
    if by_itself == Fate::OnlyInTree {
        assert_eq!(fates(&prune(&landed, json!({}))), [(id(&landed).as_str(), by_itself)], "{name}");
        assert!(has_tree(), "{name}");
    }
    // Whoever names the job was told.
    let named = prune(&landed, json!({ "jobIds": [id(&landed)], "dryRun": true }));
    assert_eq!((named.jobs[0].fate, &named.jobs[0].lost), (Fate::Tree, &lost), "{name}");
    prune(&landed, json!({ "jobIds": [id(&landed)] }));
    assert!(!has_tree(), "{name}");
    assert_eq!(jobs(&landed).status(id(&landed)).unwrap().only_in_tree, Vec::<String>::new(), "{name}");
    assert_eq!(fates(&prune(&landed, json!({ "records": true }))), [(id(&landed).as_str(), Fate::Record)]);
}

#[test]
fn work_that_is_only_in_a_tree_is_named_and_goes_only_when_somebody_says_so() {
    let nothing: Work = |_, _| {};
    let nested: Work = |_, job| job.write("nested/.git/HEAD", "ref: refs/heads/main\n");
    let huge: Work = |_, job| fs::File::create(job.tree().join("huge")).unwrap().set_len(65 << 20).unwrap();
    let ignored: Work = |_, job| job.write("out/report.html", "days of work");
    for (name, work, is_captured, by_itself, told) in [
        ("captured", nothing, true, Fate::Tree, None),
        ("not captured", nothing, false, Fate::OnlyInTree, Some("is not captured")),
        ("a repository", nested, true, Fate::OnlyInTree, Some("nested is a repository of its own")),
        ("a huge file", huge, true, Fate::OnlyInTree, Some("huge has 68157440 bytes")),
        ("an ignored file", ignored, true, Fate::Tree, Some("ignored by the repository and not included: out")),
    ] {
        goes_when_it_is_said(name, work, is_captured, by_itself, told);
    }
}

/// What an agent does in its tree with git.
fn agent(fixture: &Fixture, job: &Job, arguments: &[&str]) -> String {
    let who = ["-c", "user.name=Agent", "-c", "user.email=agent@example.invalid"];
    fixture.plain(job.tree(), &[&who[..], arguments].concat())
}

/// A commit that is nowhere but in the job's own git directory, under this name.
fn commit_as(fixture: &Fixture, job: &Job, name: &str) {
    let commit = agent(fixture, job, &["commit-tree", "-m", "Mine", "-p", "HEAD", "HEAD^{tree}"]);
    agent(fixture, job, &["update-ref", name, &commit]);
}

#[test]
fn commits_that_are_only_in_a_tree_s_git_directory_are_such_work() {
    let commit: Work = |fixture, job| drop(agent(fixture, job, &["commit", "-qam", "Mine"]));
    let stash: Work = |fixture, job| {
        agent(fixture, job, &["stash", "-q"]);
        job.write("a.txt", RESULT);
    };
    let branch: Work = |fixture, job| {
        agent(fixture, job, &["checkout", "-q", "-b", "mine"]);
        agent(fixture, job, &["commit", "-qam", "Mine"]);
        agent(fixture, job, &["checkout", "-q", "--detach", "HEAD~1"]);
        job.write("a.txt", RESULT);
    };
    let packed: Work = |fixture, job| {
        (0..7).for_each(|number| commit_as(fixture, job, &format!("refs/heads/n{number}")));
        agent(fixture, job, &["pack-refs", "--all"]);
    };
    // Names for what is in the person's repository anyway, and what can be fetched again.
    let named: Work = |fixture, job| {
        agent(fixture, job, &["branch", "another"]);
        commit_as(fixture, job, "refs/remotes/origin/new");
        agent(fixture, job, &["pack-refs", "--all"]);
        commit_as(fixture, job, "refs/remotes/origin/newer");
    };
    fn refs(job: &Job) -> PathBuf {
        job.places.git().as_path().join("refs")
    }
    let link: Work = |_, job| {
        fs::rename(refs(job), refs(job).with_extension("old")).unwrap();
        std::os::unix::fs::symlink("/proc/self/task", refs(job)).unwrap();
    };
    let pipe: Work = |_, job| {
        let packed = refs(job).with_file_name("packed-refs");
        fs::remove_file(&packed).unwrap();
        rustix::fs::mknodat(rustix::fs::CWD, &packed, rustix::fs::FileType::Fifo, rustix::fs::Mode::RUSR, 0).unwrap();
    };
    let tables: Work = |_, job| fs::create_dir(refs(job).with_file_name("reftable")).unwrap();
    let many: Work = |_, job| {
        let line = |number| format!("{number:040x} refs/heads/n{number}\n");
        fs::write(refs(job).with_file_name("packed-refs"), (1..=20_001).map(line).collect::<String>()).unwrap();
    };
    let own: Work = |fixture, job| {
        fs::remove_file(job.tree().join(".git")).unwrap();
        agent(fixture, job, &["init", "-q"]);
        agent(fixture, job, &["add", "-A"]);
        agent(fixture, job, &["commit", "-qm", "Mine"]);
    };
    let gone: Work = |_, job| fs::remove_dir_all(job.places.git().as_path()).unwrap();
    const ONLY: &str = "commits are only in the git directory of the job's tree: ";
    for (name, work, told) in [
        ("a commit", commit, Some(format!("{ONLY}HEAD"))),
        ("a stash", stash, Some(format!("{ONLY}the stash"))),
        ("a branch", branch, Some(format!("{ONLY}branch mine"))),
        ("packed", packed, Some(format!("{ONLY}branch n0, branch n1, branch n2, branch n3, branch n4, …"))),
        ("names", named, None),
        ("a link in place of refs", link, Some("refs is a symbolic link".to_owned())),
        ("a pipe in place of packed refs", pipe, Some("packed-refs is a pipe".to_owned())),
        ("tables", tables, Some("its refs are kept in tables".to_owned())),
        ("too many", many, Some("it has more than 20000 refs".to_owned())),
        (
            "a repository of its own",
            own,
            Some(".git could not be read: it is a repository of the job's own".to_owned()),
        ),
        ("nothing", gone, None),
    ] {
        let by_itself = if told.is_some() { Fate::OnlyInTree } else { Fate::Tree };
        goes_when_it_is_said(name, work, true, by_itself, told.as_deref());
    }
}

#[test]
fn commits_that_only_the_head_of_a_linked_tree_names_are_such_work() {
    let commit: Work = |fixture, job| drop(agent(fixture, job, &["commit", "-qam", "Mine"]));
    let branch: Work = |fixture, job| {
        agent(fixture, job, &["checkout", "-q", "-b", "mine"]);
        agent(fixture, job, &["commit", "-qam", "Mine"]);
    };
    let held: Work = |fixture, job| {
        agent(fixture, job, &["commit", "-qam", "Mine"]);
        agent(fixture, job, &["commit", "-q", "--allow-empty", "-m", "More"]);
        agent(fixture, job, &["tag", "mine"]);
        agent(fixture, job, &["checkout", "-q", "--detach", "HEAD~1"]);
    };
    let gone: Work = |fixture, job| {
        agent(fixture, job, &["commit", "-qam", "Mine"]);
        let object = agent(fixture, job, &["rev-parse", "HEAD"]);
        let (folder, file) = object.split_at(2);
        fs::remove_file(fixture.repo.join(".git/objects").join(folder).join(file)).unwrap();
    };
    let pipe: Work = |fixture, job| {
        let head = agent(fixture, job, &["rev-parse", "--absolute-git-dir"]) + "/HEAD";
        fs::remove_file(&head).unwrap();
        mknodat(CWD, head, FileType::Fifo, Mode::RUSR, 0).unwrap();
    };
    const ONLY: &str = "commits are only in the git directory of the job's tree: HEAD";
    for (name, work, told) in [
        ("a commit", commit, Some(ONLY)),
        ("a pipe, for which git would wait", pipe, Some("could not be read: its HEAD is no file")),
        ("a branch", branch, None),
        ("below a tag", held, None),
        ("a commit that is gone", gone, Some("could not be read: git rev-list failed")),
    ] {
        let by_itself = if told.is_some() { Fate::OnlyInTree } else { Fate::Tree };
        goes_in(Isolation::Linked, name, work, true, by_itself, told);
    }
}

#[test]
fn a_retention_takes_trees_with_ignored_files_where_it_says_so() {
    for (more, stays) in [("", true), ("ignored-files = true\n", false)] {
        let fixture = Fixture::with(&[(".gitignore", "out/\n")]);
        let landed = fixture.land(|job| job.write("out/report.html", "of a build"));
        write(&fixture.root.join("home/.config/pactify/config.toml"), &format!("[retention]\nage-days = 0\n{more}"));
        jobs(&landed).prune_as_configured().unwrap();
        assert_eq!(landed.job.tree().exists(), stays, "{more}");
    }
}
