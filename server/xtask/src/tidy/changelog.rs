//! The change log has a place for what the next release brings.

use super::Problem;
use crate::repository::Tree;

const FILE: &str = "CHANGELOG.md";

pub(super) fn check(tree: &Tree) -> Vec<Problem> {
    let text = tree.file(FILE).map_or("", |file| &file.text);
    let has_place = text.lines().any(|line| line == "## Unreleased");
    if has_place { Vec::new() } else { vec![Problem::new(FILE, 0, "has no heading `## Unreleased`")] }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::found;

    #[test]
    fn the_heading_is_missed() {
        assert_eq!(found(check, &[(FILE, "# Changelog\n\n## Unreleased\n")]), [""; 0]);
        for text in ["# Changelog\n\n## 1.0.0\n", "Unreleased"] {
            assert_eq!(found(check, &[(FILE, text)]), ["CHANGELOG.md: has no heading `## Unreleased`"]);
        }
        assert_eq!(found(check, &[]).len(), 1);
    }
}
