//! Where harnesses are looked for: on this process's search path, then on the one of the person's login shell.
//!
//! An editor that was started from a desktop has a thin `PATH`, without `~/.local/bin` and its like. The login shell is
//! asked once for its own: with a limit on its time and its words, at home, and only what stands between two marks
//! nobody can guess counts. Nothing is searched that a repository or a job could have written to: relative and empty
//! entries are dropped, and so is what lies in the repository that the job is for, or in `PACTIFY_HOME` ([`Apart`]). A
//! link that leads there is passed over as if it were not there.

use std::ffi::{OsStr, OsString};
use std::fmt::Write as _;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::time::Duration;

use pactify_core::harness::{Harness, HarnessSettings};
use pactify_core::job::RepositoryRecord;
use pactify_core::{AbsPath, Failure, FailureCode};

use super::shims::{self, Unanswered};
use super::{Program, resolve};
use crate::causes::with_causes;
use crate::env::{Env, EnvError};
use crate::process::run::Overflow;
use crate::process::{EnvPolicy, Invocation, Limits};

/// How long the login shell may take, or a version manager: what people put into start-up files takes seconds at worst.
pub(super) const PATIENCE: Duration = Duration::from_secs(15);
/// How much of its words is looked at, in bytes.
const WORDS: usize = 256 * 1024;

/// How many links may lead to a program, one after the other: as many as the kernel follows.
const LINKS: usize = 40;

/// A harness's program, found.
#[derive(Clone, Debug)]
pub struct Found {
    /// The program.
    pub program: Program,
    /// The surroundings in which it was found, and in which it works.
    pub env: Env,
    /// The search path of those, where it is not this process's own.
    pub search_path: Option<String>,
}

/// The program of `harness`, for a job in `repository`: what the person named, else the first on this process's search
/// path, else the first on the login shell's.
pub fn find(
    env: &Env,
    harness: &dyn Harness,
    settings: &HarnessSettings,
    repository: Option<&RepositoryRecord>,
) -> Result<Found, Failure> {
    let apart = Apart::of(env, repository);
    let own = apart.without(env.search_path());
    let near = env.searching(&own);
    let first = match resolve(&near, harness, settings, &apart) {
        Ok(program) => return Ok(Found::of(program, near, env)),
        // Incompatible: its interpreter is not of a version that will do, and the login shell may know a newer one.
        Err(failure) if is_about_searching(failure.code) && !is_named_whole(settings) => failure,
        Err(failure) => return Err(failure),
    };
    let Some(told) = env.login_path(ask) else { return Err(first) };
    let mut all = own;
    for directory in apart.without(directories(told)) {
        if !all.contains(&directory) {
            all.push(directory);
        }
    }
    let far = env.searching(&all);
    let program = resolve(&far, harness, settings, &apart)?;
    Ok(Found::of(program, far, env))
}

impl Found {
    /// A program found in `surroundings`. It works there, too: a script asks the search path for what runs it.
    fn of(program: Program, surroundings: Env, asked: &Env) -> Self {
        let path = surroundings.variable("PATH");
        let other = path.filter(|path| asked.variable("PATH") != Some(path));
        let search_path = other.and_then(OsStr::to_str).map(str::to_owned);
        Self { program, env: surroundings, search_path }
    }
}

fn is_about_searching(code: FailureCode) -> bool {
    matches!(code, FailureCode::HarnessNotFound | FailureCode::HarnessIncompatible)
}

/// Whether the person named the program by its place: then nothing is searched.
fn is_named_whole(settings: &HarnessSettings) -> bool {
    settings.chosen().is_some_and(|(_, program)| Path::new(program).is_absolute())
}

/// Why a program is not there.
#[derive(Debug, thiserror::Error)]
pub(super) enum Absent {
    /// Nothing is.
    #[error(transparent)]
    Nowhere(#[from] EnvError),
    /// Something that only stands for it is.
    #[error(transparent)]
    Shim(#[from] Unanswered),
}

/// Where nothing is searched, links resolved: whose files others write.
pub(super) struct Apart(Vec<AbsPath>);

impl Apart {
    pub(super) fn of(env: &Env, repository: Option<&RepositoryRecord>) -> Self {
        let mut apart = vec![env.directories().pactify_home().clone()];
        if let Some(RepositoryRecord { worktree, git_dir, common_dir, .. }) = repository {
            apart.extend([worktree, git_dir, common_dir].map(AbsPath::clone));
            let is_main = common_dir.as_path().file_name() == Some(OsStr::new(".git"));
            let main = common_dir.as_path().parent().filter(|_| is_main);
            apart.extend(main.and_then(|main| AbsPath::new(main).ok()));
        }
        Self(apart.into_iter().map(|path| real(&path)).collect())
    }

    /// Finds a program by its bare name, the first one that is nobody else's; one that is named by its place is the
    /// person's choice. Links are resolved, and what a version manager puts in a program's place is seen through.
    pub(super) fn find_program(&self, env: &Env, name: &OsStr) -> Result<AbsPath, Absent> {
        let program = |found: AbsPath| -> Result<AbsPath, Absent> {
            Ok(shims::behind(env, self, &found)?.unwrap_or_else(|| real(&found)))
        };
        if Path::new(name).is_absolute() {
            return program(env.find_executable(name)?);
        }
        let mut first = None;
        for found in self.search(env, name) {
            match program(found) {
                Ok(program) => return Ok(program),
                // As mise and volta do themselves: what it does not know may be further along.
                Err(refused) => first = first.or(Some(refused)),
            }
        }
        match first {
            Some(refused) => Err(refused),
            None => Ok(env.searching(&[]).find_executable(name)?),
        }
    }

    /// The programs of this bare name that are nobody else's, in the order of the search path.
    pub(super) fn search<'a>(&'a self, env: &'a Env, name: &'a OsStr) -> impl Iterator<Item = AbsPath> + 'a {
        let found = env.search_path().into_iter().map(move |folder| env.searching(&[folder]).find_executable(name));
        found.flatten().filter(|found| self.is_free(found))
    }

    /// Whether neither the program, nor any link on the way to it, lies where others write.
    pub(super) fn is_free(&self, program: &AbsPath) -> bool {
        let mut at = program.as_path().to_owned();
        for _ in 0..LINKS {
            let (Some(parent), Some(name)) = (at.parent(), at.file_name()) else { return true };
            let Ok(parent) = parent.canonicalize() else { return true };
            if self.holds(&parent) || self.holds(&parent.join(name)) {
                return false;
            }
            match parent.join(name).read_link() {
                Ok(target) => at = parent.join(target),
                Err(_) => return true,
            }
        }
        false
    }

    fn without(&self, directories: Vec<AbsPath>) -> Vec<AbsPath> {
        let is_free = |directory: &AbsPath| !self.holds(directory.as_path()) && !self.holds(real(directory).as_path());
        directories.into_iter().filter(is_free).collect()
    }

    pub(super) fn holds(&self, path: &Path) -> bool {
        self.0.iter().any(|apart| path.starts_with(apart.as_path()))
    }
}

/// With links resolved, as far as there is anything.
pub(super) fn real(path: &AbsPath) -> AbsPath {
    path.as_path().canonicalize().ok().and_then(|path| AbsPath::new(path).ok()).unwrap_or_else(|| path.clone())
}

fn directories(path: &OsStr) -> Vec<AbsPath> {
    std::env::split_paths(path).filter_map(|entry| AbsPath::new(entry).ok()).collect()
}

/// Asks the login shell for its search path; nothing when there is no shell, or it says nothing in time.
fn ask(env: &Env) -> Option<OsString> {
    let shell = AbsPath::new(env.variable("SHELL")?).ok()?;
    let mark = env.random::<16>().ok()?.iter().fold("pactify".to_owned(), |mut mark, byte| {
        // Writing to a string cannot fail.
        let _ = write!(mark, "{byte:02x}");
        mark
    });
    // Another shell prints it: between the login shell and that one there is only the environment, so that fish, whose
    // PATH is a list, and csh, whose words are its own, are asked like any other.
    let question = format!("/bin/sh -c 'printf \"\\n%s%s%s\\n\" {mark} \"$PATH\" {mark}'");
    let home = env.directories().home().clone();
    let folder = if home.as_path().is_dir() { home } else { AbsPath::new("/").ok()? };
    let environment = EnvPolicy::harness([""; 0]).filter(env.variables());
    let limits = Limits { deadline: PATIENCE, bytes: WORDS, overflow: Overflow::Cut };
    // csh and its kin take `-l` only alone; what they read without it is where their users set the path.
    let is_csh = shell.as_path().file_name().is_some_and(|name| name == "csh" || name == "tcsh");
    let login: &[&str] = if is_csh { &[] } else { &["-l"] };
    let invocation = Invocation::new(shell.clone(), folder, environment).args(login).args(["-c", &question]);
    match invocation.run(&[], &limits) {
        Ok(output) => between(&output.stdout.bytes, mark.as_bytes()),
        Err(error) => {
            tracing::info!(error = with_causes(&error), %shell, "the login shell does not say its search path");
            None
        }
    }
}

/// What stands between the two marks, on one line.
fn between(words: &[u8], mark: &[u8]) -> Option<OsString> {
    let told = words.split(|byte| *byte == b'\n').find_map(|line| line.strip_prefix(mark)?.strip_suffix(mark))?;
    (!told.is_empty()).then(|| OsStr::from_bytes(told).to_owned())
}

#[cfg(test)]
mod tests;
