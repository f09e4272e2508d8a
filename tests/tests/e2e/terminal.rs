//! `pactify` before a person: at a terminal, with their editor, in their shell.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use anyhow::Result;
use pactify_tests::agent::{brief, write};
use pactify_tests::editor::{JOB, use_scripted_agent};
use pactify_tests::outside;
use pactify_tests::running::Running;
use pactify_tests::sandbox::{Repository, Sandbox};
use pactify_tests::terminal::Terminal;
use serde_json::json;

const SIZE: (u16, u16) = (100, 30);

/// A person's shell in the repository, where `$PACTIFY` is the program and `editor` their editor.
fn shell<'a>(sandbox: &'a Sandbox, repository: &Repository<'_>, editor: &Path) -> Result<Terminal<'a>> {
    let mut shell = sandbox.command("/bin/sh");
    shell.current_dir(repository.path()).env("VISUAL", editor).env("PACTIFY", outside::program("pactify")?);
    let terminal = Terminal::start(sandbox, "person", &shell, SIZE)?;
    terminal.enter("clear; echo re''ady")?;
    terminal.until(&["ready"])?;
    Ok(terminal)
}

/// An "editor" that appends a text to what it is given.
fn editor(sandbox: &Sandbox, text: &str) -> Result<PathBuf> {
    let (said, program) = (sandbox.root().join("said"), sandbox.root().join("editor"));
    fs::write(&said, text)?;
    fs::write(&program, format!("#!/bin/sh\ncat {:?} >> \"$1\"\n", said.display().to_string()))?;
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755))?;
    Ok(program)
}

#[test]
fn a_task_is_written_in_the_persons_editor_watched_live_and_applied_after_a_question() -> Result<()> {
    let sandbox = Sandbox::new()?;
    use_scripted_agent(&sandbox, &[])?;
    let repository = sandbox.repository("one")?;
    repository.fill()?;
    let go = sandbox.root().join("go");
    let wait = json!({"waitFor": [go.display().to_string(), 60.0]});
    let task = brief(&json!([{"say": "I'll look first."}, wait, write("a.txt", "a\n"), {"say": "All done."}]));
    let editor = editor(&sandbox, &format!("Tidy the shed\n{task}"))?;

    let terminal = shell(&sandbox, &repository, &editor)?;
    terminal.enter("$PACTIFY sub run; echo \"code $?\"")?;
    // A line that changes while nothing new is said: the title, the time, what goes on.
    terminal.until(&["Tidy the shed · 0:0", "I'll look first."])?;
    let early = terminal.screen()?;
    terminal.until(&["Tidy the shed · 0:02"])?;
    assert!(!early.contains("All done."), "{early}");
    fs::write(&go, "")?;
    terminal.until(&["All done.", "changed 1 file, +1 −0", "code 0"])?;
    terminal.until_gone("Tidy the shed · 0:0")?;
    assert_eq!(fs::read_dir(sandbox.pactify_home().join("briefs"))?.count(), 0, "the brief's file is gone");

    terminal.enter("clear; $PACTIFY sub apply last")?;
    terminal.until(&["Write these 1 paths into the checkout?"])?;
    assert_eq!(repository.status()?, "");
    terminal.enter("y")?;
    terminal.until(&["a.txt"])?;
    terminal.enter("clear; $PACTIFY sub list --all; echo \"code $?\"")?;
    terminal.until(&["applied", "code 0"])?;
    assert_eq!(repository.read("a.txt")?, "a\n");
    Ok(())
}

#[test]
fn an_editor_that_is_left_without_a_word_starts_no_job() -> Result<()> {
    let sandbox = Sandbox::new()?;
    use_scripted_agent(&sandbox, &[])?;
    let repository = sandbox.repository("one")?;
    repository.fill()?;
    let terminal = shell(&sandbox, &repository, &editor(&sandbox, "")?)?;
    terminal.enter("$PACTIFY sub run; echo \"code $?\"")?;
    terminal.until(&["empty", "code 2"])?;
    terminal.enter("clear; VISUAL=false $PACTIFY sub run; echo \"code $?\"")?;
    terminal.until(&["the editor false ended with", "code 2"])?;
    assert!(!sandbox.pactify_home().join("jobs").read_dir().is_ok_and(|mut jobs| jobs.next().is_some()));
    Ok(())
}

#[test]
fn a_brief_is_taken_from_a_file() -> Result<()> {
    let sandbox = Sandbox::new()?;
    use_scripted_agent(&sandbox, &[])?;
    let repository = sandbox.repository("one")?;
    repository.fill()?;
    let file = sandbox.root().join("task.md");
    fs::write(&file, brief(&json!([write("a.txt", "a\n"), {"say": "From a file."}])))?;
    let pactify = |arguments: &[&str]| {
        let mut command = sandbox.command(outside::program("pactify")?);
        command.arg("sub").args(arguments).current_dir(repository.path());
        Running::start(command, b"")?.wait(JOB)
    };
    let ran = pactify(&["run", "--brief", &file.display().to_string()])?;
    assert_eq!((ran.code(), ran.stdout.as_str()), (0, "From a file.\n"), "{ran:?}");
    let missing = pactify(&["run", "--brief", "/nowhere/task.md"])?;
    assert_eq!(missing.code(), 2, "{missing:?}");
    assert!(missing.stderr.contains("/nowhere/task.md"), "{missing:?}");
    Ok(())
}

#[test]
fn a_broken_store_is_no_fault_of_the_person() -> Result<()> {
    let sandbox = Sandbox::new()?;
    let repository = sandbox.repository("one")?;
    repository.fill()?;
    fs::create_dir_all(sandbox.pactify_home())?;
    fs::write(sandbox.pactify_home().join("format"), "damaged\u{0}")?;
    let mut command = sandbox.command(outside::program("pactify")?);
    command.args(["sub", "list"]).current_dir(repository.path());
    let listed = Running::start(command, b"")?.wait(JOB)?;
    assert_eq!(listed.code(), 70, "{listed:?}");
    assert!(listed.stderr.contains("format"), "it names the file: {listed:?}");
    Ok(())
}

#[test]
fn a_shell_completes_what_was_generated_for_it() -> Result<()> {
    let sandbox = Sandbox::new()?;
    // What bash does when the person presses Tab after `pactify sub a`.
    let script = "set -e; source <(\"$1\" completions bash); COMP_WORDS=(pactify sub a); COMP_CWORD=2; \
                  _pactify pactify a sub; printf '%s\\n' \"${COMPREPLY[@]}\"";
    let mut bash = sandbox.command("bash");
    bash.args(["-c", script, "bash"]).arg(outside::program("pactify")?);
    let completed = Running::start(bash, b"")?.wait(JOB)?;
    assert_eq!(completed.code(), 0, "{completed:?}");
    let words: Vec<&str> = completed.stdout.lines().collect();
    assert!(words.contains(&"apply") && words.iter().all(|word| word.starts_with('a')), "{words:?}");
    for shell in ["zsh", "fish", "elvish", "powershell"] {
        let generated =
            sandbox.start(&outside::program("pactify")?.display().to_string(), &["completions", shell], b"")?;
        assert!(generated.wait(JOB)?.success()?.stdout.contains("apply"), "{shell}");
    }
    Ok(())
}
