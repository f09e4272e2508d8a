//! `cargo xtask tools` as a process, with an npm that does as the test says.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::time::Duration;

use pactify_tests::running::{Ended, Running};
use pactify_tests::sandbox::Sandbox;
use pactify_tests::tools::Tool;

const PATIENCE: Duration = Duration::from_secs(60);

/// An empty tools cache, and a folder that is all of PATH.
struct Stage {
    sandbox: Sandbox,
    programs: PathBuf,
    cache: PathBuf,
}

impl Stage {
    fn new() -> anyhow::Result<Self> {
        let mut sandbox = Sandbox::new()?;
        let programs = sandbox.root().join("programs");
        let cache = sandbox.root().join("cache");
        fs::create_dir(&programs)?;
        sandbox.set("PATH", &programs);
        sandbox.set("PACTIFY_TOOLS_CACHE", &cache);
        Ok(Self { sandbox, programs, cache })
    }

    /// Makes an `npm` of this script; each run of it adds a line to `runs`.
    fn npm(&self, script: &str) -> anyhow::Result<()> {
        let npm = self.programs.join("npm");
        let runs = self.sandbox.root().join("runs");
        let head = format!("#!/bin/sh\nPATH=/usr/bin:/bin\necho \"$@\" >> '{}'\n", runs.display());
        fs::write(&npm, format!("{head}{script}\n"))?;
        Ok(fs::set_permissions(npm, Permissions::from_mode(0o755))?)
    }

    fn runs(&self) -> usize {
        fs::read_to_string(self.sandbox.root().join("runs")).unwrap_or_default().lines().count()
    }

    fn start(&self, arguments: &[&str]) -> anyhow::Result<Running> {
        let mut command = self.sandbox.command(env!("CARGO_BIN_EXE_xtask"));
        command.arg("tools").args(arguments);
        Running::start(command, b"")
    }

    fn end(&self, arguments: &[&str]) -> anyhow::Result<Ended> {
        self.start(arguments)?.wait(PATIENCE)
    }

    /// What is in the cache, apart from locks.
    fn cached(&self) -> Vec<String> {
        let names = fs::read_dir(&self.cache).into_iter().flatten().flatten();
        let names = names.map(|entry| entry.file_name().to_string_lossy().into_owned());
        names.filter(|name| !name.starts_with(".lock-")).collect()
    }
}

fn install() -> String {
    let program = Tool::Codex.program();
    format!("mkdir -p \"$(dirname {program})\" && echo native > {program}")
}

#[test]
fn what_is_missing_is_named_with_the_next_step() -> anyhow::Result<()> {
    let stage = Stage::new()?;
    let check = |expect: &[&str]| -> anyhow::Result<()> {
        let ended = stage.end(&["codex"])?;
        assert_eq!(ended.code(), 1, "{}", ended.stderr);
        for part in expect {
            assert!(ended.stderr.contains(part), "{part}: {}", ended.stderr);
        }
        assert_eq!(stage.cached(), [""; 0]);
        Ok(())
    };
    check(&["codex can't be installed without npm", "install npm, then run `cargo xtask tools codex`"])?;
    stage.npm("echo 'npm error code ENOTFOUND' >&2; exit 7")?;
    check(&["nothing was left behind", "ended with code 7", "ENOTFOUND", "run `cargo xtask tools codex` again"])?;
    stage.npm("exit 0")?;
    check(&["codex was installed, but", "is only built for Linux on x86-64"])?;
    Ok(())
}

#[test]
fn installers_that_run_at_once_install_once_and_print_the_path() -> anyhow::Result<()> {
    let stage = Stage::new()?;
    stage.npm(&install())?;
    let installers = (0..3).map(|_| stage.start(&["--print", "codex"])).collect::<anyhow::Result<Vec<_>>>()?;
    for installer in installers {
        let ended = installer.wait(PATIENCE)?.success()?;
        assert_eq!(fs::read_to_string(ended.stdout.trim_end())?, "native\n");
    }
    assert_eq!(stage.runs(), 1);
    // A second clone finds it there.
    stage.end(&["codex"])?.success()?;
    assert_eq!(stage.runs(), 1);
    assert_eq!(stage.cached().len(), 1);
    Ok(())
}

#[test]
fn an_install_that_was_killed_is_done_again() -> anyhow::Result<()> {
    let stage = Stage::new()?;
    stage.npm("mkdir node_modules && echo half && sleep 600")?;
    let killed = stage.start(&["codex"])?;
    // The half is there as soon as the run is noted, or a moment later: kill at any point must do.
    pactify_tests::rendezvous::appears(&stage.sandbox.root().join("runs"), PATIENCE)?;
    killed.signal(rustix::process::Signal::KILL)?;
    assert_eq!(killed.wait(PATIENCE)?.code(), 128 + 9);
    stage.npm(&install())?;
    stage.end(&["codex"])?.success()?;
    // What was killed in the middle may be there, too.
    let cached = stage.cached();
    assert_eq!(cached.iter().filter(|name| name.starts_with("codex-")).count(), 1, "{cached:?}");
    Ok(())
}
