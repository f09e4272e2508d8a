//! Random checkouts, results and selections, held against a model of three lines and against `git apply`.

use std::process::{Command, Stdio};

use pactify_core::RepoPath;
use pactify_core::change::plan::Selection;
use proptest::collection::btree_map;
use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use rustix::io::Errno;

use super::super::disk::Disk;
use super::super::forget;
use super::fixture::*;
use super::ordinary::expected;

/// Few names, so that files, directories and links get into each other's place.
fn any_path() -> impl Strategy<Value = Vec<u8>> {
    let name = prop::sample::select(vec!["a", "b", "c", "D", "\u{e4} b"]);
    prop::collection::vec(name, 1..4).prop_map(|names| names.join("/").into_bytes())
}

fn any_node() -> impl Strategy<Value = Node> {
    let text = prop::sample::select(vec!["", "1\n", "2\n", "one\ntwo\nthree\n", "no line feed", "\0binary\u{ff}"]);
    prop_oneof![
        6 => text.clone().prop_map(file),
        2 => text.prop_map(executable),
        1 => prop::sample::select(vec!["a", "b/c", "./D"]).prop_map(link),
    ]
}

/// Files that can be in one tree: none lies below another.
fn any_files() -> impl Strategy<Value = Files> {
    btree_map(any_path(), any_node(), 0..8).prop_map(|mut files| {
        let paths: Vec<Vec<u8>> = files.keys().cloned().collect();
        for path in paths {
            let above = RepoPath::new(path.clone()).unwrap();
            if above.ancestors().any(|above| files.contains_key(above.as_bytes())) {
                files.remove(&path);
            }
        }
        files
    })
}

/// A tree that shares most of its files with another one.
fn any_edit(of: Files) -> impl Strategy<Value = Files> {
    let keep = prop::collection::vec(prop::bool::weighted(0.6), of.len());
    (keep, any_files()).prop_map(move |(keep, fresh)| {
        let mut edited = fresh;
        for ((path, node), _) in of.iter().zip(keep).filter(|(_, keep)| *keep) {
            let path_below = |other: &Vec<u8>| {
                let (shorter, longer) = if other.len() < path.len() { (other, path) } else { (path, other) };
                longer.starts_with(shorter) && (longer.len() == shorter.len() || longer[shorter.len()] == b'/')
            };
            edited.retain(|other, _| !path_below(other));
            edited.insert(path.clone(), node.clone());
        }
        edited
    })
}

fn any_case() -> impl Strategy<Value = (Files, Files, Files, Vec<bool>)> {
    any_files().prop_flat_map(|base| {
        let now = prop_oneof![3 => Just(base.clone()), 1 => any_edit(base.clone())];
        (Just(base.clone()), any_edit(base), now, prop::collection::vec(prop::bool::weighted(0.8), 16))
    })
}

fn cases(cases: u32) -> ProptestConfig {
    ProptestConfig { cases, rng_seed: RngSeed::Fixed(1), failure_persistence: None, ..ProptestConfig::default() }
}

proptest! {
    #![proptest_config(cases(2_000))]

    #[test]
    fn chosen_paths_hold_their_result_and_others_what_they_held_or_nothing_changed(
        (base, result, now, chosen) in any_case(),
        flags in any::<bool>(),
    ) {
        let captured = CapturedResult::between(&base, &result);
        let sandbox = Sandbox::in_memory(&now);
        let before = sandbox.picture();
        let chosen: Vec<RepoPath> =
            captured.paths().into_iter().zip(chosen).filter(|(_, chosen)| *chosen).map(|(path, _)| path).collect();
        let disk = if flags { Disk::new() } else { Disk::without_rename_flags() };
        let outcome = sandbox.apply_on(&captured, &Selection::Paths(chosen.clone()), disk, || {});
        match outcome {
            Ok(_) => {
                let mut files = now.clone();
                for path in &chosen {
                    files.remove(path.as_bytes());
                    files.extend(result.get_key_value(path.as_bytes()).map(|(path, node)| (path.clone(), node.clone())));
                }
                prop_assert_eq!(sandbox.picture(), expected(&files));
            }
            Err(error) => {
                prop_assert!(!obstacles(error).is_empty());
                prop_assert!(now != base || chosen.len() < captured.paths().len() || folds(&base, &result));
                prop_assert_eq!(sandbox.picture(), before);
                prop_assert_eq!(sandbox.git_picture().len(), 1);
            }
        }
    }
}

proptest! {
    #![proptest_config(cases(2_000))]

    #[test]
    fn apply_and_undo_are_nothing(
        (base, result, now, chosen) in any_case(),
        flags in any::<bool>(),
        modes in prop::collection::vec(prop::sample::select(vec![0o600, 0o640, 0o664, 0o755, 0o700, 0o711]), 32),
    ) {
        let disk = || if flags { Disk::new() } else { Disk::without_rename_flags() };
        let captured = CapturedResult::between(&base, &result);
        let sandbox = Sandbox::in_memory(&now);
        for ((path, node), mode) in sandbox.picture().iter().zip(modes.iter().cycle()) {
            match node {
                Node::File(_) => set_bits(&sandbox.at(path), mode & 0o666),
                Node::Executable(_) | Node::Directory => set_bits(&sandbox.at(path), mode | 0o100),
                Node::Link(_) => {}
            }
        }
        let before = (sandbox.picture(), sandbox.attributes(), sandbox.git_picture());
        let chosen = captured.paths().into_iter().zip(chosen).filter(|(_, chosen)| *chosen).map(|(path, _)| path);
        let outcome = sandbox.apply_on(&captured, &Selection::Paths(chosen.collect()), disk(), || {});
        prop_assume!(outcome.is_ok_and(|applied| !applied.written.is_empty()));
        sandbox.undo_on(1, disk()).unwrap();
        forget(&sandbox.lock(), &apply_id(1)).unwrap();
        prop_assert_eq!((sandbox.picture(), sandbox.attributes(), sandbox.git_picture()), before);
    }
}

/// Whether names could collide; only then may a whole result be refused on its own base.
fn folds(base: &Files, result: &Files) -> bool {
    let has_upper = |files: &Files| files.keys().any(|path| path.contains(&b'D'));
    has_upper(base) || has_upper(result) || links_leave(result)
}

fn links_leave(files: &Files) -> bool {
    files.values().any(|node| matches!(node, Node::Link(_)))
}

proptest! {
    #![proptest_config(cases(24))]

    #[test]
    fn a_whole_result_on_its_base_is_what_git_apply_makes(
        (base, result) in any_files().prop_flat_map(|base| (Just(base.clone()), any_edit(base))),
    ) {
        let captured = CapturedResult::between(&base, &result);
        let sandbox = Sandbox::in_memory(&base);
        prop_assume!(!captured.paths().is_empty());
        prop_assume!(sandbox.apply(&captured, &Selection::Paths(captured.paths())).is_ok());

        let oracle = Sandbox::in_memory(&base);
        prop_assume!(!links_loop(&oracle));
        std::fs::remove_file(oracle.at(".git/index")).unwrap();
        git(&oracle, &["init", "-q"], b"");
        git(&oracle, &["add", "-A"], b"");
        let base_tree = git(&oracle, &["write-tree"], b"");
        let made = Sandbox::in_memory(&result);
        std::fs::remove_file(made.at(".git/index")).unwrap();
        git(&made, &["init", "-q"], b"");
        git(&made, &["add", "-A"], b"");
        let objects = oracle.at(".git/objects");
        std::fs::write(made.at(".git/objects/info/alternates"), objects.as_os_str().as_encoded_bytes()).unwrap();
        let base_tree = String::from_utf8(base_tree).unwrap();
        let patch = git(&made, &["diff-index", "--cached", "-p", "--binary", "--no-renames", base_tree.trim()], b"");
        git(&oracle, &["apply", "-"], &patch);
        prop_assert_eq!(sandbox.picture(), oracle.picture());
    }
}

/// Whether a link leads to itself: git gives up on what is below its name, even where the link is to go.
fn links_loop(sandbox: &Sandbox) -> bool {
    let loops = |path: &Vec<u8>| {
        let error = sandbox.at(path).metadata().err();
        error.and_then(|error| error.raw_os_error()) == Some(Errno::LOOP.raw_os_error())
    };
    sandbox.picture().keys().any(loops)
}

#[expect(clippy::disallowed_methods, reason = "an oracle for a test; nothing of the product runs it")]
fn git(sandbox: &Sandbox, args: &[&str], input: &[u8]) -> Vec<u8> {
    use std::io::Write as _;
    let mut child = Command::new("git")
        .args(args)
        .current_dir(sandbox.at(""))
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env_remove("GIT_DIR")
        .env_remove("GIT_WORK_TREE")
        .env_remove("GIT_INDEX_FILE")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::inherit())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(input).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "git {args:?}");
    output.stdout
}
