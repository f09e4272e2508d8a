//! Paths that act by themselves once they are in a checkout (threats T-24 to T-26), in two tiers.
//!
//! *Sensitive*: something executes or obeys the file without being asked (editor settings and tasks, agent
//! configuration, hooks, `.envrc`, `.gitattributes`, devcontainers). Shown first; "apply all" refuses until each
//! is named or confirmed. *Build input*: runs when the person builds or tests (`Makefile`, `package.json`, CI):
//! flagged only, or every real change would be a warning. Matching is on folded names at any depth.

use serde::{Deserialize, Serialize};

use crate::RepoPath;
use crate::path::rules::folded;

/// Why a path deserves a second look.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub enum Tier {
    /// Executes or is obeyed without being asked.
    Sensitive,
    /// Executes when the person builds or tests.
    BuildInput,
}

/// Directories whose whole content is sensitive.
const SENSITIVE_DIRECTORIES: &[&str] = &[
    // Editors: tasks that run on opening a folder, settings that choose executables.
    ".vscode",
    ".idea",
    ".zed",
    ".fleet",
    ".nvim",
    ".vim",
    ".helix",
    // Agents and their tools: configuration is instruction.
    ".claude",
    ".codex",
    ".cursor",
    ".gemini",
    ".kimi",
    ".kimi-code",
    ".opencode",
    ".agents",
    ".agent",
    ".continue",
    ".windsurf",
    ".roo",
    ".cline",
    ".aider",
    ".pactify",
    ".mcp",
    // Hooks and containers: run by git or by opening the folder.
    ".husky",
    ".githooks",
    ".devcontainer",
    ".direnv",
];

/// File names that are sensitive wherever they are.
const SENSITIVE_NAMES: &[&str] = &[
    ".envrc",
    ".exrc",
    ".nvimrc",
    ".vimrc",
    ".nvim.lua",
    ".lvimrc",
    ".dir-locals.el",
    ".dir-locals-2.el",
    ".editorconfig",
    ".gitattributes",
    ".gitmodules",
    ".gitconfig",
    ".pre-commit-config.yaml",
    "lefthook.yml",
    "lefthook.yaml",
    ".lefthook.yml",
    ".lefthook.yaml",
    ".overcommit.yml",
    "devcontainer.json",
    ".devcontainer.json",
    ".mcp.json",
    "mcp.json",
    "agents.md",
    "agents.override.md",
    "claude.md",
    "claude.local.md",
    "gemini.md",
    ".cursorrules",
    ".windsurfrules",
    ".clinerules",
    "opencode.json",
    "opencode.jsonc",
    ".worktreeinclude",
    ".aider.conf.yml",
    ".tool-versions",
    "mise.toml",
    ".mise.toml",
    ".npmrc",
    ".yarnrc",
    ".yarnrc.yml",
    ".pnpmfile.cjs",
];

/// File-name endings that are sensitive.
const SENSITIVE_ENDINGS: &[&str] = &[".code-workspace", ".code-snippets", ".sublime-project", ".taskgraph.json"];

/// Directories whose content is build input.
const BUILD_DIRECTORIES: &[&str] = &[".github", ".gitlab", ".circleci", ".buildkite", ".cargo"];

/// File names that are build input.
const BUILD_NAMES: &[&str] = &[
    "makefile",
    "gnumakefile",
    "justfile",
    "rakefile",
    "dockerfile",
    "containerfile",
    "jenkinsfile",
    "vagrantfile",
    "build.rs",
    "build.zig",
    "cargo.toml",
    "rust-toolchain",
    "rust-toolchain.toml",
    "package.json",
    "setup.py",
    "setup.cfg",
    "pyproject.toml",
    "conftest.py",
    "sitecustomize.py",
    "usercustomize.py",
    "tox.ini",
    "noxfile.py",
    "cmakelists.txt",
    "meson.build",
    "configure",
    "configure.ac",
    "build.gradle",
    "build.gradle.kts",
    "settings.gradle",
    "pom.xml",
    "gemfile",
    "composer.json",
    "go.mod",
    "docker-compose.yml",
    "compose.yml",
    "compose.yaml",
    ".gitlab-ci.yml",
    ".travis.yml",
    "azure-pipelines.yml",
    "taskfile.yml",
    "webpack.config.js",
    "vite.config.js",
    "vite.config.ts",
    "jest.config.js",
    "vitest.config.ts",
    "flake.nix",
    "default.nix",
    "shell.nix",
];

/// Endings of build inputs.
const BUILD_ENDINGS: &[&str] = &[".mk", ".cmake", ".gradle", ".csproj", ".sln", ".vcxproj"];

/// The tier of `path`, if it has one.
pub fn tier(path: &RepoPath) -> Option<Tier> {
    let folded = folded(path);
    let text = String::from_utf8_lossy(&folded);
    let (directories, name) = match text.rsplit_once('/') {
        Some((directories, name)) => (directories, name),
        None => ("", text.as_ref()),
    };
    // The last component counts as a directory name too: a link or a gitlink may stand in for the directory.
    let below = |list: &[&str]| directories.split('/').chain([name]).any(|part| list.contains(&part));
    let called =
        |names: &[&str], endings: &[&str]| names.contains(&name) || endings.iter().any(|ending| name.ends_with(ending));
    if below(SENSITIVE_DIRECTORIES) || called(SENSITIVE_NAMES, SENSITIVE_ENDINGS) {
        Some(Tier::Sensitive)
    } else if below(BUILD_DIRECTORIES) || called(BUILD_NAMES, BUILD_ENDINGS) {
        Some(Tier::BuildInput)
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_fall_into_their_tiers() {
        let cases = [
            (".vscode/tasks.json", Some(Tier::Sensitive)),
            ("sub/dir/.VSCode/Settings.json", Some(Tier::Sensitive)),
            (".vscode", Some(Tier::Sensitive)),
            ("AGENTS.md", Some(Tier::Sensitive)),
            ("pkg/.envrc", Some(Tier::Sensitive)),
            (".husky/pre-commit", Some(Tier::Sensitive)),
            ("x.code-workspace", Some(Tier::Sensitive)),
            (".gitattributes", Some(Tier::Sensitive)),
            ("package.json", Some(Tier::BuildInput)),
            ("a/b/Makefile", Some(Tier::BuildInput)),
            (".github/workflows/ci.yml", Some(Tier::BuildInput)),
            ("build.rs", Some(Tier::BuildInput)),
            ("src/main.rs", None),
            ("vscode/tasks.json", None),
            ("README.md", None),
        ];
        for (path, expected) in cases {
            assert_eq!(tier(&RepoPath::new(path).unwrap()), expected, "{path}");
        }
    }
}
