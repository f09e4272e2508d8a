//! Changed lines of one file.
//!
//! Groups of changed lines come from `similar`, for large sides with a deadline, so that degenerate input costs a
//! bounded time; on missing it, the diff is coarser and still right. What counts as text and how much is looked at is
//! decided here.

use std::time::{Duration, Instant};

use similar::{Algorithm, DiffOp, capture_diff_slices_deadline};

/// A file larger than this is shown by its size only.
pub const MAX_TEXT_BYTES: u64 = 4 << 20;

/// Both sides together, at most, where no deadline holds.
///
/// Myers' algorithm costs the square of the lines at worst. Measured with 2,000 lines a side that begin with the same
/// 120 bytes, in an optimized build: 26 ms where they repeat a hundred of them, 6 to 12 ms where they are shuffled,
/// reversed or two. That is a tenth of [`DEADLINE`].
const SMALL_LINES: usize = 4_000;
const SMALL_BYTES: usize = 512 << 10;

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

/// The runs of changed lines between two sides. After `deadline` the diff of large ones is finished coarsely.
///
/// This crate has no clock: the caller says when its [`DEADLINE`] is over.
pub fn groups(old: &[&str], new: &[&str], deadline: Option<Instant>) -> Vec<Group> {
    let ops = capture_diff_slices_deadline(Algorithm::Myers, old, new, unless_small(old, new, deadline));
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

/// `deadline`, for sides that are large enough to need one. Parts are named by their lines, and a name has to mean the
/// same in a preview and in the apply that follows, however long a machine stalls in between.
pub(super) fn unless_small<T: AsRef<str>>(old: &[T], new: &[T], deadline: Option<Instant>) -> Option<Instant> {
    let bytes = || old.iter().chain(new).map(|text| text.as_ref().len()).sum::<usize>();
    let is_small = old.len() + new.len() <= SMALL_LINES && bytes() <= SMALL_BYTES;
    deadline.filter(|_| !is_small)
}

/// The time that a caller should allow for one file.
pub const DEADLINE: Duration = Duration::from_millis(250);

/// Lines added and deleted by `groups`.
pub fn counts(groups: &[Group]) -> (u64, u64) {
    groups
        .iter()
        .fold((0, 0), |(added, deleted), group| (added + group.new.len() as u64, deleted + group.old.len() as u64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[expect(clippy::disallowed_methods, reason = "a deadline that is over is a time that was")]
    fn no_clock_changes_the_parts_of_what_is_small() {
        let over = Instant::now();
        for (count, width, is_exact) in [(2_000, 8, true), (2_001, 8, false), (1_000, 300, false)] {
            let text = |every: usize| -> String {
                (0..count).map(|n| format!("{:width$}\n", if n % 10 == 0 { n * every } else { n })).collect()
            };
            let (old, new) = (text(1), text(3));
            let (old, new) = (lines(&old), lines(&new));
            let exact = groups(&old, &new, None);
            assert!(exact.len() > 50, "{}", exact.len());
            assert_eq!(groups(&old, &new, Some(over)) == exact, is_exact, "{count} lines of {width}");
        }
    }
}
