//! What a job can leave behind, and that none of it runs or hides anything. Each payload first fires under plain git.

use std::fs;
use std::path::Path;

use pactify_core::job::Isolation;

use crate::support::{Fixture, Job, changes, trap};

/// Everything that pactify does around a job, from a look at the repository to giving the job up.
fn whole_life(fixture: &Fixture, edit: impl Fn(&Job)) -> Vec<String> {
    let mut seen = Vec::new();
    for isolation in [Isolation::Private, Isolation::Linked] {
        let job = fixture.job_in(&fixture.repo, isolation);
        edit(&job);
        let captured = fixture.capture(&job);
        let again = fixture.git.change_set(&job.places.capture(), &job.base.tree, captured.change_set.id.tree());
        assert_eq!(again.unwrap(), captured.change_set);
        fixture.git.release(&job.places, &job.repository).unwrap();
        seen = changes(&captured.change_set);
    }
    seen
}

fn fired(mark: &Path) -> bool {
    let fired = mark.exists();
    let _ = fs::remove_file(mark);
    fired
}

#[test]
fn fsmonitor_in_the_shared_configuration_is_not_run() {
    let fixture = Fixture::with(&[("a", "1\n")]);
    let mark = fixture.root.join("mark");
    let script = trap(&fixture.root.join("evil"), &mark);
    for (key, value) in
        [("core.fsmonitor", script.clone()), ("include.path", fixture.root.join("inc").display().to_string())]
    {
        fs::write(fixture.root.join("inc"), format!("[core]\n\tfsmonitor = {script}\n")).unwrap();
        fixture.plain(&fixture.repo, &["config", key, &value]);
        fixture.plain(&fixture.repo, &["status"]);
        assert!(fired(&mark), "{key} does not fire at all");
        assert_eq!(whole_life(&fixture, |job| job.write("a", "2\n")), ["M a"]);
        assert!(!fired(&mark), "{key} was run");
        fixture.plain(&fixture.repo, &["config", "--unset", key]);
    }
}

#[test]
fn hooks_in_the_shared_directory_are_not_run() {
    let fixture = Fixture::with(&[("a", "1\n")]);
    let mark = fixture.root.join("mark");
    for hook in ["post-checkout", "post-index-change", "reference-transaction"] {
        trap(&fixture.repo.join(".git/hooks").join(hook), &mark);
        let elsewhere = fixture.root.join(hook).display().to_string();
        fixture.plain(&fixture.repo, &["worktree", "add", "--detach", &elsewhere]);
        assert!(fired(&mark), "{hook} does not fire at all");
        assert_eq!(whole_life(&fixture, |job| job.write("a", "2\n")), ["M a"]);
        assert!(!fired(&mark), "{hook} was run");
        fs::remove_file(fixture.repo.join(".git/hooks").join(hook)).unwrap();
    }
}

#[test]
fn nothing_of_the_person_s_is_touched() {
    let fixture = Fixture::with(&[("a", "1\n"), ("b", "1\n")]);
    fs::write(fixture.repo.join("b"), "staged\n").unwrap();
    fixture.plain(&fixture.repo, &["add", "b"]);
    fs::write(fixture.repo.join("b"), "unstaged\n").unwrap();
    fs::write(fixture.repo.join("untracked"), "mine\n").unwrap();
    let before = fixture.belongings();
    assert_eq!(whole_life(&fixture, |job| job.write("a", "2\n")), ["M a"]);
    let after = fixture.belongings();
    assert_eq!(before, after);
}
