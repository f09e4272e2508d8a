//! T-24 … T-27: files that look harmless and act once they are in the checkout.

use std::fs;

use pactify_core::RepoPath;
use pactify_core::change::sensitive::{Tier, reason};
use pactify_core::failure::ConflictKind;
use pactify_core::protocol::PreviewFormat;

use super::Fires;
use super::world::{BOTH, Trap, all_of, configure, obstacles, whole_life};
use crate::support::{Fixture, changes, write};

use Tier::{BuildInput, Sensitive};

/// Every path is shown in its tier, at any depth and in any spelling, the sensitive ones first. All of the result is
/// not to be had unless they are confirmed; those that the person builds with are.
fn sorted(paths: &[(&str, Tier)]) {
    for (path, tier) in paths {
        for spelling in [path.to_string(), format!("deep/er/{path}"), format!("x/{}", path.to_uppercase())] {
            let found = reason(&RepoPath::new(spelling.as_str()).unwrap());
            assert_eq!(found.map(|(tier, _)| tier), Some(*tier), "{spelling}");
            assert!(found.is_some_and(|(_, why)| why.len() > 20), "{spelling} has no reason");
        }
    }
    let fixture = Fixture::with(&[("z", "1\n")]);
    let landed = fixture.land(|job| {
        paths.iter().for_each(|(path, _)| job.write(&format!("a/{path}"), "{}\n"));
        job.write("z", "2\n");
    });
    let shown = landed.preview(PreviewFormat::Summary).files;
    assert_eq!(shown.len(), paths.len() + 1);
    let sensitive: Vec<&str> = {
        let named = shown.iter().filter(|file| file.tier == Some(Sensitive));
        named.map(|file| file.path.path.as_str()).collect()
    };
    let expected = paths.iter().filter(|(_, tier)| *tier == Sensitive).count();
    assert_eq!(sensitive.len(), expected);
    assert!(shown[..expected].iter().all(|file| file.tier == Some(Sensitive)), "sensitive files come first");
    let before = fixture.belongings();
    if !sensitive.is_empty() {
        assert_eq!(obstacles(landed.apply_only(&[])), all_of(ConflictKind::SensitiveNotConfirmed, &sensitive));
    }
    assert_eq!(fixture.belongings(), before);
    let others: Vec<&str> = {
        let others = shown.iter().filter(|file| file.tier != Some(Sensitive));
        others.map(|file| file.path.path.as_str()).collect()
    };
    landed.apply_only(&others).unwrap();
    landed.apply_only(&sensitive).unwrap();
    assert_eq!(fixture.plain(&fixture.repo, &["status", "--porcelain", "-uall"]).lines().count(), paths.len() + 1);
}

pub(super) mod editors {
    use super::*;

    pub(in crate::threats) fn fires() -> Fires {
        Fires::CannotHere("needs editors that trust the folder; this suite starts none")
    }

    pub(in crate::threats) fn fails() {
        sorted(&[
            (".vscode/settings.json", Sensitive),
            (".vscode/tasks.json", Sensitive),
            (".vscode/launch.json", Sensitive),
            (".vscode/extensions.json", Sensitive),
            (".vscode/python.code-snippets", Sensitive),
            ("snippets/global.code-snippets", Sensitive),
            ("project.code-workspace", Sensitive),
            (".nvim.lua", Sensitive),
            (".exrc", Sensitive),
            (".editorconfig", Sensitive),
            (".idea/workspace.xml", Sensitive),
            (".idea/runConfigurations/x.xml", Sensitive),
        ]);
    }
}

pub(super) mod agents {
    use super::*;

    pub(in crate::threats) fn fires() -> Fires {
        Fires::CannotHere("needs an agent that reads them; this suite starts none")
    }

    pub(in crate::threats) fn fails() {
        sorted(&[
            (".claude/settings.json", Sensitive),
            (".claude/commands/x.md", Sensitive),
            (".codex/config.toml", Sensitive),
            (".cursor/mcp.json", Sensitive),
            (".gemini/settings.json", Sensitive),
            (".mcp.json", Sensitive),
            ("AGENTS.md", Sensitive),
            ("CLAUDE.md", Sensitive),
            ("CLAUDE.local.md", Sensitive),
            (".worktreeinclude", Sensitive),
            ("opencode.json", Sensitive),
            ("opencode.jsonc", Sensitive),
            (".opencode/agent/x.md", Sensitive),
            (".kimi/config.toml", Sensitive),
            ("kimi.toml", Sensitive),
        ]);
    }
}

pub(super) mod tools {
    use super::*;

    /// A repository whose person keeps hooks in it: whoever copies all of a result copies the next command of theirs.
    pub(in crate::threats) fn fires() -> Fires {
        let fixture = Fixture::with(&[("a", "1\n")]);
        let trap = Trap::new(&fixture);
        fixture.plain(&fixture.repo, &["config", "core.hooksPath", ".githooks"]);
        trap.at(&fixture.repo.join(".githooks/pre-commit"));
        fixture.plain(&fixture.repo, &["commit", "-q", "--allow-empty", "-m", "x"]);
        trap.fired("a hook of the result");
        // Attributes of a result alter its other files where git writes them.
        fixture.plain(&fixture.repo, &["config", "core.hooksPath", "/dev/null"]);
        write(&fixture.repo.join(".gitattributes"), "* text eol=crlf\n");
        fs::remove_file(fixture.repo.join("a")).unwrap();
        fixture.plain(&fixture.repo, &["checkout", "--", "a"]);
        assert_eq!(fs::read_to_string(fixture.repo.join("a")).unwrap(), "1\r\n");
        Fires::Here
    }

    pub(in crate::threats) fn fails() {
        sorted(&[
            (".envrc", Sensitive),
            (".husky/pre-commit", Sensitive),
            (".githooks/pre-commit", Sensitive),
            (".pre-commit-config.yaml", Sensitive),
            ("lefthook.yml", Sensitive),
            (".gitattributes", Sensitive),
            (".gitmodules", Sensitive),
            (".gitconfig", Sensitive),
            ("team.gitconfig", Sensitive),
            (".github/workflows/ci.yml", BuildInput),
            ("devcontainer.json", Sensitive),
            (".devcontainer/devcontainer.json", Sensitive),
            ("build.rs", BuildInput),
            ("package.json", BuildInput),
            ("Makefile", BuildInput),
            (".cargo/config.toml", Sensitive),
            ("rust-toolchain", Sensitive),
            ("rust-toolchain.toml", Sensitive),
            ("conftest.py", BuildInput),
            ("sitecustomize.py", Sensitive),
        ]);
        build_inputs_alone_are_no_obstacle();
        attributes_of_the_result_are_not_obeyed();
    }

    fn build_inputs_alone_are_no_obstacle() {
        let fixture = Fixture::with(&[("a", "1\n")]);
        let landed = fixture.land(|job| ["Makefile", "package.json"].iter().for_each(|path| job.write(path, "x\n")));
        assert!(landed.preview(PreviewFormat::Summary).files.iter().all(|file| file.tier == Some(BuildInput)));
        landed.apply_only(&[]).unwrap();
    }

    fn attributes_of_the_result_are_not_obeyed() {
        let fixture = Fixture::with(&[("a", "1\n")]);
        let landed = fixture.land(|job| {
            job.write(".gitattributes", "* text eol=crlf working-tree-encoding=UTF-16\n");
            job.write("a", "2\n");
            job.write("b", "new\n");
        });
        landed.apply().unwrap();
        assert_eq!(fs::read_to_string(fixture.repo.join("a")).unwrap(), "2\n");
        assert_eq!(fs::read_to_string(fixture.repo.join("b")).unwrap(), "new\n");
    }
}

pub(super) mod submodules {
    use super::*;

    /// A repository with a submodule that is behind what its commit says.
    fn world() -> (Fixture, Trap) {
        let fixture = Fixture::with(&[("a", "1\n")]);
        fixture.plain(&fixture.root, &["clone", "-q", "--bare", "repo", "library"]);
        let allow = ["-c", "protocol.file.allow=always"];
        fixture.plain(&fixture.repo, &[&allow[..], &["submodule", "add", "-q", "../library", "sub"]].concat());
        fixture.commit(&[]);
        fixture.plain(&fixture.repo.join("sub"), &["commit", "-q", "--allow-empty", "-m", "x"]);
        let trap = Trap::new(&fixture);
        (fixture, trap)
    }

    pub(in crate::threats) fn fires() -> Fires {
        let (fixture, trap) = world();
        let tree = super::super::world::plain_worktree(&fixture);
        fixture.plain(&tree, &["config", "submodule.sub.update", &format!("!{}", trap.program)]);
        fixture.plain(&fixture.repo, &["submodule", "update"]);
        trap.fired("submodule.sub.update");
        Fires::Here
    }

    pub(in crate::threats) fn fails() {
        for isolation in BOTH {
            let (fixture, trap) = world();
            let command = format!("!{}", trap.program);
            let url = format!("ext::sh -c {}", trap.program);
            let keys = [
                ("submodule.sub.update", command.as_str()),
                ("submodule.sub.url", &url),
                ("submodule.recurse", "true"),
                ("protocol.ext.allow", "always"),
                ("protocol.allow", "always"),
            ];
            let seen = whole_life(&fixture, isolation, |job| {
                job.write("a", "2\n");
                // A path that ends in a carriage return, as in CVE-2025-48384, and a program for an update.
                let modules = format!(
                    "[submodule \"sub\"]\n\tpath = \"sub\\r\"\n\turl = {url}\n\tupdate = {command}\n\
                     [submodule \"../../x\"]\n\tpath = x\n\turl = {url}\n"
                );
                job.write(".gitmodules", &modules);
                configure(&fixture, job, &keys);
            });
            assert_eq!(seen, ["M .gitmodules", "M a"]);
            trap.silent("a job's life");
            let landed = fixture.land_in(&fixture.repo, isolation, |job| job.write("b", "3\n"));
            assert_eq!(changes(&landed.captured.change_set), ["A b"]);
            landed.apply().unwrap();
            landed.discard().unwrap();
            trap.silent("the next job's life");
        }
        sorted(&[(".gitmodules", Sensitive)]);
    }
}
