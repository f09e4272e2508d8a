//! What a captured file holds: what git would store, no more and no less, whatever its name and size.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{PermissionsExt as _, symlink};

use crate::support::{Fixture, Job, changes, notes, write};

/// Holds the captured tree against the one that git makes of the same files under the same rules.
fn agrees_with_git(fixture: &Fixture, job: &Job) {
    let captured = fixture.capture(job);
    fixture.plain(job.tree(), &["add", "-A"]);
    let by_git = fixture.plain(job.tree(), &["write-tree"]);
    assert_eq!(captured.change_set.id.as_str(), by_git, "{:?}", changes(&captured.change_set));
}

#[test]
fn a_one_line_edit_of_a_crlf_checkout_is_one_line() {
    for (settings, attributes) in [
        (&[("core.autocrlf", "true")][..], ""),
        (&[], "* text=auto eol=crlf\n"),
        (&[], "*.txt text eol=crlf\n"),
        (&[("core.eol", "crlf")], "*.txt text\n"),
    ] {
        let fixture = Fixture::empty(&[]);
        for (key, value) in settings {
            fixture.plain(&fixture.repo, &["config", key, value]);
        }
        fixture.commit(&[(".gitattributes", attributes), ("dos.txt", "one\r\ntwo\r\nthree\r\n"), ("unix.sh", "x\n")]);
        let job = fixture.job();
        let before = fs::read_to_string(job.tree().join("dos.txt")).unwrap();
        assert_eq!(before, "one\r\ntwo\r\nthree\r\n", "{settings:?} {attributes:?}");
        job.write("dos.txt", &before.replace("two", "2"));
        job.write("new.txt", "a\r\nb\r\n");
        let captured = fixture.capture(&job);
        assert_eq!(changes(&captured.change_set), ["M dos.txt", "A new.txt"]);
        assert_eq!(fixture.content(&job, &captured, "dos.txt"), b"one\n2\nthree\n");
        assert_eq!((captured.result.totals.added, captured.result.totals.deleted), (3, 1));
        agrees_with_git(&fixture, &job);
    }
}

#[test]
fn files_that_are_stored_with_crlf_stay_so() {
    let fixture = Fixture::with(&[("dos.txt", "one\r\ntwo\r\n")]);
    fixture.plain(&fixture.repo, &["config", "core.autocrlf", "true"]);
    let job = fixture.job();
    job.write("dos.txt", "one\r\n2\r\n");
    let captured = fixture.capture(&job);
    assert_eq!(fixture.content(&job, &captured, "dos.txt"), b"one\r\n2\r\n");
    agrees_with_git(&fixture, &job);
}

#[test]
fn conversions_follow_the_base_s_attributes() {
    let fixture = Fixture::with(&[
        (".gitattributes", "*.id ident\n*.u16 working-tree-encoding=UTF-16LE\n*.bin -text\n"),
        ("sub/.gitattributes", "*.win text eol=crlf\n"),
        ("a.id", "x\n"),
        ("sub/a.win", "x\n"),
    ]);
    write(&fixture.repo.join(".git/info/attributes"), "*.info text eol=crlf\n");
    write(&fixture.root.join("home/.config/git/attributes"), "*.own text eol=crlf\n");
    let job = fixture.job();
    job.write("a.id", "$Id: 0123456789012345678901234567890123456789 $\n");
    fs::write(job.tree().join("a.u16"), "hi\n".encode_utf16().flat_map(u16::to_le_bytes).collect::<Vec<_>>()).unwrap();
    for path in ["sub/a.win", "x.info", "x.own", "x.bin", "x.win"] {
        job.write(path, "one\r\n");
    }
    let captured = fixture.capture(&job);
    for (path, stored) in [
        ("a.id", "$Id$\n"),
        ("a.u16", "hi\n"),
        ("sub/a.win", "one\n"),
        ("x.info", "one\n"),
        ("x.own", "one\n"),
        ("x.bin", "one\r\n"),
        ("x.win", "one\r\n"),
    ] {
        assert_eq!(String::from_utf8(fixture.content(&job, &captured, path)).unwrap(), stored, "{path}");
    }
    // The job's own attributes change nothing about it.
    job.write(".gitattributes", "* -text\n");
    fs::remove_dir_all(job.tree().join("sub")).unwrap();
    job.write("sub", "a file now\r\n");
    let again = fixture.capture(&job);
    assert_eq!(fixture.content(&job, &again, "x.info"), b"one\n");
    assert_eq!(fixture.content(&job, &again, ".gitattributes"), b"* -text\n");
    assert_eq!(fixture.content(&job, &again, "sub"), b"a file now\r\n");
}

#[test]
fn a_file_that_git_cannot_convert_hides_no_other() {
    let fixture = Fixture::with(&[(".gitattributes", "*.u16 working-tree-encoding=UTF-16\n*.txt text\n")]);
    let job = fixture.job();
    job.write("bad.u16", "no byte order mark, odd");
    job.write("a.txt", "one\r\n");
    job.write("z.txt", "two\r\n");
    assert!(!fixture.try_plain(job.tree(), &["add", "-A"]).status.success(), "git is not stopped at all");
    let captured = fixture.capture(&job);
    assert_eq!(changes(&captured.change_set), ["A a.txt", "A bad.u16", "A z.txt"]);
    assert_eq!(fixture.content(&job, &captured, "a.txt"), b"one\n");
    assert_eq!(fixture.content(&job, &captured, "z.txt"), b"two\n");
    assert_eq!(fixture.content(&job, &captured, "bad.u16"), b"no byte order mark, odd");
}

#[test]
fn any_name_that_a_file_can_have_comes_through() {
    let fixture = Fixture::with(&[("a", "1\n"), (".gitattributes", "*.c text eol=crlf\n")]);
    let job = fixture.job();
    let names: [&[u8]; 8] = [
        b"tab\there",
        b"line\nbreak.c",
        b"\"quoted\" -> x.c",
        b"\xff\xfe",
        "文档.txt".as_bytes(),
        b"-rf",
        b":(glob)*",
        b"back\\slash.c",
    ];
    for name in names {
        fs::write(job.tree().join(OsStr::from_bytes(name)), "x\r\n").unwrap();
        fs::create_dir_all(job.tree().join("dir")).unwrap();
        fs::write(job.tree().join("dir").join(OsStr::from_bytes(name)), "x\r\n").unwrap();
    }
    let captured = fixture.capture(&job);
    let mut found: Vec<Vec<u8>> =
        captured.change_set.changes.iter().map(|change| change.path.as_bytes().to_vec()).collect();
    let mut expected: Vec<Vec<u8>> = names.iter().flat_map(|name| [name.to_vec(), [b"dir/", *name].concat()]).collect();
    found.sort();
    expected.sort();
    assert_eq!(found, expected);
    assert_eq!(fixture.content(&job, &captured, "line\nbreak.c"), b"x\n");
    agrees_with_git(&fixture, &job);
}

#[test]
fn ignored_files_are_counted_and_tracked_ones_among_them_are_not_ignored() {
    let fixture = Fixture::with(&[(".gitignore", "target/\n*.log\n"), ("src/a", "1\n")]);
    write(&fixture.repo.join("target/tracked"), "1\n");
    fixture.plain(&fixture.repo, &["add", "-f", "target/tracked"]);
    fixture.commit(&[]);
    write(&fixture.repo.join(".git/info/exclude"), "local\n");
    write(&fixture.root.join("home/.config/git/ignore"), "*.swp\n");
    let job = fixture.job();
    for path in ["target/tracked", "target/x", "target/deep/y", "a.log", "local", "b.swp", "seen"] {
        job.write(path, "new\n");
    }
    let captured = fixture.capture(&job);
    assert_eq!(changes(&captured.change_set), ["A seen", "M target/tracked"]);
    let found = notes(&captured.change_set);
    assert!(found.starts_with(r#"{"kind":"ignored","files":5,"#), "{found}");
    agrees_with_git(&fixture, &job);
}

#[test]
fn hard_links_and_large_files_are_noted_and_cost_no_memory() {
    let fixture = Fixture::with(&[("a", "1\n"), ("big", "small\n")]);
    let job = fixture.job();
    write(&fixture.root.join("secret"), "secret\n");
    fs::hard_link(fixture.root.join("secret"), job.tree().join("copy")).unwrap();
    for path in ["big", "huge"] {
        fs::File::create(job.tree().join(path)).unwrap().set_len(2 << 30).unwrap();
    }
    let before = memory_peak();
    let captured = fixture.capture(&job);
    let grown = memory_peak() - before;
    assert!(grown < 64 << 10, "the peak grew by {grown} KiB");
    assert_eq!(changes(&captured.change_set), ["A copy"]);
    let found = notes(&captured.change_set);
    for note in [
        r#"{"kind":"hardLinked","path":{"path":"copy"},"links":2}"#,
        r#"{"kind":"tooLarge","path":{"path":"big"},"size":2147483648}"#,
        r#"{"kind":"tooLarge","path":{"path":"huge"},"size":2147483648}"#,
    ] {
        assert!(found.contains(note), "{note} is not in {found}");
    }
}

/// The largest size that this process had in memory, in KiB.
pub(crate) fn memory_peak() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}

#[test]
fn a_large_file_of_the_base_that_was_only_touched_is_no_change() {
    let fixture = Fixture::with(&[("a", "1\n")]);
    fs::File::create(fixture.repo.join("big")).unwrap().set_len(65 << 20).unwrap();
    fixture.commit(&[]);
    let job = fixture.job();
    let big = fs::File::options().write(true).open(job.tree().join("big")).unwrap();
    big.set_modified(std::time::UNIX_EPOCH).unwrap();
    let captured = fixture.capture(&job);
    assert_eq!((changes(&captured.change_set).len(), notes(&captured.change_set).as_str()), (0, ""));
    std::os::unix::fs::FileExt::write_all_at(&big, b"x", 1000).unwrap();
    let captured = fixture.capture(&job);
    assert_eq!(changes(&captured.change_set), [""; 0]);
    assert_eq!(notes(&captured.change_set), r#"{"kind":"tooLarge","path":{"path":"big"},"size":68157440}"#);
}

#[test]
fn links_are_captured_as_links() {
    let fixture = Fixture::with(&[("dir/a", "1\n"), ("b", "1\n")]);
    let outside = fixture.root.join("outside");
    write(&outside.join("a"), "secret\n");
    let job = fixture.job();
    fs::remove_dir_all(job.tree().join("dir")).unwrap();
    symlink(&outside, job.tree().join("dir")).unwrap();
    symlink("/dev/zero", job.tree().join("zero")).unwrap();
    let captured = fixture.capture(&job);
    assert_eq!(changes(&captured.change_set), ["A dir", "D dir/a", "A zero"]);
    assert_eq!(fixture.content(&job, &captured, "dir"), outside.as_os_str().as_bytes());
    agrees_with_git(&fixture, &job);
}

#[test]
fn file_modes_count_only_where_the_person_s_file_system_has_them() {
    for (setting, expected) in [("true", &["X a", "A b"][..]), ("false", &["A b"])] {
        let fixture = Fixture::with(&[("a", "1\n")]);
        fixture.plain(&fixture.repo, &["config", "core.filemode", setting]);
        let job = fixture.job();
        job.write("b", "1\n");
        for path in ["a", "b"] {
            fs::set_permissions(job.tree().join(path), fs::Permissions::from_mode(0o4755)).unwrap();
        }
        assert_eq!(changes(&fixture.capture(&job).change_set), expected);
        agrees_with_git(&fixture, &job);
    }
}

/// The most memory that this process has had at once since it was last asked to forget it, in bytes.
fn peak() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() << 10
}

#[test]
fn a_huge_sparse_file_costs_no_memory() {
    let fixture = Fixture::with(&[("a", "1\n"), ("tracked", "1\n")]);
    let job = fixture.job();
    job.write("a", "2\n");
    for path in ["huge", "tracked"] {
        let file = fs::File::options().create(true).truncate(true).write(true).open(job.tree().join(path)).unwrap();
        file.set_len(2 << 30).unwrap();
    }
    // 5 forgets the peak so far.
    fs::write("/proc/self/clear_refs", "5").unwrap();
    let before = peak();
    let captured = fixture.capture(&job);
    let added = peak().saturating_sub(before);
    assert!(added < 64 << 20, "{added} bytes were added");
    assert_eq!(changes(&captured.change_set), ["M a"]);
    assert!(notes(&captured.change_set).contains("huge"), "{}", notes(&captured.change_set));
}
