//! Reports that no other test is about.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;

use pactify_core::failure::ConflictKind::{AlreadyExists, ContentDiffers, DirectoryInTheWay, Missing, SymlinkNotNamed};
use pactify_core::job::Isolation;
use pactify_core::protocol::{PreviewFormat, Side};
use serde_json::json;

use crate::support::{Fixture, Landed, changes, write};
use crate::threats::world::{BOTH, all_of, obstacles, record};

#[test]
fn a_checkout_hook_that_fails_stops_nothing() {
    let fixture = Fixture::with(&[("a", "1\n")]);
    let hook = fixture.repo.join(".git/hooks/post-checkout");
    write(&hook, "#!/bin/sh\nexit 1\n");
    fs::set_permissions(&hook, fs::Permissions::from_mode(0o755)).unwrap();
    let plain = fixture.root.join("plain").display().to_string();
    let refused = fixture.try_plain(&fixture.repo, &["worktree", "add", "--detach", &plain]);
    assert!(!refused.status.success(), "the hook does not matter to git");
    for isolation in BOTH {
        let landed = fixture.land_in(&fixture.repo, isolation, |job| job.write("a", "2\n"));
        assert_eq!(changes(&landed.captured.change_set), ["M a"]);
    }
}

#[test]
fn a_link_named_like_an_ignored_directory_is_opted_into() {
    let fixture = Fixture::with(&[(".gitignore", "node_modules/\n")]);
    write(&fixture.repo.join("node_modules/x"), "mine\n");
    let landed = fixture.land(|job| symlink("../elsewhere", job.tree().join("node_modules")).unwrap());
    fixture.plain(landed.job.tree(), &["add", "-A"]);
    let staged = fixture.plain(landed.job.tree(), &["diff", "--cached", "--name-only"]);
    assert_eq!(staged, "node_modules", "git does not stage it at all");
    assert_eq!(changes(&landed.captured.change_set), ["A node_modules"]);
    assert_eq!(obstacles(landed.apply_only(&[])), all_of(SymlinkNotNamed, &["node_modules"]));
    landed.apply().unwrap_err();
    assert_eq!(fs::read_to_string(fixture.repo.join("node_modules/x")).unwrap(), "mine\n");
}

#[test]
fn the_branch_of_a_job_s_base_stays_free() {
    for isolation in BOTH {
        let fixture = Fixture::with(&[("a", "1\n")]);
        fixture.plain(&fixture.repo, &["switch", "-qc", "other"]);
        let _job = fixture.job_in(&fixture.repo, isolation);
        fixture.plain(&fixture.repo, &["switch", "-q", "main"]);
        fixture.plain(&fixture.repo, &["branch", "-qD", "other"]);
    }
}

#[test]
fn a_locked_index_stands_in_nobody_s_way() {
    for isolation in BOTH {
        let fixture = Fixture::with(&[("a", "1\n")]);
        write(&fixture.repo.join(".git/index.lock"), "somebody commits\n");
        assert!(!fixture.try_plain(&fixture.repo, &["add", "-A"]).status.success());
        let landed = fixture.land_in(&fixture.repo, isolation, |job| job.write("a", "2\n"));
        landed.shown();
        landed.apply().unwrap();
        landed.discard().unwrap();
        assert_eq!(fs::read_to_string(fixture.repo.join(".git/index.lock")).unwrap(), "somebody commits\n");
    }
}

#[test]
fn telling_about_jobs_starts_no_git() {
    let mut fixture = Fixture::with(&[("a", "1\n")]);
    let log = record(&mut fixture);
    let landed = fixture.land(|job| job.write("a", "2\n"));
    let jobs = landed.jobs();
    let calls = || fs::read_to_string(&log).unwrap().lines().count();
    let before = calls();
    for _ in 0..20 {
        jobs.status(landed.job.places.job()).unwrap();
        jobs.list(&serde_json::from_value(json!({ "all": true })).unwrap()).unwrap();
        jobs.events(&serde_json::from_value(json!({ "jobId": landed.id() })).unwrap()).unwrap();
    }
    assert_eq!(calls(), before);
}

#[test]
fn a_job_that_stashes_does_not_touch_the_person_s_stash() {
    let fixture = Fixture::with(&[("a", "1\n")]);
    write(&fixture.repo.join("a"), "mine\n");
    fixture.plain(&fixture.repo, &["stash"]);
    let before = fixture.plain(&fixture.repo, &["stash", "list"]);
    let steps = |tree: &Path| {
        fixture.try_plain(tree, &["stash"]);
        fixture.try_plain(tree, &["stash", "pop"]);
        fixture.try_plain(tree, &["stash", "clear"]);
    };
    let landed = fixture.land(|job| {
        steps(job.tree());
        job.write("a", "2\n");
        steps(job.tree());
        job.write("a", "2\n");
    });
    assert_eq!(changes(&landed.captured.change_set), ["M a"]);
    landed.apply().unwrap();
    assert_eq!(fixture.plain(&fixture.repo, &["stash", "list"]), before);
    assert!(fixture.plain(&fixture.repo, &["stash", "show", "-p"]).contains("+mine"));
    let plain = fixture.root.join("plain");
    fixture.plain(&fixture.repo, &["worktree", "add", "-q", "--detach", plain.to_str().unwrap()]);
    steps(&plain);
    assert_eq!(fixture.plain(&fixture.repo, &["stash", "list"]), "", "a linked worktree shares it");
}

#[test]
fn looking_writes_nothing() {
    let fixture = Fixture::with(&[("a", "1\n"), ("b", "1\n")]);
    write(&fixture.repo.join("b"), "mine\n");
    let landed = fixture.land(|job| ["a", "b", "c"].iter().for_each(|path| job.write(path, "2\n")));
    let before = fixture.belongings();
    landed.shown();
    for format in [PreviewFormat::Summary, PreviewFormat::Hunks, PreviewFormat::Patch] {
        landed.preview(format);
    }
    landed.content("a", Side::Current);
    landed.jobs().export(&serde_json::from_value(json!({ "jobId": landed.id(), "as": "patch" })).unwrap()).unwrap();
    landed.jobs().worktree(landed.job.places.job()).unwrap();
    landed.apply_only(&["b"]).unwrap_err();
    assert_eq!(fixture.belongings(), before);
}

#[test]
fn what_is_staged_stays_staged_to_the_byte() {
    let fixture = Fixture::with(&[("a", "1\n"), ("b", "1\n"), ("c", "1\n")]);
    write(&fixture.repo.join("a"), "staged\n");
    fixture.plain(&fixture.repo, &["add", "a"]);
    write(&fixture.repo.join("c"), "not staged\n");
    write(&fixture.repo.join("untracked"), "mine\n");
    let index = fs::read(fixture.repo.join(".git/index")).unwrap();
    let landed = fixture.land(|job| {
        job.write("b", "2\n");
        job.write("new", "2\n");
    });
    landed.apply().unwrap();
    assert_eq!(fs::read(fixture.repo.join(".git/index")).unwrap(), index);
    let expected = "M  a\n M b\n M c\n?? new\n?? untracked";
    assert_eq!(fixture.plain(&fixture.repo, &["status", "--porcelain"]), expected);
}

#[test]
fn untracked_and_ignored_files_are_in_the_way_unless_they_are_the_same() {
    let fixture = Fixture::with(&[(".gitignore", "*.log\n"), ("kept.log", "1\n")]);
    let landed = fixture.land(|job| {
        for path in ["untracked", "same", "file/inner", "directory", "ignored"] {
            job.write(path, "2\n");
        }
    });
    write(&fixture.repo.join(".git/info/exclude"), "ignored\n");
    for (path, text) in [("untracked", "mine\n"), ("ignored", "mine\n"), ("same", "2\n"), ("file", "mine\n")] {
        write(&fixture.repo.join(path), text);
    }
    write(&fixture.repo.join("directory/mine"), "mine\n");
    let before = fixture.belongings();
    let mut expected = all_of(DirectoryInTheWay, &["directory", "file/inner"]);
    expected.extend(all_of(AlreadyExists, &["ignored", "untracked"]));
    assert_eq!(obstacles(landed.apply()), expected);
    assert_eq!(fixture.belongings(), before);
    let applied = landed.apply_only(&["same"]).unwrap();
    assert_eq!((applied.applied.len(), applied.already.len()), (0, 1));
}

/// What the person did, and what the job did, to one file; and what then is in the way.
#[test]
fn every_kind_of_edit_against_the_person_s_own() {
    type Step = fn(&Fixture, &Path);
    let edit: Step = |_, tree| write(&tree.join("a"), "edited\n");
    let staged: Step = |fixture, tree| {
        write(&tree.join("a"), "staged\n");
        fixture.plain(tree, &["add", "a"]);
    };
    let binary: Step = |_, tree| fs::write(tree.join("a"), b"\0mine\n").unwrap();
    let other_binary: Step = |_, tree| fs::write(tree.join("a"), b"\0theirs\n").unwrap();
    let rename: Step = |_, tree| fs::rename(tree.join("a"), tree.join("renamed")).unwrap();
    let delete: Step = |_, tree| fs::remove_file(tree.join("a")).unwrap();
    for (what, person, job, expected) in [
        ("staged against an edit", staged, edit, ContentDiffers),
        ("binary against binary", binary, other_binary, ContentDiffers),
        ("a rename against an edit", rename, edit, Missing),
        ("an edit against a rename", edit, rename, ContentDiffers),
        ("a deletion against an edit", delete, edit, Missing),
        ("an edit against a deletion", edit, delete, ContentDiffers),
    ] {
        let fixture = Fixture::with(&[("a", "1\n")]);
        let landed: Landed = fixture.land_in(&fixture.repo, Isolation::Private, |made| job(&fixture, made.tree()));
        person(&fixture, &fixture.repo);
        let before = (fixture.belongings(), fixture.plain(&fixture.repo, &["for-each-ref"]));
        assert_eq!(obstacles(landed.apply()), all_of(expected, &["a"]), "{what}");
        assert_eq!((fixture.belongings(), fixture.plain(&fixture.repo, &["for-each-ref"])), before, "{what}");
    }
}
