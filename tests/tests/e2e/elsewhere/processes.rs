//! Time, silence and output.

use std::fs;

use anyhow::{Context as _, Result, ensure};
use pactify_tests::agent::{brief, write};
use pactify_tests::editor::{Editor, JOB, configure, pid, scripted_sandbox};
use pactify_tests::rendezvous;
use pactify_tests::sandbox::Sandbox;
use serde_json::json;

use super::notices;

/// An agent that has finished, or hangs, and has children that hold its output open and want to live.
#[test]
fn a_deadline_ends_what_holds_the_output_open_and_keeps_the_work() -> Result<()> {
    let sandbox = scripted_sandbox()?;
    let repository = sandbox.filled("one")?;
    let mut editor = Editor::open(&sandbox, repository.path())?;
    for (limit, outcome) in [("timeoutSeconds", "timedOut"), ("stallSeconds", "stalled")] {
        let left = sandbox.root().join(outcome);
        let escape = json!({"escape": {"how": ["doubleFork", "setsid", "ignoreSignals", "keepOutput"],
            "pidFile": left.display().to_string()}});
        let steps = json!([write("half.txt", "half\n"), escape, "ignoreSignals", "hang"]);
        let job = editor.delegate(&brief(&steps), &json!({limit: 20}))?;
        let status = editor.until_within(&job, "finished", 2 * JOB)?;
        assert_eq!(status["outcome"], outcome, "{status:#}");
        assert_eq!(status["changes"]["files"], 1, "what was done is kept: {status:#}");
        let left = pid(&fs::read_to_string(&left)?.trim().parse::<i64>()?.into())?;
        ensure!(rendezvous::ends(left, JOB)?, "{outcome}: it lives on");
    }
    Ok(())
}

/// A wrapper that installs its agent at the first start never comes to the handshake where there is no network.
#[test]
fn an_agent_that_never_begins_is_ended_and_what_it_said_instead_is_told() -> Result<()> {
    let sandbox = Sandbox::new()?;
    let script = "echo 'npm warn exec: downloading agent-acp@1.2.3' >&2; exec sleep 3001";
    configure(
        &sandbox,
        &format!("[harnesses.wrapped]\ncommand = \"sh\"\nargs = [\"-c\", {script:?}]\nprotocol = \"acp\"\n"),
    )?;
    let repository = sandbox.filled("one")?;
    let mut editor = Editor::open(&sandbox, repository.path())?;
    let job = editor.delegate("Work.", &json!({"harness": "wrapped", "stallSeconds": 20}))?;
    let status = editor.until_within(&job, "finished", 2 * JOB)?;
    assert_eq!((&status["outcome"], &status["error"]["code"]), (&json!("stalled"), &json!("stalled")), "{status:#}");
    ensure!(notices(&status).contains("downloading agent-acp@1.2.3"), "{status:#}");
    Ok(())
}

#[test]
fn a_line_without_an_end_costs_no_memory_and_a_long_one_is_counted() -> Result<()> {
    /// Far more than a host needs, and far less than what is written to it.
    const MOST_KIB: u64 = 300 << 10;
    let sandbox = scripted_sandbox()?;
    let repository = sandbox.filled("one")?;
    let mut editor = Editor::open(&sandbox, repository.path())?;
    let steps = json!([write("a.txt", "a\n"), "endlessLine"]);
    let job = editor.delegate(&brief(&steps), &json!({"timeoutSeconds": 15}))?;
    let host = editor.host(&job)?;
    editor.event(&job, "filesTouched")?;
    let mut most = 0;
    // Until it has ended: what is seen last is its peak.
    while let Some(peak) = peak_of(host) {
        most = peak.max(most);
        if editor.status(&job)?["state"] == "finished" {
            break;
        }
    }
    let status = editor.until(&job, "finished")?;
    assert_eq!((&status["outcome"], &status["changes"]["files"]), (&json!("timedOut"), &json!(1)), "{status:#}");
    ensure!((1..MOST_KIB).contains(&most), "its host took {most} KiB");

    let steps = json!([{"longLine": 20_000_000}, write("a.txt", "a\n"), {"say": "Done."}]);
    let job = editor.delegate(&brief(&steps), &json!({}))?;
    let status = editor.until(&job, "finished")?;
    assert_eq!(status["outcome"], "succeeded", "{status:#}");
    ensure!(notices(&status).contains("wrote a line of 200"), "{status:#}");
    Ok(())
}

/// The most memory that a process ever had, in KiB; none once it is gone.
fn peak_of(process: rustix::process::Pid) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{}/status", process.as_raw_nonzero())).ok()?;
    status.lines().find_map(|line| line.strip_prefix("VmHWM:")?.split_whitespace().next()?.parse().ok())
}

#[test]
fn a_cancelled_job_is_no_failure_and_goes_on_when_it_is_resumed() -> Result<()> {
    let sandbox = scripted_sandbox()?;
    let repository = sandbox.filled("one")?;
    let mut editor = Editor::open(&sandbox, repository.path())?;
    let job = editor.delegate(&brief(&json!([write("half.txt", "half\n"), "hang"])), &json!({}))?;
    editor.event(&job, "filesTouched")?;
    editor.run("cancel", &json!({"jobId": job}))?;
    let first = editor.until(&job, "finished")?;
    assert_eq!((&first["outcome"], &first["error"]), (&json!("cancelled"), &json!(null)), "{first:#}");
    let session = first["session"].as_str().context("no session")?.to_owned();

    editor.run("resume", &json!({"jobId": job, "message": brief(&json!([write("rest.txt", "rest\n")]))}))?;
    let second = editor.until(&job, "finished")?;
    assert_eq!((&second["outcome"], &second["attempt"]), (&json!("succeeded"), &json!(2)), "{second:#}");
    assert_eq!((&second["session"], &second["changes"]["files"]), (&json!(session), &json!(2)), "{second:#}");
    Ok(())
}
