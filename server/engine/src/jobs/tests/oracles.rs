//! A corpus of generated cases, held against `git apply` and `git merge-file`. Where we differ from either, the case is
//! of one of the classes of [`Difference`], and of no other.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, Stdio};

use pactify_core::failure::ConflictKind;
use pactify_core::protocol::{Selected, ShownMerge};
use proptest::strategy::{Strategy as _, ValueTree as _};
use proptest::test_runner::{Config, RngSeed, TestRunner};

use super::property::any_path;
use super::world::{World, bytes, name};
use crate::apply::tests::fixture::{Files, Node};

const CASES: usize = 400;
const PATH: &str = "a.txt";

/// Why an oracle says something else.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Difference {
    /// The checkout holds the result already: `git apply` refuses, for us there is nothing to do.
    AlreadyThere,
    /// The checkout was changed near the job's lines: `git apply` refuses for its context, we merge as `git merge-file`
    /// does, and show the merge before.
    ContextMoved,
    /// `git apply` finds a place for the lines that `git merge-file` and we call a conflict.
    PlacedInConflict,
    /// `git apply` finds another place for the lines than `git merge-file` and we do: they repeat themselves.
    PlacedElsewhere,
}

/// What became of the file.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Outcome {
    Holds(Vec<u8>),
    Refused,
}

struct Corpus {
    base: Vec<u8>,
    result: Vec<u8>,
    now: Vec<u8>,
}

/// Texts that a job changed and, half of them, a person too.
fn corpus() -> Vec<Corpus> {
    let config = Config { rng_seed: RngSeed::Fixed(7), failure_persistence: None, ..Config::default() };
    let (mut runner, mut found) = (TestRunner::new(config), Vec::new());
    while found.len() < CASES {
        let case = any_path().new_tree(&mut runner).unwrap().current();
        let Some(base) = case.base() else { continue };
        let Some(result) = case.job.on(Some(&base)) else { continue };
        let now = case.person.iter().flatten().try_fold(base.clone(), |now, work| work.on(Some(&now)));
        let Some(now) = now else { continue };
        if bytes(&base) != bytes(&result) {
            let [base, result, now] = [&base, &result, &now].map(|node| bytes(node).to_vec());
            found.push(Corpus { base, result, now });
        }
    }
    found
}

impl Corpus {
    fn ours(&self) -> Outcome {
        let files = |bytes: &[u8]| Files::from([(PATH.into(), Node::File(bytes.to_vec()))]);
        let mut world = World::new(&files(&self.base), &files(&self.result));
        world.edit(PATH, Some(&Node::File(self.now.clone())));
        let mut params = world.params();
        params.select = Some(vec![Selected { path: name(PATH), groups: None }]);
        let mut outcome = world.apply(&params);
        if let Err(failure) = &outcome {
            assert_eq!(world.files(), files(&self.now));
            let [conflict] = &failure.conflicts[..] else { panic!("{failure:?}") };
            if conflict.kind == ConflictKind::MergeNotShown {
                let object = conflict.object.clone().unwrap();
                params.confirm_merges = vec![ShownMerge { path: name(PATH), object }];
                outcome = world.apply(&params);
                assert!(outcome.is_ok(), "{outcome:?}");
            }
        }
        match outcome {
            Ok(_) => Outcome::Holds(bytes(&world.files()[PATH.as_bytes()]).to_vec()),
            Err(_) => Outcome::Refused,
        }
    }

    /// `git merge-file` of the three texts.
    fn merged(&self, folder: &Path) -> Outcome {
        for (name, text) in [("ours", &self.now), ("base", &self.base), ("theirs", &self.result)] {
            std::fs::write(folder.join(name), text).unwrap();
        }
        match git(folder, &["merge-file", "-p", "ours", "base", "theirs"], b"") {
            (Some(0), merged) => Outcome::Holds(merged),
            (Some(1..=127), _) => Outcome::Refused,
            (code, _) => panic!("git merge-file: {code:?}"),
        }
    }

    /// `git apply` of the job's patch.
    fn patched(&self, folder: &Path) -> Outcome {
        for (name, text) in [("old", &self.base), ("new", &self.result)] {
            std::fs::write(folder.join(name), text).unwrap();
        }
        let (_, patch) = git(folder, &["diff", "--no-index", "--no-prefix", "old", "new"], b"");
        let patch = String::from_utf8(patch).unwrap();
        let hunks = &patch[patch.find("@@ ").unwrap()..];
        let patch = format!("diff --git a/{PATH} b/{PATH}\n--- a/{PATH}\n+++ b/{PATH}\n{hunks}");
        std::fs::write(folder.join(PATH), &self.now).unwrap();
        match git(folder, &["apply", "-"], patch.as_bytes()) {
            (Some(0), _) => Outcome::Holds(std::fs::read(folder.join(PATH)).unwrap()),
            _ => Outcome::Refused,
        }
    }
}

#[test]
fn we_agree_with_git_apply_and_git_merge_file_but_for_named_classes() {
    let folder = crate::store::fixture::directory();
    let (mut applied, mut refused, mut differences) = (0, 0, BTreeMap::new());
    for case in corpus() {
        let shown = || [&case.base, &case.now, &case.result].map(|text| String::from_utf8_lossy(text).into_owned());
        let (ours, merged, patched) = (case.ours(), case.merged(folder.path()), case.patched(folder.path()));
        assert_eq!(ours, merged, "git merge-file says something else: {:?}", shown());
        *if ours == Outcome::Refused { &mut refused } else { &mut applied } += 1;
        if ours == patched {
            continue;
        }
        let difference = match (&ours, &patched) {
            (Outcome::Holds(held), Outcome::Refused) if *held == case.now => Difference::AlreadyThere,
            (Outcome::Holds(_), Outcome::Refused) if case.now != case.base => Difference::ContextMoved,
            (Outcome::Refused, Outcome::Holds(_)) => Difference::PlacedInConflict,
            (Outcome::Holds(_), Outcome::Holds(_)) if case.now != case.base => Difference::PlacedElsewhere,
            _ => panic!("a difference of no class: we {ours:?}, git apply {patched:?}: {:?}", shown()),
        };
        *differences.entry(difference).or_insert(0) += 1;
    }
    println!("{CASES} cases: {applied} applied, {refused} refused; unlike git apply: {differences:?}");
    assert!(applied > 100 && refused > 20, "{applied} applied, {refused} refused");
}

#[expect(clippy::disallowed_methods, reason = "an oracle for a test; nothing of the product runs it")]
fn git(folder: &Path, args: &[&str], input: &[u8]) -> (Option<i32>, Vec<u8>) {
    use std::io::Write as _;
    let mut child = Command::new("git")
        .args(args)
        .current_dir(folder)
        .env_clear()
        .envs([
            ("PATH", "/usr/local/bin:/usr/bin:/bin"),
            ("GIT_CONFIG_NOSYSTEM", "1"),
            ("GIT_CONFIG_GLOBAL", "/dev/null"),
        ])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(input).unwrap();
    let output = child.wait_with_output().unwrap();
    (output.status.code(), output.stdout)
}
