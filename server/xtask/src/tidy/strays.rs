//! Leftovers of work in progress, and lints that were silenced without a reason.

use super::Problem;
use crate::repository::Tree;

/// What is found, with what to do about it.
const STRAYS: [(&str, &str); 8] = [
    ("#[allow(", "use #[expect(…, reason = \"…\")]"),
    ("#![allow(", "use #![expect(…, reason = \"…\")]"),
    ("#[ignore", "a test that doesn't run is no test"),
    ("dbg!(", "it was for looking"),
    ("todo!(", "finish it"),
    ("TODO", "do it, or open an issue"),
    ("FIXME", "fix it, or open an issue"),
    ("XXX", "say it in words"),
];

pub(super) fn check(tree: &Tree) -> Vec<Problem> {
    let mut problems = Vec::new();
    let scripts = tree.below("editors/", ".ts").chain(tree.below("editors/", ".lua"));
    // This file names them all.
    for file in tree.rust().chain(scripts).filter(|file| !file.path.ends_with("tidy/strays.rs")) {
        for (at, line) in (1..).zip(file.text.lines()) {
            for (stray, instead) in STRAYS.iter().filter(|(stray, _)| line.contains(stray)) {
                problems.push(Problem::new(&file.path, at, format!("`{stray}`: {instead}")));
            }
        }
    }
    problems
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::found;

    #[test]
    fn each_stray_is_found() {
        for (stray, _) in STRAYS {
            let text = format!("//! A module.\n    {stray}x)]\n");
            assert!(found(check, &[("a/x.rs", &text)])[0].starts_with(&format!("a/x.rs:2: `{stray}`")), "{stray}");
        }
        assert_eq!(found(check, &[("a/x.rs", "#[expect(dead_code, reason = \"yes\")]\n")]), [""; 0]);
    }
}
