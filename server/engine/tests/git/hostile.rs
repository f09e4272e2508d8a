//! What a job can leave behind, and that none of it runs or hides anything. Each payload first fires under plain git.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use pactify_core::job::Isolation;
use pactify_core::lfs::Pointer;
use pactify_engine::git::GitError;
use pactify_engine::tree::{RemoveError, Trash};

use crate::support::{Fixture, Job, changes, dead, notes, trap, write};

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

fn fired(mark: &Path) -> bool {
    let fired = mark.exists();
    let _ = fs::remove_file(mark);
    fired
}

#[test]
fn fsmonitor_in_the_shared_configuration_is_not_run() {
    let fixture = Fixture::with(&[("a", "1\n")]);
    let mark = fixture.root.join("mark");
    let script = trap(&fixture.root.join("evil"), &mark);
    for (key, value) in
        [("core.fsmonitor", script.clone()), ("include.path", fixture.root.join("inc").display().to_string())]
    {
        fs::write(fixture.root.join("inc"), format!("[core]\n\tfsmonitor = {script}\n")).unwrap();
        fixture.plain(&fixture.repo, &["config", key, &value]);
        fixture.plain(&fixture.repo, &["status"]);
        assert!(fired(&mark), "{key} does not fire at all");
        assert_eq!(whole_life(&fixture, |job| job.write("a", "2\n")), ["M a"]);
        assert!(!fired(&mark), "{key} was run");
        fixture.plain(&fixture.repo, &["config", "--unset", key]);
    }
}

#[test]
fn hooks_in_the_shared_directory_are_not_run() {
    let fixture = Fixture::with(&[("a", "1\n")]);
    let mark = fixture.root.join("mark");
    for hook in ["post-checkout", "post-index-change", "reference-transaction"] {
        trap(&fixture.repo.join(".git/hooks").join(hook), &mark);
        let elsewhere = fixture.root.join(hook).display().to_string();
        fixture.plain(&fixture.repo, &["worktree", "add", "--detach", &elsewhere]);
        assert!(fired(&mark), "{hook} does not fire at all");
        assert_eq!(whole_life(&fixture, |job| job.write("a", "2\n")), ["M a"]);
        assert!(!fired(&mark), "{hook} was run");
        fs::remove_file(fixture.repo.join(".git/hooks").join(hook)).unwrap();
    }
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
fn filters_that_attributes_name_are_not_run() {
    let fixture = Fixture::with(&[("a", "1\n"), (".gitattributes", "* filter=evil\n")]);
    let mark = fixture.root.join("mark");
    let script = trap(&fixture.root.join("evil"), &mark);
    for key in ["filter.evil.smudge", "filter.evil.clean"] {
        fixture.plain(&fixture.repo, &["config", key, &script]);
    }
    write(&fixture.repo.join(".git/info/attributes"), "* filter=evil\n");
    let elsewhere = fixture.root.join("elsewhere");
    fixture.plain(&fixture.repo, &["worktree", "add", "--detach", elsewhere.to_str().unwrap()]);
    assert!(fired(&mark), "smudge does not fire at all");
    write(&elsewhere.join("a"), "2\n");
    fixture.plain(&elsewhere, &["status"]);
    assert!(fired(&mark), "clean does not fire at all");

    let seen = whole_life(&fixture, |job| {
        job.write("a", "2\n");
        job.write(".gitattributes", "* filter=evil diff=evil\n");
    });
    assert_eq!(seen, ["M .gitattributes", "M a"]);
    assert!(!fired(&mark), "a filter was run");
    let job = fixture.job();
    assert_eq!(job.prepared.notices.iter().map(|notice| notice.id).collect::<Vec<_>>(), ["contentFilters"]);
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
fn diff_programs_are_not_run() {
    let fixture = Fixture::with(&[("a", "1\n"), (".gitattributes", "* diff=evil\n")]);
    let mark = fixture.root.join("mark");
    let script = trap(&fixture.root.join("evil"), &mark);
    for key in ["diff.external", "diff.evil.textconv", "diff.evil.command"] {
        fixture.plain(&fixture.repo, &["config", key, &script]);
        write(&fixture.repo.join("a"), "changed\n");
        fixture.plain(&fixture.repo, &["diff"]);
        assert!(fired(&mark), "{key} does not fire at all");
        write(&fixture.repo.join("a"), "1\n");
        assert_eq!(whole_life(&fixture, |job| job.write("a", "2\n")), ["M a"]);
        assert!(!fired(&mark), "{key} was run");
        fixture.plain(&fixture.repo, &["config", "--unset", key]);
    }
}

#[test]
fn a_git_file_that_leads_elsewhere_is_noted_and_not_followed() {
    let fixture = Fixture::with(&[("a", "1\n")]);
    let mark = fixture.root.join("mark");
    let script = trap(&fixture.root.join("evil"), &mark);
    let other = fixture.root.join("other");
    fs::create_dir(&other).unwrap();
    fixture.plain(&other, &["init", "-q"]);
    fixture.plain(&other, &["config", "core.fsmonitor", &script]);
    for isolation in [Isolation::Private, Isolation::Linked] {
        let job = fixture.job_in(&fixture.repo, isolation);
        job.write("a", "2\n");
        write(&job.tree().join(".git"), &format!("gitdir: {}\n", other.join(".git").display()));
        fixture.plain(job.tree(), &["status"]);
        assert!(fired(&mark), "the redirection does not fire at all");
        let captured = fixture.capture(&job);
        assert_eq!(changes(&captured.change_set), ["M a"]);
        assert_eq!(notes(&captured.change_set), r#"{"kind":"gitFileRewritten"}"#);
        fixture.git.release(&job.places, &job.repository).unwrap();
        assert!(!fired(&mark), "it was followed");
    }
}

#[test]
fn without_its_git_file_a_tree_is_captured_all_the_same() {
    let fixture = Fixture::with(&[("a", "1\n")]);
    let job = fixture.job();
    job.write("a", "2\n");
    fs::remove_file(job.tree().join(".git")).unwrap();
    let captured = fixture.capture(&job);
    assert_eq!(changes(&captured.change_set), ["M a"]);
    assert_eq!(notes(&captured.change_set), r#"{"kind":"gitFileRewritten"}"#);
}

#[test]
fn a_tree_that_became_a_link_costs_nobody_a_file() {
    let fixture = Fixture::with(&[("a", "1\n")]);
    let victim = fixture.root.join("victim");
    let lure = |tree: &Path| {
        write(&victim.join("precious"), "all my work\n");
        fs::copy(tree.join(".git"), victim.join(".git")).unwrap();
        fs::rename(tree, tree.with_extension("away")).unwrap();
        symlink(&victim, tree).unwrap();
    };
    let plain = fixture.root.join("plain");
    fixture.plain(&fixture.repo, &["worktree", "add", "--detach", plain.to_str().unwrap()]);
    lure(&plain);
    fixture.try_plain(&fixture.repo, &["worktree", "remove", "--force", plain.to_str().unwrap()]);
    assert!(!victim.join("precious").exists(), "git does not empty the victim at all");

    for isolation in [Isolation::Private, Isolation::Linked] {
        let job = fixture.job_in(&fixture.repo, isolation);
        lure(job.tree());
        let refused = fixture.try_capture(&job, &job.prepared.tree);
        assert!(matches!(refused, Err(GitError::TreeReplaced { .. })), "{refused:?}");
        let trash = Trash::open(&fixture.store).unwrap();
        let refused = trash.take_tree(&fixture.store.join("jobs"), &job.prepared.tree);
        assert!(matches!(refused, Err(RemoveError::Replaced { .. })), "{refused:?}");
        fixture.git.release(&job.places, &job.repository).unwrap();
        trash.empty().unwrap();
        assert!(victim.join("precious").exists());
    }
}

#[test]
fn hidden_edits_are_seen() {
    for isolation in [Isolation::Private, Isolation::Linked] {
        let fixture = Fixture::with(&[("a", "1\n"), ("b", "1\n"), (".gitignore", "*.log\n")]);
        let job = fixture.job_in(&fixture.repo, isolation);
        fixture.plain(job.tree(), &["update-index", "--assume-unchanged", "a"]);
        fixture.plain(job.tree(), &["update-index", "--skip-worktree", "b"]);
        let exclude = fixture.plain(job.tree(), &["rev-parse", "--path-format=absolute", "--git-path", "info/exclude"]);
        write(Path::new(&exclude), "new\n");
        job.write("a", "2\n");
        job.write("b", "2\n");
        job.write("new", "planted\n");
        assert_eq!(fixture.plain(job.tree(), &["status", "--porcelain"]), "", "nothing is hidden at all");
        job.write(".gitignore", "*\n");
        job.write("also-new", "planted\n");
        let captured = fixture.capture(&job);
        assert_eq!(changes(&captured.change_set), ["M .gitignore", "M a", "A also-new", "M b", "A new"]);
    }
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
fn pipes_and_sockets_block_nothing() {
    let fixture = Fixture::with(&[("a", "1\n"), ("b", "1\n")]);
    let job = fixture.job();
    fs::remove_file(job.tree().join("a")).unwrap();
    for pipe in ["a", "pipe"] {
        let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
        rustix::fs::mknodat(rustix::fs::CWD, job.tree().join(pipe), rustix::fs::FileType::Fifo, mode, 0).unwrap();
    }
    let _socket = std::os::unix::net::UnixListener::bind(job.tree().join("sock")).unwrap();
    job.write("b", "2\n");
    assert!(!fixture.try_plain(job.tree(), &["add", "-A"]).status.success(), "git is not blocked at all");
    let captured = fixture.capture(&job);
    assert_eq!(changes(&captured.change_set), ["D a", "M b"]);
    let special =
        |path: &str, what: &str| format!(r#"{{"kind":"specialFile","path":{{"path":"{path}"}},"what":"{what}"}}"#);
    assert_eq!(
        notes(&captured.change_set),
        [special("a", "pipe"), special("pipe", "pipe"), special("sock", "socket")].join("\n")
    );
}

#[test]
fn nested_repositories_hide_nothing_of_the_base_and_block_nothing() {
    let fixture = Fixture::with(&[("src/a", "1\n")]);
    let job = fixture.job();
    job.write("src/a", "2\n");
    job.write("src/b", "new\n");
    job.write("vendor/x/one", "1\n");
    job.write("vendor/x/sub/two", "2\n");
    for nested in ["vendor/x", "src", "empty"] {
        fs::create_dir_all(job.tree().join(nested)).unwrap();
        fixture.plain(&job.tree().join(nested), &["init", "-q"]);
    }
    assert!(!fixture.try_plain(job.tree(), &["add", "-A"]).status.success(), "git is not blocked at all");
    let captured = fixture.capture(&job);
    assert_eq!(changes(&captured.change_set), ["M src/a", "A src/b"]);
    let nested =
        |path: &str, files: u64| format!(r#"{{"kind":"nestedRepository","path":{{"path":"{path}"}},"files":{files}}}"#);
    assert_eq!(notes(&captured.change_set), [nested("empty", 0), nested("src", 0), nested("vendor/x", 2)].join("\n"));
}

#[test]
fn names_that_mean_git_somewhere_are_noted() {
    let fixture = Fixture::with(&[("a", "1\n")]);
    let job = fixture.job();
    job.write(".GIT/config", "[core]\n");
    job.write("sub/git~1", "x\n");
    job.write("b", "2\n");
    let captured = fixture.capture(&job);
    assert_eq!(changes(&captured.change_set), ["A b"]);
    assert_eq!(notes(&captured.change_set).lines().count(), 2, "{}", notes(&captured.change_set));
}

#[test]
fn what_the_job_commits_resets_or_switches_makes_no_difference() {
    type Step = fn(&Fixture, &Path);
    let steps: [(&str, Step); 4] = [
        ("commit", |fixture, tree| {
            fixture.plain(tree, &["commit", "-qam", "done"]);
        }),
        ("reset", |fixture, tree| {
            fixture.plain(tree, &["commit", "-qam", "done"]);
            fixture.plain(tree, &["reset", "-q", "--soft", "HEAD~2"]);
        }),
        ("switch", |fixture, tree| {
            fixture.plain(tree, &["switch", "-qc", "elsewhere"]);
            fixture.plain(tree, &["commit", "-qam", "done"]);
        }),
        ("unborn", |fixture, tree| {
            fixture.plain(tree, &["checkout", "-q", "--orphan", "nothing"]);
        }),
    ];
    for (name, step) in steps {
        let fixture = Fixture::with(&[("a", "0\n")]);
        fixture.commit(&[("a", "1\n")]);
        let job = fixture.job();
        job.write("a", "2\n");
        step(&fixture, job.tree());
        assert_eq!(changes(&fixture.capture(&job).change_set), ["M a"], "{name}");
    }
}

#[test]
fn only_the_job_s_own_proof_opens_its_tree() {
    let fixture = Fixture::with(&[("a", "1\n")]);
    let job = fixture.job();
    let proof = dead(&fixture.places());
    let refused = fixture.git.capture(&proof, &job.places, &job.repository, &job.base, &job.prepared.tree);
    assert!(matches!(refused, Err(GitError::ProofOfAnotherJob { .. })), "{refused:?}");
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
fn an_index_that_git_cannot_read_costs_the_notice_and_not_the_job() {
    let fixture = Fixture::with(&[("a.txt", "a\n")]);
    write(&fixture.repo.join("a.txt"), "edited\n");
    write(&fixture.repo.join(".git/index"), "no index");
    assert_eq!(fixture.job().prepared.notices, []);
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
