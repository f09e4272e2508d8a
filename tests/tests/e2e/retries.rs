//! What a retry takes over from the older job, and what of it the person may say anew.

use std::fs;

use anyhow::{Context as _, Result};
use pactify_tests::agent::brief;
use pactify_tests::editor::{Editor, scripted_sandbox};
use pactify_tests::sandbox::Sandbox;
use serde_json::{Value, json};

/// What was recorded of a job, in the words of the wire.
fn asked(sandbox: &Sandbox, job: &str) -> Result<Value> {
    let record = sandbox.job(job).join("job.json");
    let spec: Value = serde_json::from_slice(&fs::read(record)?)?;
    let verify: Vec<&Value> = spec["verify"].as_array().into_iter().flatten().map(|check| &check["command"]).collect();
    Ok(json!({
        "access": spec["access"], "base": spec["base"]["kind"], "place": spec["place"], "model": spec["model"],
        "withUserConfig": spec["withUserConfig"], "permissions": spec["permissions"], "verify": verify,
    }))
}

#[test]
fn a_retry_is_as_the_job_was_but_for_what_is_said() -> Result<()> {
    let sandbox = scripted_sandbox()?;
    let repository = sandbox.filled("one")?;
    let mut editor = Editor::open(&sandbox, repository.path())?;
    let task = brief(&json!([{"say": "done"}]));
    let more = json!({"model": "m", "withUserConfig": true, "verify": ["true"], "base": "workingTree"});
    let writing = editor.delegate(&task, &more)?;
    let looking = editor.delegate(&task, &json!({"access": "readOnly", "inPlace": true, "model": "m"}))?;
    let (wrote, looked) = (asked(&sandbox, &writing)?, asked(&sandbox, &looking)?);
    assert_eq!((&wrote["verify"], &wrote["withUserConfig"]), (&json!(["true"]), &json!(true)), "{wrote:#}");
    assert_eq!(looked["place"], "checkout", "{looked:#}");

    for (of, was, said, other) in [
        (&writing, &wrote, json!({}), json!({})),
        (&writing, &wrote, json!({"base": "head"}), json!({"base": "head"})),
        (&writing, &wrote, json!({"verify": [], "model": "n"}), json!({"verify": [], "model": "n"})),
        (&writing, &wrote, json!({"verify": ["test 1"]}), json!({"verify": ["test 1"]})),
        (&writing, &wrote, json!({"withUserConfig": false}), json!({"withUserConfig": null})),
        (
            &writing,
            &wrote,
            json!({"access": "readOnly"}),
            json!({"access": "readOnly", "withUserConfig": null, "verify": []}),
        ),
        (&looking, &looked, json!({}), json!({})),
        (&looking, &looked, json!({"access": "write"}), json!({"access": "write", "place": "tree"})),
        (&looking, &looked, json!({"base": "workingTree"}), json!({"base": "workingTree", "place": "tree"})),
        (&looking, &looked, json!({"inPlace": false}), json!({"place": "tree"})),
    ] {
        let mut params = said.clone();
        params["jobId"] = json!(of);
        let again = editor.run("retry", &params)?["jobId"].as_str().context("no job")?.to_owned();
        let mut expected = was.clone();
        for (name, value) in other.as_object().into_iter().flatten() {
            expected[name] = value.clone();
        }
        assert_eq!(asked(&sandbox, &again)?, expected, "{said}");
        let status = editor.until(&again, "finished")?;
        assert_eq!(status["brief"], task, "{status:#}");
    }

    let params = json!({"jobId": writing, "brief": task.replace("Do as you are told.", "Do it again.")});
    let again = editor.run("retry", &params)?["jobId"].as_str().context("no job")?.to_owned();
    assert!(editor.until(&again, "finished")?["title"].to_string().contains("Do it again."));
    for (said, named) in [
        (json!({"access": "readOnly", "verify": ["x"]}), "verify"),
        (json!({"inPlace": true}), "inPlace"),
        (json!({"brief": " "}), "brief"),
    ] {
        let mut params = said.clone();
        params["jobId"] = json!(writing);
        let refused = editor.refused("retry", &params)?;
        assert_eq!(refused.reason(), "invalidParams");
        assert!(refused.message.starts_with(named), "{said}: {}", refused.message);
    }
    Ok(())
}
