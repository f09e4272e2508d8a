//! T-12 … T-14, T-20 … T-22: what a result hides, carries along, or is too much of.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;

use pactify_core::FailureCode;
use pactify_core::change::ChangeKind;
use pactify_core::failure::ConflictKind;
use pactify_core::protocol::{PreviewFormat, Side};
use pactify_engine::git::GitError;
use serde_json::json;

use super::world::{BOTH, all_of, obstacles, whole_life};
use super::{Fires, capturing};
use crate::contents::memory_peak;
use crate::covered::covered;
use crate::support::{Fixture, changes, dead, notes, write};

pub(super) mod hidden {
    use super::*;

    fn plant(fixture: &Fixture, tree: &Path) {
        capturing::hidden::plant(fixture, tree);
        write(&tree.join(".gitignore"), "*\n");
        write(&tree.join("also-new"), "planted\n");
    }

    pub(in crate::threats) fn fires() -> Fires {
        capturing::hidden::fires();
        let fixture = Fixture::with(&[("a", "1\n"), ("b", "1\n"), (".gitignore", "*.log\n")]);
        plant(&fixture, &fixture.repo);
        let options = ["-c", "status.showUntrackedFiles=no", "status", "--porcelain"];
        assert_eq!(fixture.plain(&fixture.repo, &options), " M .gitignore");
        Fires::Here
    }

    pub(in crate::threats) fn fails() {
        for isolation in BOTH {
            let fixture = Fixture::with(&[("a", "1\n"), ("b", "1\n"), (".gitignore", "*.log\n")]);
            let landed = fixture.land_in(&fixture.repo, isolation, |job| {
                plant(&fixture, job.tree());
                job.write("build.log", "ignored by the base\n");
                fixture.plain(job.tree(), &["config", "status.showUntrackedFiles", "no"]);
                fixture.plain(job.tree(), &["config", "core.excludesFile", "/dev/null"]);
            });
            let seen = changes(&landed.captured.change_set);
            assert_eq!(seen, ["M .gitignore", "M a", "A also-new", "M b", "A new"]);
            let told = notes(&landed.captured.change_set);
            assert!(told.contains(r#""kind":"ignored","files":1"#) && told.contains("build.log"), "{told}");
        }
    }
}

pub(super) mod committed {
    use super::*;

    type Step = fn(&Fixture, &Path);
    const STEPS: [(&str, Step); 5] = [
        ("nothing", |_, _| {}),
        ("commit", |fixture, tree| drop(fixture.plain(tree, &["commit", "-qam", "done"]))),
        ("reset", |fixture, tree| {
            fixture.plain(tree, &["commit", "-qam", "done"]);
            fixture.plain(tree, &["reset", "-q", "--soft", "HEAD~2"]);
        }),
        ("switch", |fixture, tree| {
            fixture.plain(tree, &["switch", "-qc", "elsewhere"]);
            fixture.plain(tree, &["commit", "-qam", "done"]);
        }),
        ("unborn", |fixture, tree| drop(fixture.plain(tree, &["checkout", "-q", "--orphan", "nothing"]))),
    ];

    pub(in crate::threats) fn fires() -> Fires {
        let fixture = Fixture::with(&[("a", "1\n")]);
        write(&fixture.repo.join("a"), "2\n");
        fixture.plain(&fixture.repo, &["commit", "-qam", "done"]);
        assert_eq!(fixture.plain(&fixture.repo, &["diff", "HEAD"]), "");
        assert_eq!(fixture.plain(&fixture.repo, &["status", "--porcelain"]), "");
        Fires::Here
    }

    pub(in crate::threats) fn fails() {
        for (name, step) in STEPS {
            for isolation in BOTH {
                let fixture = Fixture::with(&[("a", "0\n")]);
                fixture.commit(&[("a", "1\n"), ("c", "1\n")]);
                let seen = whole_life(&fixture, isolation, |job| {
                    job.write("a", "2\n");
                    step(&fixture, job.tree());
                    job.write("b", "not committed\n");
                    fs::remove_file(job.tree().join("c")).unwrap();
                });
                assert_eq!(seen, ["M a", "A b", "D c"], "{name}");
            }
        }
    }
}

pub(super) mod nested {
    use super::*;

    pub(in crate::threats) fn fires() -> Fires {
        capturing::nested::fires()
    }

    pub(in crate::threats) fn fails() {
        capturing::nested::fails();
        // One of the base: neither moved nor removed.
        let fixture = Fixture::with(&[("a", "1\n")]);
        let head = fixture.plain(&fixture.repo, &["rev-parse", "HEAD"]);
        fixture.plain(&fixture.repo, &["update-index", "--add", "--cacheinfo", &format!("160000,{head},sub")]);
        fixture.plain(&fixture.repo, &["commit", "-qm", "a nested repository"]);
        let landed = fixture.land(|job| {
            fs::create_dir_all(job.tree().join("sub")).unwrap();
            fixture.plain(&job.tree().join("sub"), &["init", "-q"]);
            fixture.plain(&job.tree().join("sub"), &["commit", "-q", "--allow-empty", "-m", "x"]);
            job.write("sub/planted", "x\n");
        });
        assert_eq!(changes(&landed.captured.change_set), [""; 0]);
        let told = notes(&landed.captured.change_set);
        assert!(told.contains(r#"{"kind":"submodule","path":{"path":"sub"},"files":1}"#), "{told}");
        let landed = fixture.land(|job| {
            let _ = fs::remove_dir_all(job.tree().join("sub"));
        });
        assert_eq!(changes(&landed.captured.change_set), ["D sub"]);
        assert!(landed.preview(PreviewFormat::Summary).files[0].refused.is_some());
        assert_eq!(obstacles(landed.apply()), all_of(ConflictKind::KindRefused, &["sub"]));
    }
}

pub(super) mod modes {
    use super::*;

    fn bits(path: &Path) -> u32 {
        fs::symlink_metadata(path).unwrap().permissions().mode() & 0o7777
    }

    fn set(path: &Path, mode: u32) {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    }

    pub(in crate::threats) fn fires() -> Fires {
        let fixture = Fixture::with(&[("a", "1\n")]);
        set(&fixture.repo.join("a"), 0o6777);
        // What a copying program does who keeps modes.
        fs::copy(fixture.repo.join("a"), fixture.root.join("copy")).unwrap();
        assert_eq!(bits(&fixture.root.join("copy")) & 0o022, 0o022, "writable by everybody");
        fs::rename(fixture.repo.join("a"), fixture.root.join("moved")).unwrap();
        assert_eq!(bits(&fixture.root.join("moved")), 0o6777, "and with another user's rights");
        Fires::Here
    }

    pub(in crate::threats) fn fails() {
        let fixture = Fixture::with(&[("flipped", "1\n"), ("kept", "1\n"), ("tool", "#!/bin/sh\n")]);
        set(&fixture.repo.join("tool"), 0o755);
        fixture.commit(&[]);
        set(&fixture.repo.join("kept"), 0o600);
        let landed = fixture.land(|job| {
            job.write("kept", "2\n");
            job.write("tool", "#!/bin/sh\nexit\n");
            job.write("new", "data\n");
            job.write("private", "data\n");
            for (path, mode) in
                [("flipped", 0o4755), ("new", 0o6777), ("private", 0o400), ("kept", 0o1666), ("tool", 0o755)]
            {
                set(&job.tree().join(path), mode);
            }
        });
        let expected = ["X flipped", "M kept", "A new", "A private", "M tool"];
        assert_eq!(changes(&landed.captured.change_set), expected, "a flip is a change of its own kind");
        assert_eq!(landed.preview(PreviewFormat::Summary).files[0].kind, ChangeKind::ModeChanged);
        landed.apply().unwrap();
        for (path, mode) in [("flipped", 0o755), ("kept", 0o600), ("new", 0o755), ("private", 0o644), ("tool", 0o755)] {
            assert_eq!(bits(&fixture.repo.join(path)), mode, "{path}");
        }
    }
}

pub(super) mod stale {
    use super::*;

    /// Whoever looks at the tree, and copies from it later.
    pub(in crate::threats) fn fires() -> Fires {
        let fixture = Fixture::with(&[("a", "1\n")]);
        let tree = super::super::world::plain_worktree(&fixture);
        write(&tree.join("a"), "harmless\n");
        assert!(fixture.plain(&tree, &["diff"]).contains("+harmless"));
        write(&tree.join("a"), "swapped\n");
        fs::copy(tree.join("a"), fixture.repo.join("a")).unwrap();
        assert_eq!(fs::read_to_string(fixture.repo.join("a")).unwrap(), "swapped\n");
        Fires::Here
    }

    pub(in crate::threats) fn fails() {
        for isolation in BOTH {
            let fixture = Fixture::with(&[("a", "1\n")]);
            let landed = fixture.land_in(&fixture.repo, isolation, |job| job.write("a", "harmless\n"));
            assert_eq!(landed.content("a", Side::Result).text.as_deref(), Some("harmless\n"));
            landed.job.write("a", "swapped\n");
            landed.job.write("b", "slipped in\n");
            let stale = json!({ "jobId": landed.id(), "changeSet": "0".repeat(40) });
            let refused = landed.jobs().apply(&serde_json::from_value(stale).unwrap()).unwrap_err();
            assert_eq!(refused.code, FailureCode::StalePreview);
            landed.apply().unwrap();
            assert_eq!(fs::read_to_string(fixture.repo.join("a")).unwrap(), "harmless\n");
            assert!(!fixture.repo.join("b").exists());

            let job = &landed.job;
            let proof = dead(&fixture.places());
            let refused = fixture.git.capture(&proof, &job.places, &job.repository, &job.base, &job.prepared.tree);
            assert!(
                matches!(refused, Err(GitError::ProofOfAnotherJob { .. })),
                "only the dead job's own tree is captured"
            );
        }
        covered("../tests/tests/processes/sweep.rs", "nothing_escapes_a_living_host");
    }
}

pub(super) mod huge {
    use super::*;

    const LINE: usize = 24 << 20;

    pub(in crate::threats) fn fires() -> Fires {
        let fixture = Fixture::with(&[("a", "1\n")]);
        fs::write(fixture.repo.join("a"), vec![b'x'; LINE]).unwrap();
        let diff = fixture.plain(&fixture.repo, &["diff"]);
        assert!(diff.len() > LINE, "all of it is printed");
        Fires::Here
    }

    pub(in crate::threats) fn fails() {
        let fixture = Fixture::with(&[("a", "1\n"), ("lines", "1\n")]);
        let landed = fixture.land(|job| {
            fs::write(job.tree().join("a"), vec![b'x'; LINE]).unwrap();
            fs::File::create(job.tree().join("sparse")).unwrap().set_len(2 << 30).unwrap();
            job.write("lines", &"y\n".repeat(2_000_000));
            job.write(&format!("{}end", "deep/".repeat(400)), "x\n");
            for number in 0..5_000 {
                job.write(&format!("many/{}/{number}", number % 50), "x\n");
            }
            symlink("x".repeat(4_000), job.tree().join("long")).unwrap();
        });
        let before = memory_peak();
        let again = fixture.capture(&landed.job);
        assert_eq!(again.change_set, landed.captured.change_set);
        let told = notes(&landed.captured.change_set);
        assert!(told.contains(r#"{"kind":"tooLarge","path":{"path":"sparse"},"size":2147483648}"#), "{told}");
        let preview = landed.preview(PreviewFormat::Hunks);
        assert!(preview.next.is_some() && preview.truncated, "pages, and what is cut is marked");
        assert!(preview.files.len() <= 500);
        let file = |path: &str| preview.files.iter().find(|file| file.path.path == path).unwrap();
        assert!(file("a").binary && file("a").hunks.is_none(), "too large for lines");
        let size = serde_json::to_vec(&preview).unwrap().len();
        assert!(size < 32 << 20, "a page of {size} bytes");
        assert_eq!(landed.content("a", Side::Result).text, None);
        let grown = memory_peak() - before;
        assert!(grown < 512 << 10, "the peak grew by {grown} KiB");
        landed.apply_only(&["a", "lines"]).unwrap();
        assert_eq!(fs::metadata(fixture.repo.join("a")).unwrap().len(), LINE as u64);
    }
}
