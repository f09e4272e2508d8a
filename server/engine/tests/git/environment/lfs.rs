//! Files in Git LFS, without git-lfs: contents in the tree, pointers in the repository, contents in the checkout.

use std::fs;
use std::path::{Path, PathBuf};

use pactify_core::lfs::{LfsPolicy, Pointer};
use pactify_core::protocol::PreviewFormat;
use pactify_engine::git::Wanted;
use sha2::Digest as _;

use super::{BOTH, notice};
use crate::checkout::{conflicts, paths};
use crate::support::{Fixture, changes, notes, trap, write};

const ATTRIBUTES: &str = "*.bin filter=lfs diff=lfs merge=lfs -text\n";

fn pointer(content: &[u8]) -> Pointer {
    let oid: String = sha2::Sha256::digest(content).iter().map(|byte| format!("{byte:02x}")).collect();
    Pointer::new(oid, content.len() as u64).unwrap()
}

fn in_store(git_dir: &Path, content: &[u8]) -> PathBuf {
    let oid = pointer(content).oid().to_owned();
    git_dir.join("lfs/objects").join(&oid[..2]).join(&oid[2..4]).join(oid)
}

/// What `git lfs` does for a person: the content in the store, its pointer in the commit, the content in the checkout.
fn track(fixture: &Fixture, files: &[(&str, &str)]) {
    let pointers: Vec<_> = files.iter().map(|(path, content)| (*path, pointer(content.as_bytes()).text())).collect();
    let texts: Vec<_> = pointers.iter().map(|(path, text)| (*path, text.as_str())).collect();
    fixture.commit(&[&[(".gitattributes", ATTRIBUTES)], &texts[..]].concat());
    for (path, content) in files {
        write(&in_store(&fixture.repo.join(".git"), content.as_bytes()), content);
        write(&fixture.repo.join(path), content);
    }
}

/// A person without git-lfs whose configuration demands it; whoever runs a filter leaves a mark.
fn without_git_lfs(fixture: &Fixture) -> PathBuf {
    let mark = fixture.root.join("mark");
    let script = trap(&fixture.root.join("filter"), &mark);
    for (key, value) in [("required", "true"), ("smudge", &script), ("clean", &script), ("process", "no-such-program")]
    {
        fixture.plain(&fixture.repo, &["config", &format!("filter.lfs.{key}"), value]);
    }
    let elsewhere = fixture.root.join("elsewhere").display().to_string();
    let refused = fixture.try_plain(&fixture.repo, &["worktree", "add", "--detach", &elsewhere]);
    assert!(!refused.status.success(), "the missing filter does not matter to git");
    mark
}

#[test]
fn contents_go_into_the_tree_and_come_back_as_contents() {
    for isolation in BOTH {
        let fixture = Fixture::empty(&[]);
        track(
            &fixture,
            &[("a.bin", "one"), ("dir/kept.bin", "kept"), ("touched.bin", "touched"), ("gone.bin", "gone")],
        );
        let mark = without_git_lfs(&fixture);
        let landed = fixture.land_in(&fixture.repo, isolation, |job| {
            assert_eq!(notice(job, "lfsPointers"), None);
            assert_eq!(fs::read_to_string(job.tree().join("dir/kept.bin")).unwrap(), "kept");
            job.write("a.bin", "two");
            job.write("touched.bin", "touched");
            job.write("new.bin", "new");
            fs::remove_file(job.tree().join("gone.bin")).unwrap();
        });
        assert_eq!(changes(&landed.captured.change_set), ["M a.bin", "D gone.bin", "A new.bin"]);
        assert_eq!(fixture.content(&landed.job, &landed.captured, "a.bin"), b"two");
        assert_eq!(paths(&landed.apply().unwrap()), ["a.bin", "gone.bin", "new.bin"]);
        for (path, content) in [("a.bin", "two"), ("dir/kept.bin", "kept"), ("new.bin", "new")] {
            assert_eq!(fs::read_to_string(fixture.repo.join(path)).unwrap(), content, "{path}");
        }
        assert!(!fixture.repo.join("gone.bin").exists());
        assert_eq!(landed.apply().unwrap().already.len(), 3, "what was applied is recognised");
        assert!(!mark.exists(), "a filter was run");
    }
}

#[test]
fn a_pointer_never_replaces_a_content() {
    let fixture = Fixture::empty(&[]);
    track(&fixture, &[("a.bin", "one"), ("b.bin", "bee")]);
    let wanted = Wanted { lfs: LfsPolicy::Pointers, ..Wanted::default() };
    let landed = fixture.land_in(&fixture.repo, wanted, |job| {
        let text = notice(job, "lfsPointers").unwrap();
        assert!(text.ends_with("as the configuration says: 2"), "{text}");
        assert_eq!(fs::read_to_string(job.tree().join("a.bin")).unwrap(), pointer(b"one").text());
        job.write("a.bin", &pointer(b"two").text());
        fs::rename(job.tree().join("b.bin"), job.tree().join("c.bin")).unwrap();
    });
    assert_eq!(changes(&landed.captured.change_set), ["M a.bin", "D b.bin", "A c.bin"]);
    let refused = landed.apply();
    assert_eq!(conflicts(refused.clone()), ["a.bin"]);
    let detail = &refused.unwrap_err().conflicts[0].detail;
    assert!(detail.contains("Git LFS pointer") && detail.contains(pointer(b"two").oid()), "{detail}");
    assert_eq!(fs::read_to_string(fixture.repo.join("a.bin")).unwrap(), "one", "nothing was written");
    assert!(fixture.repo.join("b.bin").exists());

    write(&in_store(&fixture.repo.join(".git"), b"two"), "twO");
    assert_eq!(conflicts(landed.apply()), ["a.bin"], "a damaged content is none");
    write(&in_store(&fixture.repo.join(".git"), b"two"), "two");
    assert_eq!(paths(&landed.apply().unwrap()), ["a.bin", "b.bin", "c.bin"]);
    assert_eq!(fs::read_to_string(fixture.repo.join("a.bin")).unwrap(), "two");
    assert_eq!(fs::read_to_string(fixture.repo.join("c.bin")).unwrap(), "bee");
}

#[test]
fn odd_pointers_and_contents_that_are_missing_damaged_or_links_stay_pointers() {
    let fixture = Fixture::empty(&[]);
    track(
        &fixture,
        &[("good.bin", "good"), ("missing.bin", "missing"), ("damaged.bin", "damaged"), ("link.bin", "link")],
    );
    let store = |content: &[u8]| in_store(&fixture.repo.join(".git"), content);
    fs::remove_file(store(b"missing")).unwrap();
    fs::write(store(b"damaged"), "DAMAGED").unwrap();
    fs::remove_file(store(b"link")).unwrap();
    write(&fixture.root.join("secret"), "link");
    std::os::unix::fs::symlink(fixture.root.join("secret"), store(b"link")).unwrap();
    let odd = pointer(b"good").text().replace("version", "version ");
    fixture.plain(&fixture.repo, &["checkout", "-q", "."]);
    fixture.commit(&[("odd.bin", &odd), ("plain.bin", "never was in LFS")]);
    let job = fixture.job();
    let text = notice(&job, "lfsPointers").unwrap();
    assert!(text.contains("git lfs fetch") && text.ends_with(": 3 of 4"), "{text}");
    let content = |path: &str| fs::read_to_string(job.tree().join(path)).unwrap();
    assert_eq!((content("good.bin").as_str(), content("plain.bin").as_str()), ("good", "never was in LFS"));
    for (path, text) in [("missing.bin", "missing"), ("damaged.bin", "damaged"), ("link.bin", "link")] {
        assert_eq!(content(path), pointer(text.as_bytes()).text());
    }
    assert_eq!(content("odd.bin"), odd);
    assert_eq!(
        fs::read_dir(job.places.directory())
            .unwrap()
            .filter(|entry| { entry.as_ref().unwrap().file_name() == "lfs.new" })
            .count(),
        0
    );
    assert_eq!(changes(&fixture.capture(&job).change_set), [""; 0]);
}

#[test]
fn a_checkout_of_pointers_stays_one_and_an_edited_content_is_a_conflict() {
    let fixture = Fixture::empty(&[]);
    track(&fixture, &[("a.bin", "one"), ("b.bin", "bee")]);
    let landed = fixture.land_in(&fixture.repo, Wanted { lfs: LfsPolicy::Pointers, ..Wanted::default() }, |job| {
        job.write("a.bin", &pointer(b"two").text());
        job.write("b.bin", &pointer(b"one").text());
    });
    let file = fixture.repo.join("a.bin");
    fs::write(&file, "the person's own").unwrap();
    assert_eq!(conflicts(landed.apply()), ["a.bin"]);
    fs::write(&file, pointer(b"one").text()).unwrap();
    fs::remove_dir_all(fixture.repo.join(".git/lfs/objects").join(&pointer(b"one").oid()[..2])).unwrap();
    fs::write(fixture.repo.join("b.bin"), pointer(b"bee").text()).unwrap();
    landed.apply().unwrap();
    assert_eq!(fs::read_to_string(&file).unwrap(), pointer(b"two").text());
    assert_eq!(fs::read_to_string(fixture.repo.join("b.bin")).unwrap(), pointer(b"one").text());
}

#[test]
fn modes_sizes_and_other_filters() {
    use std::os::unix::fs::PermissionsExt as _;
    let fixture = Fixture::empty(&[]);
    let large = "x".repeat(65 << 20);
    track(&fixture, &[("large.bin", &large), ("tool.bin", "tool")]);
    fixture.plain(&fixture.repo, &["update-index", "--chmod=+x", "tool.bin"]);
    fixture.plain(&fixture.repo, &["commit", "-qm", "mode"]);
    write(&fixture.repo.join(".gitattributes"), &format!("{ATTRIBUTES}*.secret filter=git-crypt\n"));
    fixture.plain(&fixture.repo, &["add", ".gitattributes"]);
    fixture.plain(&fixture.repo, &["commit", "-qm", "another filter"]);
    let landed = fixture.land(|job| {
        let text = notice(job, "contentFilters").unwrap();
        assert!(text.contains("(git-crypt)"), "{text}");
        let mode = |path: &str| fs::metadata(job.tree().join(path)).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode("tool.bin") & 0o100, mode("large.bin") & 0o100), (0o100, 0));
        // Only touched: its content is larger than what a capture takes in.
        job.write("large.bin", &large);
        fs::set_permissions(job.tree().join("tool.bin"), fs::Permissions::from_mode(0o644)).unwrap();
    });
    assert_eq!(changes(&landed.captured.change_set), ["X tool.bin"]);
    assert_eq!(notes(&landed.captured.change_set), "");
    assert_eq!(landed.preview(PreviewFormat::Summary).files.len(), 1);
    fs::remove_dir_all(fixture.repo.join(".git/lfs")).unwrap();
    fs::set_permissions(fixture.repo.join("tool.bin"), fs::Permissions::from_mode(0o755)).unwrap();
    let refused = landed.apply();
    assert_eq!(fs::read_to_string(fixture.repo.join("tool.bin")).unwrap(), "tool", "{refused:?}");
}
