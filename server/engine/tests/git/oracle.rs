//! Our merge and our patch held against git's own, on generated cases with a fixed seed.

use std::fmt::Write as _;
use std::fs;

use pactify_engine::git::merge::{Labels, Merged, merge};
use serde_json::json;

use crate::support::Fixture;

/// Cases of texts; of each, git is asked once.
const CASES: u64 = 300;

/// A small generator, so that a failure names its case by one number.
struct Random(u64);

impl Random {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % end
    }

    fn text(&mut self) -> Vec<String> {
        let length = self.below(18);
        (0..length).map(|_| self.line()).collect()
    }

    /// Few lines, so that equal ones abound.
    fn line(&mut self) -> String {
        ["a", "b", "}", "", "  x", "<<<<<<< no mark", "=======", "ä\r"][self.below(8) as usize].to_owned()
    }

    fn edited(&mut self, text: &[String]) -> Vec<String> {
        let mut edited = text.to_vec();
        for _ in 0..self.below(4) {
            let at = self.below(edited.len() as u64 + 1) as usize;
            match self.below(3) {
                0 => edited.insert(at, self.line()),
                1 if at < edited.len() => drop(edited.remove(at)),
                _ if at < edited.len() => edited[at] = self.line(),
                _ => {}
            }
        }
        edited
    }

    /// The text in bytes; sometimes without its last line feed.
    fn bytes(&mut self, lines: &[String]) -> Vec<u8> {
        let mut text: String = lines.iter().map(|line| format!("{line}\n")).collect();
        if self.below(5) == 0 {
            text.pop();
        }
        text.into_bytes()
    }
}

#[test]
fn texts_merge_as_git_merges_them() {
    let fixture = Fixture::without_repository();
    let labels = Labels { base: "base", ours: "ours", theirs: "theirs" };
    let (mut clean, mut conflicted) = (0, 0);
    for case in 0..CASES {
        let mut random = Random(case * 7919 + 1);
        let base = random.text();
        let (ours, theirs) = (random.edited(&base), random.edited(&base));
        let sides = [&ours, &base, &theirs].map(|side| random.bytes(side));
        for (name, bytes) in ["ours", "base", "theirs"].iter().zip(&sides) {
            fs::write(fixture.root.join(name), bytes).unwrap();
        }
        let oracle = fixture.try_plain(&fixture.root, &["merge-file", "-p", "ours", "base", "theirs"]);
        let [ours, base, theirs] = &sides;
        match merge(base, ours, theirs, labels).unwrap() {
            Merged::Clean(text) => {
                assert!(oracle.status.success(), "case {case}: git finds a conflict");
                assert_eq!(text, oracle.stdout, "case {case}");
                clean += 1;
            }
            Merged::Conflicted { places, .. } => {
                assert!(oracle.status.code() > Some(0), "case {case}: git merges it");
                assert!(places > 0);
                conflicted += 1;
            }
            Merged::Impossible(why) => panic!("case {case}: {why}"),
        }
    }
    assert!(clean > 50 && conflicted > 50, "{clean} merges and {conflicted} conflicts tell something");
}

#[test]
fn a_patch_is_taken_by_git_apply() {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt as _;
    use std::os::unix::fs::{PermissionsExt as _, symlink};
    let fixture = Fixture::with(&[
        ("renamed.txt", "1\n2\n3\n4\n5\n"),
        ("gone.txt", "gone\n"),
        ("mode.sh", "x\n"),
        ("bare.txt", "no line feed"),
        ("dos.txt", "a\r\nb\r\n"),
        ("data.bin", "\0old"),
        ("kind", "a file\n"),
        ("dir/inside", "x\n"),
        ("latin.txt", "plain\n"),
    ]);
    // The person's attributes decide what git takes for text.
    fs::write(fixture.repo.join(".git/info/attributes"), "data.bin diff\n*.txt diff=x\n").unwrap();
    let landed = fixture.land(|job| {
        let at = |path: &str| job.tree().join(path);
        fs::rename(at("renamed.txt"), at("is now.txt")).unwrap();
        fs::remove_file(at("gone.txt")).unwrap();
        fs::set_permissions(at("mode.sh"), fs::Permissions::from_mode(0o755)).unwrap();
        job.write("bare.txt", "no line feed, still");
        job.write("dos.txt", "a\r\nB\r\n");
        job.write("data.bin", "\0new and longer");
        job.write("empty.txt", "");
        job.write("a \"b\"\t文档 -> c.txt", "odd name\n");
        fs::write(at("latin.txt"), b"gr\xfc\xdfe\n").unwrap();
        fs::write(at("latin-new.txt"), [b"\xe4\n".repeat(70_000), b"no end".to_vec()].concat()).unwrap();
        symlink(OsStr::from_bytes(b"to \xff"), at("odd link")).unwrap();
        fs::write(at("x").with_file_name(OsStr::from_bytes(b"n\xe4me")), b"\xfe\n").unwrap();
        fs::remove_file(at("kind")).unwrap();
        symlink("dos.txt", at("kind")).unwrap();
        fs::remove_dir_all(at("dir")).unwrap();
        job.write("dir", "a file now\n");
    });
    let params = json!({ "jobId": landed.job.places.job(), "format": "patch" });
    let preview = landed.jobs().preview(&serde_json::from_value(params).unwrap()).unwrap();
    assert!(!preview.truncated);
    let patch = preview.patch.unwrap();
    assert_eq!((patch.clone(), None), landed.jobs().patch(landed.job.places.job(), None).unwrap());
    fs::write(fixture.root.join("patch"), patch).unwrap();
    let patch = fixture.root.join("patch");
    fixture.plain(&fixture.repo, &["apply", "--index", patch.to_str().unwrap()]);
    assert_eq!(fixture.plain(&fixture.repo, &["write-tree"]), landed.change_set(), "git applies what was captured");
    fixture.plain(&fixture.repo, &["apply", "--index", "-R", patch.to_str().unwrap()]);
    assert_eq!(fixture.plain(&fixture.repo, &["status", "--porcelain"]), "", "and takes it back");
}

#[test]
fn random_edits_are_applied_as_git_merges_them_or_nothing_is_written() {
    let mut told = String::new();
    for case in 0..12 {
        let mut random = Random(case * 104_729 + 5);
        let base: Vec<String> = (0..12).map(|line| format!("line {line}")).collect();
        let (mine, theirs) = (random.edited(&base), random.edited(&base));
        let [base, mine, theirs] =
            [base, mine, theirs].map(|lines| lines.iter().map(|line| format!("{line}\n")).collect::<String>());
        let fixture = Fixture::with(&[("a.txt", &base), ("b.txt", "1\n")]);
        let landed = fixture.land(|job| {
            job.write("a.txt", &theirs);
            job.write("b.txt", "2\n");
        });
        for (name, text) in [("ours", &mine), ("base", &base), ("theirs", &theirs)] {
            fs::write(fixture.root.join(name), text).unwrap();
        }
        let oracle = fixture.try_plain(&fixture.root, &["merge-file", "-p", "ours", "base", "theirs"]);
        fs::write(fixture.repo.join("a.txt"), &mine).unwrap();
        let outcome = landed.apply().or_else(|refused| {
            let merges = refused.conflicts.iter().filter_map(|conflict| {
                Some(json!({ "path": conflict.path.path, "object": conflict.object.as_ref()? }))
            });
            let merges: Vec<_> = merges.collect();
            if merges.is_empty() {
                return Err(refused);
            }
            let (job, set) = (landed.job.places.job(), landed.change_set());
            let params = json!({ "jobId": job, "changeSet": set, "confirmMerges": merges });
            landed.jobs().apply(&serde_json::from_value(params).unwrap())
        });
        let read = |path: &str| fs::read_to_string(fixture.repo.join(path)).unwrap();
        match outcome {
            Ok(_) => {
                assert!(oracle.status.success(), "case {case}");
                assert_eq!((read("a.txt").into_bytes(), read("b.txt").as_str()), (oracle.stdout, "2\n"), "case {case}");
                write!(told, "m").unwrap();
            }
            Err(_) => {
                assert!(!oracle.status.success(), "case {case}");
                assert_eq!((read("a.txt"), read("b.txt").as_str()), (mine, "1\n"), "case {case}");
                write!(told, "c").unwrap();
            }
        }
    }
    assert!(told.contains('m') && told.contains('c'), "{told}");
}
