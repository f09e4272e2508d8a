//! `cargo xtask soak`: many jobs at once, while hosts, servers, editors and applies are killed at random.
//!
//! Twenty *slots* ([`slot`]) live jobs from the brief to the discard, one after the other, each over a language server
//! of its own; [`chaos`] kills whatever it finds. Every job writes files that no other job writes, and tells outside of
//! its tree when each is written, so what must be in a result, and in the checkout after an apply, is known exactly;
//! some change one file that all change ([`shared`]), whose applies are merges and conflicts. In the end [`aftermath`]
//! looks for what must not be there: processes, refs, staging directories, changes nobody applied. The scripted agent
//! does the work, since what is tested is what outlives it. A failure names the seed; the same seed makes the same
//! choices (not the same timing). With `--editors` it is the suites in real editors that are run again and again
//! ([`editors`]).

mod aftermath;
mod chaos;
mod editors;
mod session;
mod shared;
mod slot;

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context, bail, ensure};
use fastrand::Rng;
use pactify_tests::editor::use_scripted_agent;
use pactify_tests::sandbox::Sandbox;
use rustix::process::Pid;

use crate::demo;
use crate::run::say;
use aftermath::Before;
use slot::Slot;

/// How the jobs are spread.
const REPOSITORIES: usize = 3;
/// Where agents tell what they have written.
const TOLD: &str = "told";
/// How often it is said how far it is.
const NEWS: Duration = Duration::from_secs(30);

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// For how long jobs are started
    #[arg(long, default_value_t = 10)]
    minutes: u64,
    /// Jobs at once
    #[arg(long, default_value_t = 20)]
    jobs: usize,
    /// The choices to make again
    #[arg(long)]
    seed: Option<u64>,
    /// Instead: run the suites in the real editors again and again, until one fails
    #[arg(long, conflicts_with_all = ["minutes", "jobs", "seed"])]
    editors: bool,
    /// How often these are run
    #[arg(long, default_value_t = 20, requires = "editors")]
    runs: usize,
}

/// What all threads share.
struct Soak {
    sandbox: Sandbox,
    until: Instant,
    counts: Counts,
    /// What was applied of the shared files, by repository.
    shared: Mutex<Vec<(usize, shared::Edit)>>,
    /// The servers of the slots, to be killed.
    servers: Mutex<Vec<Pid>>,
    /// The first failure: everybody stops then.
    failed: Mutex<Option<anyhow::Error>>,
}

/// What happened.
#[derive(Debug, Default)]
struct Counts {
    jobs: AtomicU64,
    succeeded: AtomicU64,
    lost: AtomicU64,
    cancelled: AtomicU64,
    applied: AtomicU64,
    undone: AtomicU64,
    discarded: AtomicU64,
    hosts_killed: AtomicU64,
    servers_killed: AtomicU64,
    editors_killed: AtomicU64,
    applies_killed: AtomicU64,
    /// Files that agents had told to be written.
    told: AtomicU64,
    merges: AtomicU64,
    conflicts: AtomicU64,
}

impl Soak {
    /// Whether no more jobs are started.
    fn is_over(&self) -> bool {
        Instant::now() >= self.until || self.failure().is_some()
    }

    fn failure(&self) -> std::sync::MutexGuard<'_, Option<anyhow::Error>> {
        self.failed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn servers(&self) -> std::sync::MutexGuard<'_, Vec<Pid>> {
        self.servers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn shared(&self) -> std::sync::MutexGuard<'_, Vec<(usize, shared::Edit)>> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn fail(&self, error: anyhow::Error) {
        self.failure().get_or_insert(error);
    }
}

impl Counts {
    fn line(&self) -> String {
        let Self { jobs, succeeded, lost, cancelled, applied, undone, discarded, .. } = self;
        let [jobs, succeeded, lost, cancelled, applied, undone, discarded] =
            [jobs, succeeded, lost, cancelled, applied, undone, discarded].map(|count| count.load(Relaxed));
        let Self { hosts_killed, servers_killed, editors_killed, applies_killed, .. } = self;
        let [hosts, servers, editors, applies] =
            [hosts_killed, servers_killed, editors_killed, applies_killed].map(|count| count.load(Relaxed));
        let [told, merges, conflicts] = [&self.told, &self.merges, &self.conflicts].map(|count| count.load(Relaxed));
        format!(
            "{jobs} jobs ({succeeded} succeeded, {lost} lost, {cancelled} cancelled), {told} files captured that were written, \
             {applied} applied ({merges} merges, {conflicts} conflicts), {undone} undone, {discarded} discarded; killed: {hosts} hosts, {servers} servers, {editors} editors, {applies} applies"
        )
    }
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<()> {
    if arguments.editors {
        return editors::run(arguments.runs);
    }
    ensure!(arguments.jobs > 0 && arguments.minutes > 0, "--jobs and --minutes are at least 1");
    demo::build()?;
    let seed = arguments.seed.unwrap_or_else(|| fastrand::u64(..));
    let sandbox = Sandbox::new()?;
    use_scripted_agent(&sandbox, &[])?;
    for repository in 0..REPOSITORIES {
        let repository = sandbox.filled(&format!("r{repository}"))?;
        repository.write(shared::SHARED, shared::text([]))?;
        repository.commit("One for all")?;
    }
    std::fs::create_dir(sandbox.root().join(TOLD))?;
    let before = Before::look(&sandbox)?;
    let soak = Soak {
        sandbox,
        until: Instant::now() + Duration::from_secs(60 * arguments.minutes),
        counts: Counts::default(),
        shared: Mutex::default(),
        servers: Mutex::default(),
        failed: Mutex::default(),
    };
    say(&format!("{} jobs at once for {} minutes, seed {seed}", arguments.jobs, arguments.minutes));
    let ledger = play(&soak, arguments.jobs, seed);
    say(&soak.counts.line());
    if let Some(error) = soak.failure().take() {
        return Err(error.context(format!("seed {seed}")));
    }
    let checks = before.compare(&soak, &ledger).with_context(|| format!("seed {seed}"))?;
    let counts = &soak.counts;
    if counts.applied.load(Relaxed) == 0 || counts.hosts_killed.load(Relaxed) == 0 {
        bail!("nothing was applied, or no host was killed: this proves nothing (seed {seed})");
    }
    say(&format!("held: {}", checks.join(", ")));
    Ok(())
}

/// Runs all slots to their end; returns what they applied, by path.
fn play(soak: &Soak, jobs: usize, seed: u64) -> Vec<(usize, String, String)> {
    let mut seeds = Rng::with_seed(seed);
    std::thread::scope(|scope| {
        let (settled, end_of_chaos) = std::sync::mpsc::channel::<()>();
        let chaos_seed = seeds.u64(..);
        scope.spawn(move || chaos::reign(soak, Rng::with_seed(chaos_seed), &end_of_chaos));
        let slots: Vec<_> = (0..jobs)
            .map(|number| {
                let rng = Rng::with_seed(seeds.u64(..));
                scope.spawn(move || Slot::new(soak, number, number % REPOSITORIES, rng).live())
            })
            .collect();
        let mut ledger = Vec::new();
        for slot in slots {
            match slot.join() {
                Ok(Ok(applied)) => ledger.extend(applied),
                Ok(Err(error)) => soak.fail(error),
                Err(_) => soak.fail(anyhow::anyhow!("a slot panicked")),
            }
        }
        drop(settled);
        ledger
    })
}
