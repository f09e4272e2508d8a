//! Where no job can start: each reason has a code, names the thing and leaves nothing behind.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use pactify_core::job::Isolation;
use pactify_core::{Failure, FailureCode};
use pactify_engine::git::{Git, GitError};

use crate::support::{Fixture, absolute, env, write};

fn refusal(fixture: &Fixture, folder: &Path) -> FailureCode {
    let failure = Failure::from(fixture.examine(folder).unwrap_err());
    assert!(!failure.next.is_empty() && !failure.message.is_empty());
    failure.code
}

#[test]
fn folders_without_a_usable_repository_are_refused_with_the_reason() {
    let fixture = Fixture::with(&[("a", "1\n")]);
    let plain = |name: &str, arguments: &[&str]| {
        let path = fixture.root.join(name);
        fs::create_dir_all(&path).unwrap();
        fixture.plain(&path, &["init", "-q", "-b", "main"]);
        for command in arguments {
            fixture.plain(&path, &command.split(' ').collect::<Vec<_>>());
        }
        path
    };
    let commit = "commit -q --allow-empty -m x";
    assert_eq!(refusal(&fixture, &fixture.root.join("home")), FailureCode::NoRepository);
    assert_eq!(refusal(&fixture, &fixture.repo.join(".git")), FailureCode::BareRepository);
    assert_eq!(refusal(&fixture, &plain("unborn", &[])), FailureCode::UnbornHead);
    let lost = plain("lost", &[commit, "symbolic-ref HEAD refs/heads/gone"]);
    assert_eq!(refusal(&fixture, &lost), FailureCode::HeadNamesNothing);
    fixture.plain(&fixture.root, &["init", "-q", "--bare", "bare"]);
    assert_eq!(refusal(&fixture, &fixture.root.join("bare")), FailureCode::BareRepository);
    let future = plain("future", &[commit, "config core.repositoryformatversion 1", "config extensions.teleport true"]);
    assert_eq!(refusal(&fixture, &future), FailureCode::UnsupportedRepository);
    let empty = plain("empty", &[commit]);
    fs::remove_dir_all(empty.join(".git/objects")).unwrap();
    fs::create_dir(empty.join(".git/objects")).unwrap();
    assert_eq!(refusal(&fixture, &empty), FailureCode::ObjectsMissing);
    let broken = fixture.root.join("broken");
    write(&broken.join(".git"), "gitdir: /no/such/place\n");
    assert_eq!(refusal(&fixture, &broken), FailureCode::NoRepository);
}

#[test]
fn a_job_s_tree_is_no_place_to_start_a_job() {
    let fixture = Fixture::with(&[("a", "1\n")]);
    let job = fixture.job();
    assert_eq!(refusal(&fixture, job.tree()), FailureCode::RefusedInsideJob);
}

#[test]
fn a_repository_of_another_user_is_refused_in_git_s_own_words() {
    if !rustix::process::geteuid().is_root() {
        return println!("skipped: only root can do what this needs");
    }
    let fixture = Fixture::with(&[("a", "1\n")]);
    for path in [fixture.repo.clone(), fixture.repo.join(".git")] {
        std::os::unix::fs::chown(path, Some(12345), Some(12345)).unwrap();
    }
    let failure = Failure::from(fixture.examine(&fixture.repo).unwrap_err());
    assert_eq!(failure.code, FailureCode::UnsupportedRepository);
    assert!(failure.message.contains("dubious ownership") && failure.message.contains("safe.directory"), "{failure:?}");
}

#[test]
fn a_missing_an_old_and_a_false_git_are_told_apart() {
    let fixture = Fixture::without_repository();
    let bin = fixture.root.join("bin");
    fs::create_dir(&bin).unwrap();
    let path = bin.to_str().unwrap().to_owned();
    let find = || Git::find(&env(&fixture.root, &[("PATH", path.as_str())])).map(|git| git.version()).unwrap_err();
    assert!(matches!(find(), GitError::Missing(_)));
    for (answer, code) in [("git version 2.30.2", FailureCode::GitTooOld), ("hello", FailureCode::GitFailed)] {
        write(&bin.join("git"), &format!("#!/bin/sh\necho {answer}\n"));
        fs::set_permissions(bin.join("git"), fs::Permissions::from_mode(0o755)).unwrap();
        let error = find();
        assert!(error.to_string().contains(&path), "{error}");
        assert_eq!(Failure::from(error).code, code);
    }
}

/// Whether nothing of a job is left in its directory and in the person's repository.
fn assert_nothing_is_left(fixture: &Fixture, directory: &Path, expected: &[&str], context: &str) {
    let left: Vec<_> = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left, expected, "{context}: in the job's directory");
    assert_eq!(fixture.plain(&fixture.repo, &["for-each-ref", "refs/pactify"]), "", "{context}: refs");
    assert_eq!(fixture.plain(&fixture.repo, &["worktree", "list"]).lines().count(), 1, "{context}: registrations");
}

#[test]
fn a_tree_that_cannot_be_made_leaves_nothing_behind() {
    for isolation in [Isolation::Private, Isolation::Linked] {
        for obstacle in ["git", "tree", "manifest", "manifest.probe"] {
            let fixture = Fixture::with(&[("a", "1\n")]);
            let examined = fixture.examine(&fixture.repo).unwrap();
            let places = fixture.places();
            let path = places.directory().join(obstacle);
            write(path.as_path(), "in the way\n");
            let before = fixture.belongings();
            let refused = fixture.git.prepare(&places, &examined.repository, &examined.head, isolation);
            assert!(refused.is_err(), "{isolation:?} {obstacle}");
            let context = format!("{isolation:?} with {obstacle} in the way");
            assert_nothing_is_left(&fixture, places.directory().as_path(), &[obstacle], &context);
            assert_eq!(fs::read_to_string(&path).unwrap(), "in the way\n", "{context}");
            assert_eq!(fixture.belongings(), before, "{context}");
        }
    }
}

#[test]
fn a_full_disk_is_called_so_and_leaves_nothing_behind() {
    if !rustix::process::geteuid().is_root() {
        return println!("skipped: only root can do what this needs");
    }
    for isolation in [Isolation::Private, Isolation::Linked] {
        let fixture = Fixture::with(&[("a", &"0123456789abcdef\n".repeat(64 << 10))]);
        let examined = fixture.examine(&fixture.repo).unwrap();
        let places = fixture.places();
        let disk = Mount::tmpfs(places.directory().as_path(), "size=512k");
        let refused = fixture.git.prepare(&places, &examined.repository, &examined.head, isolation).unwrap_err();
        let failure = Failure::from(refused);
        assert_eq!(failure.code, FailureCode::NoSpace, "{failure:?}");
        assert_nothing_is_left(&fixture, places.directory().as_path(), &[], &format!("{isolation:?} on a full disk"));
        drop(disk);
    }
}

/// A file system that is mounted as long as this value lives.
pub(crate) struct Mount(std::path::PathBuf);

impl Mount {
    #[expect(clippy::disallowed_methods, reason = "mounting needs the system's own program")]
    pub(crate) fn tmpfs(at: &Path, options: &str) -> Self {
        let status = std::process::Command::new("/usr/bin/mount")
            .args(["-t", "tmpfs", "-o", options, "none"])
            .arg(at)
            .status()
            .unwrap();
        assert!(status.success(), "mounting at {}", at.display());
        Self(at.to_owned())
    }

    /// One that folds case, where the kernel has such a thing and this process may mount it.
    #[expect(clippy::disallowed_methods, reason = "mounting needs the system's own program")]
    pub(crate) fn folding(at: &Path) -> Option<Self> {
        let run = |program: &str, arguments: &[&str]| {
            let output = std::process::Command::new(program).args(arguments).arg(at).output();
            output.is_ok_and(|output| output.status.success())
        };
        if !run("/usr/bin/mount", &["-t", "tmpfs", "-o", "size=1m,casefold", "none"]) {
            return None;
        }
        let mount = Self(at.to_owned());
        run("/usr/bin/chattr", &["+F"]).then_some(mount)
    }

    /// The same file system, after the directory that it is mounted on was moved.
    pub(crate) fn moved(mut self, to: std::path::PathBuf) -> Self {
        self.0 = to;
        self
    }
}

impl Drop for Mount {
    #[expect(clippy::disallowed_methods, reason = "unmounting needs the system's own program")]
    fn drop(&mut self) {
        let _ = std::process::Command::new("/usr/bin/umount").arg(&self.0).status();
    }
}

#[test]
fn a_store_that_cannot_be_written_is_named() {
    let fixture = Fixture::with(&[("a", "1\n")]);
    let examined = fixture.examine(&fixture.repo).unwrap();
    let jobs = absolute(&fixture.root.join("no-such-store"));
    let places = pactify_engine::git::Places::of(&jobs, fixture.places().job().clone());
    let refused = fixture.git.prepare(&places, &examined.repository, &examined.head, Isolation::Private).unwrap_err();
    assert!(refused.to_string().contains("no-such-store"), "{refused}");
    assert_eq!(fixture.plain(&fixture.repo, &["for-each-ref", "refs/pactify"]), "");
}
