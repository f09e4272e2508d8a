//! A repository of many files, a store, and git as a person would call it.

use std::fmt::Write as _;
use std::io::{BufWriter, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context as _, ensure};
use pactify_core::brief::Brief;
use pactify_core::harness::settings::HarnessSettings;
use pactify_core::job::access::Access;
use pactify_core::job::{Isolation, JobSpec, Limits, SPEC_FORMAT};
use pactify_core::{AbsPath, AttemptNo, JobId};
use pactify_engine::env::{Directories, Env};
use pactify_engine::fingerprint::Watch;
use pactify_engine::git::{Examined, Git, Places, Prepared};
use pactify_engine::job_dir::{JobDir, JobLock};
use pactify_engine::process::{JobTree, Marker, Patience, VerifiedDead};
use pactify_engine::store::Store;
use pactify_tests::sandbox::Sandbox;

use crate::say;

/// How many files one folder has.
const IN_FOLDER: usize = 20;

/// A person with one repository.
pub(crate) struct World {
    pub(crate) sandbox: Sandbox,
    pub(crate) files: usize,
    pub(crate) repository: PathBuf,
    pub(crate) env: Env,
    pub(crate) git: Git,
    pub(crate) store: Store,
    pub(crate) examined: Examined,
}

impl World {
    pub(crate) fn new(folder: &Path, files: usize) -> anyhow::Result<Self> {
        say(&format!("making a repository of {files} files"));
        let sandbox = Sandbox::new_in(folder)?;
        let repository = sandbox.root().join("repository");
        let home = absolute(&sandbox.home())?;
        let directories = Directories::under(&home).with_pactify_home(absolute(&sandbox.pactify_home())?);
        let env = Env::from_values(sandbox.environment().clone(), directories);
        let git = Git::find(&env)?;
        let store = Store::open(env.directories().pactify_home())?;
        std::fs::create_dir(&repository)?;
        let make = |arguments: &[&str]| succeed(sandbox.command("git").current_dir(&repository).args(arguments));
        make(&["init", "--quiet"])?;
        import(sandbox.command("git").current_dir(&repository), files)?;
        make(&["reset", "--quiet", "--hard"])?;
        let examined = git.examine(&absolute(&repository)?)?;
        Ok(Self { files, repository, env, git, store, examined, sandbox })
    }

    /// Runs git in `folder` to its end; what it printed.
    pub(crate) fn git(&self, folder: &Path, arguments: &[&str]) -> anyhow::Result<Vec<u8>> {
        succeed(self.sandbox.command("git").current_dir(folder).args(arguments))
    }

    /// A new job of the store, whose tree is yet to be made.
    pub(crate) fn job(&self) -> anyhow::Result<Job> {
        let Examined { repository, head: base } = self.examined.clone();
        let spec = JobSpec {
            format: SPEC_FORMAT,
            id: JobId::compose(self.env.now(), u32::from_ne_bytes(self.env.random()?)),
            created_at: self.env.now(),
            brief: Brief::new("Change many files")?,
            harness: "codex".parse()?,
            executable: absolute(Path::new("/bin/false"))?,
            interpreter: None,
            search_path: None,
            settings: HarnessSettings::default(),
            model: None,
            with_user_config: false,
            access: Access::Write,
            isolation: Isolation::Private,
            repository,
            base,
            lfs: pactify_core::lfs::LfsPolicy::default(),
            permissions: pactify_core::permission::Policy::default(),
            setup: None,
            verify: Vec::new(),
            no_verify: false,
            place: pactify_core::job::Place::Tree,
            limits: Limits::default(),
            retry_of: None,
            written_by: "0".into(),
            unknown: serde_json::Map::new(),
        };
        let (directory, lock) = self.store.create_job(&spec)?;
        Ok(Job { places: Places::from(&directory), directory, spec, lock })
    }

    pub(crate) fn prepare(&self, job: &Job, isolation: Isolation) -> anyhow::Result<Prepared> {
        let Examined { repository, head } = &self.examined;
        Ok(self.git.prepare(&job.places, repository, head, isolation)?)
    }

    /// A tree in which a harness can be launched: made, and the watch over what it shares with the person begun.
    pub(crate) fn make_ready(&self, job: &Job, isolation: Isolation) -> anyhow::Result<()> {
        self.prepare(job, isolation)?;
        Watch::of(&self.git, &job.directory, &job.spec, &self.store.jobs())?.begin(AttemptNo::FIRST)?;
        Ok(())
    }

    /// Gives the job's tree up.
    pub(crate) fn remove(&self, job: Job) -> anyhow::Result<()> {
        self.git.release(&job.places, &self.examined.repository)?;
        std::fs::remove_dir_all(job.places.directory())?;
        Ok(())
    }

    /// The path of the file with this number.
    pub(crate) fn path(number: usize) -> String {
        let folder = number / IN_FOLDER;
        format!("module{:03}/part{:02}/file{number:05}.txt", folder / 16, folder % 16)
    }
}

/// A job, and the right to write its journal.
pub(crate) struct Job {
    pub(crate) places: Places,
    directory: JobDir,
    spec: JobSpec,
    pub(crate) lock: JobLock,
}

/// The proof that nobody is at work in a tree.
pub(crate) fn dead(places: &Places) -> anyhow::Result<VerifiedDead> {
    let patience = Patience { grace: Duration::ZERO, kill: Duration::from_secs(10) };
    let swept = JobTree::left_by(Marker::of(places.job()), None, None).sweep(patience);
    swept.map_err(|alive| anyhow::anyhow!("something is left: {alive:?}"))
}

/// Text with the number's own words: about 6 KiB, of lines as code has them.
pub(crate) fn text(number: usize) -> String {
    let mut state = (number as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15).wrapping_add(1);
    let mut draw = |below: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % below
    };
    let lines = 100 + draw(160);
    let mut text = String::new();
    for _ in 0..lines {
        let indent = draw(4) as usize;
        let _ = write!(text, "{:1$}", "", indent * 4);
        for _ in 0..2 + draw(6) {
            let _ = write!(text, "word{} ", draw(900));
        }
        text.push('\n');
    }
    text
}

/// One commit of `files` files, packed as a clone would have it.
fn import(command: &mut Command, files: usize) -> anyhow::Result<()> {
    let mut child = command.args(["fast-import", "--quiet", "--force"]).stdin(Stdio::piped()).spawn()?;
    let mut input = BufWriter::new(child.stdin.take().context("no pipe to git")?);
    write!(input, "commit HEAD\ncommitter Test <test@example.invalid> 1700000000 +0000\ndata 5\nFiles\n")?;
    for number in 0..files {
        let text = text(number);
        write!(input, "M 100644 inline {}\ndata {}\n{text}\n", World::path(number), text.len())?;
    }
    input.flush()?;
    drop(input);
    ensure!(child.wait()?.success(), "git fast-import failed");
    Ok(())
}

fn succeed(command: &mut Command) -> anyhow::Result<Vec<u8>> {
    let output = command.stdin(Stdio::null()).output()?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{command:?} failed: {said}");
    Ok(output.stdout)
}

pub(crate) fn absolute(path: &Path) -> anyhow::Result<AbsPath> {
    Ok(AbsPath::new(path)?)
}
