//! Comments are as wide as code at the most: rustfmt leaves them as they are.

use super::Problem;
use crate::repository::Tree;

/// Columns, as in `rustfmt.toml`.
const MOST: usize = 120;

pub(super) fn check(tree: &Tree) -> Vec<Problem> {
    let mut problems = Vec::new();
    for file in tree.rust() {
        for (at, line) in (1..).zip(file.text.lines()) {
            let width = line.chars().count();
            if width > MOST && is_prose(line) {
                problems.push(Problem::new(
                    &file.path,
                    at,
                    format!("a comment of {width} columns; {MOST} is the most"),
                ));
            }
        }
    }
    problems
}

/// Whether this is a comment that can be broken: addresses and rows of tables can't.
fn is_prose(line: &str) -> bool {
    let Some(comment) = line.trim_start().strip_prefix("//") else { return false };
    !comment.contains("://") && !comment.trim_start_matches(['/', '!', ' ']).starts_with('|')
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::found;

    #[test]
    fn long_comments_are_found_and_what_cannot_be_broken_is_left() {
        for start in ["//! ", "/// ", "    // "] {
            let comment = |width: usize| format!("{start}{}\n", "ä".repeat(width - start.len()));
            assert_eq!(found(check, &[("a.rs", &comment(MOST))]), [""; 0], "{start}");
            let problem = format!("a.rs:1: a comment of {} columns; {MOST} is the most", MOST + 1);
            assert_eq!(found(check, &[("a.rs", &comment(MOST + 1))]), [problem], "{start}");
        }
        let long = "x ".repeat(MOST);
        for left in
            [format!("// https://example.invalid/{long}"), format!("//! | {long}|"), format!("let x = \"{long}\";")]
        {
            assert_eq!(found(check, &[("a.rs", &left)]), [""; 0], "{left}");
        }
    }
}
