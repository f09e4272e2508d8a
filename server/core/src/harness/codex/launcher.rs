//! Where the native codex binary lies, seen from the npm launcher.
//!
//! The launcher is a node program that spawns codex: a SIGKILL on it orphans codex, and it costs half a second. The
//! binary must be run where it lies, beside its `codex-resources/`. Which candidate exists is for the engine to see.

use std::path::{Path, PathBuf};

use crate::AbsPath;

/// The processor that a binary is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Arch {
    X64,
    Arm64,
}

impl Arch {
    /// The processor that this program was built for, and runs on.
    pub(super) fn of_this_build() -> Self {
        if cfg!(target_arch = "aarch64") { Self::Arm64 } else { Self::X64 }
    }

    fn package(self) -> &'static str {
        match self {
            Self::X64 => "codex-linux-x64",
            Self::Arm64 => "codex-linux-arm64",
        }
    }

    fn triple(self) -> &'static str {
        match self {
            Self::X64 => "x86_64-unknown-linux-musl",
            Self::Arm64 => "aarch64-unknown-linux-musl",
        }
    }
}

/// The places of the binary, best first; none when `executable` is no launcher that is known here.
///
/// `executable` may be the launcher itself (`…/@openai/codex/bin/codex.js`) or one of the links to it that npm makes:
/// `…/node_modules/.bin/codex`, or `<prefix>/bin/codex` for a global installation.
pub(super) fn native_candidates(executable: &AbsPath, arch: Arch) -> Vec<AbsPath> {
    let mut found = Vec::new();
    for package in launcher_packages(executable.as_path()) {
        let scope = package.parent().unwrap_or(&package);
        let platform = Path::new("@openai").join(arch.package());
        let vendors = [
            // Nested below the launcher's package, hoisted beside it (npm, pnpm, yarn), or inside it (old releases).
            package.join("node_modules").join(platform).join("vendor"),
            scope.join(arch.package()).join("vendor"),
            package.join("vendor"),
        ];
        for vendor in vendors {
            let root = vendor.join(arch.triple());
            found.extend(AbsPath::new(root.join("bin/codex")));
            found.extend(AbsPath::new(root.join("codex/codex")));
        }
    }
    found
}

/// The directories that may be the npm package `@openai/codex`.
fn launcher_packages(executable: &Path) -> Vec<PathBuf> {
    if executable.ends_with("@openai/codex/bin/codex.js") {
        return executable.ancestors().nth(2).map(Path::to_owned).into_iter().collect();
    }
    if executable.ends_with("node_modules/.bin/codex") {
        return executable.ancestors().nth(2).map(|modules| modules.join("@openai/codex")).into_iter().collect();
    }
    let in_vendor = executable.components().any(|part| part.as_os_str() == "vendor");
    if executable.ends_with("bin/codex") && !in_vendor {
        let prefix = executable.ancestors().nth(2);
        return prefix.map(|prefix| prefix.join("lib/node_modules/@openai/codex")).into_iter().collect();
    }
    Vec::new()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn candidates(executable: &str, arch: Arch) -> Vec<String> {
        let executable = AbsPath::new(executable).unwrap();
        native_candidates(&executable, arch).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn the_binary_is_found_from_every_kind_of_installation() {
        let x64 = "codex-linux-x64/vendor/x86_64-unknown-linux-musl/bin/codex";
        let arm = "codex-linux-arm64/vendor/aarch64-unknown-linux-musl/bin/codex";
        for (executable, arch, binary) in [
            // A project's own installation, hoisted: by its link, and resolved.
            ("/p/node_modules/.bin/codex", Arch::X64, format!("/p/node_modules/@openai/{x64}")),
            ("/p/node_modules/@openai/codex/bin/codex.js", Arch::X64, format!("/p/node_modules/@openai/{x64}")),
            ("/p/node_modules/@openai/codex/bin/codex.js", Arch::Arm64, format!("/p/node_modules/@openai/{arm}")),
            // A global one, nested: by its link, and resolved.
            ("/usr/bin/codex", Arch::X64, format!("/usr/lib/node_modules/@openai/codex/node_modules/@openai/{x64}")),
            (
                "/usr/lib/node_modules/@openai/codex/bin/codex.js",
                Arch::Arm64,
                format!("/usr/lib/node_modules/@openai/codex/node_modules/@openai/{arm}"),
            ),
            // pnpm's store: the platform's package is a sibling.
            (
                "/p/node_modules/.pnpm/@openai+codex@0.171.0/node_modules/@openai/codex/bin/codex.js",
                Arch::X64,
                format!("/p/node_modules/.pnpm/@openai+codex@0.171.0/node_modules/@openai/{x64}"),
            ),
            // Releases that carry the binary in the launcher's own package.
            (
                "/p/node_modules/.bin/codex",
                Arch::X64,
                "/p/node_modules/@openai/codex/vendor/x86_64-unknown-linux-musl/codex/codex".to_owned(),
            ),
        ] {
            assert!(candidates(executable, arch).contains(&binary), "{executable}: {binary}");
        }
    }

    #[test]
    fn a_program_that_is_no_launcher_is_run_as_it_is() {
        for executable in [
            "/p/node_modules/@openai/codex-linux-x64/vendor/x86_64-unknown-linux-musl/bin/codex",
            "/opt/codex",
            "/home/u/my-wrapper.sh",
            "/",
        ] {
            assert_eq!(candidates(executable, Arch::X64), Vec::<String>::new(), "{executable}");
        }
    }
}
