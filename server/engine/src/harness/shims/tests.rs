//! Scripted twins of version managers, as they lie on the disk and answer.

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;

use pactify_core::harness::{HarnessSettings, registry};
use pactify_core::job::RepositoryRecord;
use pactify_core::{Failure, FailureCode};
use tempfile::TempDir;

use super::super::search::{Found, find};
use super::*;
use crate::env::{Directories, Variables};

/// Decides by its own name, as mise does, and by the nearest `mise.toml`; notes what it was started with.
const MISE: &str = r#"#!/bin/sh
me=${0##*/}
if test "$me" = mise; then test "$1" = which || exit 2; tool=$2; else tool=$me; fi
env > "$HOME/variables"
at=$PWD
while test ! -f "$at/mise.toml" && test "$at" != /; do at=${at%/*}; at=${at:-/}; done
test -f "$at/mise.toml" || at=$HOME
read -r program 2> /dev/null < "$at/mise.toml"
if test -z "$program"; then echo "mise WARN  no versions: error sending request" >&2; echo "mise ERROR $tool is a mise bin however it is not active." >&2; exit 1; fi
if test "$me" = mise; then echo "$program"; else exec "$program"; fi
"#;

struct Machine {
    _guard: TempDir,
    root: AbsPath,
    variables: Variables,
}

impl Machine {
    /// One whose search path is these folders, and what `/bin` has for scripts.
    fn new(path: &[&str]) -> Self {
        let guard = tempfile::tempdir().unwrap();
        let root = AbsPath::new(guard.path().canonicalize().unwrap()).unwrap();
        for folder in ["home", "repo/.git", "repo/bin"] {
            fs::create_dir_all(root.as_path().join(folder)).unwrap();
        }
        let path = path.iter().map(|folder| format!("{root}/{folder}")).chain(["/usr/bin:/bin".to_owned()]);
        let variables = Variables::from([("PATH".into(), path.collect::<Vec<_>>().join(":").into())]);
        Self { _guard: guard, root, variables }
    }

    /// One with a mise that has codex active, and another one that is not; where they are.
    fn with_mise() -> (Self, AbsPath, AbsPath) {
        let machine = Self::new(&["home/.local/share/mise/shims"]);
        machine.file("home/.local/bin/mise", MISE);
        machine.link("home/.local/share/mise/shims/codex", "home/.local/bin/mise");
        let installed = |version: &str| {
            machine.file(&format!("home/.local/share/mise/installs/codex/{version}/codex"), "#!/bin/sh\necho it\n")
        };
        let (active, other) = (installed("1"), installed("2"));
        machine.file("home/mise.toml", &format!("{active}\n"));
        (machine, active, other)
    }

    fn at(&self, below: &str) -> AbsPath {
        AbsPath::new(self.root.as_path().join(below)).unwrap()
    }

    fn file(&self, below: &str, text: &str) -> AbsPath {
        let path = self.at(below);
        fs::create_dir_all(path.as_path().parent().unwrap()).unwrap();
        fs::write(path.as_path(), text).unwrap();
        fs::set_permissions(path.as_path(), Permissions::from_mode(0o755)).unwrap();
        path
    }

    fn link(&self, below: &str, to: &str) -> AbsPath {
        let path = self.at(below);
        fs::create_dir_all(path.as_path().parent().unwrap()).unwrap();
        symlink(self.root.as_path().join(to), path.as_path()).unwrap();
        path
    }

    fn set(&mut self, name: &str, value: impl AsRef<Path>) {
        self.variables.insert(name.into(), value.as_ref().into());
    }

    fn env(&self) -> Env {
        Env::from_values(self.variables.clone(), Directories::under(&self.at("home")))
    }

    fn find_as(&self, settings: &HarnessSettings) -> Result<Found, Failure> {
        let git = self.at("repo/.git");
        let repository = RepositoryRecord {
            worktree: self.at("repo"),
            git_dir: git.clone(),
            common_dir: git,
            prefix: String::new(),
        };
        let codex = registry::built_in(&registry::default_name()).unwrap();
        find(&self.env(), &*codex, settings, Some(&repository))
    }

    fn find(&self) -> Result<AbsPath, Failure> {
        self.find_as(&HarnessSettings::default()).map(|found| found.program.executable)
    }

    fn refused(&self) -> Failure {
        let failure = self.find().unwrap_err();
        assert_eq!(failure.code, FailureCode::HarnessIncompatible, "{failure:?}");
        failure
    }
}

#[test]
fn what_a_manager_says_at_home_is_found_and_recorded() {
    let (machine, active, _) = Machine::with_mise();
    assert_eq!(machine.find().unwrap(), active);

    // Named by its place it is no less of a shim.
    let shim = machine.at("home/.local/share/mise/shims/codex");
    let named = HarnessSettings { executable: Some(shim), ..HarnessSettings::default() };
    assert_eq!(machine.find_as(&named).unwrap().program.executable, active);
    let itself = HarnessSettings { executable: Some(machine.at("home/.local/bin/mise")), ..HarnessSettings::default() };
    assert_eq!(machine.find_as(&itself).unwrap().program.executable, machine.at("home/.local/bin/mise"));
}

#[test]
fn each_manager_is_known_by_what_it_puts_there() {
    let answers = |asked: &str, program: &AbsPath| {
        format!("#!/bin/sh\ntest \"$1 $2\" = '{asked} codex' && test \"$PWD\" = \"$HOME\" && echo {program}\n")
    };
    let installed = "home/installed/codex";

    let machine = Machine::new(&["home/.volta/bin"]);
    let program = machine.file(installed, "");
    machine.file("opt/volta/volta-shim", "#!/bin/sh\nexit 9\n");
    machine.file("opt/volta/volta", &answers("which", &program));
    machine.link("home/.volta/bin/codex", "opt/volta/volta-shim");
    assert_eq!(machine.find().unwrap(), program);

    // As asdf up to 0.15 wrote it, with its own place; and as it is written since, with asdf on the search path.
    for (own, shims, script) in [
        ("home/.asdf/bin/asdf", "home/.asdf/shims", "exec /gone/asdf exec \"codex\" \"$@\" # asdf_allow: ' asdf '"),
        ("bin/asdf", "data/shims", "exec asdf exec \"codex\" \"$@\""),
    ] {
        let machine = Machine::new(&[shims, "bin"]);
        let program = machine.file(installed, "");
        let lines = "# asdf-plugin: nodejs 24.2.0\n# asdf-plugin: nodejs 22.1.0";
        machine.file(&format!("{shims}/codex"), &format!("#!/usr/bin/env bash\n{lines}\n{script}"));
        machine.file(own, &answers("which", &program));
        assert_eq!(machine.find().unwrap(), program, "{own}");
    }

    let machine = Machine::new(&["home/.proto/shims"]);
    let program = machine.file(installed, "");
    machine.file("home/.proto/shims/codex", "\x7fELF");
    machine.file("home/.proto/bin/proto", &answers("bin", &program));
    assert_eq!(machine.find().unwrap(), machine.at("home/.proto/shims/codex"), "nothing says that it is a shim");
    machine.file("home/.proto/shims/registry.json", "{}");
    assert_eq!(machine.find().unwrap(), program);
}

#[test]
fn the_program_of_a_package_that_a_manager_installed_is_the_native_one() {
    let machine = Machine::new(&["home/.volta/bin"]);
    let image = "home/.volta/tools/image/packages/@openai/codex/lib/node_modules/@openai";
    let triple = if cfg!(target_arch = "aarch64") { "aarch64" } else { "x86_64" };
    let arch = if cfg!(target_arch = "aarch64") { "arm64" } else { "x64" };
    let native = machine.file(&format!("{image}/codex-linux-{arch}/vendor/{triple}-unknown-linux-musl/bin/codex"), "");
    machine.file(&format!("{image}/codex/bin/codex.js"), "#!/usr/bin/env node\n");
    let link = machine
        .link("home/.volta/tools/image/packages/@openai/codex/bin/codex", &format!("{image}/codex/bin/codex.js"));
    machine.file("home/.volta/bin/volta-shim", "#!/bin/sh\nexit 9\n");
    machine.file("home/.volta/bin/volta", &format!("#!/bin/sh\necho {link}\n"));
    machine.link("home/.volta/bin/codex", "home/.volta/bin/volta-shim");
    assert_eq!(machine.find().unwrap(), native);
}

#[test]
fn links_and_scripts_of_package_managers_are_what_they_are() {
    let machine = Machine::new(&["npm/bin", "pnpm"]);
    let script = machine.file("npm/lib/node_modules/thing/codex.js", "#!/usr/bin/env node\n");
    machine.link("npm/bin/codex", "npm/lib/node_modules/thing/codex.js");
    assert_eq!(machine.find().unwrap(), script);
    fs::remove_file(machine.at("npm/bin/codex").as_path()).unwrap();
    let wrapper =
        machine.file("pnpm/codex", "#!/bin/sh\nbasedir=$(dirname \"$0\")\nexec node \"$basedir/codex.js\" \"$@\"\n");
    assert_eq!(machine.find().unwrap(), wrapper);
}

#[test]
fn neither_the_repository_nor_its_variables_say_which() {
    let (mut machine, active, other) = Machine::with_mise();
    machine.file("repo/mise.toml", &format!("{other}\n"));
    // The danger is there: started in the repository, the shim runs what is named there.
    let mut environment = ChildEnv::default();
    environment.set("PATH", "/usr/bin:/bin").set("HOME", machine.at("home").as_path());
    let shim = machine.at("home/.local/share/mise/shims/codex");
    let limits = Limits { deadline: PATIENCE, bytes: ANSWER, overflow: Overflow::Fail };
    machine.file("home/.local/share/mise/installs/codex/2/codex", "#!/bin/sh\necho other\n");
    let there = Invocation::new(shim, machine.at("repo"), environment).run(&[], &limits).unwrap();
    assert_eq!(there.stdout.bytes, b"other\n");

    let shims = machine.at("home/.local/share/mise/shims");
    for (name, value) in [
        ("MISE_CODEX_VERSION", Path::new("2")),
        ("MISE_ENV", Path::new("theirs")),
        ("MISE_GLOBAL_CONFIG_FILE", machine.at("repo/mise.toml").as_path()),
        ("MISE_CONFIG_DIR", Path::new(&format!("{}/../repo", machine.at("home")))),
        ("XDG_CONFIG_HOME", Path::new("repo")),
        ("PATH", Path::new(&format!("{}:{}:/usr/bin:/bin", shims, machine.at("repo/bin")))),
        ("MISE_DATA_DIR", machine.at("data").as_path()),
        ("LD_LIBRARY_PATH", Path::new(&format!("/usr/lib:{}", machine.at("repo/lib")))),
        ("MY_TOKEN", Path::new("secret")),
        ("HOME", machine.at("repo").as_path()),
        ("PWD", machine.at("repo").as_path()),
    ] {
        machine.set(name, value);
    }
    assert_eq!(machine.find().unwrap(), active);
    let told = fs::read_to_string(machine.at("home/variables").as_path()).unwrap();
    let names: Vec<&str> = told.lines().filter_map(|line| line.split('=').next()).collect();
    let passed = ["HOME", "MISE_DATA_DIR", "MISE_OFFLINE", "PATH", "PWD", "OLDPWD", "SHLVL", "_"];
    assert!(names.iter().all(|name| passed.contains(name)) && names.contains(&"MISE_DATA_DIR"), "{told}");
    assert!(told.contains("MISE_OFFLINE=1\n"), "nobody else is asked");
    assert!(told.contains(&format!("PATH={shims}:/usr/bin:/bin\n")), "what the repository added is left out: {told}");
    assert!(!told.contains("repo") && told.contains(&format!("PWD={}\n", machine.at("home"))), "{told}");
}

#[test]
fn a_home_inside_of_the_repository_is_no_place_to_ask() {
    let (machine, _, _) = Machine::with_mise();
    let record = |folder: &AbsPath| RepositoryRecord {
        worktree: folder.clone(),
        git_dir: folder.join(".git"),
        common_dir: folder.join(".git"),
        prefix: String::new(),
    };
    let mise = machine.file("elsewhere/mise", "#!/bin/sh\necho $PWD >&2\nexit 1\n");
    let shim = machine.link("elsewhere/shims/codex", "elsewhere/mise");
    for (repository, place) in [("repo", machine.at("home").to_string()), ("home", "/".to_owned())] {
        let apart = Apart::of(&machine.env(), Some(&record(&machine.at(repository))));
        let error = behind(&machine.env(), &apart, &shim).unwrap_err().to_string();
        assert_eq!(error, format!("{shim} is a shim of mise, which names no program for it: {place}"), "{mise}");
    }
}

#[test]
fn an_answer_is_held_to_what_holds_for_any_program() {
    let (machine, active, _) = Machine::with_mise();
    let offered = machine.file("repo/bin/codex", "#!/bin/sh\n");
    let linked = machine.link("home/linked", "repo/bin/codex");
    let shim = machine.at("home/.local/share/mise/shims/codex");
    fs::write(machine.at("home/data").as_path(), "").unwrap();
    let (home, root) = (machine.at("home"), &machine.root);
    for (answer, why) in [
        (offered.to_string(), format!("{offered} is in the repository")),
        (linked.to_string(), format!("{linked} is in the repository")),
        (format!("{root}/home/../repo/bin/codex"), "is none".to_owned()),
        (shim.to_string(), format!("{shim} is a shim again")),
        ("codex".to_owned(), "\"codex\" is none".to_owned()),
        (format!("{home}/data"), format!("\"{home}/data\" is none")),
        (home.to_string(), format!("\"{home}\" is none")),
        (format!("{active}\n{active}"), "is none".to_owned()),
        ("\u{1b}[2J".to_owned(), "is none".to_owned()),
        (String::new(), "\"\" is none".to_owned()),
    ] {
        machine.file("home/.local/bin/mise", &format!("#!/bin/sh\nprintf '%s\\n' '{answer}'\n"));
        let failure = machine.refused();
        assert!(failure.message.contains(&why) && !failure.message.contains('\u{1b}'), "{answer}: {failure}");
    }
}

#[test]
fn a_manager_that_hangs_prints_for_ever_fails_or_is_gone_is_named_with_what_to_do() {
    let (machine, active, _) = Machine::with_mise();
    let shim = machine.at("home/.local/share/mise/shims/codex");
    fs::write(machine.at("home/mise.toml").as_path(), "").unwrap();
    let failure = machine.refused();
    assert_eq!(
        failure.message,
        format!(
            "codex does not start: {shim} is a shim of mise, which names no program for it: mise ERROR codex is a mise \
             bin however it is not active."
        )
    );
    assert_eq!(
        failure.next,
        "see what `mise which codex` says in your home folder, or name the program: `executable = \"/path/of/it\"` \
         below [harnesses.codex] in the configuration file"
    );
    let late = format!("did not finish within {PATIENCE:?}");
    for (twin, why) in [
        ("exit 1", "it fails without a word"),
        ("yes /a/long/line", "wrote more than"),
        ("sleep 600 & yes /a/long/line >&2", late.as_str()),
    ] {
        let asked = machine.at("home/asked");
        let _ = fs::remove_file(asked.as_path());
        machine.file("home/.local/bin/mise", &format!("#!/bin/sh\necho >> \"$HOME/asked\"\n{twin}\n"));
        let failure = machine.refused();
        assert!(failure.message.contains(why) && failure.message.len() < 600, "{twin}: {failure}");
        assert_eq!(fs::read_to_string(asked.as_path()).unwrap(), "\n", "{twin}: it is asked once, and given up");
    }

    // Where the manager knows of none, what is further along the search path is looked at, as the shim itself would.
    let machine = Machine::new(&["shims", "plain"]);
    machine.file("mise", "#!/bin/sh\nexit 1\n");
    machine.link("shims/codex", "mise");
    let plain = machine.file("plain/codex", "");
    assert_eq!(machine.find().unwrap(), plain);
    fs::remove_file(machine.at("mise").as_path()).unwrap();
    assert_eq!(machine.find().unwrap(), plain, "a link to nothing is nothing");

    let machine = Machine::new(&["shims"]);
    machine.file("volta-shim", "");
    machine.link("shims/codex", "volta-shim");
    assert!(machine.refused().message.ends_with("no volta is found"), "{active}");
    machine.file("repo/bin/volta", &format!("#!/bin/sh\necho {active}\n"));
    machine.link("volta", "repo/bin/volta");
    assert!(machine.refused().message.ends_with("no volta is found"));
}
