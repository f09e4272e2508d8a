//! What may be there when all jobs are discarded: what was applied, and nothing else.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use pactify_tests::sandbox::Sandbox;

use super::session::pause;
use super::{REPOSITORIES, Soak, shared};

/// For processes that were told to end.
const END: Duration = Duration::from_secs(20);

/// Everything outside of PACTIFY_HOME, as it was.
pub(super) struct Before(BTreeMap<PathBuf, Vec<u8>>);

impl Before {
    pub(super) fn look(sandbox: &Sandbox) -> anyhow::Result<Self> {
        let mut files = BTreeMap::new();
        for folder in ["home", "tmp", "run", "repos"] {
            read(&sandbox.root().join(folder), &mut files)?;
        }
        Ok(Self(files))
    }

    /// Checks everything that must hold; returns what was checked.
    pub(super) fn compare(self, soak: &Soak, ledger: &[(usize, String, String)]) -> anyhow::Result<Vec<String>> {
        let sandbox = &soak.sandbox;
        let mut checks = vec![self.no_process(sandbox)?];
        for number in 0..REPOSITORIES {
            let repository = sandbox.root().join("repos").join(format!("r{number}"));
            let git = |arguments: &[&str]| -> anyhow::Result<String> {
                let mut command = sandbox.command("git");
                command.args(arguments).current_dir(&repository);
                crate::run::output(command, Duration::from_secs(120)).map_err(Into::into)
            };
            ensure!(git(&["for-each-ref", "refs/pactify"])?.trim().is_empty(), "refs are left in r{number}");
            ensure!(git(&["worktree", "list", "--porcelain"])?.matches("worktree ").count() == 1, "a worktree is left");
            git(&["fsck", "--strict"]).context("a repository was damaged")?;
        }
        checks.push(format!("{REPOSITORIES} repositories without refs, worktrees or damage"));
        checks.push(self.files(soak, ledger)?);
        let mut command = sandbox.command(pactify_tests::outside::program("pactify")?);
        command.args(["sub", "list", "--all", "--json"]).current_dir(sandbox.root());
        let list = crate::run::output(command, Duration::from_secs(120))?;
        let list: serde_json::Value = serde_json::from_str(&list)?;
        ensure!(list.get("unreadable").is_none(), "jobs are damaged: {}", list["unreadable"]);
        checks.push("every record readable".to_owned());
        Ok(checks)
    }

    /// Everything is as it was, but for what was applied.
    fn files(self, soak: &Soak, ledger: &[(usize, String, String)]) -> anyhow::Result<String> {
        let root = soak.sandbox.root();
        let mut expected = self.0;
        for (repository, path, text) in ledger {
            expected.insert(root.join("repos").join(format!("r{repository}")).join(path), text.clone().into_bytes());
        }
        for repository in 0..REPOSITORIES {
            let shared = soak.shared();
            let edits = shared.iter().filter(|(of, _)| *of == repository).map(|(_, edit)| edit);
            let at = root.join("repos").join(format!("r{repository}")).join(shared::SHARED);
            expected.insert(at, shared::text(edits).into_bytes());
        }
        let Self(found) = Self::look(&soak.sandbox)?;
        let added: Vec<_> = found.keys().filter(|path| !expected.contains_key(*path)).collect();
        let gone: Vec<_> = expected.keys().filter(|path| !found.contains_key(*path)).collect();
        let changed: Vec<_> =
            found.iter().filter(|(path, text)| expected.get(*path).is_some_and(|t| t != *text)).collect();
        ensure!(
            added.is_empty() && gone.is_empty() && changed.is_empty(),
            "left behind: {added:?}; gone: {gone:?}; changed: {:?}",
            changed.iter().map(|(path, _)| path).collect::<Vec<_>>()
        );
        Ok(format!("{} files outside the store as they must be", found.len()))
    }

    /// No process of any job is alive.
    fn no_process(&self, sandbox: &Sandbox) -> anyhow::Result<String> {
        let deadline = Instant::now() + END;
        loop {
            let alive = alive(sandbox.root());
            if alive.is_empty() {
                return Ok("no process alive".to_owned());
            }
            ensure!(Instant::now() < deadline, "processes are alive: {alive:?}");
            pause(Duration::from_millis(200));
        }
    }
}

/// Processes that were started in the sandbox: by their environment, arguments or working folder.
fn alive(root: &Path) -> Vec<String> {
    let needle = root.as_os_str().as_encoded_bytes();
    let mut found = Vec::new();
    for process in fs::read_dir("/proc").into_iter().flatten().flatten() {
        let name = process.file_name().to_string_lossy().into_owned();
        if !name.bytes().all(|byte| byte.is_ascii_digit()) || name == std::process::id().to_string() {
            continue;
        }
        let mut told = fs::read(process.path().join("environ")).unwrap_or_default();
        told.extend(fs::read(process.path().join("cmdline")).unwrap_or_default());
        let folder = fs::read_link(process.path().join("cwd")).unwrap_or_default();
        if folder.starts_with(root) || told.windows(needle.len()).any(|window| window == needle) {
            let command = fs::read(process.path().join("cmdline")).unwrap_or_default();
            found.push(format!("{name} {}", String::from_utf8_lossy(&command).replace('\0', " ")));
        }
    }
    found
}

/// Reads all files below a folder; an empty folder counts as an empty file of that name.
fn read(folder: &Path, files: &mut BTreeMap<PathBuf, Vec<u8>>) -> anyhow::Result<()> {
    let mut empty = true;
    for entry in fs::read_dir(folder).with_context(|| folder.display().to_string())? {
        let entry = entry?;
        empty = false;
        let kind = entry.file_type()?;
        if kind.is_dir() {
            read(&entry.path(), files)?;
        } else if kind.is_symlink() {
            files.insert(entry.path(), fs::read_link(entry.path())?.into_os_string().into_encoded_bytes());
        } else {
            files.insert(entry.path(), fs::read(entry.path())?);
        }
    }
    if empty {
        files.insert(folder.join(""), Vec::new());
    }
    Ok(())
}
