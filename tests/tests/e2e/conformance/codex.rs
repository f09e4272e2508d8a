//! The real codex, against the scripted provider.

use anyhow::{Context as _, Result, ensure};
use pactify_tests::agent::Profile;
use pactify_tests::editor::{self, Editor};
use pactify_tests::sandbox::Sandbox;
use serde_json::{Value, json};

use super::{Act, Lie, Login, Pace, Play, Row, Stage, Trouble, ending};
use crate::codex::failures::{error, refusing_port};
use crate::codex::{self, KEYED, QUICK, privacy};

pub(super) struct Codex;

impl Row for Codex {
    fn name(&self) -> &'static str {
        "codex"
    }

    fn stage(&self, play: &Play) -> Result<Stage> {
        let mut held = None;
        let stage = match play {
            Play::Turns(turns) => codex::Stage::playing(&turns.iter().flatten().map(step).collect())?,
            Play::Trouble(Trouble::Refused) => {
                let stage = codex::Stage::new(&json!({}))?;
                // Bound, so that nobody else gets the port; not listening, so that it refuses.
                let (holder, port) = refusing_port()?;
                held = Some(holder);
                stage.configure(&format!("http://127.0.0.1:{port}/v1"), "", &format!("{KEYED}\n{QUICK}"))?;
                stage
            }
            Play::Trouble(trouble) => codex::Stage::playing(&json!([troubled(*trouble)]))?,
        };
        let codex::Stage { sandbox, provider } = stage;
        Ok(Stage {
            sandbox,
            provider: Some(provider),
            held: Box::new(held),
            harness: "codex",
            briefs: Vec::new(),
            pace: Pace::default(),
        })
    }

    /// Of a command that fails at once codex tells its model alone.
    fn was_refused(&self, stage: &Stage, _editor: &mut Editor, _job: &str, status: &Value) -> Result<()> {
        ensure!(status["notices"].to_string().contains("was refused, as this job is read-only"), "nothing was told");
        let heard = stage.provider.as_ref().and_then(|provider| provider.requests().pop()).context("nobody asked")?;
        let heard = heard.body.to_string();
        let both = ["read-only sandbox", "Read-only file system"];
        ensure!(both.iter().all(|words| heard.contains(words)), "the model was not told: {heard}");
        Ok(())
    }

    fn login(&self) -> Result<Login> {
        privacy::a_login_is_used_where_it_is_and_refreshed_there()?;
        Ok(Login::Refreshed)
    }

    /// By its twin, which can be made to say anything.
    fn lies(&self) -> Result<Vec<Lie>> {
        let sandbox = Sandbox::new()?;
        editor::use_scripted_agent(&sandbox, &Profile::default().steps)?;
        let repository = sandbox.filled("one")?;
        let mut editor = Editor::open(&sandbox, repository.path())?;
        let done = json!({"type": "turn.completed", "usage": {"input_tokens": 1, "output_tokens": 1}}).to_string();
        let failed = json!({"type": "turn.failed", "error": {"message": "stream disconnected"}}).to_string();
        let write = json!({"write": {"path": "a.txt", "content": "a\n"}});
        let unsandboxed = json!({"type": "item.completed", "item": {"id": "c", "type": "command_execution",
            "command": "make", "status": "failed", "exit_code": 1,
            "aggregated_output": "bwrap: Creating new namespace failed: nesting depth exceeded (ENOSPC)\n"}});
        let unsandboxed = unsandboxed.to_string();
        let again = json!({"emit": json!({"type": "item.completed", "item": {"id": "c", "type": "command_execution",
            "command": "make", "status": "completed", "exit_code": 1, "aggregated_output": "no"}}).to_string()});
        let again = [vec![write.clone()], vec![again; 60], vec![json!({"say": "Done."})]].concat();
        let mut lies = refused()?;
        for (told, access, steps) in [
            ("exit code 0 without the end of a turn", "write", json!([write, {"say": "Done."}, {"exit": 0}])),
            (
                "the end of a turn, then exit code 1",
                "write",
                json!([write, {"say": "Done."}, {"emit": done}, {"exit": 1}]),
            ),
            ("a failed turn, then exit code 0", "write", json!([write, {"emit": failed}, {"exit": 0}])),
            ("“done” where nothing was changed", "write", json!([{"say": "All done, the file is written."}])),
            ("the end of a turn without an answer, after work", "write", json!([write, {"emit": done}, {"exit": 0}])),
            (
                "“done”, and no command had a sandbox, after others had",
                "write",
                json!([write, {"emit": unsandboxed}, {"say": "All done."}]),
            ),
            (
                "“nothing was changed” in a read-only job that wrote",
                "readOnly",
                json!(["ignoreSandbox", write, {"say": "I changed nothing."}]),
            ),
            (
                "the end of a turn without an answer, in a read-only job",
                "readOnly",
                json!([{"emit": done}, {"exit": 0}]),
            ),
            ("the same command over and over", "write", again.into()),
            ("the end of a turn cut in half", "write", json!([write, {"emit": &done[..20]}, {"exit": 0}])),
        ] {
            let job = editor.delegate(&pactify_tests::agent::brief(&steps), &json!({"access": access}))?;
            lies.push(Lie { told, outcome: ending(&editor.until(&job, "finished")?) });
        }
        let steps = pactify_tests::agent::brief(&json!([write, {"say": "Done."}]));
        let job = editor.delegate(&steps, &json!({}))?;
        editor.until(&job, "finished")?;
        let home = sandbox.job(&job).join("home");
        std::fs::remove_dir_all(home.join("sessions"))?;
        editor.run("resume", &json!({"jobId": job, "message": steps}))?;
        let outcome = ending(&editor.until(&job, "finished")?);
        lies.push(Lie { told: "a session that is no longer there", outcome });
        Ok(lies)
    }
}

/// The real one, whose edit its own tool refuses.
fn refused() -> Result<Vec<Lie>> {
    let missing = "*** Begin Patch\n*** Update File: none.txt\n@@\n-old\n+new\n*** End Patch\n";
    let missing = json!({"custom": {"name": "apply_patch", "input": missing}});
    let edit = step(&Act::Write("a.txt", "a\n"));
    let done = json!({"message": "All done, the files are written."});
    let mut lies = Vec::new();
    for (told, steps) in [
        ("“done” after a refused edit (the real one)", json!([missing, done])),
        ("“done” after one edit, and another one that was refused (the real one)", json!([edit, missing, done])),
    ] {
        let stage = codex::Stage::playing(&steps)?;
        let repository = stage.sandbox.filled("one")?;
        let mut editor = Editor::open(&stage.sandbox, repository.path())?;
        let job = editor.delegate("Write the files.", &json!({}))?;
        let status = editor.until(&job, "finished")?;
        let files = steps.as_array().map_or(0, Vec::len) - 2;
        assert_eq!(status["changes"]["files"], files, "what was done is kept: {status:#}");
        lies.push(Lie { told, outcome: ending(&status) });
    }
    Ok(lies)
}

fn step(act: &Act) -> Value {
    match act {
        Act::Write(path, text) => json!({"edit": {"path": path, "content": text}}),
        Act::Shell(command) => json!({"shell": command}),
        Act::Say(text) => json!({"message": text}),
    }
}

fn troubled(trouble: Trouble) -> Value {
    match trouble {
        Trouble::Unauthorized => error(401, "invalid_api_key", "Incorrect API key."),
        Trouble::RateLimit => error(429, "rate_limit_exceeded", "Slow down."),
        Trouble::ServerError => error(500, "server_error", "Oops."),
        Trouble::Hang => json!({"hang": 120}),
        Trouble::Malformed | Trouble::Refused => json!({"raw": "event: response.created\ndata: {nonsense\n\n"}),
    }
}
