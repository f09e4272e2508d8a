//! `.worktreeinclude`: ignored files that a job's tree gets copies of, and that come out of it nowhere.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};

use pactify_core::job::Isolation;
use pactify_core::protocol::PreviewFormat;

use super::{BOTH, notice};
use crate::support::{Fixture, Landed, changes, notes, write};

const SECRET: &str = "hunter2-is-the-secret";

/// A repository in which everything called `*.env` or below `local/` is ignored.
fn fixture() -> Fixture {
    let fixture = Fixture::with(&[(".gitignore", "*.env\nlocal/\n*.link\n"), ("src/a", "1\n")]);
    for path in ["top.env", "src/deep/own.env", "local/settings", "local/more/settings", "other.env"] {
        write(&fixture.repo.join(path), SECRET);
    }
    fixture
}

/// Every file below the job's directory and the repository's git directory that holds the secret.
fn leaks(fixture: &Fixture, landed: &Landed) -> Vec<String> {
    let mut found = Vec::new();
    let job = landed.job.places.directory().as_path().to_owned();
    let mut waiting = vec![job, fixture.repo.join(".git"), fixture.root.join("store/previews")];
    while let Some(directory) = waiting.pop() {
        for entry in fs::read_dir(directory).into_iter().flatten() {
            let path = entry.unwrap().path();
            if path.is_dir() && path != landed.job.tree() {
                waiting.push(path);
            } else if fs::read(&path).is_ok_and(|bytes| bytes.windows(SECRET.len()).any(|at| at == SECRET.as_bytes())) {
                found.push(path.display().to_string());
            }
        }
    }
    found
}

#[test]
fn named_ignored_files_are_copied_with_their_modes_and_come_out_nowhere() {
    for isolation in BOTH {
        let fixture = fixture();
        fs::set_permissions(fixture.repo.join("top.env"), fs::Permissions::from_mode(0o600)).unwrap();
        fs::set_permissions(fixture.repo.join("local"), fs::Permissions::from_mode(0o700)).unwrap();
        fs::set_permissions(fixture.repo.join("local/settings"), fs::Permissions::from_mode(0o640)).unwrap();
        fixture.commit(&[(".worktreeinclude", "# what the tests need\n*.env\n!other.env\n/local/\nsrc/a\n")]);
        let landed = fixture.land_in(&fixture.repo, isolation, |job| {
            let text = notice(job, "includedFiles").unwrap();
            assert!(text.ends_with(": 4") && !text.contains("env"), "{text}");
            let mode = |path: &str| fs::metadata(job.tree().join(path)).unwrap().permissions().mode() & 0o777;
            assert_eq!((mode("top.env"), mode("local"), mode("local/settings")), (0o600, 0o700, 0o640));
            assert!(job.tree().join("src/deep/own.env").exists() && job.tree().join("local/more/settings").exists());
            assert!(!job.tree().join("other.env").exists());
            // What the job does to the rules changes nothing about it.
            job.write(".gitignore", "");
            job.write(".worktreeinclude", "");
            job.write("src/a", "2\n");
            job.write("top.env", &format!("{SECRET}, edited"));
            if isolation == Isolation::Private {
                fixture.plain(job.tree(), &["add", "-fA"]);
                fixture.plain(job.tree(), &["commit", "-qm", "everything"]);
            }
        });
        assert_eq!(changes(&landed.captured.change_set), ["M .gitignore", "M .worktreeinclude", "M src/a"]);
        // The commit itself is told of: it is nowhere else.
        let only_there =
            if isolation == Isolation::Private { r#"{"kind":"commits","refs":["HEAD"],"count":1}"# } else { "" };
        assert_eq!(notes(&landed.captured.change_set), only_there);
        let preview = landed.preview(PreviewFormat::Patch);
        assert!(!preview.patch.unwrap().contains(SECRET));
        landed.apply().unwrap();
        assert_eq!(fs::read_to_string(fixture.repo.join("top.env")).unwrap(), SECRET);
        let branch = serde_json::json!({ "jobId": landed.job.id(), "as": "branch", "name": "result" });
        landed.jobs().export(&serde_json::from_value(branch).unwrap()).unwrap();
        let files = fixture.plain(&fixture.repo, &["ls-tree", "-r", "--name-only", "result"]);
        assert_eq!(files, ".gitignore\n.worktreeinclude\nsrc/a");
        assert_eq!(leaks(&fixture, &landed), [""; 0]);
        for git_dir in [landed.job.places.capture().as_path(), &fixture.repo.join(".git")] {
            for content in [SECRET.to_owned(), format!("{SECRET}, edited")] {
                write(&fixture.root.join("content"), &content);
                let object = fixture.plain(&fixture.root, &["hash-object", "content"]);
                let found = fixture.try_plain(git_dir, &["--git-dir=.", "cat-file", "-e", &object]);
                assert!(!found.status.success(), "{object} is in {}", git_dir.display());
            }
        }
    }
}

#[test]
fn tracked_files_links_and_special_files_are_never_copied() {
    let fixture = fixture();
    write(&fixture.root.join("outside/secret"), SECRET);
    symlink(fixture.root.join("outside/secret"), fixture.repo.join("file.link")).unwrap();
    symlink(fixture.root.join("outside"), fixture.repo.join("local/dir.link")).unwrap();
    rustix::fs::mknodat(
        rustix::fs::CWD,
        fixture.repo.join("local/pipe"),
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::RWXU,
        0,
    )
    .unwrap();
    write(&fixture.repo.join("visible"), "neither ignored nor tracked\n");
    write(&fixture.repo.join("local/nested/file"), SECRET);
    fixture.plain(&fixture.repo.join("local/nested"), &["init", "-q"]);
    // In the base, and in the index alone.
    fixture.plain(&fixture.repo, &["add", "-f", "top.env"]);
    fixture.plain(&fixture.repo, &["commit", "-qm", "tracked"]);
    write(&fixture.repo.join("top.env"), "edited");
    fixture.plain(&fixture.repo, &["add", "-f", "other.env"]);
    // Untracked: the person's own file counts where the base has none.
    write(&fixture.repo.join(".worktreeinclude"), "*\n");
    let job = fixture.job();
    let there = |path: &str| fs::symlink_metadata(job.tree().join(path)).is_ok();
    assert_eq!(fs::read_to_string(job.tree().join("top.env")).unwrap(), SECRET, "the base's");
    for path in ["file.link", "local/dir.link", "local/pipe", "visible", "local/nested", "other.env"] {
        assert!(!there(path), "{path}");
    }
    assert!(there("local/settings") && there("src/deep/own.env"));
}

#[test]
fn a_base_s_link_is_not_followed_and_the_base_decides_about_the_patterns() {
    let fixture = fixture();
    let victim = fixture.root.join("victim");
    fs::create_dir(&victim).unwrap();
    symlink(&victim, fixture.repo.join("linked")).unwrap();
    fixture.commit(&[(".worktreeinclude", "linked/*.env\ntop.env\n")]);
    // In the checkout a directory is in the link's place, with a file that git ignores.
    fs::remove_file(fixture.repo.join("linked")).unwrap();
    write(&fixture.repo.join("linked/x.env"), SECRET);
    write(&fixture.repo.join(".worktreeinclude"), "*.env\n");
    let job = fixture.job();
    assert_eq!(fs::read_dir(&victim).unwrap().count(), 0);
    assert!(job.tree().join("top.env").exists() && !job.tree().join("src/deep/own.env").exists());
    // A base that names nothing means that nothing is copied, whatever the person adds later.
    fixture.commit(&[(".worktreeinclude", "\n")]);
    write(&fixture.repo.join(".worktreeinclude"), "*.env\n");
    let job = fixture.job();
    assert!(notice(&job, "includedFiles").is_none() && !job.tree().join("top.env").exists());
}

#[test]
fn what_the_job_leaves_beside_copies_is_counted_without_them() {
    let fixture = fixture();
    fixture.commit(&[(".worktreeinclude", "local/\n")]);
    let job = fixture.job();
    job.write("local/by-the-job", "x");
    let found = notes(&fixture.capture(&job).change_set);
    assert_eq!(found, r#"{"kind":"ignored","files":1,"examples":[{"path":"local"}]}"#);
}
