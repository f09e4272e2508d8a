//! How a job's tree is filled: whoever writes the files, it is what git would have made, and nothing is trusted for it.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};
use std::path::Path;

use pactify_core::job::Isolation;
use rustix::fs::{CWD, FileType, Mode};

use crate::support::{Counting, Fixture, changes, write};

/// Makes a tree, and says what git was called for.
fn prepare(fixture: &Fixture, counting: &Counting, isolation: Isolation) -> (crate::support::Job, Vec<String>) {
    let examined = fixture.examine(&fixture.repo).unwrap();
    let places = fixture.places();
    counting.calls();
    let prepared = counting.git.prepare(&places, &examined.repository, &examined.head, isolation).unwrap();
    let calls = counting.calls();
    (crate::support::Job { places, repository: examined.repository, base: examined.head, prepared }, calls)
}

/// Every kind of entry, and names of every kind that git takes.
fn varied() -> Fixture {
    let fixture = Fixture::with(&[
        ("a", ""),
        ("a.b/c", "between a and a/\n"),
        ("a-b/c", "before a/\n"),
        ("deep/er/and/deeper/file", "deep\n"),
        ("deep/er/only", "one\n"),
        ("zwölf/ü.txt", "not ASCII\n"),
        ("with space/and~tilde/a:b", "odd\n"),
        ("run.sh", "#!/bin/sh\n"),
        (".gitignore", "ignored\n"),
        (".github/x", "starts like git\n"),
    ]);
    fs::set_permissions(fixture.repo.join("run.sh"), fs::Permissions::from_mode(0o755)).unwrap();
    write(&fixture.repo.join(OsStr::from_bytes(b"latin-\xE9")), "not UTF-8\n");
    write(&fixture.repo.join(format!("{}/{}", "n".repeat(200), "m".repeat(200))), "long\n");
    symlink("a", fixture.repo.join("link")).unwrap();
    symlink("/nowhere", fixture.repo.join("deep/dangling")).unwrap();
    fixture.commit(&[]);
    let commit = fixture.plain(&fixture.repo, &["rev-parse", "HEAD"]);
    fixture.plain(&fixture.repo, &["update-index", "--add", "--cacheinfo", &format!("160000,{commit},module")]);
    fixture.plain(&fixture.repo, &["commit", "-q", "-m", "with a module"]);
    fixture
}

/// Holds the tree against a plain worktree of the same commit.
fn agrees_with_git(fixture: &Fixture, job: &crate::support::Job) {
    let place = fixture.root.join("worktree");
    fixture.plain(&fixture.repo, &["worktree", "add", "--detach", place.to_str().unwrap()]);
    assert_eq!(fixture.plain(job.tree(), &["status", "--porcelain"]), "");
    for question in [&["ls-files", "--stage", "-z"][..], &["write-tree"]] {
        assert_eq!(fixture.plain(job.tree(), question), fixture.plain(&place, question), "{question:?}");
    }
    // Of the index, its tree extension above all.
    assert_eq!(fixture.plain(job.tree(), &["fsck", "--no-dangling"]), "");
    assert_eq!(picture(job.tree()), picture(&place));
    fixture.plain(&fixture.repo, &["worktree", "remove", "--force", place.to_str().unwrap()]);
}

/// Every path with its mode and content.
fn picture(top: &Path) -> Vec<(String, u32, Vec<u8>)> {
    let mut found = Vec::new();
    let mut waiting = vec![top.to_owned()];
    while let Some(directory) = waiting.pop() {
        for entry in fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            let name = format!("{:?}", path.strip_prefix(top).unwrap());
            let metadata = fs::symlink_metadata(&path).unwrap();
            let content = if metadata.is_symlink() {
                fs::read_link(&path).unwrap().as_os_str().as_bytes().to_vec()
            } else if metadata.is_dir() {
                waiting.push(path);
                Vec::new()
            } else {
                fs::read(&path).unwrap()
            };
            if name != "\".git\"" {
                found.push((name, metadata.mode(), content));
            }
        }
    }
    found.sort();
    found
}

#[test]
fn a_tree_is_what_git_makes_and_git_does_not_make_it() {
    for isolation in [Isolation::Private, Isolation::Linked] {
        let fixture = varied();
        let (job, calls) = prepare(&fixture, &fixture.counting(), isolation);
        assert!(!calls.iter().any(|call| call == "read-tree" || call == "checkout-index"), "{calls:?}");
        agrees_with_git(&fixture, &job);
        assert_eq!(changes(&fixture.capture(&job).change_set), [""; 0]);
    }
}

#[test]
fn only_files_that_git_converts_are_left_to_git() {
    for (attributes, settings, expected) in [
        ("* text=auto\n*.sh text eol=lf\n", None, [false, false]),
        ("* text=auto\n*.bat text eol=crlf\n", None, [true, false]),
        ("*.id ident\n*.bat working-tree-encoding=UTF-16LE\n", None, [true, false]),
        ("*.bat text\n", Some(("core.eol", "crlf")), [true, false]),
        ("", Some(("core.autocrlf", "input")), [false, false]),
        ("", Some(("core.autocrlf", "true")), [false, true]),
        ("* eol=crlf\n", None, [false, true]),
    ] {
        let fixture = Fixture::empty(&[]);
        if let Some((key, value)) = settings {
            fixture.plain(&fixture.repo, &["config", key, value]);
        }
        write(&fixture.repo.join(".gitattributes"), attributes);
        fixture.plain(&fixture.repo, &["add", "-A"]);
        fixture.plain(&fixture.repo, &["commit", "-q", "-m", "attributes"]);
        let files = [("dir/x.bat", "rem\nend\n"), ("x.id", "$Id$\n"), ("x.sh", "a\n"), ("y", "b\n"), ("z", "c\n")];
        for (path, content) in files {
            write(&fixture.repo.join(path), content);
        }
        // What a checkout would have, so that it is what is committed, too.
        fixture.plain(&fixture.repo, &["-c", "core.safecrlf=false", "add", "--renormalize", "."]);
        let _ = fixture.try_plain(&fixture.repo, &["-c", "core.safecrlf=false", "add", "-A"]);
        fixture.plain(&fixture.repo, &["commit", "-q", "-m", "files"]);
        let (job, calls) = prepare(&fixture, &fixture.counting(), Isolation::Private);
        let called = ["checkout-index", "read-tree"].map(|name| calls.iter().any(|call| call == name));
        assert_eq!(called, expected, "{attributes:?} {settings:?}");
        agrees_with_git(&fixture, &job);
        assert_eq!(changes(&fixture.capture(&job).change_set), [""; 0], "{attributes:?} {settings:?}");
    }
}

#[test]
fn the_checkout_lends_only_what_the_base_holds() {
    let fixture =
        Fixture::with(&[("same", "1\n"), ("edited", "1\n"), ("link", "1\n"), ("pipe", "1\n"), ("d/x", "1\n")]);
    fs::write(fixture.repo.join("edited"), "2\n").unwrap();
    let outside = fixture.root.join("outside");
    write(&outside.join("x"), "2\n");
    fs::remove_file(fixture.repo.join("link")).unwrap();
    symlink(outside.join("x"), fixture.repo.join("link")).unwrap();
    fs::remove_file(fixture.repo.join("pipe")).unwrap();
    rustix::fs::mknodat(CWD, fixture.repo.join("pipe"), FileType::Fifo, Mode::RWXU, 0).unwrap();
    fs::remove_dir_all(fixture.repo.join("d")).unwrap();
    symlink(&outside, fixture.repo.join("d")).unwrap();

    let job = fixture.job();
    for path in ["same", "edited", "link", "pipe", "d/x"] {
        assert_eq!(fs::read_to_string(job.tree().join(path)).unwrap(), "1\n", "{path}");
        assert!(!job.tree().join(path).is_symlink(), "{path}");
    }
    assert_eq!(fixture.plain(job.tree(), &["status", "--porcelain"]), "");
}

#[test]
fn a_checkout_that_is_another_costs_nothing_but_time() {
    let many: Vec<(String, String)> = (0..400).map(|n| (format!("d{}/{n}", n % 9), format!("{n}\n"))).collect();
    let fixture = Fixture::with(&many.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect::<Vec<_>>());
    for (path, text) in &many {
        fs::write(fixture.repo.join(path), text.replace('\n', "?")).unwrap();
    }
    let job = fixture.job();
    for (path, text) in &many {
        assert_eq!(fs::read_to_string(job.tree().join(path)).unwrap(), *text, "{path}");
    }
}

#[test]
fn git_trusts_the_index_and_still_sees_a_change_in_the_same_moment() {
    let fixture = Fixture::with(&[("a", "1\n"), ("b/c", "1\n")]);
    let job = fixture.job();
    let index = fs::metadata(job.places.git().join("index")).unwrap().mtime();
    for path in ["a", "b/c"] {
        let written = fs::metadata(job.tree().join(path)).unwrap().mtime();
        assert!(written < index, "{path} would be read by every status");
        assert!(written > index - 600, "{path} is not of now");
    }
    job.write("a", "2\n");
    assert_eq!(fixture.plain(job.tree(), &["status", "--porcelain"]), " M a");
    assert_eq!(changes(&fixture.capture(&job).change_set), ["M a"]);
}

#[test]
fn what_git_refuses_is_refused_and_nothing_leaves_the_tree() {
    let fixture = Fixture::with(&[("a", "1\n")]);
    let outside = fixture.root.join("outside");
    fs::create_dir(&outside).unwrap();
    write(&fixture.root.join("target"), outside.to_str().unwrap());
    let object = |path: &str, kind: &str| {
        let path = fixture.root.join(path).display().to_string();
        fixture.plain(&fixture.repo, &["hash-object", "-w", "--literally", "-t", kind, &path])
    };
    let raw = |id: &str| (0..20).map(|at| u8::from_str_radix(&id[2 * at..2 * at + 2], 16).unwrap()).collect::<Vec<_>>();
    let link = raw(&object("target", "blob"));
    let file = raw(&object("repo/a", "blob"));
    let tree = |entries: &[(&str, &[u8])]| {
        let bytes: Vec<u8> = entries.iter().flat_map(|(name, id)| [name.as_bytes(), b"\0", id].concat()).collect();
        fs::write(fixture.root.join("tree"), bytes).unwrap();
        raw(&object("tree", "tree"))
    };
    let inner = tree(&[("100644 x", &file)]);
    for (hostile, refused) in [
        (tree(&[("40000 .git", &inner)]), true),
        (tree(&[("40000 .GIT", &inner)]), true),
        (tree(&[("40000 git~1", &inner)]), true),
        (tree(&[("120000 .gitmodules", &link)]), true),
        (tree(&[("40000 ..", &inner)]), true),
        (tree(&[("40000 a\\.git", &inner)]), true),
        (tree(&[("120000 d", &link), ("40000 d", &inner)]), false),
    ] {
        let id: String = hostile.iter().map(|byte| format!("{byte:02x}")).collect();
        let commit = fixture.plain(&fixture.repo, &["commit-tree", "-m", "hostile", &id]);
        fixture.plain(&fixture.repo, &["update-ref", "HEAD", &commit]);
        let Ok(examined) = fixture.examine(&fixture.repo) else { continue };
        let places = fixture.places();
        let prepared = fixture.git.prepare(&places, &examined.repository, &examined.head, Isolation::Private);
        assert!(prepared.is_err() || !refused, "{:?}", String::from_utf8_lossy(&hostile));
        assert_eq!(fs::read_dir(&outside).unwrap().count(), 0, "{id}");
    }
}
