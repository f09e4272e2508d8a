//! T-01, T-15, T-18, T-19: links and other entries that are not what their path promises.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, symlink};

use pactify_core::change::ChangeKind;
use pactify_core::failure::ConflictKind;
use pactify_core::protocol::{PreviewFormat, Side};
use pactify_engine::git::GitError;
use pactify_engine::tree::{RemoveError, Trash};

use super::world::{BOTH, all_of, obstacles};
use super::{Fires, capturing, measured};
use crate::covered::covered;
use crate::support::{Fixture, Job, changes, notes, write};

pub(super) mod cleanup {
    use super::*;

    pub(in crate::threats) fn fires() -> Fires {
        measured::emptied::fires()
    }

    pub(in crate::threats) fn fails() {
        for isolation in BOTH {
            let fixture = Fixture::with(&[("a", "1\n")]);
            let landed = fixture.land_in(&fixture.repo, isolation, |job| job.write("a", "2\n"));
            let victim = measured::emptied::lure(&fixture, landed.job.tree(), true);
            let Job { prepared, places, repository, .. } = &landed.job;
            let refused = fixture.try_capture(&landed.job, &prepared.tree);
            assert!(matches!(refused, Err(GitError::TreeReplaced { .. })), "{refused:?}");
            let trash = Trash::open(&fixture.store).unwrap();
            let refused = trash.take_tree(&fixture.store.join("jobs"), &prepared.tree);
            assert!(matches!(refused, Err(RemoveError::Replaced { .. })), "{refused:?}");
            landed.discard().unwrap_err();
            fixture.git.release(places, repository).unwrap();
            trash.empty().unwrap();
            assert!(victim.join("precious").exists());

            // Another directory, a file, and a link where the job's own directory was.
            let tree = landed.job.tree();
            fs::remove_file(tree).unwrap();
            fs::rename(&victim, tree).unwrap();
            landed.discard().unwrap_err();
            assert!(tree.join("precious").exists());
            fs::rename(tree, &victim).unwrap();
            write(tree, "a file\n");
            landed.discard().unwrap_err();
            let job = tree.parent().unwrap();
            fs::rename(job, job.with_extension("away")).unwrap();
            symlink(&victim, job).unwrap();
            landed.jobs().discard(places.job()).unwrap_err();
            assert!(victim.join("precious").exists());
        }
        inner_links();
    }

    /// Links in the tree lead nowhere when it goes.
    fn inner_links() {
        let fixture = Fixture::with(&[("a", "1\n")]);
        let victim = fixture.root.join("victim");
        write(&victim.join("precious"), "all my work\n");
        let landed = fixture.land(|job| {
            symlink(&victim, job.tree().join("node_modules")).unwrap();
            fs::hard_link(victim.join("precious"), job.tree().join("hard")).unwrap();
        });
        landed.discard().unwrap();
        assert!(!landed.job.tree().exists());
        assert_eq!(fs::read_to_string(victim.join("precious")).unwrap(), "all my work\n");
    }
}

pub(super) mod symlinks {
    use super::*;

    /// Whoever writes a result file by file, by its path, writes through what the result before it left.
    pub(in crate::threats) fn fires() -> Fires {
        let fixture = Fixture::with(&[("a", "1\n")]);
        let outside = fixture.root.join("outside");
        fs::create_dir(&outside).unwrap();
        symlink("../outside", fixture.repo.join("dir")).unwrap();
        fs::write(fixture.repo.join("dir/x"), "from the next result\n").unwrap();
        assert!(outside.join("x").exists());
        Fires::Here
    }

    const ESCAPING: [(&str, &str); 5] = [
        ("absolute", "/etc/passwd"),
        ("dir/up", "../../outside"),
        ("git", ".git/hooks"),
        ("home", "../home"),
        ("through", "dir/../../outside"),
    ];

    pub(in crate::threats) fn fails() {
        let fixture = Fixture::with(&[("dir/a", "1\n")]);
        symlink("dir/a", fixture.repo.join("old")).unwrap();
        fixture.commit(&[]);
        let landed = fixture.land(|job| {
            for (path, target) in ESCAPING {
                symlink(target, job.tree().join(path)).unwrap();
            }
            fs::remove_file(job.tree().join("old")).unwrap();
            symlink("/etc/shadow", job.tree().join("old")).unwrap();
            symlink("dir", job.tree().join("inside")).unwrap();
        });
        let before = fixture.belongings();
        let mut all: Vec<&str> = ESCAPING.iter().map(|(path, _)| *path).chain(["inside", "old"]).collect();
        all.sort_unstable();
        assert_eq!(
            obstacles(landed.apply_only(&[])),
            all_of(ConflictKind::SymlinkNotNamed, &all),
            "links are opted into"
        );
        let named = obstacles(landed.apply());
        all.retain(|path| *path != "inside");
        assert_eq!(named, all_of(ConflictKind::KindRefused, &all), "and those that lead out are not to be had");
        assert_eq!(fixture.belongings(), before);
        assert_eq!(landed.content("old", Side::Result).text.as_deref(), Some("/etc/shadow"), "the target is shown");

        // A link of one job, and a file beneath it by another.
        let beneath = fixture.land(|job| job.write("inside/planted", "x\n"));
        landed.apply_only(&["inside"]).unwrap();
        assert_eq!(obstacles(beneath.apply()), all_of(ConflictKind::DirectoryInTheWay, &["inside/planted"]));
        assert!(!fixture.repo.join("dir/planted").exists());
        covered("engine/src/apply/tests/races.rs", "a_directory_swapped_for_a_link_after_the_check_leads_nowhere");
        covered("engine/src/apply/tests/races.rs", "whatever_happens_at_whatever_moment_nothing_is_lost_or_mixed");
    }
}

pub(super) mod types {
    use super::*;

    pub(in crate::threats) fn fires() -> Fires {
        capturing::pipes::fires();
        // A secret under another name is added like any file.
        let fixture = Fixture::with(&[("a", "1\n")]);
        write(&fixture.root.join("secret"), "secret\n");
        fs::hard_link(fixture.root.join("secret"), fixture.repo.join("notes")).unwrap();
        fixture.plain(&fixture.repo, &["add", "-A"]);
        assert_eq!(fixture.plain(&fixture.repo, &["show", ":notes"]), "secret");
        Fires::Here
    }

    pub(in crate::threats) fn fails() {
        let fixture = Fixture::with(&[
            ("file-to-dir", "1\n"),
            ("dir-to-file/a", "1\n"),
            ("dir-to-link/a", "1\n"),
            ("file-to-link", "1\n"),
            ("file-to-pipe", "1\n"),
            ("file-to-socket", "1\n"),
        ]);
        write(&fixture.root.join("secret"), "secret\n");
        let landed = fixture.land(|job| {
            let at = |name: &str| job.tree().join(name);
            for file in ["file-to-dir", "file-to-link", "file-to-pipe", "file-to-socket"] {
                fs::remove_file(at(file)).unwrap();
            }
            for directory in ["dir-to-file", "dir-to-link"] {
                fs::remove_dir_all(at(directory)).unwrap();
            }
            job.write("file-to-dir/inner", "2\n");
            job.write("dir-to-file", "2\n");
            symlink("file-to-dir", at("dir-to-link")).unwrap();
            symlink("dir-to-file", at("file-to-link")).unwrap();
            capturing::pipes::pipe(&at("file-to-pipe"));
            drop(std::os::unix::net::UnixListener::bind(at("file-to-socket")).unwrap());
            fs::hard_link(fixture.root.join("secret"), at("notes")).unwrap();
        });
        let expected = [
            "A dir-to-file",
            "D dir-to-file/a",
            "A dir-to-link",
            "D dir-to-link/a",
            "D file-to-dir",
            "A file-to-dir/inner",
            "T file-to-link",
            "D file-to-pipe",
            "D file-to-socket",
            "A notes",
        ];
        assert_eq!(changes(&landed.captured.change_set), expected);
        let told = notes(&landed.captured.change_set);
        for note in [
            r#"{"kind":"hardLinked","path":{"path":"notes"},"links":2}"#,
            r#"{"kind":"specialFile","path":{"path":"file-to-pipe"},"what":"pipe"}"#,
            r#"{"kind":"specialFile","path":{"path":"file-to-socket"},"what":"socket"}"#,
        ] {
            assert!(told.contains(note), "{note} is not in {told}");
        }
        let summary = landed.preview(PreviewFormat::Summary);
        let kind = summary.files.iter().find(|file| file.path.path == "file-to-link").unwrap().kind;
        assert_eq!(kind, ChangeKind::TypeChanged);
        let links = ["dir-to-link", "file-to-link"];
        assert_eq!(obstacles(landed.apply_only(&[])), all_of(ConflictKind::SymlinkNotNamed, &links));
        landed.apply().unwrap();
        assert_eq!(fs::read_to_string(fixture.repo.join("dir-to-link/inner")).unwrap(), "2\n");
        assert_eq!(fs::read_to_string(fixture.repo.join("file-to-link")).unwrap(), "2\n");
        assert!(fs::symlink_metadata(fixture.repo.join("file-to-pipe")).is_err());
        assert_eq!(fs::metadata(fixture.repo.join("notes")).unwrap().nlink(), 1, "a copy, if the person wants it");
    }
}

pub(super) mod through {
    use super::*;

    pub(in crate::threats) fn fires() -> Fires {
        for link in [true, false] {
            let fixture = Fixture::with(&[("a", "1\n")]);
            let outside = fixture.root.join("outside");
            write(&outside, "mine\n");
            fs::remove_file(fixture.repo.join("a")).unwrap();
            match link {
                true => symlink(&outside, fixture.repo.join("a")).unwrap(),
                false => fs::hard_link(&outside, fixture.repo.join("a")).unwrap(),
            }
            fs::write(fixture.repo.join("a"), "2\n").unwrap();
            assert_eq!(fs::read_to_string(&outside).unwrap(), "2\n");
        }
        Fires::Here
    }

    pub(in crate::threats) fn fails() {
        let fixture = Fixture::with(&[("hard", "1\n"), ("soft", "1\n")]);
        let landed = fixture.land(|job| ["hard", "soft"].iter().for_each(|path| job.write(path, "2\n")));
        let outside = fixture.root.join("outside");
        write(&outside, "1\n");
        fs::hard_link(fixture.repo.join("hard"), fixture.root.join("other name")).unwrap();
        fs::remove_file(fixture.repo.join("soft")).unwrap();
        symlink(&outside, fixture.repo.join("soft")).unwrap();
        let refused = obstacles(landed.apply());
        assert_eq!(refused, all_of(ConflictKind::ContentDiffers, &["soft"]));
        assert_eq!(fs::read_to_string(fixture.repo.join("hard")).unwrap(), "1\n");
        landed.apply_only(&["hard"]).unwrap();
        assert_eq!(fs::read_to_string(fixture.repo.join("hard")).unwrap(), "2\n");
        for untouched in [outside, fixture.root.join("other name")] {
            assert_eq!(fs::read_to_string(untouched).unwrap(), "1\n");
        }
    }
}
