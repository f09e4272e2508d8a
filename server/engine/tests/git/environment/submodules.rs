//! Submodules: filled from what this machine has, never by `git submodule`, and never part of a result.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use super::{BOTH, notice};
use crate::support::{Fixture, Job, changes, notes, trap, write};

/// A repository with the submodule `libs/one`, which has the submodule `inner`; the repositories that they came from
/// are gone.
fn fixture() -> Fixture {
    let fixture = Fixture::with(&[("a", "1\n")]);
    let from = |name: &str| {
        let path = fixture.root.join(name);
        fixture.plain(&fixture.root, &["init", "-q", "-b", "main", name]);
        write(&path.join("file"), &format!("{name}\n"));
        write(&path.join("run.dos"), "dos\n");
        fixture.plain(&path, &["add", "-A"]);
        fixture.plain(&path, &["commit", "-qm", "first"]);
        path
    };
    let (inner, one) = (from("inner"), from("one"));
    add(&fixture, &one, &inner, "inner");
    fixture.plain(&one, &["commit", "-qm", "with inner"]);
    add(&fixture, &fixture.repo, &one, "libs/one");
    fixture.plain(
        &fixture.repo,
        &["-c", "protocol.file.allow=always", "submodule", "update", "-q", "--init", "--recursive"],
    );
    fixture.commit(&[]);
    for gone in [inner, one] {
        fs::remove_dir_all(gone).unwrap();
    }
    fixture
}

fn add(fixture: &Fixture, to: &Path, from: &Path, at: &str) {
    let from = from.to_str().unwrap();
    fixture.plain(to, &["-c", "protocol.file.allow=always", "submodule", "add", "-q", from, at]);
}

fn assert_filled(fixture: &Fixture, job: &Job) {
    assert_eq!(notice(job, "submodulesEmpty"), None);
    for (path, content) in [("libs/one/file", "one\n"), ("libs/one/inner/file", "inner\n")] {
        assert_eq!(fs::read_to_string(job.tree().join(path)).unwrap(), content);
    }
    for path in ["libs/one", "libs/one/inner"] {
        let own = fixture.plain(&job.tree().join(path), &["rev-parse", "--absolute-git-dir"]);
        assert!(Path::new(&own).starts_with(job.places.git()), "{own}");
        assert_eq!(fixture.plain(&job.tree().join(path), &["status", "--porcelain"]), "", "{path}");
        assert!(fixture.plain(&job.tree().join(path), &["log", "--oneline"]).contains(' '));
    }
    assert_eq!(fixture.plain(job.tree(), &["status", "--porcelain"]), "");
}

#[test]
fn submodules_are_filled_at_every_depth_without_their_origin() {
    for isolation in BOTH {
        let fixture = fixture();
        let landed = fixture.land_in(&fixture.repo, isolation, |job| {
            assert_filled(&fixture, job);
            job.write("a", "2\n");
            job.write("libs/one/file", "changed\n");
            job.write("libs/one/new", "new\n");
            fs::remove_file(job.tree().join("libs/one/inner/file")).unwrap();
            fixture.plain(&job.tree().join("libs/one"), &["commit", "-qam", "in the submodule"]);
        });
        assert_eq!(changes(&landed.captured.change_set), ["M a"]);
        let found = notes(&landed.captured.change_set);
        assert_eq!(found, r#"{"kind":"submodule","path":{"path":"libs/one"},"files":3}"#);
        let before = fixture.plain(&fixture.repo.join("libs/one"), &["rev-parse", "HEAD", "main"]);
        landed.apply().unwrap();
        assert_eq!(fs::read_to_string(fixture.repo.join("libs/one/file")).unwrap(), "one\n");
        assert_eq!(fixture.plain(&fixture.repo.join("libs/one"), &["rev-parse", "HEAD", "main"]), before);
        assert_eq!(fixture.plain(&fixture.repo, &["status", "--porcelain"]), " M a");
    }
}

#[test]
fn an_untouched_submodule_is_not_mentioned_and_one_that_was_not_absorbed_is_filled_too() {
    let fixture = fixture();
    assert_eq!(notes(&fixture.capture(&fixture.job()).change_set), "");

    let fixture = Fixture::with(&[("a", "1\n")]);
    let own = fixture.repo.join("own");
    fixture.plain(&fixture.repo, &["init", "-q", "-b", "main", "own"]);
    write(&own.join("file"), "own\n");
    fixture.plain(&own, &["add", "-A"]);
    fixture.plain(&own, &["commit", "-qm", "first"]);
    fixture.commit(&[(".gitmodules", "[submodule \"own\"]\n\tpath = own\n\turl = ./nowhere\n")]);
    let job = fixture.job();
    assert_eq!(fs::read_to_string(job.tree().join("own/file")).unwrap(), "own\n");
    assert_eq!(notes(&fixture.capture(&job).change_set), "");
}

#[test]
fn what_cannot_be_filled_is_named_with_the_reason_and_hides_nothing() {
    let fixture = fixture();
    let head = fixture.plain(&fixture.repo.join("libs/one"), &["rev-parse", "HEAD"]);
    let gitlink = |path: &str, object: &str| {
        fixture.plain(&fixture.repo, &["update-index", "--add", "--cacheinfo", &format!("160000,{object},{path}")]);
    };
    let modules = fs::read_to_string(fixture.repo.join(".gitmodules")).unwrap();
    let modules = format!(
        "{modules}[submodule \"absent\"]\n\tpath = absent\n[submodule \"evil/../libs/one\"]\n\tpath = evil\n\
         [submodule \"x\"]\n\tpath = both\n[submodule \"y\"]\n\tpath = both\n[include]\n\tpath = /etc/passwd\n"
    );
    write(&fixture.repo.join(".gitmodules"), &modules);
    fixture.plain(&fixture.repo, &["add", ".gitmodules"]);
    for path in ["absent", "evil", "both", "unnamed", "cr\r"] {
        gitlink(path, &head);
    }
    gitlink("libs/one", &"1".repeat(40));
    fixture.plain(&fixture.repo, &["commit", "-qm", "submodules of every kind"]);
    for isolation in BOTH {
        let job = fixture.job_in(&fixture.repo, isolation);
        let text = notice(&job, "submodulesEmpty").unwrap();
        for why in [
            "absent (it was never checked out",
            "evil (.gitmodules has no one sound name",
            "both (.gitmodules has no one",
            "cr\\u{d} (its path is none that is safe)",
            "libs/one (its commit 1111",
            ", and 1 more",
        ] {
            assert!(text.contains(why), "{why} is not in {text}");
        }
        assert_eq!(fs::read_dir(job.tree().join("evil")).unwrap().count(), 0);
        job.write("a", "2\n");
        assert_eq!(changes(&fixture.capture(&job).change_set), ["M a"]);
    }
}

#[test]
fn nothing_that_a_submodule_or_gitmodules_says_is_run_or_followed() {
    let fixture = fixture();
    let mark = fixture.root.join("mark");
    let script = trap(&fixture.root.join("evil"), &mark);
    let one = fixture.repo.join("libs/one");
    let git_dir = fixture.repo.join(".git/modules/libs/one");
    for key in ["core.fsmonitor", "filter.evil.smudge", "filter.evil.clean", "core.sshCommand"] {
        fixture.plain(&one, &["config", key, &script]);
    }
    trap(&git_dir.join("hooks/post-checkout"), &mark);
    write(&git_dir.join("info/attributes"), "* filter=evil\n");
    fixture.plain(&fixture.repo, &["config", "submodule.libs/one.update", &format!("!{script}")]);
    fixture.plain(&one, &["status"]);
    assert!(mark.exists(), "the payload does not fire at all");
    fs::remove_file(&mark).unwrap();
    for isolation in BOTH {
        let job = fixture.job_in(&fixture.repo, isolation);
        assert_eq!(fs::read_to_string(job.tree().join("libs/one/file")).unwrap(), "one\n");
        assert!(!mark.exists(), "something was run");
    }
    // A link in the place of the submodule's git directory leads to another repository.
    fs::rename(&git_dir, fixture.root.join("moved")).unwrap();
    symlink(fixture.root.join("moved"), &git_dir).unwrap();
    let text = notice(&fixture.job(), "submodulesEmpty").unwrap().to_owned();
    assert!(text.contains("libs/one (it was never checked out on this machine)"), "{text}");
}

#[test]
fn a_submodule_at_another_commit_is_an_uncommitted_change() {
    let fixture = fixture();
    assert!(!fixture.job().prepared.notices.iter().any(|notice| notice.id == "uncommittedChanges"));
    let mark = fixture.root.join("mark");
    let at = fixture.repo.join("libs/one");
    fixture.plain(&at, &["commit", "-q", "--allow-empty", "-m", "further"]);
    // Nothing of the submodule's own configuration runs for this.
    fixture.plain(&at, &["config", "core.fsmonitor", &trap(&fixture.root.join("evil"), &mark)]);
    let notices = fixture.job().prepared.notices;
    let told = notices.iter().find(|notice| notice.id == "uncommittedChanges").map(|notice| notice.text.as_str());
    assert_eq!(told, Some("1 file with uncommitted changes is not part of this job: libs/one"));
    assert!(!mark.exists());
}
