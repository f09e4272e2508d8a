//! How git is started: the closed list of verbs, the environment and configuration of every call, its bounds.
//!
//! Nothing else starts git. A [`Verb`] exists only for what we do, so a network command cannot be expressed; what git
//! might do on its own is switched off: hooks (files and configured ones), fsmonitor, lazy fetches, maintenance,
//! prompts, transports, replacement objects. Where git runs says how much of the person's configuration it reads
//! ([`Place`]): nothing at all in git directories of ours.

use std::ffi::{OsStr, OsString};
use std::path::Path;
use std::time::Duration;

use pactify_core::AbsPath;
use pactify_core::display::{neutral, tail};
use pactify_core::job::RepositoryRecord;

use super::Git;
use super::error::GitError;
use crate::process::run::{Output, Overflow};
use crate::process::{ChildEnv, Invocation, Limits};

/// The git commands we use. Plumbing, except that only `worktree add` makes a linked worktree, and only `status`
/// compares a checkout with its ignore rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verb {
    CatFile,
    CheckAttr,
    CheckoutIndex,
    CheckRefFormat,
    CommitTree,
    Config,
    DiffTree,
    ForEachRef,
    HashObject,
    LsFiles,
    LsTree,
    PackObjects,
    ReadTree,
    Reflog,
    RevList,
    RevParse,
    Status,
    SymbolicRef,
    UnpackObjects,
    UpdateIndex,
    UpdateRef,
    WorktreeAdd,
    WriteTree,
}

/// Where git runs.
#[derive(Clone, Copy, Debug)]
pub(super) enum Place<'a> {
    /// In the folder that the person named: the only place from which a repository is searched for.
    Folder(&'a AbsPath),
    /// In the person's repository, by its recorded directories, under the person's configuration.
    Person(&'a RepositoryRecord),
    /// In a git directory of ours, under its own configuration and no other.
    Private {
        /// The git directory.
        git_dir: &'a AbsPath,
        /// The directory that stands for the checkout, for verbs that need one.
        work_tree: Option<&'a AbsPath>,
        /// The index, where it is not the git directory's own.
        index: Option<&'a AbsPath>,
    },
}

/// One call of git.
#[derive(Debug)]
pub(super) struct Call<'a> {
    verb: Verb,
    place: Place<'a>,
    settings: &'a [&'a str],
    arguments: Vec<OsString>,
    input: Vec<u8>,
    patience: Duration,
}

/// Enough for any answer that is a few words, and for one about every path of a large repository.
const MOST_BYTES: usize = 1 << 30;
const QUICK: Duration = Duration::from_secs(60);

/// Switched off on every call. Each event is named because configured hooks (git 2.54) ignore `core.hooksPath`.
const INERT: &[&str] = &[
    "core.hooksPath=/dev/null",
    "core.fsmonitor=false",
    "core.untrackedCache=false",
    "gc.auto=0",
    "maintenance.auto=false",
    "protocol.allow=never",
    "submodule.recurse=false",
    "hook.reference-transaction.enabled=false",
    "hook.post-checkout.enabled=false",
    "hook.post-index-change.enabled=false",
    "hook.pre-auto-gc.enabled=false",
    "hook.pre-commit.enabled=false",
    "hook.post-commit.enabled=false",
    "hook.post-merge.enabled=false",
    "hook.post-rewrite.enabled=false",
    "hook.fsmonitor-watchman.enabled=false",
    // Would write an extension into the person's configuration that older gits refuse.
    "worktree.useRelativePaths=false",
];

impl Verb {
    fn words(self) -> &'static [&'static str] {
        match self {
            Self::CatFile => &["cat-file"],
            Self::CheckAttr => &["check-attr"],
            Self::CheckoutIndex => &["checkout-index"],
            Self::CheckRefFormat => &["check-ref-format"],
            Self::CommitTree => &["commit-tree"],
            Self::Config => &["config"],
            Self::DiffTree => &["diff-tree"],
            Self::ForEachRef => &["for-each-ref"],
            Self::HashObject => &["hash-object"],
            Self::LsFiles => &["ls-files"],
            Self::LsTree => &["ls-tree"],
            Self::PackObjects => &["pack-objects"],
            Self::ReadTree => &["read-tree"],
            Self::Reflog => &["reflog"],
            Self::RevList => &["rev-list"],
            Self::RevParse => &["rev-parse"],
            Self::Status => &["status"],
            Self::SymbolicRef => &["symbolic-ref"],
            Self::UnpackObjects => &["unpack-objects"],
            Self::UpdateIndex => &["update-index"],
            Self::UpdateRef => &["update-ref"],
            Self::WorktreeAdd => &["worktree", "add"],
            Self::WriteTree => &["write-tree"],
        }
    }
}

impl<'a> Call<'a> {
    pub(super) fn new(verb: Verb, place: Place<'a>) -> Self {
        Self { verb, place, settings: &[], arguments: Vec::new(), input: Vec::new(), patience: QUICK }
    }

    pub(super) fn args(mut self, arguments: impl IntoIterator<Item = impl Into<OsString>>) -> Self {
        self.arguments.extend(arguments.into_iter().map(Into::into));
        self
    }

    /// Further settings for this call alone, as `key=value`.
    pub(super) fn settings(mut self, settings: &'a [&'a str]) -> Self {
        self.settings = settings;
        self
    }

    pub(super) fn input(mut self, input: Vec<u8>) -> Self {
        self.input = input;
        self
    }

    /// How long it may take, where [`QUICK`] is too short: for what writes a whole tree.
    pub(super) fn patience(mut self, patience: Duration) -> Self {
        self.patience = patience;
        self
    }

    fn name(&self) -> String {
        format!("git {}", self.verb.words().join(" "))
    }
}

impl Place<'_> {
    fn directory(self) -> AbsPath {
        match self {
            Self::Folder(folder) => folder.clone(),
            Self::Person(record) => record.worktree.clone(),
            Self::Private { git_dir, work_tree, .. } => work_tree.unwrap_or(git_dir).clone(),
        }
    }

    fn point(self, environment: &mut ChildEnv) {
        let mut set = |name: &str, value: &OsStr| {
            environment.set(name, value);
        };
        match self {
            Self::Folder(_) => {}
            Self::Person(record) => {
                set("GIT_DIR", path(&record.git_dir));
                set("GIT_COMMON_DIR", path(&record.common_dir));
                set("GIT_WORK_TREE", path(&record.worktree));
            }
            Self::Private { git_dir, work_tree, index } => {
                set("GIT_CONFIG_NOSYSTEM", OsStr::new("1"));
                set("GIT_CONFIG_SYSTEM", OsStr::new("/dev/null"));
                set("GIT_CONFIG_GLOBAL", OsStr::new("/dev/null"));
                set("GIT_ATTR_NOSYSTEM", OsStr::new("1"));
                set("GIT_DIR", path(git_dir));
                // Explicit, so that a planted `commondir` file means nothing.
                set("GIT_COMMON_DIR", path(git_dir));
                set("GIT_CEILING_DIRECTORIES", path(git_dir));
                if let Some(work_tree) = work_tree {
                    set("GIT_WORK_TREE", path(work_tree));
                }
                if let Some(index) = index {
                    set("GIT_INDEX_FILE", path(index));
                }
            }
        }
    }
}

impl Git {
    /// Runs `call` and returns its standard output, if git reports success.
    pub(super) fn run(&self, call: &Call<'_>) -> Result<Vec<u8>, GitError> {
        self.try_run(call)?.map_err(|message| GitError::Failed { command: call.name(), message })
    }

    /// Runs `call`, which looks at files of the person: one that may not be looked at is only a warning to git.
    pub(super) fn run_unhindered(&self, call: &Call<'_>) -> Result<Vec<u8>, GitError> {
        let output = self.output(call)?;
        let said = String::from_utf8_lossy(&output.stderr.bytes).into_owned();
        if !output.success() {
            return Err(GitError::Failed { command: call.name(), message: tail(said.trim(), 4096).to_owned() });
        }
        match said.lines().find(|line| is_hindrance(line)) {
            Some(line) => Err(GitError::CheckoutUnreadable { message: line.to_owned() }),
            None => Ok(output.stdout.bytes),
        }
    }

    /// Runs `call`: its standard output, or what git said when it refused.
    pub(super) fn try_run(&self, call: &Call<'_>) -> Result<Result<Vec<u8>, String>, GitError> {
        let output = self.output(call)?;
        if output.success() {
            return Ok(Ok(output.stdout.bytes));
        }
        let said = String::from_utf8_lossy(&output.stderr.bytes);
        let said = if said.trim().is_empty() { output.status.to_string() } else { said.into_owned() };
        Ok(Err(tail(said.trim(), 4096).to_owned()))
    }

    fn output(&self, call: &Call<'_>) -> Result<Output, GitError> {
        let mut environment = self.environment.clone();
        call.place.point(&mut environment);
        let invocation = Invocation::new(self.program.clone(), call.place.directory(), environment)
            .args(["--no-pager", "--literal-pathspecs", "--no-replace-objects"])
            .args(INERT.iter().chain(call.settings).flat_map(|setting| ["-c", setting]))
            .args(call.verb.words())
            .args(&call.arguments);
        let limits = Limits { deadline: call.patience, bytes: MOST_BYTES, overflow: Overflow::Fail };
        invocation.run(&call.input, &limits).map_err(|source| GitError::Run { command: call.name(), source })
    }

    /// Runs `call` and returns its answer as one line of text.
    pub(super) fn line(&self, call: &Call<'_>) -> Result<String, GitError> {
        let answer = self.run(call)?;
        text_line(answer).map_err(|answer| unexpected(call, &answer))
    }
}

/// Whether git says in this line that it could not look at something. Its messages are in English: `LC_ALL` is `C`.
fn is_hindrance(line: &str) -> bool {
    let causes = [": Permission denied", ": Input/output error", ": Operation not permitted", ": Stale file handle"];
    causes.iter().any(|cause| line.ends_with(cause))
}

/// An answer that is one line.
pub(super) fn text_line(mut answer: Vec<u8>) -> Result<String, Vec<u8>> {
    if answer.last() == Some(&b'\n') {
        answer.pop();
    }
    String::from_utf8(answer).map_err(std::string::FromUtf8Error::into_bytes)
}

/// The complaint about an answer that makes no sense.
pub(super) fn unexpected(call: &Call<'_>, answer: &[u8]) -> GitError {
    let shown = String::from_utf8_lossy(&answer[..answer.len().min(200)]);
    GitError::Answer { command: call.name(), answer: neutral(&shown).into_owned() }
}

/// What every call's environment starts from, on top of what the allow-list lets through.
pub(super) fn harden(environment: &mut ChildEnv) {
    for (name, value) in [
        ("LC_ALL", "C"),
        ("GIT_OPTIONAL_LOCKS", "0"),
        ("GIT_NO_LAZY_FETCH", "1"),
        ("GIT_TERMINAL_PROMPT", "0"),
        // Unlike `protocol.allow`, this wins over any `protocol.<name>.allow` of a configuration.
        ("GIT_ALLOW_PROTOCOL", ""),
        ("GIT_ADVICE", "0"),
    ] {
        environment.set(name, value);
    }
    environment.unset("LANGUAGE");
}

fn path(path: &AbsPath) -> &OsStr {
    let path: &Path = path.as_path();
    path.as_os_str()
}
