//! Repositories of unusual shapes, from the tree over the capture to the apply, with both kinds of tree.

use std::fs;
use std::path::{Path, PathBuf};

use pactify_core::job::Isolation;
use pactify_core::{Failure, FailureCode};
use pactify_engine::git::GitError;

use crate::checkout::paths;
use crate::support::{Fixture, changes, notes, trap, write};

const BOTH: [Isolation; 2] = [Isolation::Private, Isolation::Linked];

const FILES: &[(&str, &str)] =
    &[("a", "1\n"), ("dir/b", "1\n"), ("gone", "1\n"), (".gitattributes", "*.dos text eol=crlf\n")];

/// A shape: what is made, and the folder that a person opens in it.
type Shape = fn(&Fixture) -> PathBuf;

fn clone(fixture: &Fixture, options: &[&str]) -> PathBuf {
    fixture.commit(&[]);
    fixture.plain(&fixture.repo, &["config", "uploadpack.allowFilter", "true"]);
    let url = format!("file://{}", fixture.repo.display());
    fixture.plain(&fixture.root, &[&["clone", "-q"], options, &[url.as_str(), "clone"]].concat());
    // Whoever asks for it, asks in vain.
    fs::rename(&fixture.repo, fixture.root.join("unreachable")).unwrap();
    fixture.root.join("clone")
}

fn worktree_of_a_bare_repository(fixture: &Fixture) -> PathBuf {
    fixture.plain(&fixture.root, &["clone", "-q", "--bare", "repo", "bare.git"]);
    fixture.plain(&fixture.root.join("bare.git"), &["worktree", "add", "-q", "../checkout", "main"]);
    fixture.root.join("checkout")
}

fn submodule(fixture: &Fixture) -> PathBuf {
    fixture.plain(&fixture.root, &["init", "-q", "project"]);
    let project = fixture.root.join("project");
    fixture.plain(&project, &["-c", "protocol.file.allow=always", "submodule", "add", "-q", "../repo", "sub"]);
    project.join("sub")
}

fn worktree_config(fixture: &Fixture) -> PathBuf {
    fixture.plain(&fixture.repo, &["config", "extensions.worktreeConfig", "true"]);
    fixture.plain(&fixture.repo, &["config", "--worktree", "core.eol", "lf"]);
    fixture.plain(&fixture.repo, &["worktree", "add", "-q", "--detach", "../checkout"]);
    fixture.plain(&fixture.root.join("checkout"), &["config", "--worktree", "core.autocrlf", "false"]);
    fixture.root.join("checkout")
}

/// Where git knows them (2.48); an ordinary one before.
fn relative_worktree(fixture: &Fixture) -> PathBuf {
    let add = ["worktree", "add", "-q", "--detach", "--relative-paths", "../checkout"];
    if !fixture.try_plain(&fixture.repo, &add).status.success() {
        fixture.plain(&fixture.repo, &["worktree", "add", "-q", "--detach", "../checkout"]);
    }
    fixture.root.join("checkout")
}

fn separate_git_dir(fixture: &Fixture) -> PathBuf {
    fixture.plain(&fixture.repo, &["init", "-q", "--separate-git-dir=../elsewhere.git"]);
    fixture.repo.clone()
}

const SHAPES: &[(&str, &[&str], Shape)] = &[
    ("an ordinary one", &[], |fixture| fixture.repo.clone()),
    ("opened on a subfolder", &[], |fixture| fixture.repo.join("dir")),
    ("SHA-256 and reftable", &["--object-format=sha256", "--ref-format=reftable"], |fixture| fixture.repo.clone()),
    ("shallow", &[], |fixture| clone(fixture, &["--depth=1"])),
    ("partial", &[], |fixture| clone(fixture, &["--filter=blob:none"])),
    ("borrowing", &[], |fixture| {
        fixture.plain(&fixture.root, &["clone", "-q", "--shared", "repo", "clone"]);
        fixture.root.join("clone")
    }),
    ("a worktree of a bare repository", &[], worktree_of_a_bare_repository),
    ("a submodule of another project", &[], submodule),
    ("configuration by worktree", &[], worktree_config),
    ("relative worktrees", &[], relative_worktree),
    ("a separate git directory", &[], separate_git_dir),
];

#[test]
fn every_shape_goes_all_the_way() {
    for (name, options, shape) in SHAPES {
        for isolation in BOTH {
            let fixture = Fixture::empty(options);
            fixture.commit(FILES);
            let folder = shape(&fixture);
            let landed = fixture.land_in(&folder, isolation, |job| {
                let top = fixture.plain(job.tree(), &["rev-parse", "--show-toplevel"]);
                assert_eq!(Path::new(&top), job.tree(), "{name}");
                assert_eq!(fixture.plain(job.tree(), &["status", "--porcelain"]), "", "{name}");
                job.write("a", "2\n");
                job.write("dir/new.dos", "one\r\ntwo\r\n");
                fs::remove_file(job.tree().join("gone")).unwrap();
            });
            assert_eq!(
                changes(&landed.captured.change_set),
                ["M a", "A dir/new.dos", "D gone"],
                "{name} {isolation:?}"
            );
            let checkout = landed.job.repository.worktree.as_path().to_owned();
            assert_eq!(landed.job.repository.prefix, if folder.ends_with("dir") { "dir" } else { "" });
            assert_eq!(fs::read_to_string(checkout.join("a")).unwrap(), "1\n", "{name}");
            assert_eq!(paths(&landed.apply().unwrap()), ["a", "dir/new.dos", "gone"], "{name} {isolation:?}");
            assert_eq!(fs::read_to_string(checkout.join("a")).unwrap(), "2\n", "{name}");
            assert_eq!(fs::read_to_string(checkout.join("dir/new.dos")).unwrap(), "one\r\ntwo\r\n", "{name}");
            let status = fixture.plain(&checkout, &["status", "--porcelain"]);
            assert_eq!(status, " M a\n D gone\n?? dir/new.dos", "{name} {isolation:?}");
            fixture.git.release(&landed.job.places, &landed.job.repository).unwrap();
            assert_eq!(fixture.plain(&checkout, &["for-each-ref", "refs/pactify"]), "", "{name}");
        }
    }
}

#[test]
fn a_sparse_cone_is_inherited_and_what_the_job_adds_outside_of_it_is_added() {
    for partial in [false, true] {
        for isolation in BOTH {
            let fixture = Fixture::with(&[
                ("in/a", "1\n"),
                ("out/b", "1\n"),
                ("out/.gitattributes", "* text\n"),
                ("out/.gitignore", "*.o\n"),
                ("top", "1\n"),
            ]);
            let folder = match partial {
                false => fixture.repo.clone(),
                true => clone(&fixture, &["--filter=blob:none", "--sparse"]),
            };
            if !partial {
                fixture.plain(&folder, &["sparse-checkout", "set", "--cone", "in"]);
            }
            let edited = if partial { "top" } else { "in/a" };
            let landed = fixture.land_in(&folder, isolation, |job| {
                assert!(!job.tree().join("out").exists());
                job.write(edited, "2\n");
                job.write("out/new", "new\n");
            });
            let expected = if partial { ["A out/new", "M top"] } else { ["M in/a", "A out/new"] };
            assert_eq!(changes(&landed.captured.change_set), expected);
            landed.apply().unwrap();
            assert_eq!(fs::read_to_string(folder.join(edited)).unwrap(), "2\n");
            assert_eq!(fs::read_to_string(folder.join("out/new")).unwrap(), "new\n");
            assert!(!folder.join("out/b").exists());
        }
    }
}

/// Each worktree may have a cone of its own, or none: a job has that of the one where it was asked for.
#[test]
fn the_cone_is_that_of_the_worktree_which_is_open() {
    for isolation in BOTH {
        let fixture = Fixture::with(&[("in/a", "1\n"), ("out/b", "1\n"), ("top", "1\n")]);
        fixture.plain(&fixture.repo, &["worktree", "add", "-q", "--detach", "../narrow"]);
        fixture.plain(&fixture.repo, &["worktree", "add", "-q", "--detach", "../other"]);
        fixture.plain(&fixture.root.join("narrow"), &["sparse-checkout", "set", "--cone", "in"]);
        fixture.plain(&fixture.root.join("other"), &["sparse-checkout", "set", "--cone", "out"]);
        for (folder, present) in
            [("narrow", &["in/a", "top"][..]), ("other", &["out/b", "top"]), ("repo", &["in/a", "out/b", "top"])]
        {
            let landed = fixture.land_in(&fixture.root.join(folder), isolation, |job| {
                let there = ["in/a", "out/b", "top"].into_iter().filter(|path| job.tree().join(path).exists());
                assert_eq!(there.collect::<Vec<_>>(), present, "{folder} {isolation:?}");
                job.write("in/a", "2\n");
            });
            assert_eq!(changes(&landed.captured.change_set), ["M in/a"], "{folder} {isolation:?}");
        }
    }
}

#[test]
fn a_hook_that_fails_after_a_checkout_fails_no_tree() {
    for isolation in BOTH {
        let fixture = Fixture::with(FILES);
        let mark = fixture.root.join("mark");
        let hook = fixture.repo.join(".git/hooks/post-checkout");
        trap(&hook, &mark);
        let script = fs::read_to_string(&hook).unwrap().replace("cat\n", "exit 1\n");
        fs::write(&hook, script).unwrap();
        let elsewhere = fixture.root.join("elsewhere").display().to_string();
        let plain = fixture.try_plain(&fixture.repo, &["worktree", "add", "--detach", &elsewhere]);
        assert!(!plain.status.success() && mark.exists(), "the hook does not matter to git");
        fs::remove_file(&mark).unwrap();
        let landed = fixture.land_in(&fixture.repo, isolation, |job| job.write("a", "2\n"));
        landed.apply().unwrap();
        assert!(!mark.exists());
    }
}

#[test]
fn a_git_directory_of_another_user_is_refused_in_git_s_own_words() {
    if !rustix::process::geteuid().is_root() {
        return println!("skipped: only root can do what this needs");
    }
    let fixture = Fixture::with(FILES);
    let folder = separate_git_dir(&fixture);
    std::os::unix::fs::chown(fixture.root.join("elsewhere.git"), Some(12345), Some(12345)).unwrap();
    let refused = fixture.examine(&folder).unwrap_err();
    assert!(matches!(refused, GitError::DubiousOwnership { .. }), "{refused}");
    let failure = Failure::from(refused);
    assert_eq!(failure.code, FailureCode::UnsupportedRepository);
    assert!(failure.message.contains("safe.directory"), "{failure:?}");
    let config = fs::read_to_string(fixture.root.join("home/.gitconfig")).unwrap();
    assert!(!config.contains("safe"), "the remedy is the person's");
}

#[test]
fn a_tree_that_loses_its_git_file_is_captured_and_leads_nobody_to_another_repository() {
    for isolation in BOTH {
        let fixture = Fixture::with(FILES);
        // A store inside a repository, as in a home that is one.
        fixture.plain(&fixture.root, &["init", "-q", "-b", "main"]);
        let landed = fixture.land_in(&fixture.repo, isolation, |job| {
            fs::remove_file(job.tree().join(".git")).unwrap();
            let found = fixture.plain(job.tree(), &["rev-parse", "--show-toplevel"]);
            assert_eq!(Path::new(&found), fixture.root, "git does not walk up at all");
            job.write("a", "2\n");
        });
        assert_eq!(changes(&landed.captured.change_set), ["M a"]);
        assert_eq!(notes(&landed.captured.change_set), r#"{"kind":"gitFileRewritten"}"#);
        landed.apply().unwrap();
        assert_eq!(fs::read_to_string(fixture.repo.join("a")).unwrap(), "2\n");
    }
}

#[test]
fn long_paths_and_repositories_inside_the_repository_stand_in_nobody_s_way() {
    for isolation in BOTH {
        let long = format!("{0}/{0}/{1}", "d".repeat(60), "f".repeat(200));
        let fixture = Fixture::with(&[("a", "1\n"), (&long, "1\n"), (".gitignore", "ignored/\n")]);
        for nested in ["ignored/repo", "untracked"] {
            fs::create_dir_all(fixture.repo.join(nested)).unwrap();
            fixture.plain(&fixture.repo.join(nested), &["init", "-q"]);
            write(&fixture.repo.join(nested).join("theirs"), "1\n");
        }
        let landed = fixture.land_in(&fixture.repo, isolation, |job| {
            assert!(!job.tree().join("untracked").exists() && !job.tree().join("ignored").exists());
            job.write("a", "2\n");
            job.write(&long, "2\n");
            fixture.plain(job.tree(), &["init", "-q", "made"]);
            job.write("made/file", "x\n");
        });
        assert_eq!(changes(&landed.captured.change_set), ["M a", format!("M {long}").as_str()]);
        assert_eq!(
            notes(&landed.captured.change_set),
            r#"{"kind":"nestedRepository","path":{"path":"made"},"files":1}"#
        );
        landed.apply().unwrap();
        assert_eq!(fs::read_to_string(fixture.repo.join(&long)).unwrap(), "2\n");
        assert_eq!(fs::read_to_string(fixture.repo.join("untracked/theirs")).unwrap(), "1\n");
    }
}
