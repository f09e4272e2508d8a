//! What a person may have meant by a path that a result does not have.
//!
//! A result may have very many paths, and very deep ones. Of so many, some are not compared: a refusal waits for
//! nobody.

use std::collections::BTreeSet;

use pactify_core::path::PathName;
use pactify_core::protocol::FileChange;
use pactify_core::{Failure, FailureCode, JobId, display};

/// How many are offered for one path.
const OFFERED: usize = 3;
/// How like it a path has to be, of 1.
const ALIKE: f64 = 0.7;
/// How many paths and directories are looked at for one, and how many letters are compared with letters for them all.
const LOOKED_AT: usize = 200_000;
const COMPARED: usize = 10_000_000;

/// The refusal of paths that are not among the job's changes, with what they may have been meant to be.
pub(super) fn unknown(job: &JobId, typed: &[PathName], files: &[FileChange]) -> Failure {
    let names: Vec<&str> = typed.iter().map(|path| path.path.as_str()).collect();
    let is = if names.len() == 1 { "is" } else { "are" };
    let message = format!("{} {is} not among the job's changes", display::neutral(&names.join(", ")));
    let known: Vec<&str> = files.iter().map(|file| file.path.path.as_str()).collect();
    let mut left = COMPARED;
    let mut offered: Vec<&str> = names.iter().flat_map(|name| meant(name, &known, &mut left)).collect();
    offered.dedup();
    let list =
        format!("`pactify sub diff {job} --stat` lists what it changed, by its path from the top of the repository");
    let next = match offered.as_slice() {
        [] => list,
        offered => format!("did you mean {}? {list}", display::neutral(&offered.join(", "))),
    };
    Failure::new(FailureCode::InvalidParams, message, next)
}

/// The paths, and the directories of paths, that `typed` may stand for, likeliest first: it may be named from a
/// directory below the top, or be misspelt. `left` is how many letters may still be compared.
fn meant<'p>(typed: &str, known: &[&'p str], left: &mut usize) -> Vec<&'p str> {
    let (tail, typed) = (format!("/{typed}"), typed.to_lowercase());
    let directories = known.iter().flat_map(|path| directories(path));
    let all: BTreeSet<&str> = known.iter().copied().chain(directories).take(LOOKED_AT).collect();
    let mut likeness =
        |path: &str| if path.ends_with(&tail) { 1.0 } else { likeness(&typed, &path.to_lowercase(), left) };
    let mut alike: Vec<(f64, &str)> = all.into_iter().map(|path| (likeness(path), path)).collect();
    alike.retain(|(likeness, _)| *likeness >= ALIKE);
    alike.sort_by(|(one, _), (other, _)| other.total_cmp(one));
    alike.into_iter().map(|(_, path)| path).take(OFFERED).collect()
}

/// How like one another two texts are, of 1. Nothing at all where their lengths say that it is less than [`ALIKE`], or
/// where more would have to be compared than is `left`.
fn likeness(one: &str, other: &str, left: &mut usize) -> f64 {
    let lengths = [one.chars().count(), other.chars().count()];
    let work = lengths[0].saturating_mul(lengths[1]);
    let [shorter, longer] = [lengths[0].min(lengths[1]), lengths[0].max(lengths[1])];
    if (shorter as f64) < ALIKE * longer as f64 || work > *left {
        return 0.0;
    }
    *left -= work;
    strsim::normalized_damerau_levenshtein(one, other)
}

fn directories(path: &str) -> impl Iterator<Item = &str> {
    path.match_indices('/').map(|(at, _)| &path[..at])
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
            let mut left = COMPARED;
            assert_eq!(meant(typed, &known, &mut left), expected, "{typed}");
        }
    }

    #[test]
    fn very_many_deep_paths_are_not_all_compared() {
        let deep = |n: u32| format!("{n}/{}", "deep/".repeat(100));
        let paths: Vec<String> = (0..200).map(|n| format!("{}end{n}.rs", deep(n))).collect();
        let known: Vec<&str> = paths.iter().map(String::as_str).collect();
        let mut left = COMPARED;
        // The first is compared; what a path ends with is seen in all of them.
        assert_eq!(meant(&format!("{}edn0.rs", deep(0)), &known, &mut left).first(), Some(&known[0]));
        assert!(left < 1_000_000, "{left} are left of so many");
        assert_eq!(meant(&format!("{}edn0.rs", deep(0)), &known, &mut 1_000), [""; 0]);
        assert_eq!(meant("end199.rs", &known, &mut 0), [known[199]]);
    }
}
