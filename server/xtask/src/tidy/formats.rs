//! Text is text: no blanks at the ends of lines, no tabs where people indent, one newline at the end.

use super::Problem;
use crate::repository::{SourceFile, Tree};

/// Files that are not ours to shape: recorded output, snapshots, what package managers write, licences.
const FOREIGN: [&str; 6] =
    ["/fixtures/", "/snapshots/", "package-lock.json", "Cargo.lock", "LICENSE", "requirements.txt"];

pub(super) fn check(tree: &Tree) -> Vec<Problem> {
    let mut problems = Vec::new();
    for file in tree.files.iter().filter(|file| is_ours(file)) {
        for (at, line) in (1..).zip(file.text.split('\n')) {
            if line.ends_with([' ', '\t', '\r']) {
                problems.push(Problem::new(&file.path, at, "ends in a blank"));
            }
            if line.starts_with('\t') && !file.path.ends_with(".lua") && !file.path.contains("/doc/") {
                problems.push(Problem::new(&file.path, at, "is indented by a tab"));
            }
        }
        if !file.text.ends_with('\n') || file.text.ends_with("\n\n") {
            problems.push(Problem::new(&file.path, 0, "must end in one newline"));
        }
    }
    problems
}

/// The file's text as it should be, if it differs in what needs no decision.
pub(super) fn mend(file: &SourceFile) -> Option<String> {
    if !is_ours(file) {
        return None;
    }
    let lines: Vec<&str> = file.text.lines().map(str::trim_end).collect();
    let mended = format!("{}\n", lines.join("\n").trim_end());
    (mended != file.text).then_some(mended)
}

fn is_ours(file: &SourceFile) -> bool {
    !file.text.is_empty() && !FOREIGN.iter().any(|part| file.path.contains(part))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::found;

    #[test]
    fn untidy_text_is_found_and_mended() {
        let bad = "one \n\ttwo\nthree\r\n\n\n";
        assert_eq!(
            found(check, &[("a.md", bad), ("b.md", "x"), ("tests/fixtures/c.md", bad)]),
            [
                "a.md:1: ends in a blank",
                "a.md:2: is indented by a tab",
                "a.md:3: ends in a blank",
                "a.md: must end in one newline",
                "b.md: must end in one newline",
            ]
        );
        let file = SourceFile { path: "a.md".to_owned(), text: bad.to_owned() };
        assert_eq!(mend(&file).as_deref(), Some("one\n\ttwo\nthree\n"));
        let tidy = SourceFile { path: "a.md".to_owned(), text: "one\n".to_owned() };
        assert_eq!(mend(&tidy), None);
    }
}
