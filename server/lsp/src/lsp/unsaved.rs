//! Telling every pactify process which files hold unsaved text here. Pure, but for [`differs`].
//!
//! One publication is under way at a time, and the newest set of paths follows it; an apply waits until
//! everything that was known when it was asked for is out.

use std::collections::BTreeSet;

use pactify_core::{AbsPath, Failure};
use tokio::sync::oneshot;

use super::brief::read_file;
use super::documents::{Comparison, is_same_text};

/// Larger files are taken for saved.
const MAX_COMPARED: usize = 8 << 20;

/// What is published, and who waits for it.
#[derive(Debug)]
pub(super) struct Unsaved {
    /// What every process can see; `None` when that is not known.
    published: Option<BTreeSet<AbsPath>>,
    under_way: Option<BTreeSet<AbsPath>>,
    comparisons: usize,
    waiting: Vec<oneshot::Sender<Result<(), Failure>>>,
}

impl Default for Unsaved {
    fn default() -> Self {
        Self { published: Some(BTreeSet::new()), under_way: None, comparisons: 0, waiting: Vec::new() }
    }
}

impl Unsaved {
    /// A text is being compared with its file.
    pub(super) fn comparing(&mut self) {
        self.comparisons += 1;
    }

    /// It was.
    pub(super) fn compared(&mut self) {
        self.comparisons = self.comparisons.saturating_sub(1);
    }

    /// Answers `reply` once everything is published. Call [`Self::next`] after it.
    pub(super) fn wait(&mut self, reply: oneshot::Sender<Result<(), Failure>>) {
        self.waiting.push(reply);
    }

    /// What to publish now, if anything, when `wanted` is unsaved.
    pub(super) fn next(&mut self, wanted: BTreeSet<AbsPath>) -> Option<BTreeSet<AbsPath>> {
        if self.under_way.is_some() {
            return None;
        }
        if self.published.as_ref() != Some(&wanted) {
            self.under_way = Some(wanted.clone());
            return Some(wanted);
        }
        if self.comparisons == 0 {
            self.answer(&Ok(()));
        }
        None
    }

    /// The publication under way is done. Says whether another one may be due; after a failure that waits for the
    /// next edit or question.
    pub(super) fn published(&mut self, outcome: Result<(), Failure>) -> bool {
        let paths = self.under_way.take();
        match outcome {
            Ok(()) => {
                self.published = paths;
                true
            }
            Err(failure) => {
                tracing::warn!(%failure, "unsaved files cannot be published");
                self.published = None;
                self.answer(&Err(failure));
                false
            }
        }
    }

    fn answer(&mut self, outcome: &Result<(), Failure>) {
        for reply in self.waiting.drain(..) {
            // Whoever waited may have been cancelled.
            let _ = reply.send(outcome.clone());
        }
    }
}

/// Whether an opened text differs from its file. A file that is missing was deleted under its text or never written,
/// so the text is nowhere else; one that cannot be read as a file is left to the apply, which looks again.
pub(super) fn differs(comparison: &Comparison) -> bool {
    match read_file(&comparison.path, MAX_COMPARED + 1) {
        Ok(file) if file.len() > MAX_COMPARED => false,
        Ok(file) => !is_same_text(&file, &comparison.text),
        Err(error) => error.kind() == std::io::ErrorKind::NotFound && !comparison.text.is_empty(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paths(names: &[&str]) -> BTreeSet<AbsPath> {
        names.iter().map(|name| AbsPath::new(*name).unwrap()).collect()
    }

    #[test]
    fn one_publication_at_a_time_and_the_newest_follows() {
        let mut unsaved = Unsaved::default();
        assert_eq!(unsaved.next(paths(&[])), None);
        assert_eq!(unsaved.next(paths(&["/a"])), Some(paths(&["/a"])));
        assert_eq!(unsaved.next(paths(&["/a", "/b"])), None, "the first is under way");
        assert!(unsaved.published(Ok(())));
        assert_eq!(unsaved.next(paths(&["/a", "/b"])), Some(paths(&["/a", "/b"])));
        assert!(unsaved.published(Ok(())));
        assert_eq!(unsaved.next(paths(&["/a", "/b"])), None);
    }

    #[test]
    fn a_waiter_is_answered_when_all_is_out() {
        let mut unsaved = Unsaved::default();
        let (reply, mut answer) = oneshot::channel();
        unsaved.comparing();
        unsaved.wait(reply);
        unsaved.next(paths(&[]));
        assert!(answer.try_recv().is_err(), "a comparison is open");
        unsaved.compared();
        unsaved.next(paths(&["/a"]));
        assert!(answer.try_recv().is_err(), "a publication is under way");
        unsaved.published(Ok(()));
        unsaved.next(paths(&["/a"]));
        assert_eq!(answer.try_recv().unwrap(), Ok(()));
    }

    #[test]
    fn a_failure_is_told_and_the_next_question_tries_again() {
        let mut unsaved = Unsaved::default();
        let (reply, mut answer) = oneshot::channel();
        unsaved.next(paths(&["/a"]));
        unsaved.wait(reply);
        assert!(!unsaved.published(Err(Failure::internal("no space"))));
        assert!(answer.try_recv().unwrap().is_err());
        assert_eq!(unsaved.next(paths(&["/a"])), Some(paths(&["/a"])));
    }

    #[test]
    fn what_was_opened_is_compared_with_the_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = AbsPath::new(folder.path().join("a.rs")).unwrap();
        let comparison = |text: &str| Comparison { path: path.clone(), opening: 1, text: text.to_owned() };
        assert!(differs(&comparison("x")), "no such file");
        assert!(!differs(&comparison("")), "a new, empty buffer");
        std::fs::write(&path, "x\n").unwrap();
        assert!(!differs(&comparison("x\n")));
        assert!(differs(&comparison("y\n")));
    }
}
