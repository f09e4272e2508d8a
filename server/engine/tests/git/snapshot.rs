//! Where a job starts from when that is the checkout as it is: uncommitted work and unsaved text, as objects of ours.

mod buffers;
mod hostile;
mod odd;
mod table;

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;

use pactify_core::job::BaseKind;

use crate::support::{Fixture, changes, write};

fn executable(path: &Path) {
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}

#[test]
fn the_job_begins_with_what_the_person_sees() {
    let files =
        [("edited", "1\n"), ("deleted", "1\n"), ("mode", "1\n"), ("link", "1\n"), ("both", "1\n"), ("dir/a", "1\n")];
    let fixture = Fixture::with(&[&files[..], &[(".gitignore", "*.log\n"), ("same", "1\n")]].concat());
    let at = |path: &str| fixture.repo.join(path);
    write(&at("edited"), "2\n");
    fs::remove_file(at("deleted")).unwrap();
    executable(&at("mode"));
    fs::remove_file(at("link")).unwrap();
    symlink("edited", at("link")).unwrap();
    write(&at("both"), "staged\n");
    write(&at("staged"), "1\n");
    fixture.plain(&fixture.repo, &["add", "both", "staged"]);
    write(&at("both"), "staged, then edited\n");
    fs::remove_dir_all(at("dir")).unwrap();
    write(&at("dir"), "a file now\n");
    write(&at("new/deep.txt"), "new\n");
    write(&at("noise.log"), "ignored\n");

    let shot = fixture.snapshot(&[]);
    assert_eq!(shot.base.kind, BaseKind::WorkingTree);
    assert_eq!(shot.base.parent.as_ref(), Some(&shot.head.commit));
    assert_eq!(shot.notices, ["the job starts from your uncommitted changes: 4 changed, 3 new, 2 deleted files"]);
    let files = fixture.base_files(&shot);
    let listed: Vec<String> = files.iter().map(|(path, what)| format!("{path}: {}", what.trim_end())).collect();
    assert_eq!(
        listed,
        [
            ".gitignore: 100644 *.log",
            "both: 100644 staged, then edited",
            "dir: 100644 a file now",
            "edited: 100644 2",
            "link: 120000 edited",
            "mode: 100755 1",
            "new/deep.txt: 100644 new",
            "same: 100644 1",
            "staged: 100644 1",
        ]
    );

    let job = fixture.begin(shot);
    assert_eq!(job.prepared.notices.iter().map(|notice| notice.id).collect::<Vec<_>>(), ["base"]);
    assert_eq!(fs::read_to_string(job.tree().join("edited")).unwrap(), "2\n");
    assert_eq!(fixture.plain(job.tree(), &["status", "--porcelain"]), "", "to the agent, nothing is uncommitted");
    let log = fixture.plain(job.tree(), &["log", "--format=%s/%an"]);
    let began = format!("Uncommitted changes at the start of pactify job {}/Ada", job.id());
    assert_eq!(log.lines().collect::<Vec<_>>(), [began.as_str(), "step/Ada"]);

    job.write("edited", "3\n");
    fs::remove_file(job.tree().join("new/deep.txt")).unwrap();
    let captured = fixture.capture(&job);
    assert_eq!(changes(&captured.change_set), ["M edited", "D new/deep.txt"], "measured against the snapshot");
    let objects = fixture.git.objects(&job.places.capture(), &job.base.tree).unwrap();
    for change in &captured.change_set.changes {
        assert!(objects.read(&change.old.as_ref().unwrap().object, 100).is_ok(), "both sides are at hand");
    }
}

#[test]
fn a_clean_checkout_is_the_commit_itself() {
    let fixture = Fixture::with(&[("a", "1\n")]);
    let shot = fixture.snapshot(&[]);
    assert_eq!((&shot.base.commit, &shot.base.tree, &shot.base.parent), (&shot.head.commit, &shot.head.tree, &None));
    assert_eq!(shot.notices, ["there are no uncommitted changes: the job starts from the commit that HEAD names"]);
    let job = fixture.begin(shot);
    job.write("a", "2\n");
    assert_eq!(changes(&fixture.capture(&job).change_set), ["M a"]);
}

#[test]
fn a_file_that_was_only_touched_is_no_change() {
    let fixture = Fixture::with(&[("a", "1\n"), ("b", "1\n")]);
    write(&fixture.repo.join("a"), "1\n");
    fs::File::options().write(true).open(fixture.repo.join("b")).unwrap().set_modified(std::time::UNIX_EPOCH).unwrap();
    assert_eq!(fixture.snapshot(&[]).base.parent, None);
}

#[test]
fn what_only_the_index_knew_outlives_it() {
    let fixture = Fixture::with(&[("a", "1\n"), ("deep/er/b", "1\n")]);
    write(&fixture.repo.join("a"), "staged\n");
    write(&fixture.repo.join("deep/er/c"), "staged, too\n");
    fixture.plain(&fixture.repo, &["add", "-A"]);
    let tree = fixture.plain(&fixture.repo, &["write-tree"]);
    let shot = fixture.snapshot(&[]);
    assert_eq!(shot.base.tree.as_str(), tree, "the person's repository has these very objects");

    fixture.plain(&fixture.repo, &["reset", "-q", "--hard"]);
    fixture.plain(&fixture.repo, &["reflog", "expire", "--expire=now", "--all"]);
    fixture.plain(&fixture.repo, &["gc", "-q", "--prune=now"]);
    assert!(!fixture.try_plain(&fixture.repo, &["cat-file", "-e", &tree]).status.success(), "they are gone");
    let job = fixture.begin(shot);
    assert_eq!(fs::read_to_string(job.tree().join("deep/er/c")).unwrap(), "staged, too\n");
}

#[test]
fn the_commit_below_is_kept_while_the_job_exists() {
    let fixture = Fixture::with(&[("a", "1\n")]);
    fixture.commit(&[("a", "2\n")]);
    write(&fixture.repo.join("b"), "mine\n");
    let shot = fixture.snapshot(&[]);
    let head = shot.head.commit.clone();
    let job = fixture.begin(shot);
    let kept = fixture.plain(&fixture.repo, &["rev-parse", &job.places.keep_ref()]);
    assert_eq!(kept, head.as_str(), "the person's repository never hears of ours");
    fixture.plain(&fixture.repo, &["reset", "-q", "--hard", "HEAD^"]);
    fixture.plain(&fixture.repo, &["reflog", "expire", "--expire=now", "--all"]);
    fixture.plain(&fixture.repo, &["gc", "-q", "--prune=now"]);
    job.write("a", "3\n");
    assert_eq!(changes(&fixture.capture(&job).change_set), ["M a"]);
}

#[test]
fn a_branch_of_the_result_lies_on_the_uncommitted_work() {
    let fixture = Fixture::with(&[("a", "1\n")]);
    write(&fixture.repo.join("a"), "mine\n");
    write(&fixture.repo.join("b"), "mine, too\n");
    let job = fixture.begin(fixture.snapshot(&[]));
    job.write("a", "the job's\n");
    let captured = fixture.capture(&job);
    let (capture, tree) = (job.places.capture(), captured.change_set.id.tree().clone());
    fixture.git.publish_branch(&capture, &job.repository, &job.base, &tree, "result", "Done\n").unwrap();

    let log = fixture.plain(&fixture.repo, &["log", "--format=%s", "result"]);
    let began = format!("Uncommitted changes at the start of pactify job {}", job.id());
    assert_eq!(log.lines().collect::<Vec<_>>(), ["Done", began.as_str(), "step"]);
    assert_eq!(fixture.plain(&fixture.repo, &["diff", "--name-only", "result^", "result"]), "a");
    assert_eq!(fixture.plain(&fixture.repo, &["diff", "--name-only", "result^^", "result^"]), "a\nb");
    fs::remove_dir_all(job.places.directory()).unwrap();
    fixture.plain(&fixture.repo, &["fsck", "--strict", "--no-dangling"]);
}

#[test]
fn a_result_goes_onto_the_checkout_it_began_with() {
    let fixture = Fixture::with(&[
        ("edited", "1\n2\n3\n"),
        ("windows.txt", "1\n"),
        ("gone", "1\n"),
        (".gitattributes", "*.txt text eol=crlf\n*.bin filter=lfs diff=lfs merge=lfs -text\n"),
    ]);
    let at = |path: &str| fixture.repo.join(path);
    write(&at("edited"), "1\n2\nmine\n");
    write(&at("windows.txt"), "mine\r\n");
    write(&at("new"), "mine\n");
    write(&at("large.bin"), "mine, and in no store");
    write(&at("buffer"), "saved\n");
    fs::remove_file(at("gone")).unwrap();
    let index = fs::read(at(".git/index")).unwrap();
    let landed = fixture.land_snapshot(&[("buffer", "unsaved\n")], |job| {
        for (path, content) in [
            ("edited", "the job's\n2\nmine\n"),
            ("windows.txt", "mine\r\nthe job's\r\n"),
            ("new", "mine\nthe job's\n"),
            ("large.bin", "the job's"),
            ("gone", "the job's\n"),
            ("buffer", "unsaved\nthe job's\n"),
        ] {
            job.write(path, content);
        }
    });
    let all = ["M buffer", "M edited", "A gone", "M large.bin", "M new", "M windows.txt"];
    assert_eq!(changes(&landed.captured.change_set), all);

    let refused = landed.apply().unwrap_err();
    let paths: Vec<&str> = refused.conflicts.iter().map(|conflict| conflict.path.path.as_str()).collect();
    assert_eq!(paths, ["buffer"], "only the text that is not saved yet stands in the way: {refused:?}");
    write(&at("buffer"), "unsaved\n");
    assert_eq!(landed.apply().unwrap().applied.len(), all.len());
    for (path, content) in [
        ("edited", "the job's\n2\nmine\n"),
        ("windows.txt", "mine\r\nthe job's\r\n"),
        ("large.bin", "the job's"),
        ("buffer", "unsaved\nthe job's\n"),
    ] {
        assert_eq!(fs::read_to_string(at(path)).unwrap(), content, "{path}");
    }
    assert_eq!(fs::read(at(".git/index")).unwrap(), index);
}

#[test]
fn a_large_file_storage_content_that_is_what_head_points_to_is_no_change() {
    let fixture = Fixture::empty(&[]);
    let pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:\
                   a7937b64b8caa58f03721bb6bacf5c78cb235febe0e70b1b84cd99541461a08e\nsize 5\n";
    fixture.commit(&[
        (".gitattributes", "*.bin filter=lfs diff=lfs merge=lfs -text\n"),
        ("same.bin", pointer),
        ("other.bin", pointer),
    ]);
    write(&fixture.repo.join("same.bin"), "first");
    write(&fixture.repo.join("other.bin"), "changed");
    let shot = fixture.snapshot(&[]);
    let files = fixture.base_files(&shot);
    assert_eq!(files["same.bin"], format!("100644 {pointer}"));
    assert_eq!(files["other.bin"], "100644 changed");
    assert_eq!(
        shot.notices,
        [
            "the job starts from your uncommitted changes: 1 changed file",
            "1 changed file has a content filter, which is not run: the job gets its content as it is in the checkout: \
             other.bin",
        ]
    );
}
