//! The end of what a program says on standard error: what could explain a failure, bounded.

use std::collections::VecDeque;

use super::notices::one_line;
use crate::display::head;

const LINE_MAX: usize = 1024;
const LINES_MAX: usize = 24;
/// How many lines of it a failure quotes.
const QUOTED: usize = 6;

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
        let lines = self.0.iter().map(|line| line.trim()).filter(|line| line.chars().any(char::is_alphanumeric));
        one_line(&lines.take(QUOTED).collect::<Vec<_>>().join(" · "))
    }
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
}
