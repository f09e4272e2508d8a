//! Finding what runs a harness that is a script: the first program that reports a version which will do.
//!
//! Editors often start with a thin `PATH`, and people have several versions of Node.js: the one that belongs to the
//! script's own installation comes first, then everything on `PATH`, then where version managers keep theirs. Nothing
//! beside a repository is looked at. A choice of the person's is used or refused, never replaced.

use std::path::{Path, PathBuf};

use pactify_core::harness::{Harness, HarnessSettings, Interpreter};
use pactify_core::{AbsPath, Failure, FailureCode, display};

use super::{Apart, Asked, Program, probe, root, shims};
use crate::env::Env;

/// Where version managers keep Node.js, below the person's home; `*` is one version.
const MANAGED: &[&str] = &[
    ".nvm/versions/node/*/bin",
    ".local/share/fnm/node-versions/*/installation/bin",
    ".local/share/mise/installs/node/*/bin",
    ".volta/tools/image/node/*/bin",
    ".asdf/installs/nodejs/*/bin",
];

/// So many are asked for their version: each is a process.
const ASKED: usize = 8;

/// The interpreter of `executable`.
pub(super) fn find(
    env: &Env,
    harness: &dyn Harness,
    settings: &HarnessSettings,
    wanted: &Interpreter,
    executable: &AbsPath,
    apart: &Apart,
) -> Result<AbsPath, Failure> {
    let candidates = match &settings.interpreter {
        Some(chosen) => vec![chosen.clone()],
        None => candidates(env, wanted, executable).into_iter().filter(|found| apart.is_free(found)).collect(),
    };
    let mut seen = Vec::new();
    for candidate in candidates.into_iter().take(ASKED) {
        // In a job's tree, and in a home of the job's own, a shim would run another one, or none.
        let candidate = match shims::behind(env, apart, &candidate) {
            Ok(behind) => behind.unwrap_or(candidate),
            Err(unanswered) => {
                seen.push(unanswered.to_string());
                continue;
            }
        };
        match version(env, harness, settings, &candidate) {
            Some(version) if wanted.accepts(&version) => return Ok(candidate),
            version => seen.push(told(&candidate, version.as_deref())),
        }
    }
    let seen = if seen.is_empty() { "none was found".to_owned() } else { format!("found {}", seen.join(", ")) };
    let harness = harness.name();
    Err(Failure::new(
        FailureCode::HarnessIncompatible,
        format!("{harness} needs {}, and {seen}", wanted.wanted()),
        format!(
            "install {}, or name one: [harnesses.{harness}] interpreter in the configuration file",
            wanted.wanted()
        ),
    ))
}

fn told(candidate: &AbsPath, version: Option<&str>) -> String {
    match version {
        Some(version) => format!("{candidate} ({})", display::headline(version, 40)),
        None => format!("{candidate} (which names no version)"),
    }
}

fn version(env: &Env, harness: &dyn Harness, settings: &HarnessSettings, candidate: &AbsPath) -> Option<String> {
    let program = Program { executable: candidate.clone(), interpreter: None };
    let asked = Asked { directory: root().ok()?, keys: &[], arguments: &["--version"], home: Vec::new() };
    let output = probe(env, harness, settings, &program, asked).ok()?;
    let said = String::from_utf8_lossy(&output.stdout.bytes).trim().to_owned();
    (output.success() && !said.is_empty()).then_some(said)
}

fn candidates(env: &Env, wanted: &Interpreter, executable: &AbsPath) -> Vec<AbsPath> {
    let own = installation(executable.as_path());
    let path = env.search_path().into_iter().map(|folder| folder.as_path().to_owned());
    let home = env.directories().home().as_path().to_owned();
    let managed = MANAGED.iter().flat_map(|pattern| versions(&home, pattern));
    let mut found: Vec<AbsPath> = Vec::new();
    for folder in own.into_iter().chain(path).chain(managed) {
        let here = AbsPath::new(folder.join(wanted.program)).ok();
        if let Some(program) = here.and_then(|path| env.find_executable(path.as_path()).ok())
            && !found.contains(&program)
        {
            found.push(program);
        }
    }
    found
}

/// The folders of programs that belong to the npm installation which holds `executable`.
fn installation(executable: &Path) -> Vec<PathBuf> {
    let modules = executable.ancestors().filter(|folder| folder.ends_with("node_modules"));
    modules
        .flat_map(|modules| {
            let global = modules.parent().filter(|lib| lib.ends_with("lib")).and_then(Path::parent);
            [Some(modules.join(".bin")), global.map(|prefix| prefix.join("bin"))]
        })
        .flatten()
        .collect()
}

/// The folders that a pattern stands for, the newest version first.
fn versions(home: &Path, pattern: &str) -> Vec<PathBuf> {
    let Some((before, after)) = pattern.split_once("/*/") else { return Vec::new() };
    let entries = std::fs::read_dir(home.join(before)).into_iter().flatten().flatten();
    let mut names: Vec<(Vec<u64>, PathBuf)> = entries
        .map(|entry| {
            let name = entry.file_name().to_string_lossy().into_owned();
            let numbers = name.trim_start_matches('v').split('.').filter_map(|part| part.parse().ok()).collect();
            (numbers, entry.path().join(after))
        })
        .collect();
    names.sort();
    names.into_iter().rev().map(|(_, folder)| folder).collect()
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;
    use crate::env::Directories;

    const NODE: Interpreter = Interpreter { name: "Node.js", program: "node", at_least: [22, 19, 0] };

    struct Machine {
        _directory: tempfile::TempDir,
        root: AbsPath,
        env: Env,
    }

    fn machine() -> Machine {
        let directory = tempfile::tempdir().unwrap();
        let root = AbsPath::new(directory.path().canonicalize().unwrap()).unwrap();
        let path = root.join("usr").join("bin").to_string();
        let variables = [("PATH".into(), path.into())].into_iter().collect();
        let env = Env::from_values(variables, Directories::under(&root.join("home")));
        Machine { _directory: directory, root, env }
    }

    impl Machine {
        fn node(&self, folder: &str, version: &str) -> AbsPath {
            let folder = self.root.as_path().join(folder);
            fs::create_dir_all(&folder).unwrap();
            let node = folder.join("node");
            fs::write(&node, format!("#!/bin/sh\necho {version}\n")).unwrap();
            fs::set_permissions(&node, fs::Permissions::from_mode(0o755)).unwrap();
            AbsPath::new(node).unwrap()
        }

        fn find(&self, script: &str, chosen: Option<&AbsPath>) -> Result<AbsPath, Failure> {
            let settings = HarnessSettings { interpreter: chosen.cloned(), ..HarnessSettings::default() };
            let script = AbsPath::new(self.root.as_path().join(script)).unwrap();
            let apart = Apart::of(&self.env, None);
            find(&self.env, &pactify_core::harness::codex::Codex, &settings, &NODE, &script, &apart)
        }
    }

    #[test]
    fn versions_are_numbers() {
        for (version, will_do) in [
            ("v22.19.0", true),
            ("v22.9.1", false),
            ("v24.1.0-nightly", true),
            ("v100.0.0", true),
            ("22", false),
            ("x", false),
        ] {
            assert_eq!(NODE.accepts(version), will_do, "{version}");
        }
    }

    #[test]
    fn the_nearest_that_is_new_enough_is_taken() {
        let machine = machine();
        let global = "p/lib/node_modules/@moonshot-ai/kimi-code/dist/main.mjs";
        let refused = machine.find(global, None).unwrap_err();
        assert!(refused.message.contains("needs Node.js 22.19.0 or newer, and none was found"), "{refused:?}");

        let old = machine.node("usr/bin", "v20.20.2");
        let refused = machine.find(global, None).unwrap_err();
        assert!(refused.message.contains(&format!("{old} (v20.20.2)")), "{refused:?}");
        assert!(refused.next.contains("[harnesses.codex] interpreter"), "{refused:?}");

        machine.node("home/.nvm/versions/node/v22.9.0/bin", "v22.9.0");
        machine.node("home/.nvm/versions/node/v22.20.0/bin", "v22.20.0");
        let newest = machine.node("home/.nvm/versions/node/v24.2.0/bin", "v24.2.0");
        assert_eq!(machine.find(global, None).unwrap(), newest);

        let own = machine.node("p/bin", "v22.19.1");
        assert_eq!(machine.find(global, None).unwrap(), own);
        let local = machine.node("q/node_modules/.bin", "v23.0.0");
        assert_eq!(machine.find("q/node_modules/@moonshot-ai/kimi-code/dist/main.mjs", None).unwrap(), local);
    }

    #[test]
    fn a_shim_is_seen_through_and_one_without_an_answer_is_passed_over() {
        use std::os::unix::fs::symlink;

        let machine = machine();
        let real = machine.node("home/.volta/tools/image/node/24.1.0/bin", "v24.1.0");
        let volta = machine.root.as_path().join("usr/bin/volta");
        fs::create_dir_all(volta.parent().unwrap()).unwrap();
        // By its own name it would run as well, and in a job's tree what the tree says.
        fs::write(volta.with_file_name("volta-shim"), "#!/bin/sh\necho v23.0.0\n").unwrap();
        fs::write(&volta, format!("#!/bin/sh\ntest \"$1 $2\" = 'which node' && echo {real}\n")).unwrap();
        for program in ["volta", "volta-shim"] {
            fs::set_permissions(volta.with_file_name(program), fs::Permissions::from_mode(0o755)).unwrap();
        }
        let shim = machine.root.join("usr").join("bin").join("node");
        symlink("volta-shim", shim.as_path()).unwrap();
        assert_eq!(machine.find("main.mjs", None).unwrap(), real);
        assert_eq!(machine.find("main.mjs", Some(&shim)).unwrap(), real, "also where it is chosen");

        fs::write(&volta, "#!/bin/sh\necho Volta error: no Node.js >&2\nexit 1\n").unwrap();
        let refused = machine.find("main.mjs", Some(&shim)).unwrap_err();
        assert!(refused.message.contains(&format!("{shim} is a shim of volta")), "{refused:?}");
        // Version managers keep theirs in places that are known.
        assert_eq!(machine.find("main.mjs", None).unwrap(), real);
    }

    #[test]
    fn a_choice_is_used_or_refused() {
        let machine = machine();
        let (old, new) = (machine.node("old", "v20.0.0"), machine.node("new", "v24.0.0"));
        machine.node("usr/bin", "v23.0.0");
        assert_eq!(machine.find("main.mjs", Some(&new)).unwrap(), new);
        assert!(machine.find("main.mjs", Some(&old)).unwrap_err().message.contains("v20.0.0"));
    }
}
