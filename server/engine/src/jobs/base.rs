//! What a new job starts from: the commit that HEAD names, the checkout as it is, or that with an editor's unsaved
//! text.
//!
//! Decided and, where it is more than a commit, taken in while the person waits: later edits have no part in it.

use pactify_core::job::{Base, BaseKind, Isolation, RepositoryRecord};
use pactify_core::{AbsPath, Failure, FailureCode, RepoPath, display};

use super::Jobs;
use crate::apply::unsaved::{name_in_checkout, unsaved, unsaved_elsewhere};
use crate::git::{Buffer, Examined, Places, Snapshot, Source};
use crate::store::Draft;

/// How many files one notice names.
const NAMED: usize = 5;

/// The unsaved text of one document of this process's editor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnsavedText {
    /// The file that it would be saved to.
    pub path: AbsPath,
    /// The text; `None` where it is too long to be kept.
    pub text: Option<String>,
}

/// Refuses what can be told without looking at anything. `has_editor` says whether unsaved text is known here.
pub(super) fn refuse(kind: BaseKind, isolation: Isolation, has_editor: bool) -> Result<(), Failure> {
    if kind != BaseKind::Head && isolation == Isolation::Linked {
        return Err(Failure::new(
            FailureCode::InvalidParams,
            "a linked worktree shares the repository's objects, where uncommitted work has no place",
            "use the isolation `private`, or the base `head`",
        ));
    }
    if kind == BaseKind::Buffers && !has_editor {
        return Err(Failure::new(
            FailureCode::InvalidParams,
            "base: unsaved text is known only to the editor that holds it",
            "say `workingTree` for what is saved, or start the job from the editor",
        ));
    }
    Ok(())
}

impl Jobs {
    /// What the job of `draft` starts from, and what is to be said about it.
    pub(super) fn base(
        &self,
        draft: &Draft,
        examined: &Examined,
        kind: BaseKind,
        texts: &[UnsavedText],
    ) -> Result<Snapshot, Failure> {
        let Examined { repository, head } = examined;
        let source = match kind {
            BaseKind::Head => return Ok(Snapshot { base: Base { kind, ..head.clone() }, notices: Vec::new() }),
            BaseKind::WorkingTree => {
                let left_out = unsaved(self.store(), repository)?;
                let notices = about(&left_out, "unsaved text is not part of the job").into_iter().collect();
                Source { kind, buffers: Vec::new(), notices }
            }
            BaseKind::Buffers => self.with_buffers(repository, texts)?,
        };
        Ok(self.git()?.snapshot(&Places::from(draft.job()), repository, head, &source)?)
    }

    fn with_buffers(&self, repository: &RepositoryRecord, texts: &[UnsavedText]) -> Result<Source, Failure> {
        let (mut buffers, mut unknown, mut outside) = (Vec::new(), Vec::new(), 0_u64);
        for UnsavedText { path, text } in texts {
            match (name_in_checkout(path, repository)?, text) {
                (None, _) => outside += 1,
                (Some(path), None) => unknown.push(path),
                (Some(path), Some(text)) => buffers.push(Buffer { path, text: text.clone() }),
            }
        }
        buffers.sort_by(|one, other| one.path.cmp(&other.path));
        // Two documents of one file are one document under two names.
        buffers.dedup_by(|one, other| one.path == other.path);
        let elsewhere = unsaved_elsewhere(self.store(), repository)?;
        let elsewhere = elsewhere.into_iter().filter(|path| buffers.iter().all(|buffer| buffer.path != *path));
        let notices = [
            about(&unknown, "unsaved text is too long to be part of the job"),
            about(&elsewhere.collect::<Vec<_>>(), "unsaved text of other editors is not part of the job"),
            (outside > 0).then(|| {
                format!(
                    "unsaved text outside of the repository is not part of the job: {}",
                    display::counted(outside, "file")
                )
            }),
        ];
        Ok(Source { kind: BaseKind::Buffers, buffers, notices: notices.into_iter().flatten().collect() })
    }
}

fn about(paths: &[RepoPath], what: &str) -> Option<String> {
    let named: Vec<String> =
        paths.iter().take(NAMED).map(|path| display::neutral(&path.display()).into_owned()).collect();
    let more = if paths.len() > NAMED { ", …" } else { "" };
    (!paths.is_empty()).then(|| format!("{what}: {}{more}", named.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_is_refused_with_a_way_out() {
        use BaseKind::{Buffers, Head, WorkingTree};
        for (kind, isolation, has_editor, way_out) in [
            (Head, Isolation::Linked, false, None),
            (WorkingTree, Isolation::Private, false, None),
            (Buffers, Isolation::Private, true, None),
            (WorkingTree, Isolation::Linked, true, Some("private")),
            (Buffers, Isolation::Linked, true, Some("private")),
            (Buffers, Isolation::Private, false, Some("workingTree")),
        ] {
            let refused = refuse(kind, isolation, has_editor).err().map(|failure| failure.next);
            assert_eq!(refused.is_some(), way_out.is_some(), "{kind:?} {isolation:?} {has_editor}");
            assert!(refused.unwrap_or_default().contains(way_out.unwrap_or_default()));
        }
    }
}
