//! Taking back, giving up, making room: what goes, what stays, and what is still possible afterwards.

mod only_in_tree;

use std::fs;
use std::path::Path;
use std::process::{Child, Command};
use std::time::Duration;

use pactify_core::job::Isolation;
use pactify_core::job::outcome::Disposition;
use pactify_core::protocol::{
    Applied, ApplyParams, EventsParams, PruneParams, Pruned, ResumeParams, UndoParams, Undone,
};
use pactify_core::retention::Fate;
use pactify_core::{Failure, FailureCode, JobId};
use pactify_engine::apply::{self, ApplyId, RepositoryLock};
use pactify_engine::jobs::Jobs;
use pactify_engine::store::Store;
use serde_json::{Value, json};

use crate::support::{Fixture, Landed};

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
        assert!(start.elapsed() < Duration::from_secs(60));
        std::thread::yield_now();
    }
    child
}
