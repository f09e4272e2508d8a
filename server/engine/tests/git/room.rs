//! Taking back, giving up, making room: what goes, what stays, and what is still possible afterwards.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::time::Duration;

use pactify_core::job::Isolation;
use pactify_core::job::event::{AttemptReason, HostRecord, Known, ProcessRecord};
use pactify_core::job::outcome::{Disposition, Outcome};
use pactify_core::protocol::{
    Applied, ApplyParams, EventsParams, PruneParams, Pruned, ResumeParams, UndoParams, Undone,
};
use pactify_core::retention::Fate;
use pactify_core::{AttemptNo, Failure, FailureCode, JobId};
use pactify_engine::apply::{self, ApplyId, RepositoryLock};
use pactify_engine::jobs::Jobs;
use pactify_engine::journal::Journal;
use pactify_engine::store::Store;
use serde_json::{Value, json};

use crate::support::{Fixture, Job, Landed, absolute, at, write};

const BASE: &str = "1\n2\n3\n4\n5\n6\n7\n8\n9\n";
const RESULT: &str = "eins\n2\n3\n4\n5\n6\n7\n8\nneun\n";
const FIRST: &str = "-1,1+1,1";
const LAST: &str = "-9,1+9,1";

fn landed(fixture: &Fixture, isolation: Isolation) -> Landed {
    fixture.land_in(&fixture.repo, isolation, |job| {
        job.write("a.txt", RESULT);
        job.write("b.txt", "new\n");
    })
}

fn jobs(landed: &Landed) -> Jobs {
    Jobs::open(landed.env.clone()).unwrap()
}

fn id(landed: &Landed) -> &JobId {
    landed.job.places.job()
}

fn apply(landed: &Landed, more: Value) -> Result<Applied, Failure> {
    let jobs = jobs(landed);
    let change_set = jobs.status(id(landed)).unwrap().change_set.unwrap();
    let mut params = json!({ "jobId": id(landed), "changeSet": change_set });
    params.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    jobs.apply(&serde_json::from_value::<ApplyParams>(params).unwrap())
}

fn undo(landed: &Landed, apply_id: Option<u32>) -> Result<Undone, Failure> {
    jobs(landed).undo(&UndoParams { job_id: id(landed).to_string(), apply_id })
}

fn disposition(landed: &Landed) -> Disposition {
    jobs(landed).status(id(landed)).unwrap().summary.disposition
}

fn prune(landed: &Landed, more: Value) -> Pruned {
    let mut params = json!({ "olderThanSeconds": 0 });
    params.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    jobs(landed).prune(&serde_json::from_value::<PruneParams>(params).unwrap()).unwrap()
}

fn fates(pruned: &Pruned) -> Vec<(&str, Fate)> {
    pruned.jobs.iter().map(|item| (item.job_id.as_str(), item.fate)).collect()
}

fn read(fixture: &Fixture, path: &str) -> String {
    fs::read_to_string(fixture.repo.join(path)).unwrap()
}

fn refs(fixture: &Fixture) -> usize {
    fixture.plain(&fixture.repo, &["for-each-ref", "refs/pactify"]).lines().count()
}

#[test]
fn parts_are_taken_back_one_by_one_and_can_be_applied_again() {
    let fixture = Fixture::with(&[("a.txt", BASE)]);
    let landed = landed(&fixture, Isolation::Private);
    let group = |group: &str| json!({ "select": [{ "path": "a.txt", "groups": [group] }] });
    for part in [group(FIRST), group(LAST), json!({ "select": [{ "path": "b.txt" }] })] {
        apply(&landed, part).unwrap();
    }
    assert_eq!((read(&fixture, "a.txt").as_str(), disposition(&landed)), (RESULT, Disposition::Applied));

    let refused = undo(&landed, Some(1)).unwrap_err();
    assert_eq!(refused.code, FailureCode::ApplyConflict);
    assert_eq!(refused.conflicts[0].detail, "apply 2 of this job changed it since");

    assert_eq!(undo(&landed, Some(2)).unwrap().disposition, Disposition::PartlyApplied);
    assert_eq!(read(&fixture, "a.txt"), BASE.replace("1\n", "eins\n"));
    let again = apply(&landed, json!({})).unwrap();
    assert_eq!((again.applied.len(), again.disposition), (1, Disposition::Applied));
    assert_eq!(read(&fixture, "a.txt"), RESULT);

    for number in [4, 3, 1] {
        assert_eq!(undo(&landed, None).unwrap().apply, number);
    }
    assert_eq!((read(&fixture, "a.txt").as_str(), disposition(&landed)), (BASE, Disposition::Pending));
    assert_eq!(fixture.plain(&fixture.repo, &["status", "--porcelain"]), "");
    assert_eq!(undo(&landed, None).unwrap_err().code, FailureCode::WrongState);
    assert_eq!(apply(&landed, json!({})).unwrap().applied.len(), 2);
}

#[test]
fn an_apply_that_finds_everything_in_place_stands_in_no_undo_s_way() {
    let fixture = Fixture::with(&[("a.txt", BASE)]);
    let landed = landed(&fixture, Isolation::Private);
    assert_eq!(apply(&landed, json!({})).unwrap().applied.len(), 2);
    assert_eq!(apply(&landed, json!({})).unwrap().already.len(), 2);
    assert_eq!(undo(&landed, None).unwrap().apply, 1);
    assert_eq!((read(&fixture, "a.txt").as_str(), disposition(&landed)), (BASE, Disposition::Pending));
}

#[test]
fn an_undo_whose_process_died_before_the_journal_is_entered_by_the_next_writer() {
    let fixture = Fixture::with(&[("a.txt", BASE)]);
    let landed = landed(&fixture, Isolation::Private);
    apply(&landed, json!({})).unwrap();
    let store = Store::open(&fixture.store).unwrap();
    let lock = RepositoryLock::acquire(&store, &landed.job.repository, Duration::ZERO).unwrap();
    apply::undo(&ApplyId { job: id(&landed).clone(), number: 1 }, &[], &lock).unwrap();
    drop(lock);
    assert_eq!(disposition(&landed), Disposition::Applied, "nobody told the journal");

    assert_eq!(undo(&landed, None).unwrap_err().code, FailureCode::WrongState, "nothing is applied any more");
    assert_eq!(disposition(&landed), Disposition::Pending);
    assert!(!fixture.repo.join(".git/pactify").exists(), "what was kept for it is gone");
    let params = EventsParams { job_id: id(&landed).to_string(), after: None, limit: None };
    let told = serde_json::to_string(&jobs(&landed).events(&params).unwrap()).unwrap();
    assert_eq!(told.matches("\"undone\"").count(), 1, "{told}");
    assert_eq!(apply(&landed, json!({})).unwrap().apply, 2);
}

#[test]
fn a_prune_takes_trees_of_what_is_decided_and_says_why_the_rest_stays() {
    let fixture = Fixture::with(&[("a.txt", BASE)]);
    let (applied, pending) = (landed(&fixture, Isolation::Private), landed(&fixture, Isolation::Linked));
    apply(&applied, json!({})).unwrap();
    let expected = |fate| {
        let mut fates = vec![(id(&applied).as_str(), fate), (id(&pending).as_str(), Fate::Unapplied)];
        fates.sort_by(|a, b| b.0.cmp(a.0));
        fates
    };
    let looked = prune(&applied, json!({ "dryRun": true }));
    assert_eq!(fates(&looked), expected(Fate::Tree));
    assert!(looked.bytes > 0 && Path::new(applied.job.tree()).exists(), "only looked at");
    // What nobody was shown stays, whatever became of it since.
    assert_eq!(fates(&prune(&applied, json!({ "shown": [] }))), [(id(&pending).as_str(), Fate::Unapplied)]);
    assert!(Path::new(applied.job.tree()).exists());

    assert_eq!(fates(&prune(&applied, json!({}))), expected(Fate::Tree));
    for gone in [applied.job.places.tree(), applied.job.places.git()] {
        assert!(!gone.as_path().exists(), "{gone}");
    }
    assert!(Path::new(pending.job.tree()).join("b.txt").exists());
    assert_eq!(fs::read_dir(fixture.store.join("trash")).unwrap().count(), 0);
    assert_eq!(fates(&prune(&applied, json!({}))), expected(Fate::NoTree));

    // All but a resume is still possible.
    let resume = ResumeParams { job_id: id(&applied).to_string(), message: "go on".into() };
    assert!(jobs(&applied).resume(&resume).unwrap_err().message.contains("cannot go on"));
    assert_eq!(undo(&applied, None).unwrap().restored.len(), 2);
    assert_eq!(apply(&applied, json!({})).unwrap().applied.len(), 2);

    assert_eq!(fates(&prune(&applied, json!({ "records": true }))), expected(Fate::Record));
    assert_eq!(jobs(&applied).status(id(&applied)).unwrap_err().code, FailureCode::JobNotFound);
    assert!(!applied.job.places.directory().as_path().exists());
    assert!(!fixture.repo.join(".git/pactify").exists(), "what was kept for undoing went with it");
    assert_eq!(refs(&fixture), 1, "the other job's");
}

#[test]
fn an_unapplied_result_loses_its_tree_only_when_named_and_never_its_content() {
    let fixture = Fixture::with(&[("a.txt", BASE)]);
    let landed = landed(&fixture, Isolation::Linked);
    let listed = || fixture.plain(&fixture.repo, &["worktree", "list"]).lines().count() - 1;
    assert_eq!(listed(), 1);
    let named = json!({ "jobIds": [id(&landed)], "records": true });
    assert_eq!(fates(&prune(&landed, named.clone())), [(id(&landed).as_str(), Fate::Tree)]);
    assert_eq!(listed(), 0, "nothing of ours is listed");
    assert_eq!(refs(&fixture), 1, "the base is kept for the result");
    assert_eq!(fates(&prune(&landed, named)), [(id(&landed).as_str(), Fate::Unapplied)]);
    assert_eq!(apply(&landed, json!({})).unwrap().applied.len(), 2);
}

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
    let fixture = Fixture::with(&[("a.txt", BASE), (".gitignore", "out/\n")]);
    let landed = fixture.land(|job| {
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
fn a_retention_takes_trees_with_ignored_files_where_it_says_so() {
    for (more, stays) in [("", true), ("ignored-files = true\n", false)] {
        let fixture = Fixture::with(&[(".gitignore", "out/\n")]);
        let landed = fixture.land(|job| job.write("out/report.html", "of a build"));
        write(&fixture.root.join("home/.config/pactify/config.toml"), &format!("[retention]\nage-days = 0\n{more}"));
        jobs(&landed).prune_as_configured().unwrap();
        assert_eq!(landed.job.tree().exists(), stays, "{more}");
    }
}

#[test]
fn what_was_kept_for_a_job_that_is_gone_goes() {
    let fixture = Fixture::with(&[("a.txt", BASE)]);
    let landed = landed(&fixture, Isolation::Private);
    apply(&landed, json!({})).unwrap();
    fs::remove_dir_all(landed.job.places.directory()).unwrap();
    assert!(fixture.repo.join(".git/pactify").exists());
    assert_eq!(prune(&landed, json!({})).orphans, 1);
    assert!(!fixture.repo.join(".git/pactify").exists());
    assert_eq!(read(&fixture, "a.txt"), RESULT, "what was applied stays");
    assert_eq!(refs(&fixture), 1, "another store may know the job: its ref is not ours to remove");
}

#[test]
fn a_tree_that_somebody_works_in_is_not_removed_and_he_is_named() {
    let fixture = Fixture::with(&[("a.txt", BASE)]);
    let landed = landed(&fixture, Isolation::Private);
    fs::create_dir(landed.job.places.tree().join("sub")).unwrap();
    let mut shell = sleeper(landed.job.places.tree().join("sub").as_path());
    let refused = jobs(&landed).discard(id(&landed)).unwrap_err();
    assert_eq!(refused.code, FailureCode::WrongState);
    assert!(refused.message.contains(&format!("sleep ({})", shell.id())), "{}", refused.message);
    assert!(landed.job.places.tree().as_path().exists());
    let pruned = prune(&landed, json!({ "unapplied": true }));
    assert!(pruned.jobs[0].failure.is_some() && pruned.bytes == 0);
    shell.kill().unwrap();
    shell.wait().unwrap();
    assert_eq!(jobs(&landed).discard(id(&landed)).unwrap().disposition, Disposition::Discarded);
    assert!(!landed.job.places.tree().as_path().exists());
}

#[test]
fn a_persons_worktree_prune_leaves_a_job_alone_or_is_survived() {
    for git_file_is_there in [true, false] {
        let fixture = Fixture::with(&[("a.txt", BASE)]);
        let landed = fixture.land_in(&fixture.repo, Isolation::Linked, |job| {
            job.write("a.txt", RESULT);
            if !git_file_is_there {
                fs::remove_file(job.places.tree().join(".git")).unwrap();
            }
            fixture.plain(&fixture.repo, &["worktree", "prune", "--expire", "now"]);
        });
        let listed = fixture.plain(&fixture.repo, &["worktree", "list"]).lines().count() - 1;
        assert_eq!(listed, usize::from(git_file_is_there));
        assert_eq!(apply(&landed, json!({})).unwrap().applied.len(), 1);
        jobs(&landed).discard(id(&landed)).unwrap();
        assert_eq!(fixture.plain(&fixture.repo, &["worktree", "list"]).lines().count(), 1);
        assert_eq!(refs(&fixture), 0);
    }
}

/// Somebody in a directory.
#[expect(clippy::disallowed_methods, reason = "a process of the person's, not of the product")]
fn sleeper(directory: &Path) -> Child {
    let child = Command::new("sleep").arg("600").current_dir(directory).spawn().unwrap();
    // The new process is named only once it runs the program.
    let comm = format!("/proc/{}/comm", child.id());
    let start = std::time::Instant::now();
    while fs::read_to_string(&comm).unwrap_or_default().trim_end() != "sleep" {
        assert!(start.elapsed() < Duration::from_secs(10));
        std::thread::yield_now();
    }
    child
}
