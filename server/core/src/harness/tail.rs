//! The end of what a program says on standard error: what could explain a failure, bounded.

use std::collections::VecDeque;

use super::notices::one_line;
use crate::display::head;

const LINE_MAX: usize = 1024;
const LINES_MAX: usize = 24;
/// How many lines of it a failure quotes.
pub(crate) const QUOTED: usize = 6;

/// The last lines.
#[derive(Debug, Default)]
pub struct Tail(VecDeque<String>);

impl Tail {
    /// One more line; an older one may go for it.
    pub fn push(&mut self, line: &str) {
        if self.0.len() == LINES_MAX {
            self.0.pop_front();
        }
        self.0.push_back(head(line, LINE_MAX).to_owned());
    }

    /// All lines that are kept.
    pub fn text(&self) -> String {
        self.0.iter().map(String::as_str).collect::<Vec<_>>().join("\n")
    }

    /// What a failure quotes of it: one neutral line.
    pub fn quoted(&self) -> String {
        quoted(self.0.iter().map(String::as_str))
    }
}

/// The last lines that say something, as one neutral line: a program's last words are why it ended.
pub(crate) fn quoted<'a>(lines: impl Iterator<Item = &'a str>) -> String {
    let lines: Vec<_> = lines.map(str::trim).filter(|line| line.chars().any(char::is_alphanumeric)).collect();
    one_line(&lines[lines.len().saturating_sub(QUOTED)..].join(" · "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tail_is_bounded() {
        let mut tail = Tail::default();
        for n in 0..1000 {
            tail.push(&format!("{n} {}", "ä".repeat(5000)));
        }
        assert!(tail.text().len() <= LINES_MAX * (LINE_MAX + 1));
        assert!(tail.text().starts_with("976 "));
        assert!(tail.quoted().chars().count() <= 400);
    }

    #[test]
    fn a_failure_quotes_the_last_words() {
        let mut tail = Tail::default();
        tail.push("Traceback (most recent call last):");
        for n in 1..10 {
            tail.push(&format!("  File \"{n}.py\""));
        }
        tail.push("ConnectionError: refused");
        tail.push("---");
        assert!(tail.quoted().ends_with("ConnectionError: refused"), "{}", tail.quoted());
        assert!(!tail.quoted().contains("Traceback"));
    }
}
