//! Git repositories to work on, and a way to tell that one was left alone.

use std::collections::BTreeMap;
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use anyhow::Context;

use super::Sandbox;
use crate::editor::JOB;
use crate::outside;
use crate::running::{Ended, Running};

/// A git repository in a [`Sandbox`].
pub struct Repository<'a> {
    sandbox: &'a Sandbox,
    path: PathBuf,
}

/// What a checkout holds: every file with its mode and content, the index, `HEAD` and the refs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Snapshot(BTreeMap<PathBuf, String>);

impl<'a> Repository<'a> {
    pub(super) fn init(sandbox: &'a Sandbox, path: PathBuf) -> anyhow::Result<Self> {
        fs::create_dir_all(&path)?;
        let repository = Self { sandbox, path };
        repository.git(&["init", "--quiet"])?;
        Ok(repository)
    }

    /// Its checkout.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Runs git in the checkout; returns what it printed, without the last newline. Commit ids are reproducible.
    pub fn git(&self, arguments: &[&str]) -> anyhow::Result<String> {
        let date = "2026-01-01T00:00:00Z";
        let mut command = self.sandbox.command("git");
        command.args(arguments).current_dir(&self.path).env("GIT_AUTHOR_DATE", date).env("GIT_COMMITTER_DATE", date);
        let ended = Running::start(command, b"")?.wait(JOB)?;
        let ended = ended.success().with_context(|| format!("git {arguments:?} in {}", self.path.display()))?;
        Ok(ended.stdout.trim_end_matches('\n').to_owned())
    }

    /// Starts `pactify sub …` in the checkout.
    pub fn start_sub(&self, arguments: &[&str], input: &str) -> anyhow::Result<Running> {
        let mut command = self.sandbox.command(outside::program("pactify")?);
        command.arg("sub").args(arguments).current_dir(&self.path);
        Running::start(command, input.as_bytes())
    }

    /// Runs `pactify sub …` in the checkout to its end.
    pub fn sub(&self, arguments: &[&str], input: &str) -> anyhow::Result<Ended> {
        self.start_sub(arguments, input)?.wait(JOB * 2)
    }

    /// Writes a file and the folders above it.
    pub fn write(&self, path: &str, content: impl AsRef<[u8]>) -> anyhow::Result<()> {
        let file = self.path.join(path);
        fs::create_dir_all(file.parent().context("a file has a folder")?)?;
        fs::write(&file, content).with_context(|| format!("can't write {}", file.display()))
    }

    /// Reads a file.
    pub fn read(&self, path: &str) -> anyhow::Result<String> {
        fs::read_to_string(self.path.join(path)).with_context(|| format!("can't read {path}"))
    }

    /// Commits everything that is in the checkout; returns the commit's id.
    pub fn commit(&self, message: &str) -> anyhow::Result<String> {
        self.git(&["add", "--all"])?;
        self.git(&["commit", "--quiet", "--allow-empty", "-m", message])?;
        self.head()
    }

    /// The id of the commit at `HEAD`.
    pub fn head(&self) -> anyhow::Result<String> {
        self.git(&["rev-parse", "HEAD"])
    }

    /// `git status` in its short form, without touching the index.
    pub fn status(&self) -> anyhow::Result<String> {
        self.git(&["--no-optional-locks", "status", "--porcelain"])
    }

    /// Fills it with a small program and commits that: text, an executable, a link, a binary, a folder.
    pub fn fill(&self) -> anyhow::Result<String> {
        self.write("README.md", "# Sample\n\nA small program.\n")?;
        self.write("src/main.c", "#include <stdio.h>\n\nint main(void) {\n    puts(\"hello\");\n    return 0;\n}\n")?;
        self.write("src/empty.h", "")?;
        self.write("data/logo.bin", [0, 159, 146, 150, 255])?;
        self.write("run.sh", "#!/bin/sh\nexec ./main\n")?;
        fs::set_permissions(self.path.join("run.sh"), fs::Permissions::from_mode(0o755))?;
        symlink("README.md", self.path.join("LINK.md"))?;
        self.write(".gitignore", "*.o\n")?;
        self.commit("A small program")
    }

    /// Leaves one of each kind of unfinished work: changed, staged, staged and changed, deleted, untracked, ignored.
    pub fn make_dirty(&self) -> anyhow::Result<()> {
        self.write("README.md", "# Sample\n\nA small program, edited.\n")?;
        self.write("src/empty.h", "/* staged */\n")?;
        self.write("both.txt", "staged\n")?;
        self.git(&["add", "src/empty.h", "both.txt"])?;
        self.write("both.txt", "staged, then changed\n")?;
        fs::remove_file(self.path.join("data/logo.bin"))?;
        self.write("untracked.txt", "mine\n")?;
        self.write("main.o", "ignored\n")
    }

    /// What the checkout holds now.
    pub fn snapshot(&self) -> anyhow::Result<Snapshot> {
        let mut all = BTreeMap::new();
        visit(&self.path, Path::new(""), &mut all)?;
        Ok(Snapshot(all))
    }
}

impl Snapshot {
    /// The paths whose mode or content differ, or that only one has.
    #[must_use]
    pub fn changed_since(&self, before: &Self) -> Vec<String> {
        let all = self.0.keys().chain(before.0.keys().filter(|path| !self.0.contains_key(*path)));
        let changed = all.filter(|path| self.0.get(*path) != before.0.get(*path));
        changed.map(|path| path.display().to_string()).collect()
    }
}

fn visit(root: &Path, folder: &Path, all: &mut BTreeMap<PathBuf, String>) -> io::Result<()> {
    for entry in fs::read_dir(root.join(folder))? {
        let entry = entry?;
        let path = folder.join(entry.file_name());
        // Of the git folder only what a person would notice: objects may come and go.
        let in_git = path.strip_prefix(".git").ok();
        let is_noticed = |inner: &Path| {
            ["", "index", "HEAD", "refs", "config", "packed-refs"]
                .iter()
                .any(|name| inner == Path::new(name) || (!name.is_empty() && inner.starts_with(name)))
        };
        if in_git.is_some_and(|inner| !is_noticed(inner)) {
            continue;
        }
        let metadata = entry.path().symlink_metadata()?;
        let mode = metadata.permissions().mode();
        if metadata.is_dir() {
            visit(root, &path, all)?;
        } else if metadata.is_symlink() {
            all.insert(path, format!("-> {}", fs::read_link(entry.path())?.display()));
        } else if metadata.is_file() {
            let mut hasher = DefaultHasher::new();
            fs::read(entry.path())?.hash(&mut hasher);
            all.insert(path, format!("{mode:o} {} bytes {:016x}", metadata.len(), hasher.finish()));
        } else {
            all.insert(path, format!("{mode:o}"));
        }
    }
    Ok(())
}
