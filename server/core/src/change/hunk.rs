//! Changed lines of one file.
//!
//! Groups of changed lines come from `similar` with a deadline, so that degenerate input costs a bounded time; on
//! missing it, the diff is coarser and still right. What counts as text and how much is looked at is decided here.

use std::time::Duration;

use similar::{Algorithm, DiffOp, capture_diff_slices};

/// A file larger than this is shown by its size only.
pub const MAX_TEXT_BYTES: u64 = 4 << 20;

/// A run of changed lines, as half-open line ranges of both sides, counted from 0.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    /// Lines of the old side.
    pub old: std::ops::Range<usize>,
    /// Lines of the new side.
    pub new: std::ops::Range<usize>,
}

/// Whether `bytes` are shown as text: git's rule (no NUL in the first 8000 bytes), and valid UTF-8.
pub fn is_text(bytes: &[u8]) -> bool {
    !bytes[..bytes.len().min(8000)].contains(&0) && std::str::from_utf8(bytes).is_ok()
}

/// The lines of `text`, each with its line feed.
pub fn lines(text: &str) -> Vec<&str> {
    text.split_inclusive('\n').collect()
}

/// The runs of changed lines between two sides. After `deadline` the diff is finished coarsely.
///
/// This crate has no clock: the caller says when its [`DEADLINE`] is over.
pub fn groups(old: &[&str], new: &[&str], deadline: Option<std::time::Instant>) -> Vec<Group> {
    let ops = match deadline {
        Some(deadline) => similar::capture_diff_slices_deadline(Algorithm::Myers, old, new, Some(deadline)),
        None => capture_diff_slices(Algorithm::Myers, old, new),
    };
    let changed = ops.into_iter().filter(|op| !matches!(op, DiffOp::Equal { .. }));
    let mut groups: Vec<Group> = Vec::new();
    for op in changed {
        let (old, new) = (op.old_range(), op.new_range());
        match groups.last_mut() {
            Some(last) if last.old.end == old.start && last.new.end == new.start => {
                last.old.end = old.end;
                last.new.end = new.end;
            }
            _ => groups.push(Group { old, new }),
        }
    }
    groups
}

/// The time that a caller should allow for one file.
pub const DEADLINE: Duration = Duration::from_millis(250);

/// Lines added and deleted by `groups`.
pub fn counts(groups: &[Group]) -> (u64, u64) {
    groups
        .iter()
        .fold((0, 0), |(added, deleted), group| (added + group.new.len() as u64, deleted + group.old.len() as u64))
}
