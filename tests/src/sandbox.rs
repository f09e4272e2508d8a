//! A world for one test: its own home, configuration, caches, temporary folder, PACTIFY_HOME and git identity.
//!
//! The environment is built from nothing, so that the suite gives the same answers on any machine and also inside a
//! pactify job. The root lies outside `/tmp` and of the sandbox's own `TMPDIR`, where codex would refuse to work, and
//! its path is short enough for sockets below it. Repositories are made in [`Repository`].

mod repository;

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs::{self, File, Permissions};
use std::hash::{BuildHasher, RandomState};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, ensure};

use crate::outside;
use crate::running::Running;

pub use repository::{Repository, Snapshot};

/// A socket's path has 107 bytes; this much is left to what is below the root.
const LONGEST_ROOT: usize = 60;
/// Removal is tried this often: a process that was told to end may still be writing.
const REMOVALS: usize = 50;
/// … at this distance.
const BETWEEN_REMOVALS: Duration = Duration::from_millis(20);
/// Taken from the outer environment, if it is there.
const INHERITED: [&str; 4] = ["PATH", "LD_LIBRARY_PATH", "RUST_BACKTRACE", "LLVM_PROFILE_FILE"];
const GIT_CONFIG: &str = "[user]\n\tname = Test\n\temail = test@example.invalid\n\
    [init]\n\tdefaultBranch = main\n[commit]\n\tgpgSign = false\n[gc]\n\tauto = 0\n[maintenance]\n\tauto = false\n";

/// A world for one test, removed when dropped.
pub struct Sandbox {
    root: PathBuf,
    environment: BTreeMap<OsString, OsString>,
    /// Held as long as the sandbox is in use; a root whose lock is free was left behind.
    _lock: File,
}

impl Sandbox {
    /// Makes a fresh one.
    pub fn new() -> anyhow::Result<Self> {
        match outside::variable("PACTIFY_TEST_ROOT") {
            Some(folder) => Self::new_in(Path::new(&folder)),
            None => Self::new_in(&outside::cache_folder()?.join("pactify-tests")),
        }
    }

    /// Makes a fresh one in this folder, which is made if it isn't there.
    pub fn new_in(parent: &Path) -> anyhow::Result<Self> {
        fs::create_dir_all(parent).with_context(|| format!("can't make {}", parent.display()))?;
        // Links resolved, as git and codex show paths.
        let parent = parent.canonicalize()?;
        ensure!(
            !parent.starts_with("/tmp") && parent.as_os_str().len() < LONGEST_ROOT - 8,
            "sandboxes can't be in {}: set PACTIFY_TEST_ROOT to a folder with a short path outside /tmp",
            parent.display(),
        );
        remove_abandoned(&parent);
        let root = parent.join(format!("{:08x}", RandomState::new().hash_one("sandbox") >> 32));
        fs::DirBuilder::new().mode(0o700).create(&root)?;
        // Locked before it has its name: nobody may take this root for an abandoned one.
        let lock = File::create_new(root.join("lock.new"))?;
        lock.lock()?;
        fs::rename(root.join("lock.new"), root.join("lock"))?;
        let sandbox = Self { environment: environment(&root), root, _lock: lock };
        for folder in ["home", "home/.config", "home/.cache", "home/.local/share", "home/.local/state", "run", "tmp"] {
            fs::DirBuilder::new().mode(0o700).recursive(true).create(sandbox.root.join(folder))?;
        }
        fs::write(sandbox.home().join(".gitconfig"), GIT_CONFIG)?;
        Ok(sandbox)
    }

    /// Everything of this sandbox is below it.
    #[must_use]
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// `HOME`.
    #[must_use]
    pub fn home(&self) -> PathBuf {
        self.root.join("home")
    }

    /// `TMPDIR`; nothing else is below it.
    #[must_use]
    pub fn tmp(&self) -> PathBuf {
        self.root.join("tmp")
    }

    /// `PACTIFY_HOME`, which does not exist yet.
    #[must_use]
    pub fn pactify_home(&self) -> PathBuf {
        self.root.join("pactify")
    }

    /// Where its jobs are.
    #[must_use]
    pub fn jobs(&self) -> PathBuf {
        self.pactify_home().join("jobs")
    }

    /// The folder of a job.
    #[must_use]
    pub fn job(&self, id: &str) -> PathBuf {
        self.jobs().join(id)
    }

    /// `XDG_CONFIG_HOME`.
    #[must_use]
    pub fn config_home(&self) -> PathBuf {
        self.home().join(".config")
    }

    /// pactify's configuration; [`crate::editor::configure`] writes it.
    #[must_use]
    pub fn config(&self) -> PathBuf {
        self.config_home().join("pactify/config.toml")
    }

    /// The whole environment of the sandbox's processes.
    #[must_use]
    pub fn environment(&self) -> &BTreeMap<OsString, OsString> {
        &self.environment
    }

    /// Sets a variable for processes started from now on.
    pub fn set(&mut self, name: &str, value: impl Into<OsString>) {
        self.environment.insert(name.into(), value.into());
    }

    /// A command with the sandbox's environment, in its root.
    #[must_use]
    pub fn command(&self, program: impl AsRef<OsStr>) -> Command {
        #[expect(clippy::disallowed_methods, reason = "the one place where tests make commands")]
        let mut command = Command::new(program);
        command.env_clear().envs(&self.environment).current_dir(&self.root);
        command
    }

    /// Starts one of our own programs, such as `pactify-lsp`.
    pub fn start(&self, program: &str, arguments: &[&str], input: &[u8]) -> anyhow::Result<Running> {
        let mut command = self.command(outside::program(program)?);
        command.args(arguments);
        Running::start(command, input)
    }

    /// Makes an empty repository with this name in the sandbox.
    pub fn repository(&self, name: &str) -> anyhow::Result<Repository<'_>> {
        Repository::init(self, self.root.join("repos").join(name))
    }

    /// The same with the sample project in it, committed.
    pub fn filled(&self, name: &str) -> anyhow::Result<Repository<'_>> {
        let repository = self.repository(name)?;
        repository.fill()?;
        Ok(repository)
    }
}

/// Makes a program of these lines for a shell, and the folders above it.
pub fn shell_program(path: &Path, lines: &str) -> anyhow::Result<()> {
    fs::create_dir_all(path.parent().context("a file has a folder")?)?;
    fs::write(path, format!("#!/bin/sh\n{lines}\n"))?;
    Ok(fs::set_permissions(path, Permissions::from_mode(0o755))?)
}

impl Drop for Sandbox {
    fn drop(&mut self) {
        let keep = outside::variable("PACTIFY_KEEP");
        if keep.as_ref().is_some_and(|what| what == "all" || std::thread::panicking()) {
            // An unlocked root would be taken for an abandoned one.
            let _ = fs::remove_file(self.root.join("lock"));
            let _ = writeln!(io::stderr(), "kept: {}", self.root.display());
            return;
        }
        if let Err(error) = remove(&self.root) {
            let _ = writeln!(io::stderr(), "can't remove {}: {error}", self.root.display());
        }
    }
}

fn environment(root: &Path) -> BTreeMap<OsString, OsString> {
    let mut environment: BTreeMap<OsString, OsString> =
        INHERITED.iter().filter_map(|name| Some(((*name).into(), outside::variable(name)?))).collect();
    let home = root.join("home");
    for (name, folder) in [
        ("HOME", home.clone()),
        ("XDG_CONFIG_HOME", home.join(".config")),
        ("XDG_CACHE_HOME", home.join(".cache")),
        ("XDG_DATA_HOME", home.join(".local/share")),
        ("XDG_STATE_HOME", home.join(".local/state")),
        ("XDG_RUNTIME_DIR", root.join("run")),
        ("TMPDIR", root.join("tmp")),
        ("PACTIFY_HOME", root.join("pactify")),
        ("GIT_CONFIG_GLOBAL", home.join(".gitconfig")),
    ] {
        environment.insert(name.into(), folder.into());
    }
    for (name, value) in [("GIT_CONFIG_NOSYSTEM", "1"), ("LC_ALL", "C.UTF-8"), ("TZ", "UTC"), ("TERM", "dumb")] {
        environment.insert(name.into(), value.into());
    }
    environment
}

/// Removes what runs that were killed have left behind.
fn remove_abandoned(parent: &Path) {
    for root in fs::read_dir(parent).into_iter().flatten().flatten() {
        // Without a lock file it is kept on purpose, or is being made or removed just now.
        let Ok(lock) = File::open(root.path().join("lock")) else { continue };
        if lock.try_lock().is_ok() {
            let _ = remove(&root.path());
        }
    }
}

fn remove(root: &Path) -> io::Result<()> {
    let mut result = fs::remove_dir_all(root);
    for _ in 0..REMOVALS {
        match &result {
            Ok(()) => break,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(_) => open_up(root),
        }
        #[expect(clippy::disallowed_methods, reason = "no event tells that foreign processes have stopped writing")]
        std::thread::sleep(BETWEEN_REMOVALS);
        result = fs::remove_dir_all(root);
    }
    result
}

/// A test may have taken away the permissions to look into a folder.
fn open_up(folder: &Path) {
    let _ = fs::set_permissions(folder, Permissions::from_mode(0o700));
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            open_up(&entry.path());
        }
    }
}
