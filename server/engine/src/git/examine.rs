//! From the folder that the person named to a repository's recorded facts, or to a refusal that says what to do.
//!
//! The only place that searches for a repository. Everything later uses the recorded directories.

use pactify_core::job::{Base, BaseKind, RepositoryRecord};
use pactify_core::{AbsPath, ObjectId};

use super::Git;
use super::command::{Call, Place, Verb, text_line, unexpected};
use super::config::Settings;
use super::error::GitError;

/// A repository in which a job can start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Examined {
    /// Where it is.
    pub repository: RepositoryRecord,
    /// What HEAD names now.
    pub head: Base,
    /// The branch that HEAD is on; `None` when it is detached.
    pub branch: Option<String>,
    /// What is unusual about it.
    pub features: Features,
}

/// What decides which tool can read a repository, and what a job's tree will lack.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "five independent facts of git's own")]
pub struct Features {
    /// Objects are named by SHA-256.
    pub sha256: bool,
    /// Refs are in a reftable.
    pub reftable: bool,
    /// Objects may be missing, to be fetched when they are needed.
    pub partial_clone: bool,
    /// The checkout holds some of the files only.
    pub sparse: bool,
    /// History is cut off.
    pub shallow: bool,
}

impl Git {
    /// Looks at the repository that `folder` is in.
    ///
    /// # Errors
    /// One variant of [`GitError`] for each reason why no job can start there.
    pub fn examine(&self, folder: &AbsPath) -> Result<Examined, GitError> {
        let folder = &canonical(folder)?;
        self.refuse_inside_store(folder)?;
        let repository = self.locate(folder)?;
        let place = Place::Person(&repository);
        let features = features(&self.settings(place)?, self.is_shallow(place)?);
        let head = self.head(&repository)?;
        let branch = self.branch(place)?.and_then(|name| name.strip_prefix("refs/heads/").map(str::to_owned));
        Ok(Examined { head, branch, features, repository })
    }

    fn refuse_inside_store(&self, folder: &AbsPath) -> Result<(), GitError> {
        let store = &self.surroundings.store;
        let store = canonical(store).unwrap_or_else(|_| store.clone());
        if folder.as_path().starts_with(store.as_path()) {
            return Err(GitError::InsideJob { folder: folder.clone() });
        }
        Ok(())
    }

    fn locate(&self, folder: &AbsPath) -> Result<RepositoryRecord, GitError> {
        let ask = |question: &str| {
            let call = Call::new(Verb::RevParse, Place::Folder(folder)).args(["--path-format=absolute", question]);
            let answer = self.try_run(&call)?.map_err(|message| refusal(folder, message))?;
            text_line(answer).map_err(|answer| unexpected(&call, &answer))
        };
        let path = |question| {
            let answer = ask(question)?;
            AbsPath::new(answer.as_str()).map_err(|error| GitError::Answer {
                command: format!("git rev-parse {question}"),
                answer: error.to_string(),
            })
        };
        let git_dir = path("--absolute-git-dir")?;
        if ask("--is-inside-work-tree")? != "true" {
            return Err(GitError::Bare { git_dir });
        }
        let prefix = ask("--show-prefix")?.trim_end_matches('/').to_owned();
        Ok(RepositoryRecord {
            worktree: path("--show-toplevel")?,
            git_dir,
            common_dir: path("--git-common-dir")?,
            prefix,
        })
    }

    fn is_shallow(&self, place: Place<'_>) -> Result<bool, GitError> {
        let call = Call::new(Verb::RevParse, place).args(["--is-shallow-repository"]);
        Ok(self.line(&call)? == "true")
    }

    /// The commit that HEAD names, with its tree.
    ///
    /// # Errors
    /// [`GitError::Unborn`], [`GitError::HeadNamesNothing`], [`GitError::ObjectsMissing`].
    pub fn head(&self, repository: &RepositoryRecord) -> Result<Base, GitError> {
        let place = Place::Person(repository);
        let Some(commit) = self.resolve(place, "HEAD^{commit}")? else {
            return Err(self.why_head_is_no_commit(repository)?);
        };
        let tree = self.resolve(place, &format!("{commit}^{{tree}}"))?;
        let tree = tree.ok_or_else(|| GitError::ObjectsMissing {
            repository: repository.common_dir.clone(),
            missing: vec![format!("the tree of commit {commit}")],
        })?;
        Ok(Base { kind: BaseKind::Head, commit, tree })
    }

    fn why_head_is_no_commit(&self, repository: &RepositoryRecord) -> Result<GitError, GitError> {
        let place = Place::Person(repository);
        if let Some(id) = self.resolve(place, "HEAD")? {
            let missing = vec![format!("commit {id}, which HEAD names,")];
            return Ok(GitError::ObjectsMissing { repository: repository.common_dir.clone(), missing });
        }
        let worktree = repository.worktree.clone();
        let target = self.branch(place)?.unwrap_or_else(|| "no branch and no commit".to_owned());
        let others = Call::new(Verb::ForEachRef, place).args(["--count=1", "--format=%(refname)", "refs/heads"]);
        Ok(match self.run(&others)?.is_empty() {
            true => GitError::Unborn { worktree },
            false => GitError::HeadNamesNothing { worktree, target },
        })
    }

    /// The ref that HEAD stands for.
    fn branch(&self, place: Place<'_>) -> Result<Option<String>, GitError> {
        let call = Call::new(Verb::SymbolicRef, place).args(["--quiet", "HEAD"]);
        Ok(self.try_run(&call)?.ok().and_then(|answer| text_line(answer).ok()))
    }

    /// The object that `expression` names, if it names one that exists.
    pub(super) fn resolve(&self, place: Place<'_>, expression: &str) -> Result<Option<ObjectId>, GitError> {
        let call = Call::new(Verb::RevParse, place).args(["--verify", "--quiet", "--end-of-options", expression]);
        match self.try_run(&call)? {
            Ok(answer) => {
                let line = text_line(answer).map_err(|answer| unexpected(&call, &answer))?;
                line.parse().map(Some).map_err(|_| unexpected(&call, line.as_bytes()))
            }
            Err(_) => Ok(None),
        }
    }
}

fn features(settings: &Settings, shallow: bool) -> Features {
    let promisor = |key: &str| key.starts_with("remote.") && key.ends_with(".promisor") && settings.is_on(key);
    Features {
        sha256: settings.get("extensions.objectformat") == Some("sha256"),
        reftable: settings.get("extensions.refstorage").is_some_and(|format| format.starts_with("reftable")),
        partial_clone: settings.get("extensions.partialclone").is_some() || settings.keys().any(promisor),
        sparse: settings.is_on("core.sparsecheckout"),
        shallow,
    }
}

/// The folder without symbolic links, as git will name it.
fn canonical(folder: &AbsPath) -> Result<AbsPath, GitError> {
    let resolved = std::fs::canonicalize(folder).map_err(GitError::io("open the folder", folder.as_path()))?;
    Ok(AbsPath::new(resolved).unwrap_or_else(|_| folder.clone()))
}

/// What git's refusal to find a repository means. Its messages are in English: `LC_ALL` is `C`.
fn refusal(folder: &AbsPath, message: String) -> GitError {
    let folder = folder.clone();
    if message.contains("detected dubious ownership") {
        GitError::DubiousOwnership { folder, message }
    } else if message.contains("repository version")
        || message.contains("repository extension")
        || message.contains("repo version")
        || message.contains("object format")
        || message.contains("unknown value for 'extensions.")
    {
        GitError::Unsupported { folder, message }
    } else if message.contains("not a git repository") || message.contains("invalid gitfile format") {
        GitError::NoRepository { folder }
    } else {
        GitError::Failed { command: "git rev-parse".to_owned(), message }
    }
}
