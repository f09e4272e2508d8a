//! The one file that all jobs of a repository change: each a line of its own choice, so that applies are merges, and
//! conflicts where two chose the same or neighbours.

/// Where it is in each repository.
pub(super) const SHARED: &str = "shared.txt";

/// How many lines it has.
pub(super) const LINES: usize = 80;

/// A line of it, as one job makes it: no other job makes the same.
#[derive(Clone, Debug)]
pub(super) struct Edit {
    pub(super) line: usize,
    pub(super) text: String,
}

impl Edit {
    /// Whether a text has it.
    pub(super) fn is_in(&self, text: &str) -> bool {
        text.lines().nth(self.line) == Some(&self.text)
    }
}

/// Its text with these edits.
pub(super) fn text<'e>(edits: impl IntoIterator<Item = &'e Edit>) -> String {
    let mut lines: Vec<String> = (0..LINES).map(|line| format!("line {line}")).collect();
    for edit in edits {
        lines[edit.line].clone_from(&edit.text);
    }
    lines.iter().map(|line| format!("{line}\n")).collect()
}
