//! Repositories that libgit2 cannot open or that are unusual in another way: all of them work.

use std::fs;
use std::path::{Path, PathBuf};

use pactify_core::job::Isolation;

use crate::support::{Fixture, changes, notes};

#[test]
fn sha256_and_reftable_repositories_work() {
    for options in [
        &["--object-format=sha256"][..],
        &["--ref-format=reftable"],
        &["--object-format=sha256", "--ref-format=reftable"],
    ] {
        for isolation in [Isolation::Private, Isolation::Linked] {
            let fixture = Fixture::empty(options);
            fixture.commit(&[
                ("a", "1\n"),
                ("dir/b", "1\n"),
                ("dir/c", "1\n"),
                (".gitattributes", "*.crlf text eol=crlf\n"),
            ]);
            let job = fixture.job_in(&fixture.repo, isolation);
            assert_eq!(fixture.plain(job.tree(), &["status", "--porcelain"]), "");
            job.write("a", "1\n2\n");
            job.write("x.crlf", "one\r\ntwo\r\n");
            fs::remove_file(job.tree().join("dir/b")).unwrap();
            fs::remove_file(job.tree().join("dir/c")).unwrap();
            job.write("dir/c/deep", "new\n");
            let captured = fixture.capture(&job);
            assert_eq!(changes(&captured.change_set), ["M a", "D dir/b", "D dir/c", "A dir/c/deep", "A x.crlf"]);
            assert_eq!(fixture.content(&job, &captured, "a"), b"1\n2\n");
            assert_eq!(fixture.content(&job, &captured, "x.crlf"), b"one\ntwo\n");
            assert_eq!((captured.result.totals.added, captured.result.totals.deleted), (4, 2));
            fixture.plain(job.tree(), &["add", "-A"]);
            assert_eq!(captured.change_set.id.as_str(), fixture.plain(job.tree(), &["write-tree"]));
            fixture.git.release(&job.places, &job.repository).unwrap();
            assert!(
                !fixture
                    .try_plain(&fixture.repo, &["rev-parse", "-q", "--verify", &job.places.keep_ref()])
                    .status
                    .success()
            );
        }
    }
}

/// A clone without blobs of a repository that cannot be reached any more; HEAD's files are there.
fn partial_clone() -> (Fixture, PathBuf) {
    let fixture = Fixture::with(&[("a", "old\n"), ("b", "1\n")]);
    fixture.commit(&[("a", "new\n")]);
    fixture.plain(&fixture.repo, &["config", "uploadpack.allowFilter", "true"]);
    let clone = fixture.root.join("clone");
    let url = format!("file://{}", fixture.repo.display());
    fixture.plain(&fixture.root, &["clone", "-q", "--filter=blob:none", &url, clone.to_str().unwrap()]);
    fs::rename(&fixture.repo, fixture.root.join("unreachable")).unwrap();
    (fixture, clone)
}

#[test]
fn a_partial_clone_works_without_its_remote() {
    for isolation in [Isolation::Private, Isolation::Linked] {
        let (fixture, clone) = partial_clone();
        let job = fixture.job_in(&clone, isolation);
        job.write("a", "newer\n");
        let captured = fixture.capture(&job);
        assert_eq!(changes(&captured.change_set), ["M a"]);
        assert_eq!((captured.result.totals.added, captured.result.totals.deleted), (1, 1));
    }
}

#[test]
fn missing_objects_are_named_and_never_fetched() {
    let (fixture, clone) = partial_clone();
    fs::rename(fixture.root.join("unreachable"), &fixture.repo).unwrap();
    let missing = fixture.plain(&fixture.repo, &["rev-parse", "HEAD~:a"]);
    fixture.plain(&clone, &["update-ref", "--no-deref", "HEAD", "HEAD~"]);
    let examined = fixture.examine(&clone).unwrap();
    let places = fixture.places();
    for isolation in [Isolation::Private, Isolation::Linked] {
        let refused = fixture.git.prepare(&places, &examined.repository, &examined.head, isolation).unwrap_err();
        assert!(refused.to_string().contains(&missing), "{refused}");
        let failure = pactify_core::Failure::from(refused);
        assert_eq!(failure.code, pactify_core::FailureCode::ObjectsMissing);
        assert_eq!(fs::read_dir(places.directory()).unwrap().count(), 0);
    }
    // Plain git would have fetched it.
    assert_eq!(fixture.plain(&clone, &["cat-file", "-p", &missing]), "old");
}

#[test]
fn a_sparse_checkout_stays_sparse_and_absent_files_are_not_deleted() {
    for isolation in [Isolation::Private, Isolation::Linked] {
        let fixture = Fixture::with(&[("in/a", "1\n"), ("out/b", "1\n"), ("top", "1\n")]);
        fixture.plain(&fixture.repo, &["sparse-checkout", "set", "in"]);
        let job = fixture.job_in(&fixture.repo, isolation);
        assert!(job.tree().join("in/a").exists() && !job.tree().join("out").exists());
        assert_eq!(job.prepared.notices[0].id, "sparseCheckout");
        job.write("in/a", "2\n");
        fs::remove_file(job.tree().join("top")).unwrap();
        assert_eq!(changes(&fixture.capture(&job).change_set), ["M in/a", "D top"]);
    }
}

#[test]
fn submodules_are_empty_announced_and_not_taken_for_changes() {
    let fixture = Fixture::with(&[("a", "1\n")]);
    let head = fixture.plain(&fixture.repo, &["rev-parse", "HEAD"]);
    fixture.plain(&fixture.repo, &["update-index", "--add", "--cacheinfo", &format!("160000,{head},sub")]);
    fixture.plain(&fixture.repo, &["commit", "-qm", "submodule"]);
    let job = fixture.job();
    assert_eq!(job.prepared.notices[0].id, "submodulesEmpty");
    assert_eq!(changes(&fixture.capture(&job).change_set), [""; 0]);
    job.write("sub/file", "x\n");
    let captured = fixture.capture(&job);
    assert_eq!(changes(&captured.change_set), [""; 0]);
    assert_eq!(notes(&captured.change_set), r#"{"kind":"submodule","path":{"path":"sub"},"files":1}"#);
    fs::remove_dir_all(job.tree().join("sub")).unwrap();
    assert_eq!(changes(&fixture.capture(&job).change_set), ["D sub"]);
}

#[test]
fn a_shallow_clone_and_a_worktree_of_a_worktree_work() {
    let fixture = Fixture::with(&[("a", "0\n")]);
    fixture.commit(&[("a", "1\n")]);
    let url = format!("file://{}", fixture.repo.display());
    fixture.plain(&fixture.root, &["clone", "-q", "--depth=1", &url, "shallow"]);
    fixture.plain(&fixture.root.join("shallow"), &["worktree", "add", "-q", "--detach", "../linked"]);
    for folder in ["shallow", "linked"] {
        for isolation in [Isolation::Private, Isolation::Linked] {
            let job = fixture.job_in(&fixture.root.join(folder), isolation);
            assert_eq!(job.repository.worktree.as_path(), fixture.root.join(folder));
            assert_eq!(job.repository.common_dir.as_path(), fixture.root.join("shallow/.git"));
            assert_eq!(fixture.plain(job.tree(), &["log", "--oneline"]).lines().count(), 1);
            job.write("a", "2\n");
            assert_eq!(changes(&fixture.capture(&job).change_set), ["M a"]);
        }
    }
}

#[test]
fn borrowed_objects_are_borrowed_on() {
    let fixture = Fixture::with(&[("a", "1\n")]);
    let mut from = fixture.repo.clone();
    // git follows five levels of borrowing; the tree's own is one more.
    for level in 0..5 {
        let to = fixture.root.join(format!("level{level}"));
        fixture.plain(&fixture.root, &["clone", "-q", "--shared", from.to_str().unwrap(), to.to_str().unwrap()]);
        from = to;
    }
    let job = fixture.job_in(&from, Isolation::Private);
    job.write("a", "2\n");
    assert_eq!(changes(&fixture.capture(&job).change_set), ["M a"]);
}

#[test]
fn a_submodule_is_a_repository_like_any_other() {
    let fixture = Fixture::with(&[("a", "1\n")]);
    let project = fixture.root.join("project");
    fs::create_dir(&project).unwrap();
    fixture.plain(&project, &["init", "-q"]);
    let from = fixture.repo.display().to_string();
    fixture.plain(&project, &["-c", "protocol.file.allow=always", "submodule", "add", "-q", &from, "sub"]);
    for isolation in [Isolation::Private, Isolation::Linked] {
        let job = fixture.job_in(&project.join("sub"), isolation);
        assert_eq!(job.repository.git_dir.as_path(), project.join(".git/modules/sub"));
        let toplevel = fixture.plain(job.tree(), &["rev-parse", "--show-toplevel"]);
        assert_eq!(Path::new(&toplevel), job.tree());
        job.write("a", "2\n");
        assert_eq!(changes(&fixture.capture(&job).change_set), ["M a"]);
        assert_eq!(fs::read_to_string(project.join("sub/a")).unwrap(), "1\n");
    }
}
