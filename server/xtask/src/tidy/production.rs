//! The part of the Rust sources that becomes the product: without comments, without what only tests compile.

use std::collections::BTreeSet;

use crate::repository::{SourceFile, Tree};

/// What begins code that only tests compile.
const FOR_TESTS: &str = "#[cfg(test)]";

/// The sources below `folder` that aren't modules of tests.
pub(super) fn sources<'a>(tree: &'a Tree, folder: &'a str) -> Vec<&'a SourceFile> {
    let tests: BTreeSet<String> = tree.below(folder, ".rs").flat_map(test_modules).collect();
    let is_product = |file: &&SourceFile| {
        let stem = file.path.trim_end_matches(".rs");
        !stem.match_indices('/').map(|(at, _)| &stem[..at]).chain([stem]).any(|above| tests.contains(above))
    };
    tree.below(folder, ".rs").filter(is_product).collect()
}

/// The file's code, line by line with its number (from 1).
pub(super) fn lines(file: &SourceFile) -> impl Iterator<Item = (usize, &str)> {
    let mut is_for_tests = false;
    (1..).zip(file.text.lines()).filter(move |(_, line)| {
        is_for_tests |= *line == FOR_TESTS;
        let is_product = !is_for_tests && !line.trim_start().starts_with("//");
        // An item ends where something that isn't indented closes it.
        is_for_tests &= !(*line == "}" || (line.ends_with(';') && !line.starts_with(' ')));
        is_product
    })
}

/// The modules (as paths without `.rs`) that this file declares for tests only.
fn test_modules(file: &SourceFile) -> Vec<String> {
    let folder = match file.path.trim_end_matches(".rs") {
        stem if ["lib", "main", "mod"].iter().any(|root| stem.ends_with(&format!("/{root}"))) => {
            stem.rsplit_once('/').map_or("", |(folder, _)| folder)
        }
        stem => stem,
    };
    let pairs = file.text.lines().zip(file.text.lines().skip(1));
    let named = pairs.filter(|(attribute, _)| attribute.trim() == FOR_TESTS).filter_map(|(_, line)| {
        let (_, name) = line.trim().strip_suffix(';')?.split_once("mod ")?;
        Some(format!("{folder}/{name}"))
    });
    named.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tests_and_comments_are_left_out() {
        let tree = Tree::of([
            ("a/src/lib.rs".to_owned(), "// no\npub mod x;\n#[cfg(test)]\nmod y;\n".to_owned()),
            ("a/src/x.rs".to_owned(), "code\n    /// no\n#[cfg(test)]\nmod tests {\n    no;\n}\nmore\n".to_owned()),
            ("a/src/y.rs".to_owned(), "no\n".to_owned()),
            ("a/src/y/z.rs".to_owned(), "no\n".to_owned()),
        ]);
        let code: Vec<_> = sources(&tree, "a/src/").into_iter().flat_map(lines).collect();
        assert_eq!(code, [(2, "pub mod x;"), (1, "code"), (7, "more")]);
    }
}
