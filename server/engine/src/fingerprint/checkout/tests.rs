//! The guard against files of a git directory, as a job that may change nothing could leave them.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::PathBuf;

use super::*;
use crate::env::{Directories, Variables};

struct World {
    folder: tempfile::TempDir,
    env: Env,
}

impl World {
    fn new() -> Self {
        let env = Env::from_values(Variables::new(), Directories::under(&AbsPath::new("/nowhere").unwrap()));
        let this = Self { folder: tempfile::tempdir().unwrap(), env };
        this.write("one/a", "one\n");
        for git_dir in ["", "modules/sub/", "modules/sub/modules/deep/", "modules/objects/ab/", "worktrees/other/"] {
            for (name, text) in [("HEAD", "ref: refs/heads/main\n"), ("index", "DIRC"), ("logs/HEAD", "x\n")] {
                this.git(&format!("{git_dir}{name}"), text);
            }
            if !git_dir.starts_with("worktrees") {
                for (name, text) in [("config", ""), ("objects/ab/cd", "o"), ("objects/pack/p.pack", "PACK")] {
                    this.git(&format!("{git_dir}{name}"), text);
                }
                this.git(&format!("{git_dir}refs/heads/main"), "1\n");
            }
        }
        this.git("worktrees/other/gitdir", "/elsewhere/.git\n");
        this.git("worktrees/job/gitdir", &format!("{}/j/tree/.git\n", this.jobs().as_path().display()));
        this
    }

    fn at(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn write(&self, name: &str, text: &str) {
        fs::create_dir_all(self.at(name).parent().unwrap()).unwrap();
        fs::write(self.at(name), text).unwrap();
    }

    fn git(&self, name: &str, text: &str) {
        self.write(&format!("one/.git/{name}"), text);
    }

    fn path(&self, name: &str) -> AbsPath {
        AbsPath::new(self.at(name)).unwrap()
    }

    fn jobs(&self) -> AbsPath {
        self.path("pactify/jobs")
    }

    fn repository(&self) -> RepositoryRecord {
        let git_dir = self.path("one/.git");
        RepositoryRecord { common_dir: git_dir.clone(), git_dir, worktree: self.path("one"), prefix: String::new() }
    }

    /// Of a job whose harness makes one file.
    fn spared(&self) -> Spared {
        Spared { jobs: self.jobs(), files: &["of-the-harness"] }
    }

    fn take(&self) -> Checkout {
        Checkout::take(&self.env, &self.repository(), false, &self.spared()).unwrap()
    }

    fn found(&self, checkout: &Checkout) -> Vec<String> {
        let found = checkout.compare(&self.env, false, &self.spared()).unwrap();
        assert_eq!((found.touched, found.more), (vec![], 0));
        found.changed
    }
}

#[test]
fn whatever_git_would_go_on_with_or_run_or_read_is_a_difference() {
    for name in [
        "rebase-merge/git-rebase-todo",
        "rebase-apply/next",
        "sequencer/todo",
        "MERGE_MSG",
        "MERGE_HEAD",
        "BISECT_RUN",
        "COMMIT_EDITMSG",
        "hooks/post-checkout",
        "info/attributes",
        "info/what-a-later-git-reads",
        "objects/info/alternates",
        "objects/info/commit-graph",
        "objects/pack/p.pack",
        "refs/bisect/bad",
        "refs/rewritten/onto",
        "modules/sub/config",
        "modules/sub/hooks/pre-commit",
        "modules/sub/refs/heads/main",
        "modules/sub/packed-refs",
        "modules/sub/modules/deep/rebase-merge/git-rebase-todo",
        "modules/objects/ab/config",
        "modules/new/config",
        "worktrees/other/rebase-merge/git-rebase-todo",
        "worktrees/other/refs/worktree/x",
        "worktrees/new/gitdir",
        "worktrees/job/gitdir",
        "of-the-harness/config",
        "modules/sub/of-the-harness",
        "of-another-harness",
    ] {
        let world = World::new();
        let checkout = world.take();
        world.git(name, "exec evil\n");
        let found = world.found(&checkout);
        let told = format!("git directory: {name}: ");
        assert!(found.iter().any(|change| change.starts_with(&told)), "{name}: {found:?}");
    }
}

#[test]
fn an_index_is_compared_by_its_meaning_wherever_it_is() {
    for (index, told) in [
        ("index", "git's index: has other entries"),
        ("modules/sub/index", "git directory: modules/sub/index: has other entries"),
        ("worktrees/other/index", "git directory: worktrees/other/index: has other entries"),
    ] {
        let world = World::new();
        let checkout = world.take();
        world.git(index, "DIRC");
        assert_eq!(world.found(&checkout), Vec::<String>::new(), "it was written, and means the same");
        world.git(index, "other");
        assert_eq!(world.found(&checkout), [told]);
    }
}

#[test]
fn what_is_left_out_is_named_and_nothing_beside_it() {
    let world = World::new();
    let checkout = world.take();
    for name in [
        "index.lock",
        "logs/HEAD",
        "logs/refs/heads/main",
        "modules/sub/logs/HEAD",
        "objects/ab/ef",
        "objects/cd/ef",
        "modules/sub/objects/12/34",
        "refs/heads/main",
        "packed-refs",
        "fsmonitor--daemon/cookies/1",
        "of-the-harness",
        "worktrees/job/HEAD",
    ] {
        world.git(name, "another\n");
    }
    let tree = format!("{}/k/tree/.git\n", world.jobs().as_path().display());
    world.git("worktrees/another-job/gitdir", &tree);
    assert_eq!(world.found(&checkout), Vec::<String>::new());
    fs::remove_dir_all(world.at("one/.git/worktrees/job")).unwrap();
    assert_eq!(world.found(&checkout), Vec::<String>::new());
    // A registration of the person's does not become ours by what a job writes there.
    world.git("worktrees/other/gitdir", &tree);
    assert_eq!(world.found(&checkout), ["git directory: worktrees/other/gitdir: has another content"]);
}

#[test]
fn a_directory_that_gives_way_to_a_link_is_a_difference() {
    for name in ["logs", "objects/ab", "refs", "worktrees", "modules/sub"] {
        let world = World::new();
        let checkout = world.take();
        let path = world.at("one/.git").join(name);
        fs::rename(&path, world.at("moved")).unwrap();
        symlink(world.at("moved"), &path).unwrap();
        let found = world.found(&checkout);
        let told = format!("git directory: {name}: ");
        assert!(found.iter().any(|change| change.starts_with(&told)), "{name}: {found:?}");
    }
}

#[test]
fn a_git_directory_beside_the_shared_one_is_looked_at_as_well_and_a_record_holds_both() {
    let world = World::new();
    world.write("apart/HEAD", "ref: refs/heads/main\n");
    let repository = RepositoryRecord { git_dir: world.path("apart"), ..world.repository() };
    let checkout = Checkout::take(&world.env, &repository, false, &world.spared()).unwrap();
    fs::create_dir(world.at("kept")).unwrap();
    let directory = Dir::open(&world.path("kept")).unwrap();
    let digest = checkout.keep(&directory, AttemptNo::FIRST).unwrap();
    let kept = Checkout::kept(&directory, AttemptNo::FIRST, &digest).unwrap();
    assert_eq!(world.found(&kept), Vec::<String>::new());
    world.write("apart/MERGE_MSG", "x");
    world.git("sequencer/todo", "x");
    let both = ["sequencer/todo", "sequencer", "MERGE_MSG"].map(|name| format!("git directory: {name}: is new"));
    assert_eq!(world.found(&kept), both);
    assert_eq!(world.found(&checkout), both);
}
