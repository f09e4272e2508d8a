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

/// Paths that act for one reason, all in lower case.
struct Group {
    /// Directories: all that is in them, and whatever stands in their place.
    directories: &'static [&'static str],
    /// File names.
    names: &'static [&'static str],
    /// Endings of file names.
    endings: &'static [&'static str],
    /// What acts on them, and when: a sentence without its subject.
    why: &'static str,
}

const SENSITIVE: &[Group] = &[
    Group {
        directories: &[".vscode", ".vscode-insiders", ".zed", ".fleet", ".theia"],
        names: &[],
        endings: &[".code-workspace", ".sublime-project"],
        why: "holds an editor's tasks, launches and settings: they run on opening the folder, choose programs, approve tools",
    },
    Group {
        directories: &[],
        names: &[],
        endings: &[".code-snippets"],
        why: "puts text of its own into what the person types",
    },
    Group {
        directories: &[".idea", ".run"],
        names: &[],
        endings: &[".iml", ".ipr"],
        why: "holds an IDE's run configurations, file watchers and startup tasks",
    },
    Group {
        directories: &[".nvim", ".vim", ".helix"],
        names: &[
            ".exrc",
            ".nvimrc",
            ".vimrc",
            "_vimrc",
            ".gvimrc",
            ".nvim.lua",
            ".lazy.lua",
            ".lvimrc",
            ".dir-locals.el",
            ".dir-locals-2.el",
            ".projectile",
            ".netrwhist",
        ],
        endings: &[],
        why: "is a program that an editor runs when it is started here",
    },
    Group {
        directories: &[],
        names: &[".editorconfig"],
        endings: &[],
        why: "decides what an editor writes when it saves a file, unseen",
    },
    Group {
        directories: &[
            ".claude",
            ".claude-plugin",
            ".codex",
            ".cursor",
            ".gemini",
            ".kimi",
            ".kimi-code",
            ".opencode",
            ".agents",
            ".agent",
            ".antigravity",
            ".amazonq",
            ".augment",
            ".junie",
            ".kiro",
            ".qwen",
            ".continue",
            ".windsurf",
            ".roo",
            ".cline",
            ".aider",
            ".pactify",
            ".mcp",
        ],
        names: &[
            ".mcp.json",
            "mcp.json",
            "pactify.toml",
            "opencode.json",
            "opencode.jsonc",
            "kimi.json",
            "kimi.toml",
            ".kimi.toml",
            ".aider.conf.yml",
            ".taskmaster.json",
        ],
        endings: &[".taskgraph.json"],
        why: "configures an agent: hooks and servers that it starts, what it may do unasked, where it sends its key",
    },
    Group {
        directories: &[],
        names: &[
            "agents.md",
            "agents.override.md",
            "agent.md",
            "claude.md",
            "claude.local.md",
            "gemini.md",
            "qwen.md",
            "copilot-instructions.md",
            ".cursorrules",
            ".windsurfrules",
            ".clinerules",
            ".roorules",
            ".goosehints",
        ],
        endings: &[".instructions.md", ".chatmode.md", ".prompt.md", ".mdc"],
        why: "is obeyed by the next agent as if the person had said it",
    },
    Group {
        directories: &[],
        names: &[".worktreeinclude"],
        endings: &[],
        why: "chooses which of the person's ignored files, secrets among them, the next job is given",
    },
    Group {
        directories: &[".husky", ".githooks", ".git-hooks", ".lefthook", ".lefthook-local"],
        names: &[
            ".pre-commit-config.yaml",
            ".pre-commit-config.yml",
            "lefthook.yml",
            "lefthook.yaml",
            "lefthook.toml",
            "lefthook.json",
            "lefthook-local.yml",
            ".lefthook.yml",
            ".lefthook.yaml",
            ".lefthook.toml",
            ".overcommit.yml",
            ".huskyrc",
            ".huskyrc.json",
            ".lintstagedrc",
            ".lintstagedrc.json",
        ],
        endings: &[],
        why: "holds hooks: git runs them on the next commit, checkout or pull",
    },
    Group {
        directories: &[],
        names: &[".gitattributes", ".gitmodules", "gitconfig", ".lfsconfig"],
        endings: &[".gitconfig"],
        why: "tells git which filters, drivers, remotes and programs to use",
    },
    Group {
        directories: &[".devcontainer"],
        names: &["devcontainer.json", ".devcontainer.json", ".gitpod.yml", ".gitpod.dockerfile"],
        endings: &[],
        why: "describes a container whose commands run when the folder is opened in it",
    },
    Group {
        directories: &[".direnv"],
        names: &[
            ".envrc",
            ".tool-versions",
            "mise.toml",
            ".mise.toml",
            "mise.local.toml",
            ".mise.local.toml",
            ".autoenv",
        ],
        endings: &[],
        why: "is run or obeyed by the shell on entering the folder",
    },
    Group {
        directories: &[".mise", ".cargo"],
        names: &["rust-toolchain", "rust-toolchain.toml"],
        endings: &[],
        why: "names the compilers, wrappers and runners that a tool, or the language server of an editor, starts",
    },
    Group {
        directories: &[".yarn"],
        names: &[".npmrc", ".yarnrc", ".yarnrc.yml", ".pnpmfile.cjs", ".pnp.cjs", ".pnp.loader.mjs", "bunfig.toml"],
        endings: &[],
        why: "names the program that a package manager is, or where it sends the person's token",
    },
    Group {
        directories: &[],
        names: &["sitecustomize.py", "usercustomize.py"],
        endings: &[".pth"],
        why: "is run by every Python that is started here",
    },
];

const BUILD_INPUTS: &[Group] = &[
    Group {
        directories: &[".github", ".gitlab", ".circleci", ".buildkite", ".forgejo", ".gitea", ".woodpecker"],
        names: &[
            ".gitlab-ci.yml",
            ".travis.yml",
            "azure-pipelines.yml",
            "bitbucket-pipelines.yml",
            "jenkinsfile",
            "cloudbuild.yaml",
        ],
        endings: &[],
        why: "is run by the host of the repository, with its secrets, once it is pushed",
    },
    Group {
        directories: &[],
        names: &[
            "makefile",
            "gnumakefile",
            "bsdmakefile",
            "justfile",
            ".justfile",
            "rakefile",
            "taskfile.yml",
            "taskfile.yaml",
            "cmakelists.txt",
            "cmakepresets.json",
            "meson.build",
            "configure",
            "configure.ac",
            "build.ninja",
        ],
        endings: &[".mk", ".cmake"],
        why: "is run when the person builds",
    },
    Group {
        directories: &[],
        names: &["build.rs", "build.zig", "cargo.toml", "go.mod", "flake.nix", "default.nix", "shell.nix"],
        endings: &[],
        why: "is run, or names code to fetch and run, when the person builds or an editor analyses",
    },
    Group {
        directories: &[],
        names: &[
            "package.json",
            "webpack.config.js",
            "vite.config.js",
            "vite.config.ts",
            "jest.config.js",
            "vitest.config.ts",
            "gemfile",
            "composer.json",
        ],
        endings: &[],
        why: "holds scripts and dependencies that run on installing, building or testing",
    },
    Group {
        directories: &[],
        names: &["setup.py", "setup.cfg", "pyproject.toml", "conftest.py", "tox.ini", "noxfile.py"],
        endings: &[],
        why: "is run when the person installs or tests, and by an editor's discovery of tests",
    },
    Group {
        directories: &["buildsrc"],
        names: &["build.gradle", "build.gradle.kts", "settings.gradle", "settings.gradle.kts", "pom.xml"],
        endings: &[".gradle", ".csproj", ".sln", ".vcxproj", ".targets", ".props"],
        why: "is run when the person builds or an IDE imports the project",
    },
    Group {
        directories: &[],
        names: &[
            "dockerfile",
            "containerfile",
            "docker-compose.yml",
            "docker-compose.yaml",
            "compose.yml",
            "compose.yaml",
            "vagrantfile",
        ],
        endings: &[],
        why: "is run when the person builds or starts a container",
    },
];

/// The tier of `path`, if it has one.
pub fn tier(path: &RepoPath) -> Option<Tier> {
    reason(path).map(|(tier, _)| tier)
}

/// The tier of `path` and why it is in it: a sentence whose subject is the path.
pub fn reason(path: &RepoPath) -> Option<(Tier, &'static str)> {
    let folded = folded(path);
    let text = String::from_utf8_lossy(&folded);
    let first = |groups: &'static [Group]| groups.iter().find(|group| group.holds(&text)).map(|group| group.why);
    let sensitive = first(SENSITIVE).map(|why| (Tier::Sensitive, why));
    sensitive.or_else(|| first(BUILD_INPUTS).map(|why| (Tier::BuildInput, why)))
}

impl Group {
    fn holds(&self, folded: &str) -> bool {
        let name = folded.rsplit('/').next().unwrap_or(folded);
        // The last component counts as a directory name too: a link or a gitlink may stand in for the directory.
        folded.split('/').any(|part| self.directories.contains(&part))
            || self.names.contains(&name)
            || self.endings.iter().any(|ending| name.ends_with(ending))
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
            ("x/.Cargo/config.toml", Some(Tier::Sensitive)),
            ("lib/sitecustomize.py", Some(Tier::Sensitive)),
            ("tests/conftest.py", Some(Tier::BuildInput)),
            ("src/main.rs", None),
            ("vscode/tasks.json", None),
            ("README.md", None),
        ];
        for (path, expected) in cases {
            assert_eq!(tier(&RepoPath::new(path).unwrap()), expected, "{path}");
        }
    }

    #[test]
    fn every_name_is_in_one_group_in_the_form_that_is_compared() {
        let mut seen = std::collections::BTreeMap::new();
        for group in SENSITIVE.iter().chain(BUILD_INPUTS) {
            assert!(!group.why.is_empty() && !group.why.ends_with('.'), "{}", group.why);
            for name in [group.directories, group.names, group.endings].concat() {
                assert_eq!(folded(&RepoPath::new(name).unwrap()), name.as_bytes(), "{name} is never met");
                assert_eq!(seen.insert(name, group.why), None, "{name} has two reasons");
            }
        }
    }
}
