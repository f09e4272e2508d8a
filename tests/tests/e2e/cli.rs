//! `pactify` as people and scripts use it: what goes where, and how it ends.

use anyhow::{Context as _, Result};
use pactify_tests::agent::{brief, write};
use pactify_tests::editor::{JOB, log_in_at_codex, scripted_sandbox};
use pactify_tests::rendezvous;
use pactify_tests::running::{Ended, Running};

use rustix::process::Signal;
use serde_json::{Value, json};

#[test]
fn a_task_goes_from_a_pipe_to_the_checkout() -> Result<()> {
    let sandbox = scripted_sandbox()?;
    let repository = sandbox.filled("one")?;
    let sub = |arguments: &[&str], input: &str| repository.sub(arguments, input);

    let task = brief(&json!([write("a.txt", "a\n"), {"say": "All\u{1b}[31m done."}]));
    let ran = sub(&["run"], &task)?;
    assert_eq!(ran.code(), 0, "{ran:?}");
    assert_eq!(ran.stdout, "All\\u{1b}[31m done.\n", "the agent's last words, and nothing else");
    assert!(ran.stderr.contains("changed 1 file, +1 −0"), "{}", ran.stderr);
    assert!(!ran.stderr.contains('\u{1b}'), "no terminal, no control: {:?}", ran.stderr);

    let listed: Value = serde_json::from_str(&sub(&["list", "--json"], "")?.stdout)?;
    let id = listed["jobs"][0]["id"].as_str().context("no id")?.to_owned();
    let tail = &id[id.len() - 6..];
    let shown: Value = serde_json::from_str(&sub(&["show", tail, "--json"], "")?.stdout)?;
    assert_eq!((&shown["job"]["id"], &shown["job"]["outcome"]), (&json!(id), &json!("succeeded")));

    let patch = sub(&["diff", tail], "")?.stdout;
    let mut git = sandbox.command("git");
    git.args(["apply", "--check", "-"]).current_dir(repository.path());
    let checked = Running::start(git, patch.as_bytes())?.wait(JOB)?;
    assert_eq!(checked.code(), 0, "a piped patch is exact: {checked:?}\n{patch}");

    let asked = sub(&["apply", "last"], "")?;
    assert_eq!(asked.code(), 2, "nobody can be asked: {asked:?}");
    assert_eq!(repository.status()?, "");
    let applied = sub(&["apply", "last", "--yes"], "")?;
    assert_eq!(applied.code(), 0, "{applied:?}");
    assert_eq!(repository.read("a.txt")?, "a\n");
    assert_eq!(sub(&["list"], "")?.stdout, "", "decided jobs are not listed");
    assert!(sub(&["list", "--all"], "")?.stdout.contains(&id));
    Ok(())
}

#[test]
fn exit_codes_tell_how_it_ended() -> Result<()> {
    let sandbox = scripted_sandbox()?;
    let repository = sandbox.filled("one")?;
    log_in_at_codex(&sandbox)?;
    let cases = [
        (json!([{"say": "nothing to do"}]), &["run"][..], 6),
        (json!([{"fail": "no"}]), &["run"], 1),
        (json!([{"fail": "unexpected status 401 Unauthorized: Missing bearer or basic authentication"}]), &["run"], 4),
        (json!(["ignoreSandbox", write("a.txt", "a\n")]), &["run", "--read-only"], 7),
        (json!(["hang"]), &["run", "--timeout", "1s"], 8),
        (json!([]), &["run", "nobody-has-this"], 4),
        (json!([]), &["run", "--repo", "/"], 3),
        (json!([]), &["run", "--fly"], 2),
        (json!([]), &["show", "zzzzzz"], 2),
        (json!([]), &["cancel", "20260101-000000-aaaaaa"], 2),
    ];
    for (steps, arguments, code) in cases {
        let ended = repository.sub(arguments, &brief(&steps))?;
        assert_eq!(ended.code(), code, "{arguments:?}: {ended:?}");
        assert!(!ended.stderr.is_empty(), "{arguments:?} says why");
    }
    Ok(())
}

#[test]
fn a_conflict_names_every_path_and_writes_nothing() -> Result<()> {
    let sandbox = scripted_sandbox()?;
    let repository = sandbox.filled("one")?;
    let task = brief(&json!([write("README.md", "theirs\n"), write("new.txt", "theirs\n"), write("fine.txt", "f\n")]));
    assert_eq!(repository.sub(&["run"], &task)?.code(), 0);
    repository.write("README.md", "mine\n")?;
    repository.write("new.txt", "mine\n")?;

    let refused = repository.sub(&["apply", "last", "--yes", "--json"], "")?;
    assert_eq!(refused.code(), 5, "{refused:?}");
    let told: Value = serde_json::from_str(&refused.stdout)?;
    assert_eq!(told["error"]["code"], "applyConflict");
    let conflicts = told["error"]["conflicts"].as_array().context("no conflicts")?;
    let paths: Vec<&str> = conflicts.iter().filter_map(|conflict| conflict["path"].as_str()).collect();
    assert_eq!(paths, ["README.md", "new.txt"]);
    assert!(paths.iter().all(|path| refused.stderr.contains(path)), "people are told, too: {}", refused.stderr);
    assert_eq!(repository.read("README.md")?, "mine\n");
    assert!(repository.read("fine.txt").is_err());
    let part = repository.sub(&["apply", "last", "--path", "fine.txt", "--yes"], "")?;
    assert_eq!(part.code(), 0, "{part:?}");
    assert_eq!(repository.read("fine.txt")?, "f\n");
    Ok(())
}

#[test]
fn a_directory_stands_for_what_is_below_it_and_names_nothing_sensitive() -> Result<()> {
    let sandbox = scripted_sandbox()?;
    let repository = sandbox.filled("one")?;
    let files = ["src/a.txt", "src/deep/b.txt", "src/.envrc", "srcs.txt"].map(|path| write(path, "new\n"));
    assert_eq!(repository.sub(&["run"], &brief(&json!(files)))?.code(), 0);
    let apply = |more: &[&str]| repository.sub(&[&["apply", "last", "--yes"], more].concat(), "");

    let refused = apply(&["--path", "./src/"])?;
    assert_eq!(refused.code(), 5, "{refused:?}");
    assert!(refused.stderr.contains("src/.envrc") && !refused.stderr.contains("a.txt"), "{refused:?}");
    assert_eq!(repository.status()?, "");
    assert_eq!(apply(&["--path", "nowhere"])?.code(), 2, "no such path");
    assert_eq!(apply(&["--path", "src/deep"])?.code(), 0);
    assert_eq!(repository.status()?, "?? src/deep/");
    assert!(!repository.path().join("src/a.txt").exists());
    let rest = apply(&["--path", "src", "--path", "./src/.envrc"])?;
    assert_eq!(rest.code(), 0, "{rest:?}");
    assert!(repository.path().join("src/.envrc").exists() && repository.path().join("src/a.txt").exists());
    assert!(!repository.path().join("srcs.txt").exists());
    Ok(())
}

#[test]
fn an_apply_is_taken_back_while_its_files_are_as_it_left_them() -> Result<()> {
    let sandbox = scripted_sandbox()?;
    let repository = sandbox.filled("one")?;
    let sub = |arguments: &[&str]| repository.sub(arguments, "");
    let before = repository.read("README.md")?;
    let task = brief(&json!([write("README.md", "theirs\n"), write("new/file.txt", "new\n"), write("b.txt", "b\n")]));
    assert_eq!(repository.sub(&["run"], &task)?.code(), 0);
    let early = sub(&["undo", "last"])?;
    assert_eq!(early.code(), 3, "nothing is applied: {early:?}");
    assert_eq!(sub(&["apply", "last", "--path", "b.txt", "--yes"])?.code(), 0);
    assert_eq!(sub(&["apply", "last", "--yes"])?.code(), 0);

    repository.write("README.md", "theirs, and mine\n")?;
    repository.write("new/file.txt", "mine\n")?;
    let refused = sub(&["undo", "last", "--json"])?;
    assert_eq!(refused.code(), 5, "{refused:?}");
    let told: Value = serde_json::from_str(&refused.stdout)?;
    let conflicts = told["error"]["conflicts"].as_array().context("no conflicts")?;
    let paths: Vec<&str> = conflicts.iter().filter_map(|conflict| conflict["path"].as_str()).collect();
    assert_eq!(paths, ["README.md", "new/file.txt"]);
    assert_eq!(repository.read("README.md")?, "theirs, and mine\n");

    repository.write("README.md", "theirs\n")?;
    repository.write("new/file.txt", "new\n")?;
    let undone: Value = serde_json::from_str(&sub(&["undo", "last", "--json"])?.stdout)?;
    assert_eq!((&undone["apply"], undone["restored"].as_array().map(Vec::len)), (&json!(2), Some(2)), "{undone}");
    assert_eq!(repository.read("README.md")?, before);
    assert!(!repository.path().join("new").exists());
    assert_eq!(sub(&["undo", "last", "--apply", "2"])?.code(), 3, "it stands no more");
    let first = sub(&["undo", "last", "--apply", "1"])?;
    assert_eq!(first.code(), 0, "{first:?}");
    assert!(first.stdout.contains("restored b.txt"), "{first:?}");
    assert_eq!(repository.status()?, "");
    assert!(!repository.path().join(".git/pactify").exists(), "what was kept for it is gone");

    assert_eq!(sub(&["apply", "last", "--path", "new/file.txt", "--yes"])?.code(), 0);
    assert_eq!(sub(&["apply", "last", "--path", "b.txt", "--yes"])?.code(), 0);
    let older: Value = serde_json::from_str(&sub(&["undo", "last", "--apply", "3", "--json"])?.stdout)?;
    assert_eq!(older["disposition"], "partlyApplied", "{older}");
    let rest: Value = serde_json::from_str(&sub(&["apply", "last", "--yes", "--json"])?.stdout)?;
    assert_eq!(
        (rest["applied"].as_array().map(Vec::len), &rest["disposition"]),
        (Some(2), &json!("applied")),
        "{rest}"
    );
    assert_eq!(repository.read("new/file.txt")?, "new\n");
    Ok(())
}

#[test]
fn parts_are_taken_by_name_and_merges_are_shown_first() -> Result<()> {
    let sandbox = scripted_sandbox()?;
    let repository = sandbox.repository("one")?;
    let base = "1\n2\n3\n4\n5\n6\n7\n";
    repository.write("a.txt", base)?;
    repository.fill()?;
    let sub = |arguments: &[&str]| repository.sub(arguments, "");
    let task = brief(&json!([write("a.txt", &base.replace('1', "one").replace('7', "seven"))]));
    assert_eq!(repository.sub(&["run"], &task)?.code(), 0);

    let hunks = sub(&["diff", "last", "--hunks"])?.stdout;
    assert_eq!(hunks, "M a.txt\n@@ -1,1+1,1\n-1\n+one\n@@ -7,1+7,1\n-7\n+seven\n");
    let part = sub(&["apply", "last", "--group", "a.txt:-7,1+7,1", "--yes"])?;
    assert_eq!(part.code(), 0, "{part:?}");
    assert!(part.stderr.contains("partly applied"), "{}", part.stderr);
    assert_eq!(repository.read("a.txt")?, base.replace('7', "seven"));
    let unknown = sub(&["apply", "last", "--group", "a.txt:-2,1+2,1", "--yes"])?;
    assert_eq!(unknown.code(), 2, "{unknown:?}");

    let mine = base.replace('7', "seven").replace('4', "mine");
    repository.write("a.txt", &mine)?;
    let refused = sub(&["apply", "last", "--yes"])?;
    assert_eq!(refused.code(), 5, "{refused:?}");
    assert!(refused.stdout.contains("M a.txt  will be merged"), "{}", refused.stdout);
    let shown = "merge of a.txt into your checkout:\n@@ -1,1+1,1 @@\n-1\n+one\n";
    assert!(refused.stdout.ends_with(shown), "{}", refused.stdout);
    assert!(refused.stderr.contains("--merge"), "the next step is named: {}", refused.stderr);
    assert_eq!(repository.read("a.txt")?, mine);

    let merged = sub(&["apply", "last", "--yes", "--merge"])?;
    assert_eq!(merged.code(), 0, "{merged:?}");
    assert!(merged.stdout.ends_with("merged a.txt\n"), "{}", merged.stdout);
    assert_eq!(repository.read("a.txt")?, mine.replace('1', "one"));
    assert!(sub(&["diff", "last", "--hunks"])?.stdout.contains("@@ -1,1+1,1  applied"));
    Ok(())
}

#[test]
fn an_interrupt_asks_the_job_to_cancel_and_a_detached_one_can_be_followed() -> Result<()> {
    let sandbox = scripted_sandbox()?;
    let repository = sandbox.filled("one")?;

    let detached = repository.sub(&["run", "--detach"], &brief(&json!([{"say": "hello"}, "hang"])))?;
    assert_eq!(detached.code(), 0, "{detached:?}");
    let id = detached.stdout.trim_end().to_owned();
    let follower = repository.start_sub(&["events", &id, "--follow"], "")?;
    follower.wait_for_line("hello", JOB)?;
    assert_eq!(repository.sub(&["cancel", &id], "")?.code(), 0);
    let followed = follower.wait(JOB)?;
    assert!(followed.stdout.contains("ended: cancelled"), "{followed:?}");

    let started = sandbox.root().join("started");
    let touch = format!("touch {}", started.display());
    let task = brief(&json!([write("a.txt", "a\n"), {"say": "hello"}, {"run": touch}, "hang"]));
    let running = repository.start_sub(&["run", "--json"], &task)?;
    // Before it watches the job, an interrupt just ends it.
    running.wait_for_error_line("hello", JOB)?;
    rendezvous::appears(&started, JOB)?;
    running.signal(Signal::INT)?;
    let ended = running.wait(JOB)?;
    let told: Value = serde_json::from_str(&ended.stdout).with_context(|| format!("{ended:?}"))?;
    assert_eq!((ended.code(), &told["job"]["outcome"]), (1, &json!("cancelled")), "{told:#}");
    Ok(())
}

#[test]
fn a_job_that_sent_the_repository_elsewhere_is_found_by_its_name_and_put_back() -> Result<()> {
    let sandbox = scripted_sandbox()?;
    let repository = sandbox.filled("one")?;
    let sub = |arguments: &[&str]| repository.sub(arguments, "");
    for settings in [&[("core.worktree", "/tmp")][..], &[("core.bare", "true")]] {
        let config = repository.path().join(".git/config");
        let configure = settings.iter().map(|(key, value)| format!("git config --file {config:?} {key} {value}"));
        let steps = json!([{"run": configure.collect::<Vec<_>>().join("; ")}, write("a.txt", "a\n")]);
        let ran = repository.sub(&["run"], &brief(&steps))?;
        assert_eq!(ran.code(), 0, "{ran:?}");
        let again = sub(&["run", "--detach"])?;
        assert_ne!(again.code(), 0, "the danger is real: {again:?}");
        let listed = sub(&["list"])?;
        assert!(listed.code() == 0 && !listed.stdout.is_empty(), "{settings:?}: {listed:?}");
        let restored = sub(&["restore", "last", "--yes"])?;
        assert_eq!(restored.code(), 0, "{settings:?}: {restored:?}");
        let applied = sub(&["apply", "last", "--yes"])?;
        assert_eq!(applied.code(), 0, "{settings:?}: {applied:?}");
        assert_eq!(sub(&["undo", "last"])?.code(), 0);
    }
    Ok(())
}

#[test]
fn what_stands_in_the_place_of_pactifys_own_directory_is_named() -> Result<()> {
    let sandbox = scripted_sandbox()?;
    let repository = sandbox.filled("one")?;
    let sub = |arguments: &[&str], input: &str| repository.sub(arguments, input);
    let ran = sub(&["run"], &brief(&json!([write("a.txt", "a\n")])))?;
    assert_eq!(ran.code(), 0, "{ran:?}");
    let place = repository.path().join(".git/pactify");
    let elsewhere = sandbox.root().join("elsewhere");
    std::fs::create_dir(&elsewhere)?;
    std::os::unix::fs::symlink(&elsewhere, &place)?;
    let refused = sub(&["apply", "last", "--yes"], "")?;
    assert_ne!(refused.code(), 0, "{refused:?}");
    let place_name = place.display().to_string();
    assert!(refused.stderr.contains(&format!("{place_name} is no directory")), "{}", refused.stderr);
    assert!(refused.stderr.contains(&format!("see what {place_name} is, remove it")), "{}", refused.stderr);
    assert_eq!(std::fs::read_dir(&elsewhere)?.count(), 0);
    std::fs::remove_file(&place)?;
    assert_eq!(sub(&["apply", "last", "--yes"], "")?.code(), 0);

    // The same in the way of an undo.
    let kept = sandbox.root().join("kept");
    std::fs::rename(&place, &kept)?;
    std::os::unix::fs::symlink(&kept, &place)?;
    let refused = sub(&["undo", "last"], "")?;
    assert!(refused.stderr.contains(&format!("{place_name} is no directory")), "{}", refused.stderr);
    assert_eq!(repository.read("a.txt")?, "a\n");
    Ok(())
}

#[test]
fn an_apply_that_was_cut_off_is_told_by_whatever_shows_the_job_or_another_one_there() -> Result<()> {
    let sandbox = scripted_sandbox()?;
    let (repository, other) = (sandbox.filled("one")?, sandbox.filled("two")?);
    let sub = |arguments: &[&str], input: &str| repository.sub(arguments, input);
    let task = brief(&json!([write("a.txt", "a\n")]));
    for _ in 0..2 {
        assert_eq!(sub(&["run"], &task)?.code(), 0);
    }
    assert_eq!(other.sub(&["run"], &task)?.code(), 0);
    let listed: Value = serde_json::from_str(&sub(&["list", "--json"], "")?.stdout)?;
    let id = |at: usize| listed["jobs"][at]["id"].as_str().context("no id").map(str::to_owned);
    let (newer, older) = (id(0)?, id(1)?);
    let says = |shown: &Ended| shown.stdout.contains("was cut off") || shown.stderr.contains("was cut off");
    let told = |job: &str| -> Result<[bool; 3]> {
        Ok([
            says(&sub(&["show", job], "")?),
            says(&sub(&["diff", job, "--stat"], "")?),
            says(&sub(&["list", "--json"], "")?),
        ])
    };
    assert_eq!(told(&older)?, [false; 3]);

    // What a process leaves that dies in an apply.
    let record = sandbox.pactify_home().join("applies").join(format!("{older}.1.intent"));
    std::fs::create_dir_all(record.parent().context("no parent")?)?;
    std::fs::write(&record, "")?;
    for job in [&older, &newer] {
        assert_eq!(told(job)?, [true; 3], "{job}");
    }
    let shown = sub(&["show", &newer], "")?.stdout;
    assert!(shown.contains(&format!("an apply of job {older} was cut off")), "{shown}");
    let elsewhere = other.sub(&["show", "last"], "")?;
    assert!(!says(&elsewhere), "{elsewhere:?}");
    std::fs::remove_file(&record)?;
    assert_eq!(told(&older)?, [false; 3]);
    Ok(())
}

#[test]
fn what_was_typed_wrong_is_told_in_the_terms_in_which_it_was_typed() -> Result<()> {
    let sandbox = scripted_sandbox()?;
    let repository = sandbox.filled("one")?;
    let refused = repository.sub(&["run", "--read-only", "--permissions", "allow"], "Look.")?;
    assert_eq!(refused.code(), 2, "{refused:?}");
    assert!(refused.stderr.contains("--permissions: a read-only job is granted none"), "{}", refused.stderr);
    assert!(refused.stderr.contains("--help") && !refused.stderr.contains("protocol"), "{}", refused.stderr);
    Ok(())
}
