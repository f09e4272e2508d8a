//! What changes in the person's git directory while a job runs: named, weighed, and put back on request.
//!
//! The job is played by commands that run where a harness without a sandbox could run them.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;

use pactify_core::AttemptNo;
use pactify_core::fingerprint::{SharedState, Weight, differences};
use pactify_core::job::{Isolation, JobSpec};
use pactify_engine::fingerprint::{Outside, Verdict, Watch};
use pactify_engine::job_dir::JobDir;
use pactify_engine::store::Store;
use rustix::fs::{FileType, Mode};

use crate::support::{Fixture, Job, absolute, new_id, spec, write};

/// A job of the store whose surroundings are watched.
struct Watched<'a> {
    fixture: &'a Fixture,
    directory: JobDir,
    spec: JobSpec,
    before: SharedState,
}

impl<'a> Watched<'a> {
    fn begin(fixture: &'a Fixture) -> Self {
        Self::begin_in(fixture, &fixture.repo)
    }

    fn begin_in(fixture: &'a Fixture, folder: &Path) -> Self {
        let store = Store::open(&fixture.store).unwrap();
        let examined = fixture.examine(folder).unwrap();
        let spec = spec(new_id(), Isolation::Private, examined.repository, examined.head);
        let (directory, _lock) = store.create_job(&spec).unwrap();
        let jobs = fixture.store.join("jobs");
        let (before, _) = Watch::of(&fixture.git, &directory, &spec, &jobs).unwrap().begin(AttemptNo::FIRST).unwrap();
        assert!(before.gaps.is_empty(), "{:?}", before.gaps);
        Self { fixture, directory, spec, before }
    }

    fn with<T>(&self, work: impl FnOnce(&Watch<'_>) -> T) -> T {
        let jobs = self.fixture.store.join("jobs");
        work(&Watch::of(&self.fixture.git, &self.directory, &self.spec, &jobs).unwrap())
    }

    fn end(&self) -> Option<Outside> {
        self.with(|watch| watch.end(AttemptNo::FIRST, &self.before)).unwrap()
    }

    /// What changed, as `weight place: what`, with a `+` where it can be put back.
    fn changes(&self) -> Vec<String> {
        let changes = self.end().map(|outside| outside.changes).unwrap_or_default();
        let sign = |restorable| if restorable { "+" } else { "" };
        let line = |weight, place, what, restorable| format!("{weight:?}{} {place}: {what}", sign(restorable));
        changes.into_iter().map(|change| line(change.weight, change.place, change.what, change.restorable)).collect()
    }

    /// Puts back all that is more than ordinary; returns what was refused.
    fn restore(&self, outside: &Outside) -> Vec<String> {
        let wanted = outside.changes.iter().filter(|change| change.restorable && change.weight != Weight::Ordinary);
        let indices: Vec<usize> =
            wanted.map(|change| change.id.split_once('-').unwrap().1.parse::<usize>().unwrap() - 1).collect();
        let restored =
            self.with(|watch| watch.restore(AttemptNo::FIRST, &outside.before, &outside.after, &indices)).unwrap();
        assert_eq!(restored.len(), indices.len());
        let refused = restored.into_iter().filter_map(|restored| match restored.verdict {
            Verdict::Refused(why) => Some(why),
            Verdict::PutBack(_) | Verdict::Already => None,
        });
        refused.collect()
    }

    /// How the repository differs now from what it was before the job, but for ordinary changes.
    fn left(&self) -> Vec<String> {
        let now = self.with(|watch| watch.begin(AttemptNo::FIRST.next())).unwrap().0;
        differences(&self.before, &now).iter().map(|difference| format!("{difference:?}")).collect()
    }
}

/// Does `work` while a job runs, expects these changes, puts them back, and expects nothing to be left of them.
fn check(fixture: &Fixture, work: impl FnOnce(), expected: &[&str]) {
    let watched = Watched::begin(fixture);
    work();
    assert_eq!(watched.changes(), expected);
    let outside = watched.end().unwrap();
    assert_eq!(watched.restore(&outside), Vec::<String>::new());
    assert_eq!(watched.left(), Vec::<String>::new());
    assert_eq!(watched.restore(&outside), Vec::<String>::new(), "a second time changes nothing");
}

fn repository() -> Fixture {
    Fixture::with(&[("a.txt", "one\n")])
}

fn linked(fixture: &Fixture) -> Job {
    fixture.job_in(&fixture.repo, Isolation::Linked)
}

fn hook(path: &Path) {
    write(path, "#!/bin/sh\nexit 1\n");
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}

#[test]
fn a_repository_that_was_made_bare_works_again() {
    let fixture = repository();
    let job = linked(&fixture);
    let init = || {
        let git_dir = fixture.repo.join(".git/worktrees").join(job.tree().file_name().unwrap());
        assert!(git_dir.is_dir());
        let script = format!("GIT_DIR='{}' exec git init -q", git_dir.display());
        let output = fixture.try_plain(&fixture.repo, &["-c", &format!("alias.x=!{script}"), "x"]);
        assert!(output.status.success(), "{output:?}");
        let status = fixture.try_plain(&fixture.repo, &["status"]);
        assert!(!status.status.success(), "the attack works: {status:?}");
    };
    check(&fixture, init, &["Dangerous+ config: core.bare: is true now"]);
    fixture.plain(&fixture.repo, &["status"]);
}

#[test]
fn the_person_s_stash_comes_back() {
    let fixture = repository();
    for text in ["two\n", "three\n"] {
        write(&fixture.repo.join("a.txt"), text);
        fixture.plain(&fixture.repo, &["stash", "push", "-q", "-m", text.trim()]);
    }
    let list = fixture.plain(&fixture.repo, &["stash", "list"]);
    let work = || {
        // What an agent does that believes it has a stash of its own.
        fixture.plain(&fixture.repo, &["stash", "pop", "-q"]);
        fixture.plain(&fixture.repo, &["checkout", "-q", "."]);
        fixture.plain(&fixture.repo, &["stash", "drop", "-q"]);
    };
    check(&fixture, work, &["Notable+ stash: lost 2 entries"]);
    assert_eq!(fixture.plain(&fixture.repo, &["stash", "list"]), list);

    let pop = || drop(fixture.plain(&fixture.repo, &["stash", "drop", "-q"]));
    check(&fixture, pop, &["Notable+ stash: lost 1 entries"]);
    assert_eq!(fixture.plain(&fixture.repo, &["stash", "list"]), list);
}

#[test]
fn configuration_and_hooks_that_run_programs_are_named_first_and_removed() {
    let fixture = repository();
    let job = linked(&fixture);
    let config = fs::read(fixture.repo.join(".git/config")).unwrap();
    fixture.plain(&fixture.repo, &["config", "alias.st", "status"]);
    let work = || {
        for (key, value) in
            [("core.hooksPath", ".husky/_"), ("filter.x.clean", "evil"), ("alias.st", "!evil"), ("x.y", "z")]
        {
            fixture.plain(job.tree(), &["config", key, value]);
        }
        fixture.plain(job.tree(), &["config", "--add", "alias.st", "!more"]);
        hook(&fixture.repo.join(".git/hooks/pre-commit"));
        write(&fixture.repo.join(".git/info/attributes"), "* filter=x\n");
        write(&fixture.repo.join(".git/info/exclude"), "hidden\n");
    };
    check(
        &fixture,
        work,
        &[
            "Dangerous+ config: alias.st: is !evil, !more now",
            "Dangerous+ config: core.hookspath: was set to .husky/_",
            "Dangerous+ config: filter.x.clean: was set to evil",
            "Dangerous+ hooks/pre-commit: is a new hook, which git will run",
            "Dangerous+ info/attributes: is new",
            "Notable+ config: x.y: was set to z",
            "Notable+ info/exclude: has another content",
        ],
    );
    assert!(!fixture.repo.join(".git/hooks/pre-commit").exists());
    assert_eq!(fixture.plain(&fixture.repo, &["config", "--get-all", "alias.st"]), "status");
    fixture.plain(&fixture.repo, &["config", "--unset", "alias.st"]);
    let text = String::from_utf8(fs::read(fixture.repo.join(".git/config")).unwrap()).unwrap();
    assert!(text.starts_with(std::str::from_utf8(&config).unwrap()), "what the person wrote is as it was: {text}");
}

#[test]
fn what_the_person_set_meanwhile_stays() {
    let fixture = repository();
    let watched = Watched::begin(&fixture);
    fixture.plain(&fixture.repo, &["config", "core.fsmonitor", "/tmp/evil"]);
    let outside = watched.end().unwrap();
    fixture.plain(&fixture.repo, &["config", "user.nickname", "Ada"]);
    assert_eq!(watched.restore(&outside), Vec::<String>::new());
    let get = |key: &str| fixture.try_plain(&fixture.repo, &["config", "--local", key]);
    assert!(!get("core.fsmonitor").status.success());
    assert!(get("user.nickname").status.success());
}

#[test]
fn what_is_put_back_stays_as_private_as_it_was() {
    let fixture = repository();
    let (config, edited) = (fixture.repo.join(".git/config"), fixture.repo.join(".git/hooks/pre-commit"));
    hook(&edited);
    for (path, mode) in [(&config, 0o600), (&edited, 0o700)] {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    }
    let watched = Watched::begin(&fixture);
    fixture.plain(&fixture.repo, &["config", "core.fsmonitor", "/tmp/evil"]);
    write(&edited, "evil\n");
    fs::set_permissions(&edited, fs::Permissions::from_mode(0o600)).unwrap();
    assert_eq!(watched.restore(&watched.end().unwrap()), Vec::<String>::new());
    for (path, mode) in [(&config, 0o600), (&edited, 0o700)] {
        assert_eq!(fs::metadata(path).unwrap().permissions().mode() & 0o777, mode, "{path:?}");
    }
}

#[test]
fn what_was_changed_again_or_is_locked_is_left_alone() {
    let fixture = repository();
    let git = fixture.repo.join(".git");
    let watched = Watched::begin(&fixture);
    fixture.plain(&fixture.repo, &["config", "core.fsmonitor", "/tmp/evil"]);
    hook(&git.join("hooks/pre-commit"));
    let outside = watched.end().unwrap();
    assert_eq!(outside.changes.len(), 2);

    write(&git.join("config.lock"), "");
    write(&git.join("hooks/pre-commit"), "mine\n");
    let refused = watched.restore(&outside);
    assert_eq!(refused.len(), 2, "{refused:?}");
    assert!(refused[0].contains("config.lock"), "{refused:?}");
    assert!(refused[1].contains("changed again"), "{refused:?}");
    assert_eq!(fs::read_to_string(git.join("hooks/pre-commit")).unwrap(), "mine\n");
    assert!(git.join("config.lock").exists() && !git.join("hooks/pre-commit.lock").exists());

    fs::remove_file(git.join("config.lock")).unwrap();
    fixture.plain(&fixture.repo, &["config", "core.fsmonitor", "true"]);
    assert_eq!(watched.restore(&outside).len(), 2);
    assert_eq!(fixture.plain(&fixture.repo, &["config", "core.fsmonitor"]), "true");
}

#[test]
fn a_worktree_s_registration_comes_back_with_its_index() {
    let fixture = repository();
    let other = fixture.root.join("other");
    fixture.plain(&fixture.repo, &["worktree", "add", "-q", "-b", "topic", other.to_str().unwrap()]);
    write(&other.join("staged"), "x\n");
    fixture.plain(&other, &["add", "staged"]);
    let status = fixture.plain(&other, &["status", "--porcelain"]);
    let work = || {
        fs::remove_dir_all(fixture.repo.join(".git/worktrees")).unwrap();
        assert!(!fixture.try_plain(&other, &["status"]).status.success(), "the attack works");
    };
    check(&fixture, work, &["Notable+ worktrees/other: is gone: that worktree is no longer registered"]);
    assert_eq!(fixture.plain(&other, &["status", "--porcelain"]), status);
    assert_eq!(fixture.plain(&other, &["symbolic-ref", "HEAD"]), "refs/heads/topic");
}

#[test]
fn what_lies_where_a_registration_is_put_together_is_left_alone() {
    let fixture = repository();
    let (git, other, victim) =
        (fixture.repo.join(".git"), fixture.root.join("other"), fixture.root.join("victim/sparse-checkout"));
    fixture.plain(&fixture.repo, &["worktree", "add", "-q", "-b", "topic", other.to_str().unwrap()]);
    write(&git.join("worktrees/other/info/sparse-checkout"), "/*\n");
    write(&victim, "theirs\n");
    let watched = Watched::begin(&fixture);
    fs::remove_dir_all(git.join("worktrees")).unwrap();
    write(&git.join("pactify-restore/HEAD"), "theirs\n");
    symlink(victim.parent().unwrap(), git.join("pactify-restore/info")).unwrap();
    let outside = watched.end().unwrap();
    let refused = watched.restore(&outside);
    assert_eq!(refused, ["pactify-restore is in the way in the git directory: remove it first"]);
    assert_eq!(fs::read_to_string(&victim).unwrap(), "theirs\n");
    assert!(git.join("pactify-restore/HEAD").exists());
    fs::remove_dir_all(git.join("pactify-restore")).unwrap();
    assert_eq!(watched.restore(&outside), Vec::<String>::new());
    assert_eq!(fs::read_to_string(git.join("worktrees/other/info/sparse-checkout")).unwrap(), "/*\n");
}

#[test]
fn the_person_s_own_work_is_ordinary() {
    let fixture = repository();
    fixture.plain(&fixture.repo, &["branch", "side"]);
    let watched = Watched::begin(&fixture);
    fixture.commit(&[("b.txt", "two\n")]);
    fixture.plain(&fixture.repo, &["commit", "-q", "--allow-empty", "-m", "another"]);
    fixture.plain(&fixture.repo, &["tag", "v1"]);
    fixture.plain(&fixture.repo, &["checkout", "-q", "-b", "topic"]);
    fixture.plain(&fixture.repo, &["config", "branch.topic.description", "mine"]);
    fixture.plain(&fixture.repo, &["update-ref", "refs/remotes/origin/main", "HEAD"]);
    fixture.plain(&fixture.repo, &["pack-refs", "--all"]);
    fixture.plain(&fixture.repo, &["gc", "-q"]);
    let other = fixture.root.join("other");
    fixture.plain(&fixture.repo, &["worktree", "add", "-q", "--detach", other.to_str().unwrap()]);
    assert_eq!(
        watched.changes(),
        [
            "Ordinary worktrees/other: is a new worktree",
            "Ordinary+ config: branch.topic.description: was set to mine",
            "Ordinary HEAD: is at refs/heads/topic now",
            "Ordinary refs/heads/main: moved forward by 2 commits",
            "Ordinary refs/heads/topic: is new",
            "Ordinary refs/remotes/origin/main: is new",
            "Ordinary refs/tags/v1: is new",
        ]
    );
}

#[test]
fn what_pactify_does_itself_is_nothing() {
    let fixture = repository();
    let mine = linked(&fixture);
    let watched = Watched::begin(&fixture);
    let another = fixture.job();
    let one_more = linked(&fixture);
    fixture.plain(one_more.tree(), &["commit", "-q", "--allow-empty", "-m", "in the job's tree"]);
    fixture.plain(mine.tree(), &["commit", "-q", "--allow-empty", "-m", "in the job's tree"]);
    fixture.git.release(&another.places, &another.repository).unwrap();
    fixture.git.release(&mine.places, &mine.repository).unwrap();
    fixture.plain(&fixture.repo, &["status"]);
    assert_eq!(watched.changes(), Vec::<String>::new());
}

#[test]
fn refs_that_were_broken_rewritten_or_deleted_come_back() {
    let fixture = repository();
    fixture.commit(&[("a.txt", "two\n")]);
    for branch in ["gone", "back", "broken", "raw"] {
        fixture.plain(&fixture.repo, &["branch", branch]);
    }
    let first = fixture.plain(&fixture.repo, &["rev-parse", "HEAD~"]);
    let next = fixture.plain(&fixture.repo, &["commit-tree", "-p", "HEAD", "-m", "next", "HEAD^{tree}"]);
    let git = fixture.repo.join(".git");
    let work = || {
        fixture.plain(&fixture.repo, &["branch", "-q", "-D", "gone"]);
        fixture.plain(&fixture.repo, &["branch", "-q", "-f", "back", &first]);
        write(&git.join("refs/heads/broken"), "nonsense\n");
        write(&git.join("refs/heads/raw"), &format!("{next}\n"));
        write(&git.join("HEAD"), "ref: elsewhere\n");
        assert!(!fixture.try_plain(&fixture.repo, &["status"]).status.success(), "the attack works");
    };
    let (head, first) = (fixture.plain(&fixture.repo, &["rev-parse", "HEAD"]), first.clone());
    let (head, first) = (&head[..12], &first[..12]);
    check(
        &fixture,
        work,
        &[
            "Dangerous+ HEAD: names nothing that git understands",
            "Dangerous+ refs/heads/broken: names nothing that git understands",
            &format!("Notable+ refs/heads/back: was {head} and is {first} now"),
            &format!("Notable+ refs/heads/gone: is gone; it was {head}"),
            "Notable+ refs/heads/raw: moved forward by 1 commit that its log does not know",
        ],
    );
    let log = fixture.plain(&fixture.repo, &["reflog", "show", "back"]);
    assert!(log.contains("pactify: put back"), "the value that was replaced stays in the log: {log}");
}

#[test]
fn tables_of_refs_are_watched_too() {
    let fixture = Fixture::empty(&["--ref-format=reftable"]);
    fixture.commit(&[("a.txt", "one\n")]);
    fixture.plain(&fixture.repo, &["branch", "gone"]);
    write(&fixture.repo.join("a.txt"), "two\n");
    fixture.plain(&fixture.repo, &["stash", "push", "-q", "-m", "mine"]);
    let list = fixture.plain(&fixture.repo, &["stash", "list"]);
    let head = fixture.plain(&fixture.repo, &["rev-parse", "HEAD"]);
    let work = || {
        fixture.plain(&fixture.repo, &["branch", "-q", "-D", "gone"]);
        fixture.plain(&fixture.repo, &["stash", "drop", "-q"]);
    };
    let gone = format!("Notable+ refs/heads/gone: is gone; it was {}", &head[..12]);
    check(&fixture, work, &[&gone, "Notable+ stash: lost 1 entries"]);
    assert_eq!(fixture.plain(&fixture.repo, &["stash", "list"]), list);

    let watched = Watched::begin(&fixture);
    fixture.commit(&[("b.txt", "two\n")]);
    fixture.plain(&fixture.repo, &["checkout", "-q", "-b", "topic"]);
    fixture.plain(&fixture.repo, &["pack-refs", "--all"]);
    assert_eq!(
        watched.changes(),
        [
            "Ordinary HEAD: is at refs/heads/topic now",
            "Ordinary refs/heads/main: moved forward by 1 commit",
            "Ordinary refs/heads/topic: is new",
        ]
    );
}

#[test]
fn links_lead_nowhere_and_pipes_are_not_waited_for() {
    let fixture = repository();
    let git = fixture.repo.join(".git");
    hook(&git.join("hooks/pre-push"));
    let victim = fixture.root.join("victim");
    write(&victim.join("pre-push"), "theirs\n");
    let work = || {
        fs::remove_dir_all(git.join("hooks")).unwrap();
        symlink(&victim, git.join("hooks")).unwrap();
        fs::rename(git.join("config"), git.join("moved")).unwrap();
        symlink("moved", git.join("config")).unwrap();
    };
    let watched = Watched::begin(&fixture);
    work();
    let changes = watched.changes();
    assert_eq!(changes[0], "Dangerous+ config: is a symbolic link now", "{changes:#?}");
    assert!(changes.contains(&"Notable+ hooks/pre-push: is gone".to_owned()), "{changes:#?}");
    let outside = watched.end().unwrap();
    assert_eq!(watched.restore(&outside), Vec::<String>::new());
    assert_eq!(watched.left(), Vec::<String>::new());
    assert_eq!(fs::read_to_string(victim.join("pre-push")).unwrap(), "theirs\n");
    assert_eq!(fs::read_dir(&victim).unwrap().count(), 1, "nothing was written through the link");

    let watched = Watched::begin(&fixture);
    fs::remove_file(git.join("hooks/pre-push")).unwrap();
    rustix::fs::mknodat(rustix::fs::CWD, git.join("hooks/pre-push"), FileType::Fifo, Mode::RUSR, 0).unwrap();
    write(&git.join("packed-refs"), "nonsense\n");
    assert_eq!(
        watched.changes(),
        [
            "Notable hooks/pre-push: is a pipe now",
            "Notable packed-refs: could not be compared: git does not understand it"
        ]
    );
}

#[test]
fn what_is_too_large_or_too_deep_to_be_looked_at_is_dangerous() {
    let fixture = repository();
    let git = fixture.repo.join(".git");
    let watched = Watched::begin(&fixture);
    hook(&git.join("hooks/pre-commit"));
    for padded in ["hooks/pre-commit", "config"] {
        fs::OpenOptions::new().write(true).open(git.join(padded)).unwrap().set_len(70 << 20).unwrap();
    }
    let deep = format!("hooks{}", "/d".repeat(13));
    fs::create_dir_all(git.join(&deep)).unwrap();
    assert_eq!(
        watched.changes(),
        [
            "Dangerous config: could not be compared: it has more than 64 MiB".to_owned(),
            format!("Dangerous {deep}: could not be compared: it is too deep"),
            "Dangerous hooks/pre-commit: could not be compared: it has more than 64 MiB".to_owned(),
        ]
    );
}

#[test]
fn dangerous_changes_that_are_not_named_are_counted() {
    let fixture = repository();
    let watched = Watched::begin(&fixture);
    for number in 0..203 {
        hook(&fixture.repo.join(format!(".git/hooks/x{number}")));
    }
    let outside = watched.end().unwrap();
    assert_eq!((outside.changes.len(), outside.more, outside.more_dangerous), (200, 3, 3));
}

#[test]
fn more_than_is_read_is_dangerous_and_what_was_there_is_not_said_to_be_gone() {
    let fixture = repository();
    let hooks = fixture.repo.join(".git/hooks");
    hook(&hooks.join("z-mine"));
    let watched = Watched::begin(&fixture);
    for number in 0..5 {
        let file = fs::File::create(hooks.join(format!("a{number}"))).unwrap();
        file.set_len(60 << 20).unwrap();
    }
    hook(&hooks.join("pre-commit"));
    let changes = watched.changes();
    let dangerous: Vec<_> = changes.iter().filter(|change| change.starts_with("Dangerous")).collect();
    assert_eq!(dangerous.len(), changes.len() - 4, "{changes:#?}");
    assert!(changes.iter().any(|change| change.starts_with("Dangerous git directory: could not be")), "{changes:#?}");
    assert!(changes.iter().any(|change| change.contains("z-mine: could not be compared")), "{changes:#?}");
    assert!(!changes.iter().any(|change| change.contains("is gone")), "{changes:#?}");
}

#[test]
fn the_whole_directory_gone_is_not_unchanged() {
    let fixture = repository();
    let watched = Watched::begin(&fixture);
    fs::rename(fixture.repo.join(".git"), fixture.root.join("aside")).unwrap();
    assert!(!watched.changes().is_empty());
}

#[test]
fn a_record_that_somebody_wrote_into_is_not_believed() {
    let fixture = repository();
    let watched = Watched::begin(&fixture);
    fixture.plain(&fixture.repo, &["config", "core.fsmonitor", "/tmp/evil"]);
    let outside = watched.end().unwrap();
    let record = watched.directory.path().join("shared").join("1.before");
    let text = fs::read(record.as_path()).unwrap();
    fs::write(record.as_path(), [&text[..], b"more"].concat()).unwrap();
    let restored = watched.with(|watch| watch.restore(AttemptNo::FIRST, &outside.before, &outside.after, &[0]));
    assert!(restored.unwrap_err().to_string().contains("1.before"));
    assert_eq!(absolute(&fixture.repo), watched.spec.repository.worktree);
}

#[test]
fn submodules_and_included_files_are_watched() {
    let fixture = repository();
    let git = fixture.repo.join(".git");
    fixture.plain(&fixture.repo, &["init", "-q", git.join("modules/libs/one").to_str().unwrap(), "--bare"]);
    fixture.plain(&fixture.repo, &["config", "include.path", "shared.inc"]);
    write(&git.join("shared.inc"), "[x]\n\ty = 1\n");
    let work = || {
        hook(&git.join("modules/libs/one/hooks/post-checkout"));
        write(&git.join("shared.inc"), "[core]\n\tfsmonitor = evil\n");
        write(&git.join("config.worktree"), "[core]\n\tworktree = /elsewhere\n");
        write(&git.join("commondir"), "/elsewhere\n");
    };
    check(
        &fixture,
        work,
        &[
            "Dangerous+ commondir: is new",
            "Dangerous+ config.worktree: core.worktree: was set to /elsewhere",
            "Dangerous+ modules/libs/one/hooks/post-checkout: is a new hook, which git will run",
            "Dangerous+ shared.inc: has another content",
        ],
    );
    assert!(!git.join("config.worktree").exists() && !git.join("commondir").exists());
}
