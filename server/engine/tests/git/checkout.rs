//! From a job's tree into a checkout that holds other bytes than the repository stores: what is previewed, what is
//! written, what is a conflict.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;

use pactify_core::protocol::{Applied, Content, PreviewFormat, Side};
use pactify_core::{Failure, FailureCode};

use crate::support::{Fixture, trap, write};

fn utf16(text: &str) -> Vec<u8> {
    text.encode_utf16().flat_map(u16::to_le_bytes).collect()
}

fn latin(text: &str) -> Vec<u8> {
    text.as_bytes().to_vec()
}

/// Replaces bytes of a file.
fn edit(path: &Path, from: &[u8], to: &[u8]) {
    let old = fs::read(path).unwrap();
    let at = old.windows(from.len()).position(|window| window == from).unwrap();
    fs::write(path, [&old[..at], to, &old[at + from.len()..]].concat()).unwrap();
}

/// The paths in the way of an apply that is refused.
pub(crate) fn conflicts(refused: Result<Applied, Failure>) -> Vec<String> {
    let failure = refused.unwrap_err();
    assert_eq!(failure.code, FailureCode::ApplyConflict, "{failure:?}");
    failure.conflicts.into_iter().map(|conflict| conflict.path.path).collect()
}

pub(crate) fn paths(applied: &Applied) -> Vec<&str> {
    applied.applied.iter().map(|name| name.path.as_str()).collect()
}

#[test]
fn a_one_line_edit_is_one_line_and_leaves_the_other_bytes_alone() {
    type Encode = fn(&str) -> Vec<u8>;
    let dos = "one\r\ntwo\r\nthree\r\n";
    for (setting, attributes, text, encode) in [
        (Some(("core.autocrlf", "true")), "", dos, latin as Encode),
        (Some(("core.eol", "crlf")), "*.txt text\n", dos, latin),
        (None, "*.txt text eol=crlf\n", dos, latin),
        (None, "* text=auto eol=crlf\n", dos, latin),
        (None, "*.txt working-tree-encoding=UTF-16LE\n", "one\ntwo\nthree\n", utf16),
        (None, "*.txt text working-tree-encoding=UTF-16LE eol=crlf\n", dos, utf16),
        (None, "", "one\ntwo\nthree\n", latin),
    ] {
        let fixture = Fixture::empty(&[]);
        if let Some((key, value)) = setting {
            fixture.plain(&fixture.repo, &["config", key, value]);
        }
        let file = fixture.repo.join("sub/a.txt");
        write(&file, "");
        fs::write(&file, encode(text)).unwrap();
        fixture.commit(&[(".gitattributes", attributes)]);
        let landed = fixture.land(|job| edit(&job.tree().join("sub/a.txt"), &encode("two"), &encode("2")));
        let what = format!("{setting:?} {attributes:?}");

        let preview = landed.preview(PreviewFormat::Hunks);
        let hunks = preview.files[0].hunks.as_deref().unwrap();
        assert_eq!((preview.files.len(), hunks.len()), (1, 1), "{what}");
        assert_eq!(
            (hunks[0].old_lines.as_slice(), hunks[0].new_lines.as_slice()),
            (&["two".into()][..], &["2".into()][..])
        );

        assert_eq!(paths(&landed.apply().unwrap()), ["sub/a.txt"], "{what}");
        assert_eq!(fs::read(&file).unwrap(), encode(&text.replace("two", "2")), "{what}");
        assert_eq!(fixture.plain(&fixture.repo, &["status", "--porcelain"]), " M sub/a.txt", "{what}");
        assert_eq!(fixture.plain(&fixture.repo, &["diff", "--numstat"]), "1\t1\tsub/a.txt", "{what}");
    }
}

#[test]
fn ident_names_the_new_content() {
    let fixture = Fixture::with(&[(".gitattributes", "*.txt ident\n"), ("a.txt", "$Id$\ntwo\n")]);
    let file = fixture.repo.join("a.txt");
    fs::remove_file(&file).unwrap();
    fixture.plain(&fixture.repo, &["checkout", "a.txt"]);
    let before = fs::read_to_string(&file).unwrap();
    assert!(before.starts_with("$Id: "), "git expands it: {before:?}");
    let landed = fixture.land(|job| edit(&job.tree().join("a.txt"), b"two", b"2"));
    landed.apply().unwrap();
    write(&fixture.root.join("stored"), "$Id$\n2\n");
    let object = fixture.plain(&fixture.root, &["hash-object", "stored"]);
    assert_eq!(fs::read_to_string(&file).unwrap(), format!("$Id: {object} $\n2\n"));
    assert_eq!(fixture.plain(&fixture.repo, &["diff", "--numstat"]), "1\t1\ta.txt");
}

#[test]
fn every_file_keeps_its_own_form() {
    let fixture = Fixture::with(&[("stored-dos.txt", "one\r\ntwo\r\n")]);
    fixture.plain(&fixture.repo, &["config", "core.autocrlf", "true"]);
    fixture.commit(&[
        ("dos.txt", "one\r\ntwo\r\n"),
        ("unix.txt", "one\ntwo\n"),
        ("mixed.txt", "one\r\ntwo\r\n"),
        ("gone.txt", "one\r\n"),
        ("data.bin", "\0one\r\ntwo\n"),
        ("pinned/.gitattributes", "*.txt eol=lf\r\n"),
        ("pinned/a.txt", "one\ntwo\n"),
    ]);
    // Only the line endings of a line: nothing that git counts as a change.
    fs::write(fixture.repo.join("mixed.txt"), "one\ntwo\r\n").unwrap();
    assert_eq!(fixture.plain(&fixture.repo, &["diff", "--numstat"]), "");
    let landed = fixture.land(|job| {
        for path in ["stored-dos.txt", "dos.txt", "unix.txt", "mixed.txt", "data.bin", "pinned/a.txt"] {
            edit(&job.tree().join(path), b"two", b"2");
        }
        fs::remove_file(job.tree().join("gone.txt")).unwrap();
        job.write("new/added.txt", "a\nb\n");
        job.write("new.bin", "\0a\n");
    });
    landed.apply().unwrap();
    for (path, content) in [
        ("stored-dos.txt", "one\r\n2\r\n"),
        ("dos.txt", "one\r\n2\r\n"),
        ("unix.txt", "one\n2\n"),
        ("mixed.txt", "one\r\n2\r\n"),
        ("data.bin", "\0one\r\n2\n"),
        ("pinned/a.txt", "one\n2\n"),
        ("new/added.txt", "a\r\nb\r\n"),
        ("new.bin", "\0a\n"),
    ] {
        assert_eq!(fs::read_to_string(fixture.repo.join(path)).unwrap(), content, "{path}");
    }
    assert!(!fixture.repo.join("gone.txt").exists());
    fixture.plain(&fixture.repo, &["add", "-A"]);
    assert_eq!(fixture.plain(&fixture.repo, &["write-tree"]), landed.change_set(), "git stores what was captured");
}

#[test]
fn attributes_that_the_job_changes_do_not_alter_its_other_files() {
    let fixture = Fixture::empty(&[]);
    fixture.plain(&fixture.repo, &["config", "core.autocrlf", "true"]);
    fixture.commit(&[
        (".gitattributes", "*.dos text eol=crlf\r\n*.lf text eol=lf\r\n"),
        ("a.dos", "one\r\ntwo\r\n"),
        ("a.lf", "one\ntwo\n"),
        ("dir/.gitattributes", "* text eol=crlf\r\n"),
        ("dir/a", "one\r\n"),
    ]);
    let landed = fixture.land(|job| {
        job.write(".gitattributes", "*.dos text eol=lf\r\n*.lf text eol=crlf\r\n*.new text eol=lf\r\n");
        edit(&job.tree().join("a.dos"), b"two", b"2");
        edit(&job.tree().join("a.lf"), b"two", b"2");
        job.write("a.new", "new\n");
        // A file where a directory with attributes was.
        fs::remove_dir_all(job.tree().join("dir")).unwrap();
        job.write("dir", "a file\r\n");
    });
    landed.apply().unwrap();
    for (path, content) in [
        ("a.dos", "one\r\n2\r\n"),
        ("a.lf", "one\n2\n"),
        ("a.new", "new\r\n"),
        ("dir", "a file\r\n"),
        (".gitattributes", "*.dos text eol=lf\r\n*.lf text eol=crlf\r\n*.new text eol=lf\r\n"),
    ] {
        assert_eq!(fs::read_to_string(fixture.repo.join(path)).unwrap(), content, "{path}");
    }
}

#[test]
fn a_file_that_the_person_edited_is_a_conflict_and_an_untouched_one_is_not() {
    for (attributes, before, after) in [
        ("* text=auto eol=crlf\n", latin("one\r\ntwo\r\n"), latin("one\r\nmine\r\n")),
        ("*.txt working-tree-encoding=UTF-16LE\n", utf16("one\ntwo\n"), utf16("one\nmine\n")),
        ("*.txt working-tree-encoding=UTF-16LE\n", utf16("one\ntwo\n"), latin("not UTF-16")),
        ("*.txt ident\n", latin("$Id$\ntwo\n"), latin("$Id$\nmine\n")),
    ] {
        let fixture = Fixture::empty(&[]);
        let (edited, untouched) = (fixture.repo.join("edited.txt"), fixture.repo.join("untouched.txt"));
        fs::write(&edited, &before).unwrap();
        fs::write(&untouched, &before).unwrap();
        fixture.commit(&[(".gitattributes", attributes)]);
        let landed = fixture.land(|job| {
            for path in ["edited.txt", "untouched.txt"] {
                let path = job.tree().join(path);
                let content = [fs::read(&path).unwrap(), before.clone()].concat();
                fs::write(path, content).unwrap();
            }
        });
        fs::write(&edited, &after).unwrap();
        assert_eq!(conflicts(landed.apply()), ["edited.txt"], "{attributes}");
        assert_eq!(fs::read(&untouched).unwrap(), before, "nothing is written");
        fs::write(&edited, &before).unwrap();
        assert_eq!(paths(&landed.apply().unwrap()), ["edited.txt", "untouched.txt"], "{attributes}");
        assert!(landed.apply().unwrap().applied.is_empty(), "what was applied is recognised in the checkout's form");
    }
}

#[test]
fn executable_bits_that_mean_nothing_are_neither_a_conflict_nor_changed() {
    let fixture = Fixture::with(&[("a.sh", "one\n")]);
    fixture.plain(&fixture.repo, &["config", "core.fileMode", "false"]);
    let landed = fixture.land(|job| job.write("a.sh", "two\n"));
    let file = fixture.repo.join("a.sh");
    fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).unwrap();
    landed.apply().unwrap();
    assert_eq!(fs::read_to_string(&file).unwrap(), "two\n");
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o755);
}

#[test]
fn no_filter_runs_whoever_configured_it() {
    let fixture =
        Fixture::with(&[(".gitattributes", "*.txt text eol=crlf filter=evil\n"), ("a.txt", "one\r\ntwo\r\n")]);
    let mark = fixture.root.join("mark");
    let program = trap(&fixture.root.join("evil.sh"), &mark);
    let plant = |directory: &Path| {
        for action in ["clean", "smudge"] {
            fixture.plain(directory, &["config", &format!("filter.evil.{action}"), &program]);
        }
    };
    plant(&fixture.repo);
    fixture.plain(&fixture.repo, &["hash-object", "a.txt"]);
    assert!(mark.exists(), "the filter runs where nothing prevents it");
    fs::remove_file(&mark).unwrap();

    let landed = fixture.land(|job| {
        plant(job.tree());
        job.write(".gitattributes", "* filter=evil\n");
        edit(&job.tree().join("a.txt"), b"two", b"2");
        job.write("new.txt", "new\r\n");
        fixture.plain(job.tree(), &["add", "-A"]);
    });
    assert!(mark.exists(), "what the job planted runs where nothing prevents it");
    fs::remove_file(&mark).unwrap();
    landed.apply().unwrap();
    assert_eq!(fs::read_to_string(fixture.repo.join("a.txt")).unwrap(), "one\r\n2\r\n");
    assert_eq!(fs::read_to_string(fixture.repo.join("new.txt")).unwrap(), "new\r\n");
    assert!(!mark.exists());
}

#[test]
fn what_is_not_converted_costs_the_same_however_many_files_there_are() {
    let calls = |attributes: &str, files: usize| {
        let fixture = Fixture::with(&[("a.txt", "x\n")]);
        if !attributes.is_empty() {
            fixture.commit(&[(".gitattributes", attributes)]);
        }
        let landed = fixture.land(|job| {
            for number in 0..files {
                job.write(&format!("d{}/f{number}.txt", number % 50), "text\n");
            }
        });
        let counted = fixture.counting();
        let job = &landed.job;
        let set =
            counted.git.change_set(&job.places.capture(), &job.base.tree, landed.captured.result.change_set.tree());
        counted.calls();
        let form = counted.git.checkout_form(&job.places, &job.base, &set.unwrap()).unwrap();
        for change in &landed.captured.change_set.changes {
            let object = &change.new.as_ref().unwrap().object;
            let held = form.checked_out(&change.path, object).unwrap().unwrap_or_else(|| b"text\n".to_vec());
            assert!(form.stored(&change.path, &held).unwrap().is_none_or(|stored| stored == *object));
        }
        counted.calls()
    };
    assert_eq!(calls("", 2), ["ls-tree"]);
    assert_eq!(calls("*.dat text eol=crlf\n", 2), ["ls-tree", "cat-file", "check-attr"]);
    assert_eq!(calls("*.dat text eol=crlf\n", 2_000), ["ls-tree", "cat-file", "check-attr"]);
    assert_eq!(calls("*.txt text eol=crlf\n", 2), calls("*.txt text eol=crlf\n", 2_000));
}

#[test]
fn the_current_side_is_what_the_checkout_holds_and_nothing_beyond_it() {
    let fixture = Fixture::empty(&[]);
    fixture.commit(&[(".gitattributes", "*.txt text eol=crlf\n"), ("dir/a.txt", "one\r\ntwo\r\n")]);
    let landed = fixture.land(|job| edit(&job.tree().join("dir/a.txt"), b"two", b"2"));
    let file = fixture.repo.join("dir/a.txt");
    let absent = || Content { text: None, binary: false, size: 0, exists: false, object: None, conflicts: None };
    let text = |text: &str| Content { text: Some(text.into()), size: text.len() as u64, exists: true, ..absent() };
    assert_eq!(landed.content("dir/a.txt", Side::Base), text("one\ntwo\n"));
    assert_eq!(landed.content("dir/a.txt", Side::Result), text("one\n2\n"));
    assert_eq!(landed.content("dir/a.txt", Side::Current), text("one\r\ntwo\r\n"));

    fs::write(&file, "\0").unwrap();
    assert_eq!(landed.content("dir/a.txt", Side::Current), Content { binary: true, size: 1, exists: true, ..absent() });
    fs::File::create(&file).unwrap().set_len(1 << 40).unwrap();
    let large = Content { binary: true, size: 1 << 40, exists: true, ..absent() };
    assert_eq!(landed.content("dir/a.txt", Side::Current), large);

    let secret = fixture.root.join("secrets/a.txt");
    write(&secret, "secret");
    fs::remove_file(&file).unwrap();
    assert_eq!(landed.content("dir/a.txt", Side::Current), absent());
    symlink(&secret, &file).unwrap();
    assert_eq!(fs::read_to_string(&file).unwrap(), "secret", "whoever follows it, reads it");
    assert_eq!(landed.content("dir/a.txt", Side::Current), text(secret.to_str().unwrap()));
    fs::remove_dir_all(fixture.repo.join("dir")).unwrap();
    symlink(fixture.root.join("secrets"), fixture.repo.join("dir")).unwrap();
    assert_eq!(landed.content("dir/a.txt", Side::Current), absent());
}
