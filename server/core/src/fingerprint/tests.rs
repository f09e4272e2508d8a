//! How two states differ, and what that means, over whole cases.

use super::weigh::{self, Move, id, parse_id};
use super::*;
use crate::AttemptNo;

const A: &str = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";
const B: &str = "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb";

fn path(name: &str) -> RepoPath {
    RepoPath::new(name).unwrap()
}

fn file(text: &str, executable: bool) -> Item {
    Item::File { executable, size: text.len() as u64, digest: text.to_owned(), content: Some(text.as_bytes().to_vec()) }
}

/// A state from lines: `name = content`, `name ! content` (executable), `ref name id`, `ref name @target`,
/// `stash id`, `gap name`.
fn state(lines: &[&str]) -> SharedState {
    let mut state = SharedState::default();
    for line in lines {
        if let Some(rest) = line.strip_prefix("ref ") {
            let (name, value) = rest.split_once(' ').unwrap();
            let value = match value.strip_prefix('@') {
                Some(target) => RefValue::Symbolic(target.to_owned()),
                None => value.parse().map_or(RefValue::Broken(value.to_owned()), RefValue::Object),
            };
            state.refs.insert(path(name), value);
        } else if let Some(id) = line.strip_prefix("stash ") {
            state.stash.push(StashEntry { commit: id.parse().unwrap(), message: "WIP".to_owned() });
        } else if let Some(name) = line.strip_prefix("gap ") {
            state.gaps.insert(path(name), "permission denied".to_owned());
        } else if let Some((name, text)) = line.split_once(" ! ") {
            state.items.insert(path(name), file(text, true));
        } else {
            let (name, text) = line.split_once(" = ").unwrap();
            state.items.insert(path(name), file(text, false));
        }
    }
    state
}

/// The changes as `weight place: what`, with a `+` where it can be put back.
fn told(before: &[&str], after: &[&str], moved: Move) -> Vec<String> {
    let found = differences(&state(before), &state(after));
    let weighed = found.iter().map(|difference| weigh::weigh("1-1".to_owned(), difference, || moved));
    weighed
        .map(|change| {
            let sign = if change.restorable { "+" } else { "" };
            format!("{:?}{sign} {}: {}", change.weight, change.place, change.what)
        })
        .collect()
}

fn check(before: &[&str], after: &[&str], expected: &[&str]) {
    assert_eq!(told(before, after, Move::Elsewhere), expected, "{before:?} → {after:?}");
}

#[test]
fn configuration_is_compared_key_by_key() {
    check(&["config = [core]\n\tbare = false\n"], &["config = [core]\n# note\nbare=false"], &[]);
    check(
        &["config = [core]\n\tbare = false\n[alias]\nx = y\n"],
        &["config = [core]\n\tbare = true\n\tfsmonitor = /tmp/x\n[credential]\nhelper = secret\n"],
        &[
            "Dangerous+ config: alias.x: was unset",
            "Dangerous+ config: core.bare: is true now",
            "Dangerous+ config: core.fsmonitor: was set to /tmp/x",
            "Dangerous+ config: credential.helper: was set",
        ],
    );
    check(&["config = [core]\n"], &["config = [core"], &["Dangerous+ config: has another content"]);
    check(
        &[],
        &["config.worktree = [core]\nworktree = /else\n"],
        &["Dangerous+ config.worktree: core.worktree: was set to /else"],
    );
}

#[test]
fn hooks_that_will_run_are_dangerous() {
    check(
        &["hooks/a.sample ! x", "hooks/b ! x", "hooks/c = x", "hooks/d ! x"],
        &[
            "hooks/a.sample ! y",
            "hooks/b ! y",
            "hooks/c ! x",
            "hooks/new ! x",
            "hooks/note = x",
            "modules/m/hooks/x ! y",
        ],
        &[
            "Notable+ hooks/a.sample: has another content",
            "Dangerous+ hooks/b: has another content",
            "Dangerous+ hooks/c: can be run now",
            "Notable+ hooks/d: is gone",
            "Dangerous+ hooks/new: is a new hook, which git will run",
            "Notable+ hooks/note: is new",
            "Dangerous+ modules/m/hooks/x: is a new hook, which git will run",
        ],
    );
}

#[test]
fn refs_are_compared_by_value_and_weighed_by_where_they_went() {
    let main = |id: &str| format!("ref refs/heads/main {id}");
    let (old, new) = (main(A), main(B));
    let moved = |moved| told(&[&old], &[&new], moved);
    assert_eq!(
        moved(Move::Forward { commits: 1, logged: true }),
        ["Ordinary refs/heads/main: moved forward by 1 commit"]
    );
    assert_eq!(
        moved(Move::Forward { commits: 2, logged: false }),
        ["Notable+ refs/heads/main: moved forward by 2 commits that its log does not know"]
    );
    let elsewhere = ["Notable+ refs/heads/main: was aaaaaaaaaaaa and is bbbbbbbbbbbb now"];
    assert_eq!(
        (moved(Move::Elsewhere).as_slice(), moved(Move::Logged).as_slice()),
        (&elsewhere.map(String::from)[..], &elsewhere.map(String::from)[..])
    );
    check(
        &[],
        &[&new, "ref refs/pactify/keep/x aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"],
        &["Ordinary refs/heads/main: is new"],
    );
    check(&[&old], &[], &["Notable+ refs/heads/main: is gone; it was aaaaaaaaaaaa"]);
    check(&[&old], &[&main("junk")], &["Dangerous+ refs/heads/main: names nothing that git understands"]);
    check(&["ref HEAD @refs/heads/main"], &[], &["Dangerous+ HEAD: is gone: git sees no repository"]);
    assert_eq!(
        told(&["ref HEAD @refs/heads/main"], &["ref HEAD @refs/heads/topic"], Move::Logged),
        ["Ordinary HEAD: is at refs/heads/topic now"]
    );
    let remote = |id: &str| format!("ref refs/remotes/origin/main {id}");
    check(&[&remote(A)], &[&remote(B)], &["Ordinary refs/remotes/origin/main: was updated"]);
}

#[test]
fn the_stash_counts_by_its_entries() {
    let (a, b) = (format!("stash {A}"), format!("stash {B}"));
    check(&[&a, "ref refs/stash aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"], &[], &["Notable+ stash: lost 1 entries"]);
    check(&[&a], &[&b, &a], &["Notable stash: has 1 new entries"]);
    check(&[&a], &[&b], &["Notable+ stash: lost 1 entries and has 1 new ones"]);
}

#[test]
fn a_registration_comes_and_goes_as_one() {
    let one = ["worktrees/w/gitdir = /w/.git\n", "worktrees/w/index = x", "ref worktrees/w/HEAD @refs/heads/w"];
    check(&one, &[], &["Notable+ worktrees/w: is gone: that worktree is no longer registered"]);
    check(&[], &one, &["Ordinary worktrees/w: is a new worktree"]);
    let mut other = one;
    other[0] = "worktrees/w/gitdir = /elsewhere/.git\n";
    other[1] = "worktrees/w/index = y";
    check(&one, &other, &["Dangerous+ worktrees/w/gitdir: has another content"]);
}

#[test]
fn what_was_not_seen_is_never_unchanged() {
    let gap = "Notable hooks: could not be compared: permission denied";
    check(&["gap hooks"], &["hooks/a ! x"], &[gap]);
    check(&["gap hooks"], &["gap hooks"], &[gap]);
}

#[test]
fn what_can_no_longer_be_seen_weighs_what_could_hide_there() {
    for (name, weight) in [
        ("git directory", "Dangerous"),
        ("hooks", "Dangerous"),
        ("hooks/pre-commit", "Dangerous"),
        ("hooks/a/b/exclude", "Dangerous"),
        ("config", "Dangerous"),
        ("config.worktree", "Dangerous"),
        ("info/attributes", "Dangerous"),
        ("modules/m", "Dangerous"),
        ("worktrees", "Dangerous"),
        ("info/exclude", "Notable"),
        ("refs/heads/main", "Notable"),
        ("packed-refs", "Notable"),
        ("logs/refs/stash", "Notable"),
    ] {
        let expected = format!("{weight} {name}: could not be compared: permission denied");
        check(&[], &[&format!("gap {name}")], &[&expected]);
    }
}

#[test]
fn an_id_names_its_attempt_and_place() {
    assert_eq!(parse_id(&id(AttemptNo::FIRST, 0)), Some((1, 0)));
    for text in ["", "1", "1-0", "x-1", "1-x", "-1"] {
        assert_eq!(parse_id(text), None, "{text}");
    }
}
