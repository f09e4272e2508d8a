//! What a person is told of a [`GitError`]: a code, a sentence with every cause, a next step.

use std::io;

use pactify_core::display::neutral;
use pactify_core::{Failure, FailureCode};

use super::{GitError, Stage};
use crate::causes::with_causes;

/// What a person can do.
enum Next {
    /// This, and that is all.
    Only(&'static str),
    /// This, and then what failed once more.
    AndAgain(&'static str),
}

impl GitError {
    /// As it is told to people, when it happened during `stage`.
    pub fn into_failure(self, stage: Stage) -> Failure {
        let (code, next) = self.code_and_next();
        let code = match (code, stage) {
            (FailureCode::GitFailed, Stage::Prepare) => FailureCode::WorktreeCreateFailed,
            (FailureCode::GitFailed, Stage::Capture) => FailureCode::CaptureFailed,
            (code, _) => code,
        };
        Failure::new(code, neutral(&with_causes(&self)), next.told(stage))
    }

    fn is_out_of_space(&self) -> bool {
        const TEXT: &str = "No space left on device";
        match self {
            Self::NoSpace { .. } => true,
            Self::Io { source, .. } => {
                matches!(source.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
            }
            Self::Failed { message, .. } => message.contains(TEXT) || message.contains("Disk quota exceeded"),
            Self::Objects { source, .. } => source.message().contains(TEXT),
            _ => false,
        }
    }

    fn code_and_next(&self) -> (FailureCode, Next) {
        use FailureCode as C;
        if self.is_out_of_space() {
            return (C::NoSpace, Next::AndAgain("free some space on that file system"));
        }
        let (code, next) = match self {
            Self::Missing(_) => (C::GitMissing, "install git, or put it on the PATH that the editor starts with"),
            Self::TooOld { .. } => (C::GitTooOld, "install a newer git, and put it first on PATH"),
            Self::NotGit { .. } => (C::GitFailed, "put a real git first on PATH"),
            Self::NoRepository { .. } => {
                (C::NoRepository, "open a folder of a git repository, or run `git init` there")
            }
            Self::InsideJob { .. } => (C::RefusedInsideJob, "open the repository that the job was made from"),
            Self::Bare { .. } => (C::BareRepository, "open a checkout of it (`git worktree add` makes one)"),
            Self::DubiousOwnership { .. } => {
                (C::UnsupportedRepository, "run the `git config` command of the message if you trust the repository")
            }
            Self::Unsupported { .. } => (C::UnsupportedRepository, "install a git that knows this repository's format"),
            Self::Redirected { .. } => (
                C::UnsupportedRepository,
                "run `git config --unset core.worktree` in it, or open the folder that it names if you want that",
            ),
            Self::Unborn { .. } => (C::UnbornHead, "make a first commit; an empty one is enough"),
            Self::HeadNamesNothing { .. } => (C::HeadNamesNothing, "check out a branch that exists"),
            Self::ObjectsMissing { .. } => (
                C::ObjectsMissing,
                "run `git fsck`, or fetch what is missing (`git fetch --refetch`, `git checkout .`)",
            ),
            Self::LfsContentMissing { .. } => {
                (C::ObjectsMissing, "get the content in your checkout (`git lfs fetch`), or leave the file out")
            }
            Self::CheckoutUnreadable { .. } => (
                C::GitFailed,
                "make it readable, or have git ignore it; or start the job from `head`, without uncommitted changes",
            ),
            Self::CheckoutRestless { .. } => {
                (C::GitFailed, "let what writes there finish, then try again; or start the job from `head`")
            }
            Self::ObjectTooLarge { .. } => (C::InvalidParams, "look at the file in the job's tree instead"),
            Self::BranchExists { is_same: true, .. } => {
                (C::InvalidParams, "use it as it is, or give the new branch another name")
            }
            Self::BranchExists { is_same: false, .. } => (
                C::InvalidParams,
                "give the new branch another name (`--branch NAME`), or delete the old one first (`git branch -D`)",
            ),
            Self::BranchRefused { .. } => (C::InvalidParams, "choose another name for the branch"),
            Self::ProofOfAnotherJob { .. } => (C::Internal, "run `pactify sub doctor`"),
            Self::RecordDamaged { .. } => {
                (C::StoreDamaged, "save what you need from the job's tree, then discard the job")
            }
            Self::TreeReplaced { .. } => {
                (C::CaptureFailed, "look at the directory yourself; pactify will not touch it")
            }
            Self::Io { .. }
            | Self::Objects { .. }
            | Self::NotPopulated { .. }
            | Self::Failed { .. }
            | Self::NoSpace { .. } => return (C::GitFailed, Next::AndAgain("repair what the message names")),
            Self::Run { .. } | Self::Answer { .. } => {
                (C::GitFailed, "try again; run `pactify sub doctor` if it happens again")
            }
        };
        (code, Next::Only(next))
    }
}

impl Next {
    fn told(self, stage: Stage) -> String {
        match (self, stage) {
            (Self::Only(next), _) => next.to_owned(),
            // Nobody can end the harness's turn once more; its tree can be captured once more.
            (Self::AndAgain(first), Stage::Capture) => {
                format!("{first}, then run `pactify sub cancel` on the job: its tree is captured then")
            }
            (Self::AndAgain(first), Stage::Prepare | Stage::Other) => format!("{first}, then try again"),
        }
    }
}

impl From<GitError> for Failure {
    fn from(error: GitError) -> Self {
        error.into_failure(Stage::Other)
    }
}

#[cfg(test)]
mod tests {
    use pactify_core::AbsPath;

    use super::*;
    use crate::git::Version;

    fn path() -> AbsPath {
        AbsPath::new("/repo").unwrap()
    }

    #[test]
    fn every_refusal_has_a_code_of_its_own_and_names_the_thing() {
        let old = Version::parse("git version 2.30.1").unwrap();
        for (error, code, words) in [
            (
                GitError::TooOld { program: AbsPath::new("/bin/git").unwrap(), found: old },
                FailureCode::GitTooOld,
                ["/bin/git", "2.30.1", "2.38.0"],
            ),
            (GitError::NoRepository { folder: path() }, FailureCode::NoRepository, ["/repo", "git", "repository"]),
            (GitError::Unborn { worktree: path() }, FailureCode::UnbornHead, ["/repo", "no commit", "yet"]),
            (
                GitError::ObjectsMissing { repository: path(), missing: ["a", "b", "c", "d"].map(String::from).into() },
                FailureCode::ObjectsMissing,
                ["a, b, c", "1 more", "/repo"],
            ),
            (
                GitError::Failed { command: "git read-tree".into(), message: "x: No space left on device".into() },
                FailureCode::NoSpace,
                ["git read-tree", "No space", "device"],
            ),
        ] {
            let failure = Failure::from(error);
            assert_eq!(failure.code, code, "{failure:?}");
            assert!(words.iter().all(|word| failure.message.contains(word)), "{failure:?}");
        }
    }

    #[test]
    fn the_kernel_s_answer_reaches_the_person_and_the_stage_gives_the_code() {
        let denied = || GitError::io("create", "/repo/x")(io::ErrorKind::PermissionDenied.into());
        let failure = denied().into_failure(Stage::Prepare);
        assert_eq!(
            (failure.code, failure.message.as_str()),
            (FailureCode::WorktreeCreateFailed, "cannot create /repo/x: permission denied")
        );
        assert_eq!(denied().into_failure(Stage::Capture).code, FailureCode::CaptureFailed);
        let full = GitError::io("write", "/repo/x")(io::ErrorKind::StorageFull.into());
        assert_eq!(full.into_failure(Stage::Prepare).code, FailureCode::NoSpace);
        let full = GitError::io("write", "/repo/x")(io::ErrorKind::StorageFull.into()).into_failure(Stage::Capture);
        assert_eq!(full.code, FailureCode::NoSpace);
        for failure in [full, denied().into_failure(Stage::Capture)] {
            assert!(
                failure.next.contains("`pactify sub cancel`") && !failure.next.contains("try again"),
                "{failure:?}"
            );
        }
    }
}
