//! Every module says what it is before anything else, and lies in `name.rs`, never in `mod.rs`.

use super::Problem;
use crate::repository::Tree;

pub(super) fn check(tree: &Tree) -> Vec<Problem> {
    let mut problems = Vec::new();
    for file in tree.rust() {
        if !file.text.starts_with("//!") {
            problems.push(Problem::new(&file.path, 1, "doesn't open with `//!`"));
        }
        if file.path.ends_with("/mod.rs") {
            problems.push(Problem::new(&file.path, 0, "must be called after its module, beside its folder"));
        }
    }
    problems
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::found;

    #[test]
    fn silent_modules_and_mod_rs_are_found() {
        let files = [("a/b.rs", "//! What it is.\n"), ("a/c.rs", "use x;\n//! Late.\n"), ("a/d/mod.rs", "//! D.\n")];
        let expected =
            ["a/c.rs:1: doesn't open with `//!`", "a/d/mod.rs: must be called after its module, beside its folder"];
        assert_eq!(found(check, &files), expected);
    }
}
