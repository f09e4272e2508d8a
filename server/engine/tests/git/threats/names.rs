//! T-16, T-17, T-23: names that mean something else to a file system, or to the eye.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;

use pactify_core::FailureCode;
use pactify_core::RepoPath;
use pactify_core::change::sensitive::{Tier, tier};
use pactify_core::failure::ConflictKind;
use pactify_core::path::rules::WritablePath;
use pactify_core::protocol::PreviewFormat;

use super::Fires;
use super::world::{Trap, all_of, obstacles};
use crate::support::{Fixture, changes, notes, write};

pub(super) mod syntax {
    use super::*;

    /// What no path inside a repository can be.
    const NO_PATHS: [&str; 9] = ["", "/etc/passwd", "../x", "a/../../x", "a//b", "./a", "a/", "..\0x", "a/..\0/b"];
    /// Names that are one thing here and git's own directory elsewhere. A capture leaves them out.
    const GIT_SOMEWHERE: [&str; 9] = [
        ".GIT/config",
        "sub/git~1/config",
        ".g\u{200c}it/config",
        ".git /config",
        ".git./config",
        ".git::$INDEX_ALLOCATION/config",
        ".git\\config",
        "\u{ff0e}git/config",
        "GIT~2",
    ];
    /// Names that a repository can hold, and that no apply writes on any platform.
    const REFUSED: [&str; 12] = [
        "a\\b",
        "..\\x",
        "C:x",
        "C:\\x",
        "a:stream",
        "dir./x",
        "x ",
        "CON",
        "sub/nul.txt",
        "lpt1.c",
        "a\u{1b}[31m",
        "line\nbreak",
    ];

    /// Whoever joins a name of the result to the checkout's path, and writes there.
    pub(in crate::threats) fn fires() -> Fires {
        let fixture = Fixture::with(&[("a", "1\n")]);
        let trap = Trap::new(&fixture);
        fs::write(fixture.repo.join("../x"), "outside\n").unwrap();
        assert!(fixture.root.join("x").exists());
        trap.at(&fixture.repo.join(".git/hooks/post-index-change"));
        write(&fixture.repo.join("a"), "1\n");
        fixture.plain(&fixture.repo, &["status"]);
        trap.fired(".git/hooks");
        // What Windows and macOS make of the other names cannot be shown on Linux.
        Fires::Here
    }

    pub(in crate::threats) fn fails() {
        for name in NO_PATHS {
            assert!(RepoPath::new(name).is_err(), "{name:?}");
        }
        for name in [&GIT_SOMEWHERE[..], &REFUSED, &[&"a".repeat(256)]].concat() {
            assert!(WritablePath::check(RepoPath::new(name).unwrap()).is_err(), "{name:?}");
        }
        let fixture = Fixture::with(&[("a", "1\n")]);
        let landed = fixture.land(|job| {
            for name in GIT_SOMEWHERE.iter().chain(&REFUSED) {
                write(&job.tree().join(name), "x\n");
            }
            job.write("b", "2\n");
        });
        let told = notes(&landed.captured.change_set);
        assert_eq!(told.lines().count(), GIT_SOMEWHERE.len(), "{told}");
        let files = landed.preview(PreviewFormat::Summary).files;
        assert_eq!(files.len(), REFUSED.len() + 1);
        for file in &files {
            assert_eq!(file.refused.is_some(), file.path.path != "b", "{file:?}");
        }
        let before = fixture.belongings();
        let refused = obstacles(landed.apply());
        assert_eq!(refused.len(), REFUSED.len(), "the preview and the apply agree");
        assert!(refused.iter().all(|(_, kind)| *kind == ConflictKind::NameRefused), "{refused:?}");
        for name in NO_PATHS {
            let failure = landed.apply_only(&[name]).unwrap_err();
            assert_eq!(failure.code, FailureCode::InvalidParams, "{name:?}: {failure:?}");
        }
        assert_eq!(fixture.belongings(), before);
        landed.apply_only(&["b"]).unwrap();
    }
}

pub(super) mod collisions {
    use super::*;
    use crate::refusals::Mount;

    pub(in crate::threats) fn fires() -> Fires {
        let fixture = Fixture::without_repository();
        let Some(_mount) = Mount::folding(&fixture.repo) else {
            return Fires::CannotHere("needs a file system that folds case, and the right to mount one");
        };
        write(&fixture.repo.join("README"), "mine\n");
        write(&fixture.repo.join("readme"), "another file\n");
        assert_eq!(fs::read_to_string(fixture.repo.join("README")).unwrap(), "another file\n");
        Fires::Here
    }

    pub(in crate::threats) fn fails() {
        let fixture = Fixture::with(&[("README", "1\n"), ("Src/a", "1\n"), ("caf\u{e9}", "1\n")]);
        let names = ["cafe\u{301}", "readme", "src/b", "New", "new", "\u{212a}elvin", "kelvin"];
        let landed = fixture.land(|job| names.iter().for_each(|name| job.write(name, "2\n")));
        let before = fixture.belongings();
        let refused = obstacles(landed.apply());
        let mut expected = vec!["cafe\u{301}", "new", "readme", "src/b", "\u{212a}elvin"];
        expected.sort_unstable();
        assert_eq!(refused, all_of(ConflictKind::NameCollides, &expected));
        assert_eq!(fixture.belongings(), before);
        for path in [".vscode/Settings.json", "x/.VSCODE/tasks.json", ".Claude/settings.json", "agents.MD", ".ENVRC"] {
            assert_eq!(tier(&RepoPath::new(path).unwrap()), Some(Tier::Sensitive), "{path}");
        }
    }
}

pub(super) mod display {
    use super::*;

    const NAMES: [&str; 6] = [
        "\u{1b}]0;owned\u{7}\u{1b}[2J",
        "cod\u{202e}exe.txt",
        "carriage\rreturn",
        "zero\u{200b}width",
        "[x](command:workbench.action.quit)",
        "\u{9b}31m",
    ];

    fn deceives(c: char) -> bool {
        c.is_control() || matches!(c, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    }

    pub(in crate::threats) fn fires() -> Fires {
        let fixture = Fixture::with(&NAMES.map(|name| (name, "x\n")));
        let listed = fixture.plain(&fixture.repo, &["-c", "core.quotePath=false", "ls-files", "-z"]);
        assert!(listed.contains("\u{1b}[2J") && listed.contains('\u{202e}'), "{listed:?}");
        Fires::Here
    }

    pub(in crate::threats) fn fails() {
        let fixture = Fixture::with(&[("a", "1\n")]);
        let landed = fixture.land(|job| {
            for name in NAMES {
                write(&job.tree().join(name), "x\n");
                super::super::capturing::pipes::pipe(&job.tree().join(format!("pipe {name}")));
                fs::create_dir_all(job.tree().join(format!("repo {name}"))).unwrap();
                fixture.plain(&job.tree().join(format!("repo {name}")), &["init", "-q"]);
            }
            fs::write(job.tree().join(OsStr::from_bytes(b"\xff\x1b[2J")), "x\n").unwrap();
        });
        assert_eq!(changes(&landed.captured.change_set).len(), NAMES.len() + 1);
        let refused = landed.apply().unwrap_err();
        let status = landed.jobs().status(landed.job.places.job()).unwrap();
        let summary = landed.preview(PreviewFormat::Summary);
        let shown = [
            serde_json::to_value(&summary).unwrap(),
            serde_json::to_value(&refused).unwrap(),
            serde_json::to_value(&status).unwrap(),
        ];
        for value in &shown {
            plain(value);
        }
        // What is shown leads back to the file all the same.
        for file in &summary.files {
            RepoPath::try_from(file.path.clone()).unwrap();
        }
        crate::covered::covered("../tests/tests/e2e/hostile.rs", "what_an_agent_says_cannot_drive_the_editor");
        crate::covered::covered("lsp/src/cli/output.rs", "text_of_a_job_cannot_reach_the_terminal_as_control");
    }

    fn plain(value: &serde_json::Value) {
        match value {
            serde_json::Value::String(text) => assert!(!text.chars().any(deceives), "{text:?}"),
            serde_json::Value::Array(items) => items.iter().for_each(plain),
            serde_json::Value::Object(fields) => fields.values().for_each(plain),
            _ => {}
        }
    }
}
