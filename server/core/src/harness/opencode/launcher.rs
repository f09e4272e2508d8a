//! Where the native opencode lies, seen from npm's launcher.
//!
//! `opencode-ai` is a shell script until its install script has put the program in its place; the program's own package
//! lies beside it. There are several for one machine, and a wrong one ends with an illegal instruction.

use std::path::{Path, PathBuf};

use crate::AbsPath;

/// What a program must have been built for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Machine {
    arch: &'static str,
    /// Whether it has the instructions that all but the `baseline` programs use.
    is_modern: bool,
}

impl Machine {
    /// The machine that this program runs on.
    pub(super) fn of_this_build() -> Self {
        #[cfg(target_arch = "x86_64")]
        let machine = Self { arch: "x64", is_modern: std::arch::is_x86_feature_detected!("avx2") };
        #[cfg(not(target_arch = "x86_64"))]
        let machine = Self { arch: "arm64", is_modern: true };
        machine
    }
}

/// The places of the program, best first; none when `executable` is no launcher that is known here.
pub(super) fn native_candidates(executable: &AbsPath, machine: Machine) -> Vec<AbsPath> {
    let Some(package) = launcher_package(executable.as_path()) else { return Vec::new() };
    let modules = package.parent().unwrap_or(&package).to_owned();
    let flavours: &[&str] = if machine.is_modern {
        &["", "-baseline", "-musl", "-baseline-musl"]
    } else {
        &["-baseline", "-baseline-musl"]
    };
    let mut found = Vec::new();
    for flavour in flavours {
        let name = format!("opencode-linux-{}{flavour}", machine.arch);
        for folder in [package.join("node_modules"), modules.clone()] {
            found.extend(AbsPath::new(folder.join(&name).join("bin/opencode")));
        }
    }
    found
}

fn launcher_package(executable: &Path) -> Option<PathBuf> {
    let is_launcher =
        executable.ends_with("opencode-ai/bin/opencode.exe") || executable.ends_with("opencode-ai/bin/opencode");
    is_launcher.then(|| executable.ancestors().nth(2).map(Path::to_owned)).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn candidates(executable: &str, is_modern: bool) -> Vec<String> {
        let executable = AbsPath::new(executable).unwrap();
        native_candidates(&executable, Machine { arch: "x64", is_modern }).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn the_program_is_found_beside_and_below_its_launcher() {
        let found = candidates("/usr/lib/node_modules/opencode-ai/bin/opencode.exe", true);
        assert_eq!(found[0], "/usr/lib/node_modules/opencode-ai/node_modules/opencode-linux-x64/bin/opencode");
        assert_eq!(found[1], "/usr/lib/node_modules/opencode-linux-x64/bin/opencode");
        let old = candidates("/usr/lib/node_modules/opencode-ai/bin/opencode.exe", false);
        assert!(old.iter().all(|path| path.contains("-baseline")), "{old:?}");
    }

    #[test]
    fn a_program_that_is_no_launcher_is_run_as_it_is() {
        for executable in ["/p/node_modules/opencode-linux-x64/bin/opencode", "/opt/opencode", "/"] {
            assert_eq!(candidates(executable, true), Vec::<String>::new(), "{executable}");
        }
    }
}
