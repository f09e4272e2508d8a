//! Making a job's tree, and telling what changed in it.

use std::fs;

use std::time::Duration;

use anyhow::ensure;
use pactify_core::job::Isolation;
use pactify_engine::fingerprint::{Checkout, Spared};

use crate::world::{World, dead, text};
use crate::{Figure, median, time};

/// An even number: of the two kinds of a tree, each comes first as often as the other. They differ by little, so by
/// many rounds only; git, by much.
const ROUNDS: usize = 16;
const OF_GIT: usize = 5;
const CAPTURES: usize = 9;

/// From nothing to a tree in which a harness can be launched, against a plain `git worktree add`.
pub(crate) fn ready(world: &World) -> anyhow::Result<Vec<Figure>> {
    let Times { mut private, mut linked, mut plain, mut first_status, mut plain_status } = Times::default();
    for round in 0..ROUNDS {
        if round < OF_GIT {
            let worktree = world.sandbox.root().join("worktree");
            let place = worktree.display().to_string();
            let add = || world.git(&world.repository, &["worktree", "add", "--quiet", "--detach", &place, "HEAD"]);
            plain.push(time(add)?.0);
            plain_status.push(time(|| world.git(&worktree, &["status"]))?.0);
            world.git(&world.repository, &["worktree", "remove", "--force", &place])?;
        }
        let mut both = [(Isolation::Private, &mut private), (Isolation::Linked, &mut linked)];
        // Whoever comes second finds everything warm.
        both.rotate_left(round % 2);
        for (isolation, times) in both {
            let job = world.job()?;
            times.push(time(|| world.make_ready(&job, isolation))?.0);
            if isolation == Isolation::Private {
                first_status.push(time(|| world.git(job.places.tree().as_path(), &["status"]))?.0);
            }
            world.remove(job)?;
        }
    }
    let files = world.files;
    let plain = median(plain);
    let bar = (files >= 10_000).then_some(0.7);
    let figure = |what: String, reference: &str, ours, theirs, bar| Figure {
        what,
        reference: reference.to_owned(),
        unit: "ms",
        ours,
        theirs,
        bar,
    };
    let (private, linked) = (median(private), median(linked));
    Ok(vec![
        figure(format!("a private tree ready, {files} files"), "`git worktree add --detach`", private, plain, bar),
        figure(format!("a linked tree ready, {files} files"), "`git worktree add --detach`", linked, plain, bar),
        figure(format!("a private tree ready, {files} files"), "a linked one", private, linked, bar.map(|_| 1.0)),
        figure(
            format!("the first `git status` in it, {files} files"),
            "in a new worktree",
            median(first_status),
            median(plain_status),
            None,
        ),
    ])
}

#[derive(Default)]
struct Times {
    private: Vec<f64>,
    linked: Vec<f64>,
    plain: Vec<f64>,
    first_status: Vec<f64>,
    plain_status: Vec<f64>,
}

/// The capture of a small change.
pub(crate) fn capture(world: &World) -> anyhow::Result<Vec<Figure>> {
    let job = world.job()?;
    let prepared = world.prepare(&job, Isolation::Private)?;
    let tree = job.places.tree();
    for number in (0..world.files).step_by(world.files / 20) {
        let path = tree.as_path().join(World::path(number));
        fs::write(&path, format!("changed\n{}", text(number)))?;
        fs::write(path.with_extension("new"), text(number + 1))?;
        fs::remove_file(tree.as_path().join(World::path(number + 1)))?;
    }
    let repository = &world.examined.repository;
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for _ in 0..CAPTURES {
        let proof = dead(&job.places)?;
        let capture =
            || Ok(world.git.capture(&proof, &job.places, repository, &world.examined.head, &prepared.tree)?);
        ours.push(time(capture)?.0);
        theirs.push(time(|| world.git(tree.as_path(), &["status", "--untracked-files=all", "--porcelain"]))?.0);
    }
    world.remove(job)?;
    Ok(vec![Figure {
        what: format!("the capture of 60 changes, {} files", world.files),
        reference: "`git status -uall`".to_owned(),
        unit: "ms",
        ours: median(ours),
        theirs: median(theirs),
        bar: Some(2.0),
    }])
}

/// Taking the baseline of a checkout and its git directory and comparing it, with a good many ignored files.
pub(crate) fn baseline(world: &World) -> anyhow::Result<Vec<Figure>> {
    let ignored = 2 * world.files / 5;
    fs::write(world.repository.join(".git/info/exclude"), "/ignored/\n")?;
    for number in 0..ignored {
        let path = world.repository.join("ignored").join(World::path(number));
        fs::create_dir_all(path.parent().unwrap_or(&path))?;
        fs::write(path, "made by a build\n")?;
    }
    // What is younger is read, which is not what is measured.
    settle();
    let spared = Spared { jobs: world.store.jobs(), files: &[] };
    let mut times: [Vec<f64>; 3] = Default::default();
    for _ in 0..CAPTURES {
        let take = || Ok(Checkout::take(&world.env, &world.examined.repository, false, &spared)?);
        let (took, checkout) = time(take)?;
        times[0].push(took);
        let (took, comparison) = time(|| Ok(checkout.compare(&world.env, false, &spared)?))?;
        times[1].push(took);
        ensure!(comparison.is_unchanged(), "{comparison:?}");
        times[2].push(time(|| world.git(&world.repository, &["status", "--untracked-files=all", "--porcelain"]))?.0);
    }
    fs::remove_dir_all(world.repository.join("ignored"))?;
    let [taken, compared, status] = times.map(median);
    let figure = |what: &str, ours| Figure {
        what: format!("{what} of {} files", world.files + ignored),
        reference: "`git status -uall`".to_owned(),
        unit: "ms",
        ours,
        theirs: status,
        bar: Some(1.0),
    };
    Ok(vec![figure("the read-only baseline", taken), figure("its comparison", compared)])
}

fn settle() {
    #[expect(clippy::disallowed_methods, reason = "a file's age is what matters, and no event tells it")]
    std::thread::sleep(Duration::from_secs(3));
}
