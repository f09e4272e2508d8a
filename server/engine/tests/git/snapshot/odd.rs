//! Checkouts that are not the usual kind.

use std::fs;

use super::executable;
use crate::support::{Fixture, Shot, changes, write};

#[test]
fn an_unfinished_merge_is_taken_as_it_lies_there() {
    let fixture = Fixture::with(&[("a", "1\n"), ("b", "1\n"), ("gone", "1\n")]);
    fixture.plain(&fixture.repo, &["checkout", "-q", "-b", "other"]);
    fixture.plain(&fixture.repo, &["rm", "-q", "gone"]);
    fixture.commit(&[("a", "theirs\n"), ("c", "theirs\n")]);
    fixture.plain(&fixture.repo, &["checkout", "-q", "main"]);
    fixture.commit(&[("a", "ours\n"), ("gone", "ours\n")]);
    assert!(!fixture.try_plain(&fixture.repo, &["merge", "other"]).status.success(), "it conflicts");
    let shot = fixture.snapshot(&[]);
    let files = fixture.base_files(&shot);
    assert!(files["a"].contains("<<<<<<< HEAD\nours\n=======\ntheirs\n>>>>>>> other\n"), "{files:?}");
    assert_eq!((files["c"].as_str(), files["gone"].as_str()), ("100644 theirs\n", "100644 ours\n"));
    assert_eq!(
        shot.notices[1],
        "2 files wait for a merge to be resolved; the job gets them as they are in the checkout: a, gone"
    );
    let job = fixture.begin(shot);
    job.write("a", "resolved\n");
    assert_eq!(changes(&fixture.capture(&job).change_set), ["M a"]);
}

#[test]
fn what_a_sparse_checkout_leaves_out_is_not_deleted() {
    for cone in ["--cone", "--no-cone"] {
        let fixture = Fixture::with(&[("in/a", "1\n"), ("out/b", "1\n"), ("out/c", "1\n"), ("top", "1\n")]);
        write(&fixture.repo.join("out/c"), "staged\n");
        fixture.plain(&fixture.repo, &["add", "out/c"]);
        let pattern = if cone == "--cone" { "in" } else { "/in/" };
        fixture.plain(&fixture.repo, &["sparse-checkout", "set", cone, pattern]);
        fixture.plain(&fixture.repo, &["update-index", "--skip-worktree", "out/c"]);
        let _ = fs::remove_file(fixture.repo.join("out/c"));
        assert!(!fixture.repo.join("out/b").exists());
        write(&fixture.repo.join("in/a"), "2\n");
        write(&fixture.repo.join("in/new"), "1\n");
        let shot = fixture.snapshot(&[]);
        let files = fixture.base_files(&shot);
        assert_eq!(files["in/a"], "100644 2\n");
        assert_eq!((files["out/b"].as_str(), files["out/c"].as_str()), ("100644 1\n", "100644 staged\n"), "{cone}");
        let job = fixture.begin(shot);
        assert!(!job.tree().join("out/b").exists(), "the cone is the job's, too");
        job.write("in/a", "3\n");
        assert_eq!(changes(&fixture.capture(&job).change_set), ["M in/a"]);
    }
}

#[test]
fn a_split_or_missing_index_and_hidden_untracked_files() {
    let fixture = Fixture::with(&[("a", "1\n"), ("b", "1\n")]);
    fixture.plain(&fixture.repo, &["update-index", "--split-index"]);
    write(&fixture.repo.join("a"), "2\n");
    fixture.plain(&fixture.repo, &["add", "a"]);
    write(&fixture.repo.join("new"), "1\n");
    let expected = ["a: 100644 2", "b: 100644 1", "new: 100644 1"];
    let listed = |shot: &Shot| -> Vec<String> {
        fixture.base_files(shot).iter().map(|(path, what)| format!("{path}: {}", what.trim_end())).collect()
    };
    assert_eq!(listed(&fixture.snapshot(&[])), expected);

    fixture.plain(&fixture.repo, &["config", "status.showUntrackedFiles", "no"]);
    let shot = fixture.snapshot(&[("new", "unsaved\n"), ("newer", "unsaved\n")]);
    assert_eq!(listed(&shot), ["a: 100644 2", "b: 100644 1", "new: 100644 unsaved", "newer: 100644 unsaved"]);
    let hidden = "untracked files are left out, because `status.showUntrackedFiles` hides them";
    assert!(shot.notices.iter().any(|notice| notice == hidden), "{:?}", shot.notices);
    fixture.plain(&fixture.repo, &["config", "--unset", "status.showUntrackedFiles"]);

    fs::remove_file(fixture.repo.join(".git/index")).unwrap();
    assert_eq!(listed(&fixture.snapshot(&[])), expected);
}

#[test]
fn a_submodule_stays_what_head_has() {
    let fixture = Fixture::with(&[("a", "1\n")]);
    let library = fixture.root.join("library");
    fixture.plain(&fixture.root, &["init", "-q", library.to_str().unwrap()]);
    write(&library.join("x"), "1\n");
    fixture.plain(&library, &["add", "-A"]);
    fixture.plain(&library, &["commit", "-qm", "x"]);
    let add = ["-c", "protocol.file.allow=always", "submodule", "--quiet", "add", library.to_str().unwrap(), "lib"];
    fixture.plain(&fixture.repo, &add);
    fixture.commit(&[]);
    let recorded = fixture.plain(&fixture.repo, &["rev-parse", "HEAD:lib"]);
    let inner = fixture.repo.join("lib");
    write(&inner.join("x"), "dirty\n");
    fixture.plain(&inner, &["commit", "-qam", "moved on"]);
    write(&inner.join("y"), "untracked\n");
    write(&fixture.repo.join("a"), "2\n");
    let shot = fixture.snapshot(&[("lib/x", "unsaved\n")]);
    let files = fixture.base_files(&shot);
    assert_eq!(files["lib"], format!("160000 {recorded}"));
    assert_eq!(files["a"], "100644 2\n");
    assert!(shot.notices[1].contains("lib/x (it belongs to another repository)"), "{:?}", shot.notices);
}

#[test]
fn formats_and_places_of_repositories() {
    for options in [&["--object-format=sha256"][..], &["--ref-format=reftable"]] {
        let fixture = Fixture::empty(options);
        fixture.commit(&[("a", "1\n"), ("dir/b", "1\n")]);
        write(&fixture.repo.join("dir/b"), "2\n");
        write(&fixture.repo.join("dir/c"), "1\n");
        executable(&fixture.repo.join("a"));
        let job = fixture.begin(fixture.snapshot(&[("a", "unsaved\n")]));
        job.write("dir/c", "2\n");
        assert_eq!(changes(&fixture.capture(&job).change_set), ["M dir/c"], "{options:?}");
        assert_eq!(fs::read_to_string(job.tree().join("a")).unwrap(), "unsaved\n");
    }

    let fixture = Fixture::with(&[("a", "1\n")]);
    fixture.commit(&[("a", "2\n")]);
    let linked = fixture.root.join("linked");
    fixture.plain(&fixture.repo, &["worktree", "add", "-q", linked.to_str().unwrap()]);
    let shallow = fixture.root.join("shallow");
    let url = format!("file://{}", fixture.repo.display());
    fixture.plain(&fixture.root, &["clone", "-q", "--depth=1", &url, shallow.to_str().unwrap()]);
    for folder in [linked, shallow] {
        write(&folder.join("a"), "3\n");
        write(&folder.join("sub/b"), "1\n");
        let shot = fixture.try_snapshot_in(&folder.join("sub"), &fixture.git, &[]).unwrap();
        let job = fixture.begin(shot);
        assert_eq!(fs::read_to_string(job.tree().join("a")).unwrap(), "3\n");
        job.write("sub/b", "2\n");
        assert_eq!(changes(&fixture.capture(&job).change_set), ["M sub/b"]);
    }
}

#[test]
fn a_partial_clone_needs_nothing_from_its_server() {
    let fixture = Fixture::with(&[("a", "1\n"), ("big/b", "1\n")]);
    fixture.commit(&[("a", "2\n")]);
    fixture.plain(&fixture.repo, &["config", "uploadpack.allowFilter", "true"]);
    let partial = fixture.root.join("partial");
    let url = format!("file://{}", fixture.repo.display());
    fixture.plain(&fixture.root, &["clone", "-q", "--filter=blob:none", &url, partial.to_str().unwrap()]);
    fs::rename(&fixture.repo, fixture.root.join("away")).unwrap();
    write(&partial.join("a"), "3\n");
    fs::rename(partial.join("big/b"), partial.join("big/c")).unwrap();
    let shot = fixture.try_snapshot_in(&partial, &fixture.git, &[]).unwrap();
    let files: Vec<_> = fixture.base_files(&shot).into_keys().collect();
    assert_eq!(files, ["a", "big/c"]);
}
