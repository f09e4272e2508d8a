//! A captured result for use outside pactify: as a patch that `git apply` takes, or as a branch of the person's
//! repository.
//!
//! A branch is the one thing that is written into the person's repository besides keep-refs, and only on their command:
//! the result's objects go there as a pack, then a commit on the job's base, then the ref, which must not exist yet. A
//! base that is the job's own goes there, too: the branch then has the person's uncommitted work as a commit of its
//! own.

use pactify_core::job::{Base, RepositoryRecord};
use pactify_core::{AbsPath, ObjectId, RepoPath};

use super::Git;
use super::capture::MAX_FILE_BYTES;
use super::command::{Call, Place, Verb, unexpected};
use super::error::GitError;
use super::patch::Patch;

/// Who commits when the person has not told git their name.
const NOBODY: &[&str] = &["user.name=pactify", "user.email=pactify@localhost"];

impl Git {
    /// The patch from `base` to `result`, whatever its files hold; of one path only, if one is named.
    ///
    /// # Errors
    /// When the capture does not hold the result.
    pub fn patch(
        &self,
        capture: &AbsPath,
        base: &ObjectId,
        result: &ObjectId,
        only: Option<&RepoPath>,
    ) -> Result<Patch, GitError> {
        use std::os::unix::ffi::OsStringExt as _;
        let place = Place::Private { git_dir: capture, work_tree: None, index: None };
        let path = only.map(|path| std::ffi::OsString::from_vec(path.as_bytes().to_vec()));
        let call = Call::new(Verb::DiffTree, place)
            .args(["-r", "-p", "--binary", "--full-index", "--no-renames", "--no-ext-diff", "--no-textconv"])
            .args([base.as_str(), result.as_str(), "--"])
            .args(path)
            // A name that is no UTF-8 must not make its part of the patch none.
            .settings(&["core.quotePath=true"]);
        let objects = self.objects(capture, result)?;
        Patch::of(&self.run(&call)?, |id| objects.read(id, MAX_FILE_BYTES))
    }

    /// Makes the branch `name` of the person's repository: a commit with `result` on top of the job's base.
    ///
    /// # Errors
    /// [`GitError::BranchExists`] when there is such a branch, [`GitError::BranchRefused`] when the name is none.
    pub fn publish_branch(
        &self,
        capture: &AbsPath,
        repository: &RepositoryRecord,
        base: &Base,
        result: &ObjectId,
        name: &str,
        message: &str,
    ) -> Result<ObjectId, GitError> {
        let refused = |reason: String| GitError::BranchRefused { name: name.to_owned(), reason };
        let full = format!("refs/heads/{name}");
        let person = Place::Person(repository);
        self.try_run(&Call::new(Verb::CheckRefFormat, person).args(["--branch", name]))?
            .map_err(|_| refused("it is not a branch's name".to_owned()))?;

        let tip = Call::new(Verb::RevParse, person).args(["--verify", "--quiet", &format!("{full}^{{tree}}")]);
        if let Ok(tree) = self.try_run(&tip)? {
            let is_same = tree.trim_ascii() == result.as_str().as_bytes();
            return Err(GitError::BranchExists { name: name.to_owned(), is_same });
        }

        let private = Place::Private { git_dir: capture, work_tree: None, index: None };
        let wanted = format!("{result}\n{}\n^{}\n", base.commit, base.public_commit());
        let pack = Call::new(Verb::PackObjects, private).args(["--revs", "--stdout", "-q"]).input(wanted.into_bytes());
        let pack = self.run(&pack)?;
        self.run(&Call::new(Verb::UnpackObjects, person).args(["-q"]).input(pack))?;
        let commit = Call::new(Verb::CommitTree, person)
            .args([result.as_str(), "-p", base.commit.as_str()])
            .input(message.as_bytes().to_vec());
        let answer = match self.try_run(&commit)? {
            Ok(answer) => answer,
            Err(_) => self.run(&commit.settings(NOBODY))?,
        };
        let text = String::from_utf8_lossy(&answer);
        let commit: ObjectId =
            text.trim().parse().map_err(|_| unexpected(&Call::new(Verb::CommitTree, person), &answer))?;
        let nothing = "0".repeat(commit.as_str().len());
        let update = Call::new(Verb::UpdateRef, person).args([full.as_str(), commit.as_str(), nothing.as_str()]);
        self.try_run(&update)?.map_err(refused)?;
        Ok(commit)
    }
}
