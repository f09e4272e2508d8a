//! The way every job goes: a repository is looked at, a tree is made, the job works, the result is told from the base.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};

use pactify_core::RepoPath;
use pactify_core::job::{BaseKind, Isolation, RepositoryRecord};
use pactify_engine::git::renames::Rename;

use crate::support::{Fixture, absolute, changes, notes, write};

#[test]
fn a_repository_is_described_from_any_folder_inside_it() {
    let fixture = Fixture::with(&[("src/deep/a.rs", "a\n")]);
    let examined = fixture.examine(&fixture.repo.join("src/deep")).unwrap();
    assert_eq!(examined.repository.worktree, absolute(&fixture.repo));
    assert_eq!(examined.repository.git_dir, absolute(&fixture.repo.join(".git")));
    assert_eq!(examined.repository.common_dir, examined.repository.git_dir);
    assert_eq!(examined.repository.prefix, "src/deep");
    assert_eq!(examined.head.kind, BaseKind::Head);
    assert_eq!(examined.head.commit.as_str(), fixture.plain(&fixture.repo, &["rev-parse", "HEAD"]));
    assert_eq!(examined.head.tree.as_str(), fixture.plain(&fixture.repo, &["rev-parse", "HEAD^{tree}"]));
    let from_the_top = fixture.examine(&fixture.repo).unwrap();
    assert_eq!(from_the_top.repository, RepositoryRecord { prefix: String::new(), ..examined.repository });
}

#[test]
fn a_repository_with_a_line_break_in_its_name_is_described_too() {
    let fixture = Fixture::without_repository();
    let odd = fixture.root.join("two\nlines");
    fs::create_dir_all(odd.join("src")).unwrap();
    fixture.plain(&odd, &["init", "-q"]);
    fixture.plain(&odd, &["commit", "-q", "--allow-empty", "-m", "x"]);
    let examined = fixture.examine(&odd.join("src")).unwrap().repository;
    let expected = (absolute(&odd), absolute(&odd.join(".git")), "src");
    assert_eq!((examined.worktree, examined.git_dir, examined.prefix.as_str()), expected);
}

#[test]
fn looking_at_a_repository_takes_three_calls_whatever_its_size() {
    let fixture = Fixture::with(&[("a", "a\n")]);
    let counted = fixture.counting();
    let calls = || {
        counted.calls();
        counted.git.examine(&absolute(&fixture.repo)).unwrap();
        counted.calls()
    };
    assert_eq!(calls(), ["rev-parse"; 3]);
    for number in 0..500 {
        write(&fixture.repo.join(format!("d{}/{number}", number % 7)), "text\n");
    }
    fixture.commit(&[]);
    assert_eq!(calls(), ["rev-parse"; 3]);
}

#[test]
fn a_tree_is_a_clean_detached_checkout_of_the_base() {
    for isolation in [Isolation::Private, Isolation::Linked] {
        let fixture = Fixture::with(&[("a.txt", "one\n"), ("dir/run.sh", "#!/bin/sh\n")]);
        fs::set_permissions(fixture.repo.join("dir/run.sh"), fs::Permissions::from_mode(0o755)).unwrap();
        symlink("a.txt", fixture.repo.join("link")).unwrap();
        fixture.commit(&[]);
        let job = fixture.job_in(&fixture.repo, isolation);
        assert_eq!(fs::read_to_string(job.tree().join("a.txt")).unwrap(), "one\n");
        assert_eq!(fs::metadata(job.tree().join("dir/run.sh")).unwrap().permissions().mode() & 0o777, 0o755);
        assert_eq!(fs::read_link(job.tree().join("link")).unwrap().to_str(), Some("a.txt"));
        assert_eq!(fixture.plain(job.tree(), &["status", "--porcelain"]), "");
        assert_eq!(fixture.plain(job.tree(), &["rev-parse", "HEAD"]), job.base.commit.as_str());
        assert_eq!(fixture.plain(job.tree(), &["log", "--oneline", "main"]).lines().count(), 2);
        assert!(!fixture.try_plain(job.tree(), &["symbolic-ref", "-q", "HEAD"]).status.success());
        assert_eq!(job.prepared.notices, []);
        assert_eq!(fixture.plain(&fixture.repo, &["rev-parse", &job.places.keep_ref()]), job.base.commit.as_str());
    }
}

#[test]
fn every_kind_of_change_is_found_and_nothing_else() {
    let fixture = Fixture::with(&[
        ("keep.txt", "keep\n"),
        ("edit.txt", "one\ntwo\nthree\n"),
        ("gone.txt", "gone\n"),
        ("dir/gone.txt", "gone\n"),
        ("mode.sh", "x\n"),
        ("type.txt", "x\n"),
        ("file-to-dir", "x\n"),
        ("dir-to-file/a", "x\n"),
        ("dir-to-link/a", "x\n"),
        ("touched.txt", "x\n"),
    ]);
    let job = fixture.job();
    job.write("edit.txt", "one\n2\nthree\nfour\n");
    job.write("new/deep/file.txt", "new\n");
    fs::remove_file(job.tree().join("gone.txt")).unwrap();
    fs::remove_dir_all(job.tree().join("dir")).unwrap();
    fs::set_permissions(job.tree().join("mode.sh"), fs::Permissions::from_mode(0o755)).unwrap();
    fs::remove_file(job.tree().join("type.txt")).unwrap();
    symlink("/etc/passwd", job.tree().join("type.txt")).unwrap();
    fs::remove_file(job.tree().join("file-to-dir")).unwrap();
    job.write("file-to-dir/inner", "y\n");
    fs::remove_dir_all(job.tree().join("dir-to-file")).unwrap();
    job.write("dir-to-file", "y\n");
    fs::remove_dir_all(job.tree().join("dir-to-link")).unwrap();
    symlink("dir", job.tree().join("dir-to-link")).unwrap();
    job.write("touched.txt", "x\n");

    let captured = fixture.capture(&job);
    let expected = [
        "A dir-to-file",
        "D dir-to-file/a",
        "A dir-to-link",
        "D dir-to-link/a",
        "D dir/gone.txt",
        "M edit.txt",
        "D file-to-dir",
        "A file-to-dir/inner",
        "D gone.txt",
        "X mode.sh",
        "A new/deep/file.txt",
        "T type.txt",
    ];
    assert_eq!(changes(&captured.change_set), expected);
    assert_eq!(notes(&captured.change_set), "");
    assert_eq!(fixture.content(&job, &captured, "edit.txt"), b"one\n2\nthree\nfour\n");
    assert_eq!(fixture.content(&job, &captured, "type.txt"), b"/etc/passwd");
    let totals = captured.result.totals;
    assert_eq!((totals.files, totals.sensitive), (12, 0));

    // What git itself would say of the same files.
    fixture.plain(job.tree(), &["add", "-A"]);
    assert_eq!(captured.change_set.id.as_str(), fixture.plain(job.tree(), &["write-tree"]));
}

#[test]
fn the_same_ids_give_the_same_change_set_later() {
    let fixture = Fixture::with(&[("a", "1\n")]);
    let job = fixture.job();
    job.write("a", "2\n");
    job.write("build/x", "ignored?\n");
    let captured = fixture.capture(&job);
    fs::remove_dir_all(job.tree()).unwrap();
    let result = captured.change_set.id.tree();
    let again = fixture.git.change_set(&job.places.capture(), &job.base.tree, result).unwrap();
    assert_eq!(again, captured.change_set);
    let edit = &again.changes.iter().find(|change| change.path == RepoPath::new("a").unwrap()).unwrap();
    assert_eq!(edit.new.as_ref().unwrap().size, 2);
}

#[test]
fn a_job_that_did_nothing_has_an_empty_result() {
    let fixture = Fixture::with(&[("a", "1\n")]);
    let job = fixture.job();
    let captured = fixture.capture(&job);
    assert_eq!(captured.change_set.changes, []);
    assert_eq!(*captured.change_set.id.tree(), job.base.tree);
}

#[test]
fn changes_that_are_not_committed_are_told_of_and_left_alone() {
    let committed = [("a.txt", "a\n"), ("b.txt", "b\n"), ("c.txt", "c\n"), ("d.txt", "d\n"), (".gitignore", "*.o\n")];
    for (what, change, expected) in [
        ("nothing", (|_| {}) as fn(&Fixture), None),
        (
            "an edit",
            |fixture| write(&fixture.repo.join("a.txt"), "edited\n"),
            Some("1 file with uncommitted changes is not part of this job: a.txt"),
        ),
        (
            "a staged deletion, an untracked file, an ignored one",
            |fixture| {
                fixture.plain(&fixture.repo, &["rm", "-q", "b.txt"]);
                write(&fixture.repo.join("new/deep.txt"), "new\n");
                write(&fixture.repo.join("x.o"), "ignored\n");
            },
            Some("2 files with uncommitted changes are not part of this job: b.txt, new/deep.txt"),
        ),
        (
            "many",
            |fixture| ["a.txt", "b.txt", "c.txt", "d.txt"].iter().for_each(|path| write(&fixture.repo.join(path), "")),
            Some("4 files with uncommitted changes are not part of this job: a.txt, b.txt, c.txt, …"),
        ),
        (
            "untracked files that the person hides",
            |fixture| {
                fixture.plain(&fixture.repo, &["config", "status.showUntrackedFiles", "no"]);
                write(&fixture.repo.join("new.txt"), "new\n");
            },
            Some("untracked files were not looked for (status.showUntrackedFiles), and are not part of this job"),
        ),
        (
            "an edit beside untracked files that the person hides",
            |fixture| {
                fixture.plain(&fixture.repo, &["config", "status.showUntrackedFiles", "no"]);
                write(&fixture.repo.join("a.txt"), "edited\n");
            },
            Some(
                "1 file with uncommitted changes is not part of this job: a.txt; \
                 untracked files were not looked for (status.showUntrackedFiles)",
            ),
        ),
    ] {
        let fixture = Fixture::with(&committed);
        change(&fixture);
        let before = fixture.belongings();
        let job = fixture.job();
        let told: Vec<_> = job.prepared.notices.iter().filter(|notice| notice.id == "uncommittedChanges").collect();
        assert_eq!(told.first().map(|notice| notice.text.as_str()), expected, "{what}");
        let index = fixture.repo.join(".git/index");
        assert_eq!(fixture.belongings().get(&index), before.get(&index), "{what}");
        assert!(!job.places.directory().join("checkout.index").as_path().exists());
    }
}

#[test]
fn line_endings_of_the_checkout_are_no_uncommitted_changes() {
    let fixture = Fixture::empty(&[]);
    fixture.plain(&fixture.repo, &["config", "core.autocrlf", "true"]);
    fixture.commit(&[("dos.txt", "one\r\n")]);
    // Touched, so that contents are compared.
    write(&fixture.repo.join("dos.txt"), "one\r\n");
    assert_eq!(fixture.job().prepared.notices, []);
}

#[test]
fn what_a_capture_remembers_of_its_changes_is_never_needed() {
    let fixture = Fixture::with(&[("a", "1\n"), ("b", "1\n"), ("c", "1\n")]);
    let job = fixture.job();
    job.write("a", "2\n");
    job.write("d/e", "\0binary\n");
    fs::rename(job.tree().join("b"), job.tree().join("moved")).unwrap();
    let captured = fixture.capture(&job);
    let (capture, base) = (job.places.capture(), &job.base.tree);
    let set = |result: &_| fixture.git.change_list(&capture, base, result).unwrap();
    let result = captured.change_set.id.tree();

    let list = set(result);
    let (remembered, texts) = (list.set, list.texts);
    assert_eq!(remembered, captured.change_set);
    let text = |path: &str| {
        let change = remembered.changes.iter().find(|change| change.path == RepoPath::new(path).unwrap()).unwrap();
        change.new.as_ref().and_then(|entry| texts.is_text(&entry.object))
    };
    assert_eq!(["a", "b", "d/e"].map(text), [Some(true), None, Some(false)]);
    let moved = Rename { from: RepoPath::new("b").unwrap(), to: RepoPath::new("moved").unwrap(), similarity: 100 };
    assert_eq!(list.renames.as_ref(), Some(&vec![moved]));
    assert_eq!(fixture.git.renames(&capture, base, result, &remembered.changes).ok(), list.renames);
    // About another result it says nothing.
    assert_eq!(changes(&set(base).set), [""; 0]);

    for spoilt in [Some("{\"format\":1"), Some("{\"format\":3}"), None] {
        match spoilt {
            Some(text) => fs::write(capture.join("changes.json").as_path(), text).unwrap(),
            None => fs::remove_file(capture.join("changes.json").as_path()).unwrap(),
        }
        assert_eq!(set(result).set, captured.change_set, "{spoilt:?}");
    }
}
