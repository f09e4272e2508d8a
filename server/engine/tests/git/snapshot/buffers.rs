//! Unsaved text in place of files.

use std::fs;

use super::executable;
use crate::support::{Fixture, write};

#[test]
fn unsaved_text_is_taken_as_a_save_would_write_it() {
    let fixture = Fixture::with(&[
        ("clean", "1\n"),
        ("dirty", "1\n"),
        ("mark", "\u{feff}1\n"),
        ("windows", "1\r\n2\r\n"),
        ("run.sh", "1\n"),
        ("deleted", "1\n"),
        ("same", "1\n"),
        (".gitignore", "*.log\nout/\n"),
    ]);
    executable(&fixture.repo.join("run.sh"));
    fixture.plain(&fixture.repo, &["commit", "-qam", "mode"]);
    write(&fixture.repo.join("dirty"), "saved\n");
    write(&fixture.repo.join("untracked"), "saved\n");
    write(&fixture.repo.join("noise.log"), "saved\n");
    fs::remove_file(fixture.repo.join("deleted")).unwrap();
    let shot = fixture.snapshot(&[
        ("clean", "unsaved\n"),
        ("dirty", "unsaved\n"),
        ("mark", "unsaved\n"),
        ("windows", "unsaved\n2\n"),
        ("run.sh", "unsaved\n"),
        ("deleted", "unsaved\n"),
        ("same", "1\n"),
        ("untracked", "unsaved\n"),
        ("not/there/yet", "unsaved\n"),
        ("noise.log", "unsaved\n"),
        ("new.log", "unsaved\n"),
        ("out/deep/new", "unsaved\n"),
        (".git/config", "unsaved\n"),
    ]);
    let files = fixture.base_files(&shot);
    let of = |path: &str| files.get(path).map(String::as_str);
    for (path, expected) in [
        ("clean", Some("100644 unsaved\n")),
        ("dirty", Some("100644 unsaved\n")),
        ("mark", Some("100644 \u{feff}unsaved\n")),
        ("windows", Some("100644 unsaved\r\n2\r\n")),
        ("run.sh", Some("100755 unsaved\n")),
        ("deleted", Some("100644 unsaved\n")),
        ("same", Some("100644 1\n")),
        ("untracked", Some("100644 unsaved\n")),
        ("not/there/yet", Some("100644 unsaved\n")),
        ("noise.log", None),
        ("new.log", None),
        ("out/deep/new", None),
    ] {
        assert_eq!(of(path), expected, "{path}");
    }
    assert_eq!(
        shot.notices,
        [
            "the job starts from your uncommitted changes: 6 changed, 2 new files, with the unsaved text of 8 files",
            "unsaved text that is not part of the job: noise.log (git ignores it), new.log (git ignores it), \
             out/deep/new (git ignores it), .git/config (its name is one that is never written)",
        ]
    );
    assert_eq!(fs::read_to_string(fixture.repo.join("clean")).unwrap(), "1\n", "nothing is saved");
    let job = fixture.begin(shot);
    assert_eq!(fs::read_to_string(job.tree().join("not/there/yet")).unwrap(), "unsaved\n");
}

#[test]
fn text_is_stored_in_the_form_that_the_checkout_s_attributes_give_it() {
    let fixture = Fixture::with(&[("a.txt", "1\n"), (".gitattributes", "")]);
    write(&fixture.repo.join("a.txt"), "saved\r\n");
    let shot = fixture.snapshot(&[("a.txt", "1\r\n2\r\n"), (".gitattributes", "*.txt text eol=crlf\n")]);
    let files = fixture.base_files(&shot);
    assert_eq!(files["a.txt"], "100644 1\n2\n");
    let job = fixture.begin(shot);
    assert_eq!(fs::read_to_string(job.tree().join("a.txt")).unwrap(), "1\r\n2\r\n");
}

#[test]
fn text_that_cannot_be_told_or_belongs_elsewhere_is_named() {
    let fixture = Fixture::with(&[("latin", "1\n"), ("link", "1\n")]);
    fs::write(fixture.repo.join("latin"), b"caf\xe9\n").unwrap();
    fs::remove_file(fixture.repo.join("link")).unwrap();
    fs::create_dir(fixture.repo.join("link")).unwrap();
    fixture.plain(&fixture.repo, &["init", "-q", "inner"]);
    write(&fixture.repo.join("inner/a"), "theirs\n");
    let shot = fixture.snapshot(&[("latin", "caf\u{e9}!\n"), ("link", "x\n"), ("inner/a", "x\n")]);
    assert_eq!(
        shot.notices[1..],
        [
            "1 directory is left out, because it is a repository of its own: inner",
            "unsaved text that is not part of the job: latin (its file is not UTF-8 text), link (no regular file is at its \
             place), inner/a (it belongs to another repository)",
        ]
    );
    assert!(!fixture.base_files(&shot).contains_key("inner/a"));
}
