//! What `pactify` tells a person who has just begun: who works for them, what to do next, and what they may have meant.

use anyhow::{Context as _, Result};
use pactify_tests::agent::{brief, write};
use pactify_tests::editor::{configure, log_in_at_codex, scripted_sandbox, use_scripted_agent};
use pactify_tests::sandbox::Sandbox;
use serde_json::{Value, json};

#[test]
fn a_job_says_at_once_who_does_it_and_why() -> Result<()> {
    let sandbox = Sandbox::new()?;
    let codex = use_scripted_agent(&sandbox, &[])?;
    let repository = sandbox.filled("one")?;
    let task = brief(&json!([{"say": "done"}]));
    let told = |arguments: &[&str]| -> Result<String> {
        let ended = repository.sub(&[&["run"], arguments].concat(), &task)?;
        ended.stderr.lines().next().map(str::to_owned).with_context(|| format!("nothing was told: {ended:?}"))
    };
    let first = told(&[])?;
    assert!(first.starts_with("job ") && first.ends_with(" by codex, the first harness that was found"), "{first}");
    assert!(told(&["codex"])?.ends_with(" by codex"));
    let executable = codex.display().to_string();
    configure(&sandbox, &format!("[defaults]\nharness = \"codex\"\n[harnesses.codex]\nexecutable = {executable:?}\n"))?;
    assert!(told(&[])?.ends_with(" by codex, your default"));
    Ok(())
}

#[test]
fn a_job_in_the_checkout_says_so_goes_on_and_has_nothing_to_apply() -> Result<()> {
    let sandbox = scripted_sandbox()?;
    let repository = sandbox.filled("one")?;
    let task = brief(&json!([{"say": "All is well."}]));
    let ran = repository.sub(&["run", "--read-only", "--in-place"], &task)?;
    assert_eq!(ran.code(), 0, "{ran:?}");
    assert_eq!(ran.stderr.matches("looks around in your checkout itself").count(), 1, "{}", ran.stderr);
    for arguments in [&["apply", "last", "--yes"][..], &["diff", "last"]] {
        let refused = repository.sub(arguments, "")?;
        assert_eq!(refused.code(), 3, "{refused:?}");
        assert!(refused.stderr.contains("it only looked around in your checkout"), "{}", refused.stderr);
        assert!(refused.stderr.contains("has its answer") && !refused.stderr.contains("failed"), "{}", refused.stderr);
    }
    let resumed = repository.sub(&["resume", "last"], &task)?;
    assert_eq!((resumed.code(), resumed.stdout.as_str()), (0, "All is well.\n"), "{resumed:?}");

    assert_eq!(repository.sub(&["run", "--read-only"], &task)?.code(), 0);
    let there = repository.sub(&["retry", "last", "--in-place"], "")?;
    assert_eq!((there.code(), there.stdout.as_str()), (0, "All is well.\n"), "{there:?}");
    assert_eq!(there.stderr.matches("looks around in your checkout itself").count(), 1, "{}", there.stderr);
    Ok(())
}

#[test]
fn a_decided_job_says_what_became_of_it_and_which_applies_can_be_undone() -> Result<()> {
    let sandbox = scripted_sandbox()?;
    let repository = sandbox.filled("one")?;
    let sub = |arguments: &[&str]| repository.sub(arguments, "");
    let task = brief(&json!([write("a.txt", "a\n"), write("b.txt", "b\n")]));
    assert_eq!(repository.sub(&["run"], &task)?.code(), 0);
    assert!(!sub(&["show"])?.stdout.contains("Applies"));

    assert_eq!(sub(&["apply", "last", "--path", "b.txt", "--yes"])?.code(), 0);
    let partly = sub(&["show"])?.stdout;
    assert!(partly.contains("changed 2 files, +2 −0, partly applied\napply or discard the rest"), "{partly}");
    assert_eq!(sub(&["apply", "last", "--yes"])?.code(), 0);
    let applied = sub(&["show"])?.stdout;
    assert!(applied.contains("changed 2 files, +2 −0, applied\nundo the apply"), "{applied}");
    assert!(!applied.contains("preview the changes"), "{applied}");
    assert_eq!(sub(&["undo", "last", "--apply", "1"])?.code(), 0);

    let shown = sub(&["show"])?.stdout;
    let applies = shown.split_once("\nApplies\n").context("no applies")?.1;
    let lines: Vec<&str> = applies.lines().take(2).collect();
    assert!(lines[0].starts_with("1  b.txt  ") && lines[0].ends_with(", undone"), "{lines:?}");
    assert!(lines[1].starts_with("2  a.txt  ") && lines[1].ends_with(" ago"), "{lines:?}");
    let shown: Value = serde_json::from_str(&sub(&["show", "--json"])?.stdout)?;
    let told = |at: usize| [&shown["job"]["applies"][at]["apply"], &shown["job"]["applies"][at]["undone"]];
    assert_eq!((told(0), told(1)), ([&json!(1), &json!(true)], [&json!(2), &Value::Null]), "{shown:#}");

    assert_eq!(sub(&["discard", "last", "--yes"])?.code(), 0);
    let discarded = sub(&["show"])?.stdout;
    assert!(discarded.contains(", discarded\nretry the job"), "{discarded}");
    Ok(())
}

#[test]
fn a_mistyped_path_is_a_mistake_of_typing() -> Result<()> {
    let sandbox = scripted_sandbox()?;
    let repository = sandbox.filled("one")?;
    let files = [write("src/parse.rs", "new\n"), write("docs/usage.md", "new\n")];
    assert_eq!(repository.sub(&["run"], &brief(&json!(files)))?.code(), 0);
    let apply = ["apply", "last", "--yes"];
    for (arguments, typed, meant) in [
        (&["--path", "src/prase.rs"][..], "src/prase.rs", Some("src/parse.rs")),
        (&["--path", "usage.md"], "usage.md", Some("docs/usage.md")),
        (&["--path", "doc"], "doc", Some("docs")),
        (&["--group", "parse.rs:whole"], "parse.rs", Some("src/parse.rs")),
        (&["--path", "src", "--confirm", "docs/usage"], "docs/usage", Some("docs/usage.md")),
        (&["--path", "nowhere"], "nowhere", None),
    ] {
        let refused = repository.sub(&[&apply, arguments].concat(), "")?;
        assert_eq!(refused.code(), 2, "{refused:?}");
        let told = format!("pactify: {typed} is not among the job's changes\n");
        assert!(refused.stderr.contains(&told), "{}", refused.stderr);
        let meant = meant.map(|meant| format!("next: did you mean {meant}?"));
        assert!(meant.is_none_or(|meant| refused.stderr.contains(&meant)), "{}", refused.stderr);
        assert!(refused.stderr.contains("--stat` lists"), "{}", refused.stderr);
    }
    let json = repository.sub(&[&apply[..], &["--path", "nowhere", "--json"]].concat(), "")?;
    let told: Value = serde_json::from_str(&json.stdout)?;
    assert_eq!(told["error"]["code"], "invalidParams", "{told}");
    assert_eq!(repository.status()?, "");
    for more in [&[][..], &["--stat"], &["--hunks"]] {
        let shown = repository.sub(&[&["diff", "last", "parse.rs"], more].concat(), "")?;
        assert_eq!(shown.code(), 2, "{shown:?}");
        assert!(shown.stderr.contains("did you mean src/parse.rs?"), "{}", shown.stderr);
    }
    Ok(())
}

#[test]
fn a_job_that_fails_without_a_login_says_how_to_log_in() -> Result<()> {
    let sandbox = scripted_sandbox()?;
    let repository = sandbox.filled("one")?;
    let run = |steps: &Value| repository.sub(&["run"], &brief(steps));
    let offline = json!([{"fail": "Connection failed: error sending request"}]);
    let failed = run(&offline)?;
    assert_eq!(failed.code(), 4, "{failed:?}");
    assert!(failed.stderr.contains("no login of codex was found: codex could not reach its provider"), "{failed:?}");
    assert!(failed.stderr.contains("run `codex login -c cli_auth_credentials_store=file` in a terminal"), "{failed:?}");
    let killed = run(&json!([{"die": 9}]))?;
    assert_eq!(killed.code(), 1, "that has another reason: {killed:?}");

    log_in_at_codex(&sandbox)?;
    let failed = run(&offline)?;
    assert_eq!(failed.code(), 1, "{failed:?}");
    assert!(!failed.stderr.contains("login"), "{failed:?}");
    Ok(())
}

#[test]
fn a_branch_that_is_there_already_is_named_with_what_to_do() -> Result<()> {
    let sandbox = scripted_sandbox()?;
    let repository = sandbox.filled("one")?;
    assert_eq!(repository.sub(&["run"], &brief(&json!([write("a.txt", "a\n")])))?.code(), 0);
    let export = |arguments: &[&str]| repository.sub(&[&["export", "last", "--branch"], arguments].concat(), "");
    let made = export(&[])?;
    assert_eq!(made.code(), 0, "{made:?}");
    let again = export(&[])?;
    assert_eq!(again.code(), 2, "{again:?}");
    let name = made.stdout.trim_end();
    assert!(again.stderr.contains(&format!("there is a branch {name:?} already, with this very result")), "{again:?}");
    assert!(again.stderr.contains("use it as it is") && !again.stderr.contains("fatal"), "{again:?}");
    let other = export(&["main"])?;
    assert_eq!(other.code(), 2, "{other:?}");
    assert!(other.stderr.contains("\"main\" already, with something else in it"), "{other:?}");
    assert!(other.stderr.contains("another name"), "{other:?}");
    Ok(())
}
