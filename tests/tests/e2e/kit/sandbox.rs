//! The world that every other test is put into.

use std::time::Duration;

use pactify_tests::running::Running;
use pactify_tests::sandbox::Sandbox;

const PATIENCE: Duration = Duration::from_secs(60);

#[test]
fn nothing_of_the_outer_world_reaches_a_process() -> anyhow::Result<()> {
    let sandbox = Sandbox::new()?;
    let ended = Running::start(sandbox.command("env"), b"")?.wait(PATIENCE)?.success()?;
    let root = sandbox.root().to_str().unwrap();
    for line in ended.stdout.lines() {
        let (name, value) = line.split_once('=').unwrap();
        let is_inherited = ["PATH", "LD_LIBRARY_PATH", "RUST_BACKTRACE", "LLVM_PROFILE_FILE"].contains(&name);
        let is_fixed = ["GIT_CONFIG_NOSYSTEM", "LC_ALL", "TZ", "TERM"].contains(&name);
        assert!(is_inherited || is_fixed || value.starts_with(root), "{line}");
    }
    // codex refuses a home below TMPDIR, and a socket's path has 107 bytes.
    assert!(!sandbox.pactify_home().starts_with(sandbox.tmp()));
    let socket = sandbox.job(&"j".repeat(26)).join("sock");
    assert!(socket.as_os_str().len() < 107, "{}", socket.display());
    Ok(())
}

#[test]
fn it_is_removed_with_what_a_test_did_to_it() -> anyhow::Result<()> {
    let sandbox = Sandbox::new()?;
    let root = sandbox.root().to_owned();
    let script = "mkdir -p a/b && echo x > a/b/c && chmod 0 a/b a";
    Running::start(
        {
            let mut command = sandbox.command("sh");
            command.args(["-c", script]);
            command
        },
        b"",
    )?
    .wait(PATIENCE)?
    .success()?;
    drop(sandbox);
    assert!(!root.exists());
    Ok(())
}

#[test]
fn a_snapshot_tells_what_was_touched() -> anyhow::Result<()> {
    let sandbox = Sandbox::new()?;
    let repository = sandbox.repository("sample")?;
    let commit = repository.fill()?;
    assert_eq!(commit, sandbox.repository("same")?.fill()?, "commit ids are reproducible");
    repository.make_dirty()?;
    assert_eq!(repository.status()?, " M README.md\nAM both.txt\n D data/logo.bin\nM  src/empty.h\n?? untracked.txt");
    let before = repository.snapshot()?;
    repository.status()?;
    repository.git(&["hash-object", "-w", "README.md"])?;
    assert_eq!(repository.snapshot()?.changed_since(&before), [""; 0]);
    repository.write("main.o", "other")?;
    repository.git(&["add", "README.md"])?;
    std::fs::remove_file(repository.path().join("LINK.md"))?;
    assert_eq!(repository.snapshot()?.changed_since(&before), [".git/index", "main.o", "LINK.md"]);
    Ok(())
}

#[test]
fn a_dropped_process_is_dead() -> anyhow::Result<()> {
    let sandbox = Sandbox::new()?;
    let mut command = sandbox.command("sh");
    command.args(["-c", "echo up; exec sleep 600"]);
    let running = Running::start(command, b"")?;
    running.wait_for_line("up", PATIENCE)?;
    let pid = running.pid();
    drop(running);
    assert!(rustix::process::test_kill_process(pid).is_err());
    Ok(())
}
