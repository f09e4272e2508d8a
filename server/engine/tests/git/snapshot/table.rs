//! Many dirty checkouts, made at random from a fixed seed: the snapshot is the tree that `git add --all` would stage.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use super::executable;
use crate::support::{Fixture, write};

/// As few as tell something; a failure names its seed.
const CASES: u64 = 48;

const NAMES: [&str; 12] = [
    "a.txt",
    "b.bin",
    "dir/a.txt",
    "dir/c.crlf",
    "dir/sub/d.txt",
    "e",
    "name with space",
    "\u{e4}.txt",
    "Case",
    "case",
    "x.log",
    "dir/keep.log",
];

const TEXTS: [&str; 6] = ["", "one\n", "one\ntwo\n", "one\r\ntwo\r\n", "mixed\r\nends\n", "\0binary\r\n\x01"];

/// xorshift: the same on every machine.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % limit as u64).unwrap()
    }

    fn of<'t>(&mut self, list: &[&'t str]) -> &'t str {
        list[self.below(list.len())]
    }
}

fn clear(path: &Path) {
    let _ = fs::remove_file(path).or_else(|_| fs::remove_dir_all(path));
}

/// Puts a file there, whatever is in the way.
fn put(fixture: &Fixture, path: &str, text: &str) {
    let mut above = fixture.repo.clone();
    for component in Path::new(path).parent().unwrap().components() {
        above.push(component);
        if fs::symlink_metadata(&above).is_ok_and(|found| !found.is_dir()) {
            clear(&above);
        }
    }
    let at = fixture.repo.join(path);
    if fs::symlink_metadata(&at).is_ok_and(|found| !found.is_file()) {
        clear(&at);
    }
    write(&at, text);
}

fn step(fixture: &Fixture, random: &mut Random) -> String {
    let path = random.of(&NAMES);
    let at = fixture.repo.join(path);
    let git = |arguments: &[&str]| drop(fixture.try_plain(&fixture.repo, arguments));
    let what = random.below(12);
    match what {
        0..=3 => put(fixture, path, random.of(&TEXTS)),
        4 => clear(&at),
        5 => {
            if at.is_file() {
                executable(&at);
            }
        }
        6 => {
            put(fixture, path, "");
            clear(&at);
            symlink(random.of(&NAMES), &at).unwrap();
        }
        7 => {
            clear(&at);
            put(fixture, &format!("{path}/inside"), "in\n");
        }
        8 => git(&["add", "--", path]),
        9 => git(&["rm", "-q", "--cached", "--", path]),
        10 => git(&["add", "--intent-to-add", "--", path]),
        _ => git(&["mv", "-f", "--", path, random.of(&NAMES)]),
    }
    format!("{what} {path}")
}

#[test]
fn a_snapshot_is_what_git_would_stage() {
    let mut trees = BTreeSet::new();
    let mut done = 0;
    for seed in 1..=CASES {
        let mut random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let sha256 = seed % 6 == 0;
        let fixture = Fixture::empty(if sha256 { &["--object-format=sha256"] } else { &[] });
        let attributes = ["", "* text=auto\n", "*.txt text eol=crlf\n*.crlf -text\n", "*.bin binary\ndir/* ident\n"];
        write(&fixture.repo.join(".gitattributes"), random.of(&attributes));
        write(&fixture.repo.join(".gitignore"), random.of(&["", "*.log\n", "*.log\n!keep.log\n"]));
        for _ in 0..random.below(10) {
            put(&fixture, random.of(&NAMES), random.of(&TEXTS));
        }
        fixture.commit(&[]);
        if seed % 3 == 0 {
            fixture.plain(&fixture.repo, &["config", "core.autocrlf", random.of(&["true", "input", "false"])]);
        }
        if seed % 5 == 0 {
            fixture.plain(&fixture.repo, &["config", "core.fileMode", "false"]);
        }
        if seed % 4 == 0 {
            write(&fixture.repo.join(random.of(&[".gitattributes", "dir/.gitattributes"])), random.of(&attributes));
        }
        let steps: Vec<String> = (0..random.below(14)).map(|_| step(&fixture, &mut random)).collect();

        let shot = fixture.snapshot(&[]);
        let staged = fixture.try_plain(&fixture.repo, &["add", "--all"]);
        if !staged.status.success() {
            continue;
        }
        let expected = fixture.plain(&fixture.repo, &["write-tree"]);
        let listed = || fixture.plain(&fixture.repo, &["ls-tree", "-r", &expected]);
        assert_eq!(
            shot.base.tree.as_str(),
            expected,
            "seed {seed}, steps {steps:?}\nours: {:#?}\ngit's:\n{}",
            fixture.base_files(&shot),
            listed()
        );
        trees.insert(expected);
        done += 1;
    }
    assert!(done > CASES * 3 / 4 && trees.len() > 20, "{done} cases, {} different trees", trees.len());
}
