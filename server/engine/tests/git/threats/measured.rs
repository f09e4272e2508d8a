//! M1 … M13: what git was measured to do, and the same set-ups around a job of ours.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::time::{Duration, SystemTime};

use pactify_core::job::Isolation;

use super::Fires;
use super::world::{BOTH, Trap, configure, newer_git, plain_worktree, record, whole_life};
use crate::support::{Fixture, changes, notes, write};

pub(super) mod fsmonitor {
    use super::*;

    pub(in crate::threats) fn fires() -> Fires {
        let fixture = Fixture::with(&[("a", "1\n")]);
        let trap = Trap::new(&fixture);
        let tree = plain_worktree(&fixture);
        let included = fixture.root.join("included");
        write(&included, &format!("[core]\n\tfsmonitor = {}\n", trap.program));
        for (key, value) in [("core.fsmonitor", trap.program.as_str()), ("include.path", included.to_str().unwrap())] {
            fixture.plain(&tree, &["config", key, value]);
            fixture.plain(&fixture.repo, &["status"]);
            trap.fired(key);
            fixture.plain(&fixture.repo, &["-c", "core.fsmonitor=false", "status"]);
            trap.silent("switched off on the command line");
            fixture.plain(&tree, &["config", "--unset", key]);
        }
        Fires::Here
    }

    pub(in crate::threats) fn fails() {
        for isolation in BOTH {
            for include in [false, true] {
                let fixture = Fixture::with(&[("a", "1\n")]);
                let trap = Trap::new(&fixture);
                let included = fixture.root.join("included");
                write(&included, &format!("[core]\n\tfsmonitor = {}\n", trap.program));
                let key = match include {
                    false => ("core.fsmonitor", trap.program.as_str()),
                    true => ("include.path", included.to_str().unwrap()),
                };
                let seen = whole_life(&fixture, isolation, |job| {
                    job.write("a", "2\n");
                    configure(&fixture, job, &[key]);
                });
                assert_eq!(seen, ["M a"]);
                trap.silent("a job's life");
                // The next job starts in a repository that is armed already.
                fixture.plain(&fixture.repo, &["checkout", "-q", "."]);
                trap.ran();
                assert_eq!(whole_life(&fixture, isolation, |job| job.write("a", "3\n")), ["M a"]);
                trap.silent("the next job's life");
            }
        }
    }
}

pub(super) mod filters {
    use super::*;

    pub(in crate::threats) fn fires() -> Fires {
        let fixture = Fixture::with(&[("a", "1\n"), (".gitattributes", "* filter=evil\n")]);
        let trap = Trap::new(&fixture);
        fixture.plain(&fixture.repo, &["config", "filter.evil.clean", &trap.program]);
        let off = ["-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false"];
        let mut number = 2;
        let mut run = |options: &[&str], arguments: &[&str]| {
            write(&fixture.repo.join("a"), &format!("{number}\n"));
            number += 1;
            fixture.plain(&fixture.repo, &[&off, options, arguments].concat());
        };
        for arguments in [&["status"][..], &["diff", "--stat"], &["add", "a"]] {
            run(&[], arguments);
            trap.fired(arguments[0]);
        }
        fixture.plain(&fixture.repo, &["commit", "-qam", "x"]);
        trap.ran();
        let empty = fixture.plain(&fixture.repo, &["hash-object", "-t", "tree", "/dev/null"]);
        let none = format!("--attr-source={empty}");
        run(&[&none], &["add", "a"]);
        trap.silent("attributes of an empty tree");
        write(&fixture.repo.join(".git/info/attributes"), "* filter=evil\n");
        run(&[&none], &["add", "a"]);
        trap.fired("info/attributes");
        Fires::Here
    }

    pub(in crate::threats) fn fails() {
        for isolation in BOTH {
            let fixture = Fixture::with(&[("a", "1\n"), (".gitattributes", "* filter=evil\n")]);
            let trap = Trap::new(&fixture);
            let keys = [("filter.evil.clean", trap.program.as_str()), ("filter.evil.smudge", &trap.program)];
            let arm = || {
                keys.iter().for_each(|(key, value)| drop(fixture.plain(&fixture.repo, &["config", key, value])));
                write(&fixture.repo.join(".git/info/attributes"), "* filter=evil\n");
            };
            let seen = whole_life(&fixture, isolation, |job| {
                job.write("a", "2\n");
                job.write(".gitattributes", "* filter=evil diff=evil merge=evil\n");
                configure(&fixture, job, &keys);
                arm();
            });
            assert_eq!(seen, ["M .gitattributes", "M a"]);
            trap.silent("a job's life");
            assert_eq!(whole_life(&fixture, isolation, |job| job.write("b", "3\n")), ["A b"]);
            trap.silent("the life of a job whose tree is populated with the filter armed");
            let notices = fixture.job_in(&fixture.repo, isolation).prepared.notices;
            assert!(notices.iter().any(|notice| notice.id == "contentFilters"), "{notices:?}");
        }
    }
}

pub(super) mod diffs {
    use super::*;

    const KEYS: [&str; 3] = ["diff.external", "diff.evil.textconv", "diff.evil.command"];

    pub(in crate::threats) fn fires() -> Fires {
        let fixture = Fixture::with(&[("a", "1\n"), (".gitattributes", "* diff=evil\n")]);
        let trap = Trap::new(&fixture);
        write(&fixture.repo.join("a"), "2\n");
        let diff = |options: &[&str]| drop(fixture.plain(&fixture.repo, options));
        for key in KEYS {
            fixture.plain(&fixture.repo, &["config", key, &trap.program]);
            diff(&["diff"]);
            trap.fired(key);
            diff(&["diff", "--no-ext-diff"]);
            assert_eq!(trap.ran(), key.ends_with("textconv"), "{key} with --no-ext-diff");
            for quiet in [&["diff", "--no-ext-diff", "--no-textconv"][..], &["diff-index", "-p", "HEAD"]] {
                // Where an external program is configured, plumbing runs it too unless it is told not to.
                let quiet = if quiet[0] == "diff" { quiet.to_vec() } else { [quiet, &["--no-ext-diff"]].concat() };
                diff(&quiet);
                trap.silent(&format!("{quiet:?} with {key}"));
            }
            fixture.plain(&fixture.repo, &["config", "--unset", key]);
        }
        Fires::Here
    }

    pub(in crate::threats) fn fails() {
        for (isolation, key) in BOTH.into_iter().flat_map(|isolation| KEYS.map(|key| (isolation, key))) {
            let fixture = Fixture::with(&[("a", "1\n"), (".gitattributes", "* diff=evil\n")]);
            let trap = Trap::new(&fixture);
            let seen = whole_life(&fixture, isolation, |job| {
                job.write("a", "2\n");
                configure(&fixture, job, &[(key, &trap.program)]);
            });
            assert_eq!(seen, ["M a"]);
            trap.silent(key);
        }
    }
}

pub(super) mod hooks {
    use super::*;

    pub(in crate::threats) const HOOKS: [&str; 3] = ["post-checkout", "post-index-change", "reference-transaction"];

    pub(in crate::threats) fn fires() -> Fires {
        for hook in HOOKS {
            let fixture = Fixture::with(&[("a", "1\n")]);
            let trap = Trap::new(&fixture);
            let (old, new) = (plain_worktree(&fixture), fixture.root.join("new"));
            // A look writes the index, and so tells of it, where a file's times have moved.
            for file in [fixture.repo.join("a"), old.join("a")] {
                let moved = SystemTime::UNIX_EPOCH + Duration::from_secs(1);
                fs::File::options().write(true).open(file).unwrap().set_modified(moved).unwrap();
            }
            trap.at(&fixture.repo.join(".git/hooks").join(hook));
            for (command, runs) in [
                (&["status"][..], hook == "post-index-change"),
                (&["update-ref", "refs/x", "HEAD"], hook == "reference-transaction"),
                (&["worktree", "add", "--detach", new.to_str().unwrap()], true),
                (&["worktree", "remove", old.to_str().unwrap()], hook == "post-index-change"),
            ] {
                fixture.plain(&fixture.repo, command);
                assert_eq!(trap.ran(), runs, "{command:?} and {hook}");
            }
            let patch = fixture.root.join("patch");
            write(&patch, "--- a/a\n+++ b/a\n@@ -1 +1 @@\n-1\n+2\n");
            fixture.plain(&fixture.repo, &["apply", patch.to_str().unwrap()]);
            trap.silent("git apply");
        }
        Fires::Here
    }

    pub(in crate::threats) fn fails() {
        for isolation in BOTH {
            let fixture = Fixture::with(&[("a", "1\n")]);
            let trap = Trap::new(&fixture);
            let seen = whole_life(&fixture, isolation, |job| {
                job.write("a", "2\n");
                for place in [job.tree(), &fixture.repo] {
                    let hooks = fixture.plain(place, &["rev-parse", "--path-format=absolute", "--git-path", "hooks"]);
                    HOOKS.iter().for_each(|hook| trap.at(&Path::new(&hooks).join(hook)));
                }
            });
            assert_eq!(seen, ["M a"]);
            trap.silent("a job's life");
            assert_eq!(whole_life(&fixture, isolation, |job| job.write("b", "3\n")), ["A b"]);
            trap.silent("the next job's life");
        }
    }
}

pub(super) mod configured_hooks {
    use super::*;

    fn arm(fixture: &Fixture, place: &Path, program: &str) {
        for event in hooks::HOOKS {
            for (key, value) in [("command", program), ("event", event)] {
                fixture.plain(place, &["config", &format!("hook.evil-{event}.{key}"), value]);
            }
        }
    }

    pub(in crate::threats) fn fires() -> Fires {
        let mut fixture = Fixture::with(&[("a", "1\n")]);
        let Some(git) = newer_git(&fixture) else {
            return Fires::CannotHere("needs git 2.54: name one in PACTIFY_TEST_NEWER_GIT");
        };
        fixture.git = git;
        let trap = Trap::new(&fixture);
        arm(&fixture, &fixture.repo, &trap.program);
        let update = ["update-ref", "refs/x", "HEAD"];
        fixture.plain(&fixture.repo, &[&["-c", "core.hooksPath=/dev/null"], &update[..]].concat());
        trap.fired("a configured hook");
        fixture
            .plain(&fixture.repo, &["-c", "hook.reference-transaction.enabled=false", "update-ref", "refs/y", "HEAD"]);
        trap.silent("its event is disabled");
        Fires::Here
    }

    pub(in crate::threats) fn fails() {
        for isolation in BOTH {
            let mut fixture = Fixture::with(&[("a", "1\n")]);
            if let Some(git) = newer_git(&fixture) {
                fixture.git = git;
            }
            let trap = Trap::new(&fixture);
            arm(&fixture, &fixture.repo, &trap.program);
            let seen = whole_life(&fixture, isolation, |job| {
                job.write("a", "2\n");
                arm(&fixture, job.tree(), &trap.program);
            });
            assert_eq!(seen, ["M a"]);
            trap.silent("a job's life");
        }
        every_call_disables_every_event();
    }

    /// What git is told, whichever git it is.
    fn every_call_disables_every_event() {
        let mut fixture = Fixture::with(&[("a", "1\n")]);
        let log = record(&mut fixture);
        let job = fixture.job_in(&fixture.repo, Isolation::Linked);
        job.write("a", "2\n");
        fixture.capture(&job);
        fixture.git.release(&job.places, &job.repository).unwrap();
        let calls = fs::read_to_string(log).unwrap();
        let ours: Vec<&str> = calls.lines().filter(|call| call.contains("--literal-pathspecs")).collect();
        assert!(ours.len() > 10, "{calls}");
        for call in ours {
            assert!(call.contains("-c core.hooksPath=/dev/null "), "{call}");
            for event in [
                "post-checkout",
                "post-index-change",
                "reference-transaction",
                "pre-auto-gc",
                "pre-commit",
                "post-commit",
                "post-merge",
                "post-rewrite",
                "fsmonitor-watchman",
            ] {
                assert!(call.contains(&format!("-c hook.{event}.enabled=false ")), "{event}: {call}");
            }
        }
    }
}

pub(super) mod redirect {
    use super::*;

    fn other(fixture: &Fixture, trap: &Trap) -> String {
        let other = fixture.root.join("other");
        fs::create_dir(&other).unwrap();
        fixture.plain(&other, &["init", "-q"]);
        fixture.plain(&other, &["config", "core.fsmonitor", &trap.program]);
        format!("gitdir: {}\n", other.join(".git").display())
    }

    pub(in crate::threats) fn fires() -> Fires {
        let fixture = Fixture::with(&[("a", "1\n")]);
        let trap = Trap::new(&fixture);
        let tree = plain_worktree(&fixture);
        let own = fixture.plain(&tree, &["rev-parse", "--absolute-git-dir"]);
        write(&tree.join(".git"), &other(&fixture, &trap));
        fixture.plain(&tree, &["status"]);
        trap.fired("the redirection");
        let explicit = [&format!("--git-dir={own}"), &format!("--work-tree={}", tree.display())];
        fixture.plain(&tree, &[explicit[0].as_str(), explicit[1], "status"]);
        trap.silent("named directories");
        let refused = fixture.try_plain(&fixture.repo, &["worktree", "remove", tree.to_str().unwrap()]);
        assert!(!refused.status.success() && tree.join("a").exists());
        Fires::Here
    }

    pub(in crate::threats) fn fails() {
        for isolation in BOTH {
            let fixture = Fixture::with(&[("a", "1\n")]);
            let trap = Trap::new(&fixture);
            let landed = fixture.land_in(&fixture.repo, isolation, |job| {
                job.write("a", "2\n");
                write(&job.tree().join(".git"), &other(&fixture, &trap));
            });
            assert_eq!(changes(&landed.captured.change_set), ["M a"]);
            assert_eq!(notes(&landed.captured.change_set), r#"{"kind":"gitFileRewritten"}"#);
            landed.shown();
            landed.apply().unwrap();
            landed.discard().unwrap();
            trap.silent("a job's life");
        }
    }
}

pub(super) mod emptied {
    use super::*;

    pub(in crate::threats) fn fires() -> Fires {
        for (copied, force) in [(true, true), (false, true), (true, false)] {
            let fixture = Fixture::with(&[("a", "1\n")]);
            let tree = plain_worktree(&fixture);
            let victim = lure(&fixture, &tree, copied);
            let force: &[&str] = if force { &["--force"] } else { &[] };
            let remove = [&["worktree", "remove"], force, &[tree.to_str().unwrap()]].concat();
            assert!(!fixture.try_plain(&fixture.repo, &remove).status.success());
            let emptied = !victim.join("precious").exists();
            assert_eq!(emptied, copied && !force.is_empty(), "a copied file: {copied}, {force:?}");
        }
        Fires::Here
    }

    pub(in crate::threats) fn fails() {
        for isolation in BOTH {
            let fixture = Fixture::with(&[("a", "1\n")]);
            let landed = fixture.land_in(&fixture.repo, isolation, |job| job.write("a", "2\n"));
            let victim = lure(&fixture, landed.job.tree(), true);
            let refused = landed.discard().unwrap_err();
            assert!(refused.message.contains("not the directory that was made"), "{refused:?}");
            assert!(victim.join("precious").exists());
        }
    }

    /// Puts a link to a directory of the person where the tree was.
    pub(in crate::threats) fn lure(fixture: &Fixture, tree: &Path, copied: bool) -> std::path::PathBuf {
        let victim = fixture.root.join("victim");
        write(&victim.join("precious"), "all my work\n");
        if copied {
            fs::copy(tree.join(".git"), victim.join(".git")).unwrap();
        }
        fs::rename(tree, tree.with_extension("away")).unwrap();
        symlink(&victim, tree).unwrap();
        victim
    }
}
