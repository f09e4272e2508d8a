//! From the folder that the person named to a repository's recorded facts, or to a refusal that says what to do.
//!
//! The only place that searches for a repository. Everything later uses the recorded directories.

use pactify_core::job::{Base, BaseKind, RepositoryRecord};
use pactify_core::{AbsPath, ObjectId};

use super::Git;
use super::command::{Call, Place, Verb, text_line, unexpected};
use super::error::GitError;

/// A repository in which a job can start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Examined {
    /// Where it is.
    pub repository: RepositoryRecord,
    /// What HEAD names now.
    pub head: Base,
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
        refuse_redirected(folder, &repository)?;
        let head = self.head(&repository)?;
        Ok(Examined { repository, head })
    }

    /// The repository around `folder`, where there is one with a checkout. Good to keep away from: unlike what
    /// [`Self::examine`] gives, a job may have chosen where its checkout is.
    pub fn around(&self, folder: &AbsPath) -> Option<RepositoryRecord> {
        let folder = canonical(folder).ok()?;
        self.refuse_inside_store(&folder).ok()?;
        self.locate(&folder).ok()
    }

    /// The git directory that every checkout of the repository around `folder` shares. It names the repository's jobs,
    /// and is known as well where no job could start: a job may have put into the configuration what [`Self::examine`]
    /// refuses.
    ///
    /// # Errors
    /// [`GitError::NoRepository`] and its kin.
    pub fn common_dir(&self, folder: &AbsPath) -> Result<AbsPath, GitError> {
        let folder = canonical(folder)?;
        self.refuse_inside_store(&folder)?;
        self.ask_for_path(&folder, "--git-common-dir")
    }

    fn refuse_inside_store(&self, folder: &AbsPath) -> Result<(), GitError> {
        let store = &self.surroundings.store;
        let store = canonical(store).unwrap_or_else(|_| store.clone());
        // Made by us for one job each, which belongs to nobody's repository.
        let is_probe = folder.as_path().starts_with(store.join(super::fresh::FOLDER).as_path());
        if folder.as_path().starts_with(store.as_path()) && !is_probe {
            return Err(GitError::InsideJob { folder: folder.clone() });
        }
        Ok(())
    }

    fn locate(&self, folder: &AbsPath) -> Result<RepositoryRecord, GitError> {
        let questions = ["--absolute-git-dir", "--git-common-dir", "--show-toplevel", "--show-prefix"];
        let answers = match self.ask(folder, &questions)? {
            Ok(answers) => answers,
            Err(message) if message.contains("must be run in a work tree") => {
                let git_dir = self.ask_for_path(folder, "--absolute-git-dir")?;
                return Err(GitError::Bare { git_dir });
            }
            Err(message) => return Err(refusal(folder, message)),
        };
        let [git_dir, common_dir, worktree, prefix] = answers.split('\n').collect::<Vec<_>>()[..] else {
            return self.locate_among_odd_names(folder);
        };
        Ok(RepositoryRecord {
            worktree: answered_path("--show-toplevel", worktree)?,
            git_dir: answered_path("--absolute-git-dir", git_dir)?,
            common_dir: answered_path("--git-common-dir", common_dir)?,
            prefix: prefix.trim_end_matches('/').to_owned(),
        })
    }

    /// The same, question by question: a name with a line break in it makes several answers one riddle.
    fn locate_among_odd_names(&self, folder: &AbsPath) -> Result<RepositoryRecord, GitError> {
        let prefix = self.ask(folder, &["--show-prefix"])?.map_err(|message| refusal(folder, message))?;
        Ok(RepositoryRecord {
            worktree: self.ask_for_path(folder, "--show-toplevel")?,
            git_dir: self.ask_for_path(folder, "--absolute-git-dir")?,
            common_dir: self.ask_for_path(folder, "--git-common-dir")?,
            prefix: prefix.trim_end_matches('/').to_owned(),
        })
    }

    fn ask_for_path(&self, folder: &AbsPath, question: &str) -> Result<AbsPath, GitError> {
        let answer = self.ask(folder, &[question])?.map_err(|message| refusal(folder, message))?;
        answered_path(question, &answer)
    }

    /// What git answers to `questions`, without the last line's end; or what it said when it refused.
    fn ask(&self, folder: &AbsPath, questions: &[&str]) -> Result<Result<String, String>, GitError> {
        let call = Call::new(Verb::RevParse, Place::Folder(folder)).args(["--path-format=absolute"]).args(questions);
        match self.try_run(&call)? {
            Ok(answer) => text_line(answer).map(Ok).map_err(|answer| unexpected(&call, &answer)),
            Err(message) => Ok(Err(message)),
        }
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
        Ok(Base { kind: BaseKind::Head, commit, tree, parent: None })
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

    /// The content of a file that a base has at its top; `None` where it has none, or not on this machine.
    ///
    /// # Errors
    /// When git cannot be run.
    pub fn tracked(&self, repository: &RepositoryRecord, base: &Base, name: &str) -> Result<Option<Vec<u8>>, GitError> {
        let input = format!("{}:{name}\n", base.tree).into_bytes();
        let call = Call::new(Verb::CatFile, Place::Person(repository)).args(["--batch"]).input(input);
        let answer = self.run(&call)?;
        let end = answer.iter().position(|byte| *byte == b'\n').ok_or_else(|| unexpected(&call, &answer))?;
        let header = String::from_utf8_lossy(&answer[..end]).into_owned();
        let size = match header.split(' ').collect::<Vec<_>>()[..] {
            [_, "blob", size] => size.parse::<usize>().map_err(|_| unexpected(&call, &answer[..end]))?,
            _ => return Ok(None),
        };
        let content = answer[end + 1..].get(..size).ok_or_else(|| unexpected(&call, &answer[..end]))?;
        Ok(Some(content.to_vec()))
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

/// Refuses a checkout that the folder is not in, and one that does not lead back to its repository: a job could have
/// put either into the configuration (threat T-09), and an apply would write there.
fn refuse_redirected(folder: &AbsPath, repository: &RepositoryRecord) -> Result<(), GitError> {
    let worktree = &repository.worktree;
    let leads_back = match std::fs::canonicalize(worktree.join(".git")) {
        Ok(link) if link.is_dir() => std::fs::canonicalize(&repository.git_dir).is_ok_and(|git_dir| git_dir == link),
        Ok(_) => true,
        Err(_) => false,
    };
    if leads_back && folder.as_path().starts_with(worktree) {
        return Ok(());
    }
    Err(GitError::Redirected { folder: folder.clone(), worktree: worktree.clone() })
}

fn answered_path(question: &str, answer: &str) -> Result<AbsPath, GitError> {
    let odd = |error: pactify_core::path::AbsPathError| GitError::Answer {
        command: format!("git rev-parse {question}"),
        answer: error.to_string(),
    };
    AbsPath::new(answer).map_err(odd)
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
