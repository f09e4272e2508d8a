//! M8 … M13: what hides, moves or stops a look at a tree, and a capture that none of it concerns.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::time::{Duration, Instant};

use pactify_core::failure::ConflictKind;
use rustix::fs::{CWD, FileType, Mode, OFlags};

use super::Fires;
use super::measured::hooks::HOOKS;
use super::world::{BOTH, Trap, all_of, newer_git, obstacles, plain_worktree, whole_life};
use crate::support::{Fixture, Job, changes, notes, write};

pub(super) mod elsewhere {
    use super::*;

    /// What a job puts into its own registration.
    pub(in crate::threats) fn plant(fixture: &Fixture, tree: &Path, victim: &Path, trap: &Trap) {
        fixture.plain(&fixture.repo, &["config", "extensions.worktreeConfig", "true"]);
        let own = fixture.plain(tree, &["rev-parse", "--absolute-git-dir"]);
        let text = format!("[core]\n\tworktree = {}\n\tfsmonitor = {}\n", victim.display(), trap.program);
        write(&Path::new(&own).join("config.worktree"), &text);
    }

    pub(in crate::threats) fn victim(fixture: &Fixture) -> std::path::PathBuf {
        let victim = fixture.root.join("victim");
        write(&victim.join("a"), "mine\n");
        victim
    }

    pub(in crate::threats) fn fires() -> Fires {
        let fixture = Fixture::with(&[("a", "1\n")]);
        let trap = Trap::new(&fixture);
        let (tree, victim) = (plain_worktree(&fixture), victim(&fixture));
        plant(&fixture, &tree, &victim, &trap);
        assert_eq!(fixture.plain(&tree, &["rev-parse", "--show-toplevel"]), victim.display().to_string());
        fixture.plain(&tree, &["status"]);
        trap.fired("core.fsmonitor of config.worktree");
        fixture.plain(&tree, &["checkout", "-f", "HEAD", "--", ":/"]);
        assert_eq!(fs::read_to_string(victim.join("a")).unwrap(), "1\n", "the victim is checked out over");
        Fires::Here
    }

    pub(in crate::threats) fn fails() {
        for isolation in BOTH {
            let fixture = Fixture::with(&[("a", "1\n")]);
            let trap = Trap::new(&fixture);
            let victim = victim(&fixture);
            let seen = whole_life(&fixture, isolation, |job| {
                job.write("a", "2\n");
                plant(&fixture, job.tree(), &victim, &trap);
            });
            assert_eq!(seen, ["M a"]);
            trap.silent("a job's life");
            assert_eq!(fs::read_to_string(victim.join("a")).unwrap(), "mine\n");
            assert_eq!(fs::read_to_string(fixture.repo.join("a")).unwrap(), "2\n");
        }
    }
}

pub(super) mod hidden {
    use super::*;

    /// Hides three edits from a status.
    pub(in crate::threats) fn plant(fixture: &Fixture, tree: &Path) {
        fixture.plain(tree, &["update-index", "--assume-unchanged", "a"]);
        fixture.plain(tree, &["update-index", "--skip-worktree", "b"]);
        let exclude = fixture.plain(tree, &["rev-parse", "--path-format=absolute", "--git-path", "info/exclude"]);
        write(Path::new(&exclude), "new\n");
        for path in ["a", "b", "new"] {
            write(&tree.join(path), "planted\n");
        }
    }

    pub(in crate::threats) fn fires() -> Fires {
        let fixture = Fixture::with(&[("a", "1\n"), ("b", "1\n")]);
        let tree = plain_worktree(&fixture);
        plant(&fixture, &tree);
        for command in [&["status", "--porcelain"][..], &["diff"], &["diff", "HEAD"]] {
            assert_eq!(fixture.plain(&tree, command), "", "nothing is hidden from {command:?} at all");
        }
        Fires::Here
    }

    pub(in crate::threats) fn fails() {
        for isolation in BOTH {
            let fixture = Fixture::with(&[("a", "1\n"), ("b", "1\n")]);
            assert_eq!(whole_life(&fixture, isolation, |job| plant(&fixture, job.tree())), ["M a", "M b", "A new"]);
            assert_eq!(fs::read_to_string(fixture.repo.join("new")).unwrap(), "planted\n");
        }
    }
}

pub(super) mod pipes {
    use super::*;

    pub(in crate::threats) fn pipe(path: &Path) {
        let _ = fs::remove_file(path);
        rustix::fs::mknodat(CWD, path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
    }

    #[expect(clippy::disallowed_methods, reason = "the naive programs that a pipe blocks")]
    pub(in crate::threats) fn fires() -> Fires {
        let fixture = Fixture::with(&[("a", "1\n")]);
        pipe(&fixture.repo.join("a"));
        assert_eq!(fixture.plain(&fixture.repo, &["status", "--porcelain"]), " M a", "no word of a pipe");
        assert_eq!(fixture.try_plain(&fixture.repo, &["add", "-A"]).status.code(), Some(128));
        for command in [&["cp", "a", "copy"][..], &["git", "hash-object", "--no-filters", "a"]] {
            let mut child =
                std::process::Command::new(command[0]).args(&command[1..]).current_dir(&fixture.repo).spawn().unwrap();
            // Whoever can open the pipe for writing without waiting has a reader, and that one gets nothing.
            let deadline = Instant::now() + Duration::from_secs(60);
            let writer = loop {
                match rustix::fs::open(fixture.repo.join("a"), OFlags::WRONLY | OFlags::NONBLOCK, Mode::empty()) {
                    Ok(writer) => break writer,
                    Err(_) => assert!(Instant::now() < deadline, "{command:?} does not read the pipe"),
                }
                std::thread::yield_now();
            };
            assert!(child.try_wait().unwrap().is_none(), "{command:?} does not wait");
            drop(writer);
            child.wait().unwrap();
        }
        Fires::Here
    }

    pub(in crate::threats) fn fails() {
        for isolation in BOTH {
            let fixture = Fixture::with(&[("a", "1\n"), ("b", "1\n")]);
            let landed = fixture.land_in(&fixture.repo, isolation, |job| {
                pipe(&job.tree().join("a"));
                pipe(&job.tree().join("pipe"));
                drop(std::os::unix::net::UnixListener::bind(job.tree().join("sock")).unwrap());
                job.write("b", "2\n");
            });
            assert_eq!(changes(&landed.captured.change_set), ["D a", "M b"]);
            let special =
                |path, what| format!(r#"{{"kind":"specialFile","path":{{"path":"{path}"}},"what":"{what}"}}"#);
            let expected = [special("a", "pipe"), special("pipe", "pipe"), special("sock", "socket")];
            assert_eq!(notes(&landed.captured.change_set), expected.join("\n"));
            landed.shown();
            landed.apply().unwrap();
            landed.discard().unwrap();
            assert!(!fixture.repo.join("pipe").exists() && !fixture.repo.join("sock").exists());
        }
    }
}

pub(super) mod nested {
    use super::*;

    pub(in crate::threats) fn plant(fixture: &Fixture, tree: &Path) {
        for (path, text) in [("src/a", "2\n"), ("src/b", "new\n"), ("vendor/x/one", "1\n"), ("vendor/x/sub/two", "2\n")]
        {
            write(&tree.join(path), text);
        }
        for nested in ["vendor/x", "src", "empty"] {
            fs::create_dir_all(tree.join(nested)).unwrap();
            fixture.plain(&tree.join(nested), &["init", "-q"]);
        }
    }

    pub(in crate::threats) fn fires() -> Fires {
        let fixture = Fixture::with(&[("src/a", "1\n")]);
        plant(&fixture, &fixture.repo);
        assert!(!fixture.try_plain(&fixture.repo, &["add", "-A"]).status.success(), "git is not stopped at all");
        fs::remove_dir_all(fixture.repo.join("empty")).unwrap();
        for nested in ["src", "vendor/x"] {
            fixture.plain(&fixture.repo.join(nested), &["commit", "-q", "--allow-empty", "-m", "x"]);
        }
        fixture.plain(&fixture.repo, &["add", "-A", "vendor"]);
        let staged = fixture.plain(&fixture.repo, &["diff", "--cached", "--name-only"]);
        assert_eq!(staged, "vendor/x", "one entry, and no word of what is in it");
        Fires::Here
    }

    pub(in crate::threats) fn fails() {
        for isolation in BOTH {
            let fixture = Fixture::with(&[("src/a", "1\n")]);
            let landed = fixture.land_in(&fixture.repo, isolation, |job| plant(&fixture, job.tree()));
            assert_eq!(changes(&landed.captured.change_set), ["M src/a", "A src/b"]);
            let nested =
                |path, files| format!(r#"{{"kind":"nestedRepository","path":{{"path":"{path}"}},"files":{files}}}"#);
            let expected = [nested("empty", 0), nested("src", 0), nested("vendor/x", 2)];
            assert_eq!(notes(&landed.captured.change_set), expected.join("\n"));
            landed.shown();
            landed.apply().unwrap();
            landed.discard().unwrap();
            assert!(!fixture.repo.join("vendor").exists() && !fixture.repo.join("src/.git").exists());
        }
    }
}

pub(super) mod patches {
    use super::*;

    fn adds(path: &str) -> String {
        format!("diff --git a/{path} b/{path}\nnew file mode 100644\n--- /dev/null\n+++ b/{path}\n@@ -0,0 +1 @@\n+x\n")
    }

    fn links(path: &str, target: &str) -> String {
        let content = format!("@@ -0,0 +1 @@\n+{target}\n\\ No newline at end of file\n");
        format!("diff --git a/{path} b/{path}\nnew file mode 120000\n--- /dev/null\n+++ b/{path}\n{content}")
    }

    /// git's own applier withstands all of it: where it stands, no harm can be shown.
    pub(in crate::threats) fn fires() -> Fires {
        let fixture = Fixture::with(&[("a", "1\n")]);
        let outside = fixture.root.join("outside");
        fs::create_dir(&outside).unwrap();
        symlink(&outside, fixture.repo.join("parent")).unwrap();
        let patch = fixture.root.join("patch");
        for text in [
            adds(".git/hooks/x"),
            adds(".GIT/x"),
            adds("git~1/x"),
            adds("../outside/x"),
            adds("parent/x"),
            links("link", "../outside") + &adds("link/x"),
        ] {
            write(&patch, &text);
            let refused =
                fixture.try_plain(&fixture.repo, &["-c", "core.protectNTFS=true", "apply", patch.to_str().unwrap()]);
            assert!(!refused.status.success(), "{text}");
        }
        assert_eq!(fs::read_dir(&outside).unwrap().count(), 0);
        Fires::CannotHere("git apply refuses each of these patches, and so do we")
    }

    pub(in crate::threats) fn fails() {
        let fixture = Fixture::with(&[("dir/a", "1\n"), ("leaf", "1\n"), ("hard", "1\n")]);
        let outside = fixture.root.join("outside");
        for name in ["a", "leaf"] {
            write(&outside.join(name), "1\n");
        }
        let edit = |job: &Job| ["dir/a", "dir/b", "leaf"].iter().for_each(|path| job.write(path, "2\n"));
        let landed = fixture.land(edit);
        for (name, target) in [("dir", outside.clone()), ("leaf", outside.join("leaf"))] {
            let path = fixture.repo.join(name);
            if path.is_dir() {
                fs::remove_dir_all(&path).unwrap()
            } else {
                fs::remove_file(&path).unwrap()
            }
            symlink(target, path).unwrap();
        }
        let mut expected = all_of(ConflictKind::DirectoryInTheWay, &["dir/a", "dir/b"]);
        expected.extend(all_of(ConflictKind::ContentDiffers, &["leaf"]));
        assert_eq!(obstacles(landed.apply()), expected);
        assert_eq!(fs::read_to_string(outside.join("a")).unwrap(), "1\n");
        assert_eq!(fs::read_to_string(outside.join("leaf")).unwrap(), "1\n");
        assert!(!outside.join("b").exists());

        let landed = fixture.land(|job| job.write("hard", "2\n"));
        fs::hard_link(fixture.repo.join("hard"), outside.join("hard")).unwrap();
        landed.apply().unwrap();
        assert_eq!(fs::read_to_string(fixture.repo.join("hard")).unwrap(), "2\n");
        assert_eq!(fs::read_to_string(outside.join("hard")).unwrap(), "1\n");
    }
}

pub(super) mod private {
    use super::*;

    /// M1 … M5 and M9 at once.
    fn arm(fixture: &Fixture, place: &Path, trap: &Trap) {
        let mut keys: Vec<(String, &str)> =
            ["core.fsmonitor", "filter.evil.clean", "filter.evil.smudge", "filter.evil.process", "diff.external"]
                .map(|key| (key.to_owned(), trap.program.as_str()))
                .to_vec();
        keys.push(("diff.evil.textconv".into(), &trap.program));
        for event in HOOKS {
            keys.extend([
                (format!("hook.evil-{event}.command"), trap.program.as_str()),
                (format!("hook.evil-{event}.event"), event),
            ]);
        }
        for (key, value) in &keys {
            fixture.plain(place, &["config", key, value]);
        }
        for (what, text) in [("info/attributes", "* filter=evil diff=evil\n"), ("hooks/post-index-change", "")] {
            let path = fixture.plain(place, &["rev-parse", "--path-format=absolute", "--git-path", what]);
            if text.is_empty() { trap.at(Path::new(&path)) } else { write(Path::new(&path), text) }
        }
    }

    pub(in crate::threats) fn fires() -> Fires {
        let fixture = Fixture::with(&[("a", "1\n"), ("b", "1\n")]);
        let trap = Trap::new(&fixture);
        let tree = plain_worktree(&fixture);
        hidden::plant(&fixture, &tree);
        arm(&fixture, &tree, &trap);
        let quiet = ["-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false"];
        fixture.plain(&tree, &[&quiet[..], &["read-tree", "HEAD"]].concat());
        // The filter is none, and fails; it ran all the same.
        fixture.try_plain(&tree, &[&quiet[..], &["add", "-A"]].concat());
        trap.fired("filter.evil.process");
        Fires::Here
    }

    pub(in crate::threats) fn fails() {
        for (isolation, newer) in BOTH.into_iter().flat_map(|isolation| [(isolation, false), (isolation, true)]) {
            let mut fixture = Fixture::with(&[("a", "1\n"), ("b", "1\n")]);
            if let (Some(git), true) = (newer_git(&fixture), newer) {
                fixture.git = git;
            }
            let trap = Trap::new(&fixture);
            let landed = fixture.land_in(&fixture.repo, isolation, |job| {
                job.write(".gitattributes", "* filter=evil diff=evil\n");
                hidden::plant(&fixture, job.tree());
                for place in [job.tree(), &fixture.repo] {
                    arm(&fixture, place, &trap);
                }
                trap.ran();
            });
            assert_eq!(changes(&landed.captured.change_set), ["A .gitattributes", "M a", "M b", "A new"]);
            landed.shown();
            landed.exported();
            landed.apply().unwrap();
            landed.discard().unwrap();
            trap.silent(&format!("{isolation:?}, git {}", fixture.git.version()));
        }
    }
}
