//! Oddities in a job's tree and in the person's repository that are no attack of the threat model ([`crate::threats`]).

use std::fs;
use std::path::Path;

use pactify_core::job::Isolation;
use pactify_core::lfs::Pointer;

use crate::support::{Fixture, Job, changes, trap, write};

/// Everything that pactify does around a job, from a look at the repository to giving the job up.
fn whole_life(fixture: &Fixture, edit: impl Fn(&Job)) -> Vec<String> {
    let mut seen = Vec::new();
    for isolation in [Isolation::Private, Isolation::Linked] {
        let job = fixture.job_in(&fixture.repo, isolation);
        edit(&job);
        let captured = fixture.capture(&job);
        let again = fixture.git.change_set(&job.places.capture(), &job.base.tree, captured.change_set.id.tree());
        assert_eq!(again.unwrap(), captured.change_set);
        fixture.git.release(&job.places, &job.repository).unwrap();
        seen = changes(&captured.change_set);
    }
    seen
}

#[test]
fn nothing_of_the_person_s_is_touched() {
    let fixture = Fixture::with(&[("a", "1\n"), ("b", "1\n")]);
    fs::write(fixture.repo.join("b"), "staged\n").unwrap();
    fixture.plain(&fixture.repo, &["add", "b"]);
    fs::write(fixture.repo.join("b"), "unstaged\n").unwrap();
    fs::write(fixture.repo.join("untracked"), "mine\n").unwrap();
    let before = fixture.belongings();
    assert_eq!(whole_life(&fixture, |job| job.write("a", "2\n")), ["M a"]);
    let after = fixture.belongings();
    assert_eq!(before, after);
}

#[test]
fn a_filter_that_is_required_and_missing_fails_nothing_and_is_announced() {
    let pointer = Pointer::new("0123456789abcdef".repeat(4), 3).unwrap().text();
    let fixture = Fixture::with(&[("a.bin", &pointer)]);
    fixture.commit(&[(".gitattributes", "*.bin filter=lfs diff=lfs merge=lfs -text\n")]);
    for (key, value) in [("filter.lfs.required", "true"), ("filter.lfs.smudge", "no-such-program")] {
        fixture.plain(&fixture.repo, &["config", key, value]);
    }
    let elsewhere = fixture.root.join("elsewhere").display().to_string();
    let refused = fixture.try_plain(&fixture.repo, &["worktree", "add", "--detach", &elsewhere]);
    assert!(!refused.status.success(), "the missing filter does not matter to git");
    let job = fixture.job();
    assert_eq!(job.prepared.notices.iter().map(|notice| notice.id).collect::<Vec<_>>(), ["lfsPointers"]);
    assert_eq!(fs::read_to_string(job.tree().join("a.bin")).unwrap(), pointer);
}

#[test]
fn size_and_time_that_are_set_back_hide_nothing() {
    let fixture = Fixture::with(&[("a", "1\n")]);
    let job = fixture.job();
    let path = job.tree().join("a");
    let modified = fs::metadata(&path).unwrap().modified().unwrap();
    let file = fs::File::options().write(true).open(&path).unwrap();
    std::os::unix::fs::FileExt::write_all_at(&file, b"2\n", 0).unwrap();
    file.set_modified(modified).unwrap();
    assert_eq!(fs::metadata(&path).unwrap().modified().unwrap(), modified);
    assert_eq!(changes(&fixture.capture(&job).change_set), ["M a"]);
}

#[test]
fn any_number_of_oddities_is_summed_up() {
    let fixture = Fixture::with(&[("a", "1\n")]);
    let job = fixture.job();
    for number in 0..1500 {
        let path = job.tree().join(format!("pipe{number}"));
        rustix::fs::mknodat(rustix::fs::CWD, path, rustix::fs::FileType::Fifo, rustix::fs::Mode::RUSR, 0).unwrap();
    }
    let captured = fixture.capture(&job);
    assert_eq!(captured.change_set.notes.len(), 1001);
    let last = serde_json::to_string(captured.change_set.notes.last().unwrap()).unwrap();
    assert!(last.contains("500 more"), "{last}");
}

#[test]
fn looking_for_uncommitted_changes_runs_nothing_and_locks_nothing() {
    let fixture = Fixture::with(&[(".gitattributes", "*.txt filter=evil\n"), ("a.txt", "a\n")]);
    fixture.commit(&[("b.txt", "b\n")]);
    let mark = fixture.root.join("mark");
    let program = trap(&fixture.root.join("evil.sh"), &mark);
    for (key, value) in [
        ("core.fsmonitor", &program),
        ("filter.evil.clean", &program),
        ("filter.evil.smudge", &program),
        ("filter.evil.required", &"true".to_owned()),
    ] {
        fixture.plain(&fixture.repo, &["config", key, value]);
    }
    let hook = fixture.repo.join(".git/hooks/post-index-change");
    trap(&hook, &mark);
    fixture.plain(&fixture.repo, &["config", "core.untrackedCache", "true"]);
    write(&fixture.repo.join("a.txt"), "b\n");
    fixture.plain(&fixture.repo, &["status"]);
    assert!(mark.exists(), "a plain status runs what is configured");
    fs::remove_file(&mark).unwrap();

    // As if another git were at work: a status that needs the lock would fail or wait.
    write(&fixture.repo.join(".git/index.lock"), "");
    write(&fixture.repo.join("a.txt"), "c\n");
    write(&fixture.repo.join("c.md"), "new\n");
    let index = fs::read(fixture.repo.join(".git/index")).unwrap();
    let notices = fixture.job().prepared.notices;
    let told = notices.iter().find(|notice| notice.id == "uncommittedChanges").map(|notice| notice.text.as_str());
    // Whether a file with a filter was edited, only the filter could tell.
    assert_eq!(told, Some("1 file with uncommitted changes is not part of this job: c.md"));
    assert!(!mark.exists());
    assert_eq!(fs::read(fixture.repo.join(".git/index")).unwrap(), index);
    assert_eq!(fs::read(fixture.repo.join(".git/index.lock")).unwrap(), b"");
}

#[test]
fn of_an_index_that_git_cannot_read_a_notice_says_so_and_the_job_starts() {
    let fixture = Fixture::with(&[("a.txt", "a\n")]);
    write(&fixture.repo.join("a.txt"), "edited\n");
    write(&fixture.repo.join(".git/index"), "no index");
    let notices = fixture.job().prepared.notices;
    let [notice] = notices.as_slice() else { panic!("{notices:?}") };
    assert_eq!(notice.id, "uncommittedUnknown");
    let said = &notice.text;
    assert!(said.starts_with("whether your checkout has uncommitted changes could not be told: "), "{said}");
    assert!(said.contains("index file smaller than expected") || said.contains("index file corrupt"), "{said}");
}

#[test]
fn a_capture_that_died_half_way_costs_the_one_before_nothing() {
    let fixture = Fixture::with(&[("a", "1\n")]);
    let job = fixture.job();
    job.write("a", "2\n");
    let first = fixture.capture(&job);
    let beside = |name: &str| job.places.directory().join(name);

    // What the death of a host leaves in the middle of the next capture.
    fs::rename(job.places.capture(), beside("capture.previous")).unwrap();
    fs::create_dir(job.places.capture()).unwrap();
    write(&job.places.capture().as_path().join("HEAD"), "half of it\n");
    // A repair that cannot capture either: the base is out of reach.
    let objects = fixture.repo.join(".git/objects");
    fs::rename(&objects, fixture.repo.join(".git/objects.away")).unwrap();
    fs::create_dir(&objects).unwrap();
    assert!(fixture.try_capture(&job, &job.prepared.tree).is_err());
    fs::remove_dir(&objects).unwrap();
    fs::rename(fixture.repo.join(".git/objects.away"), &objects).unwrap();
    assert_eq!(fixture.content(&job, &first, "a"), b"2\n", "the result that the journal names is there");

    job.write("a", "3\n");
    let next = fixture.capture(&job);
    assert_eq!(fixture.content(&job, &next, "a"), b"3\n");
    assert!(!beside("capture.previous").as_path().exists() && !beside("capture.outdated").as_path().exists());
}

#[test]
fn a_pipe_in_the_shared_git_directory_or_for_a_record_keeps_nobody_waiting() {
    let fixture = Fixture::with(&[("a", "1\n")]);
    let job = fixture.job_in(&fixture.repo, Isolation::Linked);
    let registration = fs::read_dir(fixture.repo.join(".git/worktrees")).unwrap().next().unwrap().unwrap().path();
    let pipe = |at: &Path| {
        let _ = fs::remove_file(at);
        let mode = rustix::fs::Mode::RWXU;
        rustix::fs::mknodat(rustix::fs::CWD, at, rustix::fs::FileType::Fifo, mode, 0).unwrap();
    };
    pipe(&registration.join("gitdir"));
    assert!(fixture.git.release(&job.places, &job.repository).is_err(), "it is named, not waited for");
    pipe(job.places.manifest().as_path());
    assert!(fixture.try_capture(&job, &job.prepared.tree).is_err());
    fixture.git.release(&job.places, &job.repository).expect("a spoilt record keeps no job from being given up");
    assert_eq!(fixture.plain(&fixture.repo, &["for-each-ref", "refs/pactify"]), "");

    pipe(&fixture.repo.join(".git/info/exclude"));
    let examined = fixture.examine(&fixture.repo).unwrap();
    let places = fixture.places();
    let refused = fixture.git.prepare(&places, &examined.repository, &examined.head, Isolation::Private);
    assert!(refused.unwrap_err().to_string().contains("exclude"));
}
