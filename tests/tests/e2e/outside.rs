//! Changes outside a job's tree, end to end: told with the job, in the way of an apply, put back on request.

use std::path::Path;

use anyhow::{Context as _, Result, ensure};
use pactify_tests::agent::brief;
use pactify_tests::editor::{Editor, configure, scripted_sandbox};
use pactify_tests::sandbox::Sandbox;
use serde_json::{Value, json};

/// Plants a program that the person's next `git status` would run, and a hook.
fn sabotage(repository: &Path) -> String {
    let repository = repository.display();
    format!(
        "cd '{repository}' && git config core.fsmonitor /tmp/evil && printf '#!/bin/sh\\n' > .git/hooks/pre-commit && chmod +x .git/hooks/pre-commit"
    )
}

fn places(outside: &Value) -> Vec<String> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let one =
        |change: &Value| format!("{} {} {}", text(&change["id"]), text(&change["weight"]), text(&change["place"]));
    outside.as_array().into_iter().flatten().map(one).collect()
}

const PLANTED: [&str; 2] = ["1-1 dangerous config: core.fsmonitor", "1-2 dangerous hooks/pre-commit"];

#[test]
fn danger_outside_is_told_stands_in_the_way_and_is_put_back() -> Result<()> {
    let sandbox = scripted_sandbox()?;
    let repository = sandbox.filled("one")?;
    let mut editor = Editor::open(&sandbox, repository.path())?;
    let write = json!({"write": {"path": "new.txt", "content": "new\n"}});
    let list = json!([write, {"run": sabotage(repository.path())}, {"say": "done"}]);
    let job = editor.delegate(&brief(&list), &json!({}))?;
    let status = editor.until(&job, "finished")?;

    assert_eq!(places(&status["outside"]), PLANTED, "{status:#}");
    assert_eq!(status["outcome"], "succeeded");
    assert_eq!(status["ending"]["tone"], "bad", "{status:#}");
    let notices = status["notices"].to_string();
    ensure!(notices.contains("core.fsmonitor") && notices.contains("pactify sub restore"), "{notices}");
    let preview = editor.run("diffPreview", &json!({"jobId": job}))?;
    assert_eq!(places(&preview["outside"]), PLANTED, "{preview:#}");

    let all = json!({"jobId": job, "changeSet": preview["changeSet"]});
    let refused = editor.refused("apply", &all)?;
    assert_eq!(refused.data.context("no data")?["code"], "outsideNotConfirmed");
    let part = json!({"jobId": job, "changeSet": preview["changeSet"], "select": [{"path": "new.txt"}]});
    assert_eq!(editor.refused("apply", &part)?.reason(), "outsideNotConfirmed");
    ensure!(!repository.path().join("new.txt").exists());

    let restored = editor.run("restoreOutside", &json!({"jobId": job}))?;
    assert_eq!(restored["refused"], json!([]), "{restored:#}");
    ensure!(repository.git(&["config", "core.fsmonitor"]).is_err());
    ensure!(!repository.path().join(".git/hooks/pre-commit").exists());
    let status = editor.status(&job)?;
    assert_eq!(status["outside"][0]["restored"], true, "{status:#}");
    assert_eq!(status["ending"]["tone"], "good", "{status:#}");
    editor.run("apply", &all)?;
    ensure!(repository.path().join("new.txt").exists());
    Ok(())
}

#[test]
fn the_person_s_commit_meanwhile_is_a_notice_and_no_more() -> Result<()> {
    let sandbox = scripted_sandbox()?;
    let repository = sandbox.filled("one")?;
    let mut editor = Editor::open(&sandbox, repository.path())?;
    let commit = format!("cd '{}' && git commit -q --allow-empty -m mine", repository.path().display());
    let write = json!({"write": {"path": "new.txt", "content": "new\n"}});
    let job = editor.delegate(&brief(&json!([write, {"run": commit}, {"say": "done"}])), &json!({}))?;
    let status = editor.until(&job, "finished")?;
    let outside = places(&status["outside"]);
    ensure!(outside.len() == 1 && outside[0].starts_with("1-1 ordinary refs/heads/"), "{status:#}");
    assert_eq!(status["ending"]["tone"], "good", "{status:#}");
    ensure!(status["notices"].to_string().contains("moved forward by 1 commit"), "{status:#}");
    editor.apply(&job)?;
    let refused = editor.refused("restoreOutside", &json!({"jobId": job}))?;
    assert_eq!(refused.data.context("no data")?["code"], "nothingToApply");
    Ok(())
}

#[test]
fn a_recovery_compares_as_well() -> Result<()> {
    let sandbox = scripted_sandbox()?;
    let repository = sandbox.filled("one")?;
    let mut editor = Editor::aside(&sandbox, Some(repository.path()))?;
    let list = json!([{"run": sabotage(repository.path())}, {"say": "set"}, "hang"]);
    let job = editor.delegate(&brief(&list), &json!({}))?;
    editor.event(&job, "message")?;
    editor.kill_host(&job)?;
    editor.run("cancel", &json!({"jobId": job}))?;
    let status = editor.until(&job, "finished")?;
    assert_eq!(places(&status["outside"]), PLANTED, "{status:#}");
    let restored = editor.run("restoreOutside", &json!({"jobId": job, "select": ["1-2"]}))?;
    assert_eq!(restored["restored"][0]["id"], "1-2", "{restored:#}");
    ensure!(!repository.path().join(".git/hooks/pre-commit").exists());
    assert_eq!(repository.git(&["config", "core.fsmonitor"])?.trim(), "/tmp/evil");
    Ok(())
}

#[test]
fn a_job_that_spoils_the_comparison_hides_nothing_by_it() -> Result<()> {
    let sandbox = scripted_sandbox()?;
    let repository = sandbox.filled("one")?;
    let mut editor = Editor::aside(&sandbox, Some(repository.path()))?;
    // What the host remembers goes with it, and what is on the disk is the job's to spoil.
    let spoil = "echo spoiled > ../shared/1.before; echo x > by-the-job";
    let list = json!([{"run": sabotage(repository.path())}, {"run": spoil}, {"say": "set"}, "hang"]);
    let job = editor.delegate(&brief(&list), &json!({}))?;
    editor.event(&job, "message")?;
    editor.kill_host(&job)?;
    editor.run("cancel", &json!({"jobId": job}))?;
    let status = editor.until(&job, "finished")?;
    let outside = &status["outside"][0];
    assert_eq!((&outside["weight"], &outside["restorable"]), (&json!("dangerous"), &json!(false)), "{status:#}");

    let change_set = editor.run("diffPreview", &json!({"jobId": job}))?["changeSet"].take();
    let mut apply = json!({"jobId": job, "changeSet": change_set});
    assert_eq!(editor.refused("apply", &apply)?.reason(), "outsideNotConfirmed");
    ensure!(!repository.path().join("by-the-job").exists());
    apply["confirmOutside"] = json!(true);
    editor.run("apply", &apply)?;
    assert_eq!(repository.read("by-the-job")?, "x\n");
    Ok(())
}

#[test]
fn changes_of_the_checkout_that_an_unconfined_agent_may_have_made_are_told() -> Result<()> {
    let sandbox = Sandbox::new()?;
    // The brief is a script for the shell, which nothing confines.
    configure(
        &sandbox,
        "[defaults]\nharness = \"mine\"\n[harnesses.mine]\ncommand = \"sh\"\nargs = [\"-s\"]\nread-only-args = [\"-s\"]\n",
    )?;
    let repository = sandbox.filled("one")?;
    for name in ["edited", "deleted", "deep/deleted", "before", "missing"] {
        repository.write(name, "old\n")?;
    }
    repository.write(".gitignore", "*.o\n")?;
    repository.commit("more")?;
    repository.write("before", "edited before the job\n")?;
    std::fs::remove_file(repository.path().join("missing"))?;
    let before = repository.snapshot()?;
    let mut editor = Editor::open(&sandbox, repository.path())?;
    let told = |editor: &mut Editor, script: &str, more: Value| -> Result<Vec<String>> {
        let script = script.replace("CHECKOUT", &repository.path().display().to_string());
        let job = editor.delegate(&script, &more)?;
        let status = editor.until(&job, "finished")?;
        assert_eq!(
            status["outcome"],
            if script.contains("tree.txt") { "succeeded" } else { "noChanges" },
            "{status:#}"
        );
        let notices = status["notices"].as_array().context("no notices")?;
        let texts = notices.iter().map(Value::to_string);
        Ok(texts.filter(|text| text.contains("of your checkout changed")).collect())
    };

    let quiet = told(&mut editor, "echo x > tree.txt; echo done\n", json!({}))?;
    ensure!(quiet.is_empty(), "{quiet:?}");
    assert_eq!(
        before.changed_since(&repository.snapshot()?).iter().filter(|path| !path.starts_with(".git/")).count(),
        0
    );

    let spoil = "cd 'CHECKOUT' || exit 1; echo new >> edited; rm deleted; rm -r deep; echo x > new; echo x > object.o\n\
                 touch -d '2001-01-01' edited new; echo done\n";
    let told = told(&mut editor, spoil, json!({}))?;
    let [text] = &told[..] else { anyhow::bail!("{told:?}") };
    ensure!(
        text.contains("4 files of your checkout changed while the job ran: deep/deleted, deleted, edited, new."),
        "{text}"
    );
    ensure!(text.contains("mine is not confined"), "{text}");
    Ok(())
}
