//! What a job's tree has that is nowhere else: what goes for good when the tree goes.
//!
//! That is a turn which was not captured, and what the capture saw and left out. The tree itself is not looked at: a
//! capture said it, after everything of the job was dead. Where that cannot be told, the tree counts as one that has
//! something.

use pactify_core::change::Note;
use pactify_core::job::state::JobState;
use pactify_core::retention::Holds;

use super::preview::note;
use crate::causes::with_causes;
use crate::git::change_set;
use crate::job_dir::JobDir;

/// What goes with a tree.
#[derive(Debug, Default)]
pub(super) struct Left {
    /// The most of it.
    pub(super) holds: Holds,
    /// A sentence each.
    pub(super) told: Vec<String>,
}

impl Left {
    /// What is only in the tree of the job.
    pub(super) fn of(job: &JobDir, state: &JobState) -> Self {
        let mut left = Self::default();
        let has_tree = job.tree().as_path().symlink_metadata().is_ok();
        if !has_tree || state.tree.is_none() {
            return left;
        }
        if state.is_uncaptured {
            left.add(Holds::Work, "what the job did in its last turn is not captured".to_owned());
        }
        if state.result.is_some() {
            match change_set::notes(&job.capture()) {
                Ok(notes) => notes.iter().for_each(|note| left.add_note(note)),
                Err(error) => {
                    left.add(Holds::Work, format!("what was not captured is not known: {}", with_causes(&error)))
                }
            }
        }
        left
    }

    fn add_note(&mut self, of: &Note) {
        match Holds::of(of) {
            Holds::Nothing => {}
            holds => self.add(holds, note(of)),
        }
    }

    fn add(&mut self, holds: Holds, told: String) {
        self.holds = self.holds.max(holds);
        self.told.push(told);
    }
}
