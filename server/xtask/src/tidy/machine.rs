//! No file names a place of the machine that it was written on.

use super::Problem;
use crate::repository::Tree;

/// Home and working folders. `/home/…` is not among them: examples need a home.
const PLACES: [&str; 4] = ["/root/", "/work/", "/Users/", "/mnt/c/"];

pub(super) fn check(tree: &Tree) -> Vec<Problem> {
    let mut problems = Vec::new();
    // This file names them all.
    for file in tree.files.iter().filter(|file| !file.path.ends_with("tidy/machine.rs")) {
        for (at, line) in (1..).zip(file.text.lines()) {
            if let Some(place) = PLACES.into_iter().find(|place| begins(line, place)) {
                problems.push(Problem::new(&file.path, at, format!("{place}… is a place of one machine")));
            }
        }
    }
    problems
}

/// Is this where a path begins, and not the middle of one?
fn begins(line: &str, place: &str) -> bool {
    let is_inner = |c: char| c.is_alphanumeric() || "./_-~}>)".contains(c);
    line.match_indices(place).any(|(at, _)| !line[..at].ends_with(is_inner))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::found;

    #[test]
    fn absolute_places_are_found_and_relative_ones_are_not() {
        let text = "cd /work/x\nuse sandbox/root/x, ../work/y and {root}/root/z\n\"file:///root/y\"\nPATH=/root/bin\n";
        // A URI's slashes are part of the path.
        assert_eq!(
            found(check, &[("a", text)]),
            ["a:1: /work/… is a place of one machine", "a:4: /root/… is a place of one machine",]
        );
    }
}
