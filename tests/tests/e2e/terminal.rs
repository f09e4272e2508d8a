//! `pactify` before a person: at a terminal, with their editor, in their shell.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use pactify_tests::agent::{brief, write};
use pactify_tests::editor::{JOB, pid, scripted_sandbox};
use pactify_tests::running::Running;
use pactify_tests::sandbox::{Repository, Sandbox, shell_program};
use pactify_tests::terminal::Terminal;
use pactify_tests::{outside, rendezvous};
use serde_json::{Value, json};

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
    shell_program(&program, &format!("cat {:?} >> \"$1\"", said.display().to_string()))?;
    Ok(program)
}

#[test]
fn a_task_is_written_in_the_persons_editor_watched_live_and_applied_after_a_question() -> Result<()> {
    let sandbox = scripted_sandbox()?;
    let repository = sandbox.filled("one")?;
    let go = sandbox.root().join("go");
    let wait = json!({"waitFor": [go.display().to_string(), 600.0]});
    let task = brief(&json!([{"say": "I'll look first."}, wait, write("a.txt", "a\n"), {"say": "All done."}]));
    let editor = editor(&sandbox, &format!("Tidy the shed\n{task}"))?;

    let terminal = shell(&sandbox, &repository, &editor)?;
    terminal.enter("$PACTIFY sub run; echo \"code $?\"")?;
    // A line that changes while nothing new is said: the title, the time, what goes on.
    let time = |screen: &str| {
        let (_, rest) = screen.split_once("Tidy the shed · ")?;
        let time: String = rest.chars().take_while(|c| c.is_ascii_digit() || *c == ':').collect();
        time.contains(':').then_some(time)
    };
    terminal.until(&["I'll look first."])?;
    let first = terminal.until_found("the time", time)?;
    let early = terminal.screen()?;
    terminal.until_found("a later time", |screen| time(screen).filter(|time| *time != first))?;
    assert!(!early.contains("All done."), "{early}");
    fs::write(&go, "")?;
    terminal.until(&["All done.", "changed 1 file, +1 −0", "code 0"])?;
    terminal.until_found("no time", |screen| time(screen).is_none().then_some(()))?;
    assert_eq!(fs::read_dir(sandbox.pactify_home().join("briefs"))?.count(), 0, "the brief's file is gone");

    terminal.enter("clear; $PACTIFY sub apply last")?;
    terminal.until(&["Write this path into the checkout?"])?;
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
    let sandbox = scripted_sandbox()?;
    let repository = sandbox.filled("one")?;
    let terminal = shell(&sandbox, &repository, &editor(&sandbox, "")?)?;
    terminal.enter("$PACTIFY sub run; echo \"code $?\"")?;
    terminal.until(&["empty", "code 2"])?;
    terminal.enter("clear; VISUAL=false $PACTIFY sub run; echo \"code $?\"")?;
    terminal.until(&["the editor false ended with", "code 2"])?;
    assert!(!sandbox.jobs().read_dir().is_ok_and(|mut jobs| jobs.next().is_some()));
    Ok(())
}

#[test]
fn what_was_written_for_a_job_that_is_refused_stays() -> Result<()> {
    let sandbox = scripted_sandbox()?;
    let repository = sandbox.filled("one")?;
    let task = format!("Tidy the shed\n{}", brief(&json!([{"say": "Tidied."}])));
    let terminal = shell(&sandbox, &repository, &editor(&sandbox, &task)?)?;
    terminal.enter("$PACTIFY sub run --repo / 2>&1 | tee told; echo do''ne")?;
    // `tee` shows the words before it writes them, and the screen has all that is typed.
    terminal.until(&["what you wrote is in", "done"])?;
    let kept: Vec<PathBuf> =
        fs::read_dir(sandbox.pactify_home().join("briefs"))?.map(|entry| Ok(entry?.path())).collect::<Result<_>>()?;
    let [kept] = kept.as_slice() else { anyhow::bail!("{kept:?}") };
    assert_eq!(fs::read_to_string(kept)?.trim(), task.trim());
    assert!(repository.read("told")?.contains(&kept.display().to_string()));
    terminal.enter(&format!("clear; $PACTIFY sub run --brief {}; echo \"code $?\"", kept.display()))?;
    terminal.until(&["Tidied.", "code 6"])?;
    Ok(())
}

#[test]
fn without_an_editor_a_person_is_told_how_to_give_a_brief() -> Result<()> {
    let sandbox = scripted_sandbox()?;
    let repository = sandbox.filled("one")?;
    let terminal = shell(&sandbox, &repository, Path::new("unused"))?;
    terminal.enter("unset VISUAL EDITOR; PATH=/nowhere $PACTIFY sub run; echo \"code $?\"")?;
    terminal.until(&["there is no vi", "pipe the task in", "code 2"])?;
    terminal.enter("clear; TERM=dumb $PACTIFY sub run; echo \"code $?\"")?;
    terminal.until(&["cannot show an editor", "pipe the task in", "code 2"])?;
    Ok(())
}

#[test]
fn a_brief_is_taken_from_a_file() -> Result<()> {
    let sandbox = scripted_sandbox()?;
    let repository = sandbox.filled("one")?;
    let file = sandbox.root().join("task.md");
    fs::write(&file, brief(&json!([write("a.txt", "a\n"), {"say": "From a file."}])))?;
    let ran = repository.sub(&["run", "--brief", &file.display().to_string()], "")?;
    assert_eq!((ran.code(), ran.stdout.as_str()), (0, "From a file.\n"), "{ran:?}");
    let missing = repository.sub(&["run", "--brief", "/nowhere/task.md"], "")?;
    assert_eq!(missing.code(), 2, "{missing:?}");
    assert!(missing.stderr.contains("/nowhere/task.md"), "{missing:?}");
    Ok(())
}

#[test]
fn a_broken_store_is_no_fault_of_the_person() -> Result<()> {
    let sandbox = Sandbox::new()?;
    let repository = sandbox.filled("one")?;
    fs::create_dir_all(sandbox.pactify_home())?;
    fs::write(sandbox.pactify_home().join("format"), "damaged\u{0}")?;
    let listed = repository.sub(&["list"], "")?;
    assert_eq!(listed.code(), 70, "{listed:?}");
    assert!(listed.stderr.contains("format"), "it names the file: {listed:?}");
    Ok(())
}

/// What bash offers when a person presses Tab after these words in `folder`.
fn completed(sandbox: &Sandbox, folder: &Path, words: &[&str]) -> Result<Vec<String>> {
    let script = "set -e; source <(\"$1\" completions bash); shift; COMP_WORDS=(pactify \"$@\"); COMP_CWORD=$#; \
                  _clap_complete_pactify pactify \"${!#}\" sub; printf '%s\\n' \"${COMPREPLY[@]}\"";
    let mut bash = sandbox.command("bash");
    bash.args(["-c", script, "bash"]).arg(outside::program("pactify")?).args(words).current_dir(folder);
    let ended = Running::start(bash, b"")?.wait(JOB)?;
    assert_eq!((ended.code(), ended.stderr.as_str()), (0, ""), "{ended:?}");
    // Where a word may be an option, those are offered as well.
    Ok(ended.stdout.lines().filter(|word| !word.starts_with('-')).map(str::to_owned).collect())
}

#[test]
fn a_shell_offers_the_jobs_of_the_checkout_and_the_agents_and_touches_nothing() -> Result<()> {
    let sandbox = scripted_sandbox()?;
    let (repository, other) = (sandbox.filled("one")?, sandbox.filled("two")?);
    let run = |repository: &Repository<'_>| -> Result<String> {
        let ran = repository.sub(&["run", "--json"], &brief(&json!([write("a.txt", "a\n")])))?.success()?;
        let told: Value = serde_json::from_str(&ran.stdout)?;
        let events = repository.sub(&["events", "last", "--json"], "")?.success()?.stdout;
        let first: Value = serde_json::from_str(events.lines().next().context("no events")?)?;
        let host = pid(&first["event"]["host"]["pid"])?;
        assert!(rendezvous::ends(host, JOB)?, "the host goes on writing");
        Ok(told["job"]["id"].as_str().context("no id")?.to_owned())
    };
    let (here, elsewhere) = (run(&repository)?, run(&other)?);
    let before = listing(&sandbox.pactify_home())?;
    let offered = |folder: &Path, words: &[&str]| completed(&sandbox, folder, words);
    assert_eq!(offered(&repository.path().join("src"), &["sub", "apply", ""])?, ["last".to_owned(), here.clone()]);
    assert_eq!(offered(repository.path(), &["sub", "undo", &here[..9]])?, std::slice::from_ref(&here));
    let end = &here[here.len() - 6..];
    assert_eq!(offered(repository.path(), &["sub", "diff", &end[..3]])?, [end]);
    let all = offered(sandbox.root(), &["sub", "prune", "2"])?;
    assert!(all.contains(&here) && all.contains(&elsewhere), "{all:?}");
    assert_eq!(offered(repository.path(), &["sub", "retry", "last", "--harness", "k"])?, ["kimi"]);
    assert_eq!(offered(repository.path(), &["sub", "run", "--base", ""])?, ["head", "working-tree"]);
    repository.write("b$(touch run-by-the-shell).md", "x\n")?;
    for words in [["sub", "run", "--brief", "b"], ["sub", "run", "--repo", ""], ["sub", "list", "--repo", ""]] {
        assert_eq!(offered(repository.path(), &words)?.concat(), "", "{words:?}: a name that a shell would run");
    }
    assert!(listing(&sandbox.pactify_home())? == before, "something was written");
    Ok(())
}

/// Every file below, with when it was written.
fn listing(folder: &Path) -> Result<Vec<(PathBuf, std::time::SystemTime)>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder)? {
        let (entry, path) = entry.map(|entry| (entry.metadata(), entry.path()))?;
        let entry = entry?;
        found.push((path.clone(), entry.modified()?));
        if entry.is_dir() {
            found.extend(listing(&path)?);
        }
    }
    found.sort();
    Ok(found)
}

#[test]
fn a_shell_completes_what_was_generated_for_it() -> Result<()> {
    let sandbox = Sandbox::new()?;
    let words = completed(&sandbox, sandbox.root(), &["sub", "a"])?;
    assert!(words.contains(&"apply".to_owned()) && words.iter().all(|word| word.starts_with('a')), "{words:?}");
    assert_eq!(completed(&sandbox, sandbox.root(), &["sub", "show", ""])?, ["last"]);
    assert!(!sandbox.pactify_home().exists(), "a look makes nothing");
    let program = outside::program("pactify")?.display().to_string();
    for shell in ["zsh", "fish", "elvish", "powershell"] {
        let generated = sandbox.start(&program, &["completions", shell], b"")?;
        assert!(generated.wait(JOB)?.success()?.stdout.contains(&program), "{shell}");
    }
    let mut unknown = sandbox.command(&program);
    unknown.env("PACTIFY_COMPLETE", "/bin/cmd").args(["--", "pactify", "sub", "a"]);
    let refused = Running::start(unknown, b"")?.wait(JOB)?;
    assert_eq!((refused.code(), refused.stdout.as_str()), (2, ""), "{refused:?}");
    assert!(refused.stderr.starts_with("pactify: PACTIFY_COMPLETE: unknown shell `cmd`"), "{refused:?}");
    assert!(refused.stderr.contains("`bash`, `elvish`, `fish`, `powershell`, `zsh`"), "{refused:?}");
    Ok(())
}
