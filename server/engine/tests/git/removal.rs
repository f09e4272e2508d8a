//! Removing a job's tree: all of it, nothing else, whatever its shape.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};
use std::path::Path;

use pactify_core::job::Isolation;
use pactify_core::job::event::TreeRecord;
use pactify_engine::tree::{RemoveError, Taken, Trash};
use rustix::fs::{Mode, OFlags};

use crate::refusals::Mount;
use crate::support::{Fixture, absolute, write};

/// A directory in a job's place, recorded as its tree.
fn tree(fixture: &Fixture) -> TreeRecord {
    let path = fixture.places().tree();
    fs::create_dir(&path).unwrap();
    let metadata = fs::metadata(&path).unwrap();
    TreeRecord { path, device: metadata.dev(), inode: metadata.ino(), isolation: Isolation::Private }
}

fn take(fixture: &Fixture, tree: &TreeRecord) -> Result<Taken, RemoveError> {
    Trash::open(&fixture.store).unwrap().take_tree(&fixture.store.join("jobs"), tree)
}

/// Takes and unlinks; says how many entries went.
fn remove(fixture: &Fixture, tree: &TreeRecord) -> u64 {
    assert_eq!(take(fixture, tree).unwrap(), Taken::Moved);
    assert!(!tree.path.as_path().exists());
    let report = Trash::open(&fixture.store).unwrap().empty().unwrap();
    assert_eq!(report.left, []);
    assert_eq!(fs::read_dir(fixture.store.join("trash")).unwrap().count(), 0);
    report.removed
}

#[test]
fn links_are_removed_and_not_followed() {
    let fixture = Fixture::without_repository();
    let outside = fixture.root.join("outside");
    write(&outside.join("precious"), "x\n");
    let tree = tree(&fixture);
    symlink(&outside, tree.path.as_path().join("link")).unwrap();
    fs::create_dir(tree.path.as_path().join("dir")).unwrap();
    symlink(&outside, tree.path.as_path().join("dir/link")).unwrap();
    fs::hard_link(outside.join("precious"), tree.path.as_path().join("hard")).unwrap();
    assert_eq!(remove(&fixture, &tree), 5);
    assert_eq!(fs::read_to_string(outside.join("precious")).unwrap(), "x\n");
}

#[test]
fn a_hundred_thousand_entries_go() {
    let fixture = Fixture::without_repository();
    let tree = tree(&fixture);
    for directory in 0..100 {
        let directory = tree.path.as_path().join(format!("d{directory}"));
        fs::create_dir(&directory).unwrap();
        for file in 0..999 {
            fs::File::create(directory.join(file.to_string())).unwrap();
        }
    }
    assert_eq!(remove(&fixture, &tree), 100 * 1000 + 1);
}

#[test]
fn depth_costs_neither_stack_nor_descriptors() {
    const DEPTH: u64 = 5000;
    let fixture = Fixture::without_repository();
    let tree = tree(&fixture);
    let mut directory = rustix::fs::open(tree.path.as_path(), OFlags::DIRECTORY, Mode::empty()).unwrap();
    for _ in 0..DEPTH {
        rustix::fs::mkdirat(&directory, "deeper", Mode::RWXU).unwrap();
        directory = rustix::fs::openat(&directory, "deeper", OFlags::DIRECTORY, Mode::empty()).unwrap();
    }
    assert_eq!(remove(&fixture, &tree), DEPTH + 1);
}

#[test]
fn directories_without_permissions_go() {
    let fixture = Fixture::without_repository();
    let tree = tree(&fixture);
    for (name, mode) in [("closed", 0o000), ("read-only", 0o555), ("write-only", 0o300)] {
        let path = tree.path.as_path().join(name).join("inner");
        write(&path.join("file"), "x\n");
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        fs::set_permissions(path.parent().unwrap(), fs::Permissions::from_mode(mode)).unwrap();
    }
    fs::set_permissions(&tree.path, fs::Permissions::from_mode(0o555)).unwrap();
    assert_eq!(remove(&fixture, &tree), 10);
}

#[test]
fn a_file_system_mounted_inside_is_left_alone() {
    if !rustix::process::geteuid().is_root() {
        return println!("skipped: only root can do what this needs");
    }
    let fixture = Fixture::without_repository();
    let tree = tree(&fixture);
    let inside = tree.path.as_path().join("sub/mounted");
    fs::create_dir_all(&inside).unwrap();
    let mount = Mount::tmpfs(&inside, "size=64k");
    write(&inside.join("precious"), "x\n");
    take(&fixture, &tree).unwrap();
    let trash = Trash::open(&fixture.store).unwrap();
    let report = trash.empty().unwrap();
    assert_eq!(report.left.len(), 1, "{report:?}");
    assert_eq!(report.left[0].why, "a file system is mounted there");
    let precious = report.left[0].path.join("precious");
    assert_eq!(fs::read_to_string(&precious).unwrap(), "x\n");
    // Where it is now: the mount moved with its directory.
    drop(Mount::moved(mount, report.left[0].path.clone()));
    assert_eq!(trash.empty().unwrap().left, []);
}

#[test]
fn only_the_recorded_directory_below_the_jobs_is_taken() {
    let fixture = Fixture::without_repository();
    let record = tree(&fixture);
    let path = record.path.as_path();

    let elsewhere = absolute(&fixture.root.join("home"));
    for path in [elsewhere, fixture.store.clone(), fixture.store.join("jobs"), record.path.join("deeper")] {
        let refused = take(&fixture, &TreeRecord { path, ..record.clone() });
        assert!(matches!(refused, Err(RemoveError::Elsewhere { .. })), "{refused:?}");
    }
    let replaced = |what: &str| {
        let refused = take(&fixture, &record);
        assert!(matches!(refused, Err(RemoveError::Replaced { .. })), "{what}: {refused:?}");
    };
    let away = path.with_extension("away");
    fs::rename(path, &away).unwrap();
    write(path, "a file\n");
    replaced("a file");
    fs::remove_file(path).unwrap();
    symlink(&away, path).unwrap();
    replaced("a link to the tree itself");
    fs::remove_file(path).unwrap();
    fs::create_dir(path).unwrap();
    replaced("another directory");
    fs::remove_dir(path).unwrap();
    assert_eq!(take(&fixture, &record).unwrap(), Taken::AlreadyGone);

    let job = path.parent().unwrap();
    fs::rename(job, job.with_extension("away")).unwrap();
    symlink(job.with_extension("away"), job).unwrap();
    let refused = take(&fixture, &record);
    assert!(refused.is_err(), "a link above: {refused:?}");
}

#[test]
fn giving_a_job_up_ends_its_ref_and_its_registration() {
    for isolation in [Isolation::Private, Isolation::Linked] {
        let fixture = Fixture::with(&[("a", "1\n")]);
        let (one, other) = (fixture.job_in(&fixture.repo, isolation), fixture.job_in(&fixture.repo, isolation));
        let registered = |fixture: &Fixture| fixture.plain(&fixture.repo, &["worktree", "list"]).lines().count() - 1;
        let linked = usize::from(isolation == Isolation::Linked);
        assert_eq!(registered(&fixture), 2 * linked);
        fixture.git.release(&one.places, &one.repository).unwrap();
        take(&fixture, &one.prepared.tree).unwrap();
        assert_eq!(registered(&fixture), linked);
        assert_eq!(fixture.plain(&fixture.repo, &["for-each-ref", "refs/pactify"]).lines().count(), 1);
        assert!(Path::new(other.tree()).join("a").exists());
        // Twice is as good as once.
        fixture.git.release(&one.places, &one.repository).unwrap();
    }
}

#[test]
fn a_job_can_be_given_up_when_its_repository_is_gone() {
    let fixture = Fixture::with(&[("a", "1\n")]);
    let linked = fixture.root.join("linked");
    fixture.plain(&fixture.repo, &["worktree", "add", "-q", "--detach", linked.to_str().unwrap()]);
    let (one, other) = (fixture.job_in(&linked, Isolation::Linked), fixture.job_in(&linked, Isolation::Private));
    fixture.plain(&fixture.repo, &["worktree", "remove", linked.to_str().unwrap()]);
    fixture.git.release(&one.places, &one.repository).unwrap();
    assert_eq!(fixture.plain(&fixture.repo, &["for-each-ref", "refs/pactify"]).lines().count(), 1);
    fs::rename(&fixture.repo, fixture.root.join("gone")).unwrap();
    fixture.git.release(&other.places, &other.repository).unwrap();
}

#[test]
fn a_tree_goes_while_another_process_empties_the_trash() {
    let fixture = Fixture::without_repository();
    let done = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let trash = Trash::open(&fixture.store).unwrap();
            while !done.load(std::sync::atomic::Ordering::Relaxed) {
                trash.empty().unwrap();
            }
        });
        let taken = (0..4000).try_for_each(|_| take(&fixture, &tree(&fixture)).map(drop));
        done.store(true, std::sync::atomic::Ordering::Relaxed);
        taken.unwrap();
    });
}
