//! T-02 … T-11: code that a job leaves for whoever looks at, applies or clears away its work.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use pactify_core::job::Isolation;
use pactify_engine::git::{Git, GitError};
use pactify_engine::process::EnvPolicy;

use super::world::{BOTH, Trap, configure, plain_with, plain_worktree, whole_life};
use super::{Fires, capturing, measured};
use crate::covered::covered;
use crate::support::{Fixture, absolute, changes, env, notes, write};

const OUTSIDE: &str = "engine/tests/git/outside.rs";

pub(super) mod fsmonitor {
    use super::*;

    /// Long before anybody approves of anything: on a status of the tree.
    pub(in crate::threats) fn fires() -> Fires {
        let fixture = Fixture::with(&[("a", "1\n")]);
        let trap = Trap::new(&fixture);
        let tree = plain_worktree(&fixture);
        fixture.plain(&tree, &["config", "core.fsmonitor", &trap.program]);
        fixture.plain(&tree, &["status", "--porcelain"]);
        trap.fired("a status");
        Fires::Here
    }

    pub(in crate::threats) fn fails() {
        for isolation in BOTH {
            let fixture = Fixture::with(&[("a", "1\n")]);
            let trap = Trap::new(&fixture);
            let landed = fixture.land_in(&fixture.repo, isolation, |job| {
                job.write("a", "2\n");
                configure(&fixture, job, &[("core.fsmonitor", &trap.program)]);
            });
            for _ in 0..3 {
                landed.shown();
                fixture.examine(&fixture.repo).unwrap();
                landed.jobs().worktree(landed.job.places.job()).unwrap();
                trap.silent("looking");
            }
        }
    }
}

pub(super) mod drivers {
    use super::*;

    const KEYS: [&str; 7] = [
        "filter.evil.clean",
        "filter.evil.smudge",
        "filter.evil.process",
        "diff.evil.textconv",
        "diff.evil.command",
        "diff.external",
        "merge.evil.driver",
    ];

    /// A repository with two branches that conflict, and attributes that name the drivers.
    fn world(attributes: &str) -> (Fixture, Trap) {
        let fixture = Fixture::with(&[("a", "1\n"), (".gitattributes", attributes)]);
        fixture.plain(&fixture.repo, &["switch", "-qc", "other"]);
        fixture.commit(&[("a", "other\n")]);
        fixture.plain(&fixture.repo, &["switch", "-q", "main"]);
        fixture.commit(&[("a", "main\n")]);
        let trap = Trap::new(&fixture);
        (fixture, trap)
    }

    fn provoke(fixture: &Fixture, key: &str) {
        write(&fixture.repo.join("a"), "edited\n");
        let command: &[&str] = match key {
            "filter.evil.clean" => &["add", "a"],
            "filter.evil.smudge" | "filter.evil.process" => &["checkout", "-f", "other"],
            "merge.evil.driver" => &["merge", "-q", "other"],
            _ => &["diff"],
        };
        if key.starts_with("merge") {
            fixture.plain(&fixture.repo, &["checkout", "-q", "a"]);
        }
        // A program that is no driver makes git fail; it ran all the same.
        fixture.try_plain(&fixture.repo, command);
    }

    pub(in crate::threats) fn fires() -> Fires {
        for key in KEYS {
            let (fixture, trap) = world("* filter=evil diff=evil merge=evil\n");
            fixture.plain(&fixture.repo, &["config", key, &trap.program]);
            provoke(&fixture, key);
            trap.fired(key);
        }
        // Attributes that no file of the tree holds.
        let (fixture, trap) = world("\n");
        fixture.plain(&fixture.repo, &["config", "filter.evil.clean", &trap.program]);
        write(&fixture.repo.join(".git/info/attributes"), "* filter=evil\n");
        provoke(&fixture, "filter.evil.clean");
        trap.fired("info/attributes");
        Fires::Here
    }

    pub(in crate::threats) fn fails() {
        for isolation in BOTH {
            let (fixture, trap) = world("* filter=evil diff=evil merge=evil\n");
            let arm = || {
                KEYS.iter().for_each(|key| drop(fixture.plain(&fixture.repo, &["config", key, &trap.program])));
                write(&fixture.repo.join(".git/info/attributes"), "* filter=evil diff=evil merge=evil\n");
                write(&fixture.root.join("home/.config/git/attributes"), "* filter=evil\n");
            };
            let seen = whole_life(&fixture, isolation, |job| {
                job.write("a", "2\n");
                job.write("sub/.gitattributes", "* filter=evil\n");
                configure(&fixture, job, &KEYS.map(|key| (key, trap.program.as_str())));
                configure(&fixture, job, &[("attr.tree", job.base.tree.as_str())]);
                arm();
            });
            assert_eq!(seen, ["M a", "A sub/.gitattributes"]);
            trap.silent("a job's life");
        }
    }
}

pub(super) mod hooks {
    use super::*;

    const HOOKS: [&str; 3] = measured::hooks::HOOKS;

    pub(in crate::threats) fn fires() -> Fires {
        for hook in HOOKS {
            let fixture = Fixture::with(&[("a", "1\n")]);
            let trap = Trap::new(&fixture);
            let tree = plain_worktree(&fixture);
            trap.at(&tree.join("hooks").join(hook));
            fixture.plain(&tree, &["config", "core.hooksPath", tree.join("hooks").to_str().unwrap()]);
            let other = fixture.root.join("other").display().to_string();
            fixture.plain(&fixture.repo, &["worktree", "add", "--detach", &other]);
            trap.fired(hook);
        }
        Fires::Here
    }

    pub(in crate::threats) fn fails() {
        for isolation in BOTH {
            let fixture = Fixture::with(&[("a", "1\n")]);
            let trap = Trap::new(&fixture);
            let seen = whole_life(&fixture, isolation, |job| {
                job.write("a", "2\n");
                let hooks = fixture.root.join("hooks");
                HOOKS.iter().for_each(|hook| trap.at(&hooks.join(hook)));
                configure(&fixture, job, &[("core.hooksPath", hooks.to_str().unwrap())]);
            });
            assert_eq!(seen, ["M a"]);
            trap.silent("a job's life");
            assert_eq!(whole_life(&fixture, isolation, |job| job.write("b", "3\n")), ["A b"]);
            trap.silent("the next job's life");
        }
        measured::configured_hooks::fails();
    }
}

pub(super) mod environment {
    use super::*;

    fn variables<'a>(program: &'a str, other: &'a str) -> Vec<(&'a str, &'a str)> {
        vec![
            ("GIT_CONFIG_COUNT", "1"),
            ("GIT_CONFIG_KEY_0", "core.fsmonitor"),
            ("GIT_CONFIG_VALUE_0", program),
            ("GIT_CONFIG_PARAMETERS", "'core.fsmonitor'='/no/such/program'"),
            ("GIT_EXTERNAL_DIFF", program),
            ("GIT_SSH_COMMAND", program),
            ("GIT_DIR", other),
            ("GIT_OBJECT_DIRECTORY", other),
            ("GIT_INDEX_FILE", other),
            ("GIT_WORK_TREE", other),
            ("GIT_EXEC_PATH", other),
            ("GIT_PAGER", program),
        ]
    }

    pub(in crate::threats) fn fires() -> Fires {
        let fixture = Fixture::with(&[("a", "1\n")]);
        let trap = Trap::new(&fixture);
        write(&fixture.repo.join("a"), "2\n");
        let command = format!("{} </dev/null", trap.program);
        let (all, ssh) = (variables(&trap.program, ""), [("GIT_SSH_COMMAND", command.as_str())]);
        for (variables, command) in
            [(&all[..3], &["status"][..]), (&all[4..5], &["diff"]), (&ssh, &["ls-remote", "ssh://nowhere.invalid/x"])]
        {
            plain_with(&fixture, &fixture.repo, variables, command);
            trap.fired(command[0]);
        }
        let other = fixture.root.join("other");
        fs::create_dir(&other).unwrap();
        fixture.plain(&other, &["init", "-q"]);
        let other = other.join(".git").display().to_string();
        let answer = plain_with(&fixture, &fixture.repo, &[("GIT_DIR", &other)], &["rev-parse", "--absolute-git-dir"]);
        assert_eq!(String::from_utf8_lossy(&answer.stdout).trim(), other, "GIT_DIR redirects everything");
        Fires::Here
    }

    pub(in crate::threats) fn fails() {
        for isolation in BOTH {
            let mut fixture = Fixture::with(&[("a", "1\n")]);
            let trap = Trap::new(&fixture);
            let other = fixture.root.join("other").display().to_string();
            let redirected = env(&fixture.root, &variables(&trap.program, &other));
            fixture.git = Git::find(&redirected).unwrap();
            let mut landed = fixture.land_in(&fixture.repo, isolation, |job| job.write("a", "2\n"));
            landed.env = redirected;
            landed.shown();
            landed.exported();
            landed.apply().unwrap();
            landed.discard().unwrap();
            trap.silent("a job's life");
            assert!(!Path::new(&other).exists());

            let everything: Vec<&str> = variables("", "").iter().map(|(name, _)| *name).collect();
            for policy in [EnvPolicy::git(), EnvPolicy::harness(everything.clone())] {
                everything.iter().for_each(|name| assert!(!policy.lets_through(name.as_ref()), "{name} passes"));
            }
        }
    }
}

pub(super) mod later {
    use super::*;

    /// Keys, and what of the person's makes them run.
    const KEYS: [(&str, &[&str]); 5] = [
        ("alias.st", &["st"]),
        ("core.editor", &["commit", "--allow-empty"]),
        ("core.sshCommand", &["ls-remote", "ssh://nowhere.invalid/x"]),
        ("remote.origin.uploadpack", &["fetch", "origin"]),
        ("gpg.program", &["commit", "--allow-empty", "-S", "-m", "x"]),
    ];

    fn value(key: &str, program: &str) -> String {
        match key {
            "alias.st" => format!("!{program} </dev/null"),
            // Started without a shell.
            "gpg.program" => program.to_owned(),
            // What waits for an answer would wait for ever.
            _ => format!("{program} </dev/null"),
        }
    }

    fn world() -> (Fixture, Trap) {
        let fixture = Fixture::with(&[("a", "1\n")]);
        fixture.plain(&fixture.root, &["clone", "-q", "--bare", "repo", "origin"]);
        fixture.plain(&fixture.repo, &["remote", "add", "origin", "../origin"]);
        let trap = Trap::new(&fixture);
        (fixture, trap)
    }

    pub(in crate::threats) fn fires() -> Fires {
        for (key, command) in KEYS {
            let (fixture, trap) = world();
            let tree = plain_worktree(&fixture);
            fixture.plain(&tree, &["config", key, &value(key, &trap.program)]);
            fixture.try_plain(&fixture.repo, command);
            trap.fired(key);
        }
        Fires::Here
    }

    /// From a tree with a git directory of its own, none of it reaches the person; and nothing of ours obeys it.
    pub(in crate::threats) fn fails() {
        for (key, command) in KEYS {
            for isolation in BOTH {
                let (fixture, trap) = world();
                let config = fixture.repo.join(".git/config");
                let before = fs::read(&config).unwrap();
                let seen = whole_life(&fixture, isolation, |job| {
                    job.write("a", "2\n");
                    fixture.plain(job.tree(), &["config", key, &value(key, &trap.program)]);
                });
                assert_eq!(seen, ["M a"]);
                trap.silent(key);
                if isolation == Isolation::Private {
                    assert_eq!(fs::read(&config).unwrap(), before);
                    fixture.try_plain(&fixture.repo, command);
                    trap.silent(&format!("{key}, and the person goes on"));
                }
            }
        }
        // What a linked tree shares is watched.
        covered(OUTSIDE, "configuration_and_hooks_that_run_programs_are_named_first_and_removed");
        covered("../tests/tests/e2e/outside.rs", "danger_outside_is_told_stands_in_the_way_and_is_put_back");
    }
}

pub(super) mod sibling {
    use super::*;

    /// What any other way of starting git would do.
    pub(in crate::threats) fn fires() -> Fires {
        fsmonitor::fires()
    }

    /// The sources hold one way of starting programs, and one of starting git.
    pub(in crate::threats) fn fails() {
        let mut sources = Vec::new();
        let server = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
        for member in ["core", "engine", "lsp"] {
            read_all(&server.join(member).join("src"), &mut sources);
        }
        assert!(sources.len() > 150, "{} sources", sources.len());
        let holding = |what: &str| -> Vec<&str> {
            let of = sources.iter().filter(|(path, text)| !path.contains("test") && text.contains(what));
            of.map(|(path, _)| path.rsplit("/server/").next().unwrap()).collect()
        };
        assert_eq!(holding("find_executable(\"git\")"), ["engine/src/git.rs"]);
        assert_eq!(holding("git.program"), ["engine/src/jobs/doctor.rs"], "nobody but who tells where it is");
        // The last opens the editor that the person's own environment names, before there is any job.
        let starters = holding("Command::new(");
        let expected = ["engine/src/process/spawn.rs", "engine/src/store/fixture.rs", "lsp/src/cli/brief.rs"];
        assert_eq!(starters, expected, "programs are started elsewhere, too");
        assert_eq!(holding("Repository::discover"), [""; 0]);
    }

    fn read_all(directory: &Path, sources: &mut Vec<(String, String)>) {
        let mut entries: Vec<_> = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path()).collect();
        entries.sort();
        for path in entries {
            if path.is_dir() {
                read_all(&path, sources);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                sources.push((path.display().to_string(), fs::read_to_string(&path).unwrap()));
            }
        }
    }
}

pub(super) mod discovery {
    use super::*;

    /// A repository whose configuration runs the trap; its git directory.
    fn other(fixture: &Fixture, trap: &Trap) -> String {
        let other = fixture.root.join("other");
        fs::create_dir(&other).unwrap();
        fixture.plain(&other, &["init", "-q"]);
        fixture.plain(&other, &["config", "core.fsmonitor", &trap.program]);
        other.join(".git").display().to_string()
    }

    pub(in crate::threats) fn fires() -> Fires {
        let fixture = Fixture::with(&[("a", "1\n")]);
        let trap = Trap::new(&fixture);
        let (tree, other) = (plain_worktree(&fixture), other(&fixture, &trap));
        let own = fixture.plain(&tree, &["rev-parse", "--absolute-git-dir"]);
        write(&Path::new(&own).join("commondir"), &format!("{other}\n"));
        fixture.try_plain(&tree, &["status"]);
        trap.fired("a commondir that leads elsewhere");
        write(&tree.join(".git"), &format!("gitdir: {other}\n"));
        fixture.plain(&tree, &["status"]);
        trap.fired("a .git file that leads elsewhere");
        Fires::Here
    }

    pub(in crate::threats) fn fails() {
        for isolation in BOTH {
            for planted in ["commondir", ".git", "no .git"] {
                let fixture = Fixture::with(&[("a", "1\n")]);
                let trap = Trap::new(&fixture);
                let other = other(&fixture, &trap);
                let landed = fixture.land_in(&fixture.repo, isolation, |job| {
                    job.write("a", "2\n");
                    let own = fixture.plain(job.tree(), &["rev-parse", "--absolute-git-dir"]);
                    match planted {
                        "commondir" => write(&Path::new(&own).join("commondir"), &format!("{other}\n")),
                        ".git" => write(&job.tree().join(".git"), &format!("gitdir: {other}\n")),
                        _ => fs::remove_file(job.tree().join(".git")).unwrap(),
                    }
                });
                assert_eq!(changes(&landed.captured.change_set), ["M a"], "{planted}");
                let told = notes(&landed.captured.change_set);
                assert_eq!(told.contains("gitFileRewritten"), planted != "commondir", "{planted}: {told}");
                landed.shown();
                landed.exported();
                landed.apply().unwrap();
                landed.discard().unwrap();
                trap.silent(planted);
            }
        }
        // A tree of ours is never taken for somebody's repository.
        let fixture = Fixture::with(&[("a", "1\n")]);
        let refused = fixture.examine(fixture.job().tree());
        assert!(matches!(refused, Err(GitError::InsideJob { .. })), "{refused:?}");
    }
}

pub(super) mod worktree {
    use super::*;

    pub(in crate::threats) fn fires() -> Fires {
        capturing::elsewhere::fires();
        let fixture = Fixture::with(&[("a", "1\n")]);
        let victim = capturing::elsewhere::victim(&fixture);
        let tree = plain_worktree(&fixture);
        fixture.plain(&tree, &["config", "core.worktree", victim.to_str().unwrap()]);
        fixture.plain(&fixture.repo, &["checkout", "-f", "HEAD", "--", ":/"]);
        assert_eq!(fs::read_to_string(victim.join("a")).unwrap(), "1\n", "the victim is checked out over");
        Fires::Here
    }

    pub(in crate::threats) fn fails() {
        for isolation in BOTH {
            // Beside the checkout, above it, and in another repository.
            for to in ["victim", "", "other"] {
                let fixture = Fixture::with(&[("a", "1\n")]);
                capturing::elsewhere::victim(&fixture);
                fixture.plain(&fixture.root, &["init", "-q", "other"]);
                let to = fixture.root.join(to);
                write(&to.join("a"), "mine\n");
                let seen = whole_life(&fixture, isolation, |job| {
                    job.write("a", "2\n");
                    configure(&fixture, job, &[("core.worktree", to.to_str().unwrap())]);
                });
                assert_eq!(seen, ["M a"]);
                assert_eq!(fs::read_to_string(to.join("a")).unwrap(), "mine\n");
                assert_eq!(fs::read_to_string(fixture.repo.join("a")).unwrap(), "2\n");
                // The next job would start, and end, in the wrong place.
                let refused = fixture.examine(&fixture.repo);
                assert!(matches!(refused, Err(GitError::Redirected { .. })), "{}: {refused:?}", to.display());
            }
        }
    }
}

pub(super) mod denial {
    use super::*;

    type Step = fn(&Fixture);
    const STEPS: [(&str, Step); 4] = [
        ("core.bare", |fixture| drop(fixture.plain(&fixture.repo, &["config", "core.bare", "true"]))),
        ("HEAD", |fixture| write(&fixture.repo.join(".git/HEAD"), "nonsense\n")),
        ("the branch", |fixture| write(&fixture.repo.join(".git/refs/heads/main"), "nonsense\n")),
        ("registrations", |fixture| drop(fs::remove_dir_all(fixture.repo.join(".git/worktrees")))),
    ];

    pub(in crate::threats) fn fires() -> Fires {
        for (what, step) in STEPS {
            let fixture = Fixture::with(&[("a", "1\n")]);
            let tree = plain_worktree(&fixture);
            step(&fixture);
            let place = if what == "registrations" { &tree } else { &fixture.repo };
            // A broken branch is still a branch to be born.
            let usable = fixture.try_plain(place, &["log", "-1"]).status.success()
                && fixture.try_plain(place, &["status"]).status.success();
            assert!(!usable, "{what} harms nobody");
        }
        Fires::Here
    }

    /// What was captured can still be seen, taken and given up.
    pub(in crate::threats) fn fails() {
        for (what, step) in STEPS {
            for isolation in BOTH {
                let fixture = Fixture::with(&[("a", "1\n")]);
                let landed = fixture.land_in(&fixture.repo, isolation, |job| {
                    job.write("a", "2\n");
                    step(&fixture);
                });
                assert_eq!(changes(&landed.captured.change_set), ["M a"], "{what}");
                landed.shown();
                landed.apply().unwrap_or_else(|failure| panic!("{what}: {failure:?}"));
                assert_eq!(fs::read_to_string(fixture.repo.join("a")).unwrap(), "2\n");
                if what == "HEAD" {
                    // A job has a ref there, which cannot be taken back as long as git sees no repository.
                    let failure = landed.discard().unwrap_err();
                    assert!(failure.message.contains(fixture.repo.to_str().unwrap()), "{failure:?}");
                    write(&fixture.repo.join(".git/HEAD"), "ref: refs/heads/main\n");
                }
                landed.discard().unwrap_or_else(|failure| panic!("{what}: {failure:?}"));
            }
        }
        for repaired in [
            "a_repository_that_was_made_bare_works_again",
            "refs_that_were_broken_rewritten_or_deleted_come_back",
            "a_worktree_s_registration_comes_back_with_its_index",
        ] {
            covered(OUTSIDE, repaired);
        }
    }
}

pub(super) mod planted {
    use super::*;

    const NAMES: [&str; 5] = ["git", "sh", "node", "cat", "pactify"];

    pub(in crate::threats) fn fires() -> Fires {
        let fixture = Fixture::with(&[("a", "1\n")]);
        let trap = Trap::new(&fixture);
        trap.at(&fixture.repo.join("git"));
        let path = [("PATH", ".:/usr/local/bin:/usr/bin:/bin")];
        shell(&fixture.repo, &path, "git status");
        trap.fired("git in the current directory");
        Fires::Here
    }

    #[expect(clippy::disallowed_methods, reason = "the naive program that looks into the current directory")]
    fn shell(directory: &Path, variables: &[(&str, &str)], script: &str) {
        let mut command = std::process::Command::new("/bin/sh");
        command.args(["-c", script]).current_dir(directory).envs(variables.iter().copied()).status().unwrap();
    }

    pub(in crate::threats) fn fails() {
        for path in
            [".:/usr/local/bin:/usr/bin:/bin", ":/usr/local/bin:/usr/bin:/bin", "bin:/usr/local/bin:/usr/bin:/bin"]
        {
            let mut fixture = Fixture::with(&[("a", "1\n")]);
            let trap = Trap::new(&fixture);
            let poor = env(&fixture.root, &[("PATH", path)]);
            fixture.git = Git::find(&poor).unwrap();
            assert!(fixture.git.program().as_path().is_absolute());
            let plant = |place: &Path| {
                for name in NAMES {
                    trap.at(&place.join(name));
                    trap.at(&place.join("bin").join(name));
                }
            };
            plant(&fixture.repo);
            let mut landed = fixture.land(|job| plant(job.tree()));
            landed.env = poor;
            landed.shown();
            landed.apply().unwrap();
            landed.discard().unwrap();
            trap.silent(path);
            assert_eq!(fs::metadata(fixture.repo.join("git")).unwrap().permissions().mode() & 0o777, 0o755);
        }
        let nowhere = absolute(&Fixture::without_repository().root);
        assert!(Git::find(&env(nowhere.as_path(), &[("PATH", ".")])).is_err());
    }
}
