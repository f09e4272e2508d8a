//! What a person may have meant by a path that a result does not have.

use std::collections::BTreeSet;

use pactify_core::path::PathName;
use pactify_core::protocol::FileChange;
use pactify_core::{Failure, FailureCode, JobId, display};

/// How many are offered for one path.
const OFFERED: usize = 3;
/// How like it a path has to be, of 1.
const ALIKE: f64 = 0.7;

/// The refusal of paths that are not among the job's changes, with what they may have been meant to be.
pub(super) fn unknown(job: &JobId, typed: &[PathName], files: &[FileChange]) -> Failure {
    let names: Vec<&str> = typed.iter().map(|path| path.path.as_str()).collect();
    let is = if names.len() == 1 { "is" } else { "are" };
    let message = format!("{} {is} not among the job's changes", display::neutral(&names.join(", ")));
    let known: Vec<&str> = files.iter().map(|file| file.path.path.as_str()).collect();
    let mut offered: Vec<&str> = names.iter().flat_map(|name| meant(name, &known)).collect();
    offered.dedup();
    let list =
        format!("`pactify sub diff {job} --stat` lists what it changed, by its path from the top of the repository");
    let next = match offered.as_slice() {
        [] => list,
        offered => format!("did you mean {}? {list}", display::neutral(&offered.join(", "))),
    };
    Failure::new(FailureCode::InvalidParams, message, next)
}

/// The paths, and the directories of paths, that `typed` may stand for, likeliest first: it may be named from a directory
/// below the top, or be misspelt.
fn meant<'p>(typed: &str, known: &[&'p str]) -> Vec<&'p str> {
    let tail = format!("/{typed}");
    let all: BTreeSet<&str> = known.iter().flat_map(|path| with_directories(path)).collect();
    let likeness = |path: &str| match path.ends_with(&tail) {
        true => 1.0,
        false => strsim::normalized_damerau_levenshtein(&typed.to_lowercase(), &path.to_lowercase()),
    };
    let mut alike: Vec<(f64, &str)> = all.into_iter().map(|path| (likeness(path), path)).collect();
    alike.retain(|(likeness, _)| *likeness >= ALIKE);
    alike.sort_by(|(one, _), (other, _)| other.total_cmp(one));
    alike.into_iter().map(|(_, path)| path).take(OFFERED).collect()
}

fn with_directories(path: &str) -> impl Iterator<Item = &str> {
    let directories = path.char_indices().filter(|(_, c)| *c == '/').map(|(at, _)| &path[..at]);
    directories.chain([path])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_meant_by_its_end_or_by_one_that_is_like_it() {
        let known = ["README.md", "src/parse.rs", "src/deep/parse.rs", "tests/e2e/cli.rs"];
        for (typed, expected) in [
            ("parse.rs", &["src/deep/parse.rs", "src/parse.rs"][..]),
            ("src/prase.rs", &["src/parse.rs"]),
            ("deep", &["src/deep"]),
            ("test", &["tests"]),
            ("Readme.md", &["README.md"]),
            ("README.mb", &["README.md"]),
            ("nowhere", &[]),
        ] {
            assert_eq!(meant(typed, &known), expected, "{typed}");
        }
    }
}
