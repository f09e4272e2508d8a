//! A snapshot looks at a checkout that others may have armed, or are writing to. Each payload first fires under plain
//! git.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::time::{Duration, Instant};

use pactify_engine::git::GitError;
use rustix::fs::{CWD, FileType, Mode, mknodat};

use crate::support::{Fixture, trap, write};

#[test]
fn nothing_that_the_repository_s_configuration_names_is_run() {
    let fixture = Fixture::with(&[("a", "1\n"), ("b", "1\n"), (".gitattributes", "")]);
    let mark = fixture.root.join("mark");
    let script = trap(&fixture.root.join("evil"), &mark);
    let hooks = ["post-index-change", "reference-transaction", "pre-commit", "post-checkout"];
    write(&fixture.repo.join("a"), "2\n");
    write(&fixture.repo.join("new"), "1\n");
    let dirty =
        || fs::File::options().write(true).open(fixture.repo.join("b")).unwrap().set_modified(std::time::UNIX_EPOCH);
    let set = |key: &str, value: &str| drop(fixture.plain(&fixture.repo, &["config", key, value]));
    let included = fixture.root.join("included");
    let worktree_config = fixture.repo.join(".git/config.worktree");
    let arm: [(&str, &dyn Fn()); 6] = [
        ("core.fsmonitor", &|| set("core.fsmonitor", &script)),
        ("include.path", &|| {
            write(&included, &format!("[core]\n\tfsmonitor = {script}\n"));
            set("include.path", included.to_str().unwrap());
        }),
        ("config.worktree", &|| {
            set("extensions.worktreeConfig", "true");
            write(&worktree_config, &format!("[core]\n\tfsmonitor = {script}\n"));
        }),
        ("filter of the tree", &|| {
            write(&fixture.repo.join(".gitattributes"), "* filter=evil\n");
            set("filter.evil.clean", &script);
            set("filter.evil.required", "true");
        }),
        ("filter of info/attributes", &|| {
            write(&fixture.repo.join(".git/info/attributes"), "* filter=evil\n");
            set("filter.evil.process", &script);
        }),
        ("hooks", &|| {
            for hook in hooks {
                trap(&fixture.repo.join(".git/hooks").join(hook), &mark);
            }
        }),
    ];
    for (name, arm) in arm {
        arm();
        dirty().unwrap();
        // What a person does; some payloads make it fail.
        fixture.try_plain(&fixture.repo, &["status"]);
        fixture.try_plain(&fixture.repo, &["update-ref", "refs/heads/other", "HEAD"]);
        assert!(mark.exists(), "{name} does not fire at all");
        fs::remove_file(&mark).unwrap();
        dirty().unwrap();
        let shot = fixture.snapshot(&[("b", "unsaved\n")]);
        assert!(!mark.exists(), "{name} was run");
        let files = fixture.base_files(&shot);
        assert_eq!((files["a"].as_str(), files["b"].as_str()), ("100644 2\n", "100644 unsaved\n"), "{name}");
        let job = fixture.begin(shot);
        fixture.capture(&job);
        assert!(!mark.exists(), "{name} was run later");
        for key in
            ["core.fsmonitor", "include.path", "filter.evil.clean", "filter.evil.process", "filter.evil.required"]
        {
            fixture.try_plain(&fixture.repo, &["config", "--unset", key]);
        }
        for path in [".git/info/attributes", ".git/config.worktree"] {
            let _ = fs::remove_file(fixture.repo.join(path));
        }
        let _ = fs::remove_file(&mark);
    }
}

/// Watches the names that are created, moved or removed in a directory.
struct Watch(std::os::fd::OwnedFd);

impl Watch {
    fn on(directory: &Path) -> Self {
        use rustix::fs::inotify;
        let watch = inotify::init(inotify::CreateFlags::NONBLOCK | inotify::CreateFlags::CLOEXEC).unwrap();
        let wanted = inotify::WatchFlags::CREATE
            | inotify::WatchFlags::MODIFY
            | inotify::WatchFlags::ATTRIB
            | inotify::WatchFlags::MOVED_TO
            | inotify::WatchFlags::DELETE;
        inotify::add_watch(&watch, directory, wanted).unwrap();
        Self(watch)
    }

    fn names(&self) -> Vec<String> {
        let mut buffer = [std::mem::MaybeUninit::uninit(); 4096];
        let mut reader = rustix::fs::inotify::Reader::new(&self.0, &mut buffer);
        let mut names = Vec::new();
        while let Ok(event) = reader.next() {
            names.extend(event.file_name().map(|name| name.to_string_lossy().into_owned()));
        }
        names
    }
}

#[test]
fn the_index_the_refs_and_the_stash_are_only_read() {
    let fixture = Fixture::with(&[("a", "1\n"), ("b", "1\n"), ("c", "1\n")]);
    write(&fixture.repo.join("a"), "stashed\n");
    fixture.plain(&fixture.repo, &["stash"]);
    write(&fixture.repo.join("b"), "staged\n");
    fixture.plain(&fixture.repo, &["add", "b"]);
    write(&fixture.repo.join("b"), "edited\n");
    write(&fixture.repo.join("d"), "new\n");
    // A status would refresh the index.
    fs::File::options().write(true).open(fixture.repo.join("c")).unwrap().set_modified(std::time::UNIX_EPOCH).unwrap();
    let belongings = || {
        let mut all = fixture.belongings();
        // libgit2 and git tell a collector that an object is wanted by touching it.
        let objects = fixture.repo.join(".git/objects");
        all.iter_mut().filter(|(path, _)| path.starts_with(&objects)).for_each(|(_, facts)| facts.clear());
        all
    };
    let watch = Watch::on(&fixture.repo.join(".git"));
    let before = belongings();
    fixture.snapshot(&[("a", "unsaved\n")]);
    assert_eq!(belongings(), before);
    assert_eq!(watch.names(), [""; 0]);

    fixture.plain(&fixture.repo, &["status"]);
    assert!(watch.names().contains(&"index.lock".to_owned()), "the watch sees a lock");
}

#[test]
fn what_is_no_file_is_never_opened_and_hides_nothing() {
    let fixture =
        Fixture::with(&[("a", "1\n"), ("pipe", "1\n"), ("socket", "1\n"), ("dir/b", "1\n"), ("linked/c", "1\n")]);
    let at = |path: &str| fixture.repo.join(path);
    let fifo = |path: &str| mknodat(CWD, at(path), FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
    for path in ["pipe", "socket"] {
        fs::remove_file(at(path)).unwrap();
    }
    fifo("pipe");
    fifo("dir/untracked pipe");
    let _listener = UnixListener::bind(at("socket")).unwrap();
    let outside = fixture.root.join("outside");
    write(&outside.join("c"), "a secret\n");
    fs::remove_dir_all(at("linked")).unwrap();
    symlink(&outside, at("linked")).unwrap();
    fixture.plain(&fixture.repo, &["init", "-q", "nested"]);
    write(&at("nested/x"), "theirs\n");
    fixture.plain(&fixture.repo, &["init", "-q", "dir/nested"]);
    write(&at("dir/nested/x"), "theirs\n");
    fixture.plain(&at("dir/nested"), &["commit", "-q", "--allow-empty", "-m", "x"]);
    write(&at("a"), "2\n");
    fs::hard_link(at("a"), at("hard")).unwrap();
    assert!(!fixture.try_plain(&fixture.repo, &["add", "-A"]).status.success(), "git cannot take it in at all");
    fixture.plain(&fixture.repo, &["reset", "-q"]);

    let begin = Instant::now();
    let shot = fixture.snapshot(&[]);
    assert!(begin.elapsed() < Duration::from_secs(120), "nothing is waited for");
    let files: Vec<String> =
        fixture.base_files(&shot).iter().map(|(path, what)| format!("{path}: {}", what.trim_end())).collect();
    let linked = format!("linked: 120000 {}", outside.display());
    assert_eq!(files, ["a: 100644 2", "dir/b: 100644 1", "hard: 100644 2", linked.as_str()]);
    assert_eq!(
        shot.notices[1..],
        [
            "2 tracked paths are missing in the job, because they are no files in the checkout: pipe, socket",
            "2 directories are left out, because they are repositories of their own: dir/nested, nested",
        ]
    );
}

#[test]
fn a_giant_is_left_out_unread() {
    let fixture = Fixture::with(&[("a", "1\n"), ("grown", "1\n")]);
    for (path, size) in [("giant", 2 << 30), ("grown", 65 << 20)] {
        fs::File::create(fixture.repo.join(path)).unwrap().set_len(size).unwrap();
    }
    write(&fixture.repo.join("a"), "2\n");
    let begin = Instant::now();
    let shot = fixture.snapshot(&[]);
    assert!(begin.elapsed() < Duration::from_secs(120), "it took {:?}", begin.elapsed());
    assert_eq!(
        shot.notices,
        [
            "the job starts from your uncommitted changes: 1 changed file",
            "2 changed files are left out, because they are too large (over 64 MiB each, or together): giant, grown",
        ]
    );
    assert_eq!(fixture.base_files(&shot)["grown"], "100644 1\n", "it is what HEAD has");
}

/// git, with a shell command before each call of one verb.
fn meddling(fixture: &Fixture, verb: &str, command: &str) -> pactify_engine::git::Git {
    let directory = fixture.root.join("meddling");
    let real = fixture.git.program();
    let script = format!("#!/bin/sh\ncase \" $* \" in *' {verb} '*) {command} ;; esac\nexec '{real}' \"$@\"\n");
    write(&directory.join("git"), &script);
    fs::set_permissions(directory.join("git"), fs::Permissions::from_mode(0o755)).unwrap();
    let path = format!("{}:/usr/local/bin:/usr/bin:/bin", directory.display());
    pactify_engine::git::Git::find(&crate::support::env(&fixture.root, &[("PATH", &path)])).unwrap()
}

#[test]
fn a_file_that_is_written_meanwhile_is_read_again() {
    let fixture = Fixture::with(&[("a", "1\n")]);
    write(&fixture.repo.join("a"), "2\n");
    let (file, once) = (fixture.repo.join("a"), fixture.root.join("once"));
    let (file, once) = (file.display(), once.display());
    let git = meddling(&fixture, "ls-tree", &format!("[ -e '{once}' ] || echo 'three' >'{file}'; touch '{once}'"));
    let shot = fixture.try_snapshot_in(&fixture.repo, &git, &[]).unwrap();
    assert_eq!(fixture.base_files(&shot)["a"], "100644 three\n");

    let git = meddling(&fixture, "ls-tree", &format!("echo more >>'{file}'"));
    let refused = fixture.try_snapshot_in(&fixture.repo, &git, &[]).unwrap_err();
    let text = pactify_core::Failure::from(refused);
    assert!(text.message.contains("a was written") || text.message.contains("a: it"), "{text:?}");
}

#[test]
fn a_checkout_that_moves_to_another_commit_meanwhile_is_never_mixed() {
    let fixture = Fixture::with(&[("a", "1\n"), ("b", "1\n")]);
    fixture.commit(&[("a", "2\n"), ("b", "2\n")]);
    write(&fixture.repo.join("c"), "mine\n");
    let (repo, once) = (fixture.repo.clone(), fixture.root.join("once"));
    let (real, repo, once) = (fixture.git.program(), repo.display(), once.display());
    let step = format!(
        "[ -e '{once}' ] || (unset GIT_DIR GIT_WORK_TREE GIT_INDEX_FILE GIT_COMMON_DIR; cd '{repo}'; '{real}' checkout -q HEAD~1); touch '{once}'"
    );
    let git = meddling(&fixture, "ls-tree", &step);
    let shot = fixture.try_snapshot_in(&fixture.repo, &git, &[]).unwrap();
    let files = fixture.base_files(&shot);
    assert_eq!((files["a"].as_str(), files["b"].as_str()), ("100644 1\n", "100644 1\n"));
    assert_eq!(files["c"], "100644 mine\n");
}

#[test]
fn a_checkout_that_cannot_be_read_is_named() {
    let fixture = Fixture::with(&[("a", "1\n")]);
    // Root may read everything: git's own words stand for a folder that it may not.
    let git =
        meddling(&fixture, "status", "echo \"warning: could not open directory 'closed/': Permission denied\" >&2");
    let refused = fixture.try_snapshot_in(&fixture.repo, &git, &[]).unwrap_err();
    assert!(matches!(refused, GitError::CheckoutUnreadable { .. }), "{refused:?}");
    assert!(refused.to_string().contains("closed/"), "{refused}");
}
